//! Lists and watches the objects of one kind, as the watcher of kube-rs does, in a thread of its own.
//!
//! A [`Watcher`] passes the objects of the list and every later change to its sink. It lists again when the server
//! no longer has the version of the watch, polls for kinds that are not served yet, and backs off while the cluster
//! cannot be reached. After each list the sink gets a [`StoreEvent::Reset`] with all objects. A sink of
//! [`Watcher::spawn_paged`] gets the list page by page, so that the list of a large kind is never in memory as a whole.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ephor_cluster::query::Filter;
use ephor_cluster::{
    Backoff, Cluster, ClusterError, ErrorKind, List, ListQuery, OnUnreadable, Resource, UnreadableItem, WatchEvent,
    WatchQuery,
};
use ephor_expr::{Str, Value};
use parking_lot::{Condvar, Mutex};

use crate::cancellation::CancellationToken;
use crate::threads;

/// The objects that a watcher follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchTarget {
    /// The API version.
    pub api_version: Str,
    /// The kind.
    pub kind: Str,
    /// Selects objects of the kind.
    pub filter: Filter,
    /// Whether only their metadata is requested.
    pub metadata_only: bool,
}

impl WatchTarget {
    /// All objects of a kind.
    pub fn all(api_version: &str, kind: &str) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), filter: Filter::default(), metadata_only: false }
    }

    /// The same, metadata only.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    fn list(&self) -> ListQuery {
        ListQuery {
            filter: self.filter.clone(),
            metadata_only: self.metadata_only,
            on_unreadable: OnUnreadable::Report,
            ..ListQuery::default()
        }
    }

    /// The same, in one namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.filter.namespace = Some(namespace.into());
        self
    }

    /// The object of one name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.filter.fields = ephor_cluster::FieldSelector::name(name);
        self
    }
}

/// What a sink receives.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreEvent {
    /// These objects exist and no others.
    Reset(Vec<Value>),
    /// This object was created or changed.
    Apply(Value),
    /// This object was deleted. Holds its last state.
    Delete(Value),
}

/// What a sink of a paged watcher receives. The names are those of the watcher of kube-rs.
#[derive(Debug, Clone, PartialEq)]
pub enum WatcherEvent {
    /// A list begins, also after an interrupted one. What the sink knows may be stale until [`WatcherEvent::InitDone`].
    Init,
    /// These objects of the list exist.
    InitPage(Vec<Value>),
    /// The list is complete: what it did not show since [`WatcherEvent::Init`] does not exist.
    InitDone,
    /// The list is over, and objects in it could not be read: what it did not show may exist, and stays as it is known.
    InitPartial,
    /// This object was created or changed.
    Apply(Value),
    /// This object is gone; its last state.
    Delete(Value),
}

/// The version of an object: versions of one kind grow. `None` if it has none, or one that is no number.
pub fn version_of(object: &Value) -> Option<u64> {
    object.str_at(&["metadata", "resourceVersion"])?.parse().ok()
}

