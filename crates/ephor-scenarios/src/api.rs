//! The API server as scenarios talk to it.
//!
//! A client of its own, small and plain: the judge shares no code with the judged. It reads a kubeconfig, knows the
//! kinds that are served, and passes refusals on word for word.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::{Value, yaml};
use parking_lot::Mutex;
use ureq::Agent;
use ureq::http::{Method, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Why a request was not done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server said no, in these words.
    #[error("{message}")]
    Refused {
        /// The status code of HTTP.
        code: u16,
        /// The reason, for machines.
        reason: String,
        /// The message, for people.
        message: String,
    },
    /// There was no answer.
    #[error("{0}")]
    Transport(String),
    /// The kind is not served.
    #[error("no matches for kind {kind:?} in version {api_version:?}")]
    NoSuchKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The kubeconfig cannot be used.
    #[error("kubeconfig: {0}")]
    Kubeconfig(String),
}

impl ApiError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. } | Self::NoSuchKind { .. })
    }
}

/// A kind that is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// `deployments`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether objects can be listed and deleted.
    pub stored: bool,
}

impl Kind {
    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let mut path = format!("/{root}/{}", self.api_version);
        if let Some(namespace) = namespace.filter(|namespace| self.namespaced && !namespace.is_empty()) {
            path.extend(["/namespaces/", namespace]);
        }
        path.extend(["/", &self.plural]);
        if let Some(name) = name {
            path.push('/');
            path.extend(escape(name));
        }
        path
    }
}

