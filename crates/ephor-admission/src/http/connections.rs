//! Limits the number of connections and closes idle ones.
//!
//! A connection is counted from the moment it is accepted, before TLS. When there are too many, one without a request
//! in work is closed: of the peer that has the most, or of the newcomer's own. A connection on which nothing was asked
//! for [`Limits::idle`](super::Limits::idle) ends, whatever trickles in on it. So does one whose peer takes no part of
//! an answer for [`Limits::reading`](super::Limits::reading): HTTP/2 keeps answers until the peer opens its window.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum_server::accept::Accept;
use futures::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Limits;
use super::memory_quota::Peer;

/// The connections of a server. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    total: usize,
    peers: FxHashMap<Peer, BTreeMap<u64, Arc<Connection>>>,
}

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Connection {
    activity: Mutex<Activity>,
    /// The answers that are not sent.
    unsent: Mutex<BTreeMap<u64, Progress>>,
    next_answer: AtomicU64,
    closed: AtomicBool,
    waker: AtomicWaker,
}

#[derive(Debug)]
enum Activity {
    /// So many requests are in work.
    Busy(usize),
    /// There has been none since.
    Idle(Instant),
}

impl Connection {
    fn new() -> Self {
        Self {
            activity: Mutex::new(Activity::Idle(Instant::now())),
            unsent: Mutex::default(),
            next_answer: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        // Only whole values are assigned under this lock.
        self.activity.lock()
    }

    /// Since when nothing is asked and no answer goes on; `None` while something does.
    fn idle_since(&self) -> Option<Instant> {
        if self.unsent().values().any(|progress| *progress == Progress::Quiet) {
            return None;
        }
        match *self.activity() {
            Activity::Busy(_) => None,
            Activity::Idle(since) => Some(since),
        }
    }

    fn unsent(&self) -> MutexGuard<'_, BTreeMap<u64, Progress>> {
        // Each change is one step on the map.
        self.unsent.lock()
    }

    /// Whether an answer waits for the peer for longer than `limit`.
    fn is_stalled(&self, limit: Duration) -> bool {
        self.unsent().values().any(|progress| matches!(progress, Progress::Offered(since) if since.elapsed() > limit))
    }

    /// Marks an answer as not sent, until the guard is dropped.
    pub(super) fn unsent_answer(self: &Arc<Self>) -> Unsent {
        let id = self.next_answer.fetch_add(1, Ordering::Relaxed);
        let unsent = Unsent { connection: Arc::clone(self), id };
        unsent.moved();
        unsent
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Marks a request as in work, until the guard is dropped.
    pub(super) fn work(self: &Arc<Self>) -> Work {
        let mut activity = self.activity();
        *activity = match *activity {
            Activity::Busy(requests) => Activity::Busy(requests + 1),
            Activity::Idle(_) => Activity::Busy(1),
        };
        drop(activity);
        Work(Arc::clone(self))
    }
}

/// A request in work.
#[derive(Debug)]
pub(super) struct Work(Arc<Connection>);

impl Drop for Work {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        *activity = match *activity {
            Activity::Busy(requests) if requests > 1 => Activity::Busy(requests - 1),
            _ => Activity::Idle(Instant::now()),
        };
    }
}

/// How far an answer is that is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The peer may take a part of it since then.
    Offered(Instant),
    /// The peer waits for the next part, as in a watch in which nothing happens.
    Quiet,
}

/// An answer that is not sent.
#[derive(Debug)]
pub(super) struct Unsent {
    connection: Arc<Connection>,
    id: u64,
}

impl Unsent {
    /// The peer took another part of it, or may take one from now on.
    pub(super) fn moved(&self) {
        self.connection.unsent().insert(self.id, Progress::Offered(Instant::now()));
    }

    /// The peer took everything that there is so far, and waits for more.
    pub(super) fn quiet(&self) {
        self.connection.unsent().insert(self.id, Progress::Quiet);
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        let before = self.connection.unsent().remove(&self.id);
        let mut activity = self.connection.activity();
        // The connection was not idle until now.
        if before == Some(Progress::Quiet) && matches!(*activity, Activity::Idle(_)) {
            *activity = Activity::Idle(Instant::now());
        }
    }
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one step on one map and a count, and none of them panics.
        self.0.state.lock()
    }

    /// Counts a connection of `peer`; `None` if there is no place and none can be made.
    fn admit(&self, peer: Peer) -> Option<Admitted> {
        let limits = &self.0.limits;
        let mut state = self.state();
        let own = state.peers.get(&peer).map_or(0, BTreeMap::len);
        if own >= limits.peer_connections {
            state.close_idle(peer)?;
        } else if state.total >= limits.connections {
            let most = state.peers.iter().max_by_key(|(peer, connections)| (connections.len(), **peer));
            let most = most.filter(|(_, connections)| connections.len() > own).map_or(peer, |(peer, _)| *peer);
            state.close_idle(most)?;
        }
        let id = state.next;
        state.next += 1;
        state.total += 1;
        let connection = Arc::new(Connection::new());
        state.peers.entry(peer).or_default().insert(id, Arc::clone(&connection));
        drop(state);
        Some(Admitted { connections: self.clone(), peer, id, connection })
    }
}

