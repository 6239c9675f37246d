//! The compiled form of an expression: names resolved, fields fused into paths.

use super::ast::{Comparison, Slice};
use super::functions::Function;
use super::hole::{Mixed, MixedJson};
use crate::scalar::go_regex::ConstantRegex;
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
        regex: Option<Box<ConstantRegex>>,
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

impl Node {
    /// Adds the paths below the root's member `name` that this node reads from a current value at the path `current`
    /// below it; `None` if the current value is something else. Gives the path of its own value, if that is one.
    pub(super) fn paths_below<'n>(
        &'n self,
        name: &str,
        current: Option<&[&'n Str]>,
        paths: &mut Vec<Vec<&'n Str>>,
    ) -> Option<Vec<&'n Str>> {
        match self {
            Node::Current => current.map(<[_]>::to_vec),
            Node::RootPath(keys) if keys.first().is_some_and(|key| key == name) => {
                let path: Vec<&Str> = keys.iter().skip(1).collect();
                paths.push(path.clone());
                Some(path)
            }
            Node::Path(keys) => {
                let path: Vec<&Str> = current?.iter().copied().chain(keys).collect();
                paths.push(path.clone());
                Some(path)
            }
            Node::Sub(a, b) | Node::Pipe(a, b) => {
                let value = a.paths_below(name, current, paths);
                b.paths_below(name, value.as_deref(), paths)
            }
            Node::And(a, b) | Node::Or(a, b) => {
                a.paths_below(name, current, paths);
                b.paths_below(name, current, paths);
                None
            }
            Node::Compare(_, a, b) => {
                a.node.paths_below(name, current, paths);
                b.node.paths_below(name, current, paths);
                None
            }
            Node::Flatten(inner) | Node::Not(inner) => {
                inner.paths_below(name, current, paths);
                None
            }
            Node::Project { source, each } | Node::Values { source, each } => {
                source.paths_below(name, current, paths);
                each.as_ref().and_then(|each| each.paths_below(name, None, paths));
                None
            }
            Node::Filter { source, condition, each } => {
                source.paths_below(name, current, paths);
                condition.paths_below(name, None, paths);
                each.as_ref().and_then(|each| each.paths_below(name, None, paths));
                None
            }
            Node::List { items, .. } => {
                for item in items {
                    item.paths_below(name, current, paths);
                }
                None
            }
            Node::Hash { members, .. } => {
                for (_, member) in members {
                    member.paths_below(name, current, paths);
                }
                None
            }
            Node::Call { args, .. } => {
                for arg in args {
                    match arg {
                        Argument::Value(operand) => operand.node.paths_below(name, current, paths),
                        Argument::Expression(node) => node.paths_below(name, None, paths),
                    };
                }
                None
            }
            _ => None,
        }
    }

    /// Calls `visit` on this node and all nodes in it. Recurses as deep as the expression nests, which parsing bounds.
    pub(super) fn walk<'n>(&'n self, visit: &mut impl FnMut(&'n Node)) {
        visit(self);
        match self {
            Node::Current
            | Node::Root
            | Node::RootPath(_)
            | Node::Path(_)
            | Node::Member(_)
            | Node::Literal(_)
            | Node::Mixed(_)
            | Node::Index(_)
            | Node::IndexOf(_)
            | Node::Slice(_) => {}
            Node::Flatten(inner) | Node::Not(inner) => inner.walk(visit),
            Node::Sub(a, b) | Node::Pipe(a, b) | Node::And(a, b) | Node::Or(a, b) => {
                a.walk(visit);
                b.walk(visit);
            }
            Node::Compare(_, a, b) => {
                a.node.walk(visit);
                b.node.walk(visit);
            }
            Node::Project { source, each } | Node::Values { source, each } => {
                source.walk(visit);
                if let Some(each) = each {
                    each.walk(visit);
                }
            }
            Node::Filter { source, condition, each } => {
                source.walk(visit);
                condition.walk(visit);
                if let Some(each) = each {
                    each.walk(visit);
                }
            }
            Node::List { items, .. } => items.iter().for_each(|item| item.walk(visit)),
            Node::Hash { members, .. } => members.iter().for_each(|(_, member)| member.walk(visit)),
            Node::Call { args, .. } => args.iter().for_each(|arg| match arg {
                Argument::Value(operand) => operand.node.walk(visit),
                Argument::Expression(node) => node.walk(visit),
            }),
        }
    }
}
