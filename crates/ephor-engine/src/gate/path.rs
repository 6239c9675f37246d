//! The path of an API call, as a typed value.
//!
//! A policy writes a path as text. [`ApiPath`] is what that text means: a kind of object with its namespace and name,
//! or a document about the server. The gate decides on this value and executors render their URL from it, so both speak
//! of the same thing. Percent-encoding is undone once, when the text is read, and done once, when the path is rendered.

use std::fmt::{self, Write as _};

use ephor_expr::Str;
use ephor_expr::scalar::percent::{AsciiSet, RESERVED, encode};

use super::url::Origin;

/// Where a call of the Kubernetes API leads. [`ApiPath::parse`] and [`super::url::assemble`] make one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiPath {
    route: Route,
    /// Names and values of the query, decoded, in the order of the text.
    query: Vec<(Str, Str)>,
}

/// What a path is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Route {
    /// A document about the server: `/version`, `/apis/apps/v1`.
    Server(Vec<Str>),
    /// A collection, an object, or something below an object.
    Objects(ObjectsPath),
}

/// `[namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE…]]` below a group and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectsPath {
    /// The group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The namespace, if the path names one.
    pub namespace: Option<Str>,
    /// The name of the kind in URLs: `pods`.
    pub resource: Str,
    /// The name of the object; `None` for a collection.
    pub name: Option<Str>,
    /// The subresource, and after `proxy` the path within what is proxied.
    pub below: Vec<Str>,
}

/// What is no path of an API call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// The text of the policy is not a plain path.
    #[error("`{path}` is not a plain path: it must begin with `/` and hold no `..`, `//`, backslash or encoded slash")]
    Odd {
        /// The path.
        path: String,
    },
    /// A value would be more than one segment, or none.
    #[error(
        "`{value}` may not stand in `{path}`: a value in a path is one name, which is not empty, `.` or `..` and \
         has no `/`, `\\`, `%`, `?`, `#` or control character"
    )]
    NotAName {
        /// The value.
        value: String,
        /// The path, with the value in it.
        path: String,
    },
    /// A value would decide what the rest of the path means.
    #[error("`{value}` may not stand in `{path}`: {why}")]
    Structure {
        /// The value.
        value: String,
        /// The path, with the value in it.
        path: String,
        /// What only the policy may say.
        why: &'static str,
    },
    /// The call never ends, or has no answer that is data.
    #[error("`{path}` is a stream or a connection, which has no answer that a policy could read")]
    Stream {
        /// The path.
        path: String,
    },
}

/// Subresources that connect to a container.
const CONNECTIONS: [&str; 3] = ["exec", "attach", "portforward"];

/// Whether `namespaces/NAME/part` is a part of the Namespace, and no collection in it.
fn is_part_of_namespace(part: &str) -> bool {
    matches!(part, "status" | "finalize")
}

/// Whether a subresource passes calls on to what an object stands for. The answer is the word of that Pod, Service or
/// Node, whatever object it looks like.
pub(super) fn connects(subresource: &str) -> bool {
    let first = subresource.split('/').next().unwrap_or_default();
    first == "proxy" || CONNECTIONS.contains(&first)
}

/// Reviews, which an API server answers and does not store: group and resource.
const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// A segment of a path, decoded.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) text: Str,
    pub(super) origin: Origin,
}

