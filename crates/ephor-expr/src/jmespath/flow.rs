//! Which parts of a variable an expression lets out.
//!
//! In: an expression, and for each path from the root what it holds of the variable that a caller watches. Out: what
//! the result of the expression holds of it, and what it uses on the way. Checks need both: `request` alone names all
//! of a request, `request.object` only the object, and `values(request)` everything, although it names no member.

use super::node::{Argument, Node};
use crate::value::Str;

/// What a value holds of the watched variable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// It is the variable itself, with all its members.
    pub whole: bool,
    /// It is a watched member, or comes from one.
    pub member: bool,
}

impl Part {
    /// The variable itself.
    pub const WHOLE: Part = Part { whole: true, member: false };

    /// What either holds.
    #[must_use]
    pub fn or(self, other: Part) -> Part {
        Part { whole: self.whole || other.whole, member: self.member || other.member }
    }

    /// What remains at the members `keys` of it, each of the one before.
    #[must_use]
    pub fn at(self, keys: &[Str], is_watched: &dyn Fn(&str) -> bool) -> Part {
        match keys {
            [] => self,
            [first, ..] => Part { whole: false, member: self.member || (self.whole && is_watched(first)) },
        }
    }

    /// What remains in an item.
    fn item(self) -> Part {
        Part { whole: false, ..self }
    }
}

/// What an expression does with the watched variable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// What its result holds.
    pub result: Part,
    /// What it looks at or puts into its result.
    pub used: Part,
}

/// The variable that a caller watches.
pub(super) struct Watch<'w> {
    /// What a path from the root holds.
    pub(super) root: &'w dyn Fn(&[Str]) -> Part,
    /// Which members of the variable count.
    pub(super) is_watched: &'w dyn Fn(&str) -> bool,
}

impl Watch<'_> {
    /// What the value of `node` holds, where the current value holds `current`. Recurses as deep as the expression
    /// nests, which parsing bounds.
    pub(super) fn flow(&self, node: &Node, current: Part, used: &mut Part) -> Part {
        match node {
            Node::Current => current,
            Node::Root => {
                *used = used.or(Part::WHOLE);
                Part::WHOLE
            }
            Node::RootPath(keys) => (self.root)(keys),
            Node::Path(keys) => current.at(keys, self.is_watched),
            Node::Literal(_) | Node::Mixed(_) => Part::default(),
            Node::Sub(a, b) | Node::Pipe(a, b) => {
                let value = self.flow(a, current, used);
                self.flow(b, value, used)
            }
            Node::And(a, b) | Node::Or(a, b) => self.flow(a, current, used).or(self.flow(b, current, used)),
            // The name of the member is not known, or there is none.
            Node::Member(_) | Node::Index(_) | Node::IndexOf(_) | Node::Slice(_) => {
                *used = used.or(current);
                current.item()
            }
            Node::Flatten(source) => self.used(source, current, used).item(),
            Node::Not(inner) => {
                self.used(inner, current, used);
                Part::default()
            }
            Node::Project { source, each } | Node::Values { source, each } => {
                let item = self.used(source, current, used).item();
                each.as_ref().map_or(item, |each| self.flow(each, item, used))
            }
            Node::Filter { source, condition, each } => {
                let item = self.used(source, current, used).item();
                self.used(condition, item, used);
                each.as_ref().map_or(item, |each| self.flow(each, item, used))
            }
            Node::List { items, .. } => self.all(items, current, used),
            Node::Hash { members, .. } => self.all(members.iter().map(|(_, member)| member), current, used),
            Node::Compare(_, a, b) => {
                self.all([&*a.node, &*b.node], current, used);
                Part::default()
            }
            Node::Call { args, .. } => {
                let nodes = args.iter().map(|arg| match arg {
                    Argument::Value(operand) => (&*operand.node, current),
                    Argument::Expression(node) => (node, Part::default()),
                });
                nodes.fold(Part::default(), |parts, (node, current)| parts.or(self.used(node, current, used))).item()
            }
        }
    }

    /// As [`Watch::flow`] for a value that is looked at.
    fn used(&self, node: &Node, current: Part, used: &mut Part) -> Part {
        let part = self.flow(node, current, used);
        *used = used.or(part);
        part
    }

    fn all<'n>(&self, nodes: impl IntoIterator<Item = &'n Node>, current: Part, used: &mut Part) -> Part {
        nodes.into_iter().fold(Part::default(), |parts, node| parts.or(self.used(node, current, used))).item()
    }
}