impl State {
    /// Closes the connection of `peer` that has been idle longest.
    fn close_idle(&mut self, peer: Peer) -> Option<()> {
        let connections = self.peers.get(&peer)?.iter();
        let idle = connections.filter_map(|(id, connection)| Some((connection.idle_since()?, *id)));
        let (_, id) = idle.min()?;
        self.remove(peer, id)?.close();
        Some(())
    }

    fn remove(&mut self, peer: Peer, id: u64) -> Option<Arc<Connection>> {
        let connections = self.peers.get_mut(&peer)?;
        let removed = connections.remove(&id)?;
        if connections.is_empty() {
            self.peers.remove(&peer);
        }
        self.total -= 1;
        Some(removed)
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
struct Admitted {
    connections: Connections,
    peer: Peer,
    id: u64,
    connection: Arc<Connection>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.state().remove(self.peer, self.id);
    }
}

/// Accepts connections within limits.
#[derive(Debug, Clone)]
pub(super) struct Bounded(pub(super) Connections);

impl<S: Send + 'static> Accept<TcpStream, S> for Bounded {
    type Stream = Stream;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Stream, S)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let connections = self.0.clone();
        Box::pin(async move {
            let peer = Peer::from(stream.peer_addr()?.ip());
            let refused = || io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections");
            let place = connections.admit(peer).ok_or_else(refused)?;
            // Small answers must not wait for company.
            stream.set_nodelay(true)?;
            let Limits { idle, reading, .. } = connections.0.limits;
            let alarm = Box::pin(sleep_until(Instant::now() + idle.min(reading)));
            Ok((Stream { tcp: stream, place, idle, reading, alarm }, service))
        })
    }
}

/// A connection that ends when nothing is asked on it, or when its place is needed.
#[derive(Debug)]
pub(super) struct Stream {
    tcp: TcpStream,
    place: Admitted,
    idle: Duration,
    reading: Duration,
    /// When to look again whether it is idle, or its peer takes no answers.
    alarm: Pin<Box<Sleep>>,
}

impl Stream {
    pub(super) fn peer(&self) -> Peer {
        self.place.peer
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.place.connection
    }

    /// Whether the connection goes on. Has the task woken when it has to look again.
    fn look(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let connection = &self.place.connection;
        connection.waker.register(cx.waker());
        loop {
            if connection.closed.load(Ordering::Acquire) {
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "its place is needed"));
            }
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            let now = Instant::now();
            let until = connection.idle_since().unwrap_or(now) + self.idle;
            if until <= now {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing was asked"));
            }
            if connection.is_stalled(self.reading) {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "an answer is not taken"));
            }
            self.alarm.as_mut().reset(until.min(now + self.reading));
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.look(cx)?;
        Pin::new(&mut self.tcp).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.look(cx)?;
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.tcp).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn connections() -> Connections {
        Connections::new(Limits { connections: 3, peer_connections: 2, ..Limits::default() })
    }

    fn peer(last: u8) -> Peer {
        IpAddr::from([10, 0, 0, last]).into()
    }

    fn is_closed(place: &Admitted) -> bool {
        place.connection.closed.load(Ordering::Acquire)
    }

    #[tokio::test]
    async fn a_peer_with_too_many_connections_loses_its_idle_ones() {
        let connections = connections();
        let first = connections.admit(peer(1)).unwrap();
        let second = connections.admit(peer(1)).unwrap();
        let _work = first.connection.work();
        let third = connections.admit(peer(1)).unwrap();
        assert!(!is_closed(&first) && is_closed(&second) && !is_closed(&third));
    }

    #[tokio::test]
    async fn connections_with_requests_are_kept_and_a_newcomer_is_refused() {
        let connections = connections();
        let places = [1, 1].map(|last| connections.admit(peer(last)).unwrap());
        let _work = places.each_ref().map(|place| place.connection.work());
        assert!(connections.admit(peer(1)).is_none());
        assert!(connections.admit(peer(2)).is_some());
    }

    #[tokio::test]
    async fn a_watch_in_which_nothing_happens_is_neither_idle_nor_stalled() {
        let connections = connections();
        let place = connections.admit(peer(1)).unwrap();
        let answer = place.connection.unsent_answer();
        assert!(place.connection.is_stalled(Duration::ZERO) && place.connection.idle_since().is_some());
        answer.quiet();
        assert!(!place.connection.is_stalled(Duration::ZERO) && place.connection.idle_since().is_none());
        answer.moved();
        assert!(place.connection.is_stalled(Duration::ZERO));
        answer.quiet();
        let before = Instant::now();
        drop(answer);
        assert!(place.connection.idle_since().is_some_and(|since| since >= before));
    }

    #[tokio::test]
    async fn the_peer_with_most_connections_makes_place_for_another() {
        let connections = connections();
        let greedy = [1, 1].map(|last| connections.admit(peer(last)).unwrap());
        let other = connections.admit(peer(2)).unwrap();
        let newcomer = connections.admit(peer(3)).unwrap();
        assert!(is_closed(&greedy[0]) && !is_closed(&other) && !is_closed(&newcomer));
        drop((greedy, other, newcomer));
        assert_eq!(connections.state().total, 0);
    }
}
