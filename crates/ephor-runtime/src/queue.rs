//! A keyed work queue: each piece of work is queued once, however often it is added.
//!
//! Work that is due is given out in turns, one piece for each namespace: a namespace with a long backlog makes others
//! wait for one piece of its work, not for all of it. Within a namespace, work comes in the order in which it is due.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeFrom;

use ephor_expr::Str;

/// A moment, in milliseconds.
pub type Moment = u64;

/// The result of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is done.
    Done,
    /// It is to be done again, after that many milliseconds.
    Later(Moment),
    /// It failed: again after that many milliseconds.
    Retry(Moment),
    /// It failed: again after a pause that grows.
    Failed,
}

/// The first pause after a failure, and the longest.
const FIRST_PAUSE: Moment = 500;
const LONGEST_PAUSE: Moment = 60_000;

/// Work that was settled, as the queue knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How long ago it was due first, in milliseconds.
    pub lag: Moment,
    /// How often it has failed in a row.
    pub failures: u32,
}

#[derive(Debug, Clone)]
struct Item {
    due: Moment,
    /// Since when it is to be done; tries that failed do not change it.
    since: Moment,
    failures: u32,
    running: bool,
    /// When it is to be done again, if it was enqueued while it was being done.
    again: Option<Moment>,
    order: u64,
    /// In whose turn it is, once it was seen to be due.
    turn: Option<Str>,
}

/// The queue.
#[derive(Debug)]
pub struct Queue<T> {
    items: BTreeMap<T, Item>,
    /// Work that was not yet seen to be due.
    waiting: BTreeSet<(Moment, u64, T)>,
    /// Work that is due, by namespace; none is empty.
    due: BTreeMap<Str, BTreeSet<(Moment, u64, T)>>,
    /// The namespaces that have work that is due, in the order of their turns.
    turns: VecDeque<Str>,
    order: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            items: BTreeMap::new(),
            waiting: BTreeSet::new(),
            due: BTreeMap::new(),
            turns: VecDeque::new(),
            order: 0,
        }
    }
}

impl<T: Ord + Clone> Queue<T> {
    /// Asks for work now.
    pub fn add(&mut self, task: T, now: Moment) {
        self.add_at(task, now, now);
    }

    /// Asks for work at `due`; work that is asked for already is done at the earlier moment.
    pub fn add_at(&mut self, task: T, due: Moment, now: Moment) {
        self.order += 1;
        let order = self.order;
        if let Some(item) = self.items.get_mut(&task) {
            if item.running {
                item.again = Some(item.again.map_or(due, |earlier| earlier.min(due)));
            } else if item.turn.is_none() && due < item.due {
                self.waiting.remove(&(item.due, item.order, task.clone()));
                (item.due, item.order) = (due, order);
                item.since = item.since.min(due);
                self.waiting.insert((due, order, task));
            }
            return;
        }
        self.waiting.insert((due, order, task.clone()));
        let since = due.max(now);
        self.items.insert(task, Item { due, since, failures: 0, running: false, again: None, order, turn: None });
    }

    /// The next work that is due; it is not given out again before [`Queue::settle`].
    ///
    /// `namespace` says in whose turn a piece of work is. It is asked once, when the work is due.
    pub fn take(&mut self, now: Moment, namespace: impl Fn(&T) -> Str) -> Option<T> {
        while self.waiting.first().is_some_and(|(due, ..)| *due <= now) {
            let Some(work) = self.waiting.pop_first() else { break };
            let turn = namespace(&work.2);
            if let Some(item) = self.items.get_mut(&work.2) {
                item.turn = Some(turn.clone());
            }
            if !self.due.contains_key(&turn) {
                self.turns.push_back(turn.clone());
            }
            self.due.entry(turn).or_default().insert(work);
        }
        let turn = self.turns.pop_front()?;
        let work = self.due.get_mut(&turn)?;
        let (_, _, task) = work.pop_first()?;
        if work.is_empty() {
            self.due.remove(&turn);
        } else {
            self.turns.push_back(turn);
        }
        if let Some(item) = self.items.get_mut(&task) {
            item.running = true;
            item.again = None;
            item.turn = None;
        }
        Some(task)
    }

