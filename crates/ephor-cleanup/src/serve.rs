//! Runs the role: watchers that feed the controllers, workers that step them, and the lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::query::{Filter, LabelSelector};
use ephor_cluster::{Cluster, ClusterError};
use ephor_engine::cleanup::ttl::TTL_LABEL;
use ephor_expr::Str;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::events::Recorder;
use ephor_runtime::facts::Answers;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::lease::{self, CLEANUP_LEASE, LeaseOptions, Term};
use ephor_runtime::metrics::Metrics;
use ephor_runtime::notify::WorkNotify;
use ephor_runtime::policies::{ExceptionScope, PolicyStore};
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::{WatchTarget, Watcher};
use ephor_runtime::{CancellationToken, threads};

use crate::Step;
use crate::controller::Controller;
use crate::env::{self, CleanupOptions, Env};
use crate::policy::Kind;
use crate::ttl::controller::Lifetimes;
use crate::ttl::kinds::permitted;

/// What the role needs.
#[derive(Clone)]
pub struct Cleanup {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Answers to the engine's questions.
    pub answers: Arc<dyn Answers>,
    /// Where the lease is.
    pub namespace: Str,
    /// Who this replica is.
    pub identity: Str,
    /// The pause between attempts to become the leader.
    pub leader_retry: Duration,
    /// How often it is looked which kinds the label for lifetimes counts for.
    pub ttl_interval: Duration,
    /// The settings; which objects are filtered is in them.
    pub config: ConfigStore,
    /// Which exceptions count.
    pub exceptions: ExceptionScope,
    /// What an operator says about all policies.
    pub options: CleanupOptions,
    /// Who writes Events.
    pub events: Recorder,
    /// What is counted.
    pub metrics: Metrics,
}

impl std::fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cleanup({})", self.identity)
    }
}

/// Threads that carry out policies.
const WORKERS: usize = 3;
/// Threads that delete what has lived long enough. Each waits for the answer to one deletion at a time, so that many
/// objects that are due at once do not flood an API server.
const TTL_WORKERS: usize = 4;
/// How long a thread sleeps at most before it looks at its stop signal.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How often policies are looked through for those that have not been told whether they are carried out.
const TELLING_INTERVAL: Duration = Duration::from_secs(2);

/// Takes part in the election until `stop`, and cleans up while leading.
pub fn run(cleanup: &Cleanup, stop: &CancellationToken) {
    let options = LeaseOptions {
        namespace: cleanup.namespace.clone(),
        name: CLEANUP_LEASE.into(),
        identity: cleanup.identity.clone(),
        retry: cleanup.leader_retry,
    };
    lease::run(&cleanup.cluster, &options, stop, |term| {
        let (cleanup, term) = (cleanup.clone(), term.clone());
        threads::spawn("cleanup", threads::LARGE, &term.token().clone(), move || lead(&cleanup, &term));
    });
}

