//! What is shown, and who watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use ephor_expr::Value;
use tokio::sync::broadcast;

/// How many decisions are kept for those who come later.
const KEPT: usize = 200;
/// How far a reader may fall behind before it has to start over.
const BACKLOG: usize = 1024;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// All policies there are; replaces what was said before.
    Policies,
    /// All generated objects there are; replaces what was said before.
    Objects,
    /// One decision, in addition to those before.
    Decision,
}

impl Topic {
    /// The name of its events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::Objects => "objects",
            Self::Decision => "decision",
        }
    }
}

/// One event: its topic and its data as one line of JSON.
pub(crate) type Event = (Topic, Arc<str>);

/// What the page shows. Clones are the same view.
#[derive(Debug, Clone)]
pub struct Live(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    watchers: broadcast::Sender<Event>,
}

#[derive(Debug, Default)]
struct State {
    lists: BTreeMap<Topic, Arc<str>>,
    decisions: VecDeque<Arc<str>>,
}

impl Default for Live {
    fn default() -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), watchers: broadcast::Sender::new(BACKLOG) }))
    }
}

impl Live {
    /// A view of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows something.
    pub fn show(&self, topic: Topic, data: &Value) {
        let line: Arc<str> = data.to_json().into();
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if topic == Topic::Decision {
            if state.decisions.len() == KEPT {
                state.decisions.pop_front();
            }
            state.decisions.push_back(Arc::clone(&line));
        } else if state.lists.insert(topic, Arc::clone(&line)).as_ref() == Some(&line) {
            return;
        }
        // Under the lock, so that whoever comes now gets it once. Nobody may be watching, which is no fault.
        let _ = self.0.watchers.send((topic, line));
    }

    /// All that is shown now, and what comes after.
    pub(crate) fn watch(&self) -> (Vec<Event>, broadcast::Receiver<Event>) {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lists = state.lists.iter().map(|(topic, line)| (*topic, Arc::clone(line)));
        let decisions = state.decisions.iter().map(|line| (Topic::Decision, Arc::clone(line)));
        (lists.chain(decisions).collect(), self.0.watchers.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: usize) -> Value {
        Value::from(i64::try_from(n).unwrap())
    }

    #[test]
    fn who_comes_late_gets_the_lists_and_the_last_decisions() {
        let live = Live::new();
        for n in 0..KEPT + 5 {
            live.show(Topic::Decision, &number(n));
            live.show(Topic::Policies, &number(n));
        }
        let (now, _) = live.watch();
        assert_eq!(now.len(), KEPT + 1);
        assert_eq!(now[0], (Topic::Policies, "204".into()));
        assert_eq!(now[1], (Topic::Decision, "5".into()));
        assert_eq!(now.last(), Some(&(Topic::Decision, "204".into())));
    }

    #[test]
    fn a_list_that_is_the_same_is_not_said_again() {
        let live = Live::new();
        live.show(Topic::Objects, &number(1));
        let (_, mut events) = live.watch();
        live.show(Topic::Objects, &number(1));
        live.show(Topic::Objects, &number(2));
        assert_eq!(events.try_recv().unwrap(), (Topic::Objects, "2".into()));
    }
}
