//! `GeneratingPolicy` of `policies.kyverno.io`: objects that expressions in CEL give, for the requests that its
//! constraints mean.
//!
//! In go a review and the exceptions; out come the objects that should exist. An exception comes first, then the match
//! conditions, then the entries of `generate` in order. What an entry gives without a name, a kind or, in a policy of a
//! namespace, for another namespace is an error, and then no object counts.

use std::collections::BTreeSet;

use ephor_expr::{Map, Str, Value};

use super::labels::mark_by_policy;
use crate::cel::{Applied, Body, Evaluator, Inputs, Matched, Reads};
use crate::matching::RequestMatcher;
use crate::outcome::{Downstream, Form, Incomplete, Verdict};
use crate::policy::PolicyId;
use crate::rules::admission::{Halt, selected, with_user};
use crate::rules::judgement::{Judged, Judgement, Pending};
use crate::rules::validate::policy::{Exempted, Exemptions, annotated};
use crate::scope::Scope;

/// What a judgement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The objects that should exist.
    Objects,
    /// Only whether the policy applies.
    Nothing,
}

/// The objects that expressions give.
struct Made {
    generated: Vec<Downstream>,
    /// Whether there are objects beside these whose source does not exist.
    missing: bool,
}

/// A compiled policy.
#[derive(Debug)]
pub struct PolicyGeneration {
    /// Which policy it is: exceptions name it.
    pub(crate) id: PolicyId,
    /// `matchConstraints`.
    pub(crate) constraints: RequestMatcher,
    pub(crate) body: Body,
}

impl PolicyGeneration {
    /// What its expressions read besides the object.
    pub fn reads(&self) -> Reads {
        self.body.reads()
    }

    /// Whether it applies to all that its constraints mean.
    pub fn is_unconditional(&self) -> bool {
        self.body.is_unconditional()
    }

    /// Which requests it is about.
    pub fn constraints(&self) -> &RequestMatcher {
        &self.constraints
    }

    /// The objects for the scope's review: no response if the constraints or conditions do not mean it.
    pub(crate) fn judge(&self, scope: &Scope<'_>, exceptions: &dyn Exemptions) -> Judged {
        Self::judged(self.decide(scope, exceptions, Wanted::Objects))
    }

    /// Whether it applies to the scope's review, whatever it makes: no response if it does not.
    pub(crate) fn applies(&self, scope: &Scope<'_>, exceptions: &dyn Exemptions) -> Judged {
        Self::judged(self.decide(scope, exceptions, Wanted::Nothing))
    }

    fn judged(decided: Result<Option<Judgement>, Halt>) -> Judged {
        match decided {
            Ok(judgement) => Ok(judgement),
            Err(Halt::Pending) => Err(Pending),
            Err(Halt::Unclear(text)) => Ok(Some(Judgement::new(Verdict::Error, text))),
        }
    }

    fn decide(
        &self,
        scope: &Scope<'_>,
        exceptions: &dyn Exemptions,
        wanted: Wanted,
    ) -> Result<Option<Judgement>, Halt> {
        let world = scope.world();
        if !selected(&self.constraints, scope.review(), world)? {
            return Ok(None);
        }
        let review = with_user(scope.review());
        let inputs = Inputs::new(&review, world);
        let failed = |text: String| Ok(Some(Judgement::new(Verdict::Error, text)));
        let allowed = match exceptions.exempted(&self.id, &inputs)? {
            Exempted::Whole { verdict, message, keys } => {
                return Ok(Some(Judgement::new(verdict, message).with(|detail| detail.exceptions = keys)));
            }
            Exempted::Allowing(allowed) => allowed,
            Exempted::Unclear(text) => return failed(text),
        };
        let nothing = Value::Null;
        let evaluator = Evaluator::new(&self.body, &inputs, &nothing).with_exceptions(&allowed);
        match evaluator.matches()? {
            Matched::Yes => {}
            Matched::No(_) => return Ok(None),
            Matched::Failed(text) => return failed(format!("failed to execute matching: {text}")),
        }
        if wanted == Wanted::Nothing {
            return Ok(Some(Judgement::new(Verdict::Pass, "")));
        }
        let applied = match evaluator.generate()? {
            Ok(applied) => applied,
            Err(text) => return failed(format!("failed to evaluate policy: {text}")),
        };
        let Made { generated, missing } = match self.downstreams(applied, review.subject()) {
            Ok(made) => made,
            Err(text) => return failed(text),
        };
        if missing {
            // What has its source counts all the same.
            let incomplete = Some(Incomplete { generated, unsourced: Vec::new() });
            let text = incomplete_object("what does not exist");
            return Ok(Some(Judgement::new(Verdict::Error, text).with(|detail| detail.incomplete = incomplete)));
        }
        let judgement = Judgement::new(Verdict::Pass, "policy evaluated successfully");
        let judgement = annotated(judgement, &evaluator)?;
        if judgement.verdict != Verdict::Pass {
            return Ok(Some(judgement));
        }
        Ok(Some(judgement.with(|detail| detail.generated = generated)))
    }

