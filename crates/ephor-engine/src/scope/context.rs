//! The scope of one rule: what names stand for, and when context entries load.

use std::cell::OnceCell;

use ephor_expr::budget::BudgetError;
use ephor_expr::jmespath::{EvalError, Expression, Root, Runtime as _};
use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};
use smol_str::format_smolstr;

use super::data::{is_of_request, reads_data};
use super::entry::Entry;
use super::error::{Cause, Lack, ScopeError};
use super::load::LoadError;
use super::names::mentions;
use super::template::Expr;
use super::world::World;
use crate::images;
use crate::policy::Operation;
use crate::review::{Given, Review};
use crate::trace::Note;

/// The registry of images that name none.
const DEFAULT_REGISTRY: &str = "docker.io";

/// The names that one rule sees while it is evaluated.
///
/// Look-up goes from the innermost out: bindings (elements, loaded entries), then values given by the user, then
/// `request`, `images`, `serviceAccountName` and `serviceAccountNamespace`.
pub struct Scope<'e> {
    world: &'e World<'e>,
    review: &'e Review,
    request: Value,
    images: OnceCell<Result<Option<Value>, EvalError>>,
    given: Option<(&'e Given, Option<&'e Map>)>,
    slots: Vec<Slot<'e>>,
    bindings: Vec<Binding>,
    /// Entries from here on are out of reach: while an entry loads, only earlier ones can.
    reach: usize,
    /// How deep templates and the entries that they mention nest that are being resolved.
    nesting: usize,
}

/// How deep templates may nest together with the entries that they mention, each of which loads where it is read: each
/// level takes stack. One document alone is half as deep.
const MAX_NESTING: usize = 250;
/// How many levels loading an entry counts for.
const LOADING: usize = 3;

struct Binding {
    name: Str,
    value: Value,
    /// Whether the value is data: see [`super::data`].
    is_data: bool,
}

struct Slot<'e> {
    entry: &'e Entry,
    /// If it is loaded: how many bindings there were before.
    loaded: Option<usize>,
}

/// A state of a scope to come back to.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint {
    bindings: usize,
    slots: usize,
}

/// Why an expression has no value in a scope.
#[derive(Debug)]
pub(super) enum Failure {
    Cause(Cause),
    Scope(ScopeError),
}

impl Failure {
    pub(super) fn into_error(self, variable: &str, offset: Option<usize>) -> ScopeError {
        match self {
            Failure::Cause(Cause::Query(EvalError::Pending)) => ScopeError::Pending,
            Failure::Cause(Cause::Query(EvalError::Budget(error))) => ScopeError::Budget(error),
            Failure::Cause(cause) => ScopeError::Unresolved {
                variable: Str::new(variable),
                path: Path::root(),
                offset,
                cause: Box::new(cause),
            },
            Failure::Scope(error) => error,
        }
    }
}

impl<'e> Scope<'e> {
    /// The scope of a rule named `rule` (its declared name) for `review`, whose `request` value is `request`.
    pub fn new(world: &'e World<'e>, review: &'e Review, request: Value, rule: &str, entries: &'e [Entry]) -> Self {
        let given = review.given.as_deref().map(|given| (given, given.rules.get(rule)));
        let request = match given.and_then(|(given, of_rule)| of_rule.unwrap_or(&given.values).get("request")) {
            Some(members) => request.overlaid(members),
            None => request,
        };
        let mut scope = Self {
            world,
            review,
            request,
            images: OnceCell::new(),
            given,
            slots: Vec::with_capacity(entries.len()),
            bindings: Vec::new(),
            reach: usize::MAX,
            nesting: 0,
        };
        scope.declare(entries);
        scope
    }

    /// Facts, time and limits.
    pub fn world(&self) -> &'e World<'e> {
        self.world
    }

