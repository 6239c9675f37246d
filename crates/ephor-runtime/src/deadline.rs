//! Ends evaluations when their time is over, and bounds how many build much at once.
//!
//! The engine asks a [`Deadline`] every so many steps whether to go on, and before a rule builds more than
//! [`Budget::LIGHT_BYTES`](ephor_expr::budget::Budget::LIGHT_BYTES). A rule's own budget bounds one rule;
//! [`LargeEvaluations`] bounds all evaluations of a role together, so that rules of one namespace, each within its
//! budget, do not take more memory than the process has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ephor_expr::budget::Interrupt;
use parking_lot::{Condvar, Mutex};

/// How many evaluations may build much at once.
const LARGE_AT_ONCE: usize = 2;
/// How many more may wait for that: each that waits keeps a thread from others.
const LARGE_WAITING: usize = 16;

/// The end of the evaluations of one request.
#[derive(Debug)]
pub struct Deadline {
    until: Instant,
    steps: AtomicU64,
    over: AtomicBool,
    large: Option<Place>,
}

/// A place among the [`LargeEvaluations`], if it is held.
#[derive(Debug)]
struct Place {
    among: Arc<LargeEvaluations>,
    is_held: AtomicBool,
}

impl Deadline {
    /// For a thread that serves others too: over after `timeout` or `steps`, or as soon as a rule builds much.
    pub fn immediate(timeout: Duration, steps: u64) -> Self {
        Self {
            until: Instant::now() + timeout,
            steps: AtomicU64::new(steps),
            over: AtomicBool::new(false),
            large: None,
        }
    }

    /// For a thread that may wait: over at `until`. Before a rule builds much it waits for a place among `large`.
    pub fn blocking(until: Instant, large: &Arc<LargeEvaluations>) -> Self {
        let large = Place { among: Arc::clone(large), is_held: AtomicBool::new(false) };
        Self { until, steps: AtomicU64::new(u64::MAX), over: AtomicBool::new(false), large: Some(large) }
    }

    /// Whether it ended an evaluation: rules that it found unfinished are errors.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some(place) = &self.large
            && place.is_held.load(Ordering::Relaxed)
        {
            place.among.leave();
        }
    }
}

impl Interrupt for Deadline {
    fn is_due(&self, steps: u64) -> bool {
        let left = self.steps.load(Ordering::Relaxed).saturating_sub(steps);
        self.steps.store(left, Ordering::Relaxed);
        let due = left == 0 || Instant::now() >= self.until;
        self.over.fetch_or(due, Ordering::Relaxed);
        due
    }

    fn may_build_much(&self) -> bool {
        let may = self.large.as_ref().is_some_and(|place| {
            if !place.is_held.load(Ordering::Relaxed) && place.among.enter(self.until) {
                place.is_held.store(true, Ordering::Relaxed);
            }
            place.is_held.load(Ordering::Relaxed)
        });
        self.over.fetch_or(!may, Ordering::Relaxed);
        may
    }
}

/// The evaluations of a role that build much. The others wait until one of them is done.
#[derive(Debug, Default)]
pub struct LargeEvaluations {
    places: Mutex<Places>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    waiting: usize,
}

impl LargeEvaluations {
    /// Waits for a place; whether there is one before `until`.
    fn enter(&self, until: Instant) -> bool {
        let mut places = self.places.lock();
        if places.taken >= LARGE_AT_ONCE && places.waiting >= LARGE_WAITING {
            return false;
        }
        places.waiting += 1;
        while places.taken >= LARGE_AT_ONCE && !self.left.wait_until(&mut places, until).timed_out() {}
        places.waiting -= 1;
        let is_free = places.taken < LARGE_AT_ONCE;
        places.taken += usize::from(is_free);
        is_free
    }

    fn leave(&self) {
        self.places.lock().taken -= 1;
        self.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(large: &Arc<LargeEvaluations>, wait: Duration) -> Deadline {
        Deadline::blocking(Instant::now() + wait, large)
    }

    #[test]
    fn few_requests_build_much_at_once_and_the_next_takes_the_place_of_one_that_ends() {
        let large = Arc::default();
        let (first, second) = (deadline(&large, Duration::ZERO), deadline(&large, Duration::ZERO));
        assert!(first.may_build_much() && second.may_build_much());
        assert!(first.may_build_much(), "it has its place for all of its rules");
        let third = deadline(&large, Duration::from_millis(1));
        assert!(!third.may_build_much() && third.is_over(), "its time is over");
        drop(first);
        assert!(deadline(&large, Duration::ZERO).may_build_much());
        let waiting = deadline(&large, Duration::from_mins(1));
        let thread = std::thread::spawn(move || waiting.may_build_much());
        drop(second);
        assert!(thread.join().unwrap());
    }

    #[test]
    fn an_attempt_on_a_thread_that_serves_others_waits_for_no_place() {
        let attempt = Deadline::immediate(Duration::from_mins(1), u64::MAX);
        assert!(!attempt.may_build_much() && attempt.is_over());
    }

    #[test]
    fn no_more_than_a_bounded_number_waits() {
        let large = Arc::<LargeEvaluations>::default();
        *large.places.lock() = Places { taken: LARGE_AT_ONCE, waiting: LARGE_WAITING };
        assert!(!deadline(&large, Duration::from_mins(10)).may_build_much(), "it is told at once");
    }
}
