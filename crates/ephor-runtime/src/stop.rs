//! The signal that ends threads.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A signal that is given once and heard by everybody who holds a clone.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<bool>,
    given: Condvar,
    parent: Option<Stop>,
    /// Who fails with this one; the parent does too.
    owner: Option<Stop>,
    failure: OnceLock<String>,
}

/// How often a child looks at its parent while it waits.
const LOOK: Duration = Duration::from_millis(100);

impl Stop {
    /// A signal not given yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal of its own that is also given when this one is.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Shared { parent: Some(self.clone()), ..Shared::default() }))
    }

    /// A signal of its own that is not given with this one, but whose failure is this one's.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self(Arc::new(Shared { owner: Some(self.clone()), ..Shared::default() }))
    }

    /// Gives the signal because something cannot go on, here and wherever this one comes from. The first reason stays.
    pub fn fail(&self, reason: impl Into<String>) {
        let reason = reason.into();
        tracing::error!(reason, "stopping");
        let mut next = Some(self);
        while let Some(stop) = next {
            let _ = stop.0.failure.set(reason.clone());
            stop.stop();
            next = stop.0.parent.as_ref().or(stop.0.owner.as_ref());
        }
    }

    /// Why it was given, if something failed.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.get().cloned()
    }

    /// Gives the signal.
    pub fn stop(&self) {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.given.notify_all();
    }

    /// Whether it was given.
    pub fn is_stopped(&self) -> bool {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
            || self.0.parent.as_ref().is_some_and(Stop::is_stopped)
    }

    /// Waits as long as `wait`, or until the signal; whether it was given.
    pub fn wait(&self, wait: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if self.is_stopped() {
                return true;
            }
            let Some(left) = wait.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else {
                return false;
            };
            // Signals of parents are not heard by this condition, so they are looked for.
            let left = if self.0.parent.is_some() { left.min(LOOK) } else { left };
            let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = self.0.given.wait_timeout_while(state, left, |stopped| !*stopped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_wakes_who_waits_for_it_or_for_its_child() {
        let stop = Stop::new();
        let child = stop.child();
        let waiting = std::thread::spawn({
            let child = child.clone();
            move || child.wait(Duration::from_mins(10))
        });
        stop.stop();
        assert!(waiting.join().unwrap());
        assert!(child.is_stopped());
    }

    #[test]
    fn a_child_ends_alone() {
        let stop = Stop::new();
        stop.child().stop();
        assert!(!stop.wait(Duration::ZERO));
    }
}
