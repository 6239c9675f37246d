//! Walks compiled nodes.
//!
//! The costs charged are those that Kubernetes charges: one for reading a variable and for each step of a path, ten
//! for a list, thirty for a map, forty for an object, and what the table says for calls. Nothing is charged for
//! logical operators, conditions and constants.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::environment::{Edition, Signature};
use super::error::EvalError;
use super::library::conversions::double_text;
use super::library::operators::in_range;
use super::library::{self, Arguments, Host, NoHost};
use super::node::{Bind, Call, Entry, Fold, Item, Key, Node, Object, OptMap, Path, Root, Step};
use super::program::{Scope, Usage};
use super::types::Type;
use super::value::{self, Dict, List, Val};
use crate::Str;
use crate::budget::Budget;
use crate::scalar::go_regex::RegexCache;
use crate::scalar::go_time::Time;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const OBJECT_COST: u64 = 40;

type Eval<T> = Result<T, EvalError>;

/// What an evaluation works with.
pub(super) struct World<'c, 'v> {
    pub(super) scope: &'c dyn Scope<'v>,
    pub(super) host: &'c dyn Host,
    pub(super) budget: &'c Budget,
    pub(super) usage: &'c Usage,
    pub(super) edition: Edition,
}

/// The value of `node`.
pub(super) fn evaluate<'v>(node: &Node, slots: usize, world: &World<'_, 'v>) -> Eval<Val<'v>> {
    let mut evaluator = Evaluator { world, slots: Vec::new(), regexes: RegexCache::default() };
    evaluator.slots.resize_with(slots, || Slot::Value(Ok(Val::Null)));
    evaluator.eval(node)
}

/// The value of a node of constants.
pub(super) fn constant(node: &Node, edition: Edition) -> Eval<Val<'static>> {
    let (budget, usage) = (Budget::new(100_000, 1 << 20), Usage::new(None));
    evaluate(node, 0, &World { scope: &Nothing, host: &NoHost, budget: &budget, usage: &usage, edition })
}

/// A scope without variables.
struct Nothing;

impl<'v> Scope<'v> for Nothing {
    fn variable(&self, _: &str) -> Option<Eval<Val<'v>>> {
        None
    }
}

