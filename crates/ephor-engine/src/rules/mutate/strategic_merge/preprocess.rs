//! Anchors of a patch: decided against the resource, then taken out.

use std::sync::Arc;

use ephor_expr::budget::Budget;
use ephor_expr::value::List;
use ephor_expr::{Map, Str, Value};

use super::cleanup;
use super::conditions;
use super::error::{MergeError, NodeKind};
use crate::rules::anchor::{Anchor, parse_anchor};
use crate::rules::mutate::limits::{Allowance, MAX_DEPTH, parts_of};

/// Evaluates the anchors of `patch` against `resource`: conditions are checked, `+(key)` members that the resource
/// lacks become plain members, and items of lists with conditions become one item for each item of the resource that
/// meets them. `None` if a condition is not met, so that the whole patch does not apply.
pub fn preprocess(patch: &Value, resource: &Value, budget: &Budget) -> Result<Option<Value>, MergeError> {
    if !matches!(patch, Value::Object(_) | Value::Null) {
        return Err(MergeError::wrong_kind(NodeKind::Mapping, patch));
    }
    let mut patch = patch.clone();
    let mut preprocessor = Preprocessor { allowance: Allowance::new(), budget };
    match preprocessor.value(&mut patch, Some(resource), MAX_DEPTH) {
        Ok(()) => Ok(Some(cleanup::clean_root(&patch))),
        Err(Halt::Unmet | Halt::GlobalUnmet) => Ok(None),
        Err(Halt::Failed(error)) => Err(error),
    }
}

/// Why the walk stops.
enum Halt {
    /// A condition is not met.
    Unmet,
    /// A global condition is not met.
    GlobalUnmet,
    Failed(MergeError),
}

impl From<MergeError> for Halt {
    fn from(error: MergeError) -> Self {
        Halt::Failed(error)
    }
}

/// The anchors that this walk knows; the others are ordinary keys here.
pub(super) fn anchor_of(key: &str) -> Option<(Anchor, &str)> {
    parse_anchor(key).filter(|(anchor, _)| matches!(anchor, Anchor::Condition | Anchor::Global | Anchor::AddIfAbsent))
}

/// The plain key of a `(key)` or `<(key)`.
pub(super) fn condition_key(key: &str) -> Option<&str> {
    anchor_of(key).filter(|(anchor, _)| *anchor != Anchor::AddIfAbsent).map(|(_, name)| name)
}

struct Preprocessor<'b> {
    allowance: Allowance,
    budget: &'b Budget,
}

