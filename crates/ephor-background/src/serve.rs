//! Runs the controller: watchers that feed it, workers that step it, and the lease.
//!
//! Only the leader has a controller. Its memory begins with its term and ends with it, so that nothing an earlier
//! leader believed is left; what happened in between is found again by looking.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, LabelSelector};
use ephor_expr::Str;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::events::Recorder;
use ephor_runtime::facts::Answers;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::lease::{LeaseOptions, Term};
use ephor_runtime::metrics::Metrics;
use ephor_runtime::notify::WorkNotify;
use ephor_runtime::policies::{ExceptionScope, PolicyStore};
use ephor_runtime::queue::Moment;
use ephor_runtime::threads;
use ephor_runtime::update_request::{API_VERSION, KIND};
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};

use super::controller::{Controller, Step};
use super::health::Readiness;
use super::notifications::observer;
use super::results::WorkResults;
use super::state::Watch;
use super::writer::{Env, Observer};
use crate::plan::claim::{MANAGED_BY, POLICY_NAME};

/// What the role needs.
#[derive(Clone)]
pub struct Background {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Answers to the engine's questions.
    pub answers: Arc<dyn Answers>,
    /// Where `UpdateRequest`s are, and the lease.
    pub namespace: Str,
    /// Who this replica is.
    pub identity: Str,
    /// The pause between attempts to become the leader.
    pub leader_retry: Duration,
    /// How many threads work.
    pub workers: usize,
    /// How often everything is looked at again, whether or not something happened.
    pub resync: Duration,
    /// The settings; which triggers no policy sees is in them.
    pub config: ConfigStore,
    /// Which exceptions count.
    pub exceptions: ExceptionScope,
    /// Who writes events.
    pub events: Recorder,
    /// What is counted.
    pub metrics: Metrics,
    /// The readiness of this replica, shared with the probes.
    pub readiness: Readiness,
    /// Who else is told what is done, if anybody.
    pub listener: Option<Observer>,
    /// Where results for reports go, if there are reports.
    pub results: Option<WorkResults>,
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Background({}, {} workers)", self.identity, self.workers)
    }
}

/// The name of the lease.
pub const LEASE: &str = "kyverno-background-controller";
/// How often the kinds that must be followed are looked at.
const WATCH_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a worker sleeps at most before it looks at its stop signal.
const IDLE_TIMEOUT: Duration = Duration::from_millis(250);

/// Takes part in the election until `stop`, and does the work while leading.
pub fn run(background: &Background, stop: &CancellationToken) {
    let lease = LeaseOptions {
        namespace: background.namespace.clone(),
        name: LEASE.into(),
        identity: background.identity.clone(),
        retry: background.leader_retry,
    };
    background.metrics.set_background_health(&background.namespace, None);
    ephor_runtime::lease::run(&background.cluster, &lease, stop, |term| {
        let (background, term) = (background.clone(), term.clone());
        threads::spawn("background", threads::LARGE, &term.token().clone(), move || lead(&background, &term));
    });
}