    /// The objects with their labels, each once.
    fn downstreams(&self, applied: Vec<Applied>, trigger: &Value) -> Result<Made, String> {
        let mut seen = BTreeSet::new();
        let mut downstreams = Vec::new();
        let mut missing = false;
        for Applied { namespace, objects } in applied {
            for object in objects {
                // What `resource.List` gives stands for what is in it.
                let listed = object.get("items").and_then(Value::as_array).filter(|_| is_list(&object));
                let items = listed.unwrap_or(std::slice::from_ref(&object));
                for item in items {
                    if item.is_null() {
                        // `resource.Get` gives null for what is not there.
                        missing = true;
                        continue;
                    }
                    let downstream = self.downstream(item, &object, namespace.as_ref(), trigger)?;
                    if seen.insert(identity(&downstream.object)) {
                        downstreams.push(downstream);
                    }
                }
            }
        }
        Ok(Made { generated: downstreams, missing })
    }

    fn downstream(
        &self,
        item: &Value,
        list: &Value,
        namespace: Option<&Str>,
        trigger: &Value,
    ) -> Result<Downstream, String> {
        let Some(members) = item.as_object() else {
            return Err(incomplete_object(item.type_name()));
        };
        let mut object = members.clone();
        object.remove("status");
        complete(&mut object, list);
        let mut metadata = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let source = metadata.get("uid").and_then(Value::as_str).filter(|uid| !uid.is_empty()).map(Str::new);
        for written in ["uid", "selfLink", "creationTimestamp", "managedFields", "resourceVersion", "generation"] {
            metadata.remove(written);
        }
        let said = Str::new(metadata.get("namespace").and_then(Value::as_str).unwrap_or_default());
        let target = match (&self.id.namespace, namespace) {
            (Some(own), _) if !said.is_empty() && said != *own => {
                let text = format!("cross-namespace generation denied: policy of namespace {own}, object of {said}");
                return Err(text);
            }
            (Some(own), _) => own.clone(),
            (None, Some(named)) if !named.is_empty() => named.clone(),
            (None, _) => said.clone(),
        };
        if !said.is_empty() && said != target {
            // An owner counts only in its own namespace, so an object that moves to another loses its owners. An object
            // without a namespace keeps those that the policy gave it.
            metadata.remove("ownerReferences");
        }
        if target.is_empty() {
            metadata.remove("namespace");
        } else {
            metadata.insert("namespace", target);
        }
        for (member, found) in [
            ("apiVersion", object.get("apiVersion")),
            ("kind", object.get("kind")),
            ("metadata.name", metadata.get("name")),
        ] {
            if found.and_then(Value::as_str).is_none_or(str::is_empty) {
                return Err(format!("cannot generate an object without {member}"));
            }
        }
        object.insert("metadata", metadata);
        let mut object = Value::object(object);
        mark_by_policy(&mut object, &self.id, trigger, source.as_deref());
        let form = if source.is_some() { Form::Clone } else { Form::Data };
        Ok(Downstream { object, source: None, form })
    }
}

fn is_list(object: &Value) -> bool {
    let kind = object.str_at(&["kind"]).unwrap_or_default();
    (kind.is_empty() || kind.ends_with("List")) && object.at(&["metadata", "name"]).is_none()
}

/// Fills in what an item of a list does not say, because the list says it for all.
fn complete(item: &mut Map, list: &Value) {
    if !is_list(list) {
        return;
    }
    let kind = list.str_at(&["kind"]).and_then(|kind| kind.strip_suffix("List"));
    for (key, known) in [("apiVersion", list.str_at(&["apiVersion"])), ("kind", kind)] {
        if item.get(key).is_none()
            && let Some(known) = known.filter(|known| !known.is_empty())
        {
            item.insert(key, known);
        }
    }
}

fn identity(object: &Value) -> [Str; 4] {
    [&["apiVersion"][..], &["kind"], &["metadata", "namespace"], &["metadata", "name"]]
        .map(|keys| Str::new(object.str_at(keys).unwrap_or_default()))
}

fn incomplete_object(what: &str) -> String {
    format!("cannot generate {what}: each object has apiVersion, kind and metadata.name")
}
