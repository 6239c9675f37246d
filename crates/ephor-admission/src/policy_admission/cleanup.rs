//! `CleanupPolicy` and `ClusterCleanupPolicy`.

use ephor_engine::check::check_cleanup;
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::policy::CleanupPolicy;
use ephor_expr::Value;
use ephor_expr::value::{Path, decode};
use ephor_runtime::decision::Answer;

use super::{PolicyAdmission, accounts, needs, text};

/// Refuses what cannot run, and what the account of the cleanup role may not do.
pub(super) fn check(host: &PolicyAdmission, document: &Value) -> Answer {
    let mut findings = check_cleanup(document);
    if let (Some(account), Ok(policy)) = (&host.accounts.cleanup, decode::<CleanupPolicy>(document))
        && !findings.iter().any(Diagnostic::is_error)
    {
        match host.cluster.discovery() {
            Ok(discovery) => {
                let needs = needs::of_cleanup(&policy, account, &discovery);
                accounts::check(&*host.cluster, &needs, &mut findings);
            }
            Err(error) => {
                let message = format!("permissions were not checked: {error}");
                findings.push(Diagnostic::warning("no-discovery", Path::root(), message));
            }
        }
    }
    text::answer(&findings, document)
}
