//! A bell that a thread sleeps beside.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// A bell: rung by anybody, any number of times; heard once. Clones are the same bell.
#[derive(Debug, Clone, Default)]
pub struct Signal(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    rung: Mutex<bool>,
    ring: Condvar,
}

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The bell rang.
    Rung,
    /// The time was over.
    Slept,
    /// The stop signal was given.
    Stopped,
}

/// How often a sleeper looks at its stop signal.
const LOOK: Duration = Duration::from_millis(100);

impl Signal {
    /// A bell that is still.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rings.
    pub fn ring(&self) {
        *self.0.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.ring.notify_all();
    }

    /// Sleeps until it rings, the stop signal is given, or `wait` is over. Whether to go on: `false` once stopped.
    pub fn wait(&self, wait: Duration, stop: &Stop) -> bool {
        self.sleep(wait, stop) != Woken::Stopped
    }

    /// The same, telling why the sleep ended.
    pub fn sleep(&self, wait: Duration, stop: &Stop) -> Woken {
        let until = Instant::now() + wait;
        loop {
            if stop.is_stopped() {
                return Woken::Stopped;
            }
            let mut rung = self.0.rung.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::take(&mut *rung) {
                return Woken::Rung;
            }
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return Woken::Slept;
            };
            let _ = self.0.ring.wait_timeout_while(rung, left.min(LOOK), |rung| !*rung);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rang_before_is_heard_once() {
        let (signal, stop) = (Signal::new(), Stop::new());
        signal.ring();
        signal.ring();
        let begun = Instant::now();
        assert!(signal.wait(Duration::from_mins(1), &stop));
        assert!(begun.elapsed() < Duration::from_secs(30));
        let begun = Instant::now();
        assert!(signal.wait(Duration::from_millis(50), &stop));
        assert!(begun.elapsed() >= Duration::from_millis(50));
    }

    #[test]
    fn a_stop_wakes_the_sleeper() {
        let (signal, stop) = (Signal::new(), Stop::new());
        let sleeper = std::thread::spawn({
            let (signal, stop) = (signal.clone(), stop.clone());
            move || signal.wait(Duration::from_mins(10), &stop)
        });
        stop.stop();
        assert!(!sleeper.join().unwrap());
    }
}
