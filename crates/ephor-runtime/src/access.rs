//! Asks the API server whether a user may do something.

use ephor_cluster::{Cluster, ClusterError, WriteOptions};
use ephor_expr::{Map, Value};

/// What the API server answers to a `SubjectAccessReview`. Asking stores nothing.
pub fn is_allowed(cluster: &dyn Cluster, question: Value) -> Result<bool, ClusterError> {
    let kind = cluster.resolve("authorization.k8s.io/v1", "SubjectAccessReview")?;
    let answer = cluster.create(&kind, question, &WriteOptions::default())?;
    Ok(answer.at(&["status", "allowed"]).and_then(Value::as_bool).unwrap_or(false))
}

/// The `SubjectAccessReview` that asks whether an account may do what the attributes say. A service account is a member
/// of the groups that the API server gives it.
pub fn question(account: &str, attributes: Map) -> Value {
    let namespace = account.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split(':').next());
    let mut groups = vec!["system:authenticated".to_owned()];
    if let Some(namespace) = namespace {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    Value::from([
        ("apiVersion", Value::from("authorization.k8s.io/v1")),
        ("kind", Value::from("SubjectAccessReview")),
        (
            "spec",
            Value::from([
                ("groups", Value::from(groups)),
                ("resourceAttributes", Value::object(attributes)),
                ("user", Value::from(account)),
            ]),
        ),
    ])
}
