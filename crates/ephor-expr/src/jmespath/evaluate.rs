//! Compiled nodes into values.
//!
//! Values are borrowed from the data as long as possible. A missing member travels as [`Stop::Missing`], which
//! costs nothing to make and nothing to swallow; the error with its list of known members is made only when
//! one reaches the top.

use std::borrow::Cow;

use super::ast::{Comparison, Slice};
use super::compare::{equal, is_falsy, ordered};
use super::error::EvalError;
use super::functions::{Call, Function, Param, Type};
use super::go_text::go_text;
use super::hole;
use super::node::{Argument, Node, Operand};
use super::runtime::{Root, Runtime};
use crate::budget::{Budget, BudgetError};
use crate::scalar::go_regex::ConstantRegex;
use crate::value::{Map, Str, Value};

/// Evaluates a whole expression.
pub(super) fn evaluate(
    node: &Node,
    holes: &[Value],
    root: &dyn Root,
    runtime: &dyn Runtime,
) -> Result<Value, EvalError> {
    let evaluation = Evaluation { holes, root, runtime, budget: runtime.budget() };
    evaluation.eval(node, &Value::Null).map(Cow::into_owned).map_err(|stop| match stop {
        Stop::Missing { key, holder } => {
            let known = holder.as_ref().map_or_else(|| root.keys(), Root::keys);
            match evaluation.budget.charge_steps(known.len() as u64) {
                Ok(()) => EvalError::UnknownKey { key: key.into_owned(), known },
                Err(error) => error.into(),
            }
        }
        Stop::Refused(error) | Stop::Failed(error) => error,
    })
}

/// Why there is no value. Keys live in the nodes (`'n`).
enum Stop<'n> {
    /// `holder`, or the root if `None`, has no member `key`.
    Missing { key: Cow<'n, Str>, holder: Option<Value> },
    /// A function refuses its arguments; only the sources of some projections swallow that.
    Refused(EvalError),
    /// Something from outside that no operator swallows.
    Failed(EvalError),
}

impl Stop<'_> {
    /// An error that a function gave.
    fn of_call(error: EvalError) -> Self {
        match error {
            EvalError::Budget(_) | EvalError::Pending => Stop::Failed(error),
            error => Stop::Refused(error),
        }
    }
}

impl From<BudgetError> for Stop<'_> {
    fn from(error: BudgetError) -> Self {
        Stop::Failed(error.into())
    }
}

/// A value of the data or the expression (`'v`), or a new one.
type Found<'v, 'n> = Result<Cow<'v, Value>, Stop<'n>>;

fn null<'v>() -> Cow<'v, Value> {
    Cow::Owned(Value::Null)
}

struct Evaluation<'e> {
    holes: &'e [Value],
    root: &'e dyn Root,
    runtime: &'e dyn Runtime,
    budget: &'e Budget,
}

