//! The event stream of the page: the latest lists and the last decisions.
//!
//! [`Live::show`] takes each change in, `Live::watch` gives a page all that is shown now and every change after.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ephor_expr::Value;
use parking_lot::Mutex;
use tokio::sync::broadcast;

/// How many decisions a page gets that opens late.
const DECISIONS: usize = 500;
/// How many requests without a matching policy it gets.
const REQUESTS: usize = 100;
/// How far a reader may fall behind before it has to start over.
const BACKLOG: usize = 1024;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// All policies. Replaces the list before.
    Policies,
    /// All generated objects. Replaces the list before.
    Objects,
    /// One decision, in addition to those before.
    Decision,
    /// One request that no policy matched, in addition to those before.
    Request,
}

impl Topic {
    /// The name of its events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::Objects => "objects",
            Self::Decision => "decision",
            Self::Request => "request",
        }
    }

    /// How many events of the topic are kept. `None`: an event replaces the one before.
    fn kept(self) -> Option<usize> {
        match self {
            Self::Policies | Self::Objects => None,
            Self::Decision => Some(DECISIONS),
            Self::Request => Some(REQUESTS),
        }
    }
}

/// One event of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// What it is about.
    pub(crate) topic: Topic,
    /// Its number among the events of the topic, from 1, so that a page can count those that it never got.
    pub(crate) number: u64,
    /// Its data, one line of JSON.
    pub(crate) data: Arc<str>,
}

/// What the page shows. Clones are the same view.
#[derive(Debug, Clone)]
pub struct Live(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    topics: Mutex<BTreeMap<Topic, Shown>>,
    watchers: broadcast::Sender<Event>,
}

/// What is shown of a topic.
#[derive(Debug, Default)]
struct Shown {
    /// The number of the latest event.
    number: u64,
    events: VecDeque<Event>,
}

impl Default for Live {
    fn default() -> Self {
        Self(Arc::new(Shared { topics: Mutex::default(), watchers: broadcast::Sender::new(BACKLOG) }))
    }
}

impl Live {
    /// A view of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows something.
    pub fn show(&self, topic: Topic, data: &Value) {
        let data: Arc<str> = data.to_json().into();
        let mut topics = self.0.topics.lock();
        let shown = topics.entry(topic).or_default();
        let replaces = topic.kept().is_none();
        if replaces && shown.events.back().is_some_and(|last| last.data == data) {
            return;
        }
        while shown.events.len() >= topic.kept().unwrap_or(1) {
            shown.events.pop_front();
        }
        shown.number += 1;
        let event = Event { topic, number: shown.number, data };
        shown.events.push_back(event.clone());
        // The lock is still held, so that a page that opens now gets the event once. It fails if no page is open.
        let _ = self.0.watchers.send(event);
    }

    /// All that is shown now, and what comes after.
    pub(crate) fn watch(&self) -> (Vec<Event>, broadcast::Receiver<Event>) {
        let topics = self.0.topics.lock();
        let now = topics.values().flat_map(|shown| shown.events.iter().cloned()).collect();
        (now, self.0.watchers.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: u64) -> Value {
        Value::from(i64::try_from(n).unwrap())
    }

    fn seen(event: &Event) -> (Topic, u64, &str) {
        (event.topic, event.number, &event.data)
    }

    #[test]
    fn a_late_page_gets_the_lists_the_last_decisions_and_how_many_there_were() {
        let live = Live::new();
        for n in 1..=505 {
            live.show(Topic::Decision, &number(n));
            live.show(Topic::Policies, &number(n));
        }
        let (now, _) = live.watch();
        assert_eq!(now.len(), DECISIONS + 1);
        assert_eq!(seen(&now[0]), (Topic::Policies, 505, "505"));
        assert_eq!(seen(&now[1]), (Topic::Decision, 6, "6"));
        assert_eq!(seen(&now[DECISIONS]), (Topic::Decision, 505, "505"));
    }

    #[test]
    fn requests_without_policies_displace_no_decision() {
        let live = Live::new();
        live.show(Topic::Decision, &number(0));
        for n in 0..1000 {
            live.show(Topic::Request, &number(n));
        }
        let (now, _) = live.watch();
        assert_eq!(now.len(), 1 + REQUESTS);
        assert_eq!(now[0].topic, Topic::Decision);
    }

    #[test]
    fn a_list_that_did_not_change_is_not_sent_again() {
        let live = Live::new();
        live.show(Topic::Objects, &number(1));
        let (_, mut events) = live.watch();
        live.show(Topic::Objects, &number(1));
        live.show(Topic::Objects, &number(2));
        assert_eq!(seen(&events.try_recv().unwrap()), (Topic::Objects, 2, "2"));
    }
}
