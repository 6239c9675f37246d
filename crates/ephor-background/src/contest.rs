//! Objects that are fought over: somebody else undoes what is written, or the rule's own change brings it back.
//!
//! A rule may have good reason to write an object often: its trigger or its source changes, or there are many triggers.
//! Then it writes something new each time. Writing the same again and again means that somebody takes it back. Much that
//! is new in a short time may be a rule that feeds on its own changes, or many triggers: it is slowed down, and nothing
//! is lost.

use std::collections::BTreeMap;

use ephor_runtime::queue::Moment;

use crate::plan::ObjectId;

/// As many writes of the same within [`SPAN`] are a fight.
const SAME: u32 = 5;
/// As many writes within [`SPAN`], whatever they say, are enough.
const ANY: u32 = 1000;
/// The span, in milliseconds.
const SPAN: Moment = 30_000;
/// How many objects are remembered before those of earlier spans are forgotten.
const ROOM: usize = 4096;

/// Why an object is not written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contest {
    /// The same has been written too often.
    Fight,
    /// Too much has been written; there is room again after that many milliseconds.
    Flood(Moment),
}

/// What was written lately.
#[derive(Debug, Default)]
pub struct Contests {
    objects: BTreeMap<ObjectId, Writes>,
}

#[derive(Debug, Default)]
struct Writes {
    since: Moment,
    count: u32,
    /// How often each content was written, by its fingerprint.
    contents: BTreeMap<String, u32>,
}

impl Contests {
    /// Whether an object has been written too often lately to be written with this content now.
    pub fn contest(&self, id: &ObjectId, content: &str, now: Moment) -> Option<Contest> {
        let writes = self.objects.get(id)?;
        let room = (writes.since + SPAN + 1).checked_sub(now).filter(|wait| *wait > 0)?;
        if writes.contents.get(content).is_some_and(|count| *count >= SAME) {
            Some(Contest::Fight)
        } else {
            (writes.count >= ANY).then_some(Contest::Flood(room))
        }
    }

    /// Notes that an object was written with a content.
    pub fn note(&mut self, id: &ObjectId, content: String, now: Moment) {
        if self.objects.len() > ROOM {
            self.objects.retain(|_, writes| now.saturating_sub(writes.since) <= SPAN);
        }
        let writes = self.objects.entry(id.clone()).or_default();
        if now.saturating_sub(writes.since) > SPAN {
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

    fn write(contests: &mut Contests, content: &str, now: Moment) -> Option<Contest> {
        let contest = contests.contest(&id(), content, now);
        if contest.is_none() {
            contests.note(&id(), content.to_owned(), now);
        }
        contest
    }

    #[test]
    fn the_same_again_and_again_is_a_fight_for_a_while() {
        let mut contests = Contests::default();
        let written: Vec<_> = (0..7).map(|n| write(&mut contests, "a", 100_000 + n)).collect();
        assert_eq!(written[..5], [None; 5]);
        assert_eq!(written[5..], [Some(Contest::Fight); 2]);
        assert_eq!(contests.contest(&id(), "b", 100_007), None);
        assert_eq!(contests.contest(&ObjectId::new("v1", "ConfigMap", "n", "b"), "a", 100_000), None);
        assert_eq!(write(&mut contests, "a", 100_001 + SPAN), None);
    }

    #[test]
    fn something_new_each_time_is_slowed_down_at_some_point() {
        let mut contests = Contests::default();
        assert!((0..ANY).all(|n| write(&mut contests, &n.to_string(), 100_000).is_none()));
        let Some(Contest::Flood(wait)) = write(&mut contests, "more", 110_000) else { panic!() };
        assert_eq!(write(&mut contests, "more", 110_000 + wait), None);
    }
}
