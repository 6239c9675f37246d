//! `MutatingAdmissionPolicy`: patches in CEL, once for each binding and each parameter object.
//!
//! In goes a review; out comes the object after all patches. Each patch sees the object that the one before gave. If
//! one fails the others still count, so that an API server can go by the failure policy.

use ephor_expr::Value;
use ephor_expr::jmespath::Runtime as _;

use super::{JsonPatch, JsonPatchError};
use crate::cel::{Evaluator, Inputs, Matched, PatchKind, PatchValue};
use crate::fetch::Merger;
use crate::outcome::Verdict;
use crate::review::Review;
use crate::rules::admission::{AdmissionSelection, Halt, Occasion, with_user};
use crate::rules::judgement::{Judgement, Pending};
use crate::rules::validate::admission::{Decision, Finding, decision};
use crate::scope::{Scope, World};

/// How deep a configuration may nest.
const MAX_DEPTH: usize = 256;

/// A compiled `MutatingAdmissionPolicy` with its bindings.
#[derive(Debug)]
pub struct AdmissionMutation {
    pub(crate) selection: AdmissionSelection,
}

/// What the policy made of the object.
struct Course {
    /// The object after.
    object: Value,
    /// Whether the match conditions are true somewhere.
    is_met: bool,
    failures: Vec<Decision>,
}

impl AdmissionMutation {
    /// Which requests it is about.
    pub fn selection(&self) -> &AdmissionSelection {
        &self.selection
    }

    /// Changes the scope's object: no response if the policy does not apply.
    pub(crate) fn judge(&self, scope: &Scope<'_>) -> Result<Option<(Judgement, Option<Value>)>, Pending> {
        let review = scope.review();
        match self.patched(review, scope.world()) {
            Err(Halt::Pending) => Err(Pending),
            Err(Halt::Unclear(text)) => Ok(Some((Judgement::new(Verdict::Error, text), None))),
            Ok(None) => Ok(None),
            Ok(Some(course)) => Ok(Some(course.judgement(&review.object))),
        }
    }

    fn patched(&self, review: &Review, world: &World<'_>) -> Result<Option<Course>, Halt> {
        let mut review = with_user(review).into_owned();
        let occasions = self.selection.occasions(&review, world)?;
        if occasions.is_empty() {
            return Ok(None);
        }
        let (mut is_met, mut failures) = (false, Vec::new());
        // Where there is no API server, configurations are merged without schemas, as upstream does there.
        let merger = world.merger().filter(|merger| merger.is_of_api_server());
        for Occasion { binding, params } in occasions {
            let params = match params {
                Ok(params) => params,
                Err(text) => {
                    failures.push(decision(binding, Finding::Misconfigured(text)));
                    continue;
                }
            };
            let failed = |text: String| decision(binding, Finding::Failed(text.into()));
            let matched = {
                let inputs = Inputs::new(&review, world);
                Evaluator::new(&self.selection.body, &inputs, &params).matches()?
            };
            match matched {
                Matched::Yes => is_met = true,
                Matched::No(_) => continue,
                Matched::Failed(text) => {
                    failures.push(failed(text));
                    continue;
                }
            }
            for index in 0..self.selection.body.patch_count() {
                let patch = {
                    let inputs = Inputs::new(&review, world);
                    Evaluator::new(&self.selection.body, &inputs, &params).patch(index)?
                };
                let after = match patch {
                    Some(Ok(patch)) => apply(&patch, &review.object, world, merger),
                    Some(Err(text)) => Err(text),
                    None => continue,
                };
                match after {
                    Ok(after) => review.object = after,
                    Err(text) => failures.push(failed(text)),
                }
            }
        }
        Ok(Some(Course { object: review.object, is_met, failures }))
    }
}

impl Course {
    fn judgement(self, before: &Value) -> (Judgement, Option<Value>) {
        let Self { object, is_met, failures } = self;
        if let Some(Decision { finding: Finding::Failed(text) | Finding::Misconfigured(text), .. }) = failures.first() {
            let judgement = Judgement::new(Verdict::Error, text.clone()).with(|detail| {
                detail.decisions = failures;
                detail.partly_patched = Some(object).filter(|object| object != before);
            });
            return (judgement, None);
        }
        if !is_met {
            return (Judgement::new(Verdict::Skip, "match conditions aren't met"), None);
        }
        let after = Some(object).filter(|object| object != before);
        (Judgement::new(Verdict::Pass, "mutation is successfully applied"), after)
    }
}

/// The object after a patch. Without a merger a configuration is merged as without a schema.
pub(super) fn apply(
    patch: &PatchValue,
    object: &Value,
    world: &World<'_>,
    merger: Option<&dyn Merger>,
) -> Result<Value, String> {
    match patch.kind {
        PatchKind::JsonPatch => {
            let patch = JsonPatch::from_value(&patch.value).map_err(|error| error.to_string())?;
            match patch.apply_as_api_server(object, world.budget()) {
                // A test that fails is no failure: the patch is left out.
                Err(JsonPatchError::TestFailed(_)) => Ok(object.clone()),
                applied => applied.map_err(|error| format!("JSON Patch: {error}")),
            }
        }
        PatchKind::ApplyConfiguration if let Some(merger) = merger => merger.merge(object, &patch.value),
        PatchKind::ApplyConfiguration => {
            let mut after = object.clone();
            merge(&mut after, &patch.value, world, 0)?;
            Ok(after)
        }
    }
}

/// Merges a configuration as without a schema: members of objects are merged, everything else is replaced.
fn merge(into: &mut Value, patch: &Value, world: &World<'_>, depth: usize) -> Result<(), String> {
    let Some(members) = patch.as_object() else {
        *into = patch.clone();
        return Ok(());
    };
    if depth >= MAX_DEPTH {
        return Err("the configuration nests too deep".to_owned());
    }
    world.budget().charge_steps(members.len() as u64 + 1).map_err(|error| error.to_string())?;
    if into.as_object().is_none() {
        *into = Value::object(ephor_expr::Map::new());
    }
    let Some(own) = into.as_object_mut() else { return Ok(()) };
    for (key, value) in members.iter() {
        merge(own.entry(key.as_str()), value, world, depth + 1)?;
    }
    Ok(())
}
