//! A bounded queue of Events between the code that records them and the threads that write them.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

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
        let mut events = self.events.lock();
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
        let mut events = self.events.lock();
        if events.is_empty() {
            self.arrived.wait_for(&mut events, wait);
        }
        events.pop_front()
    }
}
