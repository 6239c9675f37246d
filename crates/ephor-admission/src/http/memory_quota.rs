//! Memory for requests, shared out fairly among peers.
//!
//! A request takes memory as its bytes arrive, and keeps it until its answer is there. When memory runs out, a body
//! that is still arriving gives way: one of the peer that holds the most, to a peer that holds less, and within one
//! peer a younger body to an older one. So a peer that sends slowly, or a lot, takes memory from itself, never from
//! others. A request whose body is complete is never put out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

/// A holder of memory or connections: an IPv4 address, or the network that one IPv6 host can choose addresses from.
///
/// Other clients can have the address of the API server, for example behind address translation. So the requests that
/// prove to come from the API server have a holder of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Peer {
    address: IpAddr,
    is_proven: bool,
}

impl Peer {
    /// The holder for a request from this address that does or does not prove that the API server sent it.
    pub(super) fn proven(self, is_proven: bool) -> Self {
        Self { is_proven, ..self }
    }
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            v4 @ IpAddr::V4(_) => v4,
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
        };
        Self { address, is_proven: false }
    }
}

impl Default for Peer {
    /// A caller in process.
    fn default() -> Self {
        Self { address: Ipv6Addr::LOCALHOST.into(), is_proven: false }
    }
}

/// The memory for requests of a server. Clones share one state.
#[derive(Debug, Clone)]
pub(super) struct MemoryQuota(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: usize,
    peer: usize,
    state: Mutex<State>,
    /// Some memory was given back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    next: u64,
    peers: FxHashMap<Peer, Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// The bodies that still arrive, oldest first: what each holds, and how it hears that it has to go.
    arriving: BTreeMap<u64, (usize, Arc<Notify>)>,
}

/// The memory of one request. Dropping it gives the memory back.
#[derive(Debug)]
pub(super) struct Share {
    quota: MemoryQuota,
    peer: Peer,
    id: u64,
    bytes: usize,
    put_out: Arc<Notify>,
}

