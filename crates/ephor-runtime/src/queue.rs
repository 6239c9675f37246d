//! A keyed work queue: each piece of work is queued once, however often it is added.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeFrom;

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

#[derive(Debug, Clone, Copy)]
struct Item {
    due: Moment,
    /// Since when it is to be done; tries that failed do not change it.
    since: Moment,
    failures: u32,
    running: bool,
    /// When it is to be done again, if it was enqueued while it was being done.
    again: Option<Moment>,
    order: u64,
}

/// The queue.
#[derive(Debug)]
pub struct Queue<T> {
    items: BTreeMap<T, Item>,
    ready: BTreeSet<(Moment, u64, T)>,
    order: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), ready: BTreeSet::new(), order: 0 }
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
            } else if due < item.due {
                self.ready.remove(&(item.due, item.order, task.clone()));
                (item.due, item.order) = (due, order);
                item.since = item.since.min(due);
                self.ready.insert((due, order, task));
            }
            return;
        }
        self.ready.insert((due, order, task.clone()));
        self.items.insert(task, Item { due, since: due.max(now), failures: 0, running: false, again: None, order });
    }

    /// The next work that is due; it is not given out again before [`Queue::settle`].
    pub fn take(&mut self, now: Moment) -> Option<T> {
        if self.ready.first()?.0 > now {
            return None;
        }
        let (_, _, task) = self.ready.pop_first()?;
        if let Some(item) = self.items.get_mut(&task) {
            item.running = true;
            item.again = None;
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
        self.ready.insert((due, self.order, task));
        ended
    }

    /// Whether no work is under way and none is due.
    pub fn is_quiet(&self, now: Moment) -> bool {
        // Work under way is not in `ready`.
        self.items.len() == self.ready.len() && self.ready.first().is_none_or(|(due, ..)| *due > now)
    }

    /// Whether work is asked for or under way.
    pub fn holds(&self, task: &T) -> bool {
        self.items.contains_key(task)
    }

    /// Removes work that has not been taken.
    pub fn forget(&mut self, task: &T) {
        if let Some(item) = self.items.get(task).copied().filter(|item| !item.running) {
            self.ready.remove(&(item.due, item.order, task.clone()));
            self.items.remove(task);
        }
    }

    /// When the next work is due.
    pub fn next_due(&self) -> Option<Moment> {
        self.ready.first().map(|(due, _, _)| *due)
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

    #[test]
    fn work_is_done_once_however_often_it_is_asked_for() {
        let mut queue = Queue::default();
        for _ in 0..3 {
            queue.add(task("a"), 0);
        }
        assert_eq!(queue.take(0), Some(task("a")));
        assert_eq!(queue.take(0), None);
        queue.settle(task("a"), Settled::Done, 0);
        assert_eq!((queue.take(0), queue.depth()), (None, 0));
    }

    #[test]
    fn what_happens_while_work_is_under_way_makes_it_run_again() {
        let mut queue = Queue::default();
        queue.add(task("a"), 0);
        queue.take(0);
        queue.add(task("a"), 1);
        assert_eq!(queue.take(1), None, "never twice at the same time");
        queue.settle(task("a"), Settled::Done, 2);
        assert_eq!(queue.take(2), Some(task("a")));
    }

    #[test]
    fn failures_are_put_off_for_longer_and_longer_until_something_happens() {
        let mut queue = Queue::default();
        queue.add(task("a"), 0);
        let mut now = 0;
        for pause in [500, 1000, 2000] {
            assert!(queue.take(now).is_some());
            queue.settle(task("a"), Settled::Failed, now);
            assert_eq!(queue.next_due(), Some(now + pause));
            now += pause;
        }
        queue.take(now);
        queue.settle(task("a"), Settled::Failed, now);
        queue.add(task("a"), now);
        assert_eq!(queue.next_due(), Some(now));
    }

    #[test]
    fn what_happens_while_work_is_under_way_ends_every_pause() {
        for settled in [Settled::Done, Settled::Later(40_000), Settled::Retry(40_000), Settled::Failed] {
            let mut queue = Queue::default();
            queue.add(task("a"), 0);
            queue.take(0);
            queue.add_at(task("a"), 900, 1);
            queue.add_at(task("a"), 3, 2);
            queue.settle(task("a"), settled, 2);
            assert_eq!(queue.next_due(), Some(3), "{settled:?}");
            queue.take(3);
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
        assert_eq!((queue.take(1), queue.take(1), queue.take(1)), (Some(task("b")), Some(task("a")), None));
        assert_eq!(queue.take(5), Some(task("c")));
    }
}
