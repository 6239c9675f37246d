//! `ephor serve background`: wires the role.
//!
//! Every replica follows the configuration and answers probes and questions for metrics; one of them leads and does
//! the work ([`background::serve`]).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ephor_admission::http::plain;
use ephor_background::health::Readiness;
use ephor_background::results::{WorkResults, queue_settings};
use ephor_background::serve::{Background, run};
use ephor_cluster::Cluster;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::events::{EventSettings, Recorder};
use ephor_runtime::metrics::Metrics;
use ephor_runtime::results::ResultQueue;
use ephor_runtime::settings::{BackgroundSettings, CommonSettings};
use ephor_runtime::watcher::Watcher;

use super::{Process, RoleAnswers, ServeError, announce};

/// How often the stop signal is looked at while the settings are not known.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Results are not written while there are that many `EphemeralReport`s.
const MAX_EPHEMERAL: usize = 10_000;

/// Takes part in the work until `stop`.
pub fn background(
    cluster: &Arc<dyn Cluster>,
    settings: &BackgroundSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    announce(&settings.common, "background");
    let process = Process::start(cluster, &settings.common, None, stop)?;
    background_in(&process, settings, stop)
}

/// The same, in a process that other roles may share.
pub(super) fn background_in(
    process: &Process,
    settings: &BackgroundSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let common = &settings.common;
    let (cluster, metrics) = (Arc::clone(&process.cluster), process.metrics.clone());
    let config = ConfigStore::new(&common.namespace, &common.config_name);
    let config_watcher = config.follow(&cluster, stop);
    let RoleAnswers { facts, mut watchers, .. } = RoleAnswers::follow(&cluster, common, &config, stop);
    watchers.push(config_watcher.clone());
    let readiness = Readiness::default();
    if let Some(port) = settings.health_port {
        let readiness = readiness.clone();
        let ready = Arc::new(move || watchers.iter().all(Watcher::synced) && readiness.is_ready());
        plain::listen("probes", (Ipv4Addr::UNSPECIFIED, port).into(), plain::probes(ready), stop)
            .map_err(|error| ServeError::Listen { port, error })?;
    }
    let queue = ResultQueue::start(&cluster, queue_settings(MAX_EPHEMERAL, Some(common.namespace.clone())), stop);
    let role = Background {
        listener: None,
        results: Some(WorkResults::new(queue, common.reporting.clone())),
        events: recorder(&cluster, common, &metrics, &config, stop),
        config,
        cluster,
        answers: Arc::new(facts),
        namespace: common.namespace.clone(),
        identity: common.identity.clone(),
        leader_retry: common.leader_retry,
        workers: settings.workers,
        resync: settings.scan_interval,
        exceptions: common.exceptions.clone(),
        metrics,
        readiness,
    };
    // Nothing is made for triggers that the settings hide.
    while !config_watcher.wait_synced(STOP_POLL_INTERVAL) {
        if stop.is_cancelled() {
            return Ok(());
        }
    }
    run(&role, stop);
    stop.failure().map_or(Ok(()), |reason| Err(ServeError::Failed(reason)))
}

/// The writer of Events, as flags and `ConfigMap` want it.
pub(super) fn recorder(
    cluster: &Arc<dyn Cluster>,
    common: &CommonSettings,
    metrics: &Metrics,
    config: &ConfigStore,
    stop: &CancellationToken,
) -> Recorder {
    let recorder = Recorder::start(cluster, EventSettings::of(common), metrics.events_dropped(), stop);
    recorder.follow(config);
    recorder
}
