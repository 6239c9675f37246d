//! How many requests a second: a token bucket.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::options::RateLimit;

/// A bucket of tokens. A caller that finds it empty reserves the next token and waits for it, so that no other caller
/// overtakes it.
pub(crate) struct Bucket {
    rate: RateLimit,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(crate) fn new(rate: RateLimit) -> Self {
        Self { rate, state: Mutex::new((f64::from(rate.burst.max(1)), Instant::now())) }
    }

    /// Waits for a token.
    pub(crate) fn take(&self) {
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }

    /// Takes a token, saying how long it will be until it is there.
    fn reserve(&self, now: Instant) -> Duration {
        if self.rate.qps <= 0.0 {
            return Duration::ZERO;
        }
        let mut state = self.state.lock();
        let (tokens, last) = *state;
        let grown = now.saturating_duration_since(last).as_secs_f64() * self.rate.qps;
        let left = (tokens + grown).min(f64::from(self.rate.burst.max(1))) - 1.0;
        *state = (left, now.max(last));
        if left >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-left / self.rate.qps) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_burst_requests_come_at_the_rate() {
        let bucket = Bucket::new(RateLimit { qps: 10.0, burst: 2 });
        let start = Instant::now();
        let at = |millis| bucket.reserve(start + Duration::from_millis(millis)).as_millis();
        // The bucket was filled a moment before `start`; the fraction of a token that came since is cut off by the
        // size of the bucket.
        assert_eq!((at(0), at(0)), (0, 0));
        assert_eq!((at(0), at(0)), (100, 200));
        assert_eq!(at(300), 0);
        assert_eq!((at(10_000), at(10_000), at(10_000)), (0, 0, 100), "no more is saved than the burst");
    }

    #[test]
    fn without_rate_there_is_no_limit() {
        let bucket = Bucket::new(RateLimit { qps: 0.0, burst: 0 });
        assert!((0..1000).all(|_| bucket.reserve(Instant::now()).is_zero()));
    }
}
