//! What a mutate-existing rule may have written on the boards.
//!
//! Such a rule acts on events, so that what was asked counts. Whatever interferes with what is asked (the trigger or
//! the rule changes before the work is done, admission does not look) leaves several answers.

use std::collections::{BTreeMap, BTreeSet};

use super::world::{Marking, Place, Trigger};

/// What can be written for one trigger; `None` for nothing.
#[derive(Debug, Clone, Default)]
struct Mark {
    allowed: BTreeSet<Option<String>>,
    /// All that it can have been since everything was quiet.
    history: BTreeSet<Option<String>>,
}

/// The marks of all triggers.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeMap<Place, Mark>);

impl Marks {
    fn of(&mut self, place: Place) -> &mut Mark {
        self.0.entry(place).or_insert_with(|| {
            let nothing = BTreeSet::from([None]);
            Mark { allowed: nothing.clone(), history: nothing }
        })
    }

    /// The rule was asked and will answer.
    pub(super) fn asked(&mut self, place: Place, marking: &Marking, trigger: &Trigger) {
        let mark = self.of(place);
        let value = Some(format!("m{}-t{}", marking.value, trigger.value));
        mark.history.insert(value.clone());
        mark.allowed = BTreeSet::from([value]);
    }

    /// What was asked before may be answered, now or never; it may also be answered by this.
    pub(super) fn unsettled(&mut self, place: Place, marking: Option<&Marking>, trigger: Option<&Trigger>) {
        let mark = self.of(place);
        if let (Some(marking), Some(trigger)) = (marking, trigger.filter(|trigger| trigger.on)) {
            mark.history.insert(Some(format!("m{}-t{}", marking.value, trigger.value)));
        }
        mark.allowed = mark.history.clone();
    }

    /// Everything is quiet: what is written must be one of the answers. It stays, whatever does not happen.
    pub(super) fn settle(&mut self, place: Place, written: Option<String>) -> Result<(), String> {
        let mark = self.of(place);
        if !mark.allowed.contains(&written) {
            return Err(format!("the mark of {place:?} is {written:?} and not one of {:?}", mark.allowed));
        }
        let only = BTreeSet::from([written]);
        *mark = Mark { allowed: only.clone(), history: only };
        Ok(())
    }
}
