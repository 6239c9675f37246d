//! Questions to the outside, and their answers.
//!
//! Evaluation never calls out. A rule that needs something asks with a [`Fetch`]; the host answers with a [`Fact`]
//! and evaluates again. What cannot be had is a fact too ([`Fact::Unavailable`]), never silence.

use std::fmt;
use std::sync::Arc;

use ephor_expr::{Str, Value};
use rustc_hash::FxHashMap;

use crate::gate::ApiPath;
use crate::policy::HttpMethod;

/// A question to the outside. Only [`crate::gate`] makes one into an [`crate::gate::AllowedFetch`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fetch {
    /// A `ConfigMap`, as the whole object.
    ConfigMap {
        /// Its namespace.
        namespace: Str,
        /// Its name.
        name: Str,
    },
    /// A call of the Kubernetes API.
    Api {
        /// GET or POST.
        method: HttpMethod,
        /// The path, query included.
        path: ApiPath,
        /// The JSON body of a POST.
        body: Option<Str>,
    },
    /// A call of an HTTP service.
    Service {
        /// GET or POST.
        method: HttpMethod,
        /// The address.
        url: Str,
        /// Headers, sorted.
        headers: Vec<(Str, Str)>,
        /// The JSON body of a POST.
        body: Option<Str>,
        /// Certificates to trust, PEM.
        ca_bundle: Option<Str>,
        /// What the answer is.
        answer: ServiceAnswer,
    },
    /// The data of a `GlobalContextEntry`, or of one of its projections (`entry.projection`).
    Global {
        /// The name.
        name: Str,
    },
    /// The data of an image in its registry.
    Image {
        /// The reference as written.
        reference: Str,
        /// How to log in, as JSON.
        credentials: Option<Str>,
    },
    /// The addresses of a host, as an array of strings.
    Host {
        /// The name.
        name: Str,
    },
    /// The labels of a namespace, as an object.
    NamespaceLabels {
        /// The namespace.
        name: Str,
    },
    /// The Namespace of the object that is judged, as the whole object.
    Namespace {
        /// Its name.
        name: Str,
    },
    /// Parameter objects of a policy, as an array; empty if there are none.
    Parameters {
        /// Their API version.
        api_version: Str,
        /// Their kind.
        kind: Str,
        /// The namespace that the policy names. A kind without namespaces must not have one.
        namespace: Option<Str>,
        /// The namespace of the object that is judged (empty: none), for policies that name none.
        home: Str,
        /// The only one that is meant.
        name: Option<Str>,
    },
    /// One object of the cluster.
    Object {
        /// Its API version.
        api_version: Str,
        /// Its kind; with a subresource of it (`Deployment/scale`) what that shows.
        kind: Str,
        /// Its namespace; empty for cluster-scoped kinds.
        namespace: Str,
        /// Its name.
        name: Str,
    },
    /// All objects of a kind, as an array.
    Objects {
        /// Their API version.
        api_version: Str,
        /// Their kind.
        kind: Str,
        /// Their namespace; empty for all.
        namespace: Str,
    },
}

/// What the answer of a service is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServiceAnswer {
    /// The JSON document that it sends. Other documents and all statuses but those of success are failures.
    Document,
    /// `{body, statusCode}`, whatever the status is. The body is null if it is no JSON.
    Response,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// The data.
    Found(Value),
    /// It was looked for and is not there.
    Missing,
    /// A call of the API was answered: there is no such object, in the words of the answer.
    NotFound(String),
    /// It was asked for and the answer is a failure.
    Failed(String),
    /// The host cannot answer: offline, not allowed, not configured.
    Unavailable(String),
}

/// Merges a part of an object into an object as a cluster does: by the schema of its kind.
pub trait Merger: Send + Sync {
    /// `object` with all that `configuration` says, or why that cannot be.
    fn merge(&self, object: &Value, configuration: &Value) -> Result<Value, String>;

    /// Whether it merges as an API server does for its own admission policies. What stands in for one elsewhere serves
    /// policies of `policies.kyverno.io` alone.
    fn is_of_api_server(&self) -> bool {
        true
    }
}

/// The answers known so far.
#[derive(Clone, Default)]
pub struct Facts {
    known: FxHashMap<Fetch, Fact>,
    merger: Option<Arc<dyn Merger>>,
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Facts").field(&self.known).finish()
    }
}

impl Facts {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// No answers, of a cluster that knows schemas.
    pub fn merging(merger: Option<Arc<dyn Merger>>) -> Self {
        Self { merger, ..Self::default() }
    }

    /// What merges configurations; `None` where no schema is known.
    pub fn merger(&self) -> Option<&dyn Merger> {
        self.merger.as_deref()
    }

    /// Records an answer.
    pub fn insert(&mut self, fetch: Fetch, fact: Fact) {
        self.known.insert(fetch, fact);
    }

    /// The answer to a question, if it was given.
    pub fn get(&self, fetch: &Fetch) -> Option<&Fact> {
        self.known.get(fetch)
    }
}