    /// Reports the result of work that was taken.
    pub fn settle(&mut self, task: T, settled: Settled, now: Moment) -> Ended {
        let Some(item) = self.items.get_mut(&task) else { return Ended { lag: 0, failures: 0 } };
        item.running = false;
        let lag = now.saturating_sub(item.since);
        let pause = match settled {
            Settled::Done => {
                item.failures = 0;
                None
            }
            Settled::Later(pause) => Some(pause),
            Settled::Retry(pause) => {
                item.failures += 1;
                Some(pause)
            }
            Settled::Failed => {
                item.failures += 1;
                Some(FIRST_PAUSE.saturating_mul(1 << (item.failures - 1).min(10)).min(LONGEST_PAUSE))
            }
        };
        // What happened meanwhile ends every pause: it may be what was waited for, and it is newer than what was seen.
        let asked = item.again.take().map(|due| due.max(now));
        let due = [pause.map(|pause| now + pause), asked].into_iter().flatten().min();
        let ended = Ended { lag, failures: item.failures };
        let Some(due) = due else {
            self.items.remove(&task);
            return ended;
        };
        if settled == Settled::Done {
            item.since = due;
        }
        self.order += 1;
        (item.due, item.order) = (due, self.order);
        self.waiting.insert((due, self.order, task));
        ended
    }

    /// Whether no work is under way and none is due.
    pub fn is_quiet(&self, now: Moment) -> bool {
        // Work under way does not wait.
        self.items.len() == self.waiting.len() && self.waiting.first().is_none_or(|(due, ..)| *due > now)
    }

    /// Whether work is asked for or under way.
    pub fn holds(&self, task: &T) -> bool {
        self.items.contains_key(task)
    }

    /// Removes work that has not been taken.
    pub fn forget(&mut self, task: &T) {
        if self.items.get(task).is_none_or(|item| item.running) {
            return;
        }
        let Some(item) = self.items.remove(task) else { return };
        let work = (item.due, item.order, task.clone());
        let Some(turn) = item.turn else {
            self.waiting.remove(&work);
            return;
        };
        if let Some(due) = self.due.get_mut(&turn) {
            due.remove(&work);
            if due.is_empty() {
                self.due.remove(&turn);
                self.turns.retain(|other| *other != turn);
            }
        }
    }

    /// When the next work is due.
    pub fn next_due(&self) -> Option<Moment> {
        let due = self.due.values().filter_map(BTreeSet::first);
        self.waiting.first().into_iter().chain(due).map(|(due, ..)| *due).min()
    }

    /// Work that is asked for or under way, from `range` on, in its order, and since when it is to be done.
    pub fn range(&self, range: RangeFrom<T>) -> impl Iterator<Item = (&T, Moment)> {
        self.items.range(range).map(|(task, item)| (task, item.since))
    }

    /// All work that is asked for or under way, and since when it is to be done.
    pub fn iter(&self) -> impl Iterator<Item = (&T, Moment)> {
        self.items.iter().map(|(task, item)| (task, item.since))
    }

    /// How much work is asked for or under way.
    pub fn depth(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str) -> String {
        name.to_owned()
    }

    /// Takes work; its namespace is what stands before a dot.
    fn take(queue: &mut Queue<String>, now: Moment) -> Option<String> {
        queue.take(now, |task| Str::new(task.split_once('.').map_or("", |(namespace, _)| namespace)))
    }

    #[test]
    fn work_is_done_once_however_often_it_is_asked_for() {
        let mut queue = Queue::default();
        for _ in 0..3 {
            queue.add(task("a"), 0);
        }
        assert_eq!(take(&mut queue, 0), Some(task("a")));
        assert_eq!(take(&mut queue, 0), None);
        queue.settle(task("a"), Settled::Done, 0);
        assert_eq!((take(&mut queue, 0), queue.depth()), (None, 0));
    }

