//! Applying patches.

use std::sync::Arc;

use ephor_expr::budget::Budget;
use ephor_expr::{Map, Str, Value};

use super::error::{JsonPatchError, PlaceFault};
use super::operation::{JsonPatch, PatchOp};
use super::pointer::{Index, Pointer, child, child_mut, item_place};
use crate::rules::mutate::limits::{Allowance, MAX_LEVELS};

/// The most operations of one patch, as API servers have it.
const MAX_OPERATIONS: usize = 10_000;

/// The most bytes that the copies of one patch may add together, as API servers have it.
const MAX_COPIED: usize = 3 << 20;

/// How many members or items of a container that an operation moves aside count as one step.
const MEMBERS_A_STEP: u64 = 32;

impl JsonPatch {
    /// The document with all operations done. If one fails there is no result. The work is charged to `budget`.
    pub fn apply(&self, document: &Value, budget: &Budget) -> Result<Value, JsonPatchError> {
        self.apply_as(Dialect::Kyverno, document, budget)
    }

    /// The same as API servers patch: `add` creates no parents, what `remove` names must exist, and `replace` adds a
    /// member that is missing.
    pub fn apply_as_api_server(&self, document: &Value, budget: &Budget) -> Result<Value, JsonPatchError> {
        self.apply_as(Dialect::ApiServer, document, budget)
    }

    fn apply_as(&self, dialect: Dialect, document: &Value, budget: &Budget) -> Result<Value, JsonPatchError> {
        if self.ops.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations { max: MAX_OPERATIONS });
        }
        let mut target = Target {
            document: document.clone(),
            dialect,
            allowance: Allowance::new(),
            left_to_copy: MAX_COPIED,
            budget,
        };
        for op in &self.ops {
            target.apply(op)?;
        }
        Ok(target.document)
    }
}

/// What operations do at a path that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// `add` creates it, `remove` does nothing, `replace` fails.
    Kyverno,
    /// `add` and `remove` fail, `replace` adds a member.
    ApiServer,
}

struct Target<'b> {
    document: Value,
    dialect: Dialect,
    /// For nulls that fill lists.
    allowance: Allowance,
    /// How many bytes copies may still add.
    left_to_copy: usize,
    budget: &'b Budget,
}

/// How many members or items `value` has.
fn members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    }
}

