//! The path tokens that registered webhooks carry.
//!
//! A replica accepts the token that API servers were given, also if it started after the serving key changed and before
//! the leader registered the new path. It reads them from the stored webhook configurations, which only cluster
//! administrators can write.

use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_expr::Value;
use ephor_runtime::CancellationToken;
use ephor_runtime::decision::proof::{PathToken, PathTokens};
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};

use super::names::Names;
use super::plan::ConfigurationKind;
use super::settings::Serving;

/// Watches the webhook configurations for resources, and accepts their tokens until `stop`.
pub fn follow_registered(
    cluster: &Arc<dyn Cluster>,
    serving: Serving,
    tokens: &PathTokens,
    stop: &CancellationToken,
) -> [Watcher; 2] {
    let names = Names::of(serving);
    [(ConfigurationKind::Mutating, "resource-mutating"), (ConfigurationKind::Validating, "resource-validating")].map(
        |(kind, what)| {
            let watched =
                WatchTarget::all("admissionregistration.k8s.io/v1", kind.as_str()).named(&names.configuration(what));
            let tokens = tokens.clone();
            Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| match change {
                StoreEvent::Reset(objects) => objects.iter().for_each(|object| accept(object, &tokens)),
                StoreEvent::Apply(object) => accept(&object, &tokens),
                StoreEvent::Delete(_) => {}
            })
        },
    )
}

fn accept(configuration: &Value, tokens: &PathTokens) {
    for webhook in configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten() {
        let Some(client) = webhook.get("clientConfig") else { continue };
        let path = client.str_at(&["service", "path"]).or_else(|| client.str_at(&["url"]));
        if let Some(token) = path.and_then(PathToken::of_path) {
            tokens.accept(&token);
        }
    }
}
