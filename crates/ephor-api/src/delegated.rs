//! Delegated authorization: the API server decides whether a user may make a request (`SubjectAccessReview`).
//!
//! Decisions are kept for a few seconds, so that a client that reads many pages costs one question. If the API server
//! does not answer, the request is refused.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use ephor_cluster::admission::User;
use ephor_cluster::{Cluster, ClusterError};
use ephor_expr::{Map, Value};
use ephor_runtime::access::is_allowed;
use parking_lot::Mutex;

use crate::front_proxy::FrontProxy;
use crate::reports::{Access, Attributes};

/// How long a decision is used, as API servers do for denials.
const DECISION_LIFETIME: Duration = Duration::from_secs(10);
/// How many decisions are kept.
const DECISIONS: usize = 1024;
/// The longest question whose decision is kept, in bytes: users choose names.
const LONGEST_QUESTION: usize = 4096;

/// Authenticates by the front proxy and authorizes by the API server.
pub struct DelegatedAccess {
    cluster: Arc<dyn Cluster>,
    front_proxy: FrontProxy,
    decisions: Mutex<Decisions>,
}

impl fmt::Debug for DelegatedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DelegatedAccess({:?})", self.front_proxy)
    }
}

/// Recent decisions, by the question.
#[derive(Debug, Default)]
struct Decisions(HashMap<String, (bool, Instant)>);

impl Decisions {
    fn recent(&self, question: &str, now: Instant) -> Option<bool> {
        let (allowed, at) = self.0.get(question)?;
        (now.saturating_duration_since(*at) < DECISION_LIFETIME).then_some(*allowed)
    }

    fn keep(&mut self, question: String, allowed: bool, now: Instant) {
        if question.len() > LONGEST_QUESTION {
            return;
        }
        if self.0.len() >= DECISIONS {
            self.0.retain(|_, (_, at)| now.saturating_duration_since(*at) < DECISION_LIFETIME);
        }
        // All are recent: beginning anew costs one question each.
        if self.0.len() >= DECISIONS {
            self.0.clear();
        }
        self.0.insert(question, (allowed, now));
    }
}

impl DelegatedAccess {
    /// Decides about requests that `front_proxy` authenticates, by asking `cluster`.
    pub fn new(cluster: Arc<dyn Cluster>, front_proxy: FrontProxy) -> Self {
        Self { cluster, front_proxy, decisions: Mutex::default() }
    }

    fn authorize(&self, user: &User, attributes: &Attributes, now: Instant) -> Result<(), ClusterError> {
        let question = question(user, attributes);
        let key = question.to_json();
        let recent = self.decisions.lock().recent(&key, now);
        let allowed = if let Some(allowed) = recent {
            allowed
        } else {
            let allowed = is_allowed(&*self.cluster, question).map_err(|error| {
                tracing::warn!(%error, "the API server does not say whether a request is allowed");
                ClusterError::denied(503, "ServiceUnavailable", "cannot find out whether the request is allowed")
            })?;
            self.decisions.lock().keep(key, allowed, now);
            allowed
        };
        if allowed { Ok(()) } else { Err(forbidden(user, attributes)) }
    }
}

impl Access for DelegatedAccess {
    fn check(&self, request: &Parts, attributes: &Attributes) -> Result<(), ClusterError> {
        let user = self.front_proxy.authenticate(request)?;
        self.authorize(&user, attributes, Instant::now())
    }
}

/// The `SubjectAccessReview`.
fn question(user: &User, attributes: &Attributes) -> Value {
    let mut spec = Map::new();
    let extra: Map = user.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.clone()))).collect();
    spec.insert("extra", extra);
    spec.insert("groups", user.groups.clone());
    spec.insert("uid", user.uid.clone());
    spec.insert("user", user.name.clone());
    match attributes {
        Attributes::Resource { verb, group, version, resource, namespace, name } => {
            let mut asked = Map::new();
            for (key, text) in [
                ("group", group.as_str()),
                ("name", name),
                ("namespace", namespace),
                ("resource", resource),
                ("verb", verb),
                ("version", version),
            ] {
                if !text.is_empty() {
                    asked.insert(key, text);
                }
            }
            spec.insert("resourceAttributes", asked);
        }
        Attributes::Path { verb, path } => {
            let asked = Value::from([("path", Value::from(path.clone())), ("verb", Value::from(*verb))]);
            spec.insert("nonResourceAttributes", asked);
        }
    }
    Value::from([
        ("apiVersion", Value::from("authorization.k8s.io/v1")),
        ("kind", Value::from("SubjectAccessReview")),
        ("spec", Value::object(spec)),
    ])
}

