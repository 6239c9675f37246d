//! `webhookConfiguration.matchConditions`: the API server is asked whether it would take them.

use ephor_cluster::{Cluster, ErrorKind, WriteOptions};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::policy::Policy;
use ephor_expr::Value;
use ephor_expr::value::Path;

/// Tries a webhook with the policy's conditions, without storing it. A server that cannot be asked has no objection;
/// it has the last word when the webhook is registered.
pub(super) fn check(policy: &Policy, cluster: &dyn Cluster, found: &mut Vec<Diagnostic>) {
    let conditions = policy.spec.webhook_configuration.as_ref().and_then(|webhook| webhook.match_conditions.as_ref());
    let Some(conditions) = conditions.filter(|conditions| !conditions.is_empty()) else { return };
    let webhook = Value::from([
        ("admissionReviewVersions", Value::from(vec!["v1"])),
        ("clientConfig", Value::from([("url", Value::from("https://127.0.0.1/none"))])),
        ("matchConditions", Value::array(conditions.clone())),
        ("name", Value::from("check.kyverno.svc")),
        ("sideEffects", Value::from("None")),
    ]);
    let configuration = Value::from([
        ("apiVersion", Value::from("admissionregistration.k8s.io/v1")),
        ("kind", Value::from("ValidatingWebhookConfiguration")),
        ("metadata", Value::from([("generateName", Value::from("kyverno-check-"))])),
        ("webhooks", Value::array(vec![webhook])),
    ]);
    let Ok(kind) = cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration") else { return };
    match cluster.create(&kind, configuration, &WriteOptions::dry_run()) {
        Err(error) if error.kind() == ErrorKind::Invalid => {
            let text = error.to_string();
            let message = text.split_once("webhooks[0].").map_or(text.as_str(), |(_, objection)| objection);
            let at = Path::root().keys(&["spec", "webhookConfiguration", "matchConditions"]);
            found.push(Diagnostic::error("match-condition", at, message));
        }
        Err(error) => tracing::debug!(%error, "match conditions were not checked"),
        Ok(_) => {}
    }
}
