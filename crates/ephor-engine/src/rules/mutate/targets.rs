//! Mutate-existing rules: which objects, and their patches.

use ephor_expr::scalar::wildcard::{has_wildcard, matches};
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::identity;
use super::run::{Patched, Run, mutated_message};
use crate::compile::{TargetSelector, selector_of};
use crate::fetch::{Fact, Fetch};
use crate::outcome::{Below, PatchedTarget, Verdict};
use crate::rules::conditions;
use crate::rules::judgement::{Judgement, Pending, scope_error};
use crate::scope::{Answer, Scope, Shape, Template};

impl<'e> Run<'e> {
    /// Patches the existing objects that the rule selects for the review's trigger.
    pub(crate) fn judge_targets(
        &self,
        selectors: &'e [TargetSelector],
        scope: &mut Scope<'e>,
    ) -> Result<Judgement, Pending> {
        let mut patched = Vec::new();
        for (i, selector) in selectors.iter().enumerate() {
            let path = self.rule.path.keys(&["mutate", "targets"]).index(i);
            match Self::select(selector, &path, scope)? {
                Ok(objects) => {
                    for target in objects {
                        patched.push(self.judge_target(selector, target, scope)?);
                    }
                }
                Err(judgement) => return Ok(judgement),
            }
        }
        let worst = |v: Verdict| patched.iter().any(|t: &PatchedTarget| t.verdict == v);
        let (verdict, message) = if let Some(failed) = patched.iter().find(|t| t.verdict == Verdict::Error) {
            (Verdict::Error, failed.message.clone())
        } else if worst(Verdict::Pass) {
            (Verdict::Pass, Str::new_static("targets patched"))
        } else {
            (Verdict::Skip, Str::new_static("no patches applied"))
        };
        Ok(Judgement::new(verdict, message).with(|detail| detail.targets = patched))
    }

    fn judge_target(
        &self,
        selector: &'e TargetSelector,
        Target { object, below }: Target,
        scope: &mut Scope<'e>,
    ) -> Result<PatchedTarget, Pending> {
        let before = scope.checkpoint();
        scope.bind_object("target", object.clone());
        scope.declare(&selector.context);
        let judged = self.patch_target(selector, &object, scope);
        scope.restore(before);
        let (judgement, after) = judged?;
        let after = after.unwrap_or_else(|| object.clone());
        Ok(PatchedTarget { verdict: judgement.verdict, message: judgement.message, before: object, after, below })
    }

    fn patch_target(
        &self,
        selector: &'e TargetSelector,
        object: &Value,
        scope: &mut Scope<'e>,
    ) -> Result<(Judgement, Option<Value>), Pending> {
        if let Some(block) = &selector.preconditions {
            match conditions::evaluate(block, scope) {
                Ok(outcome) if outcome.holds => {}
                Ok(_) => return Ok((Judgement::new(Verdict::Skip, "preconditions not met"), None)),
                Err(error) => {
                    let (text, fault) = error.into_failure()?;
                    let message = format!("failed to evaluate preconditions: {text}");
                    return Ok((Judgement::error_at(message, fault), None));
                }
            }
        }
        match self.patched(scope, object)? {
            Patched::Failed(judgement) => Ok((judgement, None)),
            Patched::Object(after) if after == *object => {
                Ok((Judgement::new(Verdict::Skip, "no patches applied"), None))
            }
            Patched::Object(after) => match identity::kept(object, &after) {
                Ok(()) => Ok((Judgement::new(Verdict::Pass, mutated_message(&after)), Some(after))),
                Err(changed) => {
                    Ok((Judgement::new(Verdict::Error, format!("failed to patch resource: {changed}")), None))
                }
            },
        }
    }

