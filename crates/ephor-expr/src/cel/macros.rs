//! Macros: calls that are rewritten while parsing. A table entry each: name, number of arguments, expansion.

use super::ast::{Comprehension, Id, Item, Kind};
use super::literal::Literal;
use super::parser::Parser;
use crate::Str;

/// The name of the accumulator in expansions; no text can write it.
const ACCUMULATOR: &str = "@result";
/// A name that variables of folds may not have, as accumulators once had it.
const FORBIDDEN: &str = "__result__";
/// The variable of a fold over nothing.
const UNUSED: &str = "#unused";

/// How many arguments a macro takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    Exactly(usize),
    Any,
}

/// A macro.
#[derive(Debug, Clone, Copy)]
pub struct Macro {
    /// The name it is called by.
    pub name: &'static str,
    pub(super) arity: Arity,
    /// Whether it is called on something: `x.name()`.
    pub(super) receiver: bool,
    /// None if the call is no use of the macro after all, but of a function.
    pub(super) expand: fn(&mut Parser<'_>, &Use<'_>) -> Option<Id>,
}

/// One use of a macro.
pub(super) struct Use<'a> {
    pub(super) offset: usize,
    pub(super) target: Option<Id>,
    pub(super) args: &'a [Id],
}

impl Macro {
    pub(super) fn applies(&self, name: &str, receiver: bool, args: usize) -> bool {
        self.name == name
            && self.receiver == receiver
            && (self.arity == Arity::Any || self.arity == Arity::Exactly(args))
    }
}

const fn on(name: &'static str, args: usize, expand: fn(&mut Parser<'_>, &Use<'_>) -> Option<Id>) -> Macro {
    Macro { name, arity: Arity::Exactly(args), receiver: true, expand }
}

/// The macros of the language itself.
pub(super) const STANDARD: &[Macro] = &[
    Macro { name: "has", arity: Arity::Exactly(1), receiver: false, expand: has },
    on("all", 2, |p, u| quantifier(p, u, Quantifier::All)),
    on("exists", 2, |p, u| quantifier(p, u, Quantifier::Exists)),
    on("exists_one", 2, |p, u| quantifier(p, u, Quantifier::ExistsOne)),
    on("map", 2, map),
    on("map", 3, map),
    on("filter", 2, filter),
];

/// `existsOne` with one variable.
pub(super) const EXISTS_ONE: &[Macro] = &[on("existsOne", 2, |p, u| quantifier(p, u, Quantifier::ExistsOne))];

/// Macros over two variables.
pub(super) const TWO_VARIABLE: &[Macro] = &[
    on("all", 3, |p, u| quantifier(p, u, Quantifier::All)),
    on("exists", 3, |p, u| quantifier(p, u, Quantifier::Exists)),
    on("existsOne", 3, |p, u| quantifier(p, u, Quantifier::ExistsOne)),
    on("exists_one", 3, |p, u| quantifier(p, u, Quantifier::ExistsOne)),
    on("transformList", 3, |p, u| transform(p, u, Transform::List)),
    on("transformList", 4, |p, u| transform(p, u, Transform::List)),
    on("transformMap", 3, |p, u| transform(p, u, Transform::Map)),
    on("transformMap", 4, |p, u| transform(p, u, Transform::Map)),
    on("transformMapEntry", 3, |p, u| transform(p, u, Transform::Entry)),
    on("transformMapEntry", 4, |p, u| transform(p, u, Transform::Entry)),
];

/// Macros over optional values.
pub(super) const OPTIONALS: &[Macro] =
    &[on("optMap", 2, |p, u| opt_map(p, u, false)), on("optFlatMap", 2, |p, u| opt_map(p, u, true))];

/// `cel.bind`.
pub(super) const BINDINGS: &[Macro] = &[on("bind", 3, bind)];

/// `sortBy`.
pub(super) const LISTS: &[Macro] = &[on("sortBy", 2, sort_by)];

/// `math.greatest` and `math.least`.
pub(super) const MATH: &[Macro] = &[
    Macro {
        name: "greatest",
        arity: Arity::Any,
        receiver: true,
        expand: |p, u| extremum(p, u, "greatest", "math.@max"),
    },
    Macro { name: "least", arity: Arity::Any, receiver: true, expand: |p, u| extremum(p, u, "least", "math.@min") },
];

/// `proto.hasExt` and `proto.getExt`, fields with dotted names; no type has any.
pub(super) const PROTOS: &[Macro] =
    &[on("hasExt", 2, |p, u| extension(p, u, true)), on("getExt", 2, |p, u| extension(p, u, false))];

