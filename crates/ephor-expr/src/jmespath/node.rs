//! The compiled form of an expression: names resolved, fields fused into paths.

use super::ast::{Comparison, Slice};
use super::functions::{Function, KeptRegex};
use super::hole::{Mixed, MixedJson};
use crate::value::{Str, Value};

/// A compiled expression, evaluated against a current value.
#[derive(Debug)]
pub(super) enum Node {
    /// The current value.
    Current,
    /// The root as a whole.
    Root,
    /// Members of the root, each of the one before; at least one key.
    RootPath(Vec<Str>),
    /// Members of the current value, each of the one before.
    Path(Vec<Str>),
    /// The member of the current value whose name has holes.
    Member(Mixed),
    Literal(Value),
    /// A literal with holes.
    Mixed(MixedJson),
    /// The second evaluated against the value of the first; a missing member in either is missing.
    Sub(Box<Node>, Box<Node>),
    /// The second evaluated against the value of the first; a missing member in either is null.
    Pipe(Box<Node>, Box<Node>),
    Index(i64),
    /// The item whose index fills the hole of this number.
    IndexOf(usize),
    Slice(Slice),
    /// Every item of an array, through `each` if there is one.
    Project {
        source: Box<Node>,
        each: Option<Box<Node>>,
    },
    /// Every member of an object, through `each` if there is one.
    Values {
        source: Box<Node>,
        each: Option<Box<Node>>,
    },
    Flatten(Box<Node>),
    Filter {
        source: Box<Node>,
        condition: Box<Node>,
        each: Option<Box<Node>>,
    },
    List {
        items: Vec<Node>,
        at_root: bool,
        /// Whether the items are different members of the current value, so that the list holds no part of it twice.
        apart: bool,
    },
    Hash {
        members: Vec<(Str, Node)>,
        at_root: bool,
    },
    Call {
        function: &'static Function,
        args: Vec<Argument>,
        /// Where the regular expression is kept if the first argument is the same for every call.
        regex: Option<Box<KeptRegex>>,
    },
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Compare(Comparison, Operand, Operand),
}

/// A node, and whether its value is what the reference keeps as a machine integer (`elementIndex`, the result of
/// `compare`): such a value is no number to operators and functions, though it prints as one.
#[derive(Debug)]
pub(super) struct Operand {
    pub(super) node: Box<Node>,
    pub(super) native: bool,
}

/// An argument of a call.
#[derive(Debug)]
pub(super) enum Argument {
    Value(Operand),
    /// `&expr`, evaluated by the function against values of its choice.
    Expression(Node),
}
