//! One wanted object against the live one.

use ephor_engine::outcome::Form;
use ephor_expr::{Str, Value};
use ephor_runtime::content::{
    Written, covers, essence, fingerprint, set_entry, set_meta, unstamped, with_books_of, with_texts,
};

use super::change::{Action, Change, Reason};
use super::claim::{CLONE_SOURCE, Claim, EXISTING, Owner};
use super::identity::ObjectId;
use super::stamp::Stamp;

/// What a rule says about all its downstreams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the rule by that name")]
pub struct Terms {
    /// Whether they follow policy, source and trigger.
    pub synchronize: bool,
    /// Whether they outlive the policy.
    pub orphan: bool,
    /// Whether they are applied on the server's side.
    pub server_side_apply: bool,
    /// Whether the rule counts for triggers that were there before it.
    pub existing: bool,
    /// Fingerprint of what the rule says about targets and sources.
    pub references: Str,
}

/// An object that a rule wants for a trigger.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Which one.
    pub id: ObjectId,
    /// The object with its labels and its stamp.
    pub object: Value,
    /// Where its content comes from.
    pub form: Form,
    /// Who wants it.
    pub owner: Owner,
}

impl Wanted {
    /// What `rendered` is when it is written: with a stamp, and without marks that its source carries.
    pub fn new(
        mut rendered: Value,
        form: Form,
        owner: Owner,
        terms: &Terms,
        trigger_name: &str,
        (operation, subresource): (&str, &str),
    ) -> Self {
        with_texts(&mut rendered);
        // A copy is no source, though its source is marked as one.
        set_entry(&mut rendered, "labels", CLONE_SOURCE, None);
        set_entry(&mut rendered, "labels", EXISTING, terms.existing.then_some(owner.rule.as_str()));
        for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"] {
            set_meta(&mut rendered, key, None);
        }
        let stamp = Stamp {
            form,
            synchronize: terms.synchronize,
            orphan: terms.orphan,
            references: terms.references.clone(),
            operation: operation.into(),
            subresource: subresource.into(),
            trigger: trigger_name.into(),
            adopted: false,
        };
        stamp.put(&mut rendered);
        Self { id: ObjectId::of(&rendered), object: rendered, form, owner }
    }

    /// The same with the note that the object was there before.
    #[must_use]
    pub fn adopted(&self) -> Self {
        let mut wanted = self.clone();
        if let Some(stamp) = Stamp::on(&self.object) {
            Stamp { adopted: true, ..stamp }.put(&mut wanted.object);
        }
        wanted
    }

    /// Whether `live` is an object that no rule created. The stamp says so, and where there is none the labels that
    /// upstream puts on what this very rule creates.
    fn adopts(&self, live: &Value, written: Option<&Written>) -> bool {
        if written.is_some_and(|written| written.has_created(live)) {
            return false;
        }
        match Stamp::on(live) {
            Some(stamp) => stamp.adopted,
            None => Claim::of(live).is_none_or(|claim| !claim.owner.is_rule_of(&self.owner)),
        }
    }

    fn change(&self, action: Action, reason: Reason) -> Change {
        Change::of(&self.object, action, reason)
    }
}

/// What to do so that `wanted` exists. `written` is what is remembered of the last write, if anything.
pub fn plan_downstream(
    terms: &Terms,
    wanted: &Wanted,
    live: Option<&Value>,
    written: Option<&Written>,
) -> Option<Change> {
    let Some(live) = live else {
        let object = wanted.object.clone();
        let action = if terms.server_side_apply {
            Action::Apply { before: None, after: object }
        } else {
            Action::Create(object)
        };
        return Some(wanted.change(action, Reason::Missing));
    };
    // Finalizers can hold an object that is about to go for any time, and until then others read it: it is kept in step
    // like any other, and made anew once it is gone.
    let terminating = live.str_at(&["metadata", "deletionTimestamp"]).is_some();
    if !terms.synchronize {
        if terminating {
            return None;
        }
        let claim = Claim::of(live).filter(|claim| claim.owner == wanted.owner)?;
        return plan_restamp(terms, &claim.stamp?, live);
    }
    let adopted = wanted.adopts(live, written).then(|| wanted.adopted());
    let wanted = adopted.as_ref().unwrap_or(wanted);
    if terms.server_side_apply {
        let sent = fingerprint(&essence(&wanted.object));
        // What is not remembered may have said more, which only another apply takes away.
        let kept = written.is_some_and(|w| w.applied && w.sent == sent) && stamp_of(&wanted.object) == stamp_of(live);
        if (kept && covers(live, &wanted.object)) || fingerprint(&essence(live)) == sent {
            return None;
        }
        let action = Action::Apply { before: Some(live.clone()), after: wanted.object.clone() };
        return Some(wanted.change(action, Reason::Differs));
    }
    let mut after = with_books_of(&wanted.object, live);
    if terminating {
        // The API server takes no new finalizers then.
        set_meta(&mut after, "finalizers", live.at(&["metadata", "finalizers"]).cloned());
    }
    let (says, shall) = (essence(live), essence(&after));
    if says == shall {
        return None;
    }
    if let Some(written) = written
        && written.stored == fingerprint(&says)
        && written.sent == fingerprint(&shall)
    {
        return None;
    }
    // Bound to the object that was looked at.
    for key in ["uid", "resourceVersion"] {
        set_meta(&mut after, key, live.at(&["metadata", key]).cloned());
    }
    let reason =
        if essence(&unstamped(live)) == essence(&unstamped(&after)) { Reason::Restamped } else { Reason::Differs };
    Some(wanted.change(Action::Replace { before: live.clone(), after }, reason))
}

fn stamp_of(object: &Value) -> Option<Stamp> {
    Stamp::on(object)
}

/// What to do so that an object, which stays as it is, says what its rule does or did last. Those of a rule that ceased to
/// synchronize are left alone but for this: whoever finds the rule gone later must know that they stay.
pub fn plan_restamp(terms: &Terms, stamp: &Stamp, live: &Value) -> Option<Change> {
    if (stamp.synchronize, stamp.orphan) == (terms.synchronize, terms.orphan) {
        return None;
    }
    let mut after = live.clone();
    Stamp { synchronize: terms.synchronize, orphan: terms.orphan, ..stamp.clone() }.put(&mut after);
    Some(Change::of(live, Action::Replace { before: live.clone(), after }, Reason::Restamped))
}