/// `x.orValue(y)` on optionals and on what is none.
pub(super) const OR_VALUE: &[Macro] = &[on("orValue", 1, |p, u| {
    let (Some(target), [arg]) = (u.target, u.args) else { return None };
    Some(p.call(u.offset, "@orValue", vec![target, *arg]))
})];

fn has(p: &mut Parser<'_>, u: &Use<'_>) -> Option<Id> {
    let [arg] = u.args else { return None };
    if let Kind::Select { operand, field, .. } = p.ast.kind(*arg) {
        let kind = Kind::Select { operand: *operand, field: field.clone(), test: true };
        return Some(p.add(u.offset, kind));
    }
    let offset = p.ast.offset(*arg);
    p.issue(offset, "invalid argument to has() macro");
    Some(p.error_node(u.offset))
}

/// The name that argument `id` is, or an issue.
fn variable(p: &mut Parser<'_>, id: Id, message: &str) -> Option<Str> {
    let offset = p.ast.offset(id);
    let name = match p.ast.kind(id) {
        Kind::Ident(name) => Some(name.clone()),
        _ => None,
    };
    match name {
        Some(name) if name == FORBIDDEN => {
            p.issue(offset, "iteration variable overwrites accumulator variable");
            None
        }
        Some(name) if !name.starts_with('.') => Some(name),
        _ => {
            p.issue(offset, message);
            None
        }
    }
}

/// One or two variables of a fold.
fn variables(p: &mut Parser<'_>, ids: &[Id]) -> Option<(Str, Option<Str>)> {
    match ids {
        [one] => Some((variable(p, *one, "argument must be a simple name")?, None)),
        [one, two] => {
            let first = variable(p, *one, "argument must be a simple name")?;
            let second = variable(p, *two, "argument must be a simple name")?;
            if first == second {
                let offset = p.ast.offset(*two);
                p.issue(offset, format!("duplicate variable name: {first}"));
                return None;
            }
            Some((first, Some(second)))
        }
        _ => None,
    }
}

fn ident(p: &mut Parser<'_>, offset: usize, name: &str) -> Id {
    p.add(offset, Kind::Ident(name.into()))
}

