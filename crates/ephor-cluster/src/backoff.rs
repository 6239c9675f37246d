//! How long to wait before something that failed is tried again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Pauses that double from the first to the longest, each shortened by up to a half at random, so that those who failed
/// together do not try again together.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
    failures: u32,
}

impl Backoff {
    /// Pauses from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first, failures: 0 }
    }

    /// The pause after one more failure.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next.min(self.longest);
        self.next = pause.saturating_mul(2).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        // Each `RandomState` has keys of its own.
        let random = RandomState::new().hash_one(()) >> 32;
        let share = u32::try_from(random).unwrap_or(0);
        pause.mul_f64(0.5 + 0.5 * f64::from(share) / f64::from(u32::MAX))
    }

    /// How often it has failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// It went well: the next pause is the first again.
    pub fn reset(&mut self) {
        (self.next, self.failures) = (self.first, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_vary() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for want in [100, 200, 400, 800, 1000, 1000] {
            let (pause, want) = (backoff.pause(), Duration::from_millis(want));
            assert!(pause >= want / 2 && pause <= want, "{pause:?} {want:?}");
        }
        let distinct: std::collections::BTreeSet<_> = (0..20).map(|_| backoff.pause()).collect();
        assert!(distinct.len() > 1);
        backoff.reset();
        assert!(backoff.failures() == 0 && backoff.pause() <= Duration::from_millis(100));
    }

    #[test]
    fn any_number_of_failures_leaves_a_pause() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::MAX);
        for _ in 0..1000 {
            backoff.pause();
        }
        assert_eq!(backoff.failures(), 1000);
    }
}
