//! Compiled nodes: what the evaluator walks. Names are slots, chains of selections are one path, constants are
//! values.

use std::sync::Arc;

use super::environment::Signature;
use super::types::Type;
use super::value::Val;
use crate::Str;
use crate::scalar::go_regex::ConstantRegex;

/// The place of an expression in its text, in bytes. What macros add has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) fn is_known(self) -> bool {
        self.start < self.end
    }
}

/// A compiled expression, with its place where its value tells something.
#[derive(Debug)]
pub(super) enum Node {
    Const(Val<'static>),
    Path(Span, Box<Path>),
    And(Span, Box<[Node; 2]>),
    Or(Span, Box<[Node; 2]>),
    Ternary(Span, Box<[Node; 3]>),
    NotStrictlyFalse(Box<Node>),
    Call(Span, Box<Call>),
    /// Membership in a list of constants.
    In(Span, Box<(Node, Vec<Val<'static>>)>),
    List(Vec<Item>),
    Map(Vec<Entry>),
    Object(Span, Box<Object>),
    Fold(Span, Box<Fold>),
    /// `accumulator + [item]`, in place. Not charged for the list if the item is constant.
    Append(Box<(usize, Node)>),
    /// `cel.@mapInsert(accumulator, …)`, in place.
    Insert(Box<(usize, Vec<Node>)>),
    /// A value with a name inside another expression.
    Bind(Span, Box<Bind>),
    /// `target.optMap(x, body)`.
    OptMap(Span, Box<OptMap>),
    /// `optional.or(other)`: the other side only if it is needed.
    OptionalOr(Span, Box<[Node; 2]>),
    /// `optional.orValue(other)`.
    OptionalOrValue(Span, Box<[Node; 2]>),
}

impl Node {
    /// Its place in the text, if it has one.
    pub(super) fn span(&self) -> Option<Span> {
        let span = match self {
            Node::Path(span, _)
            | Node::And(span, _)
            | Node::Or(span, _)
            | Node::Ternary(span, _)
            | Node::Call(span, _)
            | Node::In(span, _)
            | Node::Object(span, _)
            | Node::Fold(span, _)
            | Node::Bind(span, _)
            | Node::OptMap(span, _)
            | Node::OptionalOr(span, _)
            | Node::OptionalOrValue(span, _) => *span,
            _ => return None,
        };
        span.is_known().then_some(span)
    }

    /// The same node at `place`.
    pub(super) fn at(mut self, place: Span) -> Self {
        match &mut self {
            Node::Path(span, _)
            | Node::And(span, _)
            | Node::Or(span, _)
            | Node::Ternary(span, _)
            | Node::Call(span, _)
            | Node::In(span, _)
            | Node::Object(span, _)
            | Node::Fold(span, _)
            | Node::Bind(span, _)
            | Node::OptMap(span, _)
            | Node::OptionalOr(span, _)
            | Node::OptionalOrValue(span, _) => *span = place,
            _ => {}
        }
        self
    }
}

#[derive(Debug)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) steps: Vec<Step>,
    /// Whether only the presence of the last step is asked.
    pub(super) test: bool,
}

#[derive(Debug)]
pub(super) enum Root {
    Slot(usize),
    Variable(Str),
    /// A member of a variable whose members are evaluated when they are read.
    Member {
        variable: Str,
        field: Str,
    },
    Node(Node),
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) key: Key,
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) enum Key {
    /// A field name.
    Field(Str),
    Const(Val<'static>),
    Node(Node),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: Str,
    pub(super) args: Vec<Node>,
    /// All overloads with this number of arguments.
    pub(super) candidates: Vec<Arc<Signature>>,
    /// The only one that fits the static types.
    pub(super) resolved: Option<Arc<Signature>>,
    pub(super) regex: Option<ConstantRegex>,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) value: Node,
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Node,
    pub(super) value: Node,
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) kind: Type,
    pub(super) name: Str,
    pub(super) fields: Vec<(Str, Node, bool)>,
}

#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    pub(super) variable: usize,
    pub(super) second: Option<usize>,
    pub(super) accumulator: usize,
    pub(super) init: Node,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

#[derive(Debug)]
pub(super) struct Bind {
    pub(super) slot: usize,
    pub(super) value: Node,
    pub(super) body: Node,
}

#[derive(Debug)]
pub(super) struct OptMap {
    pub(super) target: Node,
    pub(super) slot: usize,
    pub(super) body: Node,
    /// Whether the body gives an optional itself.
    pub(super) flat: bool,
}
