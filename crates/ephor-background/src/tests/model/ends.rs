//! What the ends of triggers made: it is made once, and stays as it is while its rule is there.

use std::collections::BTreeMap;

use super::world::{Id, RuleKey};

#[derive(Debug, Default)]
pub(super) struct Ends {
    /// What must be made: admission saw the end, and the rule is as it was then.
    owed: BTreeMap<Id, (RuleKey, String)>,
    /// What was there, and what it said, when everything was quiet.
    made: BTreeMap<Id, (RuleKey, String)>,
}

impl Ends {
    /// A trigger has ended, before the eyes of admission.
    pub(super) fn owe(&mut self, key: RuleKey, id: Id, said: String) {
        self.made.remove(&id);
        self.owed.insert(id, (key, said));
    }

    /// A rule's answer to what was asked may be another one, or none.
    pub(super) fn unsettle(&mut self, about: impl Fn(RuleKey) -> bool) {
        self.owed.retain(|_, (key, _)| !about(*key));
    }

    /// A rule is gone: its own switches say what becomes of its objects.
    pub(super) fn rule_gone(&mut self, gone: RuleKey) {
        self.owed.retain(|_, (key, _)| *key != gone);
        self.made.retain(|_, (key, _)| *key != gone);
    }

    /// Somebody else has touched these objects.
    pub(super) fn touched(&mut self, which: impl Fn(&Id) -> bool) {
        self.owed.retain(|id, _| !which(id));
        self.made.retain(|id, _| !which(id));
    }

    /// Everything is quiet: what must be there, and what it says.
    pub(super) fn due(&self) -> impl Iterator<Item = (&Id, &str)> {
        self.owed.iter().chain(&self.made).map(|(id, (_, said))| (id, said.as_str()))
    }

    /// Everything is quiet, and this is what there is.
    pub(super) fn settle(&mut self, made: BTreeMap<Id, (RuleKey, String)>) {
        *self = Self { owed: BTreeMap::new(), made };
    }
}
