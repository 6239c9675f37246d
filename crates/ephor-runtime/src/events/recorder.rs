//! The threads that write Events.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use ephor_cluster::{Cluster, ClusterError, ErrorKind, Patch, WriteOptions};
use ephor_expr::{Str, Value};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use super::event::{Action, Event, Reason};
use super::object;
use super::queue::Queue;
use crate::cancellation::CancellationToken;
use crate::config::{Config, ConfigStore};
use crate::settings::CommonSettings;
use crate::threads;

/// What a process is told about its events at start.
#[derive(Debug, Clone)]
pub struct EventSettings {
    /// `--maxQueuedEvents`; 0 means no events at all.
    pub max_queued: usize,
    /// `--omitEvents`: reasons that are not written.
    pub omitted: Vec<Reason>,
    /// The name of the machine or pod.
    pub host: Str,
}

impl EventSettings {
    /// What a role's flags say. Words that are no reason omit nothing.
    pub fn of(common: &CommonSettings) -> Self {
        Self {
            max_queued: common.max_queued_events,
            omitted: common.omit_events.iter().filter_map(|word| Reason::parse(word)).collect(),
            host: common.identity.clone(),
        }
    }
}

impl Default for EventSettings {
    fn default() -> Self {
        Self { max_queued: 1000, omitted: Vec::new(), host: "ephor".into() }
    }
}

/// Which successes are told (ConfigMap `generateSuccessEvents` and `successEventActions`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SuccessEvents {
    /// None, the default.
    #[default]
    None,
    /// All.
    All,
    /// Those with one of these actions.
    With(Vec<Action>),
}

impl SuccessEvents {
    /// What the `ConfigMap` says. Words that are no action select nothing.
    pub fn of(config: &Config) -> Self {
        match (config.success_events, config.success_event_actions.as_slice()) {
            (false, _) => Self::None,
            (true, []) => Self::All,
            (true, words) => Self::With(words.iter().filter_map(|words| Action::parse(words)).collect()),
        }
    }

    fn tells(&self, action: Action) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::With(actions) => actions.contains(&action),
        }
    }
}

/// Takes events and has them written. Clones are the same recorder.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    queue: Queue,
    omitted: Vec<Reason>,
    host: Str,
    success: ArcSwap<SuccessEvents>,
    dropped: Counter,
    written: Mutex<Written>,
}

/// Threads that write.
const WORKERS: usize = 3;
/// How often a write is tried.
const ATTEMPTS: u32 = 3;
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How long a worker sleeps before it looks at its stop signal.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long the same event is a repetition.
const SERIES_WINDOW: Duration = Duration::from_mins(5);
/// How many events are remembered for that.
const REMEMBERED: usize = 4096;

/// Events that were written lately.
#[derive(Default)]
struct Written {
    by_event: HashMap<u64, Line>,
    hasher: RandomState,
}

#[derive(Clone)]
struct Line {
    name: Str,
    count: i64,
    last: Instant,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({} dropped)", self.0.dropped.get())
    }
}

impl Recorder {
    /// Starts the threads that write to `cluster` until `stop`. What does not fit the queue is counted in `dropped`.
    pub fn start(
        cluster: &Arc<dyn Cluster>,
        settings: EventSettings,
        dropped: Counter,
        stop: &CancellationToken,
    ) -> Self {
        let recorder = Self::new(settings, dropped);
        for worker in 0..WORKERS {
            let (shared, cluster, stop) = (Arc::clone(&recorder.0), Arc::clone(cluster), stop.clone());
            threads::spawn(format!("events {worker}"), threads::SMALL, &stop.clone(), move || {
                while !stop.is_cancelled() {
                    if let Some(event) = shared.queue.pop(POLL_INTERVAL) {
                        shared.write(&*cluster, &event, &stop);
                    }
                }
            });
        }
        recorder
    }

    /// A recorder that writes nothing.
    pub fn silent() -> Self {
        Self::new(EventSettings { max_queued: 0, ..EventSettings::default() }, Counter::default())
    }

    fn new(settings: EventSettings, dropped: Counter) -> Self {
        Self(Arc::new(Shared {
            queue: Queue::new(settings.max_queued),
            omitted: settings.omitted,
            host: settings.host,
            success: ArcSwap::default(),
            dropped,
            written: Mutex::default(),
        }))
    }

    /// Sets which successes are told from now on.
    pub fn set_success_events(&self, success: SuccessEvents) {
        self.0.success.store(Arc::new(success));
    }

    /// Has the `ConfigMap` say which successes are told.
    pub fn follow(&self, config: &ConfigStore) {
        self.set_success_events(SuccessEvents::of(&config.get()));
        let follower = self.clone();
        config.subscribe(move |config| follower.set_success_events(SuccessEvents::of(config)));
    }

    /// Whether an event of this kind would be written: for callers that have something to do before they can tell it.
    pub fn wants(&self, reason: Reason, action: Action) -> bool {
        !self.0.omitted.contains(&reason) && (reason != Reason::Applied || self.0.success.load().tells(action))
    }

    /// Takes events in. Does not wait.
    pub fn record(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            if self.wants(event.reason, event.action) && !self.0.queue.push(event) {
                self.0.dropped.inc();
            }
        }
    }
}

