//! Cancellation of threads.
//!
//! A [`CancellationToken`] is shared between the code that starts threads and the threads. A thread checks it between
//! pieces of work and sleeps on it with [`CancellationToken::wait`]. The names follow `tokio_util`'s type of the same
//! name. That type is not used because threads here block, and because this one also carries the reason of a failure:
//! [`CancellationToken::fail`] cancels the token of the process, which then exits with that reason.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Tells threads to end. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    cancelled: Mutex<bool>,
    changed: Condvar,
    parent: Option<CancellationToken>,
    /// The token that fails when this one fails, but that does not cancel this one.
    supervisor: Option<CancellationToken>,
    failure: OnceLock<String>,
}

/// How often a waiting child checks its parent.
const PARENT_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl CancellationToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is also cancelled when this one is.
    #[must_use]
    pub fn child_token(&self) -> Self {
        Self(Arc::new(Shared { parent: Some(self.clone()), ..Shared::default() }))
    }

    /// A token that is not cancelled with this one, but whose failure fails this one.
    #[must_use]
    pub fn detached_token(&self) -> Self {
        Self(Arc::new(Shared { supervisor: Some(self.clone()), ..Shared::default() }))
    }

    /// Cancels this token and all tokens it was derived from, and records why. The first reason is kept.
    pub fn fail(&self, reason: impl Into<String>) {
        let reason = reason.into();
        tracing::error!(reason, "stopping");
        let mut next = Some(self);
        while let Some(token) = next {
            let _ = token.0.failure.set(reason.clone());
            token.cancel();
            next = token.0.parent.as_ref().or(token.0.supervisor.as_ref());
        }
    }

    /// The reason given to [`CancellationToken::fail`], if it was called.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.get().cloned()
    }

    /// Cancels this token and its children.
    pub fn cancel(&self) {
        *self.0.cancelled.lock() = true;
        self.0.changed.notify_all();
    }

    /// Whether this token or one of its parents is cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.cancelled.lock() || self.0.parent.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Sleeps for `wait` or until the token is cancelled. Returns whether it is cancelled.
    pub fn wait(&self, wait: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if self.is_cancelled() {
                return true;
            }
            let Some(left) = wait.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else {
                return false;
            };
            // A parent notifies only its own condition variable, so a child polls it.
            let left = if self.0.parent.is_some() { left.min(PARENT_POLL_INTERVAL) } else { left };
            self.0.changed.wait_while_for(&mut self.0.cancelled.lock(), |cancelled| !*cancelled, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_a_token_wakes_threads_that_wait_for_its_children() {
        let token = CancellationToken::new();
        let child = token.child_token();
        let waiting = std::thread::spawn({
            let child = child.clone();
            move || child.wait(Duration::from_mins(10))
        });
        token.cancel();
        assert!(waiting.join().unwrap());
        assert!(child.is_cancelled());
    }

    #[test]
    fn cancelling_a_child_leaves_its_parent() {
        let token = CancellationToken::new();
        token.child_token().cancel();
        assert!(!token.wait(Duration::ZERO));
    }
}
