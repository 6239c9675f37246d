//! One watch of each kind for all roles of a process.
//!
//! In: the clusters that roles use. Out: clusters whose watches of the same objects read one stream of the API server.
//! `ephor serve all` needs it: four roles follow policies, settings and namespaces, and several follow the same
//! workloads.
//!
//! Each reader still lists for itself and then watches from the version of its list. A shared stream keeps the events
//! that not every reader has taken, and some before them, so that a reader whose list is a little older or younger
//! joins it. A reader whose list is older than all of that opens a watch of its own.
//!
//! No thread reads ahead: the reader that finds nothing new reads from the server, for itself and the others.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ephor_cluster::raw::RawRequest;
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, List, ListQuery, Patch, Resource, Watch, WatchEvent,
    WatchQuery, WriteOptions,
};
use ephor_expr::Value;
use parking_lot::{Condvar, Mutex};

/// How many events that all readers have taken are kept for readers that come late.
const KEPT: usize = 128;
/// How many bytes of them.
const KEPT_BYTES: usize = 256 << 10;
/// How many events a reader may lag behind the others before it has to list again.
const MAX_LAG: usize = 10_000;
/// How many bytes of events.
const MAX_LAG_BYTES: usize = 32 << 20;

/// The running streams of a process.
#[derive(Clone, Default)]
pub struct SharedWatches(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    resource: Resource,
    query: WatchQuery,
    stream: Weak<SharedStream>,
}

impl std::fmt::Debug for SharedWatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedWatches")
    }
}

impl SharedWatches {
    /// The same cluster, with watches that are shared with those of the other clusters made here. All of them must
    /// stand for one API server.
    pub fn over(&self, cluster: Arc<dyn Cluster>) -> Arc<dyn Cluster> {
        Arc::new(SharingCluster { inner: cluster, streams: self.clone() })
    }

    fn watch(
        &self,
        cluster: &dyn Cluster,
        resource: &Resource,
        query: &WatchQuery,
    ) -> Result<Box<dyn Watch>, ClusterError> {
        let Some(version) = number(&query.resource_version) else {
            return cluster.watch(resource, query);
        };
        if let Some(reader) = self.find(resource, query).and_then(|stream| SharedStream::join(&stream, version)) {
            return Ok(Box::new(reader));
        }
        // The lock is not held while the server is asked. Where two readers open a stream at once, both go on.
        let stream = Arc::new(SharedStream::new(cluster.watch(resource, query)?, version));
        let reader = SharedStream::join(&stream, version);
        let mut entries = self.0.lock();
        entries.retain(|entry| entry.stream.strong_count() > 0);
        entries.push(Entry { resource: resource.clone(), query: query.clone(), stream: Arc::downgrade(&stream) });
        drop(entries);
        match reader {
            Some(reader) => Ok(Box::new(reader)),
            None => cluster.watch(resource, query),
        }
    }

    /// The youngest stream of these objects.
    fn find(&self, resource: &Resource, query: &WatchQuery) -> Option<Arc<SharedStream>> {
        let same = |entry: &&Entry| {
            entry.resource == *resource
                && entry.query.filter == query.filter
                && entry.query.metadata_only == query.metadata_only
                && entry.query.bookmarks == query.bookmarks
        };
        self.0.lock().iter().rev().filter(same).find_map(|entry| entry.stream.upgrade())
    }
}

/// The number of a version; 0 and no version ask for a list, which is no stream to join.
fn number(version: &str) -> Option<u64> {
    version.parse().ok().filter(|version| *version != 0)
}

fn version_of(event: &WatchEvent) -> Option<u64> {
    match event {
        WatchEvent::Bookmark(version) => number(version),
        other => other.object().and_then(crate::watcher::version_of),
    }
}

/// A watch with several readers.
struct SharedStream {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The watch; taken while a reader waits for its next event.
    watch: Option<Box<dyn Watch>>,
    /// Events that were read.
    events: VecDeque<Kept>,
    /// How many bytes they take.
    bytes: usize,
    /// The number of the first of them.
    first: u64,
    /// The stream holds all events after this version.
    floor: u64,
    /// The version of the last event.
    last: u64,
    /// What ended it.
    failure: Option<ClusterError>,
    /// Where each reader is: the number of its next event.
    readers: Vec<(u64, u64)>,
    next_reader: u64,
}

struct Kept {
    version: u64,
    bytes: usize,
    event: WatchEvent,
}

