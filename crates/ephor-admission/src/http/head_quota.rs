//! The memory of requests before their bodies: streams, tasks, headers.
//!
//! It is apart from the memory of bodies ([`super::memory_quota`]), where requests wait for room: what waits is in
//! memory, too. A request that finds no room here is refused at once.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::memory_quota::Peer;

/// How many bytes the heads of all requests may take, and those of one peer. Clones share one count.
#[derive(Debug, Clone)]
pub(super) struct HeadQuota(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: usize,
    peer: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    peers: FxHashMap<Peer, usize>,
}

/// The room of one head. Dropping it gives the room back.
#[derive(Debug)]
pub(super) struct HeadRoom {
    quota: HeadQuota,
    peer: Peer,
    bytes: usize,
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All peers together have too much.
    Together,
    /// The peer itself has.
    Peer,
}

impl HeadQuota {
    /// A quota of `total` bytes, of which one peer takes at most `peer`.
    pub(super) fn new(total: usize, peer: usize) -> Self {
        Self(Arc::new(Shared { total, peer, taken: Mutex::default() }))
    }

    /// Takes room for a head.
    pub(super) fn take(&self, peer: Peer, bytes: usize) -> Result<HeadRoom, Full> {
        let mut taken = self.0.taken.lock();
        let own = taken.peers.get(&peer).copied().unwrap_or_default();
        if own + bytes > self.0.peer {
            return Err(Full::Peer);
        }
        if taken.all + bytes > self.0.total {
            return Err(Full::Together);
        }
        taken.all += bytes;
        taken.peers.insert(peer, own + bytes);
        Ok(HeadRoom { quota: self.clone(), peer, bytes })
    }
}

impl Drop for HeadRoom {
    fn drop(&mut self) {
        let mut taken = self.quota.0.taken.lock();
        taken.all -= self.bytes;
        if let Some(own) = taken.peers.get_mut(&self.peer) {
            *own -= self.bytes;
            if *own == 0 {
                taken.peers.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_takes_its_part_and_all_take_no_more_than_there_is() {
        let peer = |last: u8| Peer::from(std::net::IpAddr::from([10, 0, 0, last]));
        let quota = HeadQuota::new(10, 6);
        let first = quota.take(peer(1), 6).unwrap();
        assert_eq!(quota.take(peer(1), 1).unwrap_err(), Full::Peer);
        let second = quota.take(peer(2), 4).unwrap();
        assert_eq!(quota.take(peer(3), 1).unwrap_err(), Full::Together);
        drop(first);
        assert!(quota.take(peer(1), 6).is_ok());
        drop(second);
        assert!(quota.0.taken.lock().peers.is_empty());
    }
}
