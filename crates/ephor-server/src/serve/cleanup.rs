//! `ephor serve cleanup`: wires the role.
//!
//! Every replica follows the configuration and answers probes and questions for metrics; one of them leads and deletes
//! ([`ephor_cleanup::serve`]).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ephor_admission::http::plain;
use ephor_cleanup::CleanupOptions;
use ephor_cleanup::serve::{Cleanup, run};
use ephor_cluster::Cluster;
use ephor_runtime::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::settings::CleanupSettings;
use ephor_runtime::watcher::Watcher;

use super::background::recorder;
use super::{Process, RoleAnswers, ServeError, announce};

/// How often the stop signal is looked at while the settings are not known.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Cleans up until `stop`.
pub fn cleanup(
    cluster: &Arc<dyn Cluster>,
    settings: &CleanupSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    announce(&settings.common, "cleanup");
    let process = Process::start(cluster, &settings.common, None, stop)?;
    cleanup_in(&process, settings, stop)
}

/// The same, in a process that other roles may share.
pub(super) fn cleanup_in(
    process: &Process,
    settings: &CleanupSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let common = &settings.common;
    let (cluster, metrics) = (Arc::clone(&process.cluster), process.metrics.clone());
    let config = ConfigStore::new(&common.namespace, &common.config_name);
    let config_watcher = config.follow(&cluster, stop);
    let RoleAnswers { facts, mut watchers, .. } = RoleAnswers::follow(&cluster, common, &config, stop);
    watchers.push(config_watcher.clone());
    if let Some(port) = settings.health_port {
        let ready = Arc::new(move || watchers.iter().all(Watcher::synced));
        plain::listen("probes", (Ipv4Addr::UNSPECIFIED, port).into(), plain::probes(ready), stop)
            .map_err(|error| ServeError::Listen { port, error })?;
    }
    // What the settings hide is not deleted.
    while !config_watcher.wait_synced(STOP_POLL_INTERVAL) {
        if stop.is_cancelled() {
            return Ok(());
        }
    }
    let role = Cleanup {
        events: recorder(&cluster, common, &metrics, &config, stop),
        metrics,
        cluster,
        answers: Arc::new(facts),
        namespace: common.namespace.clone(),
        identity: common.identity.clone(),
        leader_retry: common.leader_retry,
        ttl_interval: settings.ttl_interval,
        config,
        exceptions: common.exceptions.clone(),
        options: CleanupOptions { limit: settings.limit, protect_managed: common.protect_managed_resources },
    };
    run(&role, stop);
    stop.failure().map_or(Ok(()), |reason| Err(ServeError::Failed(reason)))
}
