//! Tokens into a syntax tree, by precedence climbing.
//!
//! What a projection takes to its right depends on how tightly it binds: a list projection (`[*]`, slices,
//! filters) takes dots, a flatten too, but `x.*` binds like the dot itself and takes a single step. Pipes
//! end every projection.

use super::ast::{Ast, Comparison, Slice};
use super::error::CompileError;
use super::hole::Holes;
use super::token::{Kind, Token, tokenize};
use crate::value::Str;

/// How deep expressions nest, both in brackets and in chains such as `a.b.c`; evaluation recurses as deep.
const MAX_DEPTH: usize = 128;

/// Parses a whole expression.
pub(super) fn parse(text: &str, holes: Holes) -> Result<Ast, CompileError> {
    let mut parser = Parser { tokens: tokenize(text, holes)?.into_iter(), next: Kind::End, offset: 0, depth: 0 };
    parser.advance();
    let tree = parser.expression(0)?;
    if matches!(parser.next, Kind::End) { Ok(tree.ast) } else { Err(parser.unexpected("end of expression")) }
}

/// A tree and how many nodes its longest branch has.
struct Tree {
    ast: Ast,
    height: usize,
}

impl Tree {
    fn leaf(ast: Ast) -> Self {
        Self { ast, height: 1 }
    }
}

struct Parser {
    tokens: std::vec::IntoIter<Token>,
    next: Kind,
    offset: usize,
    depth: usize,
}

impl Parser {
    /// Takes the next token.
    fn advance(&mut self) -> Kind {
        let Token { kind, offset } = self.tokens.next().unwrap_or(Token { kind: Kind::End, offset: self.offset });
        self.offset = offset;
        std::mem::replace(&mut self.next, kind)
    }

    /// The kind of the token after the next one.
    fn second(&self) -> &Kind {
        self.tokens.as_slice().first().map_or(&Kind::End, |token| &token.kind)
    }

    fn unexpected(&self, wanted: &str) -> CompileError {
        CompileError::new(self.offset, format!("expected {wanted}, found {}", self.next.describe()))
    }

    /// Takes the closing or separating token `kind`.
    fn expect(&mut self, kind: &Kind) -> Result<(), CompileError> {
        if std::mem::discriminant(&self.next) == std::mem::discriminant(kind) {
            self.advance();
            Ok(())
        } else {
            Err(self.unexpected(&kind.describe()))
        }
    }

    /// A node over `children`, which are `height` high.
    fn grow(&self, height: usize, ast: Ast) -> Result<Tree, CompileError> {
        if height >= MAX_DEPTH { Err(self.too_deep()) } else { Ok(Tree { ast, height: height + 1 }) }
    }

    fn binary(
        &self,
        left: Tree,
        right: Tree,
        make: impl FnOnce(Box<Ast>, Box<Ast>) -> Ast,
    ) -> Result<Tree, CompileError> {
        self.grow(left.height.max(right.height), make(Box::new(left.ast), Box::new(right.ast)))
    }

    fn too_deep(&self) -> CompileError {
        CompileError::new(self.offset, format!("the expression nests deeper than {MAX_DEPTH} levels"))
    }

