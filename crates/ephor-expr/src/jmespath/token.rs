//! Expression text into tokens.

use super::error::CompileError;
use super::hole::{HOLE, Holes, Mixed, MixedJson};
use super::json_text;
use crate::value::{Str, Value};

/// One token and where it starts.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) offset: usize,
}

/// What a token is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A bare identifier.
    Name(Str),
    /// An identifier in double quotes, escapes resolved.
    Quoted(Str),
    /// A string in single quotes, or JSON in backquotes.
    Literal(Value),
    /// A bare identifier with holes.
    MixedName(Mixed),
    /// An identifier in double quotes with holes.
    MixedQuoted(Mixed),
    /// A string or JSON with holes.
    MixedLiteral(MixedJson),
    /// An integer; only indexes and slices take one.
    Number(i64),
    Dot,
    Star,
    Comma,
    Colon,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    OpenParen,
    CloseParen,
    /// `[]`
    Flatten,
    /// `[?`
    Filter,
    /// `@`
    At,
    /// `&`
    Ampersand,
    Pipe,
    Or,
    And,
    Not,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// The end of the text; always the last token.
    End,
}

impl Kind {
    /// How tightly the token binds what stands before it; 0 for tokens that end an expression.
    pub(super) fn binding(&self) -> u8 {
        match self {
            Kind::Pipe => 1,
            Kind::Or => 2,
            Kind::And => 3,
            Kind::Equal | Kind::NotEqual | Kind::Less | Kind::LessOrEqual | Kind::Greater | Kind::GreaterOrEqual => 5,
            Kind::Flatten => 9,
            Kind::Star => 20,
            Kind::Filter => 21,
            Kind::Dot => 40,
            // Upstream: tighter than the dot, so `!a.b` is `(!a).b`.
            Kind::Not => 45,
            Kind::OpenBrace => 50,
            Kind::OpenBracket => 55,
            Kind::OpenParen => 60,
            _ => 0,
        }
    }

    /// The token as messages name it.
    pub(super) fn describe(&self) -> String {
        let text = match self {
            Kind::Name(name) => return format!("`{name}`"),
            Kind::Quoted(name) => return format!("`\"{name}\"`"),
            Kind::Literal(_) | Kind::MixedLiteral(_) => return "a literal".to_owned(),
            Kind::MixedName(_) | Kind::MixedQuoted(_) => return "a variable".to_owned(),
            Kind::Number(n) => return format!("`{n}`"),
            Kind::End => return "end of expression".to_owned(),
            Kind::Dot => ".",
            Kind::Star => "*",
            Kind::Comma => ",",
            Kind::Colon => ":",
            Kind::OpenBrace => "{",
            Kind::CloseBrace => "}",
            Kind::OpenBracket => "[",
            Kind::CloseBracket => "]",
            Kind::OpenParen => "(",
            Kind::CloseParen => ")",
            Kind::Flatten => "[]",
            Kind::Filter => "[?",
            Kind::At => "@",
            Kind::Ampersand => "&",
            Kind::Pipe => "|",
            Kind::Or => "||",
            Kind::And => "&&",
            Kind::Not => "!",
            Kind::Equal => "==",
            Kind::NotEqual => "!=",
            Kind::Less => "<",
            Kind::LessOrEqual => "<=",
            Kind::Greater => ">",
            Kind::GreaterOrEqual => ">=",
        };
        format!("`{text}`")
    }
}

