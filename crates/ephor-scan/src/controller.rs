//! The reports controller: does one piece of work per step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, MutexGuard};

use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, Discovery, ErrorKind, ListQuery};
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::matching::{Gvk, ResourceFilters};
use ephor_expr::{Str, Value};
use ephor_reports::merge::{Rule, Stored};
use ephor_reports::report::Reported;
use ephor_reports::report::results;
use ephor_reports::{Dialect, Scope};
use ephor_runtime::CancellationToken;
use ephor_runtime::facts::Answers;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::lease::LostLease;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::policies::Snapshot;
use ephor_runtime::queue::{Moment, Settled};
use ephor_runtime::watcher::{WatcherEvent, pages};
use jiff::Timestamp;

use crate::adopt::shown;
use crate::events::NewResults;
use crate::judge::{Judged, judge};
use crate::reportable::{Reportable, kind_of};
use crate::settle::Failure;
use crate::state::{State, Task};

/// How often it is looked whether what rules read has changed.
const FACTS_INTERVAL: Moment = 15_000;
/// How long the kinds of reports are waited for, when they are not served.
const NO_REPORTS_PAUSE: Moment = 30_000;

/// How long a rescan waits for room.
const FULL_PAUSE: Moment = 20;
/// How many objects are listed at once.
const PAGE: usize = 250;
/// How many reports are listed at once: each may be much larger than the object that it is about.
const REPORTS_PAGE: usize = 100;

/// Where reports are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In the cluster. One replica writes them, and deletes the `EphemeralReport`s whose results they hold.
    Cluster,
    /// In the memory of each replica. `EphemeralReport`s stay, so that every replica can read them, and a report shows
    /// their results as long as they exist.
    Memory,
}

/// What reports hold and how.
#[derive(Debug, Clone)]
pub struct ReportOptions {
    /// The API of reports.
    pub dialect: Dialect,
    /// Which sorts of rules are reported.
    pub reported: BTreeSet<Reported>,
    /// Which results are stored; `None` for all.
    pub allowed: Option<Vec<Str>>,
    /// How long a report gets at most, in bytes of JSON.
    pub max_bytes: usize,
    /// Where reports are.
    pub storage: Storage,
}

impl Default for ReportOptions {
    fn default() -> Self {
        // An API server stores 1.5 MiB, managed fields and all.
        Self {
            dialect: Dialect::WgPolicy,
            reported: Reported::ALL.into(),
            allowed: None,
            max_bytes: 1 << 20,
            storage: Storage::Cluster,
        }
    }
}

/// What the controller works with.
pub struct Env {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Answers to the engine's questions.
    pub answers: Arc<dyn Answers>,
    /// Asked before each write.
    pub fence: Arc<dyn Fn() -> Result<(), LostLease> + Send + Sync>,
    /// What reports hold.
    pub options: ReportOptions,
    /// Which objects are not judged, if the settings' filters count here.
    pub filters: Option<ResourceFilters>,
    /// What is told of new results.
    pub new_results: NewResults,
    /// What is counted.
    pub metrics: Metrics,
    /// Ends long lists.
    pub stop: CancellationToken,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Env({:?})", self.options)
    }
}

/// The controller. Clones share everything.
#[derive(Debug, Clone)]
pub struct Controller(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    env: Env,
    state: PoisonMutex<State>,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A piece of work.
    Worked,
    /// Nothing: no work is due before that moment.
    Idle(Option<Moment>),
}

impl Controller {
    /// A controller that knows nothing yet.
    pub fn new(env: Env) -> Self {
        Self(Arc::new(Shared { env, state: PoisonMutex::default() }))
    }

    pub(crate) fn env(&self) -> &Env {
        &self.0.env
    }

    /// The state. Its invariants hold between any two of its methods.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Takes note of the policies and of what is served.
    pub fn observe_policies(&self, snapshot: &Snapshot, discovery: &Discovery, now: Moment) {
        let reportable = Reportable::of(snapshot, discovery, &self.env().options.reported);
        self.lock().set_policies(reportable, now);
    }

    /// The kinds whose objects must be followed, with the version to read them in.
    pub fn kinds(&self) -> BTreeMap<GroupKind, Str> {
        self.lock().policies.kinds.clone()
    }

