//! Tokens into a syntax tree, macros expanded.
//!
//! Recursive descent over the grammar of the language, with the reference's limits on length and nesting. The first
//! syntax error has the reference's position and text; after it the parser gives up where the reference would go on
//! guessing.

mod operand;

use super::ast::{Ast, Id, Kind};
use super::error::{CompileError, Issue};
use super::literal::Literal;
use super::macros::Macro;
use super::node::Span;
use super::token::{self, Token, tokenize};
use crate::Str;

/// The longest text, in code points.
const MAX_LENGTH: usize = 100_000;
/// The deepest nesting.
const MAX_DEPTH: usize = 250;

const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
     BYTES, IDENTIFIER}";
const ARGUMENT: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
     STRING, BYTES, IDENTIFIER}";

/// Operators between two operands: symbol, function, how strongly they bind.
const BINARY: [(&str, &str, u8); 12] = [
    ("<", "_<_", 0),
    ("<=", "_<=_", 0),
    (">=", "_>=_", 0),
    (">", "_>_", 0),
    ("==", "_==_", 0),
    ("!=", "_!=_", 0),
    ("in", "@in", 0),
    ("+", "_+_", 1),
    ("-", "_-_", 1),
    ("*", "_*_", 2),
    ("/", "_/_", 2),
    ("%", "_%_", 2),
];

/// What a text may use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Syntax {
    /// `a.?b`, `a[?k]`, `{?k: v}`, `[?x]`.
    pub(super) optionals: bool,
    /// Field names in backquotes.
    pub(super) quoted_fields: bool,
}

/// The parser gave up; the issues say why.
pub(super) struct Abandoned;

type Parsed<T> = Result<T, Abandoned>;

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    pub(super) ast: Ast,
    /// How high the tree below each node is.
    heights: Vec<usize>,
    issues: Vec<Issue>,
    depth: usize,
    syntax: Syntax,
    macros: &'a [Macro],
}

