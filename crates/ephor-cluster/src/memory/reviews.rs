//! Reviews and other kinds that are posted and answered.
//!
//! There are no permissions in memory: every user may do everything.

use ephor_expr::Value;

use crate::admission::User;
use crate::error::ClusterError;
use crate::resource::Resource;

/// The answer to a posted object.
pub(super) fn answer(resource: &Resource, mut review: Value, user: &User) -> Result<Value, ClusterError> {
    let any = || Value::from(vec!["*"]);
    let yes = Value::from(true);
    let status = match resource.kind.as_str() {
        "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => {
            Value::from([("allowed", yes)])
        }
        "SelfSubjectRulesReview" => Value::from([
            ("incomplete", Value::from(false)),
            ("nonResourceRules", Value::array(vec![Value::from([("nonResourceURLs", any()), ("verbs", any())])])),
            (
                "resourceRules",
                Value::array(vec![Value::from([("apiGroups", any()), ("resources", any()), ("verbs", any())])]),
            ),
        ]),
        "TokenReview" => Value::from([("authenticated", yes), ("user", user.info())]),
        "SelfSubjectReview" => Value::from([("userInfo", user.info())]),
        _ => return Err(ClusterError::method_not_supported(resource, "create")),
    };
    if let Some(members) = review.as_object_mut() {
        members.insert("status", status);
    }
    Ok(review)
}
