//! `GlobalContextEntry`.

use ephor_cluster::Cluster;
use ephor_engine::check::check_global_context;
use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_runtime::decision::Answer;

use super::text;

/// Refuses what cannot be loaded; a resource that is not defined may come later.
pub(super) fn check(cluster: &dyn Cluster, document: &Value) -> Answer {
    let mut findings = check_global_context(document);
    let at = Path::root().keys(&["spec", "kubernetesResource"]);
    if let (Some(resource), Ok(discovery)) = (at.lookup(document), cluster.discovery()) {
        let text = |key| resource.str_at(&[key]).unwrap_or_default();
        let (group, version, plural) = (text("group"), text("version"), text("resource"));
        if !plural.is_empty() && discovery.find_plural(group, version, plural).is_none() {
            let message = format!("`{plural}` of `{group}` `{version}` is not defined in the cluster (yet)");
            findings.push(Diagnostic::warning("unknown-kind", at.key("resource"), message));
        }
    }
    text::answer(&findings, document)
}