/// Parses `text`.
pub(super) fn parse(text: &str, syntax: Syntax, macros: &[Macro]) -> Result<Ast, CompileError> {
    let length = text.chars().count();
    if length > MAX_LENGTH {
        let message = format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(CompileError::issues(text, vec![Issue { offset: None, message }]));
    }
    let mut issues = Vec::new();
    let tokens = tokenize(text, &mut issues);
    let mut parser =
        Parser { tokens, at: 0, ast: Ast::default(), heights: Vec::new(), issues, depth: 0, syntax, macros };
    let root = parser.whole();
    if !parser.issues.is_empty() {
        return Err(CompileError::issues(text, parser.issues));
    }
    let mut ast = parser.ast;
    ast.root = root.ok();
    ast.height = ast.root.and_then(|root| parser.heights.get(root.0)).copied().unwrap_or(0);
    Ok(ast)
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Parsed<Id> {
        let root = self.expression()?;
        let rest = self.peek();
        if rest.kind != token::Kind::End {
            let word = if self.peek_at(1).kind == token::Kind::End { "extraneous" } else { "mismatched" };
            self.syntax_error(rest.offset, format!("{word} input '{}' expecting <EOF>", rest.text));
        }
        Ok(root)
    }

    // Tokens.

    fn peek(&self) -> Token<'a> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token<'a> {
        let end = Token { kind: token::Kind::End, text: "<EOF>", offset: 0, start: 0 };
        self.tokens.get(self.at + ahead).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn is(&self, symbol: &str) -> bool {
        is_symbol(self.peek(), symbol)
    }

    fn take(&mut self, symbol: &str) -> Option<Token<'a>> {
        self.is(symbol).then(|| self.next())
    }

    /// Takes `symbol`. If it is the token after the present one, that is skipped; if what follows could follow it,
    /// it is only reported as missing.
    fn expect(&mut self, symbol: &str, insertable: bool) -> Parsed<Token<'a>> {
        self.expect_one(symbol, &format!("'{symbol}'"), insertable)
    }

    fn expect_one(&mut self, symbol: &str, shown: &str, insertable: bool) -> Parsed<Token<'a>> {
        if let Some(token) = self.take(symbol) {
            return Ok(token);
        }
        let found = self.peek();
        if is_symbol(self.peek_at(1), symbol) {
            self.syntax_error(found.offset, format!("extraneous input '{}' expecting {shown}", found.text));
            self.at += 1;
            return Ok(self.next());
        }
        if insertable {
            self.syntax_error(found.offset, format!("missing {shown} at '{}'", found.text));
            return Ok(found);
        }
        self.syntax_error(found.offset, format!("mismatched input '{}' expecting {shown}", found.text));
        Err(Abandoned)
    }

    // Issues.

    pub(super) fn issue(&mut self, offset: usize, message: impl Into<String>) {
        self.issues.push(Issue { offset: Some(offset), message: message.into() });
    }

    fn syntax_error(&mut self, offset: usize, message: impl AsRef<str>) {
        self.issue(offset, format!("Syntax error: {}", message.as_ref()));
    }

    fn too_deep(&mut self, message: String) -> Abandoned {
        self.issues = vec![Issue { offset: None, message }];
        Abandoned
    }

    /// A node in the place of one that could not be made.
    pub(super) fn error_node(&mut self, offset: usize) -> Id {
        self.add(offset, Kind::Literal(Literal::Null))
    }

    /// Adds a node.
    pub(super) fn add(&mut self, offset: usize, kind: Kind) -> Id {
        let height = |id: &Id| self.heights.get(id.0).copied().unwrap_or(0);
        let below = match &kind {
            Kind::Literal(_) | Kind::Ident(_) => 0,
            Kind::Select { operand, .. } => height(operand),
            Kind::Call { target, args, .. } => target.iter().chain(args).map(height).max().unwrap_or(0),
            Kind::List(items) => items.iter().map(|item| height(&item.value)).max().unwrap_or(0),
            Kind::Map(entries) => entries.iter().map(|e| height(&e.key).max(height(&e.value))).max().unwrap_or(0),
            Kind::Struct { fields, .. } => fields.iter().map(|field| height(&field.value)).max().unwrap_or(0),
            Kind::Comprehension(fold) => {
                [fold.range, fold.init, fold.condition, fold.step, fold.result].iter().map(height).max().unwrap_or(0)
            }
        };
        self.heights.push(below + 1);
        self.ast.add(offset, kind)
    }

    /// Says that `id` stands from byte `start` to the end of the last token.
    fn place(&mut self, id: Id, start: usize) {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        let end = last.map_or(start, |token| token.start + token.text.len());
        // No text is longer than four bytes for each code point allowed.
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else { return };
        self.ast.set_span(id, Span { start, end });
    }

    /// Adds a node that the text itself says, which counts for the limit on nesting.
    fn add_bounded(&mut self, offset: usize, kind: Kind) -> Parsed<Id> {
        let id = self.add(offset, kind);
        if self.heights.get(id.0).is_some_and(|height| *height > MAX_DEPTH) {
            return Err(self.too_deep("max recursion depth exceeded".into()));
        }
        Ok(id)
    }

    pub(super) fn call(&mut self, offset: usize, function: &str, args: Vec<Id>) -> Id {
        self.add(offset, Kind::Call { function: function.into(), target: None, args })
    }

    // Grammar.

    fn expression(&mut self) -> Parsed<Id> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.too_deep(format!("expression recursion limit exceeded: {MAX_DEPTH}")));
        }
        let start = self.peek().start;
        let condition = self.logical("||", "_||_")?;
        let result = if let Some(op) = self.take("?") {
            let then = self.logical("||", "_||_")?;
            self.expect(":", self.starts_operand(0))?;
            let otherwise = self.expression()?;
            let chosen = self.add_bounded(op.offset, call("_?_:_", vec![condition, then, otherwise]))?;
            self.place(chosen, start);
            chosen
        } else {
            condition
        };
        self.depth -= 1;
        Ok(result)
    }

    /// A chain of `&&` or `||`, as a balanced tree.
    fn logical(&mut self, symbol: &str, function: &str) -> Parsed<Id> {
        let mut terms = vec![self.logical_operand(symbol)?];
        let mut operators = Vec::new();
        while let Some(op) = self.take(symbol) {
            operators.push(op.offset);
            terms.push(self.logical_operand(symbol)?);
        }
        Ok(self.balanced(function, &terms, &operators))
    }

    fn logical_operand(&mut self, symbol: &str) -> Parsed<Id> {
        if symbol == "||" { self.logical("&&", "_&&_") } else { self.binary(0) }
    }

    fn balanced(&mut self, function: &str, terms: &[Id], operators: &[usize]) -> Id {
        // The operator in the middle is the root, as the reference balances.
        let middle = (operators.len().saturating_sub(1)).div_ceil(2);
        let (Some((left, right)), Some(offset)) = (terms.split_at_checked(middle + 1), operators.get(middle)) else {
            return terms.first().copied().unwrap_or(Id(0));
        };
        let left = self.balanced(function, left, operators.get(..middle).unwrap_or_default());
        let right = self.balanced(function, right, operators.get(middle + 1..).unwrap_or_default());
        let both = self.call(*offset, function, vec![left, right]);
        self.ast.set_span(both, Span { start: self.ast.span(left).start, end: self.ast.span(right).end });
        both
    }

    /// Operators of `level` and those that bind more strongly.
    fn binary(&mut self, level: u8) -> Parsed<Id> {
        let start = self.peek().start;
        let mut left = self.unary()?;
        while let Some((_, function, bound)) =
            BINARY.iter().find(|(symbol, _, bound)| *bound >= level && self.is(symbol))
        {
            let op = self.next();
            let right = self.binary(bound + 1)?;
            left = self.add_bounded(op.offset, call(function, vec![left, right]))?;
            self.place(left, start);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Id> {
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let first = self.peek();
            let mut count = 0;
            // A single minus before a number belongs to the number.
            while self.is(symbol) && !(symbol == "-" && count == 0 && is_number(self.peek_at(1))) {
                self.at += 1;
                count += 1;
            }
            if count > 0 {
                let operand = self.member()?;
                if count % 2 == 0 {
                    return Ok(operand);
                }
                let opposite = self.add_bounded(first.offset, call(function, vec![operand]))?;
                self.place(opposite, first.start);
                return Ok(opposite);
            }
        }
        self.member()
    }

    fn member(&mut self) -> Parsed<Id> {
        let start = self.peek().start;
        let mut operand = self.primary()?;
        loop {
            self.place(operand, start);
            let token = self.peek();
            if self.take(".").is_some() {
                operand = self.selection(operand, token)?;
            } else if self.take("[").is_some() {
                let optional = self.optional_mark();
                let index = self.expression()?;
                self.expect("]", self.ends())?;
                let function = if optional { "_[?_]" } else { "_[_]" };
                operand = self.add_bounded(token.offset, call(function, vec![operand, index]))?;
            } else {
                return Ok(operand);
            }
        }
    }

    /// Whether the present token may follow an operand, so that a closing bracket before it may be missing.
    fn ends(&self) -> bool {
        self.peek().kind == token::Kind::End
    }

    /// A `?` that makes an index, element, entry or field optional.
    fn optional_mark(&mut self) -> bool {
        let Some(mark) = self.take("?") else { return false };
        if !self.syntax.optionals {
            self.issue(mark.offset, "unsupported syntax '?'");
        }
        true
    }

    fn selection(&mut self, operand: Id, dot: Token<'a>) -> Parsed<Id> {
        if self.is("?") {
            let mark = self.next();
            let name = self.peek();
            if !matches!(name.kind, token::Kind::Identifier | token::Kind::Quoted) {
                let message = format!("mismatched input '{}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}", name.text);
                self.syntax_error(name.offset, message);
                self.issue(name.offset, "unsupported ident kind");
                return Err(Abandoned);
            }
            self.at += 1;
            if !self.syntax.optionals {
                self.issue(mark.offset, "unsupported syntax '.?'");
            }
            let field = self.field_name(name);
            let field = self.add(name.offset, Kind::Literal(Literal::String(field)));
            return self.add_bounded(dot.offset, call("_?._", vec![operand, field]));
        }
        let name = self.peek();
        match name.kind {
            token::Kind::Identifier | token::Kind::Quoted => self.at += 1,
            token::Kind::Symbol("true" | "false" | "null") => {
                self.syntax_error(name.offset, format!("mismatched input '{}' expecting IDENTIFIER", name.text));
                return Err(Abandoned);
            }
            _ => {
                let shown = if name.kind == token::Kind::End { "" } else { name.text };
                self.syntax_error(name.offset, format!("no viable alternative at input '.{shown}'"));
                return Err(Abandoned);
            }
        }
        if name.kind == token::Kind::Identifier && self.is("(") {
            let open = self.next();
            let args = self.arguments()?;
            return self.finish_call(open.offset, name.text, Some(operand), args);
        }
        let field = self.field_name(name);
        self.add_bounded(dot.offset, Kind::Select { operand, field, test: false })
    }

    fn field_name(&mut self, token: Token<'a>) -> Str {
        if token.kind == token::Kind::Quoted && !self.syntax.quoted_fields {
            self.issue(token.offset, "unsupported syntax: '`'");
        }
        token.text.trim_matches('`').into()
    }

    /// The arguments of a call and the closing parenthesis.
    fn arguments(&mut self) -> Parsed<Vec<Id>> {
        let mut args = Vec::new();
        if self.take(")").is_some() {
            return Ok(args);
        }
        self.first_of(ARGUMENT)?;
        loop {
            args.push(self.expression()?);
            if self.take(",").is_none() {
                break;
            }
        }
        self.expect(")", self.ends())?;
        Ok(args)
    }

    /// Skips a token that cannot begin what is expected if the next can; gives up if neither can.
    fn first_of(&mut self, expected: &str) -> Parsed<()> {
        if self.starts_operand(0) {
            return Ok(());
        }
        let found = self.peek();
        if self.starts_operand(1) {
            self.syntax_error(found.offset, format!("extraneous input '{}' expecting {expected}", found.text));
            self.at += 1;
            return Ok(());
        }
        self.syntax_error(found.offset, format!("mismatched input '{}' expecting {expected}", found.text));
        Err(Abandoned)
    }

    fn starts_operand(&self, ahead: usize) -> bool {
        match self.peek_at(ahead).kind {
            token::Kind::Symbol(symbol) => {
                matches!(symbol, "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null")
            }
            token::Kind::End | token::Kind::Quoted => false,
            _ => true,
        }
    }
}

fn call(function: &str, args: Vec<Id>) -> Kind {
    Kind::Call { function: function.into(), target: None, args }
}

fn is_symbol(token: Token<'_>, symbol: &str) -> bool {
    matches!(token.kind, token::Kind::Symbol(s) if s == symbol)
}

fn is_number(token: Token<'_>) -> bool {
    matches!(token.kind, token::Kind::Int | token::Kind::Float)
}
