//! `ephor serve background`.

use std::sync::Arc;

use ephor_server::background::serve::{Background, run as serve};
use ephor_server::config::ConfigStore;
use ephor_server::events::{Action, EventSettings, Reason, Recorder, SuccessEvents};
use ephor_server::facts::{ClusterFacts, NamespaceLabels};
use ephor_server::network::{Limits, Network};
use ephor_server::settings::{BackgroundSettings, environment};

use super::super::{CommandError, CommandResult};
use super::start;
use crate::exit::Exit;

/// Runs the role until it is told to stop.
pub(super) fn run(flags: &[String]) -> CommandResult {
    let settings =
        BackgroundSettings::parse(flags, &environment()).map_err(|error| CommandError::Other(error.into()))?;
    let common = &settings.common;
    start::log(&common.log);
    for (flag, why) in &common.without_effect {
        tracing::warn!(flag, why, "the flag has no effect");
    }
    let stop = start::stop_on_signals()?;
    let cluster = start::connect(common, "ephor-background-controller")?;
    let events = EventSettings {
        max_queued: common.max_queued_events,
        omitted: common.omit_events.iter().filter_map(|word| Reason::parse(word)).collect(),
        host: common.identity.clone(),
    };
    let events = Recorder::start(&cluster, events, prometheus_client::metrics::counter::Counter::default(), &stop);
    let config = ConfigStore::new(&common.namespace, &common.config_name);
    config.subscribe({
        let events = events.clone();
        move |config| {
            let actions: Vec<Action> = config.success_event_actions.iter().filter_map(|a| Action::parse(a)).collect();
            events.set_success_events(match (config.success_events, actions.is_empty()) {
                (false, _) => SuccessEvents::None,
                (true, true) => SuccessEvents::All,
                (true, false) => SuccessEvents::With(actions),
            });
        }
    });
    config.follow(&cluster, &stop);
    let (namespaces, _) = NamespaceLabels::follow(&cluster, &stop);
    let limits = Limits { answer: common.max_api_response, timeout: common.api_call_timeout };
    let answers =
        ClusterFacts::new(Arc::clone(&cluster)).with_namespaces(namespaces).with(Arc::new(Network::of_cluster(limits)));
    let background = Background {
        cluster,
        answers: Arc::new(answers),
        namespace: common.namespace.clone(),
        identity: common.identity.clone(),
        leader_retry: common.leader_retry,
        workers: settings.workers,
        resync: settings.scan_interval,
        exceptions: common.exceptions.clone(),
        events,
    };
    serve(&background, &stop);
    Ok(Exit::Clean)
}
