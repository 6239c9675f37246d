//! Mutate rules: one patch, loops over lists, and patches of existing targets.

use ephor_expr::jmespath::Runtime;
use ephor_expr::value::{Path, Segment};
use ephor_expr::{Str, Value};

use super::{JsonPatch, apply_strategic_merge};
use crate::compile::{CompiledRule, MutateBody, MutateLoop, Patch};
use crate::outcome::Verdict;
use crate::policy::Order;
use crate::rules::conditions;
use crate::rules::cost::charge_object;
use crate::rules::judgement::{Judgement, Pending, scope_error};
use crate::scope::{Scope, ScopeError, Shape};

/// How deep loops may nest.
const MAX_LOOPS: usize = 16;

/// What a patch made of an object, or why it could not.
pub(crate) enum Patched {
    /// The object after; the same if nothing changed.
    Object(Value),
    /// The rule failed.
    Failed(Judgement),
}

/// One mutate rule at work on the trigger.
pub(crate) struct Run<'e> {
    pub(crate) rule: &'e CompiledRule,
    pub(crate) body: &'e MutateBody,
}

impl<'e> Run<'e> {
    /// Patches the review's object: the judgement, and the object after if it changed.
    pub(crate) fn judge(&self, scope: &mut Scope<'e>, resource: &Value) -> Result<(Judgement, Option<Value>), Pending> {
        match self.patched(scope, resource)? {
            Patched::Failed(judgement) => Ok((judgement, None)),
            Patched::Object(after) if after == *resource => {
                let looped = matches!(self.body.patch, Patch::ForEach(_));
                let text = if looped { "0 elements processed" } else { "no patches applied" };
                Ok((Judgement::new(Verdict::Skip, text), None))
            }
            Patched::Object(after) => Ok((Judgement::new(Verdict::Pass, mutated_message(&after)), Some(after))),
        }
    }

    /// The object after the rule's patch.
    pub(crate) fn patched(&self, scope: &mut Scope<'e>, resource: &Value) -> Result<Patched, Pending> {
        self.apply(&self.body.patch, &self.body.path, resource, 0, scope)
    }

    fn apply(
        &self,
        patch: &'e Patch,
        path: &Path,
        resource: &Value,
        depth: usize,
        scope: &mut Scope<'e>,
    ) -> Result<Patched, Pending> {
        let unresolved = |key: &'static str, error: ScopeError| {
            let judgement = scope_error("", &path.key(key), &error)?;
            // Upstream substitutes a rule, or an entry of a loop, as a whole and counts paths from there.
            let place = [Str::new_static("mutate"), Str::new_static(key)];
            let place = if depth == 0 { place.as_slice() } else { place.get(1..).unwrap_or_default() };
            let shown = place.iter().rev().fold(error, |error, name| error.below(Segment::Key(name.clone())));
            let message = format!("variable substitution failed: {shown}").into();
            Ok(Patched::Failed(Judgement { message, ..judgement }))
        };
        let failed = |error: &dyn std::fmt::Display| {
            let text = format!("failed to patch resource: {error}");
            Ok(Patched::Failed(Judgement::new(Verdict::Error, text)))
        };
        let budget = scope.world().budget();
        let by_json = |patch: &JsonPatch| match patch.apply(resource, budget) {
            Ok(after) => Ok(Patched::Object(after)),
            Err(error) => failed(&error),
        };
        match patch {
            Patch::StrategicMerge(template) => match template.resolve_as(Shape::Merge, scope) {
                Err(error) => unresolved("patchStrategicMerge", error),
                Ok(patch) => match apply_strategic_merge(&patch, resource, budget) {
                    Ok(after) => Ok(Patched::Object(after.unwrap_or_else(|| resource.clone()))),
                    Err(error) => failed(&error),
                },
            },
            Patch::Json(patch) => by_json(patch),
            Patch::JsonTemplate(template) => match template.resolve(scope) {
                // The policy has the patch as one text.
                Err(error) => unresolved("patchesJson6902", error.at_root()),
                Ok(value) => match JsonPatch::from_value(&value) {
                    Ok(patch) => by_json(&patch),
                    Err(error) => failed(&error),
                },
            },
            Patch::ForEach(loops) => self.loops(loops, resource, depth, scope),
        }
    }

    fn loops(
        &self,
        loops: &'e [MutateLoop],
        resource: &Value,
        depth: usize,
        scope: &mut Scope<'e>,
    ) -> Result<Patched, Pending> {
        if depth >= MAX_LOOPS {
            return Ok(Patched::Failed(Judgement::new(Verdict::Error, "loops nest too deep")));
        }
        let mut current = resource.clone();
        for entry in loops {
            let list = match scope.evaluate_bare(&entry.list) {
                Ok(list) => list,
                Err(error) => {
                    let text = format!("failed to evaluate list {}: ", entry.list.text());
                    return list_error(&text, &entry.path.key("list"), &error);
                }
            };
            let single = [list.clone()];
            let elements = match &list {
                Value::Null => continue,
                Value::Array(items) => items.as_slice(),
                _ => &single,
            };
            let numbered: Vec<(usize, &Value)> = match entry.order {
                Order::Ascending => elements.iter().enumerate().collect(),
                Order::Descending => elements.iter().enumerate().rev().collect(),
            };
            for (index, element) in numbered {
                if let Err(error) = charge_object(scope.world().budget(), &current) {
                    return Ok(Patched::Failed(Judgement::new(Verdict::Error, error.to_string())));
                }
                let before = scope.checkpoint();
                scope.bind_element(&entry.list, element, index, depth, &self.rule.declared);
                scope.declare(&entry.context);
                let patched = self.element(entry, &current, depth, scope);
                scope.restore(before);
                match patched? {
                    Patched::Object(after) => current = after,
                    Patched::Failed(judgement) => {
                        let message = format!("failed to mutate elements: {}", judgement.message).into();
                        return Ok(Patched::Failed(Judgement { message, ..judgement }));
                    }
                }
            }
            // `request.object` follows a whole block, not each element.
            if depth == 0 {
                scope.set_patched(current.clone());
            }
        }
        Ok(Patched::Object(current))
    }

    fn element(
        &self,
        entry: &'e MutateLoop,
        resource: &Value,
        depth: usize,
        scope: &mut Scope<'e>,
    ) -> Result<Patched, Pending> {
        if let Some(block) = &entry.preconditions {
            match conditions::evaluate(block, scope) {
                Ok(outcome) if outcome.holds => {}
                Ok(_) => return Ok(Patched::Object(resource.clone())),
                Err(error) => {
                    let (text, fault) = error.into_failure()?;
                    let message = format!("failed to evaluate preconditions: {text}");
                    return Ok(Patched::Failed(Judgement::error_at(message, fault)));
                }
            }
        }
        self.apply(&entry.patch, &entry.path, resource, depth + 1, scope)
    }
}

/// Upstream prints the cause of a failed list twice.
fn list_error(prefix: &str, path: &Path, error: &ScopeError) -> Result<Patched, Pending> {
    let judgement = scope_error("", path, error)?;
    let cause = error.cause_text();
    Ok(Patched::Failed(Judgement { message: format!("{prefix}{cause}: {cause}").into(), ..judgement }))
}

/// `mutated <Kind>/<name>[ in namespace <ns>]`.
pub(crate) fn mutated_message(object: &Value) -> Str {
    let part = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
    let (kind, name) = (part(&["kind"]), part(&["metadata", "name"]));
    match part(&["metadata", "namespace"]) {
        "" => format!("mutated {kind}/{name}").into(),
        namespace => format!("mutated {kind}/{name} in namespace {namespace}").into(),
    }
}
