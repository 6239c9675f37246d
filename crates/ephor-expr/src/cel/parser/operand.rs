//! Operands: literals, names, calls, lists, maps and constructed objects.

use super::super::ast::{Entry, Field, Id, Item, Kind};
use super::super::literal::{self, Literal};
use super::super::macros;
use super::super::token::{self, Token};
use super::{Abandoned, MAX_DEPTH, OPERAND, Parsed, Parser, is_number, is_symbol};

const ITEM: &str = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
     NUM_UINT, STRING, BYTES, IDENTIFIER}";

const ENTRY: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
     NUM_UINT, STRING, BYTES, IDENTIFIER}";

const FIELD: &str = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}";

/// Names that no variable may have.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// What a macro adds to the nesting, so that evaluation of nested ones needs a bounded stack.
const MACRO_HEIGHT: usize = 3;

impl<'a> Parser<'a> {
    pub(super) fn primary(&mut self) -> Parsed<Id> {
        self.first_of(OPERAND)?;
        let token = self.next();
        let offset = token.offset;
        match token.kind {
            token::Kind::Symbol("(") => {
                let inner = self.expression()?;
                self.expect(")", self.ends())?;
                Ok(inner)
            }
            token::Kind::Symbol("[") => self.list(offset),
            token::Kind::Symbol("{") => self.map(offset),
            token::Kind::Symbol(word @ ("true" | "false")) => {
                Ok(self.add(offset, Kind::Literal(Literal::Bool(word == "true"))))
            }
            token::Kind::Symbol("null") => Ok(self.add(offset, Kind::Literal(Literal::Null))),
            token::Kind::Symbol("-") if is_number(self.peek()) => {
                let number = self.next();
                Ok(self.literal(offset, number, true))
            }
            token::Kind::Symbol(".") => {
                let name = self.peek();
                if name.kind != token::Kind::Identifier {
                    self.syntax_error(name.offset, format!("mismatched input '{}' expecting IDENTIFIER", name.text));
                    return Err(Abandoned);
                }
                self.at += 1;
                self.name(offset, format!(".{}", name.text))
            }
            token::Kind::Identifier => self.name(offset, token.text.to_owned()),
            token::Kind::Symbol(_) | token::Kind::End | token::Kind::Quoted => {
                self.syntax_error(self.peek().offset, format!("no viable alternative at input '{}'", token.text));
                Err(Abandoned)
            }
            _ => Ok(self.literal(offset, token, false)),
        }
    }

    fn literal(&mut self, offset: usize, token: Token<'a>, negative: bool) -> Id {
        let signed = |n: f64| if negative { -n } else { n };
        let text = token.text;
        let literal = match token.kind {
            token::Kind::Int => literal::int(text, negative).map(Literal::Int).ok_or("invalid int literal"),
            token::Kind::Uint if negative => Err("invalid uint literal"),
            token::Kind::Uint => literal::uint(text).map(Literal::Uint).ok_or("invalid uint literal"),
            token::Kind::Float => {
                literal::double(text).map(|n| Literal::Double(signed(n))).ok_or("invalid double literal")
            }
            token::Kind::Bytes => literal::bytes(text).map(Literal::Bytes),
            _ => literal::string(text).map(Literal::String),
        };
        match literal {
            Ok(literal) => self.add(offset, Kind::Literal(literal)),
            Err(message) => {
                self.issue(offset, message);
                self.error_node(offset)
            }
        }
    }

    /// What begins with a name: a variable, a call, or the construction of an object.
    fn name(&mut self, offset: usize, name: String) -> Parsed<Id> {
        let bare = name.trim_start_matches('.');
        if RESERVED.contains(&bare) {
            self.issue(offset, format!("reserved identifier: {bare}"));
            if !self.is("(") {
                return Ok(self.error_node(offset));
            }
        }
        if let Some(open) = self.take("(") {
            let args = self.arguments()?;
            return self.finish_call(open.offset, &name, None, args);
        }
        // A dotted name before a brace is a type.
        let mut ahead = 0;
        while is_symbol(self.peek_at(ahead), ".") && self.peek_at(ahead + 1).kind == token::Kind::Identifier {
            ahead += 2;
        }
        if is_symbol(self.peek_at(ahead), "{") {
            let mut full = name;
            for _ in 0..ahead / 2 {
                self.at += 1;
                full.push('.');
                full.push_str(self.next().text);
            }
            let open = self.next();
            return self.object(open.offset, &full);
        }
        Ok(self.add(offset, Kind::Ident(name.into())))
    }