impl ApiPath {
    /// Reads a path that holds no values of others.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        super::url::assemble(&[super::url::Piece::Policy(text)])
    }

    /// The path of a collection, of one object, or of what is below it. `None` if a part cannot stand in a path, if
    /// what is below connects to what the object stands for, or if the path would name a part of a Namespace.
    pub fn of_object(object: ObjectsPath) -> Option<Self> {
        let of_namespace = object.group.is_empty()
            && object.namespace.is_some()
            && object.name.is_none()
            && is_part_of_namespace(&object.resource);
        if of_namespace || object.below.iter().any(|below| connects(below)) {
            return None;
        }
        Self::of_route(Route::Objects(object))
    }

    /// The path of the document that lists the kinds of a group (empty: the core group) and version. `None` if a part
    /// cannot stand in a path.
    pub fn of_version(group: &str, version: &str) -> Option<Self> {
        let segments = if group.is_empty() { vec!["api", version] } else { vec!["apis", group, version] };
        Self::of_route(Route::Server(segments.into_iter().map(Str::new).collect()))
    }

    fn of_route(route: Route) -> Option<Self> {
        let path = Self { route, query: Vec::new() };
        path.segments().into_iter().all(super::url::is_name).then_some(path)
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn with_label_selector(mut self, selector: &str) -> Self {
        self.query.push((Str::new_static("labelSelector"), Str::new(selector)));
        self
    }

    /// Whether the answer lists the kinds of a group and version, which every user of a cluster may read.
    pub fn is_discovery(&self) -> bool {
        let Route::Server(segments) = &self.route else { return false };
        matches!(segments.iter().map(Str::as_str).collect::<Vec<_>>().as_slice(), ["api", _] | ["apis", _, _])
    }

    /// Sorts segments into what they mean; `shown` is the path for messages.
    pub(super) fn of_segments(
        segments: &[Segment],
        query: Vec<(Str, Str)>,
        shown: impl Fn() -> String,
    ) -> Result<Self, InvalidPath> {
        let structure = |segment: &Segment, why| {
            Err(InvalidPath::Structure { value: segment.text.escape_debug().to_string(), path: shown(), why })
        };
        let mut parts = segments.iter();
        let Some(root) = parts.next() else { return Err(InvalidPath::Odd { path: shown() }) };
        if root.origin != Origin::Policy {
            return structure(root, "the policy's own text must begin the path");
        }
        let group = match root.text.as_str() {
            "api" => None,
            "apis" => parts.next(),
            _ => return Ok(Self { route: server(segments), query }),
        };
        let Some(version) = parts.next() else { return Ok(Self { route: server(segments), query }) };
        let given = |segment: &Segment| segment.origin != Origin::Policy;
        // Otherwise a value that is a group alone, or a group with its version, would move all that follows.
        if (given(version) || group.is_some_and(given)) && !is_version(&version.text) {
            let value = group.filter(|group| given(group)).unwrap_or(version);
            return structure(value, "group and version must be such as `apps/v1`");
        }
        let rest: Vec<&Segment> = parts.collect();
        if let [next, more @ ..] = rest.as_slice()
            && version.origin == Origin::ApiVersion
            && (is_version(&next.text) || (given(next) && !more.is_empty()))
        {
            return structure(version, "the path has another place for the version");
        }
        let (namespace, rest) = match rest.as_slice() {
            [] => return Ok(Self { route: server(segments), query }),
            [kind, _, ..] if given(kind) && kind.text == "namespaces" => {
                return structure(kind, "only the policy's own text says that a namespace follows");
            }
            [kind, _, below] if kind.text == "namespaces" && is_part_of_namespace(&below.text) => {
                if given(below) {
                    return structure(below, "it would name a part of the Namespace");
                }
                (None, rest.as_slice())
            }
            [kind, namespace, rest @ ..] if kind.text == "namespaces" && !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let [resource, rest @ ..] = rest else { return Err(InvalidPath::Odd { path: shown() }) };
        let below = rest.get(1..).unwrap_or_default();
        if let Some(subresource) = below.first()
            && given(subresource)
            && connects(&subresource.text)
        {
            return structure(subresource, "only the policy's own text says that the call is passed on");
        }
        let text = |segment: &&Segment| segment.text.clone();
        let path = Self {
            route: Route::Objects(ObjectsPath {
                group: group.map(|group| group.text.clone()).unwrap_or_default(),
                version: version.text.clone(),
                namespace: namespace.as_ref().map(text),
                resource: resource.text.clone(),
                name: rest.first().map(text),
                below: below.iter().map(text).collect(),
            }),
            query,
        };
        if path.is_stream() { Err(InvalidPath::Stream { path: shown() }) } else { Ok(path) }
    }

    /// What the path is about.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// The objects that the path is about, if it is about objects.
    pub fn objects(&self) -> Option<&ObjectsPath> {
        match &self.route {
            Route::Objects(objects) => Some(objects),
            Route::Server(_) => None,
        }
    }

    /// The path without its query, as a URL has it.
    pub fn without_query(&self) -> String {
        let mut out = String::new();
        for segment in self.segments() {
            out.push('/');
            let _ = write!(out, "{}", encode(segment, IN_SEGMENT));
        }
        out
    }

    /// Whether a POST to this path asks for a review, which changes nothing in the cluster.
    pub fn is_review(&self) -> bool {
        self.objects().is_some_and(|objects| {
            objects.name.is_none() && REVIEWS.contains(&(objects.group.as_str(), objects.resource.as_str()))
        })
    }

    /// Whether the objects are Secrets.
    pub fn is_about_secrets(&self) -> bool {
        self.objects().is_some_and(|objects| objects.group.is_empty() && objects.resource == "secrets")
    }

    /// Whether the answer would never end, or be no document.
    fn is_stream(&self) -> bool {
        // As API servers read a boolean parameter.
        let asks = |(key, value): &(Str, Str)| {
            matches!(key.as_str(), "watch" | "follow") && !matches!(value.as_str(), "false" | "0")
        };
        let old = |objects: &ObjectsPath| {
            objects.namespace.is_none() && matches!(objects.resource.as_str(), "watch" | "proxy")
        };
        let connects =
            |objects: &ObjectsPath| objects.below.first().is_some_and(|below| CONNECTIONS.contains(&below.as_str()));
        self.query.iter().any(asks) || self.objects().is_some_and(|objects| old(objects) || connects(objects))
    }

    fn segments(&self) -> Vec<&str> {
        match &self.route {
            Route::Server(segments) => segments.iter().map(Str::as_str).collect(),
            Route::Objects(objects) => {
                let mut segments = Vec::with_capacity(8);
                match objects.group.as_str() {
                    "" => segments.push("api"),
                    group => segments.extend(["apis", group]),
                }
                segments.push(&objects.version);
                if let Some(namespace) = &objects.namespace {
                    segments.extend(["namespaces", namespace]);
                }
                segments.push(&objects.resource);
                segments.extend(objects.name.iter().chain(&objects.below).map(Str::as_str));
                segments
            }
        }
    }
}

/// The path and its query as a URL has them. Reading the result gives the same path again.
impl fmt::Display for ApiPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = self.without_query();
        for (i, (key, value)) in self.query.iter().enumerate() {
            out.push(if i == 0 { '?' } else { '&' });
            let _ = write!(out, "{}", encode(key, IN_KEY));
            out.push('=');
            let _ = write!(out, "{}", encode(value, IN_VALUE));
        }
        f.write_str(&out)
    }
}

fn server(segments: &[Segment]) -> Route {
    Route::Server(segments.iter().map(|segment| segment.text.clone()).collect())
}

/// Whether a text is a version as Kubernetes writes them: `v1`, `v2beta3`.
fn is_version(text: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let (major, minor) = ["alpha", "beta"]
        .iter()
        .find_map(|stage| rest.split_once(stage).map(|(major, minor)| (major, Some(minor))))
        .unwrap_or((rest, None));
    number(major) && minor.is_none_or(number)
}

/// What is encoded in a segment of a path.
const IN_SEGMENT: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// What is encoded in the name of a parameter.
const IN_KEY: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b',')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// What is encoded in the value of a parameter.
const IN_VALUE: &AsciiSet = &IN_KEY.remove(b'=');
