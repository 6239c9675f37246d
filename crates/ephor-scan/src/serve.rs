//! Runs the controller: watchers that feed it, workers that step it, and the lease.
//!
//! Where reports are stored, only the leader has a controller, whose memory begins and ends with its term. Where they
//! are in memory, every replica has one ([`crate::aggregated`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ephor_cluster::{Cluster, Discovery};
use ephor_expr::Str;
use ephor_reports::ephemeral::{self, API_VERSION};
use ephor_runtime::config::ConfigStore;
use ephor_runtime::events::Recorder;
use ephor_runtime::facts::Answers;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::lease::{self, LeaseOptions, REPORTS_LEASE, Term};
use ephor_runtime::metrics::Metrics;
use ephor_runtime::notify::WorkNotify;
use ephor_runtime::policies::{ExceptionScope, PolicyStore};
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::{WatchTarget, Watcher, WatcherEvent};
use ephor_runtime::{CancellationToken, threads};
use parking_lot::Mutex;

use crate::controller::{Controller, Env, ReportOptions, Step};
use crate::events::NewResults;

/// What the role needs.
#[derive(Clone)]
pub struct Reports {
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
    /// How many threads work.
    pub workers: usize,
    /// How often everything is judged again, whether or not something happened.
    pub scan_interval: Duration,
    /// The settings; which objects are filtered is in them.
    pub config: ConfigStore,
    /// Whether objects that the settings' filters match are judged all the same.
    pub skip_filters: bool,
    /// Which exceptions count.
    pub exceptions: ExceptionScope,
    /// What reports hold.
    pub options: ReportOptions,
    /// Who writes Events.
    pub events: Recorder,
    /// What is counted.
    pub metrics: Metrics,
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reports({}, {} workers)", self.identity, self.workers)
    }
}

/// How long the lists of all kinds are waited for before stored reports are compared with what exists, in milliseconds.
const SYNC_TIMEOUT: Moment = 30_000;
/// How often the kinds that must be followed are looked at.
const KINDS_INTERVAL: Duration = Duration::from_millis(250);
/// How many of these intervals pass between two looks at what is served.
const DISCOVERY_ROUNDS: u64 = 8;
/// How long a thread sleeps at most before it looks at its stop signal.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long a watcher waits when more objects are known than are judged.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Takes part in the election until `stop`, and keeps reports while leading. `begin` is called when a term begins.
pub fn run(reports: &Reports, stop: &CancellationToken, mut begin: impl FnMut(&Term)) {
    let options = LeaseOptions {
        namespace: reports.namespace.clone(),
        name: REPORTS_LEASE.into(),
        identity: reports.identity.clone(),
        retry: reports.leader_retry,
    };
    lease::run(&reports.cluster, &options, stop, |term| {
        begin(term);
        let (reports, term) = (reports.clone(), term.clone());
        threads::spawn("reports", threads::LARGE, &term.token().clone(), move || lead(&reports, &term));
    });
}

/// Keeps reports for one term; returns at its end.
pub fn lead(reports: &Reports, term: &Term) {
    keep(reports, term, &Completion::default(), |events| events);
}

/// Whether everything that existed at the start has been judged. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Completion(Arc<AtomicBool>);

impl Completion {
    /// Whether it has.
    pub fn is_complete(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn complete(&self) {
        if !self.0.swap(true, Ordering::AcqRel) {
            tracing::info!("everything that exists is judged");
        }
    }
}

/// Keeps reports until the term ends. `filtered` makes of what writes Events what is told of new results.
pub(crate) fn keep(
    reports: &Reports,
    term: &Term,
    completion: &Completion,
    filtered: impl FnOnce(NewResults) -> NewResults,
) {
    let stop = term.token().clone();
    let store = PolicyStore::new(reports.exceptions.clone());
    store.subscribe({
        let answers = Arc::clone(&reports.answers);
        move |policies| answers.prepare(policies)
    });
    let policies = store.follow(&reports.cluster, &stop);
    // Reports about policies that are not known yet would look stale.
    while !policies.wait_synced(STOP_POLL_INTERVAL) {
        if stop.is_cancelled() {
            return;
        }
    }
    let fence = term.clone();
    let filters = (!reports.skip_filters).then(|| reports.config.get().resource_filters.clone());
    let controller = Controller::new(Env {
        cluster: Arc::clone(&reports.cluster),
        answers: Arc::clone(&reports.answers),
        fence: Arc::new(move || fence.fence()),
        options: reports.options.clone(),
        filters,
        new_results: filtered(NewResults::events(reports.events.clone(), store.clone())),
        metrics: reports.metrics.clone(),
        stop: stop.clone(),
    });
    let role = Role { reports, controller, wake: WorkNotify::default(), stop };
    let Some(discovery) = role.discovery() else { return };
    let discovery = Arc::new(Mutex::new(discovery));
    let Some(ephemerals) = role.follow_reports() else { return };
    store.subscribe({
        let (controller, wake, discovery) = (role.controller.clone(), role.wake.clone(), Arc::clone(&discovery));
        move |snapshot| {
            let discovery = Arc::clone(&discovery.lock());
            controller.observe_policies(snapshot, &discovery, now());
            wake.notify();
        }
    });
    let observe = |discovery: &Discovery| role.controller.observe_policies(&store.snapshot(), discovery, now());
    observe(&discovery.lock());
    for worker in 0..reports.workers.max(1) {
        role.spawn_worker(worker);
    }
    role.follow_kinds(&ephemerals, completion, |fresh| {
        let changed = {
            let mut known = discovery.lock();
            let changed = !Arc::ptr_eq(&known, &fresh);
            *known = Arc::clone(&fresh);
            changed
        };
        if changed {
            observe(&fresh);
        }
    });
}

struct Role<'r> {
    reports: &'r Reports,
    controller: Controller,
    wake: WorkNotify,
    stop: CancellationToken,
}

