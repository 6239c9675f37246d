//! Checked syntax trees into compiled nodes.
//!
//! Names become slots, chains of selections and indexes one path. Literals of constants and conversions of constants
//! become constants here, and what has no value is an error here, as in the reference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ast::{self, Ast, Comprehension, Id, Kind};
use super::check::{Overloads, Reference, Types};
use super::environment::{Environment, Literals, Signature};
use super::error::EvalError;
use super::evaluate;
use super::literal::Literal;
use super::node::{Bind, Call, Entry, Fold, Item, Key, Node, Object, OptMap, Path, Root, Span, Step};
use super::types::Type;
use super::value::{self, List, Val};
use crate::Str;
use crate::scalar::go_regex::{self, ConstantRegex};

/// Conversions of constants are constants.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// The place of a node before it gets its own.
const UNPLACED: Span = Span { start: 0, end: 0 };

/// A compiled expression and what it takes to run it.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) node: Node,
    /// How many local variables exist at once.
    pub(super) slots: usize,
    /// The declared variables it reads, each with the field that it takes of it, or `None` where it takes all.
    pub(super) variables: BTreeSet<(Str, Option<Str>)>,
    /// The functions it calls, by name.
    pub(super) functions: BTreeSet<Str>,
}

pub(super) fn lower(ast: &Ast, types: &Types, environment: &Environment, members: &str) -> Result<Lowered, EvalError> {
    let mut lowering = Lowering {
        ast,
        types,
        environment,
        members,
        scopes: Vec::new(),
        slots: 0,
        variables: BTreeSet::new(),
        functions: BTreeSet::new(),
    };
    let node = match ast.root {
        Some(root) => lowering.node(root)?,
        None => Node::Const(Val::Null),
    };
    let Lowering { slots, variables, functions, .. } = lowering;
    Ok(Lowered { node, slots, variables, functions })
}

struct Lowering<'a> {
    ast: &'a Ast,
    types: &'a Types,
    environment: &'a Environment,
    /// The variable whose members are evaluated when they are read.
    members: &'a str,
    scopes: Vec<(Str, usize)>,
    slots: usize,
    variables: BTreeSet<(Str, Option<Str>)>,
    functions: BTreeSet<Str>,
}

type Lower<T> = Result<T, EvalError>;

