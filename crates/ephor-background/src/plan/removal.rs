//! Plans the removal of an object that its rule does not want any more.
//!
//! | what happened | `data`, `cloneList` | `clone` |
//! |---|---|---|
//! | trigger gone, unmatched, preconditions false | deleted | deleted |
//! | source gone | deleted | deleted |
//! | rule renders another name | deleted | deleted |
//! | rule or policy gone | deleted, unless orphaned | stays |
//! | author moved the target | stays, on its own | stays, on its own |
//! | author moved the source, and the new one is not there | deleted | stays |
//!
//! An object that the rule did not create stays in all cases but that of the source, and loses the rule's labels.
//!
//! All of it under `synchronize` only; without it everything stays.

use ephor_engine::outcome::Form;
use ephor_expr::Value;

use super::change::{Action, Change, Proof, Reason};
use super::claim::{Claim, given_back, released};
use super::downstream::{Terms, plan_annotation};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The trigger is gone.
    TriggerGone,
    /// The trigger is no longer matched, or its preconditions are false.
    TriggerUnmatched,
    /// The rule renders other objects for the trigger.
    NoLongerRendered,
    /// What the object was copied from is gone.
    SourceGone,
    /// The rule is gone.
    RuleGone,
    /// The policy is gone.
    PolicyGone,
}

impl Cause {
    fn reason(self) -> Reason {
        match self {
            Self::TriggerGone => Reason::TriggerGone,
            Self::TriggerUnmatched => Reason::TriggerUnmatched,
            Self::NoLongerRendered => Reason::NoLongerRendered,
            Self::SourceGone => Reason::SourceGone,
            Self::RuleGone => Reason::RuleGone,
            Self::PolicyGone => Reason::PolicyGone,
        }
    }
}

/// What is known about an object that is wanted no more.
#[derive(Debug, Clone, Copy)]
pub struct Removal<'a> {
    /// The object.
    pub live: &'a Value,
    /// What it says about itself.
    pub claim: &'a Claim,
    /// What happened.
    pub cause: Cause,
    /// What its rule says now, or said when it was last seen; `None` if that is not known.
    pub terms: Option<&'a Terms>,
    /// Whether the rule renders or rendered an object of this identity for the claimed trigger.
    pub rendered: bool,
    /// Whether a record other than the object itself names it.
    pub recorded: bool,
    /// Whether it was there before its rule wrote to it; see [`super::is_adopted`].
    pub adopted: bool,
}

/// What to do about it; `None` if it stays.
pub fn plan_removal(removal: &Removal<'_>) -> Option<Change> {
    let Removal { live, claim, cause, terms, rendered, recorded, adopted } = *removal;
    let annotation = claim.annotation.as_ref();
    // The rule's own word counts before what is noted on the object, which may be older.
    let synchronize = terms.map(|t| t.synchronize).or(annotation.map(|s| s.synchronize))?;
    if live.str_at(&["metadata", "deletionTimestamp"]).is_some() {
        return None;
    }
    if !synchronize {
        return plan_annotation(terms?, annotation?, live);
    }
    let moved = match (terms, annotation) {
        (Some(terms), Some(annotation)) => terms.references != annotation.references,
        _ => false,
    };
    if moved && cause == Cause::NoLongerRendered {
        let after = if adopted { given_back(live) } else { released(live) };
        return Some(Change::of(live, Action::Replace { before: live.clone(), after }, Reason::Released));
    }
    // It was not copied from the source that is missing.
    if moved && cause == Cause::SourceGone && annotation.is_some_and(|annotation| annotation.form == Form::Clone) {
        return None;
    }
    // Upstream's scenarios have even a copy that was there before go with its source.
    if adopted && cause != Cause::SourceGone {
        let action = Action::Replace { before: live.clone(), after: given_back(live) };
        return Some(Change::of(live, action, cause.reason()));
    }
    if matches!(cause, Cause::RuleGone | Cause::PolicyGone) {
        let orphan = terms.map_or_else(|| annotation.is_none_or(|s| s.orphan), |t| t.orphan);
        let form = annotation.map(|s| s.form).or_else(|| claim.source.is_empty().then_some(Form::Data));
        if orphan || matches!(form, None | Some(Form::Clone)) {
            return plan_annotation(terms?, annotation?, live);
        }
    }
    // INVARIANT: nothing is deleted on the word of its labels alone.
    let proof = if annotation.is_some() {
        Proof::Stamped
    } else if rendered {
        Proof::Rendered
    } else if recorded {
        Proof::Recorded
    } else {
        return None;
    };
    Some(Change::of(live, Action::Delete { before: live.clone(), proof }, cause.reason()))
}