/// A local variable.
enum Slot<'n, 'v> {
    /// A value, or the error that an accumulator may be until a later step absorbs it.
    Value(Eval<Val<'v>>),
    /// Evaluated when it is first read.
    Lazy(&'n Node),
    /// Charged for when it is first read.
    Charged(Val<'v>, u64),
}

struct Evaluator<'n, 'c, 'w, 'v> {
    world: &'w World<'c, 'v>,
    slots: Vec<Slot<'n, 'v>>,
    regexes: RegexCache,
}

impl<'n, 'v> Evaluator<'n, '_, '_, 'v> {
    fn is_head(&self) -> bool {
        self.world.edition == Edition::Head
    }

    fn charge(&self, cost: u64) -> Eval<()> {
        self.world.usage.charge(cost)
    }

    fn eval(&mut self, node: &'n Node) -> Eval<Val<'v>> {
        self.world.budget.charge_steps(1)?;
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Path(path) => self.path(path, true),
            Node::And(sides) => self.logical(sides, false),
            Node::Or(sides) => self.logical(sides, true),
            Node::Ternary(parts) => self.ternary(parts),
            Node::NotStrictlyFalse(inner) => {
                let value = self.eval(inner);
                self.charge(1)?;
                match value {
                    Err(error) if error.is_fatal() => Err(error),
                    Ok(Val::Bool(false)) => Ok(Val::Bool(false)),
                    _ => Ok(Val::Bool(true)),
                }
            }
            Node::Call(call) => self.call(call),
            Node::In(parts) => {
                let (item, set) = parts.as_ref();
                let item = self.eval(item)?;
                self.world.budget.charge_steps(set.len() as u64)?;
                Ok(Val::Bool(set.iter().any(|member| member.equals(&item))))
            }
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Object(object) => self.object(object),
            Node::Fold(fold) => self.fold(fold),
            Node::Append(parts) => self.append(parts.0, &parts.1),
            Node::Insert(parts) => self.insert(parts.0, &parts.1),
            Node::Bind(bind) => self.bind(bind),
            Node::OptMap(map) => self.opt_map(map),
            Node::OptionalOr(sides) => self.optional_or(sides, false),
            Node::OptionalOrValue(sides) => self.optional_or(sides, true),
        }
    }

    /// `&&` ends at false, `||` at true; an error on one side counts only if the other side does not decide.
    fn logical(&mut self, sides: &'n [Node; 2], decides: bool) -> Eval<Val<'v>> {
        let mut failure = None;
        for side in sides {
            match self.eval(side) {
                Ok(Val::Bool(b)) if b == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(EvalError::NoSuchOverload)),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(Val::Bool(!decides)), Err)
    }

    fn ternary(&mut self, [condition, then, otherwise]: &'n [Node; 3]) -> Eval<Val<'v>> {
        let branch = match self.eval(condition)? {
            Val::Bool(true) => then,
            Val::Bool(false) => otherwise,
            _ => return Err(EvalError::NoSuchOverload),
        };
        match branch {
            // Reading a variable is free here, as the reference charges it.
            Node::Path(path) => self.path(path, false),
            other if self.is_head() => self.eval(other),
            other => self.eval(other).map(flattened),
        }
    }

    fn path(&mut self, path: &'n Path, charged: bool) -> Eval<Val<'v>> {
        let result = self.walk(path);
        let free = !charged || path.test || matches!(path.root, Root::Node(Node::Ternary(_)));
        self.charge(u64::from(!free))?;
        result
    }

    fn walk(&mut self, path: &'n Path) -> Eval<Val<'v>> {
        let mut value = match &path.root {
            Root::Slot(slot) => self.local(*slot)?,
            Root::Variable(name) => match self.world.scope.variable(name) {
                Some(value) => value?,
                None => return Err(EvalError::NoSuchAttribute(name.to_string())),
            },
            Root::Member { variable, field } => {
                self.charge(1)?;
                match self.world.scope.member(variable, field) {
                    Some(value) => value?,
                    None => return Err(EvalError::NoSuchKey(field.to_string())),
                }
            }
            Root::Node(node) => self.eval(node)?,
        };
        let Some((last, steps)) = path.steps.split_last() else {
            return Ok(if path.test { Val::Bool(true) } else { value });
        };
        let mut optional = false;
        if let Val::Optional(inner) = &value {
            match inner {
                Some(inner) => (value, optional) = (inner.as_ref().clone(), true),
                None if path.test => {
                    self.charge(1)?;
                    return Ok(Val::Bool(false));
                }
                None => return Ok(value),
            }
        }
        for step in steps {
            optional |= step.optional;
            match self.step(&value, step, optional)? {
                Some(next) => value = next,
                None if path.test => return Ok(Val::Bool(false)),
                None => return Ok(Val::Optional(None)),
            }
        }
        optional |= last.optional;
        let found = self.step(&value, last, optional || path.test)?;
        if path.test {
            self.charge(u64::from(found.is_none()))?;
            return Ok(Val::Bool(found.is_some()));
        }
        match found {
            Some(found) if optional => Ok(Val::some(found)),
            Some(found) => Ok(found),
            None => Ok(Val::Optional(None)),
        }
    }

    /// One step. None if there is nothing and that is no error, since it is `lenient`.
    fn step(&mut self, value: &Val<'v>, step: &'n Step, lenient: bool) -> Eval<Option<Val<'v>>> {
        match &step.key {
            Key::Field(name) => {
                let found = match value {
                    Val::Map(map) => match map.get_str(name) {
                        None if !lenient => Err(EvalError::NoSuchKey(name.to_string())),
                        found => Ok(found),
                    },
                    other => lookup(other, &Val::text(name.clone()), lenient),
                };
                self.stepped(found)
            }
            Key::Const(key) => {
                let found = lookup(value, key, lenient);
                self.stepped(found)
            }
            Key::Node(node) => {
                let key = match node {
                    Node::Path(path) => self.path(path, false),
                    other => self.eval(other),
                };
                let found = key.and_then(|key| lookup(value, &key, lenient));
                self.stepped(found)
            }
        }
    }

    /// Charges a step, unless it found nothing where that is no error.
    fn stepped(&self, found: Eval<Option<Val<'v>>>) -> Eval<Option<Val<'v>>> {
        if !matches!(found, Ok(None)) {
            self.charge(1)?;
        }
        found
    }

    fn call(&mut self, call: &'n Call) -> Eval<Val<'v>> {
        let mut args = Vec::with_capacity(call.args.len());
        let mut failure = None;
        for node in &call.args {
            match self.eval(node) {
                Ok(value) => args.push(value),
                // One or two operands are all evaluated and charged; of more, none after the first failure. Later
                // versions stop at the first of two as well.
                Err(error) if error.is_fatal() || call.args.len() > 2 => return Err(error),
                Err(error) if self.is_head() && call.args.len() == 2 && args.is_empty() => return Err(error),
                Err(error) => {
                    failure = failure.or(Some(error));
                    args.push(Val::Null);
                }
            }
        }
        let by_name = || call.candidates.iter().find(|signature| signature.overload.cost_by_name);
        let overload = call.resolved.as_ref().or_else(by_name).map(|signature| signature.overload);
        let rule = overload.map(|overload| match overload.cost_of_head {
            Some(cost) if self.is_head() => cost,
            _ => overload.cost,
        });
        if let Some(error) = failure {
            let free = call.regex.is_some();
            self.charge(if free { 0 } else { rule.map_or(1, |rule| rule(&args, None)) })?;
            return Err(error);
        }
        let result = self.dispatch(call, &args);
        self.charge(rule.map_or(1, |rule| rule(&args, result.as_ref().ok())))?;
        result
    }

    fn dispatch(&self, call: &Call, args: &[Val<'v>]) -> Eval<Val<'v>> {
        let context = library::Call {
            function: &call.function,
            args,
            compiled: call.regex.as_ref(),
            regexes: &self.regexes,
            budget: self.world.budget,
            edition: self.world.edition,
            host: self.world.host,
        };
        let candidates = call.resolved.as_ref().map_or(call.candidates.as_slice(), std::slice::from_ref);
        let found = candidates
            .iter()
            .find(|signature| signature.overload.arguments == Arguments::Any || accepts(signature, args));
        match found {
            Some(signature) => (signature.overload.code)(&context),
            None if candidates
                .first()
                .is_some_and(|signature| signature.overload.arguments == Arguments::DeclaredBare) =>
            {
                Err(EvalError::NoSuchOverload)
            }
            None => Err(context.no_such_overload()),
        }
    }

    fn list(&mut self, items: &'n [Item]) -> Eval<Val<'v>> {
        let values = self.items(items);
        self.charge(LIST_COST)?;
        let values = values?;
        self.world.budget.charge_bytes(values.len() * 16)?;
        Ok(Val::list(values))
    }

    fn items(&mut self, items: &'n [Item]) -> Eval<Vec<Val<'v>>> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(&item.value)?;
            if item.optional {
                match value {
                    Val::Optional(None) => {}
                    Val::Optional(Some(inner)) => values.push(inner.as_ref().clone()),
                    other => return Err(bad_optional(&other)),
                }
            } else {
                values.push(value);
            }
        }
        Ok(values)
    }

    fn map(&mut self, entries: &'n [Entry]) -> Eval<Val<'v>> {
        let map = self.entries(entries);
        self.charge(MAP_COST)?;
        let map = map?;
        self.world.budget.charge_bytes(map.len() * 32)?;
        Ok(Val::map(map))
    }

    fn entries(&mut self, entries: &'n [Entry]) -> Eval<BTreeMap<value::Key, Val<'v>>> {
        let mut map = BTreeMap::new();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            let key = value::Key::of(&key)?;
            match value {
                Val::Optional(None) if entry.optional => {
                    map.remove(&key);
                }
                Val::Optional(Some(inner)) if entry.optional => {
                    map.insert(key, inner.as_ref().clone());
                }
                other if entry.optional => {
                    let message = format!(
                        "cannot initialize optional entry '{}' from non-optional value {}",
                        show_key(&key.to_val()),
                        show_key(&other)
                    );
                    return Err(EvalError::Other(message));
                }
                other => {
                    map.insert(key, other);
                }
            }
        }
        Ok(map)
    }

    fn object(&mut self, object: &'n Object) -> Eval<Val<'v>> {
        let fields = self.fields(object);
        self.charge(OBJECT_COST)?;
        let fields = fields?;
        if matches!(object.kind, Type::Object(_)) {
            return Ok(Val::Object(Arc::new(value::Object { name: object.name.clone(), fields })));
        }
        well_known(object, &fields)
    }

    fn fields(&mut self, object: &'n Object) -> Eval<BTreeMap<Str, Val<'v>>> {
        let mut fields = BTreeMap::new();
        for (name, node, optional) in &object.fields {
            match self.eval(node)? {
                Val::Optional(None) if *optional => {}
                Val::Optional(Some(inner)) if *optional => {
                    fields.insert(name.clone(), inner.as_ref().clone());
                }
                value => {
                    fields.insert(name.clone(), value);
                }
            }
        }
        Ok(fields)
    }

    fn put(&mut self, slot: usize, content: Slot<'n, 'v>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = content;
        }
    }

    fn set(&mut self, slot: usize, value: Eval<Val<'v>>) {
        self.put(slot, Slot::Value(value));
    }

    /// The value of a local variable.
    fn local(&mut self, slot: usize) -> Eval<Val<'v>> {
        let value = match self.slots.get(slot) {
            Some(Slot::Value(value)) => return value.clone(),
            Some(Slot::Lazy(node)) => {
                let node = *node;
                self.eval(node)
            }
            Some(Slot::Charged(value, cost)) => {
                let (value, cost) = (value.clone(), *cost);
                self.charge(cost)?;
                Ok(value)
            }
            None => return Err(EvalError::NoSuchOverload),
        };
        self.set(slot, value.clone());
        value
    }

    fn take(&mut self, slot: usize) -> Eval<Val<'v>> {
        match self.slots.get_mut(slot).map(|place| std::mem::replace(place, Slot::Value(Ok(Val::Null)))) {
            Some(Slot::Value(value)) => value,
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn fold(&mut self, fold: &'n Fold) -> Eval<Val<'v>> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        self.set(fold.accumulator, init);
        match &range {
            Val::List(List::Json(items)) => {
                for (i, item) in items.iter().enumerate() {
                    if !self.iterate(fold, Val::Int(i as i64), Val::from_json(item))? {
                        break;
                    }
                }
            }
            Val::List(List::Built(items)) => {
                for (i, item) in items.iter().enumerate() {
                    if !self.iterate(fold, Val::Int(i as i64), item.clone())? {
                        break;
                    }
                }
            }
            Val::Map(map) => {
                for (key, value) in map.entries() {
                    if !self.iterate_map(fold, key, value)? {
                        break;
                    }
                }
            }
            other => return Err(EvalError::Other(format!("got '{}', expected iterable type", go_type(other)))),
        }
        self.eval(&fold.result)
    }

    fn iterate(&mut self, fold: &'n Fold, index: Val<'v>, item: Val<'v>) -> Eval<bool> {
        match fold.second {
            Some(second) => {
                self.set(fold.variable, Ok(index));
                self.set(second, Ok(item));
            }
            None => self.set(fold.variable, Ok(item)),
        }
        self.turn(fold)
    }

    fn iterate_map(&mut self, fold: &'n Fold, key: Val<'v>, value: Val<'v>) -> Eval<bool> {
        self.set(fold.variable, Ok(key));
        if let Some(second) = fold.second {
            self.set(second, Ok(value));
        }
        self.turn(fold)
    }

    /// One turn of a fold; false if the condition ends it.
    fn turn(&mut self, fold: &'n Fold) -> Eval<bool> {
        match self.eval(&fold.condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(error) if error.is_fatal() => return Err(error),
            _ => {}
        }
        let next = self.eval(&fold.step);
        if let Err(error) = &next
            && error.is_fatal()
        {
            return next.map(|_| false);
        }
        self.set(fold.accumulator, next);
        Ok(true)
    }

    fn append(&mut self, slot: usize, item: &'n Node) -> Eval<Val<'v>> {
        self.charge(1)?;
        if self.is_head() && matches!(self.slots.get(slot), Some(Slot::Value(Err(_)))) {
            return self.take(slot);
        }
        let constant = matches!(item, Node::Const(_));
        let item = self.eval(item);
        if let Err(error) = &item
            && error.is_fatal()
        {
            return item;
        }
        self.charge(if constant { 1 } else { LIST_COST + 1 })?;
        let list = self.take(slot)?;
        let item = item?;
        self.world.budget.charge_bytes(16)?;
        match list {
            Val::List(List::Built(mut items)) => {
                Arc::make_mut(&mut items).push(item);
                Ok(Val::List(List::Built(items)))
            }
            Val::List(list) => Ok(Val::list(list.iter().chain([item]).collect())),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn insert(&mut self, slot: usize, args: &'n [Node]) -> Eval<Val<'v>> {
        self.charge(1)?;
        let mut values = Vec::with_capacity(2);
        for node in args {
            values.push(self.eval(node)?);
        }
        self.charge(1)?;
        let Val::Map(Dict::Built(mut map)) = self.take(slot)? else { return Err(EvalError::NoSuchOverload) };
        let entries = match values.as_slice() {
            [key, value] => vec![(key.clone(), value.clone())],
            [Val::Map(more)] => more.entries().collect(),
            _ => return Err(EvalError::NoSuchOverload),
        };
        self.world.budget.charge_bytes(entries.len() * 32)?;
        for (key, value) in entries {
            let entry = value::Key::of(&key)?;
            let grown = Arc::make_mut(&mut map);
            if grown.insert(entry, value).is_some() {
                return Err(EvalError::Other(format!("insert failed: key {} already exists", show_key(&key))));
            }
        }
        Ok(Val::Map(Dict::Built(map)))
    }

    fn bind(&mut self, bind: &'n Bind) -> Eval<Val<'v>> {
        self.put(bind.slot, Slot::Lazy(&bind.value));
        self.eval(&bind.body)
    }

    /// The target is evaluated once but charged twice, as the expansion of the macro names it twice.
    fn opt_map(&mut self, map: &'n OptMap) -> Eval<Val<'v>> {
        let before = self.world.usage.spent();
        let target = self.eval(&map.target);
        let cost = self.world.usage.spent() - before;
        if let Err(error) = &target
            && error.is_fatal()
        {
            return target;
        }
        // Later versions name the target once and read the name.
        let (test, read) = if self.is_head() { (2, 2) } else { (1, cost + 1) };
        self.charge(test)?;
        match target? {
            Val::Optional(Some(inner)) => {
                self.put(map.slot, Slot::Charged(inner.as_ref().clone(), read));
                let result = self.eval(&map.body);
                if map.flat {
                    return result;
                }
                self.charge(1)?;
                let some = Val::some(result?);
                Ok(if self.is_head() { some } else { flattened(some) })
            }
            Val::Optional(None) => {
                self.charge(1)?;
                Ok(Val::Optional(None))
            }
            other => Err(EvalError::NoSuchOverloadOf(format!("hasValue({})", other.type_name()))),
        }
    }

    fn optional_or(&mut self, [optional, other]: &'n [Node; 2], unwrap: bool) -> Eval<Val<'v>> {
        match self.eval(optional)? {
            Val::Optional(None) => self.eval(other),
            Val::Optional(Some(inner)) if unwrap => Ok(inner.as_ref().clone()),
            value @ Val::Optional(_) => Ok(value),
            value if unwrap && !self.is_head() => Ok(value),
            _ => Err(EvalError::NoSuchOverload),
        }
    }
}

/// An optional of an optional as one, as the reference reads the branches of conditions.
fn flattened(value: Val<'_>) -> Val<'_> {
    match value {
        Val::Optional(Some(inner)) if matches!(*inner, Val::Optional(Some(_))) => inner.as_ref().clone(),
        other => other,
    }
}

fn bad_optional(value: &Val<'_>) -> EvalError {
    EvalError::Other(format!("cannot initialize optional list element from non-optional value {}", show_key(value)))
}

/// Whether the values are of the declared types.
fn accepts(signature: &Arc<Signature>, args: &[Val<'_>]) -> bool {
    signature.params.iter().zip(args).all(|(kind, value)| is_of(kind, value))
}

/// Whether a value is of a type. Of lists and maps only the first entry is looked at, as in the reference.
fn is_of(kind: &Type, value: &Val<'_>) -> bool {
    match (kind, value) {
        (Type::Dyn | Type::Any | Type::Param(_) | Type::Var(_) | Type::Error, _)
        | (Type::Null, Val::Null)
        | (Type::Bool, Val::Bool(_))
        | (Type::Int, Val::Int(_))
        | (Type::Uint, Val::Uint(_))
        | (Type::Double, Val::Double(_))
        | (Type::String, Val::String(_))
        | (Type::Bytes, Val::Bytes(_))
        | (Type::Timestamp, Val::Timestamp(_))
        | (Type::Duration, Val::Duration(_))
        | (Type::TypeOf(_), Val::Type(_)) => true,
        (Type::List(of), Val::List(list)) => list.get(0).is_none_or(|item| is_of(of, &item)),
        (Type::Map(of), Val::Map(map)) => {
            map.entries().next().is_none_or(|(key, item)| is_of(&of.0, &key) && is_of(&of.1, &item))
        }
        (Type::Optional(of), Val::Optional(inner)) => inner.as_ref().is_none_or(|inner| is_of(of, inner)),
        (Type::Opaque(name) | Type::Object(name), value) => value.type_name() == name.as_str(),
        _ => false,
    }
}

/// What `value` has under `key`.
fn lookup<'v>(value: &Val<'v>, key: &Val<'_>, lenient: bool) -> Eval<Option<Val<'v>>> {
    let missing = |error: EvalError| if lenient { Ok(None) } else { Err(error) };
    match value {
        Val::Map(map) => match map.get(key) {
            Some(found) => Ok(Some(found)),
            None => missing(EvalError::NoSuchKey(show_key(key))),
        },
        Val::List(list) => {
            let index = match key {
                Val::Int(n) => *n,
                Val::Uint(n) => i64::try_from(*n).map_err(|_| EvalError::IntOverflow)?,
                Val::Double(n) if n.fract() == 0.0 => *n as i64,
                Val::Double(n) => {
                    return Err(EvalError::Other(format!("unsupported index value {} in list", double_text(*n))));
                }
                other => {
                    return Err(EvalError::Other(format!("unsupported index type '{}' in list", other.type_name())));
                }
            };
            match usize::try_from(index).ok().and_then(|i| list.get(i)) {
                Some(found) => Ok(Some(found)),
                None => missing(EvalError::IndexOutOfBounds(index)),
            }
        }
        Val::Object(object) => {
            let found = key.as_str().and_then(|name| object.fields.get(name));
            // An empty text is as good as none when it is asked whether a field is set.
            let found = found.filter(|found| !lenient || found.as_str() != Some("")).cloned();
            // A field that is not set is null.
            Ok(found.or((!lenient).then_some(Val::Null)))
        }
        _ => missing(EvalError::NoSuchKey(show_key(key))),
    }
}

/// A value as messages print it.
pub(super) fn show_key(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".into(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(n) => crate::scalar::number::format_g(*n),
        Val::String(text) => text.as_str().into(),
        other => other.type_name().into_owned(),
    }
}

/// The name of a value's type in the reference's own language.
pub(super) fn go_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::String(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Duration(_) => "types.Duration",
        Val::Timestamp(_) => "types.Timestamp",
        Val::List(_) => "*types.baseList",
        Val::Map(_) => "*types.baseMap",
        Val::Optional(_) => "*types.Optional",
        Val::Type(_) => "*types.Type",
        Val::Object(_) | Val::Opaque(_) => "ref.Val",
    }
}

/// The value that a message of the language itself stands for.
fn well_known<'v>(object: &Object, fields: &BTreeMap<crate::Str, Val<'v>>) -> Eval<Val<'v>> {
    let int = |name: &str| match fields.get(name) {
        Some(Val::Int(n)) => *n,
        _ => 0,
    };
    let first = || fields.values().next().cloned();
    let (seconds, nanos) = (int("seconds"), int("nanos"));
    Ok(match &object.kind {
        Type::Timestamp => {
            let time = Time::from_unix(seconds, u32::try_from(nanos).unwrap_or_default());
            if !in_range(&time) {
                return Err(EvalError::other("timestamp overflow"));
            }
            Val::Timestamp(time)
        }
        Type::Duration => Val::Duration(
            seconds.checked_mul(1_000_000_000).and_then(|n| n.checked_add(nanos)).ok_or(EvalError::IntOverflow)?,
        ),
        Type::Wrapper(of) => {
            let value = first().unwrap_or_else(|| zero(of));
            let narrow = match (object.name.as_str(), &value) {
                ("google.protobuf.Int32Value", Val::Int(n)) => i32::try_from(*n).is_ok(),
                ("google.protobuf.UInt32Value", Val::Uint(n)) => u32::try_from(*n).is_ok(),
                _ => true,
            };
            if !narrow {
                let message = format!(
                    "field type conversion error for {}.value value type: {} overflow",
                    object.name,
                    if matches!(value, Val::Int(_)) { "integer" } else { "unsigned integer" }
                );
                return Err(EvalError::Other(message));
            }
            match value {
                Val::Double(n) if object.name.ends_with("FloatValue") => Val::Double(f64::from(n as f32)),
                other => other,
            }
        }
        Type::List(_) => first().unwrap_or_else(|| Val::list(Vec::new())),
        Type::Map(_) => first().unwrap_or_else(|| Val::map(BTreeMap::new())),
        Type::Any => return Err(EvalError::other("unsupported conversion to ref.Val: (*dynamicpb.Message)")),
        _ => first().unwrap_or(Val::Null),
    })
}

fn zero<'v>(kind: &Type) -> Val<'v> {
    match kind {
        Type::Bool => Val::Bool(false),
        Type::Int => Val::Int(0),
        Type::Uint => Val::Uint(0),
        Type::Double => Val::Double(0.0),
        Type::Bytes => Val::Bytes(Arc::from([])),
        _ => Val::text(""),
    }
}
