//! What an expression costs at most, before there is a value: the estimate by which an API server refuses rules of
//! definitions that could take too long.
//!
//! Takes a checked syntax tree and the [`Sizes`] of the variables; gives the largest cost in the units of run time.
//! Each node has a range of costs, a range of sizes if its value has elements or characters, and a place in the
//! schema if it was reached by selections alone. Both branches and all overloads that fit count, so the estimate is
//! far above what most values cost. The figures are part of the API of Kubernetes: which rules may be stored depends
//! on them.

mod calls;
mod range;
mod sizes;

#[cfg(test)]
mod tests;

use self::calls::Operands;
use self::range::Range;
use self::sizes::Part;
pub use self::sizes::Sizes;
use super::ast::{Ast, Comprehension, Entry, Id, Item, Kind};
use super::check::{Reference, Types};
use super::literal::Literal;
use super::types::Type;
use crate::Str;

/// Reading a variable or a field.
const READ: Range = Range::exactly(1);
const NEW_LIST: Range = Range::exactly(10);
const NEW_MAP: Range = Range::exactly(30);
const NEW_OBJECT: Range = Range::exactly(40);

/// The largest cost of the expression, whose variables are as large as `sizes` says.
pub(super) fn estimate(ast: &Ast, types: &Types, sizes: &Sizes) -> u64 {
    let nodes = vec![Known::default(); ast.len()];
    let mut estimator = Estimator { ast, types, root: sizes, nodes, locals: Vec::new() };
    ast.root.map_or(0, |root| estimator.cost(root).max)
}

/// Where a value stands in the schema.
#[derive(Debug, Clone, Copy, Default)]
enum Place<'s> {
    /// It was computed.
    #[default]
    None,
    At(&'s Sizes),
    /// The schema does not say.
    Unknown,
}

/// The sizes of keys and values, for a list or map that the expression builds.
#[derive(Debug, Clone, Copy)]
struct Entries {
    is_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn or(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.or(other.key), value: self.value.or(other.value) }
    }
}

/// What is known of one node.
#[derive(Debug, Clone, Copy, Default)]
struct Known<'s> {
    /// Set once: a node that a macro uses twice costs the same both times.
    cost: Option<Range>,
    size: Option<Range>,
    entries: Option<Entries>,
    place: Place<'s>,
}

/// A variable of a fold, or a value with a name.
struct Local<'s> {
    name: Str,
    place: Place<'s>,
    size: Option<Range>,
    entries: Option<Entries>,
}

struct Estimator<'a> {
    ast: &'a Ast,
    types: &'a Types,
    /// The sizes of every variable: all that rules have is of one schema.
    root: &'a Sizes,
    nodes: Vec<Known<'a>>,
    locals: Vec<Local<'a>>,
}