impl Evaluation<'_> {
    /// The value of `node` where `current` is `@`. Recurses as deep as the expression nests, which parsing bounds.
    fn eval<'v, 'n: 'v>(&self, node: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        self.budget.charge_steps(1)?;
        match node {
            Node::Current => Ok(Cow::Borrowed(current)),
            Node::Root => Ok(Cow::Owned(self.root.whole().map_err(Stop::Failed)?)),
            Node::RootPath(keys) => self.root_path(keys),
            Node::Path(keys) => walk(keys, current).map(Cow::Borrowed),
            Node::Member(name) => member(name.fill(self.holes, self.budget)?, current),
            Node::Literal(value) => Ok(Cow::Borrowed(value)),
            Node::Mixed(json) => Ok(Cow::Owned(json.fill(self.holes, self.budget)?)),
            Node::Sub(left, right) => self.sub(left, right, current),
            Node::Pipe(left, right) => self.pipe(left, right, current),
            Node::Index(index) => Ok(at(current, *index)),
            Node::IndexOf(hole) => Ok(at(current, hole::index(self.holes.get(*hole)).map_err(Stop::Refused)?)),
            Node::Slice(slice) => self.slice(*slice, current),
            Node::Project { source, each } => self.project(source, each.as_deref(), current),
            Node::Values { source, each } => self.values(source, each.as_deref(), current),
            Node::Flatten(source) => self.flatten(source, current),
            Node::Filter { source, condition, each } => self.filter(source, condition, each.as_deref(), current),
            Node::List { items, at_root, apart: false } => {
                let list = self.list(items, *at_root, current)?;
                self.charge_copies(&list)?;
                Ok(list)
            }
            Node::List { items, at_root, apart: true } => self.list(items, *at_root, current),
            Node::Hash { members, at_root } => self.hash(members, *at_root, current),
            Node::Call { function, args, regex } => self.call(function, args, regex.as_deref(), current),
            Node::Not(inner) => self.not(inner, current),
            Node::And(left, right) => self.and(left, right, current),
            Node::Or(left, right) => self.or(left, right, current),
            Node::Compare(comparison, left, right) => self.compare(*comparison, left, right, current),
        }
    }

    /// The value of `node`, null where a member is missing.
    fn eval_or_null<'v, 'n: 'v>(&self, node: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        match self.eval(node, current) {
            Err(Stop::Missing { .. }) => Ok(null()),
            found => found,
        }
    }

    /// The value of `node` where `current` is `@`, however long that lives.
    fn eval_on<'v, 'n: 'v>(&self, node: &'n Node, current: Cow<'v, Value>) -> Found<'v, 'n> {
        match current {
            Cow::Borrowed(current) => self.eval(node, current),
            Cow::Owned(current) => self.eval(node, &current).map(|found| Cow::Owned(found.into_owned())),
        }
    }

    /// The value of the source of a flatten, a filter or a value projection. Upstream: null whatever goes wrong in
    /// it, while `[*]` and slices swallow only missing members.
    fn eval_source<'v, 'n: 'v>(&self, source: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        match self.eval(source, current) {
            Err(Stop::Missing { .. } | Stop::Refused(_)) => Ok(null()),
            found => found,
        }
    }

    fn sub<'v, 'n: 'v>(&self, left: &'n Node, right: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        let left = self.eval(left, current)?;
        self.eval_on(right, left)
    }

    fn pipe<'v, 'n: 'v>(&self, left: &'n Node, right: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        let left = self.eval_or_null(left, current)?;
        match self.eval_on(right, left) {
            Err(Stop::Missing { .. }) => Ok(null()),
            found => found,
        }
    }

    fn not<'v, 'n: 'v>(&self, inner: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        let inner = self.eval_or_null(inner, current)?;
        Ok(Cow::Owned(Value::Bool(is_falsy(&inner))))
    }

    /// A member missing on the right is not swallowed here.
    fn and<'v, 'n: 'v>(&self, left: &'n Node, right: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        let left = self.eval_or_null(left, current)?;
        if is_falsy(&left) { Ok(left) } else { self.eval(right, current) }
    }

    fn or<'v, 'n: 'v>(&self, left: &'n Node, right: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        let left = self.eval_or_null(left, current)?;
        if is_falsy(&left) { self.eval_or_null(right, current) } else { Ok(left) }
    }

    fn slice<'v, 'n>(&self, slice: Slice, current: &Value) -> Found<'v, 'n> {
        match current.as_array() {
            Some(items) => self.array(slice.of(items)),
            None => Ok(null()),
        }
    }

    fn root_path<'v, 'n>(&self, keys: &'n [Str]) -> Found<'v, 'n> {
        let Some((first, rest)) = keys.split_first() else { return Ok(null()) };
        let Some(member) = self.root.field(first).map_err(Stop::Failed)? else {
            return Err(Stop::Missing { key: Cow::Borrowed(first), holder: None });
        };
        if rest.is_empty() {
            return Ok(Cow::Owned(member));
        }
        walk(rest, &member).map(|found| Cow::Owned(found.clone()))
    }

    /// A built array, charged for.
    fn array<'v, 'n>(&self, items: Vec<Value>) -> Found<'v, 'n> {
        self.budget.charge_bytes(size_of_val(items.as_slice()))?;
        Ok(Cow::Owned(Value::array(items)))
    }

    /// `item` through `each`; null for what a projection leaves out.
    fn one<'v, 'n: 'v>(&self, each: Option<&'n Node>, item: &'v Value) -> Found<'v, 'n> {
        match each {
            Some(each) => self.eval_or_null(each, item),
            None => Ok(Cow::Borrowed(item)),
        }
    }

    fn project<'v, 'n: 'v>(&self, source: &'n Node, each: Option<&'n Node>, current: &'v Value) -> Found<'v, 'n> {
        let source = self.eval_or_null(source, current)?;
        let Value::Array(items) = source.as_ref() else { return Ok(null()) };
        self.budget.charge_steps(items.len() as u64)?;
        if each.is_none() && !items.iter().any(Value::is_null) {
            return Ok(source);
        }
        let mut kept = Vec::with_capacity(items.len());
        for item in items.iter() {
            let found = self.one(each, item)?;
            if !found.is_null() {
                kept.push(found.into_owned());
            }
        }
        self.array(kept)
    }

    /// Upstream: a value projection first yields a null for every member, then the members. Fields of null are
    /// null and drop out, but functions get to see the nulls.
    fn values<'v, 'n: 'v>(&self, source: &'n Node, each: Option<&'n Node>, current: &'v Value) -> Found<'v, 'n> {
        let source = self.eval_source(source, current)?;
        let Value::Object(map) = source.as_ref() else { return Ok(null()) };
        self.budget.charge_steps(map.len() as u64)?;
        let mut kept = Vec::with_capacity(map.len());
        let nulls = std::iter::repeat_n(&NULL, if each.is_some() { map.len() } else { 0 });
        for item in nulls.chain(map.values()) {
            let found = self.one(each, item)?;
            if !found.is_null() {
                kept.push(found.into_owned());
            }
        }
        self.array(kept)
    }

    fn flatten<'v, 'n: 'v>(&self, source: &'n Node, current: &'v Value) -> Found<'v, 'n> {
        let source = self.eval_source(source, current)?;
        let Value::Array(items) = source.as_ref() else { return Ok(null()) };
        self.budget.charge_steps(items.len() as u64)?;
        if !items.iter().any(|item| matches!(item, Value::Array(_))) {
            return Ok(source);
        }
        let mut flat = Vec::with_capacity(items.len());
        for item in items.iter() {
            match item {
                Value::Array(inner) => {
                    self.budget.charge_bytes(size_of_val(inner.as_slice()))?;
                    flat.extend(inner.iter().cloned());
                }
                item => flat.push(item.clone()),
            }
        }
        self.array(flat)
    }

    fn filter<'v, 'n: 'v>(
        &self,
        source: &'n Node,
        condition: &'n Node,
        each: Option<&'n Node>,
        current: &'v Value,
    ) -> Found<'v, 'n> {
        let source = self.eval_source(source, current)?;
        let Value::Array(items) = source.as_ref() else { return Ok(null()) };
        let mut kept = Vec::new();
        for item in items.iter() {
            if is_falsy(self.eval_or_null(condition, item)?.as_ref()) {
                continue;
            }
            let found = self.one(each, item)?;
            if !found.is_null() {
                kept.push(found.into_owned());
            }
        }
        self.array(kept)
    }

    /// Whether a multi-select is null because `@` is.
    fn selects_nothing(&self, at_root: bool, current: &Value) -> bool {
        if at_root { self.root.is_null() } else { current.is_null() }
    }

    fn list<'v, 'n: 'v>(&self, items: &'n [Node], at_root: bool, current: &'v Value) -> Found<'v, 'n> {
        if self.selects_nothing(at_root, current) {
            return Ok(null());
        }
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            list.push(self.eval_or_null(item, current)?.into_owned());
        }
        self.array(list)
    }

    fn hash<'v, 'n: 'v>(&self, members: &'n [(Str, Node)], at_root: bool, current: &'v Value) -> Found<'v, 'n> {
        if self.selects_nothing(at_root, current) {
            return Ok(null());
        }
        let mut entries = Vec::with_capacity(members.len());
        for (key, member) in members {
            entries.push((key.clone(), self.eval_or_null(member, current)?.into_owned()));
        }
        let hash = Value::object(entries.into_iter().collect::<Map>());
        self.budget.charge_bytes(flat_size(&hash))?;
        self.charge_copies(&hash)?;
        Ok(Cow::Owned(hash))
    }

    /// A multi-select may hold one value many times, and be held many times itself: all of it is charged for.
    fn charge_copies(&self, selected: &Value) -> Result<(), BudgetError> {
        self.budget.charge_tree(selected).map(drop)
    }

    fn compare<'v, 'n: 'v>(
        &self,
        comparison: Comparison,
        left: &'n Operand,
        right: &'n Operand,
        current: &'v Value,
    ) -> Found<'v, 'n> {
        let a = self.eval_or_null(&left.node, current)?;
        let b = self.eval_or_null(&right.node, current)?;
        let (native_a, native_b) = (is_native(left, &a), is_native(right, &b));
        Ok(Cow::Owned(match comparison {
            Comparison::Equal | Comparison::NotEqual => {
                let same = native_a == native_b && equal(&a, &b, self.budget)?;
                Value::Bool(same == (comparison == Comparison::Equal))
            }
            _ if native_a || native_b => Value::Null,
            _ => ordered(comparison, &a, &b),
        }))
    }

    fn call<'v, 'n: 'v>(
        &self,
        function: &'static Function,
        args: &'n [Argument],
        regex: Option<&ConstantRegex>,
        current: &'v Value,
    ) -> Found<'v, 'n> {
        // Nearly all calls have few arguments, which need no allocation.
        let (mut few, mut many) = ([const { Value::Null }; 4], Vec::new());
        let values = if let Some(values) = few.get_mut(..args.len()) {
            values
        } else {
            many.resize(args.len(), Value::Null);
            many.as_mut_slice()
        };
        for (arg, slot) in args.iter().zip(values.iter_mut()) {
            let Argument::Value(operand) = arg else { continue };
            *slot = self.eval_or_null(&operand.node, current)?.into_owned();
        }
        for (i, (arg, value)) in args.iter().zip(values.iter()).enumerate() {
            if let (Argument::Value(operand), Some(param)) = (arg, function.param(i)) {
                self.check(function, param, value, is_native(operand, value)).map_err(Stop::of_call)?;
            }
        }
        let apply = |i: usize, value: &Value| match args.get(i) {
            Some(Argument::Expression(node)) => match self.eval_or_null(node, value) {
                Ok(found) => Ok(found.into_owned()),
                Err(Stop::Refused(error) | Stop::Failed(error)) => Err(error),
                Err(Stop::Missing { .. }) => Ok(Value::Null),
            },
            _ => Ok(Value::Null),
        };
        let call = Call { function: function.name, args: values, regex, apply: &apply, runtime: self.runtime };
        let result = (function.call)(&call).map_err(Stop::of_call)?;
        self.budget.charge_bytes(flat_size(&result))?;
        Ok(Cow::Owned(result))
    }

    /// Checks the type of an argument, and charges for a function that reads all of it.
    fn check(&self, function: &Function, param: &Param, value: &Value, native: bool) -> Result<(), EvalError> {
        self.budget.charge_steps(flat_size(value) as u64 / 32)?;
        if native {
            refuse_native(function)?;
        }
        let admitted = |kind: &Type| kind.admits(value) && !(native && *kind == Type::Number);
        if param.types.iter().any(admitted) {
            return Ok(());
        }
        let size = self.budget.charge_tree(value)?;
        self.budget.charge_bytes(size)?;
        Err(EvalError::InvalidType { value: go_text(value), expected: param.types })
    }
}