/// A running watcher. It ends when its [`CancellationToken`] is cancelled.
#[derive(Debug, Clone)]
pub struct Watcher(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    synced: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

/// Objects a page when listing.
const PAGE: usize = 500;
/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often in a row a watch may fail before everything is listed again.
const WATCH_FAILURES: u32 = 5;
/// How long a kind that is not served yet is waited for, at a time.
const UNKNOWN_KIND_PAUSE: Duration = Duration::from_secs(1);
/// How long the thread waits for an event of a watch before it checks its token.
const TOKEN_POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Watcher {
    /// Starts a watcher in a thread of its own.
    pub fn spawn(
        cluster: Arc<dyn Cluster>,
        watched: WatchTarget,
        stop: CancellationToken,
        mut sink: impl FnMut(StoreEvent) + Send + 'static,
    ) -> Self {
        let mut listed = Vec::new();
        Self::spawn_paged(cluster, watched, stop, move |event| match event {
            WatcherEvent::Init => listed.clear(),
            WatcherEvent::InitPage(items) => listed.extend(items),
            WatcherEvent::InitDone => sink(StoreEvent::Reset(std::mem::take(&mut listed))),
            WatcherEvent::InitPartial => {
                for object in std::mem::take(&mut listed) {
                    sink(StoreEvent::Apply(object));
                }
            }
            WatcherEvent::Apply(object) => sink(StoreEvent::Apply(object)),
            WatcherEvent::Delete(object) => sink(StoreEvent::Delete(object)),
        })
    }

    /// Starts a watcher in a thread of its own, whose sink gets lists page by page.
    pub fn spawn_paged(
        cluster: Arc<dyn Cluster>,
        watched: WatchTarget,
        stop: CancellationToken,
        sink: impl FnMut(WatcherEvent) + Send + 'static,
    ) -> Self {
        let watcher = Self(Arc::new(Shared::default()));
        let shared = Arc::clone(&watcher.0);
        let name = format!("watcher {}", watched.kind);
        threads::spawn(name, threads::SMALL, &stop.clone(), move || run(&*cluster, &watched, &stop, &shared, sink));
        watcher
    }

    /// Whether the sink has received the first list. The list of a kind that is not served is empty.
    pub fn synced(&self) -> bool {
        self.0.synced.load(Ordering::Acquire)
    }

    /// Waits until [`Watcher::synced`], for `wait` at most. Returns whether it is.
    pub fn wait_synced(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        let mut guard = self.0.lock.lock();
        while !self.synced() {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            self.0.changed.wait_for(&mut guard, left);
        }
        true
    }
}

fn run(
    cluster: &dyn Cluster,
    watched: &WatchTarget,
    stop: &CancellationToken,
    shared: &Shared,
    mut sink: impl FnMut(WatcherEvent),
) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut relists = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut reported = BTreeSet::new();
    while !stop.is_cancelled() {
        let resource = match cluster.resolve(&watched.api_version, &watched.kind) {
            Ok(resource) => resource,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                sink(WatcherEvent::Init);
                sink(WatcherEvent::InitDone);
                synced(shared);
                stop.wait(UNKNOWN_KIND_PAUSE);
                continue;
            }
            Err(error) => {
                back_off(&error, watched, stop, &mut backoff);
                continue;
            }
        };
        sink(WatcherEvent::Init);
        let mut unreadable = BTreeSet::new();
        let pages = whole_pages(cluster, &resource, watched.list(), stop, |page| {
            unreadable.extend(page.unreadable);
            sink(WatcherEvent::InitPage(page.items));
        });
        let version = match pages {
            Ok(Some(version)) => {
                report(&watched.kind, &unreadable, &reported);
                // A sink that knows nothing yet has nothing to keep.
                let keeps = !unreadable.is_empty() && shared.synced.load(Ordering::Acquire);
                sink(if keeps { WatcherEvent::InitPartial } else { WatcherEvent::InitDone });
                reported = unreadable;
                synced(shared);
                version
            }
            Ok(None) => return,
            Err(error) => {
                back_off(&error, watched, stop, &mut backoff);
                continue;
            }
        };
        // The objects of such a kind are made up for each list (`ComponentStatus`), and no watch tells of them.
        if version.is_empty() {
            stop.wait(LONGEST_PAUSE);
            continue;
        }
        let began = Instant::now();
        match follow(cluster, &resource, watched, version, stop, &mut backoff, &mut sink) {
            Ok(()) => {}
            // The kind is gone, or the cluster forgot where the watch stood.
            Err(error) if matches!(error.kind(), ErrorKind::Gone | ErrorKind::NotFound) => {
                if let Some(pause) = pause_before_relist(&mut relists, began.elapsed()) {
                    tracing::warn!(kind = %watched.kind, %error, "cannot watch");
                    stop.wait(pause);
                }
            }
            Err(error) => back_off(&error, watched, stop, &mut backoff),
        }
    }
}

/// How long to wait before listing again after a watch of `lasted` ended because its version is too old or its kind is
/// gone. The first such end is normal and costs no pause. Only a watch that lasted resets the pauses: one event does
/// not, or a server that sends an event and then `410 Gone` would be listed without a pause.
fn pause_before_relist(relists: &mut Backoff, lasted: Duration) -> Option<Duration> {
    if lasted > LONGEST_PAUSE {
        relists.reset();
    }
    let first = relists.failures() == 0;
    let pause = relists.pause();
    (!first).then_some(pause)
}

/// Warns of each object that could not be read, once for each version of it.
fn report(kind: &str, unreadable: &BTreeSet<UnreadableItem>, reported: &BTreeSet<UnreadableItem>) {
    for item in unreadable.difference(reported) {
        tracing::warn!(kind, namespace = %item.namespace, name = %item.name, error = item.reason,
            "an object cannot be read: what is known of it stays");
    }
}

fn synced(shared: &Shared) {
    let _guard = shared.lock.lock();
    shared.synced.store(true, Ordering::Release);
    shared.changed.notify_all();
}

fn back_off(error: &ClusterError, watched: &WatchTarget, stop: &CancellationToken, backoff: &mut Backoff) {
    tracing::warn!(kind = %watched.kind, %error, "cannot watch");
    stop.wait(backoff.pause());
}

