//! The syntax tree into its compiled form.

use rustc_hash::FxHashSet;

use super::ast::Ast;
use super::error::CompileError;
use super::expression::RootKind;
use super::functions::{self, Function, Type};
use super::node::{Argument, Node, Operand};
use crate::scalar::nearest::nearest;
use crate::value::{Str, Value};

/// An identifier that an expression reads from its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootIdentifier {
    /// The name, unquoted.
    pub name: Str,
    /// Where it stands in the text, in bytes.
    pub offset: usize,
}

/// A compiled expression and what it reads.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) node: Node,
    pub(super) roots: Vec<RootIdentifier>,
    pub(super) whole: bool,
    pub(super) varying: Option<&'static str>,
}

/// Compiles a whole expression.
pub(super) fn lower(ast: Ast, root: RootKind) -> Result<Lowered, CompileError> {
    let mut lowering = Lowering { roots: Vec::new(), whole: false, varying: None, root };
    let node = *lowering.operand(ast, Scope::Root)?.node;
    Ok(Lowered { node, roots: lowering.roots, whole: lowering.whole, varying: lowering.varying })
}

/// What the current value is.
#[derive(Debug, Clone, Copy)]
enum Scope {
    /// The root.
    Root,
    /// A value found on the way; `native` as in [`Operand`].
    Value { native: bool },
}

impl Scope {
    const ITEM: Scope = Scope::Value { native: false };
}

struct Lowering {
    roots: Vec<RootIdentifier>,
    whole: bool,
    varying: Option<&'static str>,
    root: RootKind,
}

impl Lowering {
    fn node(&mut self, ast: Ast, scope: Scope) -> Result<Box<Node>, CompileError> {
        Ok(self.operand(ast, scope)?.node)
    }

    fn operand(&mut self, ast: Ast, scope: Scope) -> Result<Operand, CompileError> {
        let mut native = false;
        let node = match ast {
            Ast::Current => {
                native = matches!(scope, Scope::Value { native: true });
                self.current(scope)
            }
            Ast::Field { name, offset } => match scope {
                Scope::Root => {
                    native = is_loop_index(&name);
                    self.roots.push(RootIdentifier { name: name.clone(), offset });
                    Node::RootPath(vec![name])
                }
                Scope::Value { .. } => Node::Path(vec![name]),
            },
            Ast::FieldOf { name, offset } => match scope {
                Scope::Root if self.root == RootKind::Names => return Err(names_a_variable(offset)),
                scope => self.applied(scope, Node::Member(name)),
            },
            Ast::Literal(value) => Node::Literal(value),
            Ast::Mixed(json) => Node::Mixed(json),
            Ast::Sub(left, right) => return self.chain(*left, *right, scope),
            Ast::Index(n) => self.applied(scope, Node::Index(n)),
            Ast::IndexOf(hole) => self.applied(scope, Node::IndexOf(hole)),
            Ast::Slice(slice) => self.applied(scope, Node::Slice(slice)),
            Ast::Project { source, each } => {
                Node::Project { source: self.node(*source, scope)?, each: self.each(*each)? }
            }
            Ast::Values { source, each } => {
                Node::Values { source: self.node(*source, scope)?, each: self.each(*each)? }
            }
            Ast::Flatten(source) => Node::Flatten(self.node(*source, scope)?),
            Ast::Filter { source, condition, each } => self.filter(*source, *condition, *each, scope)?,
            Ast::List(items) => self.list(items, scope)?,
            Ast::Hash(members) => self.hash(members, scope)?,
            Ast::Call { name, offset, args } => return self.call(&name, offset, args, scope),
            Ast::Reference { offset, .. } => return Err(stray_reference(offset)),
            Ast::Not(inner) => Node::Not(self.node(*inner, scope)?),
            Ast::And(left, right) => return self.and(*left, *right, scope),
            Ast::Or(left, right) => return self.or(*left, *right, scope),
            Ast::Pipe(left, right) => return self.pipe(*left, *right, scope),
            Ast::Compare(comparison, left, right) => {
                Node::Compare(comparison, self.operand(*left, scope)?, self.operand(*right, scope)?)
            }
        };
        Ok(Operand { node: Box::new(node), native })
    }