    fn select(
        selector: &'e TargetSelector,
        path: &Path,
        scope: &mut Scope<'e>,
    ) -> Result<Result<Vec<Target>, Judgement>, Pending> {
        // Patterns and "any" are the policy's to write: a request names one object.
        let mut text = |template: &Template, key: &str| match template.resolve_as(Shape::Selection, scope) {
            Ok(Value::String(text)) if text.is_empty() && template.as_fixed().is_none() => {
                let message = format!("the variables of target {key} give an empty text, which would select all");
                Ok(Err(Judgement::new(Verdict::Error, message)))
            }
            Ok(Value::String(text)) => Ok(Ok(text)),
            Ok(_) => Ok(Err(Judgement::new(Verdict::Error, format!("target {key} is not a string")))),
            Err(error) => scope_error("variable substitution failed: ", &path.key(key), &error).map(Err),
        };
        let mut parts = Vec::with_capacity(4);
        for (template, key) in [
            (&selector.api_version, "apiVersion"),
            (&selector.kind, "kind"),
            (&selector.namespace, "namespace"),
            (&selector.name, "name"),
        ] {
            match text(template, key)? {
                Ok(part) => parts.push(part),
                Err(judgement) => return Ok(Err(judgement)),
            }
        }
        let [api_version, kind, mut namespace, name] = <[Str; 4]>::try_from(parts).unwrap_or_default();
        if let Some(own) = scope.world().namespace()
            && namespace.is_empty()
        {
            namespace = Str::new(own);
        }
        let labels = match &selector.selector {
            None => None,
            Some(template) => match template.resolve_as(Shape::Selection, scope) {
                Err(error) => {
                    return scope_error("variable substitution failed: ", &path.key("selector"), &error).map(Err);
                }
                Ok(value) => match selector_of(&value) {
                    Ok(selector) => Some(selector),
                    Err(reason) => {
                        return Ok(Err(Judgement::new(Verdict::Error, format!("target selector: {reason}"))));
                    }
                },
            },
        };
        let (kind, subresource) = match kind.split_once('/') {
            Some((kind, subresource)) => (Str::new(kind), subresource),
            None => (kind.clone(), ""),
        };
        // Without a namespace the target may be in any, so that it is looked for in all.
        let exact = ![&namespace, &name].iter().any(|part| part.is_empty() || has_wildcard(part));
        let fetch = if exact {
            Fetch::Object { api_version, kind: kind.clone(), namespace: namespace.clone(), name: name.clone() }
        } else {
            let wide = has_wildcard(&namespace);
            let within = if wide { Str::default() } else { namespace.clone() };
            Fetch::Objects { api_version, kind: kind.clone(), namespace: within }
        };
        let failed = |reason: String| Ok(Err(Judgement::new(Verdict::Error, reason)));
        match scope.world().ask(fetch) {
            Answer::Pending => Err(Pending),
            Answer::Refused(reason) => failed(reason),
            Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
                failed(reason.clone())
            }
            Answer::Known(Fact::Missing) => {
                let message = format!("failed to fetch target {kind} {namespace}/{name}: not found");
                Ok(Err(Judgement::new(Verdict::Error, message).with(|detail| detail.no_target = true)))
            }
            // A target that is named is taken whatever its labels.
            Answer::Known(Fact::Found(object)) if exact => below(vec![object.clone()], subresource, scope),
            Answer::Known(Fact::Found(objects)) => {
                let wanted = |object: &&Value| {
                    let has = |pattern: &Str, keys: &[&str]| {
                        pattern.is_empty() || matches(pattern, object.str_at(keys).unwrap_or_default())
                    };
                    has(&namespace, &["metadata", "namespace"])
                        && has(&name, &["metadata", "name"])
                        && labels
                            .as_ref()
                            .is_none_or(|s| s.matches(object.at(&["metadata", "labels"]).and_then(Value::as_object)))
                };
                let objects = objects.as_array().unwrap_or_default().iter().filter(wanted).cloned().collect();
                below(objects, subresource, scope)
            }
        }
    }
}

/// What is patched.
struct Target {
    object: Value,
    below: Option<Box<Below>>,
}

/// Objects as targets, or a subresource of each.
fn below(objects: Vec<Value>, subresource: &str, scope: &Scope<'_>) -> Result<Result<Vec<Target>, Judgement>, Pending> {
    if subresource.is_empty() {
        return Ok(Ok(objects.into_iter().map(|object| Target { object, below: None }).collect()));
    }
    let mut targets = Vec::with_capacity(objects.len());
    let mut pending = false;
    for object in objects {
        let text = |keys: &[&str]| Str::new(object.str_at(keys).unwrap_or_default());
        let (api_version, kind) = (text(&["apiVersion"]), text(&["kind"]));
        let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
        let part: Str = format!("{kind}/{subresource}").into();
        let failed = |reason: &str| {
            let message = format!("failed to fetch target {part} {namespace}/{name}: {reason}");
            Ok(Err(Judgement::new(Verdict::Error, message)))
        };
        let fetch = Fetch::Object {
            api_version: api_version.clone(),
            kind: part.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        match scope.world().ask(fetch) {
            // All of them are asked for together.
            Answer::Pending => pending = true,
            Answer::Refused(reason) => return failed(&reason),
            Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
                return failed(reason);
            }
            // It has gone meanwhile.
            Answer::Known(Fact::Missing) => {}
            Answer::Known(Fact::Found(found)) => {
                let below = Below { api_version, kind, subresource: subresource.into() };
                targets.push(Target { object: found.clone(), below: Some(Box::new(below)) });
            }
        }
    }
    if pending { Err(Pending) } else { Ok(Ok(targets)) }
}