    /// Takes note of what happens to objects of a kind.
    pub fn observe_objects(&self, kind: &GroupKind, event: WatcherEvent, now: Moment) {
        self.lock().observe_objects(kind, event, now);
    }

    /// Takes note of what happens to reports.
    pub fn observe_reports(&self, namespaced: bool, event: WatcherEvent, now: Moment) {
        self.lock().observe_reports(namespaced, event, now);
    }

    /// Takes note of results that other roles leave.
    pub fn observe_ephemerals(&self, namespaced: bool, event: WatcherEvent, now: Moment) {
        self.lock().observe_ephemerals(namespaced, event, now);
    }

    /// Takes note of what happens to namespaces.
    pub fn observe_namespaces(&self, event: WatcherEvent, now: Moment) {
        self.lock().observe_namespaces(event, now);
    }

    /// Looks at everything again: all kinds, all facts, all reports.
    pub fn resync(&self, now: Moment) {
        let mut state = self.lock();
        let kinds: Vec<GroupKind> = state.policies.kinds.keys().cloned().collect();
        for kind in kinds {
            state.ask_rescan(kind, Str::default(), now);
        }
        state.queue.add(Task::Sweep, now);
    }

    /// Begins to look after facts and stale reports; call it once everything that exists is known.
    pub fn begin(&self, now: Moment) {
        let mut state = self.lock();
        state.queue.add(Task::Sweep, now);
        state.queue.add_at(Task::Facts, now + FACTS_INTERVAL, now);
    }

    /// Whether watchers should wait before they tell of more objects.
    pub fn is_full(&self) -> bool {
        self.lock().is_full()
    }

    /// Whether no work is under way and none is due.
    pub fn is_quiet(&self, now: Moment) -> bool {
        self.lock().queue.is_quiet(now)
    }

    /// How much work there is.
    pub fn depth(&self) -> usize {
        self.lock().queue.depth()
    }

    /// Does the next piece of work that is due.
    pub fn step(&self, now: Moment) -> Step {
        let task = {
            let mut state = self.lock();
            match state.take(now) {
                Some(task) => task,
                None => return Step::Idle(state.queue.next_due()),
            }
        };
        let settled = self.0.state.contain(|| self.work(&task, now)).unwrap_or_else(|| {
            tracing::error!(?task, "a task panicked");
            Settled::Failed
        });
        self.lock().queue.settle(task, settled, now);
        Step::Worked
    }

    fn work(&self, task: &Task, now: Moment) -> Settled {
        match task {
            Task::Settle(uid) => self.settle(uid, now).unwrap_or_else(|failure| failed(&failure, uid)),
            Task::Adopt(key) => self.adopt(key, now),
            Task::Requests(uid) => self.show_requests(uid, now).unwrap_or_else(|failure| failed(&failure, uid)),
            Task::Rescan(kind, namespace) => {
                self.rescan(kind, namespace, now).unwrap_or_else(|failure| failed(&failure, &kind.kind))
            }
            Task::Sweep => self.sweep(now).unwrap_or_else(|failure| failed(&failure, "all reports")),
            Task::Facts => {
                self.ask_again(now);
                Settled::Later(FACTS_INTERVAL)
            }
        }
    }

    /// Judges an object and makes its reports say so.
    fn settle(&self, uid: &Str, now: Moment) -> Result<Settled, Failure> {
        let (known, pending, policies) = {
            let mut state = self.lock();
            let pending = state.take_pending(uid);
            (state.known(uid).cloned(), pending, Arc::clone(&state.policies))
        };
        if known.as_ref().is_some_and(|known| known.gone) && self.lock().stored(uid).is_empty() {
            self.lock().forget(uid);
            return Ok(Settled::Done);
        }
        let Some(object) = self.find(uid, pending)? else {
            self.discard(uid)?;
            self.lock().forget(uid);
            return Ok(Settled::Done);
        };
        let kind = kind_of(&object);
        let scanned = policies.kinds.contains_key(&kind) && !self.is_filtered(&object);
        let found = if scanned { self.judge(&policies, &object, &kind, now) } else { Vec::new() };
        let digest = self.lock().digest_of(&found);
        {
            let mut state = self.lock();
            if state.is_settled(uid, digest) {
                state.settled(&object, digest);
                return Ok(Settled::Done);
            }
        }
        self.write(&Scope::of(&object), &found, timestamp(now), |rule| match policies.fate(&rule) {
            // What is not scanned has no results of scans.
            Stored::Replaced | Stored::Gone => Stored::Gone,
            Stored::Stands => Stored::Stands,
        })?;
        let mut state = self.lock();
        if scanned {
            state.note(&object);
            state.settled(&object, digest);
        } else if !policies.kinds.contains_key(&kind) {
            state.forget(uid);
        }
        Ok(Settled::Done)
    }

