//! Wakes a thread that waits for something to change.
//!
//! Controllers wait on a [`Notify`] between reconciliations; watches and stores notify it. Several notifications before
//! a wait count as one, as with `tokio::sync::Notify`. This one blocks a thread, and a cancelled token wakes it too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::cancellation::CancellationToken;

/// A notification that any thread sends and one thread waits for. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Notify(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    notified: Mutex<bool>,
    changed: Condvar,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A notification came.
    Notified,
    /// The time was over.
    TimedOut,
    /// The token was cancelled.
    Cancelled,
}

/// How often a waiting thread checks its token.
const TOKEN_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Notify {
    /// One without a notification.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the waiting thread, or lets its next wait return at once.
    pub fn notify(&self) {
        *self.0.notified.lock() = true;
        self.0.changed.notify_all();
    }

    /// Waits for a notification, for `wait` at most. Returns `false` if `token` was cancelled.
    pub fn wait(&self, wait: Duration, token: &CancellationToken) -> bool {
        self.wait_reason(wait, token) != Woken::Cancelled
    }

    /// Waits as [`Notify::wait`] does and returns why the wait ended.
    pub fn wait_reason(&self, wait: Duration, token: &CancellationToken) -> Woken {
        let until = Instant::now() + wait;
        loop {
            if token.is_cancelled() {
                return Woken::Cancelled;
            }
            let mut notified = self.0.notified.lock();
            if std::mem::take(&mut *notified) {
                return Woken::Notified;
            }
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return Woken::TimedOut;
            };
            let left = left.min(TOKEN_POLL_INTERVAL);
            self.0.changed.wait_while_for(&mut notified, |notified| !*notified, left);
        }
    }
}

/// A notification that several workers wait for. A worker takes the count before it looks for work, so that it misses
/// no notification in between. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct WorkNotify(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    count: Mutex<u64>,
    changed: Condvar,
}

impl WorkNotify {
    /// Wakes all workers.
    pub fn notify(&self) {
        *self.0.count.lock() += 1;
        self.0.changed.notify_all();
    }

    /// How many notifications there were.
    pub fn count(&self) -> u64 {
        *self.0.count.lock()
    }

    /// Waits for a notification after `seen`, for `wait` at most.
    pub fn wait(&self, seen: u64, wait: Duration) {
        self.0.changed.wait_while_for(&mut self.0.count.lock(), |count| *count == seen, wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_before_a_wait_count_as_one() {
        let (notify, token) = (Notify::new(), CancellationToken::new());
        notify.notify();
        notify.notify();
        let begun = Instant::now();
        assert!(notify.wait(Duration::from_mins(1), &token));
        assert!(begun.elapsed() < Duration::from_secs(30));
        let begun = Instant::now();
        assert!(notify.wait(Duration::from_millis(50), &token));
        assert!(begun.elapsed() >= Duration::from_millis(50));
    }

    #[test]
    fn a_cancelled_token_wakes_the_waiting_thread() {
        let (notify, token) = (Notify::new(), CancellationToken::new());
        let waiting = std::thread::spawn({
            let (notify, token) = (notify.clone(), token.clone());
            move || notify.wait(Duration::from_mins(10), &token)
        });
        token.cancel();
        assert!(!waiting.join().unwrap());
    }
}
