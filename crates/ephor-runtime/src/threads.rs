//! Starts threads whose panics end the process.
//!
//! A process that has lost a thread would go on with stale data: it answers, but by outdated policies. So a thread
//! that panics, or cannot be started, fails the [`CancellationToken`] it works under: the process ends with the reason
//! and an exit code, and Kubernetes restarts it. Work in which user input can cause a panic is caught before that, one
//! piece at a time: reviews, audits, and work of the background controller (`catch_unwind`).
//!
//! Locks follow one of two rules. Where one step changes a value or a map, a panic cannot leave half of the change: a
//! lock of `parking_lot` guards it, which a panic just unlocks. State that changes in several steps is in a
//! [`PoisonMutex`](crate::poison::PoisonMutex).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

use crate::cancellation::CancellationToken;

/// The stack of a thread that evaluates policies.
pub const LARGE: usize = 4 << 20;
/// The stack of a thread of which there are many.
pub const SMALL: usize = 512 << 10;

/// Runs `run` in a thread with a stack of `stack` bytes. If it panics or cannot be started, `stop` fails.
pub fn spawn(
    name: impl Into<String>,
    stack: usize,
    stop: &CancellationToken,
    run: impl FnOnce() + Send + 'static,
) -> Option<JoinHandle<()>> {
    let (name, owned) = (name.into(), stop.clone());
    let supervised = {
        let name = name.clone();
        move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                owned.fail(format!("thread `{name}` panicked: {}", words(&*panic)));
            }
        }
    };
    let spawned = Builder::new().name(name.clone()).stack_size(stack).spawn(supervised);
    spawned.inspect_err(|error| stop.fail(format!("cannot start thread `{name}`: {error}"))).ok()
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_all_that_the_thread_works_for() {
        let process = CancellationToken::new();
        let serving = process.detached_token();
        let term = serving.child_token();
        spawn("watcher", SMALL, &term, || panic!("as asked")).unwrap().join().unwrap();
        for stop in [&process, &serving, &term] {
            assert!(stop.is_cancelled());
        }
        assert_eq!(process.failure().as_deref(), Some("thread `watcher` panicked: as asked"));
    }

    #[test]
    fn a_thread_that_ends_fails_nothing() {
        let stop = CancellationToken::new();
        spawn("short", SMALL, &stop, || {}).unwrap().join().unwrap();
        assert!(!stop.is_cancelled() && stop.failure().is_none());
    }
}