fn literal(p: &mut Parser<'_>, offset: usize, literal: Literal) -> Id {
    p.add(offset, Kind::Literal(literal))
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

fn quantifier(p: &mut Parser<'_>, u: &Use<'_>, quantifier: Quantifier) -> Option<Id> {
    let (predicate, names) = u.args.split_last()?;
    let Some((variable, second)) = variables(p, names) else { return Some(p.error_node(u.offset)) };
    let at = u.offset;
    let accumulator = |p: &mut Parser<'_>| ident(p, at, ACCUMULATOR);
    let init = literal(
        p,
        at,
        match quantifier {
            Quantifier::All => Literal::Bool(true),
            Quantifier::Exists => Literal::Bool(false),
            Quantifier::ExistsOne => Literal::Int(0),
        },
    );
    let (condition, step, result) = match quantifier {
        Quantifier::All => {
            let so_far = accumulator(p);
            let condition = p.call(at, "@not_strictly_false", vec![so_far]);
            let so_far = accumulator(p);
            (condition, p.call(at, "_&&_", vec![so_far, *predicate]), accumulator(p))
        }
        Quantifier::Exists => {
            let so_far = accumulator(p);
            let not = p.call(at, "!_", vec![so_far]);
            let condition = p.call(at, "@not_strictly_false", vec![not]);
            let so_far = accumulator(p);
            (condition, p.call(at, "_||_", vec![so_far, *predicate]), accumulator(p))
        }
        Quantifier::ExistsOne => {
            let condition = literal(p, at, Literal::Bool(true));
            let (so_far, one) = (accumulator(p), literal(p, at, Literal::Int(1)));
            let more = p.call(at, "_+_", vec![so_far, one]);
            let same = accumulator(p);
            let step = p.call(at, "_?_:_", vec![*predicate, more, same]);
            let (so_far, one) = (accumulator(p), literal(p, at, Literal::Int(1)));
            (condition, step, p.call(at, "_==_", vec![so_far, one]))
        }
    };
    Some(fold(p, u, (variable, second), init, condition, step, result))
}

fn fold(
    p: &mut Parser<'_>,
    u: &Use<'_>,
    (variable, second): (Str, Option<Str>),
    init: Id,
    condition: Id,
    step: Id,
    result: Id,
) -> Id {
    let Some(range) = u.target else { return p.error_node(u.offset) };
    let accumulator = ACCUMULATOR.into();
    let fold = Comprehension { range, variable, second, accumulator, init, condition, step, result };
    p.add(u.offset, Kind::Comprehension(Box::new(fold)))
}

/// A fold that builds a list or map: every step makes the accumulator anew, if `filter` holds.
fn build(
    p: &mut Parser<'_>,
    u: &Use<'_>,
    names: (Str, Option<Str>),
    init: Kind,
    filter: Option<Id>,
    step: impl FnOnce(&mut Parser<'_>, Id) -> Id,
) -> Id {
    let at = u.offset;
    let init = p.add(at, init);
    let condition = literal(p, at, Literal::Bool(true));
    let so_far = ident(p, at, ACCUMULATOR);
    let mut step = step(p, so_far);
    if let Some(filter) = filter {
        let same = ident(p, at, ACCUMULATOR);
        step = p.call(at, "_?_:_", vec![filter, step, same]);
    }
    let result = ident(p, at, ACCUMULATOR);
    fold(p, u, names, init, condition, step, result)
}

fn append(p: &mut Parser<'_>, at: usize, so_far: Id, value: Id) -> Id {
    let one = p.add(at, Kind::List(vec![Item { value, optional: false }]));
    p.call(at, "_+_", vec![so_far, one])
}

fn map(p: &mut Parser<'_>, u: &Use<'_>) -> Option<Id> {
    let (name, filter, value) = match u.args {
        [name, value] => (*name, None, *value),
        [name, filter, value] => (*name, Some(*filter), *value),
        _ => return None,
    };
    let Some(variable) = variable(p, name, "argument is not an identifier") else {
        return Some(p.error_node(u.offset));
    };
    Some(build(p, u, (variable, None), Kind::List(Vec::new()), filter, |p, so_far| append(p, u.offset, so_far, value)))
}

fn filter(p: &mut Parser<'_>, u: &Use<'_>) -> Option<Id> {
    let [name, predicate] = u.args else { return None };
    let Some(variable) = variable(p, *name, "argument is not an identifier") else {
        return Some(p.error_node(u.offset));
    };
    let names = (variable, None);
    Some(build(p, u, names, Kind::List(Vec::new()), Some(*predicate), |p, so_far| append(p, u.offset, so_far, *name)))
}

#[derive(Clone, Copy, PartialEq)]
enum Transform {
    List,
    Map,
    Entry,
}

fn transform(p: &mut Parser<'_>, u: &Use<'_>, transform: Transform) -> Option<Id> {
    let (names, filter, value) = match u.args {
        [a, b, value] => ([*a, *b], None, *value),
        [a, b, filter, value] => ([*a, *b], Some(*filter), *value),
        _ => return None,
    };
    let Some(pair) = variables(p, &names) else { return Some(p.error_node(u.offset)) };
    let [key, _] = names;
    let init = if transform == Transform::List { Kind::List(Vec::new()) } else { Kind::Map(Vec::new()) };
    Some(build(p, u, pair, init, filter, |p, so_far| match transform {
        Transform::List => append(p, u.offset, so_far, value),
        Transform::Map => p.call(u.offset, "cel.@mapInsert", vec![so_far, key, value]),
        Transform::Entry => p.call(u.offset, "cel.@mapInsert", vec![so_far, value]),
    }))
}

/// `let name = init in result`, as a fold over nothing.
fn binding(p: &mut Parser<'_>, at: usize, name: Str, init: Id, result: Id) -> Id {
    let range = p.add(at, Kind::List(Vec::new()));
    let condition = literal(p, at, Literal::Bool(false));
    let step = ident(p, at, &name);
    let accumulator = name;
    let fold =
        Comprehension { range, variable: UNUSED.into(), second: None, accumulator, init, condition, step, result };
    p.add(at, Kind::Comprehension(Box::new(fold)))
}

fn bind(p: &mut Parser<'_>, u: &Use<'_>) -> Option<Id> {
    if !is_name(p, u.target?, "cel") {
        return None;
    }
    let [name, init, result] = u.args else { return None };
    let Some(name) = simple_name(p, *name, "cel.bind() variable names must be simple identifiers") else {
        return Some(p.error_node(u.offset));
    };
    Some(binding(p, u.offset, name, *init, *result))
}

fn simple_name(p: &mut Parser<'_>, id: Id, message: &str) -> Option<Str> {
    if let Kind::Ident(name) = p.ast.kind(id) {
        return Some(name.clone());
    }
    let offset = p.ast.offset(id);
    p.issue(offset, message);
    None
}

fn is_name(p: &Parser<'_>, id: Id, name: &str) -> bool {
    matches!(p.ast.kind(id), Kind::Ident(found) if found == name)
}

fn opt_map(p: &mut Parser<'_>, u: &Use<'_>, flat: bool) -> Option<Id> {
    let (Some(target), [name, body]) = (u.target, u.args) else { return None };
    let function = if flat { "optFlatMap" } else { "optMap" };
    let message = format!("{function}() variable name must be a simple identifier");
    let Some(name) = simple_name(p, *name, &message) else { return Some(p.error_node(u.offset)) };
    let at = u.offset;
    let member = |p: &mut Parser<'_>, function: &str| {
        p.add(at, Kind::Call { function: function.into(), target: Some(target), args: Vec::new() })
    };
    let condition = member(p, "hasValue");
    let value = member(p, "value");
    let mut then = binding(p, at, name, value, *body);
    if !flat {
        then = p.call(at, "optional.of", vec![then]);
    }
    let none = p.call(at, "optional.none", Vec::new());
    Some(p.call(at, "_?_:_", vec![condition, then, none]))
}

fn sort_by(p: &mut Parser<'_>, u: &Use<'_>) -> Option<Id> {
    const INPUT: &str = "@__sortBy_input__";
    let (Some(target), [name, key]) = (u.target, u.args) else { return None };
    let Some(variable) = variable(p, *name, "argument is not an identifier") else {
        return Some(p.error_node(u.offset));
    };
    let at = u.offset;
    let input = ident(p, at, INPUT);
    let over_input = Use { offset: at, target: Some(input), args: &[] };
    let keys =
        build(p, &over_input, (variable, None), Kind::List(Vec::new()), None, |p, so_far| append(p, at, so_far, *key));
    let input = ident(p, at, INPUT);
    let sorted =
        p.add(at, Kind::Call { function: "@sortByAssociatedKeys".into(), target: Some(input), args: vec![keys] });
    Some(binding(p, at, INPUT.into(), target, sorted))
}

fn extremum(p: &mut Parser<'_>, u: &Use<'_>, name: &str, function: &str) -> Option<Id> {
    if !is_name(p, u.target?, "math") {
        return None;
    }
    let fail = |p: &mut Parser<'_>, id: Option<Id>, message: &str| {
        let offset = id.map_or(u.offset, |id| p.ast.offset(id));
        p.issue(offset, format!("math.{name}() {message}"));
        Some(p.error_node(u.offset))
    };
    let (numeric, list) = (
        |p: &Parser<'_>, id: Id| match p.ast.kind(id) {
            Kind::Literal(literal) => matches!(literal, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_)),
            Kind::List(_) | Kind::Map(_) | Kind::Struct { .. } => false,
            _ => true,
        },
        |p: &Parser<'_>, id: Id| matches!(p.ast.kind(id), Kind::List(items) if !items.is_empty()),
    );
    match u.args {
        [] => fail(p, u.target, "requires at least one argument"),
        [one] => {
            let good = if let Kind::List(items) = p.ast.kind(*one) {
                list(p, *one) && items.iter().all(|item| numeric(p, item.value))
            } else {
                numeric(p, *one)
            };
            if good {
                Some(p.call(u.offset, function, vec![*one]))
            } else {
                fail(p, Some(*one), "invalid single argument value")
            }
        }
        args => {
            if let Some(bad) = args.iter().find(|id| !numeric(p, **id)) {
                return fail(p, Some(*bad), "simple literal arguments must be numeric");
            }
            if let [a, b] = args {
                return Some(p.call(u.offset, function, vec![*a, *b]));
            }
            let items = args.iter().map(|value| Item { value: *value, optional: false }).collect();
            let list = p.add(u.offset, Kind::List(items));
            Some(p.call(u.offset, function, vec![list]))
        }
    }
}

fn extension(p: &mut Parser<'_>, u: &Use<'_>, test: bool) -> Option<Id> {
    if !is_name(p, u.target?, "proto") {
        return None;
    }
    let [message, field] = u.args else { return None };
    if let (Kind::Select { .. }, Some(field)) = (p.ast.kind(*field), p.ast.qualified_name(*field)) {
        return Some(p.add(u.offset, Kind::Select { operand: *message, field: field.into(), test }));
    }
    let offset = p.ast.offset(*field);
    p.issue(offset, "invalid extension field");
    Some(p.error_node(u.offset))
}
