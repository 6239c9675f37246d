//! Field selectors.
//!
//! An API server knows a few fields of each kind (`metadata.name` and `metadata.namespace` of all, `spec.nodeName`
//! of Pods, and so on) and refuses others, as [`FieldSelector::check`] does for built-in kinds. What is matched is the
//! field at that path.

use std::borrow::Cow;
use std::fmt;

use ephor_expr::{Str, Value};

use super::SelectorError;
use crate::error::ClusterError;
use crate::resource::{Origin, Resource};

/// A conjunction of comparisons of fields with texts; without any it selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    path: Str,
    value: Str,
    equal: bool,
}

impl FieldSelector {
    /// Reads `path=value` and `path!=value` terms between commas. In values a backslash takes the meaning from a
    /// following comma, equals sign or backslash. Empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for term in split_terms(text) {
            if !term.is_empty() {
                terms.push(parse_term(term).ok_or_else(|| SelectorError {
                    text: text.to_owned(),
                    problem: format!("can't understand '{term}'"),
                })?);
            }
        }
        Ok(Self { terms })
    }

    /// Selects the one object of that name.
    pub fn name(name: &str) -> Self {
        Self { terms: vec![Term { path: Str::new_static("metadata.name"), value: name.into(), equal: true }] }
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Refuses fields that an API server does not select objects of that kind by. Of custom kinds nothing is known.
    pub fn check(&self, resource: &Resource) -> Result<(), ClusterError> {
        if matches!(resource.origin, Origin::Custom | Origin::Guessed) {
            return Ok(());
        }
        let known = selectable(resource);
        let is_known = |path: &str| {
            matches!(path, "metadata.name" | "metadata.namespace")
                || known.contains(&path)
                || path
                    .strip_prefix("involvedObject.")
                    .or(path.strip_prefix("regarding."))
                    .is_some_and(|_| is_event(resource))
        };
        match self.terms.iter().find(|term| !is_known(&term.path)) {
            None => Ok(()),
            Some(Term { path, .. }) if known.is_empty() => Err(ClusterError::bad_request(format!(
                "{:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                path.as_str()
            ))),
            Some(Term { path, .. }) => Err(ClusterError::bad_request(format!("field label not supported: {path}"))),
        }
    }

    /// Whether the object is selected. A missing field compares as empty text, numbers and booleans as JSON writes
    /// them.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| {
            let found = term.path.split('.').try_fold(object, |v, key| v.get(key));
            let text = match found {
                None | Some(Value::Null) => Cow::Borrowed(""),
                Some(Value::String(s)) => Cow::Borrowed(s.as_str()),
                Some(other) => Cow::Owned(other.to_json()),
            };
            (text == term.value.as_str()) == term.equal
        })
    }
}

impl fmt::Display for FieldSelector {
    /// The text form, which [`FieldSelector::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Term { path, value, equal }) in self.terms.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{path}{}", if *equal { "=" } else { "!=" })?;
            for c in value.chars() {
                if matches!(c, ',' | '=' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

fn is_event(resource: &Resource) -> bool {
    resource.kind == "Event"
}

/// The fields beside name and namespace that objects of a built-in kind can be selected by.
fn selectable(resource: &Resource) -> &'static [&'static str] {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "Node") => &["spec.unschedulable"],
        ("", "ReplicationController") | ("apps", "ReplicaSet") => &["status.replicas"],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        _ if is_event(resource) => &["reason", "reportingComponent", "reportingController", "source", "type"],
        _ => &[],
    }
}

fn split_terms(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    })
}

fn parse_term(term: &str) -> Option<Term> {
    let (path, rest) = term.split_at(term.find(['=', '!'])?);
    let (value, equal) = match rest.strip_prefix("!=") {
        Some(value) => (value, false),
        None => (rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?, true),
    };
    Some(Term { path: path.into(), value: unescape(value)?, equal })
}

/// `None` for a bare `=`, and for a backslash before anything else than what it may stand before.
fn unescape(value: &str) -> Option<Str> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next().filter(|c| matches!(c, ',' | '=' | '\\'))?),
            '=' => return None,
            _ => out.push(c),
        }
    }
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_compare_as_text() {
        let pod = Value::from_json(
            r#"{"metadata":{"name":"a","namespace":"n"},"spec":{"hostNetwork":true,"n":3,"odd":"x,y=z\\"},"status":{"phase":null}}"#,
        )
        .unwrap();
        for (text, want) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name==a,metadata.namespace=n", true),
            ("metadata.name=b", false),
            ("metadata.name!=b", true),
            ("metadata.name!=a", false),
            ("spec.hostNetwork=true", true),
            ("spec.n=3", true),
            ("status.phase=", true),
            ("status.phase!=Running", true),
            ("spec.missing.deep=", true),
            (r"spec.odd=x\,y\=z\\", true),
            ("metadata.name=a,,", true),
        ] {
            let selector = FieldSelector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(selector.matches(&pod), want, "{text}");
            assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector, "{text} printed as {selector}");
        }
        assert!(FieldSelector::name("a").matches(&pod));
    }

    #[test]
    fn fields_that_a_kind_is_not_selected_by_are_refused() {
        let discovery = crate::Discovery::kubernetes();
        for (api_version, kind, text, want) in [
            ("v1", "Pod", "metadata.name=a,spec.nodeName=n", Ok(())),
            ("v1", "Event", "involvedObject.name=a,reason!=b", Ok(())),
            ("v1", "Pod", "spec.foo=a", Err("field label not supported: spec.foo")),
            (
                "v1",
                "ConfigMap",
                "data.x=1",
                Err(r#""data.x" is not a known field selector: only "metadata.name", "metadata.namespace""#),
            ),
        ] {
            let resource = discovery.find(api_version, kind).unwrap();
            let checked = FieldSelector::parse(text).unwrap().check(resource).map_err(|error| error.to_string());
            assert_eq!(checked, want.map_err(str::to_owned), "{kind} {text}");
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in ["a", "a=b=c", r"a=\b", "a!b", r"a=b\"] {
            assert!(FieldSelector::parse(text).is_err(), "{text}");
        }
    }
}