/// All pages of a list, and the version to watch from.
pub fn list(cluster: &dyn Cluster, resource: &Resource, filter: &Filter) -> Result<(Vec<Value>, Str), ClusterError> {
    let query = ListQuery { filter: filter.clone(), ..ListQuery::default() };
    let mut items = Vec::new();
    let version = pages(cluster, resource, query, &CancellationToken::new(), |page| items.extend(page))?;
    Ok((items, version.unwrap_or_default()))
}

/// Takes a list page by page, of as many objects as the query says, else 500; gives the version to watch from, `None`
/// if `stop` came first.
pub fn pages(
    cluster: &dyn Cluster,
    resource: &Resource,
    query: ListQuery,
    stop: &CancellationToken,
    mut take: impl FnMut(Vec<Value>),
) -> Result<Option<Str>, ClusterError> {
    whole_pages(cluster, resource, query, stop, |page| take(page.items))
}

fn whole_pages(
    cluster: &dyn Cluster,
    resource: &Resource,
    mut query: ListQuery,
    stop: &CancellationToken,
    mut take: impl FnMut(List),
) -> Result<Option<Str>, ClusterError> {
    if query.limit == 0 {
        query.limit = PAGE;
    }
    while !stop.is_cancelled() {
        let mut page = cluster.list(resource, &query)?;
        let (next, version) = (page.continue_token.take(), page.resource_version.clone());
        take(page);
        match next.filter(|token| !token.is_empty()) {
            Some(token) => query.continue_token = Some(token),
            None => return Ok(Some(version)),
        }
    }
    Ok(None)
}