impl Target<'_> {
    fn apply(&mut self, op: &PatchOp) -> Result<(), JsonPatchError> {
        self.charge(op)?;
        match op {
            PatchOp::Add { path, value } => self.add(path, value),
            PatchOp::Remove { path } => self.remove(path),
            PatchOp::Replace { path, value } => self.replace(path, value),
            PatchOp::Move { from, path } => self.relocate(from, path),
            PatchOp::Copy { from, path } => self.copy(from, path),
            PatchOp::Test { path, value } => self.test(path, value),
        }
    }

    /// Charges for going to the places of an operation, and for making room there.
    fn charge(&self, op: &PatchOp) -> Result<(), JsonPatchError> {
        let (path, value) = match op {
            PatchOp::Add { path, value } | PatchOp::Replace { path, value } | PatchOp::Test { path, value } => {
                (path, Some(value))
            }
            PatchOp::Remove { path } | PatchOp::Move { path, .. } | PatchOp::Copy { path, .. } => (path, None),
        };
        let from = match op {
            PatchOp::Move { from, .. } | PatchOp::Copy { from, .. } => Some(from),
            _ => None,
        };
        for pointer in [Some(path), from].into_iter().flatten() {
            self.budget.charge_steps(1 + pointer.steps().len() as u64)?;
            let mut place = &self.document;
            for step in pointer.steps() {
                self.budget.charge_steps(members(place) as u64 / MEMBERS_A_STEP)?;
                let Some(next) = child(place, step) else { break };
                place = next;
            }
        }
        if let Some(value) = value {
            self.budget.charge_tree(value)?;
        }
        Ok(())
    }

    /// What the steps lead to.
    fn lookup(&self, steps: &[Str]) -> Option<&Value> {
        steps.iter().try_fold(&self.document, |value, step| child(value, step))
    }

    fn lookup_mut(&mut self, steps: &[Str]) -> Option<&mut Value> {
        steps.iter().try_fold(&mut self.document, |value, step| child_mut(value, step))
    }

    /// The map or list that holds what `path` points to.
    fn container(&self, path: &Pointer) -> Option<(&Value, Str)> {
        let (last, parents) = path.split_last()?;
        let parent = self.lookup(parents).filter(|parent| is_container(parent))?;
        Some((parent, last.clone()))
    }

    fn set_root(&mut self, value: Value, op: &'static str) -> Result<(), JsonPatchError> {
        if !is_container(&value) {
            return Err(JsonPatchError::ScalarRoot { op });
        }
        self.document = value;
        Ok(())
    }

    fn add(&mut self, path: &Pointer, value: &Value) -> Result<(), JsonPatchError> {
        if path.is_root() {
            return self.set_root(value.clone(), "add");
        }
        let missing = || JsonPatchError::AddMissingPath(path.to_string());
        check_depth(value, path.steps().len())?;
        let (last, parents) = path.split_last().ok_or_else(missing)?;
        if self.dialect == Dialect::ApiServer && self.container(path).is_none() {
            return Err(missing());
        }
        let mut parent = &mut self.document;
        for (step, next) in parents.iter().zip(path.steps().iter().skip(1)) {
            parent = descend(parent, step, &mut self.allowance)?.ok_or_else(missing)?;
            if parent.is_null() {
                *parent = new_parent(next, &mut self.allowance)?;
            }
        }
        if !is_container(parent) {
            return Err(JsonPatchError::ScalarParent);
        }
        insert(parent, last, value.clone()).map_err(|fault| at("add", path.as_str(), fault))
    }

    fn remove(&mut self, path: &Pointer) -> Result<(), JsonPatchError> {
        match self.container(path) {
            Some((parent, step)) => match find(parent, &step) {
                Ok(_) => {}
                Err(PlaceFault::MissingKey(key)) if self.dialect == Dialect::ApiServer => {
                    return Err(at("remove", path.as_str(), PlaceFault::NothingToRemove(key)));
                }
                Err(fault) if self.dialect == Dialect::ApiServer => {
                    return Err(at("remove", path.as_str(), fault));
                }
                Err(PlaceFault::OutOfBounds(_) | PlaceFault::MissingKey(_)) => return Ok(()),
                Err(fault) => return Err(at("remove", path.as_str(), fault)),
            },
            None if self.dialect == Dialect::ApiServer => {
                return Err(JsonPatchError::RemoveMissingPath(path.to_string()));
            }
            None => return Ok(()),
        }
        self.take(path);
        Ok(())
    }

    /// Takes out what `path` points to, which must be there.
    fn take(&mut self, path: &Pointer) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        match self.lookup_mut(parents)? {
            Value::Object(map) => Arc::make_mut(map).remove(last),
            Value::Array(items) => {
                let Index::Number(index) = Index::of(last) else { return None };
                let place = item_place(index, items.len())?;
                Some(Arc::make_mut(items).remove(place))
            }
            _ => None,
        }
    }

    fn replace(&mut self, path: &Pointer, value: &Value) -> Result<(), JsonPatchError> {
        if path.is_root() {
            return self.set_root(value.clone(), "replace");
        }
        check_depth(value, path.steps().len())?;
        if self.container(path).is_none() {
            return Err(JsonPatchError::ReplaceMissingPath(path.to_string()));
        }
        if self.lookup(path.steps()).is_none() {
            if self.dialect == Dialect::ApiServer
                && self.container(path).is_some_and(|(parent, _)| parent.as_object().is_some())
            {
                return self.add(path, value);
            }
            return Err(JsonPatchError::ReplaceMissingKey(path.to_string()));
        }
        if let Some(place) = self.lookup_mut(path.steps()) {
            *place = value.clone();
        }
        Ok(())
    }

    fn test(&mut self, path: &Pointer, wanted: &Value) -> Result<(), JsonPatchError> {
        let failed = || JsonPatchError::TestFailed(path.to_string());
        if path.is_root() {
            return if self.document == *wanted { Ok(()) } else { Err(failed()) };
        }
        let (parent, step) = self.container(path).ok_or_else(|| JsonPatchError::TestMissingPath(path.to_string()))?;
        let found = match find(parent, &step) {
            Ok(found) => found,
            Err(PlaceFault::MissingKey(_)) => &Value::Null,
            Err(fault) => return Err(at("test", path.as_str(), fault)),
        };
        if found == wanted { Ok(()) } else { Err(failed()) }
    }

    fn relocate(&mut self, from: &Pointer, path: &Pointer) -> Result<(), JsonPatchError> {
        if from.is_root() {
            return Err(JsonPatchError::MoveRoot);
        }
        let missing = || JsonPatchError::MoveMissingFrom(from.to_string());
        let (parent, step) = self.container(from).ok_or_else(missing)?;
        find(parent, &step).map_err(|fault| at("move", &step, fault))?;
        let value = self.take(from).ok_or_else(missing)?;
        self.budget.charge_tree(&value)?;
        self.put(path, value, "move", |fault| at("move", path.as_str(), fault))
    }

    fn copy(&mut self, from: &Pointer, path: &Pointer) -> Result<(), JsonPatchError> {
        let value = if from.is_root() {
            self.document.clone()
        } else {
            let missing = || JsonPatchError::CopyMissingFrom(from.to_string());
            let (parent, step) = self.container(from).ok_or_else(missing)?;
            let fault = |fault| JsonPatchError::CopyFrom { from: from.to_string(), fault };
            find(parent, &step).map_err(fault)?.clone()
        };
        // Copies are shared, so that copying costs nothing here; printing the result would.
        let size = self.budget.charge_tree(&value)?;
        let left = self.left_to_copy.checked_sub(size);
        self.left_to_copy = left.ok_or(JsonPatchError::CopiesTooMuch { max: MAX_COPIED })?;
        self.put(path, value, "copy", JsonPatchError::CopyTo)
    }

    /// Adds a moved or copied value; unlike `add`, without creating parents.
    fn put(
        &mut self,
        path: &Pointer,
        value: Value,
        op: &'static str,
        failed: impl Fn(PlaceFault) -> JsonPatchError,
    ) -> Result<(), JsonPatchError> {
        if path.is_root() {
            return self.set_root(value, op);
        }
        check_depth(&value, path.steps().len())?;
        let missing = || JsonPatchError::MissingDestination { op, path: path.to_string() };
        let (step, parents) = path.split_last().ok_or_else(missing)?;
        let parent = self.lookup_mut(parents).filter(|parent| is_container(parent)).ok_or_else(missing)?;
        insert(parent, step, value).map_err(failed)
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

fn at(op: &'static str, path: &str, fault: PlaceFault) -> JsonPatchError {
    JsonPatchError::Place { op, path: path.to_owned(), fault }
}

/// What stands at one step below a map or list.
fn find<'v>(parent: &'v Value, step: &str) -> Result<&'v Value, PlaceFault> {
    match parent.as_array() {
        None => parent.get(step).ok_or_else(|| PlaceFault::MissingKey(step.to_owned())),
        Some(items) => {
            let index = number(step)?;
            item_place(index, items.len()).and_then(|place| items.get(place)).ok_or(PlaceFault::OutOfBounds(index))
        }
    }
}