    fn judge(&self, policies: &Reportable, object: &Value, kind: &GroupKind, now: Moment) -> Vec<Value> {
        let labels = self.lock().labels(ephor_cluster::object::namespace(object));
        let Judged { results, read } =
            judge(policies, object, labels, &*self.env().answers, &self.env().metrics, timestamp(now));
        if !read.is_empty() {
            let mut state = self.lock();
            let read = read.into_iter().map(|(fetch, answer)| (fetch, state.digest(&answer))).collect();
            state.note_read(read, kind);
        }
        results
    }

    fn is_filtered(&self, object: &Value) -> bool {
        let name = ephor_cluster::object::name(object);
        let namespace = ephor_cluster::object::namespace(object);
        let drops = |filters: &ResourceFilters| filters.drops(&Gvk::of_object(object), "", namespace, name);
        self.env().filters.as_ref().is_some_and(drops)
    }

    /// The object of that UID: the one that waits, or the one that the cluster has.
    fn find(&self, uid: &Str, pending: Option<Value>) -> Result<Option<Value>, Failure> {
        if pending.is_some() {
            return Ok(pending);
        }
        let place = {
            let state = self.lock();
            state.known(uid).map(|known| {
                let version = state.policies.kinds.get(&known.kind).cloned();
                let served = version.unwrap_or_default();
                (known.kind.clone(), served, known.namespace.clone(), known.name.clone())
            })
        };
        let (api_version, kind, namespace, name) = match place {
            Some((kind, served, namespace, name)) if !served.is_empty() => (served, kind.kind, namespace, name),
            // A kind that is not followed any more, or an object that no watcher has told of: its report says what it
            // is.
            _ => match self.scope_of(uid)? {
                Some(scope) => (scope.api_version, scope.kind, scope.namespace, scope.name),
                None => return Ok(None),
            },
        };
        let cluster = &self.env().cluster;
        let got = cluster
            .resolve(&api_version, &kind)
            .and_then(|kind| cluster.get(&kind, kind.namespaced.then_some(&*namespace), &name));
        match got {
            Ok(object) if ephor_cluster::object::text(&object, "uid") == uid.as_str() => Ok(Some(object)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What the stored report about an object says that it is.
    fn scope_of(&self, uid: &Str) -> Result<Option<Scope>, Failure> {
        let Some((name, report)) = self.lock().stored(uid).into_iter().next() else { return Ok(None) };
        let namespaced = !report.namespace.is_empty();
        let resource = self.reports_kind(self.env().options.dialect, namespaced)?;
        match self.env().cluster.get(&resource, namespaced.then_some(&*report.namespace), &name) {
            Ok(report) => Ok(Some(Scope::of_report(&report)).filter(|scope| {
                // A report in another namespace belongs to another object.
                scope.uid == *uid && scope.namespace == ephor_cluster::object::namespace(&report)
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the reports about an object that is gone.
    fn discard(&self, uid: &Str) -> Result<(), Failure> {
        let stored = self.lock().stored(uid);
        for (name, known) in stored {
            let namespaced = !known.namespace.is_empty();
            let resource = self.reports_kind(self.env().options.dialect, namespaced)?;
            match self.env().cluster.get(&resource, namespaced.then_some(&*known.namespace), &name) {
                Ok(report) if ephor_reports::report::is_ours(&report) => self.remove(&resource, &report)?,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            self.lock().record_gone(uid, &name);
        }
        Ok(())
    }

    /// Judges the next page of all objects of a kind; those about which something else is to be said now are settled.
    /// Between pages other work is done, so that no more objects are listed than have room.
    fn rescan(&self, kind: &GroupKind, namespace: &Str, now: Moment) -> Result<Settled, Failure> {
        let (policies, progress) = {
            let state = self.lock();
            if state.is_full() {
                return Ok(Settled::Later(FULL_PAUSE));
            }
            (Arc::clone(&state.policies), state.rescan(kind, namespace))
        };
        let over = |next| self.lock().rescanned(kind, namespace, progress.asked, next);
        let cluster = &self.env().cluster;
        let resource = match policies.kinds.get(kind).map(|version| cluster.resolve(version, &kind.kind)) {
            Some(Ok(resource)) if namespace.is_empty() || resource.namespaced => resource,
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {
                over(None);
                return Ok(Settled::Done);
            }
        };
        let within = Some(namespace.clone()).filter(|namespace| !namespace.is_empty());
        let filter = Filter { namespace: within, ..Filter::default() };
        let query = ListQuery { filter, limit: PAGE, continue_token: progress.next.clone(), ..ListQuery::default() };
        let page = match cluster.list(&resource, &query) {
            Ok(page) => page,
            // The list took too long. It begins anew.
            Err(error) if error.kind() == ErrorKind::Gone => {
                self.lock().ask_rescan(kind.clone(), namespace.clone(), now);
                return Ok(Settled::Done);
            }
            Err(error) => return Err(error.into()),
        };
        for object in page.items {
            let Some(uid) = self.lock().note(&object) else { continue };
            let scanned = !self.is_filtered(&object);
            let found = if scanned { self.judge(&policies, &object, kind, now) } else { Vec::new() };
            let mut state = self.lock();
            let digest = state.digest_of(&found);
            if state.is_settled(&uid, digest) {
                state.settled(&object, digest);
            } else {
                state.ask(uid, Some(object), now);
            }
        }
        let goes_on = over(page.continue_token.filter(|next| !next.is_empty()));
        Ok(if goes_on { Settled::Later(0) } else { Settled::Done })
    }

    /// Looks through stored reports for what is gone.
    fn sweep(&self, now: Moment) -> Result<Settled, Failure> {
        let policies = Arc::clone(&self.lock().policies);
        for namespaced in [true, false] {
            let resource = self.reports_kind(self.env().options.dialect, namespaced)?;
            let query = ListQuery { limit: REPORTS_PAGE, ..ListQuery::default() };
            pages(&*self.env().cluster, &resource, query, &self.env().stop, |reports| {
                for report in reports.iter().filter(|report| ephor_reports::report::is_ours(report)) {
                    let stale = results(report).iter().any(|result| policies.fate(&Rule::of(result)) == Stored::Gone);
                    self.lock().swept(report, stale, now);
                }
            })?;
        }
        Ok(Settled::Done)
    }

    /// Asks again what rules asked for. Services outside of the cluster are not asked: they are not ours to poll.
    fn ask_again(&self, now: Moment) {
        let questions = self.lock().questions();
        for question in questions {
            if matches!(question.fetch(), Fetch::Service { .. } | Fetch::Image { .. } | Fetch::Host { .. }) {
                continue;
            }
            let answer = answer_text(&self.env().answers.answer(&question));
            let mut state = self.lock();
            let answer = state.digest(&answer);
            state.answered(question.fetch(), answer, now);
        }
    }
}

/// What a failure means for the work that met it.
pub(crate) fn failed(failure: &Failure, about: &str) -> Settled {
    match failure {
        // The next term begins anew.
        Failure::Lost(_) => Settled::Done,
        Failure::NoReports(error) => {
            tracing::warn!(%error, "reports cannot be written: install the definitions of reports");
            Settled::Retry(NO_REPORTS_PAUSE)
        }
        // Another writer was faster; the watcher delivers its version, or it is read again.
        Failure::Cluster(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) => {
            tracing::debug!(%error, about = %shown(about), "a report changed meanwhile");
            Settled::Failed
        }
        Failure::Cluster(error) => {
            tracing::warn!(%error, about = %shown(about), "a report cannot be written");
            Settled::Failed
        }
    }
}

/// An answer as text, to see whether it changed.
pub(crate) fn answer_text(fact: &Fact) -> String {
    match fact {
        Fact::Found(value) => value.to_json(),
        other => format!("{other:?}"),
    }
}

/// The time of a moment.
pub(crate) fn timestamp(now: Moment) -> Timestamp {
    i64::try_from(now).ok().and_then(|now| Timestamp::from_millisecond(now).ok()).unwrap_or_default()
}
