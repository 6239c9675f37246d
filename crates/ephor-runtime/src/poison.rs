//! A lock for state that changes in several steps.
//!
//! A thread that panics between two steps leaves state whose parts disagree. A [`PoisonMutex`] gives such state to no
//! thread again: each thread that locks it panics too, so that its supervisor ([`threads`](crate::threads)) ends the
//! process. A lock over a single value or map, which one step changes, needs none of this: it is one of `parking_lot`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard};

/// A mutex that panics when it is locked after another thread panicked under it.
#[derive(Debug, Default)]
pub struct PoisonMutex<T>(Mutex<T>);

impl<T> PoisonMutex<T> {
    /// A lock over `state`.
    pub const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    /// Locks the state.
    ///
    /// # Panics
    ///
    /// If a thread panicked while it held the lock.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let Some(guard) = self.lock_whole() else {
            panic!("another thread panicked while it changed this state; its own message stands before this one")
        };
        guard
    }

    /// Locks the state; `None` if a thread panicked while it held the lock. For `Drop`, where a second panic would
    /// abort the process without a reason.
    pub fn lock_whole(&self) -> Option<MutexGuard<'_, T>> {
        self.0.lock().ok()
    }

    /// Runs a piece of work that uses the state. A panic outside of the lock ends this piece only and gives `None`. A
    /// panic under the lock goes on, because all other work uses that state too.
    pub fn contain<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(result) => Some(result),
            Err(panic) if self.0.is_poisoned() => resume_unwind(panic),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CancellationToken;
    use crate::threads::{SMALL, spawn};

    fn poisoned() -> PoisonMutex<u8> {
        let state = PoisonMutex::new(0);
        let half = catch_unwind(AssertUnwindSafe(|| {
            *state.lock() = 1;
            let _changing = state.lock_whole();
            panic!("half-way")
        }));
        assert!(half.is_err());
        state
    }

    #[test]
    fn a_half_changed_state_is_given_to_no_thread() {
        let state = poisoned();
        assert!(state.lock_whole().is_none());
        assert!(catch_unwind(AssertUnwindSafe(|| *state.lock())).is_err());
    }

    #[test]
    fn a_thread_that_meets_a_half_changed_state_ends_the_process() {
        let (state, stop) = (poisoned(), CancellationToken::new());
        spawn("worker", SMALL, &stop, move || drop(state.lock())).unwrap().join().unwrap();
        let reason = stop.failure().unwrap();
        assert!(reason.starts_with("thread `worker` panicked: another thread panicked"), "{reason}");
    }

    #[test]
    fn a_panic_ends_one_piece_of_work_unless_it_leaves_the_state_half_changed() {
        let state = PoisonMutex::new(0);
        assert_eq!(state.contain(|| 7), Some(7));
        assert_eq!(state.contain(|| -> u8 { panic!("as asked") }), None);
        let under_the_lock = || {
            let _changing = state.lock();
            panic!("as asked")
        };
        assert!(catch_unwind(AssertUnwindSafe(|| state.contain(|| -> u8 { under_the_lock() }))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| state.contain(|| *state.lock()))).is_err());
    }
}
