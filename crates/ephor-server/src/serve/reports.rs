//! `ephor serve reports`: wires the role.
//!
//! Every replica follows the configuration and answers probes and questions for metrics. Where reports are stored, one
//! of them leads and does the work ([`ephor_scan::serve`]). Where they are in memory, all of them compute and serve
//! reports ([`super::aggregated`]).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ephor_admission::http::plain;
use ephor_cluster::Cluster;
use ephor_reports::Dialect;
use ephor_runtime::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::settings::{ReportStorage, ReportsSettings};
use ephor_runtime::watcher::Watcher;
use ephor_scan::controller::ReportOptions;
use ephor_scan::serve::{Reports, run};

use super::aggregated::{Front, start_unregistering};
use super::background::recorder;
use super::{Process, RoleAnswers, ServeError, announce};

/// How often the stop signal is looked at while the settings are not known.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Keeps reports of the cluster until `stop`.
pub fn reports(
    cluster: &Arc<dyn Cluster>,
    settings: &ReportsSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    announce(&settings.common, "reports");
    let process = Process::start(cluster, &settings.common, None, stop)?;
    reports_in(&process, settings, stop)
}

/// The same, in a process that other roles may share.
pub(super) fn reports_in(
    process: &Process,
    settings: &ReportsSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let common = &settings.common;
    let (cluster, metrics) = (Arc::clone(&process.cluster), process.metrics.clone());
    let config = ConfigStore::new(&common.namespace, &common.config_name);
    let config_watcher = config.follow(&cluster, stop);
    let RoleAnswers { facts, mut watchers, .. } = RoleAnswers::follow(&cluster, common, &config, stop);
    watchers.push(config_watcher.clone());
    let front = match &settings.storage {
        ReportStorage::Stored => None,
        ReportStorage::Aggregated(aggregated) => Some(Front::follow(&cluster, settings, aggregated, stop)),
    };
    let readiness = front.as_ref().map(Front::readiness);
    if let Some(port) = settings.health_port {
        let ready =
            Arc::new(move || watchers.iter().all(Watcher::synced) && readiness.as_ref().is_none_or(|ready| ready()));
        plain::listen("probes", (Ipv4Addr::UNSPECIFIED, port).into(), plain::probes(ready), stop)
            .map_err(|error| ServeError::Listen { port, error })?;
    }
    // Which objects are filtered is in the settings.
    while !config_watcher.wait_synced(STOP_POLL_INTERVAL) {
        if stop.is_cancelled() {
            return Ok(());
        }
    }
    let events = recorder(&cluster, common, &metrics, &config, stop);
    let role = Reports {
        events,
        metrics: metrics.clone(),
        cluster,
        answers: Arc::new(facts),
        namespace: common.namespace.clone(),
        identity: common.identity.clone(),
        leader_retry: common.leader_retry,
        workers: settings.workers,
        scan_interval: settings.scan_interval,
        config,
        skip_filters: settings.skip_resource_filters,
        exceptions: common.exceptions.clone(),
        options: ReportOptions {
            dialect: dialect(settings),
            reported: common.reporting.clone(),
            allowed: Some(settings.allowed_results.clone()).filter(|allowed| !allowed.is_empty()),
            ..ReportOptions::default()
        },
    };
    match front {
        None => {
            let (cluster, namespace) = (Arc::clone(&role.cluster), common.namespace.clone());
            run(&role, stop, |term| {
                start_unregistering(&cluster, &namespace, term, &[Dialect::WgPolicy, Dialect::OpenReports]);
            });
        }
        Some(front) => front.serve(role, stop)?,
    }
    stop.failure().map_or(Ok(()), |reason| Err(ServeError::Failed(reason)))
}

/// The API of reports.
pub(super) fn dialect(settings: &ReportsSettings) -> Dialect {
    if settings.open_reports { Dialect::OpenReports } else { Dialect::WgPolicy }
}
