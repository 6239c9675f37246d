//! Walks compiled nodes.
//!
//! The costs charged are those that Kubernetes charges: one for reading a variable and for each step of a path, ten
//! for a list, thirty for a map, forty for an object, and what the table says for calls. Nothing is charged for
//! logical operators, conditions and constants.

mod construct;
mod fold;
mod lookup;

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use self::lookup::{is_of, lookup};
use super::environment::{Edition, Signature};
use super::error::EvalError;
use super::library::{self, Arguments, Host, NoHost};
use super::node::{Bind, Call, Key, Node, OptMap, Path, Root, Span, Step};
use super::program::{Scope, Usage};
use super::value::Val;
use crate::budget::Budget;
use crate::scalar::go_regex::RegexCache;

pub(super) use self::lookup::show_key;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const OBJECT_COST: u64 = 40;

/// Arguments that are shorter together take no steps beside those of their call.
const UNCHARGED_LENGTH: usize = 64;

type Eval<T> = Result<T, EvalError>;

/// What an evaluation works with.
pub(super) struct World<'c, 'v> {
    pub(super) scope: &'c dyn Scope<'v>,
    pub(super) host: &'c dyn Host,
    pub(super) budget: &'c Budget,
    pub(super) usage: &'c Usage,
    pub(super) edition: Edition,
    pub(super) watch: Option<&'c Watch<'c>>,
}

/// Hears the value of each part of an expression that the text itself says, and where it stands there, in bytes. A part
/// within a fold has a value for each element, one that is not needed none.
pub type Watch<'c> = dyn Fn(Range<usize>, &Result<Val<'_>, EvalError>) + 'c;

/// The value of `node`.
pub(super) fn evaluate<'v>(node: &Node, slots: usize, world: &World<'_, 'v>) -> Eval<Val<'v>> {
    let mut evaluator = Evaluator { world, slots: SmallVec::new(), regexes: RegexCache::default() };
    evaluator.slots.resize_with(slots, || Slot::Value(Ok(Val::Null)));
    evaluator.eval(node)
}

/// The value of a node of constants.
pub(super) fn constant(node: &Node, edition: Edition) -> Eval<Val<'static>> {
    let (budget, usage) = (Budget::new(100_000, 1 << 20), Usage::new(None));
    evaluate(node, 0, &World { scope: &Nothing, host: &NoHost, budget: &budget, usage: &usage, edition, watch: None })
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
    slots: SmallVec<[Slot<'n, 'v>; 4]>,
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
        let value = match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Path(_, path) => self.path(path, true),
            Node::And(_, sides) => self.logical(sides, false),
            Node::Or(_, sides) => self.logical(sides, true),
            Node::Ternary(_, parts) => self.ternary(parts),
            Node::NotStrictlyFalse(inner) => {
                let value = self.eval(inner);
                self.charge(1)?;
                match value {
                    Err(error) if error.is_fatal() => Err(error),
                    Ok(Val::Bool(false)) => Ok(Val::Bool(false)),
                    _ => Ok(Val::Bool(true)),
                }
            }
            Node::Call(_, call) => self.call(call),
            Node::In(_, parts) => {
                let (item, set) = parts.as_ref();
                let item = self.eval(item)?;
                self.world.budget.charge_steps(set.len() as u64)?;
                Ok(Val::Bool(set.iter().any(|member| member.equals(&item))))
            }
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Object(_, object) => self.object(object),
            Node::Fold(_, fold) => self.fold(fold),
            Node::Append(parts) => self.append(parts.0, &parts.1),
            Node::Insert(parts) => self.insert(parts.0, &parts.1),
            Node::Bind(_, bind) => self.bind(bind),
            Node::OptMap(_, map) => self.opt_map(map),
            Node::OptionalOr(_, sides) => self.optional_or(sides, false),
            Node::OptionalOrValue(_, sides) => self.optional_or(sides, true),
        };
        self.watched(node, &value);
        value
    }

    /// Tells who watches.
    fn watched(&self, node: &Node, value: &Eval<Val<'v>>) {
        if let Some(watch) = self.world.watch
            && let Some(Span { start, end }) = node.span()
        {
            watch(start as usize..end as usize, value);
        }
    }

    /// The value of a node, where reading a variable is free.
    fn eval_free(&mut self, node: &'n Node) -> Eval<Val<'v>> {
        let Node::Path(_, path) = node else { return self.eval(node) };
        let value = self.path(path, false);
        self.watched(node, &value);
        value
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
            Node::Path(..) => self.eval_free(branch),
            other if self.is_head() => self.eval(other),
            other => self.eval(other).map(flattened),
        }
    }

    fn path(&mut self, path: &'n Path, charged: bool) -> Eval<Val<'v>> {
        let result = self.walk(path);
        let free = !charged || path.test || matches!(path.root, Root::Node(Node::Ternary(..)));
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
                let found = match self.eval_free(node) {
                    Ok(key) => {
                        self.charge_reading(std::iter::once(&key))?;
                        lookup(value, &key, lenient)
                    }
                    Err(error) => Err(error),
                };
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
        let mut args: SmallVec<[Val<'v>; 2]> = SmallVec::with_capacity(call.args.len());
        let mut failure = None;
        for node in &call.args {
            match self.eval(node) {
                Ok(value) => args.push(value),
                // One or two operands are all evaluated; of more, none after the first failure. Later versions stop
                // at the first of two as well. The call is charged once all operands were evaluated.
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) if call.args.len() > 2 && args.len() + 1 < call.args.len() => return Err(error),
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
        self.charge_reading(args.iter())?;
        let result = self.dispatch(call, &args);
        self.charge(rule.map_or(1, |rule| rule(&args, result.as_ref().ok())))?;
        result
    }

    /// Takes the steps of reading texts, bytes and lists once. Any function may read its arguments as a whole, whatever
    /// Kubernetes charges for the call, and counting the cost reads them too.
    fn charge_reading<'a>(&self, values: impl Iterator<Item = &'a Val<'v>>) -> Eval<()>
    where
        'v: 'a,
    {
        let length = values.map(Val::stored_length).fold(0, usize::saturating_add);
        if length >= UNCHARGED_LENGTH {
            self.world.budget.charge_reading(length)?;
        }
        Ok(())
    }

    fn dispatch(&self, call: &Call, args: &[Val<'v>]) -> Eval<Val<'v>> {
        let context = library::Call {
            function: &call.function,
            args,
            constant: call.regex.as_ref(),
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

/// Whether the values are of the declared types.
fn accepts(signature: &Arc<Signature>, args: &[Val<'_>]) -> bool {
    signature.params.iter().zip(args).all(|(kind, value)| is_of(kind, value))
}