    fn list(&mut self, offset: usize) -> Parsed<Id> {
        let mut items = Vec::new();
        let mut first = true;
        while self.take("]").is_none() {
            if self.take(",").is_some() {
                self.expect_one("]", "{']'}", false)?;
                break;
            }
            let optional = self.optional_mark();
            if first && !optional {
                self.first_of(ITEM)?;
            }
            first = false;
            items.push(Item { value: self.expression()?, optional });
            if !self.more("]")? {
                break;
            }
        }
        self.add_bounded(offset, Kind::List(items))
    }

    /// After an element: whether another may follow. Takes the comma, or the closing bracket.
    fn more(&mut self, close: &str) -> Parsed<bool> {
        if self.take(",").is_some() {
            return Ok(true);
        }
        self.expect_one(close, &format!("{{'{close}', ','}}"), false)?;
        Ok(false)
    }

    fn map(&mut self, offset: usize) -> Parsed<Id> {
        let mut entries = Vec::new();
        let mut first = true;
        while self.take("}").is_none() {
            if first && self.take(",").is_some() {
                self.expect("}", false)?;
                break;
            }
            let optional = self.optional_mark();
            if first && !optional {
                self.first_of(ENTRY)?;
            }
            first = false;
            let key = self.expression()?;
            self.expect(":", self.starts_operand(0))?;
            let value = self.expression()?;
            entries.push(Entry { key, value, optional });
            if !self.more("}")? {
                break;
            }
        }
        self.add_bounded(offset, Kind::Map(entries))
    }

    fn object(&mut self, offset: usize, name: &str) -> Parsed<Id> {
        let mut fields = Vec::new();
        while self.take("}").is_none() {
            if fields.is_empty() && self.take(",").is_some() {
                self.expect("}", false)?;
                break;
            }
            let optional = self.optional_mark();
            let mut field = self.peek();
            let is_name = |token: Token<'_>| matches!(token.kind, token::Kind::Identifier | token::Kind::Quoted);
            if !is_name(field) {
                let expected = if optional { "{IDENTIFIER, ESC_IDENTIFIER}" } else { FIELD };
                if optional {
                    self.issue(mark_before(field.offset), "unsupported ident kind");
                }
                if is_name(self.peek_at(1)) && !optional {
                    self.syntax_error(field.offset, format!("extraneous input '{}' expecting {expected}", field.text));
                    self.at += 1;
                    field = self.peek();
                } else {
                    self.syntax_error(field.offset, format!("mismatched input '{}' expecting {expected}", field.text));
                    return Err(Abandoned);
                }
            }
            self.at += 1;
            let field_name = self.field_name(field);
            let colon = self.expect(":", self.starts_operand(0))?;
            let value = self.expression()?;
            fields.push(Field { offset: colon.offset, name: field_name, value, optional });
            if !self.more("}")? {
                break;
            }
        }
        self.add_bounded(offset, Kind::Struct { name: name.into(), fields })
    }

    pub(super) fn finish_call(&mut self, offset: usize, name: &str, target: Option<Id>, args: Vec<Id>) -> Parsed<Id> {
        let found = self.macros.iter().find(|entry| entry.applies(name, target.is_some(), args.len()));
        if let Some(entry) = found {
            let below = target.iter().chain(&args).filter_map(|id| self.heights.get(id.0)).max().copied();
            if let Some(expanded) = (entry.expand)(self, &macros::Use { offset, target, args: &args }) {
                // A macro counts by itself, not by the nodes of its expansion.
                let own = below.unwrap_or(0) + MACRO_HEIGHT;
                if let Some(height) = self.heights.get_mut(expanded.0) {
                    *height = own;
                }
                if own > MAX_DEPTH {
                    return Err(self.too_deep("max recursion depth exceeded".into()));
                }
                return Ok(expanded);
            }
        }
        self.add_bounded(offset, Kind::Call { function: name.into(), target, args })
    }
}

/// The place of the `?` before a field name.
fn mark_before(offset: usize) -> usize {
    offset.saturating_sub(1)
}