    fn current(&mut self, scope: Scope) -> Node {
        match scope {
            Scope::Root => {
                self.whole = true;
                Node::Root
            }
            Scope::Value { .. } => Node::Current,
        }
    }

    /// A node that works on the current value alone.
    fn applied(&mut self, scope: Scope, node: Node) -> Node {
        match scope {
            Scope::Root => Node::Sub(Box::new(self.current(scope)), Box::new(node)),
            Scope::Value { .. } => node,
        }
    }

    /// The right side of a projection; `None` where it yields the item itself.
    fn each(&mut self, ast: Ast) -> Result<Option<Box<Node>>, CompileError> {
        match ast {
            Ast::Current => Ok(None),
            ast => Ok(Some(self.node(ast, Scope::ITEM)?)),
        }
    }

    fn list(&mut self, asts: Vec<Ast>, scope: Scope) -> Result<Node, CompileError> {
        let mut items = Vec::with_capacity(asts.len());
        for ast in asts {
            items.push(*self.node(ast, scope)?);
        }
        let apart = are_apart(&items);
        Ok(Node::List { items, at_root: matches!(scope, Scope::Root), apart })
    }

    fn hash(&mut self, asts: Vec<(Str, Ast)>, scope: Scope) -> Result<Node, CompileError> {
        let mut members = Vec::with_capacity(asts.len());
        for (key, ast) in asts {
            members.push((key, *self.node(ast, scope)?));
        }
        Ok(Node::Hash { members, at_root: matches!(scope, Scope::Root) })
    }

    fn filter(&mut self, source: Ast, condition: Ast, each: Ast, scope: Scope) -> Result<Node, CompileError> {
        let source = self.node(source, scope)?;
        let condition = self.node(condition, Scope::ITEM)?;
        Ok(Node::Filter { source, condition, each: self.each(each)? })
    }

    fn and(&mut self, left: Ast, right: Ast, scope: Scope) -> Result<Operand, CompileError> {
        let left = self.node(left, scope)?;
        let right = self.operand(right, scope)?;
        Ok(Operand { node: Box::new(Node::And(left, right.node)), native: right.native })
    }

    /// An integer is never falsy, so that a left one is the result.
    fn or(&mut self, left: Ast, right: Ast, scope: Scope) -> Result<Operand, CompileError> {
        let left = self.operand(left, scope)?;
        let right = self.node(right, scope)?;
        Ok(Operand { node: Box::new(Node::Or(left.node, right)), native: left.native })
    }

    fn chain(&mut self, left: Ast, right: Ast, scope: Scope) -> Result<Operand, CompileError> {
        if matches!(left, Ast::Current) {
            return self.operand(right, scope);
        }
        let left = self.operand(left, scope)?;
        let right = self.operand(right, Scope::Value { native: left.native })?;
        let node = join(*left.node, *right.node);
        Ok(Operand { node: Box::new(node), native: right.native })
    }

    fn pipe(&mut self, left: Ast, right: Ast, scope: Scope) -> Result<Operand, CompileError> {
        if matches!((&left, scope), (Ast::Current, Scope::Root)) {
            // The right side starts from the root, too, and asks it for fields.
            let right = self.operand(right, scope)?;
            let nothing = Box::new(Node::Literal(Value::Null));
            return Ok(Operand { node: Box::new(Node::Pipe(nothing, right.node)), native: right.native });
        }
        let left = self.operand(left, scope)?;
        let right = self.operand(right, Scope::Value { native: left.native })?;
        Ok(Operand { node: Box::new(Node::Pipe(left.node, right.node)), native: right.native })
    }

