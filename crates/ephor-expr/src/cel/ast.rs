//! The syntax tree: nodes in one vector, children by index, so that nothing about it is recursive.

use super::literal::Literal;
use super::node::Span;
use crate::Str;

/// The index of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(pub(super) usize);

/// An expression and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// In code points: the operator, the bracket, or the start of what has neither.
    pub(super) offset: usize,
    /// From its first character to its last, parentheses around it included. What macros add has no place.
    pub(super) span: Span,
    pub(super) kind: Kind,
}

/// An expression.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Literal(Literal),
    /// A name, with a leading dot if it is absolute.
    Ident(Str),
    Select {
        operand: Id,
        field: Str,
        test: bool,
    },
    Call {
        function: Str,
        target: Option<Id>,
        args: Vec<Id>,
    },
    List(Vec<Item>),
    Map(Vec<Entry>),
    Struct {
        name: Str,
        fields: Vec<Field>,
    },
    Comprehension(Box<Comprehension>),
}

/// An element of a list; left out if it is an empty optional.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) value: Id,
    pub(super) optional: bool,
}

/// An entry of a map.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Id,
    pub(super) value: Id,
    pub(super) optional: bool,
}

/// A field of a constructed object.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) offset: usize,
    pub(super) name: Str,
    pub(super) value: Id,
    pub(super) optional: bool,
}

/// What macros expand to: a fold of a range into an accumulator.
#[derive(Debug, Clone)]
pub(super) struct Comprehension {
    pub(super) range: Id,
    pub(super) variable: Str,
    /// The second variable of the two-variable forms: then the first is index or key, this the value.
    pub(super) second: Option<Str>,
    pub(super) accumulator: Str,
    pub(super) init: Id,
    pub(super) condition: Id,
    pub(super) step: Id,
    pub(super) result: Id,
}

/// A parsed expression.
#[derive(Debug, Default)]
pub(super) struct Ast {
    nodes: Vec<Node>,
    /// The whole.
    pub(super) root: Option<Id>,
    /// How many nodes lie below each other at most, as the limit on nesting counts.
    pub(super) height: usize,
}

impl Ast {
    pub(super) fn add(&mut self, offset: usize, kind: Kind) -> Id {
        self.nodes.push(Node { offset, span: Span::default(), kind });
        Id(self.nodes.len() - 1)
    }

    #[expect(clippy::indexing_slicing, reason = "identifiers are made by `add` alone")]
    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0]
    }

    pub(super) fn kind(&self, id: Id) -> &Kind {
        &self.node(id).kind
    }

    pub(super) fn offset(&self, id: Id) -> usize {
        self.node(id).offset
    }

    pub(super) fn span(&self, id: Id) -> Span {
        self.node(id).span
    }

    pub(super) fn set_span(&mut self, id: Id, span: Span) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.span = span;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The dotted name that an expression of identifiers and selections spells.
    pub(super) fn qualified_name(&self, id: Id) -> Option<String> {
        match self.kind(id) {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select { operand, field, test: false } => {
                let mut name = self.qualified_name(*operand)?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }
}
