//! Compiled expressions.

use std::fmt;
use std::sync::Arc;

use super::ast::Ast;
use super::error::{CompileError, EvalError};
use super::evaluate;
use super::flow::{Flow, Part, Watch};
use super::hole::Holes;
use super::lower::{Lowered, RootIdentifier, lower};
use super::node::Node;
use super::parser::parse;
use super::runtime::{Root, Runtime};
use crate::value::{Str, Value};

/// A compiled expression; clones share it.
///
/// ```
/// use ephor_expr::Value;
/// use ephor_expr::jmespath::{Expression, FixedRuntime};
///
/// let expression = Expression::compile("spec.containers[?!ready].name").unwrap();
/// let pod = Value::from_json(r#"{"spec":{"containers":[{"name":"a","ready":true},{"name":"b"}]}}"#).unwrap();
/// assert_eq!(expression.evaluate(&pod, &FixedRuntime::default()).unwrap().to_json(), r#"["b"]"#);
/// ```
#[derive(Clone)]
pub struct Expression {
    compiled: Arc<Compiled>,
}

/// What an expression starts from, as far as holes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// Named variables: a value never decides which of them is read.
    Names,
    /// Data, whose members a value may name.
    Data,
}

struct Compiled {
    text: Box<str>,
    lowered: Lowered,
}

impl Expression {
    /// Compiles `text`. Unknown functions and wrong numbers of arguments are found here, not at evaluation.
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        Self::of(text, parse(text, Holes::None)?, RootKind::Names)
    }

    /// Compiles a text in which each [`HOLE`](super::HOLE) stands for a value. The values come with
    /// [`Expression::fill`].
    pub fn compile_with_holes(text: &str, root: RootKind) -> Result<Self, CompileError> {
        Self::of(text, parse(text, Holes::Marked)?, root)
    }

    fn of(text: &str, ast: Ast, root: RootKind) -> Result<Self, CompileError> {
        let lowered = lower(ast, root)?;
        Ok(Self { compiled: Arc::new(Compiled { text: text.into(), lowered }) })
    }

    /// The text it was compiled from.
    pub fn text(&self) -> &str {
        &self.compiled.text
    }

    /// The value of the expression over `root`.
    ///
    /// A member missing where no operator swallows it is [`EvalError::UnknownKey`]; errors from `root` and
    /// `runtime` pass through all operators. The result is a tree no larger than the runtime's budget allows,
    /// apart from what it shares with `root`.
    pub fn evaluate(&self, root: &dyn Root, runtime: &dyn Runtime) -> Result<Value, EvalError> {
        self.fill(&[], root, runtime)
    }

    /// The value of the expression over `root` where `holes` fill the holes of its text, in order.
    pub fn fill(&self, holes: &[Value], root: &dyn Root, runtime: &dyn Runtime) -> Result<Value, EvalError> {
        evaluate::evaluate(&self.compiled.lowered.node, holes, root, runtime)
    }

    /// The identifiers read from the root, in order of appearance, repetitions included.
    pub fn root_identifiers(&self) -> &[RootIdentifier] {
        &self.compiled.lowered.roots
    }

    /// What it does with a variable that is watched. `root` says what a path from the root holds of the variable,
    /// `is_watched` which of its members count.
    pub fn flow(&self, root: &dyn Fn(&[Str]) -> Part, is_watched: &dyn Fn(&str) -> bool) -> Flow {
        let mut used = Part::default();
        let result = Watch { root, is_watched }.flow(&self.compiled.lowered.node, Part::default(), &mut used);
        Flow { result, used }
    }

    /// The paths below the root's member `name` that are read: `name.a.b`, and also `name.[a, b]`, `name.{x: a}` and
    /// `name | a`. What stands behind an index, a projection or a call is not followed.
    pub fn paths_below(&self, name: &str) -> Vec<Vec<&Str>> {
        let mut paths = Vec::new();
        self.compiled.lowered.node.paths_below(name, None, &mut paths);
        paths
    }

    /// Whether a literal in it is a text that `is_wanted` says so of.
    pub fn has_text_literal(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        let mut found = false;
        self.compiled.lowered.node.walk(&mut |node| {
            found |= matches!(node, Node::Literal(Value::String(text)) if is_wanted(text));
        });
        found
    }

    /// Whether the root is also read as a whole, by `@`, `*` or a bracket at the start.
    pub fn reads_whole_root(&self) -> bool {
        self.compiled.lowered.whole
    }

    /// The first function in it that gives another value each time, from chance or the clock.
    pub fn varying_call(&self) -> Option<&'static str> {
        self.compiled.lowered.varying
    }

    /// The syntax tree as text, a node a line, children indented.
    pub fn dump(&self) -> String {
        // Dumps are rare, so the tree is not kept; what has been parsed once parses again.
        parse(self.text(), Holes::None).map_or_else(|error| error.to_string(), |ast| ast.dump())
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text()).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
