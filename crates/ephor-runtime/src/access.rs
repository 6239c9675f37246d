//! Asks the API server whether a user may do something.

use ephor_cluster::{Cluster, ClusterError, WriteOptions};
use ephor_expr::Value;

/// What the API server answers to a `SubjectAccessReview`. Asking stores nothing.
pub fn is_allowed(cluster: &dyn Cluster, question: Value) -> Result<bool, ClusterError> {
    let kind = cluster.resolve("authorization.k8s.io/v1", "SubjectAccessReview")?;
    let answer = cluster.create(&kind, question, &WriteOptions::default())?;
    Ok(answer.at(&["status", "allowed"]).and_then(Value::as_bool).unwrap_or(false))
}