fn number(step: &str) -> Result<i64, PlaceFault> {
    match Index::of(step) {
        Index::Number(index) => Ok(index),
        Index::End | Index::Malformed => Err(PlaceFault::NotANumber(step.to_owned())),
        Index::Overflow => Err(PlaceFault::NumberOutOfRange(step.to_owned())),
    }
}

/// Adds a member, or an item before the one at `step`; `-1` is after the last, `-2` before it.
fn insert(parent: &mut Value, step: &Str, value: Value) -> Result<(), PlaceFault> {
    let items = match parent {
        Value::Array(items) => Arc::make_mut(items),
        Value::Object(map) => {
            Arc::make_mut(map).insert(step.clone(), value);
            return Ok(());
        }
        _ => return Ok(()),
    };
    if Index::of(step) == Index::End {
        items.push(value);
        return Ok(());
    }
    let not_an_index = |fault| PlaceFault::NotAnIndex { step: step.to_string(), fault: Box::new(fault) };
    let index = number(step).map_err(not_an_index)?;
    let place = item_place(index, items.len() + 1).ok_or(PlaceFault::OutOfBounds(index))?;
    items.insert(place, value);
    Ok(())
}

/// One step of `add` towards its place, making room in lists. `None` if there is no such step.
fn descend<'v>(
    value: &'v mut Value,
    step: &str,
    allowance: &mut Allowance,
) -> Result<Option<&'v mut Value>, JsonPatchError> {
    let items = match value {
        Value::Object(map) => return Ok(Some(Arc::make_mut(map).entry(step))),
        Value::Array(items) => Arc::make_mut(items),
        _ => return Err(JsonPatchError::ScalarParent),
    };
    let place = match Index::of(step) {
        Index::Number(index) if index >= 0 => usize::try_from(index).map_err(|_| JsonPatchError::TooLarge)?,
        Index::Number(-1) if items.is_empty() => 0,
        Index::Number(index) => match item_place(index, items.len()) {
            Some(place) => place,
            None => return Ok(None),
        },
        Index::End | Index::Malformed | Index::Overflow => return Ok(None),
    };
    if place >= items.len() {
        allowance.take(place - items.len()).ok_or(JsonPatchError::TooLarge)?;
        items.resize(place + 1, Value::Null);
    }
    Ok(items.get_mut(place))
}

/// The map or list in which `step` is the next.
fn new_parent(step: &str, allowance: &mut Allowance) -> Result<Value, JsonPatchError> {
    let len = match Index::of(step) {
        Index::Malformed | Index::Overflow => return Ok(Value::object(Map::new())),
        Index::End | Index::Number(-1) => 0,
        Index::Number(index) => usize::try_from(index).map_err(|_| JsonPatchError::NegativeIndexInNewList(index))?,
    };
    allowance.take(len).ok_or(JsonPatchError::TooLarge)?;
    Ok(Value::array(vec![Value::Null; len]))
}

/// Refuses `value` where it would make a document too deep.
fn check_depth(value: &Value, steps: usize) -> Result<(), JsonPatchError> {
    match MAX_LEVELS.checked_sub(steps) {
        Some(left) if !is_container(value) || !value.is_deeper_than(left) => Ok(()),
        _ => Err(JsonPatchError::TooDeep),
    }
}