/// Cuts `text` into tokens, the last of them [`Kind::End`].
pub(super) fn tokenize(text: &str, holes: Holes) -> Result<Vec<Token>, CompileError> {
    let mut lexer = Lexer { text, at: 0, holes: (holes == Holes::Marked).then_some(0) };
    let mut tokens = Vec::new();
    loop {
        lexer.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
        let offset = lexer.at;
        let kind = lexer.token()?;
        let end = matches!(kind, Kind::End);
        tokens.push(Token { kind, offset });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// How many holes there have been, if there can be any.
    holes: Option<usize>,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes `c` if it comes next.
    fn take(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn either(&mut self, second: char, both: Kind, one: Kind) -> Kind {
        if self.take(second) { both } else { one }
    }

    fn token(&mut self) -> Result<Kind, CompileError> {
        let start = self.at;
        let Some(c) = self.next() else { return Ok(Kind::End) };
        Ok(match c {
            '.' => Kind::Dot,
            '*' => Kind::Star,
            ',' => Kind::Comma,
            ':' => Kind::Colon,
            '{' => Kind::OpenBrace,
            '}' => Kind::CloseBrace,
            ']' => Kind::CloseBracket,
            '(' => Kind::OpenParen,
            ')' => Kind::CloseParen,
            '@' => Kind::At,
            '[' if self.take('?') => Kind::Filter,
            '[' => self.either(']', Kind::Flatten, Kind::OpenBracket),
            '|' => self.either('|', Kind::Or, Kind::Pipe),
            '&' => self.either('&', Kind::And, Kind::Ampersand),
            '!' => self.either('=', Kind::NotEqual, Kind::Not),
            '<' => self.either('=', Kind::LessOrEqual, Kind::Less),
            '>' => self.either('=', Kind::GreaterOrEqual, Kind::Greater),
            '=' if self.take('=') => Kind::Equal,
            '=' => return Err(CompileError::new(start, "unexpected `=`").help("equality is `==`")),
            'a'..='z' | 'A'..='Z' | '_' => self.name(start),
            HOLE if self.holes.is_some() => self.name(start),
            '-' | '0'..='9' => self.number(start)?,
            '"' => {
                self.delimited(start, '"')?;
                let literal = self.text.get(start..self.at).unwrap_or_default();
                if let Some(first) = self.holes_in(literal) {
                    return match MixedJson::parse(literal, first).map_err(|e| at(start, e))? {
                        MixedJson::Text(name) => Ok(Kind::MixedQuoted(name)),
                        _ => Err(CompileError::new(start, "expected a quoted identifier")),
                    };
                }
                match json_text::parse(literal).map_err(|e| CompileError::new(start + e.offset, e.message))? {
                    Value::String(name) => Kind::Quoted(name),
                    _ => return Err(CompileError::new(start, "expected a quoted identifier")),
                }
            }
            '`' => self.json(start)?,
            '\'' => {
                let text = self.raw_string(start)?;
                match self.holes_in(&text) {
                    Some(first) => Kind::MixedLiteral(MixedJson::Text(Mixed::new(&text, first))),
                    None => Kind::Literal(Value::String(text)),
                }
            }
            _ => return Err(CompileError::new(start, format!("unexpected character {c:?}"))),
        })
    }

    fn name(&mut self, start: usize) -> Kind {
        self.at = start;
        let holes = self.holes.is_some();
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || (holes && c == HOLE));
        match self.holes_in(text) {
            Some(first) => Kind::MixedName(Mixed::new(text, first)),
            None => Kind::Name(text.into()),
        }
    }

    /// The number of the first hole in `text`, which comes next, if there is any.
    fn holes_in(&mut self, text: &str) -> Option<usize> {
        let first = self.holes?;
        let count = text.matches(HOLE).count();
        self.holes = Some(first + count);
        (count > 0).then_some(first)
    }

    fn number(&mut self, start: usize) -> Result<Kind, CompileError> {
        self.take_while(|c| c.is_ascii_digit());
        let text = self.text.get(start..self.at).unwrap_or_default();
        match text.parse() {
            Ok(n) => Ok(Kind::Number(n)),
            Err(_) if text == "-" => {
                Err(CompileError::new(start, "unexpected `-`")
                    .help("a name with `-` in it must stand in double quotes"))
            }
            Err(_) => Err(CompileError::new(start, format!("number `{text}` is out of range"))),
        }
    }

    /// Takes everything up to and including an `end` that no backslash precedes; gives what is before it.
    fn delimited(&mut self, start: usize, end: char) -> Result<&'t str, CompileError> {
        let from = self.at;
        while let Some(c) = self.next() {
            if c == end {
                return Ok(self.text.get(from..self.at - c.len_utf8()).unwrap_or_default());
            }
            if c == '\\' {
                self.next();
            }
        }
        Err(unclosed(start, end))
    }

    fn json(&mut self, start: usize) -> Result<Kind, CompileError> {
        let raw = self.delimited(start, '`')?;
        if let Some(first) = self.holes_in(raw) {
            let json = MixedJson::parse(&raw.replace("\\`", "`"), first).map_err(|e| at(start, e))?;
            return Ok(Kind::MixedLiteral(json));
        }
        let value = if raw.contains("\\`") {
            // Offsets into the unescaped text would mislead: the whole literal is named instead.
            json_text::parse(&raw.replace("\\`", "`")).map_err(|e| CompileError::new(start, e.message))
        } else {
            json_text::parse(raw).map_err(|e| CompileError::new(start + 1 + e.offset, e.message))
        };
        value.map(Kind::Literal)
    }

    /// Takes the rest of a string in single quotes. Upstream: `\'` is the only escape, wherever it stands, so
    /// `'\\'` is not closed.
    fn raw_string(&mut self, start: usize) -> Result<Str, CompileError> {
        let from = self.at;
        let mut escaped = false;
        while let Some(c) = self.next() {
            if c == '\'' {
                let raw = self.text.get(from..self.at - 1).unwrap_or_default();
                return Ok(if escaped { raw.replace("\\'", "'").into() } else { raw.into() });
            }
            if c == '\\' && self.take('\'') {
                escaped = true;
            }
        }
        Err(unclosed(start, '\''))
    }
}

fn at(start: usize, error: CompileError) -> CompileError {
    CompileError { offset: start, ..error }
}

fn unclosed(start: usize, delimiter: char) -> CompileError {
    CompileError::new(start, format!("unclosed {delimiter}"))
}