impl Preprocessor<'_> {
    fn charge(&mut self, parts: usize) -> Result<(), MergeError> {
        self.budget.charge_steps(parts as u64)?;
        self.allowance.take(parts).ok_or(MergeError::TooLarge)
    }

    fn value(&mut self, patch: &mut Value, resource: Option<&Value>, depth: usize) -> Result<(), Halt> {
        let depth = depth.checked_sub(1).ok_or(MergeError::TooDeep)?;
        self.budget.charge_tree(patch).map_err(MergeError::from)?;
        if cleanup::strongest_anchor(patch, depth).is_none() {
            return Ok(check_lists(patch, resource, depth)?);
        }
        match patch {
            Value::Object(map) => self.map(Arc::make_mut(map), resource, depth),
            Value::Array(items) if begins_with_map(items) => self.list(Arc::make_mut(items), resource, depth),
            _ => Ok(()),
        }
    }

    fn map(&mut self, patch: &mut Map, resource: Option<&Value>, depth: usize) -> Result<(), Halt> {
        let resource = resource.and_then(Value::as_object);
        decide_additions(patch, resource);
        for (wanted, unmet) in [(Anchor::Global, Halt::GlobalUnmet), (Anchor::Condition, Halt::Unmet)] {
            for (key, value) in patch.iter_mut() {
                let Some((_, name)) = anchor_of(key).filter(|(anchor, _)| *anchor == wanted) else { continue };
                let Some(actual) = resource.and_then(|map| map.get(name)) else { return Err(unmet) };
                if !value.as_object().is_some_and(has_additions) {
                    if !conditions::hold(value, actual, self.budget).map_err(MergeError::from)? {
                        return Err(unmet);
                    }
                } else if let Some(map) = value.as_object_mut() {
                    // Additions directly inside a condition take its place: nothing is compared.
                    decide_additions(map, actual.as_object());
                }
            }
        }
        for (key, value) in patch.iter_mut() {
            if condition_key(key).is_none() && matches!(value, Value::Object(_) | Value::Array(_)) {
                self.value(value, resource.and_then(|map| map.get(key)), depth)?;
            }
        }
        Ok(())
    }

    /// A list that begins with a map.
    fn list(&mut self, patch: &mut List, resource: Option<&Value>, depth: usize) -> Result<(), Halt> {
        let resource = resource.map(list_of).transpose()?;
        self.charge(patch.len())?;
        let mut expanded = Vec::new();
        for item in patch.iter().filter(|item| item.as_object().is_some()) {
            match cleanup::strongest_anchor(item, MAX_DEPTH) {
                None => {}
                Some(Anchor::Global) => self.guard(item, resource, depth)?,
                Some(_) => self.expand(item, resource.unwrap_or_default(), &mut expanded, depth)?,
            }
        }
        patch.append(&mut expanded);
        Ok(())
    }

    /// An item with a global condition: some item of the resource must meet it, if there are any. Where other
    /// conditions fail before a global one does, the item only has no effect.
    fn guard(&mut self, item: &Value, resource: Option<&[Value]>, depth: usize) -> Result<(), Halt> {
        let mut working = item.clone();
        let Some(resource) = resource else {
            return match self.value(&mut working, None, depth) {
                Ok(()) | Err(Halt::Unmet) => Ok(()),
                halt => halt,
            };
        };
        let (mut refused, parts) = (false, parts_of(item));
        for candidate in resource {
            self.charge(parts)?;
            match self.value(&mut working, Some(candidate), depth) {
                Ok(()) => return Ok(()),
                Err(Halt::Unmet) => {}
                Err(Halt::GlobalUnmet) => refused = true,
                failed => return failed,
            }
        }
        if refused { Err(Halt::GlobalUnmet) } else { Ok(()) }
    }

    /// An item with other anchors: a copy of it for each item of the resource that meets its conditions.
    ///
    /// Upstream: one working copy serves all items of the resource. What was decided for one (which additions are
    /// made, what nested lists expand to) holds for those after it.
    fn expand(
        &mut self,
        item: &Value,
        resource: &[Value],
        expanded: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), Halt> {
        let mut working = item.clone();
        let parts = parts_of(item);
        for candidate in resource {
            self.charge(parts)?;
            match self.value(&mut working, Some(candidate), depth) {
                Ok(()) => {}
                Err(Halt::Unmet | Halt::GlobalUnmet) => continue,
                Err(failed) => return Err(failed),
            }
            let Some(name) = candidate.get("name").filter(|name| !name.is_null()) else { continue };
            let mut copy = cleanup::clean_copy(&working);
            if let Some(map) = copy.as_object_mut().filter(|map| !map.is_empty()) {
                map.insert("name", name.clone());
                expanded.push(copy);
            }
        }
        Ok(())
    }
}

/// Whether the items of a list are looked at: the first one decides.
fn begins_with_map(items: &[Value]) -> bool {
    matches!(items.first(), Some(Value::Object(_)))
}

/// The resource's side of a list of maps; null is the empty list.
fn list_of(resource: &Value) -> Result<&[Value], MergeError> {
    match resource {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => Err(MergeError::wrong_kind(NodeKind::Sequence, other)),
    }
}

/// What the walk makes sure of where there are no anchors: lists of maps stand against lists.
fn check_lists(patch: &Value, resource: Option<&Value>, depth: usize) -> Result<(), MergeError> {
    let depth = depth.checked_sub(1).ok_or(MergeError::TooDeep)?;
    match patch {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            let resource = resource.and_then(|resource| resource.get(key));
            check_lists(value, resource, depth)
        }),
        Value::Array(items) if begins_with_map(items) => {
            resource.map_or(Ok(()), |resource| list_of(resource).map(drop))
        }
        _ => Ok(()),
    }
}

fn has_additions(map: &Map) -> bool {
    map.keys().any(|key| matches!(anchor_of(key), Some((Anchor::AddIfAbsent, _))))
}

/// Turns each `+(key)` into `key`, or takes it out if the resource has such a member, be it null.
fn decide_additions(patch: &mut Map, resource: Option<&Map>) {
    if !has_additions(patch) {
        return;
    }
    let mut added: Vec<(Str, Value)> = Vec::new();
    patch.retain(|key, value| match anchor_of(key) {
        Some((Anchor::AddIfAbsent, name)) => {
            if !resource.is_some_and(|map| map.contains_key(name)) {
                added.push((name.into(), std::mem::take(value)));
            }
            false
        }
        _ => true,
    });
    for (name, value) in added {
        patch.insert(name, value);
    }
}
