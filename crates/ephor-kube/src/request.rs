//! One request: path, query, headers, body.

use std::fmt::Write as _;

use ephor_cluster::query::Filter;
use ephor_cluster::{ClusterError, Resource};
use ephor_expr::Value;
use ephor_expr::scalar::percent;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::client::Body;

pub(crate) const JSON: &str = "application/json";

/// Whether a request can be sent again when its result is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Twice is as good as once.
    Safe,
    /// Only if the server surely did nothing.
    Unsafe,
}

/// A request, which can be sent several times.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Option<String>,
    pub(crate) repeat: Repeat,
}

impl Request {
    pub(crate) fn get(target: String) -> Self {
        Self { method: Method::GET, target, accept: JSON, content_type: JSON, body: None, repeat: Repeat::Safe }
    }

    /// A request that is about to change something.
    pub(crate) fn write(method: Method, target: String, body: &Value) -> Self {
        Self { method, body: Some(body.to_json()), repeat: Repeat::Unsafe, ..Self::get(target) }
    }

    /// The request to send, anew for each attempt.
    pub(crate) fn http(&self) -> Result<http::Request<Body>, ClusterError> {
        let mut request =
            http::Request::builder().method(self.method.clone()).uri(&self.target).header(ACCEPT, self.accept);
        if self.body.is_some() {
            request = request.header(CONTENT_TYPE, self.content_type);
        }
        let body = self.body.as_ref().map_or_else(Body::empty, |text| Body::from(text.clone().into_bytes()));
        request.body(body).map_err(|e| ClusterError::bad_request(format!("cannot request `{}`: {e}", self.target)))
    }
}

/// A path with the parameters of a query.
pub(crate) struct Target {
    text: String,
    separator: char,
}

impl Target {
    /// The collection of a kind.
    pub(crate) fn collection(resource: &Resource, namespace: Option<&str>) -> Result<Self, ClusterError> {
        Ok(Self::path(resource.path(namespace.map(segment).transpose()?.as_deref(), None)))
    }

    /// One object of a kind.
    pub(crate) fn object(resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Self, ClusterError> {
        resource.check_place(namespace, name)?;
        let namespace = namespace.map(segment).transpose()?;
        Ok(Self::path(resource.path(namespace.as_deref(), Some(&segment(name)?))))
    }

    pub(crate) fn path(text: String) -> Self {
        Self { text, separator: '?' }
    }

    /// What is below the object.
    pub(crate) fn below(mut self, subresource: &str) -> Self {
        self.text.push('/');
        self.text.push_str(subresource);
        self
    }

    pub(crate) fn with(mut self, key: &str, value: &str) -> Self {
        self.text.push(self.separator);
        self.separator = '&';
        self.text.push_str(key);
        self.text.push('=');
        let _ = write!(self.text, "{}", percent::encode(value, percent::RESERVED));
        self
    }

    pub(crate) fn with_some(self, key: &str, value: &str) -> Self {
        if value.is_empty() { self } else { self.with(key, value) }
    }

    pub(crate) fn filtered(self, filter: &Filter) -> Self {
        self.with_some("labelSelector", &filter.labels.to_string())
            .with_some("fieldSelector", &filter.fields.to_string())
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A namespace or name as an element of a path. Names come from policies, that is from anybody: none may lead to
/// another place.
fn segment(name: &str) -> Result<String, ClusterError> {
    if matches!(name, "." | "..") {
        return Err(ClusterError::bad_request(format!("invalid resource name {name:?}")));
    }
    Ok(percent::encode(name, percent::RESERVED).to_string())
}

#[cfg(test)]
mod tests {
    use ephor_cluster::{Discovery, LabelSelector};

    use super::*;

    #[test]
    fn names_stay_within_their_element_of_the_path() {
        let discovery = Discovery::kubernetes();
        let config_maps = discovery.find("v1", "ConfigMap").unwrap();
        let path = |namespace, name| Target::object(config_maps, Some(namespace), name).map(Target::into_text);
        assert_eq!(path("a", "b").unwrap(), "/api/v1/namespaces/a/configmaps/b");
        assert_eq!(
            path("a", "../../../secrets/b?x=y#z").unwrap(),
            "/api/v1/namespaces/a/configmaps/..%2F..%2F..%2Fsecrets%2Fb%3Fx%3Dy%23z"
        );
        assert_eq!(path("a/b", "c:d%").unwrap(), "/api/v1/namespaces/a%2Fb/configmaps/c%3Ad%25");
        for (namespace, name) in [("a", ".."), ("..", "a"), ("a", ""), ("", "a"), (".", "a")] {
            assert_eq!(path(namespace, name).unwrap_err().code(), 400, "{namespace} {name}");
        }
    }

    #[test]
    fn parameters_are_encoded() {
        let labels = LabelSelector::parse("a in (b,c),!d").unwrap();
        let filter = Filter { labels, ..Filter::default() };
        let text = Target::path("/x".to_owned()).filtered(&filter).with("limit", "5").into_text();
        assert_eq!(text, "/x?labelSelector=a%20in%20%28b%2Cc%29%2C%21d&limit=5");
    }
}
