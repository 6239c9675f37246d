//! The syntax tree, as parsed: nothing resolved yet.

use std::fmt::Write as _;

use super::hole::{Mixed, MixedJson};
use crate::value::{Str, Value};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ast {
    /// `@`, and what a projection without a right side yields.
    Current,
    /// A member of the current object.
    Field { name: Str, offset: usize },
    /// A member of the current object whose name has holes.
    FieldOf { name: Mixed, offset: usize },
    /// A string in single quotes, or JSON in backquotes.
    Literal(Value),
    /// The same with holes.
    Mixed(MixedJson),
    /// The right side evaluated against the value of the left one: `a.b`, `a[0]`.
    Sub(Box<Ast>, Box<Ast>),
    /// `[n]`
    Index(i64),
    /// `[n]`, where n fills the hole of this number.
    IndexOf(usize),
    /// `[start:stop:step]`
    Slice(Slice),
    /// `source[*]`: `each` evaluated against every item.
    Project { source: Box<Ast>, each: Box<Ast> },
    /// `source.*`: `each` evaluated against every member.
    Values { source: Box<Ast>, each: Box<Ast> },
    /// `source[]`: items that are arrays replaced by their items. Always the source of a `Project`.
    Flatten(Box<Ast>),
    /// `source[?condition]`
    Filter { source: Box<Ast>, condition: Box<Ast>, each: Box<Ast> },
    /// `[a, b]`
    List(Vec<Ast>),
    /// `{k: a}`
    Hash(Vec<(Str, Ast)>),
    /// `name(args)`
    Call { name: Str, offset: usize, args: Vec<Ast> },
    /// `&expr`
    Reference { expression: Box<Ast>, offset: usize },
    /// `!a`
    Not(Box<Ast>),
    /// `a && b`
    And(Box<Ast>, Box<Ast>),
    /// `a || b`
    Or(Box<Ast>, Box<Ast>),
    /// `a | b`
    Pipe(Box<Ast>, Box<Ast>),
    /// `a == b` and its like.
    Compare(Comparison, Box<Ast>, Box<Ast>),
}

/// The parts of a slice that are written. The step is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Slice {
    pub(super) start: Option<i64>,
    pub(super) stop: Option<i64>,
    pub(super) step: Option<i64>,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl Ast {
    /// The tree as text, a node a line, children indented by two spaces.
    pub(super) fn dump(&self) -> String {
        let mut out = String::new();
        self.dump_into(&mut out, 0, "");
        out
    }

    fn dump_into(&self, out: &mut String, depth: usize, role: &str) {
        out.extend(std::iter::repeat_n("  ", depth));
        out.push_str(role);
        let _ = match self {
            Ast::Current => writeln!(out, "current"),
            Ast::Field { name, .. } => writeln!(out, "field {name:?}"),
            Ast::FieldOf { .. } => writeln!(out, "field named by a variable"),
            Ast::Literal(value) => writeln!(out, "literal {value}"),
            Ast::Mixed(_) => writeln!(out, "literal with variables"),
            Ast::Sub(..) => writeln!(out, "sub-expression"),
            Ast::Index(n) => writeln!(out, "index {n}"),
            Ast::IndexOf(_) => writeln!(out, "index by a variable"),
            Ast::Slice(slice) => {
                let part = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
                writeln!(out, "slice {}:{}:{}", part(slice.start), part(slice.stop), part(slice.step))
            }
            Ast::Project { .. } => writeln!(out, "projection"),
            Ast::Values { .. } => writeln!(out, "value projection"),
            Ast::Flatten(_) => writeln!(out, "flatten"),
            Ast::Filter { .. } => writeln!(out, "filter projection"),
            Ast::List(_) => writeln!(out, "multi-select list"),
            Ast::Hash(_) => writeln!(out, "multi-select hash"),
            Ast::Call { name, .. } => writeln!(out, "function {name}"),
            Ast::Reference { .. } => writeln!(out, "expression reference"),
            Ast::Not(_) => writeln!(out, "not"),
            Ast::And(..) => writeln!(out, "and"),
            Ast::Or(..) => writeln!(out, "or"),
            Ast::Pipe(..) => writeln!(out, "pipe"),
            Ast::Compare(comparison, ..) => writeln!(out, "comparison {}", comparison.symbol()),
        };
        let depth = depth + 1;
        match self {
            Ast::Current
            | Ast::Field { .. }
            | Ast::FieldOf { .. }
            | Ast::Literal(_)
            | Ast::Mixed(_)
            | Ast::Index(_)
            | Ast::IndexOf(_)
            | Ast::Slice(_) => {}
            Ast::Flatten(inner) | Ast::Not(inner) | Ast::Reference { expression: inner, .. } => {
                inner.dump_into(out, depth, "");
            }
            Ast::Sub(a, b) | Ast::And(a, b) | Ast::Or(a, b) | Ast::Pipe(a, b) | Ast::Compare(_, a, b) => {
                a.dump_into(out, depth, "");
                b.dump_into(out, depth, "");
            }
            Ast::Project { source, each } | Ast::Values { source, each } => {
                source.dump_into(out, depth, "of ");
                each.dump_into(out, depth, "each ");
            }
            Ast::Filter { source, condition, each } => {
                source.dump_into(out, depth, "of ");
                condition.dump_into(out, depth, "if ");
                each.dump_into(out, depth, "each ");
            }
            Ast::List(items) | Ast::Call { args: items, .. } => {
                for item in items {
                    item.dump_into(out, depth, "");
                }
            }
            Ast::Hash(members) => {
                for (key, member) in members {
                    member.dump_into(out, depth, &format!("{key:?}: "));
                }
            }
        }
    }
}