impl MemoryQuota {
    /// A quota of `total` bytes, of which one peer takes at most `peer`.
    pub(super) fn new(total: usize, peer: usize) -> Self {
        Self(Arc::new(Shared { total, peer: peer.min(total), state: Mutex::default(), freed: Notify::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Changed by arithmetic on maps only, which leaves no change half done.
        self.0.state.lock()
    }

    /// An empty share for a request of `peer`.
    pub(super) fn share(&self, peer: Peer) -> Share {
        let put_out = Arc::new(Notify::new());
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.peers.entry(peer).or_default().arriving.insert(id, (0, Arc::clone(&put_out)));
        drop(state);
        Share { quota: self.clone(), peer, id, bytes: 0, put_out }
    }
}

impl State {
    fn held_by(&self, peer: Peer) -> usize {
        self.peers.get(&peer).map_or(0, |held| held.bytes)
    }

    /// Puts out an arriving body in favour of `share`, if there is one that has to give way.
    fn put_one_out(&mut self, share: &Share, wanted: usize, own_limit: bool) {
        let mine = self.held_by(share.peer) + wanted;
        let greediest = self.peers.iter().filter(|(peer, held)| {
            let holds = held.arriving.values().any(|(bytes, _)| *bytes > 0);
            !own_limit && **peer != share.peer && holds && held.bytes > mine
        });
        let greediest = greediest.max_by_key(|(peer, held)| (held.bytes, **peer)).map(|(peer, _)| *peer);
        let victim = match greediest {
            Some(peer) => self.peers.get_mut(&peer).and_then(|held| {
                let largest = held.arriving.iter().max_by_key(|(_, (bytes, _))| *bytes).map(|(id, _)| *id)?;
                held.arriving.remove(&largest)
            }),
            None => self.peers.get_mut(&share.peer).and_then(|held| {
                let younger = held.arriving.range(share.id + 1..).rev().find(|(_, (bytes, _))| *bytes > 0);
                let younger = younger.map(|(id, _)| *id)?;
                held.arriving.remove(&younger)
            }),
        };
        if let Some((_, put_out)) = victim {
            put_out.notify_one();
        }
    }
}

impl Share {
    /// Takes `bytes` more, when there is enough. Waits without a limit: callers set a timeout.
    pub(super) async fn grow(&mut self, bytes: usize) {
        loop {
            // Asked for before looking, so that no word is missed.
            let quota = self.quota.clone();
            let freed = quota.0.freed.notified();
            if self.try_grow(bytes) {
                return;
            }
            freed.await;
        }
    }

    fn try_grow(&mut self, bytes: usize) -> bool {
        let quota = self.quota.clone();
        let mut state = quota.state();
        let own = state.held_by(self.peer) + bytes > quota.0.peer;
        if own || state.held + bytes > quota.0.total {
            state.put_one_out(self, bytes, own);
            return false;
        }
        state.held += bytes;
        let held = state.peers.entry(self.peer).or_default();
        held.bytes += bytes;
        self.bytes += bytes;
        if let Some(arriving) = held.arriving.get_mut(&self.id) {
            arriving.0 = self.bytes;
        }
        true
    }

    /// The same with so many bytes, for what is in memory already: it counts, whether the quota allows it or not.
    pub(super) fn resized(mut self, bytes: usize) -> Self {
        self.arrived();
        let mut state = self.quota.state();
        state.held = state.held + bytes - self.bytes;
        let held = state.peers.entry(self.peer).or_default();
        held.bytes = held.bytes + bytes - self.bytes;
        drop(state);
        self.bytes = bytes;
        self.quota.0.freed.notify_waiters();
        self
    }

    /// Up to `bytes` of it as a share of their own.
    pub(super) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { quota: self.quota.clone(), peer: self.peer, id: self.id, bytes, put_out: Arc::clone(&self.put_out) }
    }

    /// How many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Is told when this body has to give way to another.
    pub(super) fn put_out(&self) -> Arc<Notify> {
        Arc::clone(&self.put_out)
    }

    /// The body is complete: it gives way no more.
    pub(super) fn arrived(&self) {
        if let Some(held) = self.quota.state().peers.get_mut(&self.peer) {
            held.arriving.remove(&self.id);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.quota.state();
        state.held -= self.bytes;
        if let Some(held) = state.peers.get_mut(&self.peer) {
            held.bytes -= self.bytes;
            held.arriving.remove(&self.id);
            if held.bytes == 0 && held.arriving.is_empty() {
                state.peers.remove(&self.peer);
            }
        }
        drop(state);
        self.quota.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn peer(last: u8) -> Peer {
        IpAddr::from([10, 0, 0, last]).into()
    }

    fn grows(share: &mut Share, bytes: usize) -> bool {
        share.grow(bytes).now_or_never().is_some()
    }

    fn is_put_out(share: &Share) -> bool {
        share.put_out().notified().now_or_never().is_some()
    }

    #[test]
    fn a_body_takes_the_bytes_that_came_and_gives_them_back() {
        let quota = MemoryQuota::new(10, 10);
        let mut first = quota.share(peer(1));
        let mut second = quota.share(peer(1));
        assert!(grows(&mut first, 6) && grows(&mut second, 4) && !grows(&mut second, 1));
        drop(first);
        assert!(grows(&mut second, 6));
        drop(second);
        assert!(quota.state().peers.is_empty() && quota.state().held == 0);
    }

    #[test]
    fn one_peer_holds_no_more_than_its_part() {
        let quota = MemoryQuota::new(10, 6);
        let mut greedy = quota.share(peer(1));
        assert!(!grows(&mut greedy, 7) && grows(&mut greedy, 6) && !grows(&mut greedy, 1));
        assert!(grows(&mut quota.share(peer(2)), 4));
    }

    #[test]
    fn the_peer_that_holds_most_gives_way_to_one_that_holds_less() {
        let quota = MemoryQuota::new(12, 6);
        let (mut a, mut b) = (quota.share(peer(1)), quota.share(peer(2)));
        assert!(grows(&mut a, 6) && grows(&mut b, 5));
        let mut small = quota.share(peer(3));
        assert!(!grows(&mut small, 2));
        assert!(is_put_out(&a) && !is_put_out(&b));
        drop(a);
        assert!(grows(&mut small, 2));
    }

    #[test]
    fn a_complete_body_stays() {
        let quota = MemoryQuota::new(10, 10);
        let mut complete = quota.share(peer(1));
        assert!(grows(&mut complete, 10));
        complete.arrived();
        assert!(!grows(&mut quota.share(peer(2)), 1) && !is_put_out(&complete));
    }

    #[test]
    fn a_younger_body_of_the_same_peer_gives_way_to_an_older_one() {
        let quota = MemoryQuota::new(20, 10);
        let (mut older, mut younger) = (quota.share(peer(1)), quota.share(peer(1)));
        assert!(grows(&mut older, 5) && grows(&mut younger, 5));
        assert!(!grows(&mut younger, 1) && !is_put_out(&older));
        assert!(!grows(&mut older, 1) && is_put_out(&younger));
        drop(younger);
        assert!(grows(&mut older, 5));
    }

    #[test]
    fn what_is_in_memory_already_counts_and_is_shared_out() {
        let quota = MemoryQuota::new(10, 10);
        let mut first = quota.share(peer(1)).resized(12);
        assert!(!grows(&mut quota.share(peer(2)), 1));
        let part = first.split(8);
        drop(first);
        assert!(grows(&mut quota.share(peer(2)), 2) && !grows(&mut quota.share(peer(2)), 3));
        drop(part);
        assert!(quota.state().peers.is_empty() && quota.state().held == 0);
    }

    #[test]
    fn addresses_of_one_host_are_one_peer() {
        let peer = |text: &str| Peer::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    }
}