static NULL: Value = Value::Null;

/// Follows `keys` from `value`. Only objects miss members; members of anything else are null.
fn walk<'v, 'n>(keys: &'n [Str], mut value: &'v Value) -> Result<&'v Value, Stop<'n>> {
    for key in keys {
        value = match value {
            Value::Object(map) => match map.get(key) {
                Some(member) => member,
                None => return Err(Stop::Missing { key: Cow::Borrowed(key), holder: Some(value.clone()) }),
            },
            _ => return Ok(&NULL),
        };
    }
    Ok(value)
}

/// A member whose name is known only now.
fn member<'n>(key: Str, current: &Value) -> Found<'_, 'n> {
    match current {
        Value::Object(map) => match map.get(&key) {
            Some(member) => Ok(Cow::Borrowed(member)),
            None => Err(Stop::Missing { key: Cow::Owned(key), holder: Some(current.clone()) }),
        },
        _ => Ok(null()),
    }
}

/// The item at `index`, from the end if it is negative; null where there is none.
fn at(value: &Value, index: i64) -> Cow<'_, Value> {
    let items = value.as_array().unwrap_or_default();
    let from_start = match i64::try_from(items.len()) {
        Ok(len) if index < 0 => index.saturating_add(len),
        _ => index,
    };
    usize::try_from(from_start).ok().and_then(|i| items.get(i)).map_or(null(), Cow::Borrowed)
}

fn is_native(operand: &Operand, value: &Value) -> bool {
    operand.native && matches!(value, Value::Int(_))
}

/// Functions that take anything but fail on a machine integer.
fn refuse_native(function: &Function) -> Result<(), EvalError> {
    match function.name {
        "type" | "to_number" => Err(EvalError::Other("unknown type".to_owned())),
        "add" | "subtract" | "multiply" | "divide" | "modulo" => {
            Err(EvalError::Function { function: function.name, message: "invalid operand".to_owned() })
        }
        _ => Ok(()),
    }
}

/// The bytes of the value's own level.
fn flat_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => size_of_val(items.as_slice()),
        Value::Object(map) => map.len() * size_of::<(Str, Value)>(),
        _ => 0,
    }
}