    #[test]
    fn what_happens_while_work_is_under_way_makes_it_run_again() {
        let mut queue = Queue::default();
        queue.add(task("a"), 0);
        take(&mut queue, 0);
        queue.add(task("a"), 1);
        assert_eq!(take(&mut queue, 1), None, "never twice at the same time");
        queue.settle(task("a"), Settled::Done, 2);
        assert_eq!(take(&mut queue, 2), Some(task("a")));
    }

    #[test]
    fn failures_are_put_off_for_longer_and_longer_until_something_happens() {
        let mut queue = Queue::default();
        queue.add(task("a"), 0);
        let mut now = 0;
        for pause in [500, 1000, 2000] {
            assert!(take(&mut queue, now).is_some());
            queue.settle(task("a"), Settled::Failed, now);
            assert_eq!(queue.next_due(), Some(now + pause));
            now += pause;
        }
        take(&mut queue, now);
        queue.settle(task("a"), Settled::Failed, now);
        queue.add(task("a"), now);
        assert_eq!(queue.next_due(), Some(now));
    }

    #[test]
    fn what_happens_while_work_is_under_way_ends_every_pause() {
        for settled in [Settled::Done, Settled::Later(40_000), Settled::Retry(40_000), Settled::Failed] {
            let mut queue = Queue::default();
            queue.add(task("a"), 0);
            take(&mut queue, 0);
            queue.add_at(task("a"), 900, 1);
            queue.add_at(task("a"), 3, 2);
            queue.settle(task("a"), settled, 2);
            assert_eq!(queue.next_due(), Some(3), "{settled:?}");
            take(&mut queue, 3);
            queue.settle(task("a"), Settled::Later(5_000), 3);
            assert_eq!(queue.next_due(), Some(5_003), "it counts once");
        }
    }

    #[test]
    fn work_comes_in_the_order_in_which_it_was_asked_for() {
        let mut queue = Queue::default();
        queue.add(task("b"), 0);
        queue.add(task("a"), 0);
        queue.add_at(task("c"), 5, 0);
        assert_eq!(
            (take(&mut queue, 1), take(&mut queue, 1), take(&mut queue, 1)),
            (Some(task("b")), Some(task("a")), None)
        );
        assert_eq!(take(&mut queue, 5), Some(task("c")));
    }

    #[test]
    fn a_namespace_with_much_work_makes_others_wait_for_one_piece_of_it() {
        let mut queue = Queue::default();
        for number in 0..100 {
            queue.add(format!("a.{number:02}"), 0);
        }
        assert_eq!(take(&mut queue, 1), Some(task("a.00")));
        queue.add(task("b.0"), 2);
        queue.add(task("b.1"), 2);
        queue.add(task("c"), 2);
        let order: Vec<String> = std::iter::from_fn(|| take(&mut queue, 3)).take(6).collect();
        assert_eq!(order, ["a.01", "b.0", "c", "a.02", "b.1", "a.03"]);
    }

    #[test]
    fn forgotten_work_leaves_no_turn_behind() {
        let mut queue = Queue::default();
        for name in ["a.0", "b.0", "b.1", "c.0"] {
            queue.add(task(name), 0);
        }
        assert_eq!(take(&mut queue, 0), Some(task("a.0")));
        for name in ["b.0", "b.1"] {
            queue.forget(&task(name));
        }
        assert_eq!(queue.next_due(), Some(0));
        assert_eq!((take(&mut queue, 0), take(&mut queue, 0)), (Some(task("c.0")), None));
        queue.add(task("b.0"), 1);
        assert_eq!((take(&mut queue, 1), take(&mut queue, 1)), (Some(task("b.0")), None));
        assert_eq!(queue.depth(), 3, "all under way");
    }
}