fn forbidden(user: &User, attributes: &Attributes) -> ClusterError {
    let what = match attributes {
        Attributes::Resource { verb, group, resource, namespace, .. } => {
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace \"{namespace}\"")
            };
            format!("cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}")
        }
        Attributes::Path { verb, path } => format!("cannot {verb} path \"{path}\""),
    };
    ClusterError::denied(403, "Forbidden", format!("User \"{}\" {what}", user.name))
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;
    use ephor_cluster::memory::Options;

    use super::*;

    fn list(namespace: &str) -> Attributes {
        Attributes::Resource {
            verb: "list",
            group: "wgpolicyk8s.io".into(),
            version: "v1alpha2".into(),
            resource: "policyreports".into(),
            namespace: namespace.into(),
            name: "".into(),
        }
    }

    #[test]
    fn the_question_holds_all_of_the_user_and_of_the_request() {
        let mut user = User::new("bob", ["dev"]);
        user.extra.insert("scope".into(), vec!["read".into()]);
        assert_eq!(
            question(&user, &list("paint")).get("spec").unwrap().to_json(),
            r#"{"extra":{"scope":["read"]},"groups":["dev"],"resourceAttributes":{"group":"wgpolicyk8s.io","namespace":"paint","resource":"policyreports","verb":"list","version":"v1alpha2"},"uid":"","user":"bob"}"#
        );
        let path = Attributes::Path { verb: "get", path: "/apis".into() };
        assert!(question(&user, &path).to_json().contains(r#""nonResourceAttributes":{"path":"/apis","verb":"get"}"#));
    }

    #[test]
    fn the_decision_of_the_api_server_holds_for_a_few_seconds() {
        let now = Instant::now();
        let mut decisions = Decisions::default();
        assert_eq!(decisions.recent("a", now), None);
        decisions.keep("a".to_owned(), false, now);
        decisions.keep("b".to_owned(), true, now);
        assert_eq!((decisions.recent("a", now), decisions.recent("b", now)), (Some(false), Some(true)));
        assert_eq!(decisions.recent("b", now + DECISION_LIFETIME), None);
    }

    #[test]
    fn decisions_are_bounded_in_number_and_length() {
        let now = Instant::now();
        let mut decisions = Decisions::default();
        for number in 0..3 * DECISIONS {
            decisions.keep(number.to_string(), true, now);
            assert!(decisions.0.len() <= DECISIONS);
        }
        decisions.keep("x".repeat(LONGEST_QUESTION + 1), true, now);
        assert_eq!(decisions.recent(&"x".repeat(LONGEST_QUESTION + 1), now), None);
    }

    #[test]
    fn a_request_without_the_front_proxy_asks_nothing() {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::new(Options::server()));
        let access = DelegatedAccess::new(cluster, FrontProxy::default());
        let request = axum::http::Request::builder().header("x-remote-user", "admin").body(()).unwrap();
        let refused = access.check(&request.into_parts().0, &list("")).unwrap_err();
        assert_eq!(refused.code(), 401);
        assert!(access.decisions.lock().0.is_empty());
    }

    #[test]
    fn an_api_server_that_does_not_answer_allows_nothing_and_nothing_is_kept() {
        // Without the kinds of an API server there is nothing to ask.
        let cluster: Arc<dyn Cluster> = Arc::new(ephor_reports::served::ServedReports::new(
            &[],
            ephor_reports::served::Limits::default(),
            jiff::Timestamp::UNIX_EPOCH,
        ));
        let access = DelegatedAccess::new(cluster, FrontProxy::default());
        let refused = access.authorize(&User::new("bob", ["dev"]), &list(""), Instant::now()).unwrap_err();
        assert_eq!(refused.code(), 503);
        assert!(access.decisions.lock().0.is_empty());
    }
}
