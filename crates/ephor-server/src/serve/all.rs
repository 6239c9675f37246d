//! `ephor serve all`: every role in one process, for small clusters and development.
//!
//! In: the settings of each role. The roles share watches, the client, metrics and one account, and each has its own
//! lease. So one process and its memory replace four. It is also one account with the rights of all roles: a cluster in
//! which that matters runs them apart.

use std::sync::Arc;
use std::thread::JoinHandle;

use ephor_cluster::Cluster;
use ephor_runtime::settings::AllSettings;
use ephor_runtime::shared_watches::SharedWatches;
use ephor_runtime::{CancellationToken, threads};

use super::background::background_in;
use super::cleanup::cleanup_in;
use super::reports::reports_in;
use super::{Process, ServeError, admission_in, announce, own_address};

/// Runs the roles until `stop`. `writes_once` is the same cluster, through a client that sends each write once: the
/// controllers look before each attempt whether they may still write.
pub fn all(
    cluster: &Arc<dyn Cluster>,
    writes_once: &Arc<dyn Cluster>,
    settings: &AllSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let AllSettings { admission, background, reports, cleanup } = settings.clone();
    announce(&admission.common, "all");
    // What requests need goes on until the last one is answered.
    let serving = stop.detached_token();
    let watches = SharedWatches::default();
    let process =
        Process::start(&watches.over(Arc::clone(cluster)), &admission.common, own_address(&admission), &serving)?;
    let controllers = Arc::new(Process::counting(&watches.over(Arc::clone(writes_once)), process.metrics.clone()));
    let roles: Vec<JoinHandle<()>> = [
        background
            .and_then(|settings| start("background", &controllers, stop, move |p, s| background_in(p, &settings, s))),
        reports.and_then(|settings| start("reports", &controllers, stop, move |p, s| reports_in(p, &settings, s))),
        cleanup.and_then(|settings| start("cleanup", &controllers, stop, move |p, s| cleanup_in(p, &settings, s))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let served = admission_in(&process, &admission, stop, &serving);
    for role in roles {
        let _ = role.join();
    }
    served?;
    stop.failure().map_or(Ok(()), |reason| Err(ServeError::Failed(reason)))
}

/// Runs a role in a thread of its own; if it fails, all roles end.
pub(super) fn start(
    role: &'static str,
    process: &Arc<Process>,
    stop: &CancellationToken,
    run: impl FnOnce(&Process, &CancellationToken) -> Result<(), ServeError> + Send + 'static,
) -> Option<JoinHandle<()>> {
    let (process, owned) = (Arc::clone(process), stop.clone());
    threads::spawn(role, threads::LARGE, stop, move || {
        if let Err(error) = run(&process, &owned) {
            owned.fail(format!("the {role} role ended: {error}"));
        }
    })
}