impl Role<'_> {
    fn discovery(&self) -> Option<Arc<Discovery>> {
        while !self.stop.is_cancelled() {
            match self.reports.cluster.discovery() {
                Ok(discovery) => return Some(discovery),
                Err(error) => {
                    tracing::warn!(%error, "discovery failed");
                    self.stop.wait(Duration::from_secs(1));
                }
            }
        }
        None
    }

    /// Follows namespaces, reports and what other roles leave. Returns when namespaces and reports are known, with the
    /// watchers of the rest; `None` if stopped before.
    fn follow_reports(&self) -> Option<Vec<Watcher>> {
        let dialect = self.reports.options.dialect;
        let mut watchers =
            vec![self.watch(WatchTarget::all("v1", "Namespace").metadata_only(), |controller, event| {
                controller.observe_namespaces(event, now());
            })];
        for namespaced in [true, false] {
            let watched = WatchTarget::all(dialect.api_version(), dialect.kind(namespaced));
            watchers.push(self.watch(watched, move |controller, event| {
                controller.observe_reports(namespaced, event, now());
            }));
        }
        for watcher in &watchers {
            while !watcher.wait_synced(STOP_POLL_INTERVAL) {
                if self.stop.is_cancelled() {
                    return None;
                }
            }
        }
        let ephemerals = [true, false].map(|namespaced| {
            let target = WatchTarget::all(API_VERSION, ephemeral::kind(namespaced));
            self.watch(target, move |controller, event| controller.observe_ephemerals(namespaced, event, now()))
        });
        Some(ephemerals.into())
    }

    fn watch(&self, watched: WatchTarget, observe: impl Fn(&Controller, WatcherEvent) + Send + 'static) -> Watcher {
        self.watch_until(watched, self.stop.clone(), observe)
    }

    fn watch_until(
        &self,
        watched: WatchTarget,
        stop: CancellationToken,
        observe: impl Fn(&Controller, WatcherEvent) + Send + 'static,
    ) -> Watcher {
        let (controller, wake, over) = (self.controller.clone(), self.wake.clone(), stop.clone());
        Watcher::spawn_paged(Arc::clone(&self.reports.cluster), watched, stop, move |event| {
            while controller.is_full() && !over.is_cancelled() {
                over.wait(FULL_PAUSE);
            }
            if !over.is_cancelled() {
                observe(&controller, event);
                wake.notify();
            }
        })
    }

    fn spawn_worker(&self, number: usize) {
        let (controller, wake, stop) = (self.controller.clone(), self.wake.clone(), self.stop.clone());
        threads::spawn(format!("reports {number}"), threads::LARGE, &self.stop, move || {
            while !stop.is_cancelled() {
                let heard = wake.count();
                if let Step::Idle(due) = controller.step(now()) {
                    let due = due.map(|due| Duration::from_millis(due.saturating_sub(now()).max(1)));
                    wake.wait(heard, due.unwrap_or(STOP_POLL_INTERVAL).min(STOP_POLL_INTERVAL));
                }
            }
        });
    }

    /// Keeps a watcher for each kind that is scanned; returns with the term.
    fn follow_kinds(&self, ephemerals: &[Watcher], completion: &Completion, served: impl Fn(Arc<Discovery>)) {
        let mut watchers: BTreeMap<GroupKind, (Str, CancellationToken, Watcher)> = BTreeMap::new();
        let started = now();
        let (mut begun, mut round, mut resynced): (bool, u64, Moment) = (false, 0, started);
        let mut busy = started;
        loop {
            let kinds = self.controller.kinds();
            watchers.retain(|kind, (version, stop, _)| {
                let kept = kinds.get(kind) == Some(version);
                if !kept {
                    stop.cancel();
                }
                kept
            });
            for (kind, version) in kinds {
                watchers.entry(kind).or_insert_with_key(|kind| {
                    let stop = self.stop.child_token();
                    let watched = WatchTarget::all(&version, &kind.kind);
                    let about = kind.clone();
                    let watcher = self.watch_until(watched, stop.clone(), move |controller, event| {
                        controller.observe_objects(&about, event, now());
                    });
                    (version, stop, watcher)
                });
            }
            // A kind that may not be listed keeps the others from nothing.
            let waited = now().saturating_sub(started) >= SYNC_TIMEOUT;
            if !begun && (waited || watchers.values().all(|(_, _, watcher)| watcher.synced())) {
                begun = true;
                self.controller.begin(now());
            }
            let quiet = self.controller.is_quiet(now());
            if !quiet {
                busy = now();
            }
            // A kind that cannot be listed does not hold up the others.
            let idle = now().saturating_sub(busy) >= SYNC_TIMEOUT;
            let mut all = watchers.values().map(|(_, _, watcher)| watcher).chain(ephemerals);
            if begun && quiet && (idle || all.all(Watcher::synced)) {
                completion.complete();
            }
            round += 1;
            if round.is_multiple_of(DISCOVERY_ROUNDS)
                && let Ok(discovery) = self.reports.cluster.discovery()
            {
                served(discovery);
            }
            let interval = Moment::try_from(self.reports.scan_interval.as_millis()).unwrap_or(Moment::MAX);
            if now().saturating_sub(resynced) >= interval {
                resynced = now();
                self.controller.resync(resynced);
                self.wake.notify();
            }
            if self.stop.wait(KINDS_INTERVAL) {
                return;
            }
        }
    }
}

/// Now, in milliseconds since 1970.
fn now() -> Moment {
    Moment::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