/// Names may hold characters that mean something in a URL (`system:x`), so all but the plainest are escaped.
fn escape(text: &str) -> impl Iterator<Item = char> {
    text.bytes().flat_map(|byte| {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let text = if plain { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        text.chars().collect::<Vec<_>>()
    })
}

/// The form in which everything about kinds comes in one answer.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The form in which objects come without their contents.
const METADATA: &str = "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadataList";

/// The stored kinds of a group's version.
fn discovered(group: &Value, version: &Value) -> Vec<Kind> {
    let group = group.str_at(&["metadata", "name"]).unwrap_or_default();
    let name = version.str_at(&["version"]).unwrap_or_default();
    let api_version = if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
    let resources = version.get("resources").and_then(Value::as_array).unwrap_or_default();
    let kinds = resources.iter().filter_map(|resource| {
        let verbs = resource.get("verbs").and_then(Value::as_array).unwrap_or_default();
        let can = |verb: &str| verbs.iter().any(|known| known.as_str() == Some(verb));
        let kind = Kind {
            api_version: api_version.clone(),
            kind: resource.str_at(&["responseKind", "kind"])?.to_owned(),
            plural: resource.str_at(&["resource"])?.to_owned(),
            namespaced: resource.str_at(&["scope"]) == Some("Namespaced"),
            stored: can("list") && can("delete"),
        };
        kind.stored.then_some(kind)
    });
    kinds.collect()
}

/// A client of one API server.
#[derive(Debug)]
pub struct Api {
    agent: Agent,
    server: String,
    authorization: Option<String>,
    kinds: Mutex<HashMap<(String, String), Kind>>,
}

impl Api {
    /// A client for the current context of a kubeconfig file, which must use a token if anything.
    pub fn from_kubeconfig(path: &Path) -> Result<Self, ApiError> {
        let wrong = |problem: String| ApiError::Kubeconfig(problem);
        let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
        let config = yaml::parse_value(&text).map_err(|error| wrong(error.to_string()))?;
        let named = |list: &str, name: Option<&str>, member: &str| {
            let items = config.get(list)?.as_array()?;
            items.iter().find(|item| item.str_at(&["name"]) == name)?.get(member).cloned()
        };
        let missing = |what: &str| wrong(format!("{} names no {what}", path.display()));
        let context =
            named("contexts", config.str_at(&["current-context"]), "context").ok_or_else(|| missing("context"))?;
        let cluster = named("clusters", context.str_at(&["cluster"]), "cluster").ok_or_else(|| missing("cluster"))?;
        let user = named("users", context.str_at(&["user"]), "user").unwrap_or_default();
        let server = cluster.str_at(&["server"]).ok_or_else(|| missing("server"))?.trim_end_matches('/').to_owned();
        let mut roots = Vec::new();
        if let Some(data) = cluster.str_at(&["certificate-authority-data"]) {
            let pem = STANDARD.decode(data).map_err(|error| wrong(error.to_string()))?;
            roots.push(Certificate::from_pem(&pem).map_err(|error| wrong(error.to_string()))?);
        }
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .root_certs(RootCerts::new_with_certs(&roots))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(None)
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(40)))
            .user_agent("ephor-scenarios")
            .build();
        let authorization = user.str_at(&["token"]).map(|token| format!("Bearer {token}"));
        Ok(Self { agent: config.into(), server, authorization, kinds: Mutex::default() })
    }

    /// One request; the answer is a document.
    pub fn request(&self, method: &Method, path: &str, body: Option<(&str, &Value)>) -> Result<Value, ApiError> {
        self.exchange(method, path, "application/json", body)
    }

    fn exchange(
        &self,
        method: &Method,
        path: &str,
        accept: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, ApiError> {
        let lost = |error: &dyn std::fmt::Display| ApiError::Transport(error.to_string());
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.server));
        request = request.header("accept", accept);
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = match body {
            None => self.agent.run(request.body(()).map_err(|error| lost(&error))?),
            Some((media_type, document)) => {
                let request = request.header("content-type", media_type).body(document.to_json());
                self.agent.run(request.map_err(|error| lost(&error))?)
            }
        };
        let mut answer = answer.map_err(|error| lost(&error))?;
        let code = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(64 << 20).read_to_string().map_err(|error| lost(&error))?;
        let document = Value::from_json(&text);
        if (200..300).contains(&code) {
            return document.map_err(|error| lost(&error));
        }
        let document = document.unwrap_or_default();
        let member = |name: &str| document.str_at(&[name]).map(str::to_owned);
        Err(ApiError::Refused {
            code,
            reason: member("reason").unwrap_or_default(),
            message: member("message").unwrap_or_else(|| format!("status {code}: {}", text.trim())),
        })
    }

    /// A document at a path.
    pub fn read(&self, path: &str) -> Result<Value, ApiError> {
        self.read_as(path, "application/json")
    }

    /// A document in a form. The storage of a kind that was just defined is awaited.
    fn read_as(&self, path: &str, accept: &str) -> Result<Value, ApiError> {
        let mut attempts = 0;
        loop {
            match self.exchange(&Method::GET, path, accept, None) {
                Err(ApiError::Refused { code: 429, .. }) if attempts < 100 => attempts += 1,
                other => return other,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The kind behind an object's `apiVersion` and `kind`, as of now.
    pub fn kind(&self, api_version: &str, kind: &str) -> Result<Kind, ApiError> {
        let key = (api_version.to_owned(), kind.to_owned());
        let known = || self.kinds.lock();
        if let Some(found) = known().get(&key) {
            return Ok(found.clone());
        }
        for found in self.kinds_of(api_version)? {
            known().insert((found.api_version.clone(), found.kind.clone()), found);
        }
        let found = known().get(&key).cloned();
        found.ok_or(ApiError::NoSuchKind { api_version: key.0, kind: key.1 })
    }

    /// The kinds of one group and version.
    fn kinds_of(&self, api_version: &str) -> Result<Vec<Kind>, ApiError> {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let list = match self.read(&format!("/{root}/{api_version}")) {
            Err(ApiError::Refused { code: 404, .. }) => return Ok(Vec::new()),
            other => other?,
        };
        let resources = list.get("resources").and_then(Value::as_array).unwrap_or_default();
        let kinds = resources.iter().filter_map(|resource| {
            let plural = resource.str_at(&["name"]).filter(|name| !name.contains('/'))?;
            let verbs = resource.get("verbs").and_then(Value::as_array).unwrap_or_default();
            let can = |verb: &str| verbs.iter().any(|known| known.as_str() == Some(verb));
            Some(Kind {
                api_version: api_version.to_owned(),
                kind: resource.str_at(&["kind"])?.to_owned(),
                plural: plural.to_owned(),
                namespaced: resource.get("namespaced").and_then(Value::as_bool).unwrap_or_default(),
                stored: can("list") && can("delete"),
            })
        });
        Ok(kinds.collect())
    }

    /// All kinds whose objects are stored, each in the first version that has it, as of now.
    pub fn stored_kinds(&self) -> Result<Vec<Kind>, ApiError> {
        let mut kinds: Vec<Kind> = Vec::new();
        for root in ["/api", "/apis"] {
            let groups = self.read_as(root, DISCOVERY)?;
            for group in groups.get("items").and_then(Value::as_array).unwrap_or_default() {
                let versions = group.get("versions").and_then(Value::as_array).unwrap_or_default();
                for kind in versions.iter().flat_map(|version| discovered(group, version)) {
                    if !kinds.iter().any(|known| known.kind == kind.kind && known.group() == kind.group()) {
                        kinds.push(kind);
                    }
                }
            }
        }
        Ok(kinds)
    }

    /// What there is of a kind, in all namespaces: `metadata` alone.
    pub fn list_metadata(&self, kind: &Kind) -> Result<Vec<Value>, ApiError> {
        let list = self.read_as(&kind.path(None, None), METADATA)?;
        Ok(list.get("items").and_then(Value::as_array).unwrap_or_default().to_vec())
    }

    /// Forgets kinds: after a definition is gone its kind would still be known.
    pub fn forget_kinds(&self) {
        self.kinds.lock().clear();
    }

    /// One object.
    pub fn get(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<Value, ApiError> {
        self.read(&kind.path(namespace, Some(name)))
    }

    /// The objects of a kind with these labels, with `apiVersion` and `kind` filled in.
    pub fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        labels: &[(String, String)],
    ) -> Result<Vec<Value>, ApiError> {
        let mut path = kind.path(namespace, None);
        if !labels.is_empty() {
            let selector: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            path.push_str("?labelSelector=");
            path.extend(escape(&selector.join(",")));
        }
        let list = self.read(&path)?;
        let items = list.get("items").and_then(Value::as_array).unwrap_or_default();
        let named = items.iter().map(|item| {
            let mut item = item.clone();
            if let Some(members) = item.as_object_mut() {
                members.insert("apiVersion", kind.api_version.as_str());
                members.insert("kind", kind.kind.as_str());
            }
            item
        });
        Ok(named.collect())
    }

    /// Creates an object.
    pub fn create(&self, kind: &Kind, namespace: Option<&str>, object: &Value) -> Result<Value, ApiError> {
        self.request(&Method::POST, &kind.path(namespace, None), Some(("application/json", object)))
    }

    /// Replaces an object.
    pub fn replace(&self, kind: &Kind, namespace: Option<&str>, name: &str, object: &Value) -> Result<Value, ApiError> {
        self.request(&Method::PUT, &kind.path(namespace, Some(name)), Some(("application/json", object)))
    }

    /// Changes an object by a merge patch.
    pub fn merge(&self, kind: &Kind, namespace: Option<&str>, name: &str, patch: &Value) -> Result<Value, ApiError> {
        let body = ("application/merge-patch+json", patch);
        self.request(&Method::PATCH, &kind.path(namespace, Some(name)), Some(body))
    }

    /// Deletes an object, leaving what it owns to the garbage collector.
    pub fn delete(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<(), ApiError> {
        let path = format!("{}?propagationPolicy=Background", kind.path(namespace, Some(name)));
        self.request(&Method::DELETE, &path, None).map(drop)
    }

    /// Deletes an object without waiting for anybody, not even a kubelet that is not there.
    pub fn delete_now(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<(), ApiError> {
        let path = kind.path(namespace, Some(name));
        let path = format!("{path}?propagationPolicy=Background&gracePeriodSeconds=0");
        self.request(&Method::DELETE, &path, None).map(drop)
    }

    /// Lets a namespace go at once; what is in it must be gone.
    pub fn finalize_namespace(&self, name: &str) -> Result<(), ApiError> {
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}},"spec":{{"finalizers":[]}}}}"#
        );
        let body = Value::from_json(&body).map_err(|error| ApiError::Transport(error.to_string()))?;
        let path = format!("/api/v1/namespaces/{name}/finalize");
        self.request(&Method::PUT, &path, Some(("application/json", &body))).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_group_and_scope_and_names_are_escaped() {
        let role = Kind {
            api_version: "rbac.authorization.k8s.io/v1".to_owned(),
            kind: "ClusterRole".to_owned(),
            plural: "clusterroles".to_owned(),
            namespaced: false,
            stored: true,
        };
        assert_eq!(role.group(), "rbac.authorization.k8s.io");
        assert_eq!(role.path(Some("n"), Some("a:b")), "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab");
        let pod = Kind { api_version: "v1".to_owned(), plural: "pods".to_owned(), namespaced: true, ..role };
        assert_eq!(pod.path(Some("n"), None), "/api/v1/namespaces/n/pods");
        assert_eq!(pod.path(None, None), "/api/v1/pods");
    }
}