impl<'a> Estimator<'a> {
    fn known(&self, id: Id) -> Known<'a> {
        self.nodes.get(id.0).copied().unwrap_or_default()
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut Known<'a>)) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            change(node);
        }
    }

    fn cost(&mut self, id: Id) -> Range {
        if let Some(cost) = self.known(id).cost {
            return cost;
        }
        let ast = self.ast;
        let cost = match ast.kind(id) {
            Kind::Literal(_) => Range::exactly(0),
            Kind::Ident(name) => self.ident(id, Some(name)),
            Kind::Select { operand, field, test } => self.select(id, *operand, field, *test),
            Kind::Call { function, target, args } => self.call(id, function, *target, args),
            Kind::List(items) => self.list(id, items),
            Kind::Map(entries) => self.map(id, entries),
            Kind::Struct { fields, .. } => {
                fields.iter().fold(NEW_OBJECT, |sum, field| sum.plus(self.cost(field.value)))
            }
            Kind::Comprehension(fold) if self.is_bind(fold) => self.bind(id, fold),
            Kind::Comprehension(fold) => self.fold(id, fold),
        };
        self.change(id, |node| node.cost = Some(cost));
        cost
    }

    /// A variable, or the name of a type, which counts as one.
    fn ident(&mut self, id: Id, name: Option<&Str>) -> Range {
        let place = name.and_then(|name| self.local(name)).map_or(Place::At(self.root), |local| local.place);
        self.change(id, |node| node.place = place);
        READ
    }

    fn local(&self, name: &Str) -> Option<&Local<'a>> {
        self.locals.iter().rev().find(|local| local.name == *name)
    }

    fn select(&mut self, id: Id, operand: Id, field: &Str, test: bool) -> Range {
        let reference = self.types.get(id).and_then(|node| node.reference.as_ref());
        if let Some(Reference::Variable(_) | Reference::Type(_)) = reference {
            return self.ident(id, None);
        }
        let sum = self.cost(operand);
        if test {
            return sum;
        }
        self.place_part(id, operand, Part::Field(field));
        match self.types.kind(operand) {
            Type::Map(_) | Type::Object(_) | Type::Param(_) | Type::Var(_) => sum.plus(READ),
            _ => sum,
        }
    }

    fn place(&self, id: Id) -> Place<'a> {
        match self.ast.kind(id) {
            Kind::Ident(name) => self.local(name).map_or_else(|| self.known(id).place, |local| local.place),
            _ => self.known(id).place,
        }
    }

    /// The place of a part of `of`. A part of a computed value stands where the variables stand: so the reference
    /// has it.
    fn part(&self, of: Id, part: Part<'_>) -> Place<'a> {
        match self.place(of) {
            Place::None => Place::At(self.root),
            Place::At(sizes) => sizes.part(part).map_or(Place::Unknown, Place::At),
            Place::Unknown => Place::Unknown,
        }
    }

    fn place_part(&mut self, id: Id, of: Id, part: Part<'_>) {
        let place = self.part(of, part);
        self.change(id, |node| node.place = place);
    }

    fn size(&mut self, id: Id) -> Option<Range> {
        let node = self.known(id);
        if node.size.is_some() {
            return node.size;
        }
        let exact = match self.ast.kind(id) {
            Kind::Literal(Literal::String(text)) => Some(text.chars().count()),
            Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Kind::Literal(_) => Some(1),
            Kind::List(items) => Some(items.len()),
            Kind::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(n) = exact {
            return Some(Range::exactly(n as u64));
        }
        if let Place::At(sizes) = self.place(id) {
            let size = Range::up_to(sizes.max);
            self.change(id, |node| node.size = Some(size));
            return Some(size);
        }
        if is_scalar(self.types.kind(id)) {
            return Some(Range::exactly(1));
        }
        match self.ast.kind(id) {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, id: Id) -> Range {
        self.size(id).unwrap_or(Range::UNKNOWN)
    }

    fn entries(&self, id: Id) -> Option<Entries> {
        self.known(id).entries.or_else(|| match self.ast.kind(id) {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        })
    }

    fn call(&mut self, id: Id, function: &Str, target: Option<Id>, args: &[Id]) -> Range {
        let types = self.types;
        let node = types.get(id);
        let (function, target) = match node.and_then(|node| node.reference.as_ref()) {
            Some(Reference::Function(full)) => (full.as_str(), None),
            _ => (function.as_str(), target),
        };
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(*arg);
            let (size, entries) = (self.size(*arg), self.entries(*arg));
            self.change(id, |node| (node.size, node.entries) = (size, entries));
            return cost.plus(Range::exactly(1));
        }
        let costs: Vec<Range> = args.iter().map(|arg| self.cost(*arg)).collect();
        let target_cost = target.map_or(Range::exactly(0), |target| self.cost(target));
        let operands = Operands { function, target, args };
        let mut cost = Range::EMPTY;
        let mut size: Option<Range> = None;
        let overloads = node.map(|node| node.overloads.as_slice()).unwrap_or_default();
        let ids = overloads.iter().map(|signature| (signature.overload.id, signature.overload.params));
        // Operators that are resolved without a table have one overload.
        let bare = overloads.is_empty().then_some((function, ""));
        for (overload, params) in ids.chain(bare) {
            let estimate = self.function(id, &operands, overload, params, &costs);
            cost = cost.or(estimate.cost);
            if let Some(result) = estimate.size {
                size = Some(size.map_or(result, |size| size.or(result)));
            }
            if let ("index_list" | "index_map", [of, _]) = (overload, args) {
                size = self.entries(*of).map(|entries| entries.value);
                self.place_part(id, *of, Part::Element);
            }
            size = size.or_else(|| self.size(id));
        }
        if size.is_some() {
            self.change(id, |node| node.size = size);
        }
        target_cost.plus(cost)
    }

    fn list(&mut self, id: Id, items: &[Item]) -> Range {
        let mut sum = NEW_LIST;
        let mut value = if items.is_empty() { Range::exactly(0) } else { Range::EMPTY };
        for item in items {
            sum = sum.plus(self.cost(item.value));
            value = value.or(self.size_or_unknown(item.value));
        }
        let entries = Entries { is_list: true, key: Range::exactly(1), value };
        self.change(id, |node| node.entries = Some(entries));
        sum
    }

    fn map(&mut self, id: Id, entries: &[Entry]) -> Range {
        let mut sum = NEW_MAP;
        let start = if entries.is_empty() { Range::exactly(0) } else { Range::EMPTY };
        let (mut key, mut value) = (start, start);
        for entry in entries {
            sum = sum.plus(self.cost(entry.key)).plus(self.cost(entry.value));
            key = key.or(self.size_or_unknown(entry.key));
            value = value.or(self.size_or_unknown(entry.value));
        }
        let entries = Entries { is_list: false, key, value };
        self.change(id, |node| node.entries = Some(entries));
        sum
    }

    /// Whether a fold over nothing only gives its start value a name.
    fn is_bind(&self, fold: &Comprehension) -> bool {
        matches!(self.ast.kind(fold.range), Kind::List(items) if items.is_empty())
            && matches!(self.ast.kind(fold.condition), Kind::Literal(Literal::Bool(false)))
    }

    fn push(&mut self, name: &Str, value: Id) {
        let local = Local {
            name: name.clone(),
            place: self.place(value),
            size: self.size(value),
            entries: self.entries(value),
        };
        self.locals.push(local);
    }

    fn bind(&mut self, id: Id, fold: &Comprehension) -> Range {
        let sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push(&fold.accumulator, fold.init);
        let sum = sum.plus(self.cost(fold.result));
        let (size, entries) = (self.size(fold.result), self.entries(fold.result));
        self.locals.pop();
        self.change(id, |node| (node.size, node.entries) = (size, entries));
        sum
    }

    fn fold(&mut self, id: Id, fold: &Comprehension) -> Range {
        let sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push(&fold.accumulator, fold.init);
        let outer = self.locals.len();
        let entries = self.entries(fold.range);
        let is_list = entries.map_or(matches!(self.types.kind(fold.range), Type::List(_)), |entries| entries.is_list);
        let (key, value) = (entries.map(|entries| entries.key), entries.map(|entries| entries.value));
        let variables = match &fold.second {
            Some(second) => {
                let first = if is_list { Part::Index } else { Part::Key };
                vec![(&fold.variable, first, key), (second, Part::Element, value)]
            }
            None if is_list => vec![(&fold.variable, Part::Element, value)],
            None => vec![(&fold.variable, Part::Key, key)],
        };
        for (name, part, size) in variables {
            let place = self.part(fold.range, part);
            self.locals.push(Local { name: name.clone(), place, size, entries: None });
        }
        let each = self.cost(fold.condition).plus(self.cost(fold.step));
        self.locals.truncate(outer);
        let sum = sum.plus(self.cost(fold.result));
        self.locals.pop();
        let times = self.size_or_unknown(fold.range);
        match self.ast.kind(fold.init) {
            Kind::Literal(_) => {
                let size = self.size(fold.init);
                self.change(id, |node| node.size = size);
            }
            Kind::List(_) | Kind::Map(_) => {
                let entries = self.known(fold.step).entries;
                self.change(id, |node| {
                    node.size = Some(times);
                    node.entries = entries.or(node.entries);
                });
            }
            _ => {}
        }
        sum.plus(times.times(each))
    }
}

/// Whether all values of a type are of one size.
fn is_scalar(kind: &Type) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(of) | Type::Wrapper(of) => is_scalar(of),
        _ => false,
    }
}