/// Follows what happens, through watches that end without reason, until the cluster has forgotten where this one
/// stands. A watch that fails is opened again where the last one stood; what goes well resets `backoff`.
fn follow(
    cluster: &dyn Cluster,
    resource: &Resource,
    watched: &WatchTarget,
    mut version: Str,
    stop: &CancellationToken,
    backoff: &mut Backoff,
    sink: &mut impl FnMut(WatcherEvent),
) -> Result<(), ClusterError> {
    let fails_for_now = |error: &ClusterError, backoff: &Backoff| {
        error.kind() == ErrorKind::Transient && backoff.failures() < WATCH_FAILURES
    };
    while !stop.is_cancelled() {
        let query = WatchQuery {
            filter: watched.filter.clone(),
            resource_version: version.clone(),
            bookmarks: true,
            metadata_only: watched.metadata_only,
        };
        let mut watch = match cluster.watch(resource, &query) {
            Ok(watch) => watch,
            Err(error) if fails_for_now(&error, backoff) => {
                back_off(&error, watched, stop, backoff);
                continue;
            }
            Err(error) => return Err(error),
        };
        let opened = Instant::now();
        loop {
            if stop.is_cancelled() {
                return Ok(());
            }
            let event = match watch.next(TOKEN_POLL_INTERVAL) {
                Ok(Some(event)) => event,
                Ok(None) => {
                    // A watch on which nothing happens goes well when it lasts.
                    if opened.elapsed() > LONGEST_PAUSE {
                        backoff.reset();
                    }
                    continue;
                }
                Err(error) if fails_for_now(&error, backoff) => {
                    back_off(&error, watched, stop, backoff);
                    break;
                }
                Err(error) => return Err(error),
            };
            backoff.reset();
            if let Some(at) = event.object().and_then(|object| object.str_at(&["metadata", "resourceVersion"])) {
                version = at.into();
            }
            match event {
                WatchEvent::Bookmark(at) => version = at,
                WatchEvent::Added(object) | WatchEvent::Modified(object) => sink(WatcherEvent::Apply(object)),
                WatchEvent::Deleted(object) => sink(WatcherEvent::Delete(object)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ephor_cluster::{MemoryCluster, WriteOptions};
    use ephor_faults::FaultyCluster;

    use super::*;

    /// Follows `ConfigMap`s until the watch of that number is opened; how often they were listed, and how long it took.
    fn followed(watches: usize, error: fn() -> ClusterError) -> (usize, Duration) {
        let (stop, mut opened) = (CancellationToken::new(), 0);
        let view = FaultyCluster::new(Arc::new(MemoryCluster::default())).before_watches({
            let stop = stop.clone();
            move || {
                opened += 1;
                if opened >= watches {
                    stop.cancel();
                }
                Some(error())
            }
        });
        let begun = Instant::now();
        run(&view, &WatchTarget::all("v1", "ConfigMap"), &stop, &Shared::default(), |_| {});
        (view.lists(), begun.elapsed())
    }

    #[test]
    fn a_watch_that_cannot_be_opened_is_tried_again_without_listing() {
        let (lists, _) = followed(3, || ClusterError::unreachable("no route"));
        assert_eq!(lists, 1);
    }

    #[test]
    fn a_version_that_is_forgotten_again_and_again_is_not_asked_for_without_pause() {
        let (lists, took) = followed(3, || ClusterError::expired("too old"));
        assert_eq!(lists, 3);
        assert!(took >= FIRST_PAUSE, "{took:?}");
    }

    #[test]
    fn a_kind_whose_lists_have_no_version_is_not_watched() {
        let stop = CancellationToken::new();
        let view = FaultyCluster::new(Arc::new(MemoryCluster::default()))
            .changing_lists(|list| list.resource_version = Str::default())
            .before_watches(|| panic!("there is nothing to watch from"));
        std::thread::scope(|scope| {
            scope.spawn(|| run(&view, &WatchTarget::all("v1", "ConfigMap"), &stop, &Shared::default(), |_| {}));
            std::thread::sleep(FIRST_PAUSE * 3);
            stop.cancel();
        });
        assert_eq!(view.lists(), 1);
    }

    #[test]
    fn watches_that_end_soon_are_listed_again_after_growing_pauses() {
        let mut relists = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let (short, long) = (Duration::from_millis(1), LONGEST_PAUSE * 2);
        assert_eq!(pause_before_relist(&mut relists, short), None);
        for _ in 0..3 {
            assert!(pause_before_relist(&mut relists, short) >= Some(FIRST_PAUSE));
        }
        assert_eq!(pause_before_relist(&mut relists, long), None);
    }

    #[test]
    fn a_large_list_comes_page_by_page() {
        let cluster = MemoryCluster::default();
        let kind = cluster.resolve("v1", "ConfigMap").unwrap();
        for i in 0..=PAGE {
            let text = format!(r#"{{"metadata":{{"name":"m{i}","namespace":"default"}}}}"#);
            cluster.create(&kind, Value::from_json(&text).unwrap(), &WriteOptions::default()).unwrap();
        }
        let (stop, mut told) = (CancellationToken::new(), Vec::new());
        run(&cluster, &WatchTarget::all("v1", "ConfigMap"), &stop, &Shared::default(), |event| {
            told.push(match event {
                WatcherEvent::InitPage(items) => items.len().to_string(),
                other => format!("{other:?}"),
            });
            if told.last().is_some_and(|last| last == "InitDone") {
                stop.cancel();
            }
        });
        assert_eq!(told, ["Init", "500", "1", "InitDone"]);
    }

    /// What a sink is told by two lists of the `ConfigMap`s `a` and `b`. In the first and the second, `b` cannot be
    /// read if `unreadable` says so.
    fn told_twice(unreadable: [bool; 2]) -> Vec<String> {
        let cluster = MemoryCluster::default();
        let kind = cluster.resolve("v1", "ConfigMap").unwrap();
        for name in ["a", "b"] {
            let text = format!(r#"{{"metadata":{{"name":"{name}","namespace":"default"}}}}"#);
            cluster.create(&kind, Value::from_json(&text).unwrap(), &WriteOptions::default()).unwrap();
        }
        let (stop, mut lists, mut watches, mut told) = (CancellationToken::new(), 0, 0, Vec::new());
        let view = FaultyCluster::new(Arc::new(cluster))
            .changing_lists(move |list| {
                if unreadable[lists] {
                    list.items.pop();
                    list.unreadable.push(UnreadableItem { name: "b".into(), ..UnreadableItem::default() });
                }
                lists += 1;
            })
            .before_watches({
                let stop = stop.clone();
                move || {
                    watches += 1;
                    if watches == 2 {
                        stop.cancel();
                    }
                    Some(ClusterError::expired("too old"))
                }
            });
        run(&view, &WatchTarget::all("v1", "ConfigMap"), &stop, &Shared::default(), |event| {
            told.push(match event {
                WatcherEvent::InitPage(items) => items.len().to_string(),
                other => format!("{other:?}"),
            });
        });
        told
    }

    #[test]
    fn an_object_that_cannot_be_read_anew_is_not_taken_for_a_deleted_one() {
        let first = ["Init", "2", "InitDone"];
        assert_eq!(told_twice([false, false]), [first, first].concat());
        assert_eq!(told_twice([false, true]), [first, ["Init", "1", "InitPartial"]].concat());
        // A sink that knows nothing has nothing to keep, and must hear that the list is over.
        assert_eq!(told_twice([true, false]), [["Init", "1", "InitDone"], first].concat());
    }

    #[test]
    fn a_sink_that_panics_ends_the_process_and_not_just_the_watcher() {
        let process = CancellationToken::new();
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let watcher =
            Watcher::spawn(cluster, WatchTarget::all("v1", "ConfigMap"), process.child_token(), |_| panic!("no room"));
        while !process.wait(TOKEN_POLL_INTERVAL) {}
        assert_eq!(process.failure().as_deref(), Some("thread `watcher ConfigMap` panicked: no room"));
        assert!(!watcher.synced());
    }
}
