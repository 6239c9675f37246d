//! A bounded queue of Events between the code that records them and the threads that write them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::event::Event;

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    limit: usize,
    events: Mutex<VecDeque<Event>>,
    arrived: Condvar,
}

impl Queue {
    /// A queue of at most `limit` events.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, events: Mutex::default(), arrived: Condvar::new() }
    }

    /// Takes an event in; whether there was room for it.
    pub(super) fn push(&self, event: Event) -> bool {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() >= self.limit {
            return false;
        }
        events.push_back(event);
        drop(events);
        self.arrived.notify_one();
        true
    }

    /// The next event, waiting at most as long as `wait`.
    pub(super) fn pop(&self, wait: Duration) -> Option<Event> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.is_empty() {
            events = self.arrived.wait_timeout(events, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        events.pop_front()
    }
}
