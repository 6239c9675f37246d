//! Plans one wanted object against the live one.

use ephor_engine::outcome::Form;
use ephor_expr::{Str, Value};
use ephor_runtime::content::{
    ADOPTED_LABEL, Written, covers, fingerprint, normalized_content, preserve_system_metadata, set_entry, set_meta,
    with_texts, without_ownership,
};

use super::change::{Action, Change, Reason};
use super::claim::{CLONE_SOURCE, Claim, EXISTING, Owner, is_adopted};
use super::identity::ObjectId;
use super::ownership::OwnershipAnnotation;

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
    /// Whether a request about the trigger makes them anew, also where they do not follow.
    pub renewed: bool,
    /// Fingerprint of what the rule says about targets and sources.
    pub references: Str,
}

/// An object that a rule wants for a trigger.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Which one.
    pub id: ObjectId,
    /// The object with its labels and its annotation.
    pub object: Value,
    /// Where its content comes from.
    pub form: Form,
    /// Who wants it.
    pub owner: Owner,
}

impl Wanted {
    /// What `rendered` is when it is written: with an ownership annotation, and without marks that its source carries.
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
        set_entry(&mut rendered, "labels", ADOPTED_LABEL, None);
        // Where a rule is all of a policy, upstream names none.
        let marked = terms.existing && !owner.policy.kind.is_of_cel();
        set_entry(&mut rendered, "labels", EXISTING, marked.then_some(owner.rule.as_str()));
        for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"] {
            set_meta(&mut rendered, key, None);
        }
        let annotation = OwnershipAnnotation {
            form,
            synchronize: terms.synchronize,
            orphan: terms.orphan,
            references: terms.references.clone(),
            operation: operation.into(),
            subresource: subresource.into(),
            trigger: trigger_name.into(),
            adopted: false,
        };
        annotation.write_to(&mut rendered);
        Self { id: ObjectId::of(&rendered), object: rendered, form, owner }
    }

    /// The same with the note that the object was there before.
    #[must_use]
    pub fn adopted(&self) -> Self {
        let mut wanted = self.clone();
        if let Some(annotation) = OwnershipAnnotation::read(&self.object) {
            OwnershipAnnotation { adopted: true, ..annotation }.write_to(&mut wanted.object);
        }
        set_entry(&mut wanted.object, "labels", ADOPTED_LABEL, Some("true"));
        wanted
    }

    /// Whether `live` is an object that no rule created. Where nothing else tells, the labels do that upstream puts on
    /// what this very rule creates.
    fn adopts(&self, live: &Value, written: Option<&Written>) -> bool {
        is_adopted(live, written)
            .unwrap_or_else(|| Claim::of(live).is_none_or(|claim| !claim.owner.is_rule_of(&self.owner)))
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
        let annotation = Claim::of(live).filter(|claim| claim.owner == wanted.owner)?.annotation?;
        if !terms.renewed {
            return plan_annotation(terms, &annotation, live);
        }
    }
    let adopted = wanted.adopts(live, written).then(|| wanted.adopted());
    let wanted = adopted.as_ref().unwrap_or(wanted);
    if terms.server_side_apply {
        let sent = fingerprint(&normalized_content(&wanted.object));
        // What is not remembered may have said more, which only another apply takes away.
        let kept = written.is_some_and(|w| w.applied && w.sent == sent)
            && annotation_of(&wanted.object) == annotation_of(live);
        if (kept && covers(live, &wanted.object)) || fingerprint(&normalized_content(live)) == sent {
            return None;
        }
        let action = Action::Apply { before: Some(live.clone()), after: wanted.object.clone() };
        return Some(wanted.change(action, Reason::Differs));
    }
    let mut after = preserve_system_metadata(&wanted.object, live);
    if terminating {
        // The API server takes no new finalizers then.
        set_meta(&mut after, "finalizers", live.at(&["metadata", "finalizers"]).cloned());
    }
    let (says, shall) = (normalized_content(live), normalized_content(&after));
    if says == shall {
        return None;
    }
    // An apply leaves the fields of others in place, which a replace removes.
    if let Some(written) = written.filter(|written| !written.applied)
        && written.stored == fingerprint(&says)
        && written.sent == fingerprint(&shall)
    {
        return None;
    }
    // Bound to the object that was looked at.
    for key in ["uid", "resourceVersion"] {
        set_meta(&mut after, key, live.at(&["metadata", key]).cloned());
    }
    let reason = if normalized_content(&without_ownership(live)) == normalized_content(&without_ownership(&after)) {
        Reason::AnnotationChanged
    } else {
        Reason::Differs
    };
    Some(wanted.change(Action::Replace { before: live.clone(), after }, reason))
}

fn annotation_of(object: &Value) -> Option<OwnershipAnnotation> {
    OwnershipAnnotation::read(object)
}

/// What to do so that an object, which stays as it is, says what its rule does or did last. This is the only change to
/// objects of a rule that no longer synchronizes: a controller that finds the rule deleted later reads here that they
/// stay.
pub fn plan_annotation(terms: &Terms, annotation: &OwnershipAnnotation, live: &Value) -> Option<Change> {
    if (annotation.synchronize, annotation.orphan) == (terms.synchronize, terms.orphan) {
        return None;
    }
    let mut after = live.clone();
    OwnershipAnnotation { synchronize: terms.synchronize, orphan: terms.orphan, ..annotation.clone() }
        .write_to(&mut after);
    Some(Change::of(live, Action::Replace { before: live.clone(), after }, Reason::AnnotationChanged))
}