    /// An expression as far as tokens bind tighter than `binding`.
    fn expression(&mut self, binding: u8) -> Result<Tree, CompileError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let mut tree = self.prefix()?;
        while binding < self.next.binding() {
            tree = self.suffix(tree)?;
        }
        self.depth -= 1;
        Ok(tree)
    }

    /// What an expression starts with.
    fn prefix(&mut self) -> Result<Tree, CompileError> {
        let offset = self.offset;
        let current = Tree::leaf(Ast::Current);
        match self.next {
            Kind::Name(_)
            | Kind::Quoted(_)
            | Kind::Literal(_)
            | Kind::MixedName(_)
            | Kind::MixedQuoted(_)
            | Kind::MixedLiteral(_) => match self.advance() {
                Kind::Literal(value) => Ok(Tree::leaf(Ast::Literal(value))),
                Kind::MixedLiteral(json) => Ok(Tree::leaf(Ast::Mixed(json))),
                Kind::MixedName(name) | Kind::MixedQuoted(name) => Ok(Tree::leaf(Ast::FieldOf { name, offset })),
                Kind::Quoted(_) if matches!(self.next, Kind::OpenParen) => {
                    Err(CompileError::new(offset, "a function's name cannot be quoted"))
                }
                Kind::Name(name) | Kind::Quoted(name) => Ok(Tree::leaf(Ast::Field { name, offset })),
                _ => Err(self.unexpected("an expression")),
            },
            Kind::At => {
                self.advance();
                Ok(current)
            }
            Kind::Not => {
                let binding = self.advance().binding();
                let operand = self.expression(binding)?;
                self.grow(operand.height, Ast::Not(Box::new(operand.ast)))
            }
            Kind::Ampersand => {
                self.advance();
                let target = self.expression(0)?;
                self.grow(target.height, Ast::Reference { expression: Box::new(target.ast), offset })
            }
            Kind::OpenParen => {
                self.advance();
                let inner = self.expression(0)?;
                self.expect(&Kind::CloseParen)?;
                Ok(inner)
            }
            Kind::OpenBrace => self.hash(),
            Kind::Star => {
                let binding = self.advance().binding();
                self.values(current, binding)
            }
            Kind::OpenBracket => match (self.second(), self.tokens.as_slice().get(1).map(|t| &t.kind)) {
                (Kind::Number(_) | Kind::Colon, _) | (Kind::Star, Some(Kind::CloseBracket)) => self.bracket(current),
                _ => self.list(),
            },
            Kind::Flatten => self.flatten(current),
            Kind::Filter => self.filter(current),
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// `left` and the operator after it.
    fn suffix(&mut self, left: Tree) -> Result<Tree, CompileError> {
        let binding = self.next.binding();
        let comparison = match self.next {
            Kind::Dot => {
                let binding = self.advance().binding();
                if matches!(self.next, Kind::Star) {
                    self.advance();
                    return self.values(left, binding);
                }
                let right = self.member(binding)?;
                return self.binary(left, right, Ast::Sub);
            }
            Kind::OpenBracket => return self.bracket(left),
            Kind::Flatten => return self.flatten(left),
            Kind::Filter => return self.filter(left),
            Kind::OpenParen => return self.call(left),
            Kind::Pipe | Kind::Or | Kind::And => {
                let make = match self.advance() {
                    Kind::Pipe => Ast::Pipe,
                    Kind::Or => Ast::Or,
                    _ => Ast::And,
                };
                let right = self.expression(binding)?;
                return self.binary(left, right, make);
            }
            Kind::Equal => Comparison::Equal,
            Kind::NotEqual => Comparison::NotEqual,
            Kind::Less => Comparison::Less,
            Kind::LessOrEqual => Comparison::LessOrEqual,
            Kind::Greater => Comparison::Greater,
            Kind::GreaterOrEqual => Comparison::GreaterOrEqual,
            _ => return Err(self.unexpected("an operator or the end of the expression")),
        };
        self.advance();
        let right = self.expression(binding)?;
        self.binary(left, right, |a, b| Ast::Compare(comparison, a, b))
    }

    /// What may follow a dot.
    fn member(&mut self, binding: u8) -> Result<Tree, CompileError> {
        match self.next {
            Kind::Name(_) | Kind::Quoted(_) | Kind::MixedName(_) | Kind::MixedQuoted(_) | Kind::Star => {
                self.expression(binding)
            }
            Kind::OpenBracket => self.list(),
            Kind::OpenBrace => self.hash(),
            _ => Err(self.unexpected("an identifier, `*`, `[` or `{` after `.`")),
        }
    }

    /// What a projection does with each item: everything to the right that binds tighter than `binding`.
    fn each(&mut self, binding: u8) -> Result<Tree, CompileError> {
        match &self.next {
            Kind::OpenBracket | Kind::Filter => self.expression(binding),
            Kind::Dot => {
                self.advance();
                self.member(binding)
            }
            // Weaker than any projection: the projection ends here.
            next if next.binding() <= Kind::Flatten.binding() => Ok(Tree::leaf(Ast::Current)),
            _ => Err(self.unexpected("`.`, `[` or the end of the projection")),
        }
    }

    /// The rest of `source.*`.
    fn values(&mut self, source: Tree, binding: u8) -> Result<Tree, CompileError> {
        let each = self.each(binding)?;
        self.binary(source, each, |source, each| Ast::Values { source, each })
    }

    /// `source[n]`, `source[a:b:c]` or `source[*]`.
    fn bracket(&mut self, source: Tree) -> Result<Tree, CompileError> {
        self.expect(&Kind::OpenBracket)?;
        match (&self.next, self.second()) {
            (Kind::Colon, _) | (Kind::Number(_), Kind::Colon) => {
                let slice = self.slice()?;
                let sliced = self.binary(source, Tree::leaf(Ast::Slice(slice)), Ast::Sub)?;
                self.project(sliced)
            }
            (&Kind::Number(n), _) => {
                self.advance();
                self.expect(&Kind::CloseBracket)?;
                self.binary(source, Tree::leaf(Ast::Index(n)), Ast::Sub)
            }
            (Kind::Star, _) => {
                self.advance();
                self.expect(&Kind::CloseBracket)?;
                self.project(source)
            }
            (Kind::MixedName(name), _) if let Some(hole) = name.lone() => {
                self.advance();
                self.expect(&Kind::CloseBracket)?;
                self.binary(source, Tree::leaf(Ast::IndexOf(hole)), Ast::Sub)
            }
            _ => Err(self.unexpected("a number, `:` or `*` after `[`")),
        }
    }

    fn project(&mut self, source: Tree) -> Result<Tree, CompileError> {
        let each = self.each(Kind::Star.binding())?;
        self.binary(source, each, |source, each| Ast::Project { source, each })
    }

    fn slice(&mut self) -> Result<Slice, CompileError> {
        let start = self.optional_number();
        self.expect(&Kind::Colon)?;
        let stop = self.optional_number();
        let mut step = None;
        if matches!(self.next, Kind::Colon) {
            self.advance();
            let offset = self.offset;
            step = self.optional_number();
            if step == Some(0) {
                return Err(CompileError::new(offset, "a slice's step cannot be 0"));
            }
        }
        self.expect(&Kind::CloseBracket)?;
        Ok(Slice { start, stop, step })
    }

    fn optional_number(&mut self) -> Option<i64> {
        let Kind::Number(n) = self.next else { return None };
        self.advance();
        Some(n)
    }

    fn flatten(&mut self, source: Tree) -> Result<Tree, CompileError> {
        let binding = self.advance().binding();
        let flat = self.grow(source.height, Ast::Flatten(Box::new(source.ast)))?;
        let each = self.each(binding)?;
        self.binary(flat, each, |source, each| Ast::Project { source, each })
    }

    fn filter(&mut self, source: Tree) -> Result<Tree, CompileError> {
        let binding = self.advance().binding();
        let condition = self.expression(0)?;
        self.expect(&Kind::CloseBracket)?;
        let each = self.each(binding)?;
        let height = source.height.max(condition.height).max(each.height);
        let [source, condition, each] = [source, condition, each].map(|tree| Box::new(tree.ast));
        self.grow(height, Ast::Filter { source, condition, each })
    }

    fn list(&mut self) -> Result<Tree, CompileError> {
        self.expect(&Kind::OpenBracket)?;
        let (mut items, mut height) = (Vec::new(), 0);
        loop {
            let item = self.expression(0)?;
            height = height.max(item.height);
            items.push(item.ast);
            if matches!(self.next, Kind::CloseBracket) {
                self.advance();
                return self.grow(height, Ast::List(items));
            }
            self.expect(&Kind::Comma)?;
        }
    }

    /// `{k: a, l: b}`. Upstream: the commas may be missing.
    fn hash(&mut self) -> Result<Tree, CompileError> {
        self.expect(&Kind::OpenBrace)?;
        let (mut members, mut height) = (Vec::new(), 0);
        loop {
            let key = self.key()?;
            self.expect(&Kind::Colon)?;
            let member = self.expression(0)?;
            height = height.max(member.height);
            members.push((key, member.ast));
            match self.next {
                Kind::CloseBrace => {
                    self.advance();
                    return self.grow(height, Ast::Hash(members));
                }
                Kind::Comma => drop(self.advance()),
                _ => {}
            }
        }
    }

    fn key(&mut self) -> Result<Str, CompileError> {
        if !matches!(self.next, Kind::Name(_) | Kind::Quoted(_)) {
            // Upstream's own words: policies with `{{ }}` where none belongs run into this, and users search for it.
            return Err(CompileError::new(
                self.offset,
                "SyntaxError: Expected tQuotedIdentifier or tUnquotedIdentifier",
            )
            .help(match self.next {
                Kind::OpenBrace => "write the expression without `{{ }}`",
                _ => "a multi-select hash is written `{key: expression}`",
            }));
        }
        match self.advance() {
            Kind::Name(key) | Kind::Quoted(key) => Ok(key),
            _ => Ok(Str::default()),
        }
    }

    /// `name(args)`, the name already parsed as a field. Upstream: commas between arguments may be missing, and
    /// one may follow the last.
    fn call(&mut self, callee: Tree) -> Result<Tree, CompileError> {
        let Ast::Field { name, offset } = callee.ast else {
            return Err(self.unexpected("an operator or the end of the expression"));
        };
        self.expect(&Kind::OpenParen)?;
        let (mut args, mut height) = (Vec::new(), 0);
        while !matches!(self.next, Kind::CloseParen) {
            let arg = self.expression(0)?;
            height = height.max(arg.height);
            args.push(arg.ast);
            if matches!(self.next, Kind::Comma) {
                self.advance();
            }
        }
        self.advance();
        self.grow(height, Ast::Call { name, offset, args })
    }
}