    fn call(&mut self, name: &str, offset: usize, args: Vec<Ast>, scope: Scope) -> Result<Operand, CompileError> {
        let Some(function) = functions::find(name) else {
            return Err(unknown_function(name, offset));
        };
        check_arity(function, args.len(), offset)?;
        let mut lowered = Vec::with_capacity(args.len());
        for (i, arg) in args.into_iter().enumerate() {
            let wanted = function.param(i).is_some_and(|param| param.types.contains(&Type::Expression));
            lowered.push(match arg {
                Ast::Reference { expression, .. } if wanted => {
                    Argument::Expression(*self.node(*expression, Scope::ITEM)?)
                }
                _ if wanted => {
                    let message = format!("argument {} of `{name}` must be an expression reference", i + 1);
                    return Err(CompileError::new(offset, message).help("write `&` before the expression"));
                }
                arg => Argument::Value(self.operand(arg, scope)?),
            });
        }
        if reads_chance_or_clock(name, &lowered) {
            self.varying.get_or_insert(function.name);
        }
        let native = match (name, lowered.first()) {
            ("compare", _) => true,
            // An integer is never null, so that a first one is the result.
            ("not_null", Some(Argument::Value(first))) => first.native,
            _ => false,
        };
        let constant =
            matches!(lowered.first(), Some(Argument::Value(first)) if matches!(*first.node, Node::Literal(_)));
        let regex = (constant && name.starts_with("regex_")).then(Box::default);
        Ok(Operand { node: Box::new(Node::Call { function, args: lowered, regex }), native })
    }
}

/// Whether a call gives another value the next time. `time_since` reads the clock where its end is empty, which only a
/// literal rules out.
fn reads_chance_or_clock(name: &str, args: &[Argument]) -> bool {
    match name {
        "random" | "time_now" | "time_now_utc" => true,
        "time_since" => !matches!(args.get(2), Some(Argument::Value(end))
            if matches!(&*end.node, Node::Literal(Value::String(text)) if !text.is_empty())),
        _ => false,
    }
}

/// Whether the values of `items` are different members of one value.
fn are_apart(items: &[Node]) -> bool {
    let mut seen = FxHashSet::default();
    items.iter().all(|item| matches!(item, Node::Path(keys) if keys.first().is_some_and(|key| seen.insert(key))))
}

/// `right` of the value of `left`, with fields in a row as one path.
fn join(mut left: Node, right: Node) -> Node {
    let Node::Path(more) = right else {
        return Node::Sub(Box::new(left), Box::new(right));
    };
    let tail = match &mut left {
        Node::Sub(_, tail) => &mut **tail,
        other => other,
    };
    if let Node::RootPath(keys) | Node::Path(keys) = tail {
        keys.extend(more);
        left
    } else {
        Node::Sub(Box::new(left), Box::new(Node::Path(more)))
    }
}

/// What a value is must not decide which variable is read, nor may it be an expression itself.
fn names_a_variable(offset: usize) -> CompileError {
    CompileError::new(offset, "the value of a variable cannot be an expression or the name of a variable").help(
        "inside an expression write the inner variable without its braces, or between quotes where it stands for text",
    )
}

fn stray_reference(offset: usize) -> CompileError {
    CompileError::new(offset, "an expression reference can only be an argument of a function")
        .help("`&` is for `map`, `sort_by`, `max_by` and `min_by`; a logical and is `&&`")
}

fn unknown_function(name: &str, offset: usize) -> CompileError {
    let error = CompileError::new(offset, format!("unknown function: {name}"));
    match nearest(name, functions::all().map(|function| function.name)) {
        Some(known) => error.help(format!("did you mean `{known}`?")),
        None => error,
    }
}

fn check_arity(function: &Function, given: usize, offset: usize) -> Result<(), CompileError> {
    let wanted = function.params.len();
    let variadic = function.params.last().is_some_and(|param| param.variadic);
    if given == wanted || (variadic && given > wanted) {
        return Ok(());
    }
    let at_least = if variadic { "at least " } else { "" };
    let plural = if wanted == 1 { "" } else { "s" };
    Err(CompileError::new(offset, "incorrect number of args")
        .help(format!("`{}` takes {at_least}{wanted} argument{plural}, not {given}", function.name)))
}

/// `elementIndex` and `elementIndex0`, `elementIndex1` and so on: set by `foreach`.
fn is_loop_index(name: &str) -> bool {
    name.strip_prefix("elementIndex").is_some_and(|level| level.bytes().all(|b| b.is_ascii_digit()))
}