/// Cleans up for one term; returns at its end.
pub fn lead(cleanup: &Cleanup, term: &Term) {
    let stop = term.token().clone();
    let fence = term.clone();
    let fence: crate::writer::Fence = Arc::new(move || fence.fence());
    let config = cleanup.config.clone();
    let controller = Controller::new(Env {
        cluster: Arc::clone(&cleanup.cluster),
        answers: Arc::clone(&cleanup.answers),
        fence: Arc::clone(&fence),
        filters: Box::new(move || Arc::new(config.get().resource_filters.clone())),
        options: cleanup.options,
        events: cleanup.events.clone(),
        metrics: cleanup.metrics.clone(),
        stop: stop.clone(),
    });
    let wake = WorkNotify::default();
    let store = PolicyStore::deleting(cleanup.exceptions.clone());
    let policies = store.follow(&cleanup.cluster, &stop);
    // A policy without the exceptions from it would delete too much.
    while !policies.wait_synced(STOP_POLL_INTERVAL) {
        if stop.is_cancelled() {
            return;
        }
    }
    store.subscribe({
        let (controller, wake) = (controller.clone(), wake.clone());
        move |snapshot| {
            controller.observe_snapshot(snapshot, now());
            wake.notify();
        }
    });
    controller.observe_snapshot(&store.snapshot(), now());
    for kind in Kind::CLEANUP {
        let (controller, wake) = (controller.clone(), wake.clone());
        let watched = WatchTarget::all(kind.api_version(), kind.as_str());
        Watcher::spawn(Arc::clone(&cleanup.cluster), watched, stop.clone(), move |event| {
            controller.observe_cleanup(kind, event, now());
            wake.notify();
        });
    }
    for number in 0..WORKERS {
        let controller = controller.clone();
        spawn_worker(format!("cleanup {number}"), &wake, &stop, move || controller.step(now()));
    }
    let lifetimes = Lifetimes::new(Arc::clone(&cleanup.cluster), fence, cleanup.metrics.clone());
    let timers = WorkNotify::default();
    for number in 0..TTL_WORKERS {
        let lifetimes = lifetimes.clone();
        spawn_worker(format!("lifetimes {number}"), &timers, &stop, move || lifetimes.step(now()));
    }
    threads::spawn("cleanup statuses", threads::SMALL, &stop, {
        let (controller, stop) = (controller, stop.clone());
        move || {
            let mut told = BTreeMap::new();
            while !stop.wait(TELLING_INTERVAL) {
                controller.tell_of_policies(&mut told, now());
            }
        }
    });
    follow_kinds(cleanup, &lifetimes, &timers, &stop);
}

fn spawn_worker(name: String, wake: &WorkNotify, stop: &CancellationToken, step: impl Fn() -> Step + Send + 'static) {
    let (wake, ending) = (wake.clone(), stop.clone());
    threads::spawn(name, threads::LARGE, stop, move || {
        while !ending.is_cancelled() {
            let heard = wake.count();
            if let Step::Idle(due) = step() {
                let due = due.map(|due| Duration::from_millis(due.saturating_sub(now()).max(1)));
                wake.wait(heard, due.unwrap_or(STOP_POLL_INTERVAL).min(STOP_POLL_INTERVAL));
            }
        }
    });
}

/// Keeps a watcher for each kind whose labelled objects can be deleted; returns with the term.
fn follow_kinds(cleanup: &Cleanup, lifetimes: &Lifetimes, timers: &WorkNotify, stop: &CancellationToken) {
    let mut watchers: BTreeMap<GroupKind, CancellationToken> = BTreeMap::new();
    let kinds = || -> Result<_, ClusterError> { permitted(&*cleanup.cluster, &*cleanup.cluster.discovery()?) };
    loop {
        match kinds() {
            Ok(kinds) => {
                let new = lifetimes.follow(&kinds);
                watchers.retain(|kind, ending| {
                    let kept = kinds.contains_key(kind) && !new.contains(kind);
                    if !kept {
                        ending.cancel();
                    }
                    kept
                });
                for kind in new {
                    let Some(resource) = kinds.get(&kind) else { continue };
                    let ending = stop.child_token();
                    let mut watched = WatchTarget::all(&resource.api_version(), &resource.kind).metadata_only();
                    watched.filter = Filter { labels: LabelSelector::has(TTL_LABEL), ..Filter::default() };
                    let (lifetimes, timers, about, over) =
                        (lifetimes.clone(), timers.clone(), kind.clone(), ending.clone());
                    Watcher::spawn_paged(Arc::clone(&cleanup.cluster), watched, ending.clone(), move |event| {
                        // What is followed anew has a watcher of its own.
                        if !over.is_cancelled() {
                            lifetimes.observe(&about, event);
                            timers.notify();
                        }
                    });
                    watchers.insert(kind, ending);
                }
            }
            Err(error) => tracing::warn!(%error, "it is not known which kinds the label for lifetimes counts for"),
        }
        if stop.wait(cleanup.ttl_interval) {
            return;
        }
    }
}

/// Now, in milliseconds since 1970.
fn now() -> Moment {
    env::moment(jiff::Timestamp::now())
}