impl SharedStream {
    fn new(watch: Box<dyn Watch>, version: u64) -> Self {
        let state = State {
            watch: Some(watch),
            events: VecDeque::new(),
            bytes: 0,
            first: 0,
            floor: version,
            last: version,
            failure: None,
            readers: Vec::new(),
            next_reader: 0,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// A reader of what happens after `version`; `None` if the stream does not know all of that any more, or has ended.
    fn join(stream: &Arc<Self>, version: u64) -> Option<Reader> {
        let mut state = stream.state.lock();
        if state.failure.is_some() || version < state.floor {
            return None;
        }
        let id = state.next_reader;
        state.next_reader += 1;
        let known = state.events.iter().take_while(|kept| kept.version <= version).count();
        let next = state.first + known as u64;
        state.readers.push((id, next));
        Some(Reader { stream: Arc::clone(stream), id, after: version })
    }
}

impl State {
    /// The next event of a reader, if it is there.
    fn take(&mut self, id: u64) -> Result<Option<(u64, WatchEvent)>, ClusterError> {
        let Some(next) = self.readers.iter_mut().find(|(reader, _)| *reader == id).map(|(_, next)| next) else {
            return Err(ClusterError::expired("the reader fell behind the other readers of this watch"));
        };
        let at = usize::try_from(*next - self.first).unwrap_or(usize::MAX);
        let Some(kept) = self.events.get(at) else { return Ok(None) };
        let event = (kept.version, kept.event.clone());
        *next += 1;
        self.trim();
        Ok(Some(event))
    }

    fn push(&mut self, event: WatchEvent) {
        // An event without a version is as young as the one before it.
        let version = version_of(&event).unwrap_or(self.last);
        self.last = self.last.max(version);
        let bytes = event.object().map_or(0, Value::memory);
        self.bytes += bytes;
        self.events.push_back(Kept { version: self.last, bytes, event });
        // Readers that no longer read must not keep everything in memory. The one that reads this event stays.
        while self.events.len() > MAX_LAG || (self.bytes > MAX_LAG_BYTES && self.events.len() > 1) {
            self.forget_first();
        }
        self.readers.retain(|(_, next)| *next >= self.first);
        self.trim();
    }

    /// Forgets what all readers have, but for the last events.
    fn trim(&mut self) {
        let end = self.first + self.events.len() as u64;
        let needed = self.readers.iter().map(|(_, next)| *next).min().unwrap_or(end);
        while self.first < needed && (self.events.len() > KEPT || self.bytes > KEPT_BYTES) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(kept) = self.events.pop_front() {
            self.bytes -= kept.bytes;
            self.floor = kept.version;
            self.first += 1;
        }
    }
}

/// One of the readers of a stream.
struct Reader {
    stream: Arc<SharedStream>,
    id: u64,
    /// Older events are part of the reader's list.
    after: u64,
}

impl Watch for Reader {
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, ClusterError> {
        let until = Instant::now() + wait;
        let mut state = self.stream.state.lock();
        loop {
            while let Some((version, event)) = state.take(self.id)? {
                if version > self.after {
                    return Ok(Some(event));
                }
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let left = until.saturating_duration_since(Instant::now());
            let Some(mut watch) = state.watch.take() else {
                // Another reader waits for the server.
                if self.stream.changed.wait_for(&mut state, left).timed_out() && Instant::now() >= until {
                    return Ok(None);
                }
                continue;
            };
            drop(state);
            let read = watch.next(left);
            state = self.stream.state.lock();
            self.stream.changed.notify_all();
            match read {
                Ok(Some(event)) => {
                    state.push(event);
                    state.watch = Some(watch);
                }
                Ok(None) => {
                    state.watch = Some(watch);
                    return Ok(None);
                }
                Err(error) => state.failure = Some(error),
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.state.lock();
        state.readers.retain(|(id, _)| *id != self.id);
        state.trim();
    }
}

/// A cluster whose watches are shared.
struct SharingCluster {
    inner: Arc<dyn Cluster>,
    streams: SharedWatches,
}

impl Cluster for SharingCluster {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.inner.discovery()
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.inner.resolve(api_version, kind)
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        self.inner.get(resource, namespace, name)
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.inner.list(resource, query)
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.inner.create(resource, object, options)
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.inner.update(resource, object, options)
    }

    fn update_status(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.inner.update_status(resource, object, options)
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        self.inner.patch(resource, namespace, name, patch, options)
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        self.inner.delete(resource, namespace, name, options)
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        self.streams.watch(&*self.inner, resource, query)
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        self.inner.raw(request)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use ephor_cluster::MemoryCluster;
    use ephor_faults::FaultyCluster;

    use super::*;

    /// What a watch gives, event by event; then nothing happens.
    type Script = VecDeque<Result<Option<WatchEvent>, ClusterError>>;

    struct ScriptedWatch(Script);

    impl Watch for ScriptedWatch {
        fn next(&mut self, _: Duration) -> Result<Option<WatchEvent>, ClusterError> {
            self.0.pop_front().unwrap_or(Ok(None))
        }
    }

    struct Harness {
        opened: Arc<AtomicUsize>,
        shared: Arc<dyn Cluster>,
        kind: Resource,
    }

    /// A server whose first watches follow the scripts.
    fn harness(scripts: impl IntoIterator<Item = Script>) -> Harness {
        let opened = Arc::new(AtomicUsize::new(0));
        let mut scripts: VecDeque<Script> = scripts.into_iter().collect();
        let server = FaultyCluster::new(Arc::new(MemoryCluster::default())).with_watches({
            let opened = Arc::clone(&opened);
            move || {
                opened.fetch_add(1, Ordering::Relaxed);
                Box::new(ScriptedWatch(scripts.pop_front().unwrap_or_default()))
            }
        });
        let kind = server.resolve("v1", "ConfigMap").unwrap();
        Harness { opened, shared: SharedWatches::default().over(Arc::new(server)), kind }
    }

    impl Harness {
        fn watch_from(&self, version: &str) -> Box<dyn Watch> {
            let query = WatchQuery { resource_version: version.into(), ..WatchQuery::default() };
            self.shared.watch(&self.kind, &query).unwrap()
        }

        fn opened(&self) -> usize {
            self.opened.load(Ordering::Relaxed)
        }
    }

    fn event(version: u64) -> WatchEvent {
        let text = format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}}}}"#);
        WatchEvent::Modified(Value::from_json(&text).unwrap())
    }

    /// A script of changes, in these versions.
    fn script(versions: impl IntoIterator<Item = u64>) -> Script {
        versions.into_iter().map(|version| Ok(Some(event(version)))).collect()
    }

    /// The versions of all events that are there.
    fn versions(watch: &mut dyn Watch) -> Vec<u64> {
        std::iter::from_fn(|| watch.next(Duration::ZERO).unwrap()).filter_map(|event| version_of(&event)).collect()
    }

    #[test]
    fn readers_share_a_watch_and_each_gets_what_its_list_does_not_hold() {
        let server = harness([script(6..=9)]);
        let (mut first, mut same, mut younger) =
            (server.watch_from("5"), server.watch_from("5"), server.watch_from("7"));
        assert_eq!(versions(&mut *younger), [8, 9]);
        assert_eq!(versions(&mut *first), [6, 7, 8, 9]);
        assert_eq!(versions(&mut *same), [6, 7, 8, 9]);
        let mut late = server.watch_from("6");
        assert_eq!(versions(&mut *late), [7, 8, 9]);
        assert_eq!(server.opened(), 1);
    }

    #[test]
    fn a_list_older_than_the_stream_gets_a_watch_of_its_own() {
        let server = harness([]);
        let _first = server.watch_from("5");
        let _older = server.watch_from("4");
        let _listing = server.watch_from("0");
        assert_eq!(server.opened(), 3);
    }

    #[test]
    fn other_objects_are_another_stream() {
        let server = harness([]);
        let _all = server.watch_from("5");
        let query = WatchQuery { resource_version: "5".into(), metadata_only: true, ..WatchQuery::default() };
        let _metadata = server.shared.watch(&server.kind, &query).unwrap();
        assert_eq!(server.opened(), 2);
    }

    #[test]
    fn a_failure_ends_all_readers_and_the_next_watch_is_a_new_one() {
        let failing = VecDeque::from([Ok(Some(event(6))), Err(ClusterError::expired("too old"))]);
        let server = harness([failing]);
        let (mut first, mut second) = (server.watch_from("5"), server.watch_from("5"));
        for reader in [&mut first, &mut second] {
            assert!(reader.next(Duration::ZERO).unwrap().is_some());
            assert!(reader.next(Duration::ZERO).is_err());
        }
        let _again = server.watch_from("6");
        assert_eq!(server.opened(), 2);
    }

    #[test]
    fn the_end_of_the_last_reader_ends_the_watch() {
        let server = harness([]);
        drop(server.watch_from("5"));
        let _next = server.watch_from("5");
        assert_eq!(server.opened(), 2);
    }

    #[test]
    fn a_reader_that_stops_reading_has_to_list_again_and_holds_nothing() {
        let events = MAX_LAG as u64 + 10;
        let server = harness([script(6..=events + 5)]);
        let (mut busy, mut idle) = (server.watch_from("5"), server.watch_from("5"));
        assert_eq!(versions(&mut *busy).len() as u64, events);
        let error = idle.next(Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ephor_cluster::ErrorKind::Gone);
    }

    #[test]
    fn few_large_events_are_too_much_for_a_reader_that_stops_reading() {
        let large = |version: u64| {
            let text = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"x":"{}"}}"#, "x".repeat(1 << 20));
            Ok(Some(WatchEvent::Modified(Value::from_json(&text).unwrap())))
        };
        let server = harness([(6..106).map(large).collect()]);
        let (mut busy, mut idle) = (server.watch_from("5"), server.watch_from("5"));
        assert_eq!(versions(&mut *busy).len(), 100);
        assert_eq!(idle.next(Duration::ZERO).unwrap_err().kind(), ephor_cluster::ErrorKind::Gone);
        // Few of them are kept for readers that come late.
        let _old = server.watch_from("95");
        let _recent = server.watch_from("104");
        assert_eq!(server.opened(), 2);
    }

    #[test]
    fn a_late_reader_joins_only_while_the_stream_knows_what_it_misses() {
        let events = KEPT as u64 * 2;
        let server = harness([script(6..=events + 5)]);
        let mut first = server.watch_from("5");
        assert_eq!(versions(&mut *first).len() as u64, events);
        let mut recent = server.watch_from(&(events + 5 - 2).to_string());
        assert_eq!(versions(&mut *recent).len(), 2);
        assert_eq!(server.opened(), 1);
        let _old = server.watch_from("6");
        assert_eq!(server.opened(), 2);
    }
}