    /// The review this is about.
    pub fn review(&self) -> &'e Review {
        self.review
    }

    /// Whether the request deletes its object.
    pub fn is_delete(&self) -> bool {
        self.review.operation == Operation::Delete
    }

    /// Makes context entries known; they load when first mentioned.
    pub fn declare(&mut self, entries: &'e [Entry]) {
        self.slots.extend(entries.iter().map(|entry| Slot { entry, loaded: None }));
    }

    /// Gives a name an object of the cluster, over what it meant before.
    pub fn bind_object(&mut self, name: &'static str, object: Value) {
        self.bindings.push(Binding { name: Str::new_static(name), value: object, is_data: true });
    }

    /// Replaces `request.object`, after a mutation.
    pub fn set_patched(&mut self, object: Value) {
        if let Some(request) = self.request.as_object_mut() {
            request.insert("object", object);
        }
    }

    /// Remembers the present state.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { bindings: self.bindings.len(), slots: self.slots.len() }
    }

    /// Comes back to a state: later bindings, declarations and loads are undone, so that each iteration of a loop
    /// computes its own.
    pub fn restore(&mut self, state: Checkpoint) {
        self.bindings.truncate(state.bindings);
        self.slots.truncate(state.slots);
        for slot in &mut self.slots {
            slot.loaded = slot.loaded.filter(|before| *before < state.bindings);
        }
    }

    /// Binds the variables of iteration `index` of a loop over `list`, nested `depth` deep.
    pub fn bind_element(&mut self, list: &Expr, element: &Value, index: usize, depth: usize, rule: &str) {
        let is_data = reads_data(&list.normal, &[], self);
        if let Some(values) = self.given.and_then(|(given, _)| given.foreach.get(rule)) {
            for (name, value) in values.iter() {
                // Upstream reads index 0 of the given list in every iteration.
                let value = value.as_array().and_then(<[Value]>::first).unwrap_or(value).clone();
                self.bindings.push(Binding { name: name.clone(), value, is_data: false });
            }
        }
        self.bindings.reserve(4);
        for (name, value) in [
            (Str::new_static("element"), element.clone()),
            (Str::new_static("elementIndex"), index.into()),
            (format_smolstr!("element{depth}"), element.clone()),
            (format_smolstr!("elementIndex{depth}"), index.into()),
        ] {
            self.bindings.push(Binding { name, value, is_data });
        }
    }

    /// Evaluates an expression, loading the entries that it mentions first.
    pub(super) fn evaluate(&mut self, expr: &Expr, holes: &[Value]) -> Result<Value, Failure> {
        let expression = match &expr.on_delete {
            Some(on_delete) if self.is_delete() => on_delete,
            _ => &expr.normal,
        };
        self.evaluate_expression(expression, holes)
    }

    /// Evaluates an expression that is not inside `{{ }}`, such as a loop's `list`.
    pub fn evaluate_bare(&mut self, expr: &Expr) -> Result<Value, ScopeError> {
        self.evaluate_expression(&expr.normal, &[]).map_err(|cause| cause.into_error(expr.text(), Some(0)))
    }

    pub(super) fn evaluate_expression(&mut self, expression: &Expression, holes: &[Value]) -> Result<Value, Failure> {
        self.load_mentioned(expression.text())?;
        expression.fill(holes, self, self.world).map_err(|e| Failure::Cause(Cause::Query(e)))
    }

    /// Does what takes stack for so many levels; an error if there are too many.
    pub(super) fn nested<T, E: From<ScopeError>>(
        &mut self,
        levels: usize,
        run: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.nesting + levels > MAX_NESTING {
            return Err(ScopeError::Budget(BudgetError::Depth).into());
        }
        self.nesting += levels;
        let done = run(self);
        self.nesting -= levels;
        done
    }

    fn load_mentioned(&mut self, text: &str) -> Result<(), Failure> {
        for i in 0..self.slots.len().min(self.reach) {
            let Some(slot) = self.slots.get_mut(i) else { break };
            let entry = slot.entry;
            if slot.loaded.is_some() {
                continue;
            }
            let charged = self.world.budget().charge_steps(1 + text.len() as u64 / 16);
            charged.map_err(|error| Failure::Scope(error.into()))?;
            if !mentions(text, &entry.name) {
                continue;
            }
            let reach = std::mem::replace(&mut self.reach, i);
            let loaded = self.nested(LOADING, |scope| scope.load(entry));
            self.reach = reach;
            match loaded {
                Ok(value) => {
                    if let Some(slot) = self.slots.get_mut(i) {
                        slot.loaded = Some(self.bindings.len());
                    }
                    if let Some(value) = value {
                        self.world.note(|| Note::Loaded { entry: entry.name.clone(), value: value.clone() });
                        self.bind_entry(entry, value);
                    }
                }
                Err(error) => {
                    return Err(match error {
                        LoadError::Scope(error @ (ScopeError::Pending | ScopeError::Budget(_))) => {
                            Failure::Scope(error)
                        }
                        other => {
                            let lack = match other.lack() {
                                Lack::Value if entry.is_fetched() => Lack::Data,
                                lack => lack,
                            };
                            let message = other.about(&entry.name);
                            Failure::Cause(Cause::Context { message, lack })
                        }
                    });
                }
            }
        }
        Ok(())
    }

    /// A variable replaces what its name meant; fetched data is merged into it.
    fn bind_entry(&mut self, entry: &Entry, value: Value) {
        let merged = match (entry.is_fetched(), self.bound(&entry.name), &value) {
            (true, Some(Value::Object(before)), Value::Object(after)) => {
                let mut map = (**before).clone();
                for (key, member) in after.iter() {
                    map.insert(key.clone(), member.clone());
                }
                Value::object(map)
            }
            _ => value,
        };
        let is_data = entry.is_data(self);
        self.bindings.push(Binding { name: entry.name.clone(), value: merged, is_data });
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().rev().find(|binding| binding.name == name)
    }

    fn bound(&self, name: &str) -> Option<&Value> {
        self.binding(name).map(|binding| &binding.value)
    }

    /// Whether `name` stands for data, once the entries that an expression mentions are loaded.
    pub(super) fn is_data(&self, name: &str) -> bool {
        match self.binding(name) {
            Some(binding) => binding.is_data,
            None => self.given(name).is_none() && is_of_request(name),
        }
    }

    /// Whether `name` stands for a loaded entry that is a text of the policy.
    pub(super) fn is_policy_text(&self, name: &str) -> bool {
        let binding = self.bindings.iter().rposition(|binding| binding.name == name);
        let bound_by = |slot: &&Slot<'_>| slot.loaded == binding && slot.entry.name == name;
        binding.is_some() && self.slots.iter().find(bound_by).is_some_and(|slot| slot.entry.policy_text().is_some())
    }

    pub(super) fn given(&self, name: &str) -> Option<&Value> {
        let (given, of_rule) = self.given.filter(|_| name != "request")?;
        of_rule.unwrap_or(&given.values).get(name)
    }
}

