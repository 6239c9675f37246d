//! Limits how often an object is written.
//!
//! Before a write, the reconciler calls [`RecentWrites::check`] with the object and its new content; after the write it
//! calls [`RecentWrites::record`]. Two limits apply:
//!
//! - [`WriteLimit::Loop`]: the same content was written too often. Another client reverts it, or the rule reacts to its
//!   own change. The rule fails.
//! - [`WriteLimit::Rate`]: too many writes with different contents. A rule with many triggers does that, and so does a
//!   rule that reacts to its own changes. The write is delayed, and no change is lost.

use std::collections::BTreeMap;

use ephor_runtime::queue::Moment;

use crate::plan::ObjectId;

/// The number of writes of one content within [`WINDOW`] that is a loop.
const MAX_REPEATS: u32 = 5;
/// The number of writes of one object within [`WINDOW`] that is allowed.
const MAX_WRITES: u32 = 1000;
/// The time in which writes are counted, in milliseconds.
const WINDOW: Moment = 30_000;
/// The number of objects above which those of earlier windows are dropped.
const CAPACITY: usize = 4096;

/// Why an object is not written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteLimit {
    /// The same content has been written too often.
    Loop,
    /// The object has been written too often. Holds the milliseconds until the next write is allowed.
    Rate(Moment),
}

/// The writes of the current window, by object.
#[derive(Debug, Default)]
pub struct RecentWrites {
    objects: BTreeMap<ObjectId, Writes>,
}

#[derive(Debug, Default)]
struct Writes {
    since: Moment,
    count: u32,
    /// How often each content was written, by its fingerprint.
    contents: BTreeMap<String, u32>,
}

impl RecentWrites {
    /// Returns the limit that forbids writing `content` to an object now.
    pub fn check(&self, id: &ObjectId, content: &str, now: Moment) -> Option<WriteLimit> {
        let writes = self.objects.get(id)?;
        let room = (writes.since + WINDOW + 1).checked_sub(now).filter(|wait| *wait > 0)?;
        if writes.contents.get(content).is_some_and(|count| *count >= MAX_REPEATS) {
            Some(WriteLimit::Loop)
        } else {
            (writes.count >= MAX_WRITES).then_some(WriteLimit::Rate(room))
        }
    }

    /// Records that `content` was written to an object.
    pub fn record(&mut self, id: &ObjectId, content: String, now: Moment) {
        if self.objects.len() > CAPACITY {
            self.objects.retain(|_, writes| now.saturating_sub(writes.since) <= WINDOW);
        }
        let writes = self.objects.entry(id.clone()).or_default();
        if now.saturating_sub(writes.since) > WINDOW {
            *writes = Writes { since: now, ..Writes::default() };
        }
        writes.count += 1;
        *writes.contents.entry(content).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ObjectId {
        ObjectId::new("v1", "ConfigMap", "n", "a")
    }

    fn write(recent_writes: &mut RecentWrites, content: &str, now: Moment) -> Option<WriteLimit> {
        let limit = recent_writes.check(&id(), content, now);
        if limit.is_none() {
            recent_writes.record(&id(), content.to_owned(), now);
        }
        limit
    }

    #[test]
    fn the_same_again_and_again_is_a_loop_until_the_window_ends() {
        let mut recent_writes = RecentWrites::default();
        let written: Vec<_> = (0..7).map(|n| write(&mut recent_writes, "a", 100_000 + n)).collect();
        assert_eq!(written[..5], [None; 5]);
        assert_eq!(written[5..], [Some(WriteLimit::Loop); 2]);
        assert_eq!(recent_writes.check(&id(), "b", 100_007), None);
        assert_eq!(recent_writes.check(&ObjectId::new("v1", "ConfigMap", "n", "b"), "a", 100_000), None);
        assert_eq!(write(&mut recent_writes, "a", 100_001 + WINDOW), None);
    }

    #[test]
    fn something_new_each_time_is_slowed_down_at_some_point() {
        let mut recent_writes = RecentWrites::default();
        assert!((0..MAX_WRITES).all(|n| write(&mut recent_writes, &n.to_string(), 100_000).is_none()));
        let Some(WriteLimit::Rate(wait)) = write(&mut recent_writes, "more", 110_000) else { panic!() };
        assert_eq!(write(&mut recent_writes, "more", 110_000 + wait), None);
    }
}
