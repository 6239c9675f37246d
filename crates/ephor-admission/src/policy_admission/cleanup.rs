//! `CleanupPolicy` and `ClusterCleanupPolicy`.

use ephor_cluster::Discovery;
use ephor_engine::check::check_cleanup;
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::matching::KindSelector;
use ephor_engine::policy::CleanupPolicy;
use ephor_expr::Value;
use ephor_expr::value::{Path, decode};
use ephor_runtime::decision::Answer;
use ephor_runtime::kinds::{did_you_mean, meant};

use super::kinds::{resources, selections};
use super::{PolicyAdmission, accounts, needs, text};

/// Refuses what cannot run: faults of the document, kinds that are not served, and what the account of the cleanup role
/// may not do.
pub(super) fn check(host: &PolicyAdmission, document: &Value) -> Answer {
    let mut findings = check_cleanup(document);
    if let Ok(policy) = decode::<CleanupPolicy>(document)
        && !findings.iter().any(Diagnostic::is_error)
    {
        match host.cluster.discovery() {
            Ok(discovery) => {
                unknown_kinds(&policy, &discovery, &mut findings);
                if let Some(account) = &host.accounts.cleanup {
                    let needs = needs::of_cleanup(&policy, account, &discovery);
                    accounts::check(&*host.cluster, &needs, &mut findings);
                }
            }
            Err(error) => {
                let message = format!("kinds and permissions were not checked: {error}");
                findings.push(Diagnostic::warning("no-discovery", Path::root(), message));
            }
        }
    }
    text::answer(&findings, document)
}

/// A policy that deletes names its kinds: what is no kind is a mistake, and a pattern could mean everything.
fn unknown_kinds(policy: &CleanupPolicy, discovery: &Discovery, found: &mut Vec<Diagnostic>) {
    for (at, selection) in selections(&policy.spec.matches, &Path::root().keys(&["spec", "match"])) {
        for (i, kind) in selection.kinds.iter().flatten().enumerate() {
            let selector = KindSelector::parse(kind);
            let at = at.key("kinds").index(i);
            if !selector.subresource.as_str().is_empty() {
                let message = format!("cleanup controller has no permission to delete kind {kind}");
                found.push(Diagnostic::error("permissions", at, message));
            } else if selector.exact_kind().is_none() || resources(&selector, discovery).next().is_none() {
                let message = format!("failed to get GVR for kind {kind}");
                let help = meant(kind, discovery).map(|near| did_you_mean(&near));
                found.push(Diagnostic { help, ..Diagnostic::error("unknown-kind", at, message) });
            }
        }
    }
}