impl Root for Scope<'_> {
    fn field(&self, name: &str) -> Result<Option<Value>, EvalError> {
        if let Some(value) = self.bound(name) {
            return Ok(Some(value.clone()));
        }
        if let Some(value) = self.given(name) {
            return Ok(Some(value.clone()));
        }
        match name {
            "request" => Ok(Some(self.request.clone())),
            "images" => self
                .images
                .get_or_init(|| {
                    images::extract(self.review.subject(), DEFAULT_REGISTRY)
                        .map_err(|e| EvalError::Other(e.to_string()))
                })
                .clone(),
            "serviceAccountNamespace" => Ok(self.review.user.as_ref().map(|u| Value::from(u.service_account().0))),
            "serviceAccountName" => Ok(self.review.user.as_ref().map(|u| Value::from(u.service_account().1))),
            _ => Ok(None),
        }
    }

    fn whole(&self) -> Result<Value, EvalError> {
        let mut map = Map::new();
        for name in self.keys() {
            if let Some(value) = self.field(&name)? {
                map.insert(name, value);
            }
        }
        Ok(Value::object(map))
    }

    fn keys(&self) -> Vec<Str> {
        let mut keys: Vec<Str> = self.bindings.iter().map(|binding| binding.name.clone()).collect();
        if let Some((given, of_rule)) = self.given {
            keys.extend(of_rule.unwrap_or(&given.values).keys().cloned());
        }
        keys.push(Str::new_static("request"));
        for name in ["images", "serviceAccountName", "serviceAccountNamespace"] {
            if matches!(self.field(name), Ok(Some(_))) {
                keys.push(Str::new(name));
            }
        }
        keys.sort();
        keys.dedup();
        keys
    }
}