/// Does the work for one term; returns at its end.
pub fn lead(background: &Background, term: &Term) {
    let stop = term.token().clone();
    background.readiness.term_started(&stop);
    let store = PolicyStore::new(background.exceptions.clone());
    let fence = term.clone();
    let controller = Controller::new(Env::new(
        Arc::clone(&background.cluster),
        Arc::new(move || fence.fence()),
        Arc::clone(&background.answers),
        background.namespace.clone(),
        observer(
            background.events.clone(),
            background.metrics.clone(),
            store.clone(),
            background.listener.clone(),
            background.results.clone(),
        ),
        background.metrics.clone(),
    ));
    background.metrics.follow_policies(&store);
    store.subscribe({
        let answers = Arc::clone(&background.answers);
        move |policies| answers.prepare(policies)
    });
    let work = WorkNotify::default();
    let watchers = store.follow(&background.cluster, &stop);
    // Half of the policies would look as if the other half were gone.
    while !watchers.wait_synced(IDLE_TIMEOUT) {
        if stop.is_cancelled() {
            return;
        }
    }
    while !stop.is_cancelled() {
        match background.cluster.discovery() {
            Ok(discovery) => {
                controller.observe_discovery(discovery, now());
                break;
            }
            Err(error) => {
                tracing::warn!(%error, "discovery failed");
                stop.wait(Duration::from_secs(1));
            }
        }
    }
    controller.observe_filters(&background.config.get().resource_filters, now());
    // First of all, so that no change comes in between.
    store.subscribe({
        let (controller, work) = (controller.clone(), work.clone());
        move |snapshot| {
            controller.observe_policies(Arc::clone(snapshot), now());
            work.notify();
        }
    });
    controller.observe_policies(store.snapshot(), now());
    controller.sweep(now());
    let requests = WatchTarget::all(API_VERSION, KIND).in_namespace(&background.namespace);
    Watcher::spawn(Arc::clone(&background.cluster), requests, stop.clone(), {
        let (controller, work) = (controller.clone(), work.clone());
        move |change| {
            controller.observe_requests(change, now());
            work.notify();
        }
    });
    for worker in 0..background.workers.max(1) {
        let (controller, work, stop) = (controller.clone(), work.clone(), stop.clone());
        threads::spawn(format!("background {worker}"), threads::LARGE, &stop.clone(), move || {
            while !stop.is_cancelled() {
                let seen = work.count();
                if let Step::Idle(due) = controller.step(now()) {
                    let wait = due.map_or(IDLE_TIMEOUT, |due| Duration::from_millis(due.saturating_sub(now()).max(1)));
                    work.wait(seen, wait.min(IDLE_TIMEOUT));
                }
            }
        });
    }
    background.readiness.term_synced();
    follow(background, &controller, &work, &stop);
    background.metrics.set_background_health(&background.namespace, None);
}

/// Keeps a watcher for each kind that must be followed; returns with `stop`.
fn follow(background: &Background, controller: &Controller, work: &WorkNotify, stop: &CancellationToken) {
    let mut watchers: BTreeMap<GroupKind, (Watch, CancellationToken)> = BTreeMap::new();
    let mut round: u64 = 0;
    let mut resynced = now();
    loop {
        controller.observe_filters(&background.config.get().resource_filters, now());
        let watches = controller.watches();
        watchers.retain(|kind, (watch, stop)| {
            let kept = watches.get(kind) == Some(watch);
            if !kept {
                stop.cancel();
                if !watches.contains_key(kind) {
                    controller.state().forget_kind(kind);
                }
            }
            kept
        });
        for (kind, watch) in watches {
            if watchers.contains_key(&kind) {
                continue;
            }
            let stop = stop.child_token();
            start_watcher(background, controller, work, &kind, &watch, &stop);
            watchers.insert(kind, (watch, stop));
        }
        if round.is_multiple_of(5) {
            let health = controller.state().health(now());
            background.metrics.set_background_health(&background.namespace, Some(&health));
            controller.ask_entries(now());
        }
        round += 1;
        if round.is_multiple_of(5)
            && let Ok(discovery) = background.cluster.discovery()
        {
            controller.observe_discovery(discovery, now());
        }
        let interval = u64::try_from(background.resync.as_millis()).unwrap_or(Moment::MAX);
        if now().saturating_sub(resynced) >= interval {
            resynced = now();
            controller.resync(resynced);
            work.notify();
        }
        if stop.wait(WATCH_POLL_INTERVAL) {
            return;
        }
    }
}

fn start_watcher(
    background: &Background,
    controller: &Controller,
    work: &WorkNotify,
    kind: &GroupKind,
    watch: &Watch,
    stop: &CancellationToken,
) {
    let mut watched = WatchTarget::all(&watch.api_version, &watch.kind);
    if !watch.wide {
        let labels = LabelSelector::one_of(MANAGED_BY, ["kyverno"]).and(LabelSelector::has(POLICY_NAME));
        watched.filter = Filter { labels, ..Filter::default() };
    }
    let (controller, work, kind, wide) = (controller.clone(), work.clone(), kind.clone(), watch.wide);
    let over = stop.clone();
    Watcher::spawn(Arc::clone(&background.cluster), watched, stop.clone(), move |change: StoreEvent| {
        let mut state = controller.state();
        // A watcher that was replaced says nothing any more: its successor knows more, or its kind is forgotten.
        if !over.is_cancelled() {
            state.observe(&kind, wide, change, now());
            drop(state);
            work.notify();
        }
    });
}

/// Now, in milliseconds since 1970.
fn now() -> Moment {
    Moment::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