impl Lowering<'_> {
    fn node(&mut self, id: Id) -> Lower<Node> {
        let ast = self.ast;
        let node = match ast.kind(id) {
            Kind::Literal(literal) => Node::Const(constant(literal)),
            Kind::Ident(_) | Kind::Select { .. } => self.path(id)?,
            Kind::Call { function, target, args } => self.call(id, function, *target, args)?,
            Kind::List(items) => self.list(items)?,
            Kind::Map(entries) => self.map(entries)?,
            Kind::Struct { name, fields } => self.object(id, name, fields)?,
            Kind::Comprehension(fold) => self.comprehension(fold)?,
        };
        Ok(node.at(ast.span(id)))
    }

    fn nodes(&mut self, ids: &[Id]) -> Lower<Vec<Node>> {
        ids.iter().map(|id| self.node(*id)).collect()
    }

    /// A name, a selection or an index, as a path.
    fn path(&mut self, id: Id) -> Lower<Node> {
        let ast = self.ast;
        if let Some(Reference::Type(kind)) = self.types.get(id).and_then(|node| node.reference.as_ref()) {
            if let Type::Object(name) = kind {
                return Err(EvalError::Other(format!("reference to undefined type: {name}")));
            }
            return Ok(Node::Const(Val::Type(Arc::new(kind.clone()))));
        }
        if let Some(name) = self.variable(id) {
            return Ok(self.read_variable(name, None));
        }
        match ast.kind(id) {
            Kind::Ident(name) => {
                let slot = self.scopes.iter().rev().find(|(local, _)| local == name).map(|(_, slot)| *slot);
                match slot {
                    Some(slot) => Ok(path(Root::Slot(slot))),
                    None => Err(EvalError::NoSuchAttribute(name.to_string())),
                }
            }
            Kind::Select { operand, field, test } => {
                if let Some(mut member) = self.member(*operand, field) {
                    if let Node::Path(_, path) = &mut member {
                        path.test = *test;
                    }
                    return Ok(member);
                }
                let operand = match self.variable(*operand) {
                    Some(name) => self.read_variable(name, Some(field.clone())),
                    None => self.node(*operand)?,
                };
                let mut node = extend(operand, Step { key: Key::Field(field.clone()), optional: false });
                if let (Node::Path(_, path), true) = (&mut node, *test) {
                    path.test = true;
                }
                Ok(node)
            }
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// A member of the variable with members.
    fn member(&mut self, operand: Id, field: &Str) -> Option<Node> {
        let variable = self.variable(operand).filter(|name| name == self.members)?;
        self.variables.insert((variable.clone(), Some(field.clone())));
        Some(path(Root::Member { variable, field: field.clone() }))
    }

    /// The declared variable that a node is.
    fn variable(&self, id: Id) -> Option<Str> {
        match self.types.get(id)?.reference.clone()? {
            Reference::Variable(name) => Some(name),
            _ => None,
        }
    }

    /// A declared variable, of which a field is taken, or all.
    fn read_variable(&mut self, name: Str, field: Option<Str>) -> Node {
        self.variables.insert((name.clone(), field));
        path(Root::Variable(name))
    }

    fn call(&mut self, id: Id, function: &Str, target: Option<Id>, args: &[Id]) -> Lower<Node> {
        let namespaced = match self.types.get(id).and_then(|node| node.reference.clone()) {
            Some(Reference::Function(name)) => Some(name),
            _ => None,
        };
        let member = target.is_some() && namespaced.is_none();
        match (function.as_str(), args) {
            ("_&&_", [a, b]) => return Ok(Node::And(UNPLACED, Box::new([self.node(*a)?, self.node(*b)?]))),
            ("_||_", [a, b]) => return Ok(Node::Or(UNPLACED, Box::new([self.node(*a)?, self.node(*b)?]))),
            ("_?_:_", [condition, then, otherwise]) => {
                if let Some(mapped) = self.opt_map(*condition, *then)? {
                    return Ok(mapped);
                }
                let parts = [self.node(*condition)?, self.node(*then)?, self.node(*otherwise)?];
                return Ok(Node::Ternary(UNPLACED, Box::new(parts)));
            }
            ("@not_strictly_false", [a]) => return Ok(Node::NotStrictlyFalse(Box::new(self.node(*a)?))),
            ("_[_]" | "_[?_]" | "_?._", [operand, key]) => return self.index(function, *operand, *key),
            ("or" | "orValue", [other]) if member && self.is_optional_call(id) => {
                let Some(target) = target else { return Err(EvalError::NoSuchOverload) };
                let sides = Box::new([self.node(target)?, self.node(*other)?]);
                return Ok(if function == "or" {
                    Node::OptionalOr(UNPLACED, sides)
                } else {
                    Node::OptionalOrValue(UNPLACED, sides)
                });
            }
            _ => {}
        }
        let name = namespaced.unwrap_or_else(|| function.clone());
        self.functions.insert(name.clone());
        let mut nodes = Vec::with_capacity(args.len() + 1);
        if let (Some(target), true) = (target, member) {
            nodes.push(self.node(target)?);
        }
        nodes.extend(self.nodes(args)?);
        let overloads = self.types.get(id).map(|node| node.overloads.clone()).unwrap_or_default();
        self.finish_call(&name, member, nodes, &overloads)
    }

    fn is_optional_call(&self, id: Id) -> bool {
        let overloads = self.types.get(id).map(|node| node.overloads.as_slice()).unwrap_or_default();
        overloads.iter().any(|signature| signature.overload.id.starts_with("optional_or"))
    }

    fn finish_call(&mut self, name: &Str, member: bool, args: Vec<Node>, overloads: &Overloads) -> Lower<Node> {
        let resolved = match overloads.as_slice() {
            [only] => Some(Arc::clone(only)),
            _ => None,
        };
        let has_arity = |s: &&Arc<Signature>| s.overload.member == member && s.params.len() == args.len();
        let all = self.environment.function(name).unwrap_or_default();
        let candidates: Vec<Arc<Signature>> = all.iter().filter(has_arity).map(Arc::clone).collect();
        if name == "@in"
            && resolved.as_ref().is_some_and(|signature| signature.overload.id == "in_list")
            && let [_, Node::Const(Val::List(list))] = args.as_slice()
        {
            if list.is_empty() {
                return Ok(Node::Const(Val::Bool(false)));
            }
            if let Some(set) = constant_set(list) {
                let mut args = args.into_iter();
                let Some(item) = args.next() else { return Err(EvalError::NoSuchOverload) };
                return Ok(Node::In(UNPLACED, Box::new((item, set))));
            }
        }
        let options = self.environment.options();
        let pattern = resolved.as_ref().or(candidates.first()).and_then(|signature| signature.overload.regex);
        let regex = match pattern.and_then(|i| args.get(i)) {
            Some(Node::Const(Val::String(text))) if options.literals == Literals::Strict => {
                go_regex::check(text.as_str()).map_err(|error| EvalError::other(error.to_string()))?;
                Some(ConstantRegex::default())
            }
            _ => None,
        };
        let folds = CONVERSIONS.contains(&name.as_str()) && matches!(args.as_slice(), [Node::Const(_)]);
        let call = Node::Call(UNPLACED, Box::new(Call { function: name.clone(), args, candidates, resolved, regex }));
        if folds && options.literals == Literals::Strict {
            evaluate::constant(&call, options.edition).map(Node::Const)
        } else {
            Ok(call)
        }
    }

    fn index(&mut self, function: &str, operand: Id, key: Id) -> Lower<Node> {
        let optional = function != "_[_]";
        let operand = self.node(operand)?;
        let key = if function == "_?._" {
            match self.ast.kind(key) {
                Kind::Literal(Literal::String(field)) => Key::Field(field.clone()),
                _ => return Err(EvalError::NoSuchOverload),
            }
        } else {
            match self.node(key)? {
                Node::Const(Val::String(text)) => Key::Field(text.as_str().into()),
                Node::Const(value) => Key::Const(qualifier(value)?),
                node => Key::Node(node),
            }
        };
        Ok(extend(operand, Step { key, optional }))
    }

    fn list(&mut self, items: &[ast::Item]) -> Lower<Node> {
        let mut nodes = Vec::with_capacity(items.len());
        for item in items {
            nodes.push(Item { value: self.node(item.value)?, optional: item.optional });
        }
        let constants: Option<Vec<Val<'static>>> = nodes
            .iter()
            .map(|item| match &item.value {
                Node::Const(value) if !item.optional => Some(value.clone()),
                _ => None,
            })
            .collect();
        Ok(constants.map_or_else(|| Node::List(nodes), |values| Node::Const(Val::list(values))))
    }

    fn map(&mut self, entries: &[ast::Entry]) -> Lower<Node> {
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            nodes.push(Entry { key: self.node(entry.key)?, value: self.node(entry.value)?, optional: entry.optional });
        }
        let constant = |entry: &Entry| matches!((&entry.key, &entry.value), (Node::Const(_), Node::Const(_)));
        let strict = self.environment.options().literals == Literals::Strict;
        let is_key = |entry: &Entry| strict || matches!(&entry.key, Node::Const(key) if value::Key::of(key).is_ok());
        if !nodes.iter().all(|entry| constant(entry) && !entry.optional && is_key(entry)) {
            return Ok(Node::Map(nodes));
        }
        let mut map = BTreeMap::new();
        for entry in &nodes {
            if let (Node::Const(key), Node::Const(value)) = (&entry.key, &entry.value) {
                map.insert(value::Key::of(key)?, value.clone());
            }
        }
        Ok(Node::Const(Val::map(map)))
    }

    fn object(&mut self, id: Id, name: &Str, fields: &[ast::Field]) -> Lower<Node> {
        let kind = self.types.kind(id).clone();
        let mut nodes = Vec::with_capacity(fields.len());
        for field in fields {
            nodes.push((field.name.clone(), self.node(field.value)?, field.optional));
        }
        // Text fields that are not set are empty.
        if let Some(declared) = self.environment.object(name) {
            for (field, kind) in &declared.fields {
                if *kind == Type::String && !nodes.iter().any(|(name, ..)| name == field) {
                    nodes.push((field.clone(), Node::Const(Val::text("")), false));
                }
            }
        }
        let name = name.trim_start_matches('.').into();
        Ok(Node::Object(UNPLACED, Box::new(Object { kind, name, fields: nodes })))
    }

    /// A new slot for `name`, until the scopes are cut back.
    fn slot(&mut self, name: &Str) -> usize {
        let slot = self.scopes.len();
        self.scopes.push((name.clone(), slot));
        self.slots = self.slots.max(self.scopes.len());
        slot
    }

    fn comprehension(&mut self, fold: &Comprehension) -> Lower<Node> {
        let outer = self.scopes.len();
        if fold.variable == "#unused" {
            let value = self.node(fold.init)?;
            let slot = self.slot(&fold.accumulator);
            let body = self.node(fold.result)?;
            self.scopes.truncate(outer);
            return Ok(Node::Bind(UNPLACED, Box::new(Bind { slot, value, body })));
        }
        let range = self.node(fold.range)?;
        let init = self.node(fold.init)?;
        let accumulator = self.slot(&fold.accumulator);
        let variable = self.slot(&fold.variable);
        let second = fold.second.as_ref().map(|name| self.slot(name));
        let condition = self.node(fold.condition)?;
        let step = in_place(self.node(fold.step)?, accumulator);
        self.scopes.truncate(outer + 1);
        let result = self.node(fold.result)?;
        self.scopes.truncate(outer);
        Ok(Node::Fold(UNPLACED, Box::new(Fold { range, variable, second, accumulator, init, condition, step, result })))
    }

    /// The expansion of `optMap` and `optFlatMap`, which names its target twice; it is compiled once.
    fn opt_map(&mut self, condition: Id, then: Id) -> Lower<Option<Node>> {
        let ast = self.ast;
        let target_of = |id: Id, name: &str| match ast.kind(id) {
            Kind::Call { function, target, args } if function == name && args.is_empty() => *target,
            _ => None,
        };
        let (fold, flat) = match ast.kind(then) {
            Kind::Comprehension(fold) => (fold, true),
            Kind::Call { function, target: None, args } if function == "optional.of" => match args.as_slice() {
                [inner] => match ast.kind(*inner) {
                    Kind::Comprehension(fold) => (fold, false),
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let (Some(target), Some(again)) = (target_of(condition, "hasValue"), target_of(fold.init, "value")) else {
            return Ok(None);
        };
        if target != again {
            return Ok(None);
        }
        let target = self.node(target)?;
        let outer = self.scopes.len();
        let slot = self.slot(&fold.accumulator);
        let body = self.node(fold.result)?;
        self.scopes.truncate(outer);
        Ok(Some(Node::OptMap(UNPLACED, Box::new(OptMap { target, slot, body, flat }))))
    }
}

fn path(root: Root) -> Node {
    Node::Path(UNPLACED, Box::new(Path { root, steps: Vec::new(), test: false }))
}

/// `operand` and one more step.
fn extend(operand: Node, step: Step) -> Node {
    match operand {
        Node::Path(span, mut path) if !path.test => {
            path.steps.push(step);
            Node::Path(span, path)
        }
        other => Node::Path(UNPLACED, Box::new(Path { root: Root::Node(other), steps: vec![step], test: false })),
    }
}

/// A constant that may stand in brackets.
fn qualifier(value: Val<'static>) -> Lower<Val<'static>> {
    let refused = match &value {
        Val::Null => "types.Null",
        Val::Bytes(_) => "types.Bytes",
        Val::Duration(_) => "types.Duration",
        Val::Timestamp(_) => "types.Timestamp",
        Val::List(_) => "*types.baseList",
        Val::Map(_) => "*types.baseMap",
        Val::Type(_) => "*types.Type",
        _ => return Ok(value),
    };
    Err(EvalError::Other(format!("invalid qualifier type: {refused}")))
}

fn constant_set(list: &List<'static>) -> Option<Vec<Val<'static>>> {
    let scalar = |v: &Val<'_>| matches!(v, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::String(_));
    let items: Vec<Val<'static>> = match list {
        List::Built(items) => items.to_vec(),
        List::Associative(list) => list.items.clone(),
        List::Json(items) => items.iter().map(Val::owned_json).collect(),
    };
    items.iter().all(scalar).then_some(items)
}

/// Steps that grow the accumulator change it in place.
fn in_place(step: Node, accumulator: usize) -> Node {
    let is_accumulator = |node: &Node| matches!(node, Node::Path(_, path) if path.steps.is_empty() && matches!(path.root, Root::Slot(slot) if slot == accumulator));
    match step {
        Node::Ternary(span, parts) => {
            let [condition, then, otherwise] = *parts;
            Node::Ternary(span, Box::new([condition, in_place(then, accumulator), otherwise]))
        }
        Node::Call(span, mut call) if call.args.first().is_some_and(is_accumulator) => {
            if call.function == "cel.@mapInsert" {
                call.args.remove(0);
                return Node::Insert(Box::new((accumulator, call.args)));
            }
            if call.function != "_+_" {
                return Node::Call(span, call);
            }
            match call.args.pop() {
                Some(Node::List(mut items)) if items.len() == 1 && items.iter().all(|item| !item.optional) => {
                    let item = items.pop().map_or(Node::Const(Val::Null), |item| item.value);
                    Node::Append(Box::new((accumulator, item)))
                }
                Some(Node::Const(Val::List(list))) if list.len() == 1 => {
                    let item = constant_items(&list).into_iter().next().unwrap_or(Val::Null);
                    Node::Append(Box::new((accumulator, Node::Const(item))))
                }
                Some(other) => {
                    call.args.push(other);
                    Node::Call(span, call)
                }
                None => Node::Call(span, call),
            }
        }
        other => other,
    }
}

fn constant_items(list: &List<'static>) -> Vec<Val<'static>> {
    list.iter().collect()
}

fn constant(literal: &Literal) -> Val<'static> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(b) => Val::Bool(*b),
        Literal::Int(n) => Val::Int(*n),
        Literal::Uint(n) => Val::Uint(*n),
        Literal::Double(n) => Val::Double(*n),
        Literal::String(text) => Val::text(text.clone()),
        Literal::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
    }
}