impl Shared {
    fn write(&self, cluster: &dyn Cluster, event: &Event, stop: &CancellationToken) {
        for attempt in 1..=ATTEMPTS {
            match self.try_write(cluster, event) {
                Ok(()) => return,
                // The API server refuses Events in namespaces that are being deleted.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Forbidden) => {
                    tracing::debug!(%error, "cannot write an event");
                    return;
                }
                Err(error) if attempt == ATTEMPTS => tracing::warn!(%error, "cannot write an event"),
                Err(_) if stop.wait(RETRY_INTERVAL * attempt) => return,
                Err(_) => {}
            }
        }
    }

    fn try_write(&self, cluster: &dyn Cluster, event: &Event) -> Result<(), ClusterError> {
        let kind = cluster.resolve(object::API_VERSION, object::KIND)?;
        let now = jiff::Timestamp::now();
        let namespace = Some(object::namespace(event));
        if let Some(line) = self.repeated(event) {
            let patch = Patch::merge(object::series(line.count, now));
            match cluster.patch(&kind, namespace, &line.name, &patch, &WriteOptions::default()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                other => return other.map(|_| ()),
            }
        }
        let document = object::document(event, &self.host, now);
        let written = cluster.create(&kind, document, &WriteOptions::default())?;
        self.remember(event, &written);
        Ok(())
    }

    /// What was written of this event lately, counted up.
    fn repeated(&self, event: &Event) -> Option<Line> {
        let mut written = self.written.lock();
        let key = written.hasher.hash_one(event);
        let line = written.by_event.get_mut(&key).filter(|line| line.last.elapsed() < SERIES_WINDOW)?;
        line.count += 1;
        line.last = Instant::now();
        Some(line.clone())
    }

    fn remember(&self, event: &Event, document: &Value) {
        let name = Str::new(document.str_at(&["metadata", "name"]).unwrap_or_default());
        let mut written = self.written.lock();
        let key = written.hasher.hash_one(event);
        if written.by_event.len() >= REMEMBERED {
            written.by_event.retain(|_, line| line.last.elapsed() < SERIES_WINDOW);
        }
        if written.by_event.len() < REMEMBERED {
            written.by_event.insert(key, Line { name, count: 1, last: Instant::now() });
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_cluster::{ListQuery, MemoryCluster};

    use super::*;
    use crate::events::{Component, Reference};

    fn event(reason: Reason, action: Action, note: &str) -> Event {
        Event {
            regarding: Reference { kind: "ClusterPolicy".into(), name: "p".into(), ..Reference::default() },
            related: None,
            reason,
            action,
            component: Component::Admission,
            note: note.into(),
        }
    }

    fn notes(cluster: &dyn Cluster) -> Vec<(String, i64)> {
        let kind = cluster.resolve(object::API_VERSION, object::KIND).unwrap();
        let found = cluster.list(&kind, &ListQuery::all()).unwrap().items;
        let count = |e: &Value| e.at(&["series", "count"]).and_then(Value::as_i64).unwrap_or(1);
        let mut notes: Vec<_> = found.iter().map(|e| (e.str_at(&["note"]).unwrap().to_owned(), count(e))).collect();
        notes.sort();
        notes
    }

    fn write_all(recorder: &Recorder, cluster: &dyn Cluster) {
        while let Some(event) = recorder.0.queue.pop(Duration::ZERO) {
            recorder.0.write(cluster, &event, &CancellationToken::new());
        }
    }

    #[test]
    fn successes_are_told_when_asked_for() {
        let recorder = Recorder::new(EventSettings::default(), Counter::default());
        let told = |recorder: &Recorder| {
            [Action::Passed, Action::Mutated].map(|action| recorder.wants(Reason::Applied, action))
        };
        assert_eq!(told(&recorder), [false, false]);
        recorder.set_success_events(SuccessEvents::All);
        assert_eq!(told(&recorder), [true, true]);
        recorder.set_success_events(SuccessEvents::With(vec![Action::Mutated]));
        assert_eq!(told(&recorder), [false, true]);
        assert!(recorder.wants(Reason::Violation, Action::Blocked));
        let settings = EventSettings { omitted: vec![Reason::Violation], ..EventSettings::default() };
        assert!(!Recorder::new(settings, Counter::default()).wants(Reason::Violation, Action::Blocked));
    }

    #[test]
    fn repetitions_are_one_series() {
        let cluster = MemoryCluster::default();
        let recorder = Recorder::new(EventSettings::default(), Counter::default());
        recorder.record(["one", "two", "one", "one"].map(|note| event(Reason::Violation, Action::Blocked, note)));
        write_all(&recorder, &cluster);
        assert_eq!(notes(&cluster), [("one".to_owned(), 3), ("two".to_owned(), 1)]);
    }

    #[test]
    fn what_was_deleted_is_written_again() {
        let cluster = MemoryCluster::default();
        let recorder = Recorder::new(EventSettings::default(), Counter::default());
        let told = || event(Reason::Error, Action::None, "one");
        recorder.record([told()]);
        write_all(&recorder, &cluster);
        let kind = cluster.resolve(object::API_VERSION, object::KIND).unwrap();
        let name =
            cluster.list(&kind, &ListQuery::all()).unwrap().items[0].str_at(&["metadata", "name"]).unwrap().to_owned();
        cluster.delete(&kind, Some("default"), &name, &ephor_cluster::DeleteOptions::default()).unwrap();
        recorder.record([told()]);
        write_all(&recorder, &cluster);
        assert_eq!(notes(&cluster), [("one".to_owned(), 1)]);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let settings = EventSettings { max_queued: 2, ..EventSettings::default() };
        let dropped = Counter::default();
        let recorder = Recorder::new(settings, dropped.clone());
        recorder.record((0..5).map(|n| event(Reason::Error, Action::None, &n.to_string())));
        assert_eq!(dropped.get(), 3);
    }
}
