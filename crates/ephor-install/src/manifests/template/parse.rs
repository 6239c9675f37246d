//! Template text into nodes.

use ephor_expr::{Str, Value};

/// A piece of a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// Text as it stands.
    Text(String),
    /// A pipeline whose value is printed.
    Print(Pipeline),
    /// `$name := pipeline`; with `=` an outer variable is changed.
    Assign { name: Str, declare: bool, value: Pipeline },
    /// The first branch whose condition holds; no condition means else.
    If(Vec<(Option<Pipeline>, Vec<Node>)>),
    /// The dot is the value, if it is not empty.
    With(Pipeline, Vec<Node>, Vec<Node>),
    /// Once for each element.
    Range { key: Option<Str>, value: Option<Str>, over: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
}

/// Commands; each gets what the one before gave as its last argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pipeline(pub(super) Vec<Vec<Operand>>);

/// A word of a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    /// `name`: a function.
    Function(Str),
    /// `.a.b`, from the dot.
    Field(Vec<Str>),
    /// `$name.a.b`; the name is empty for the root.
    Variable(Str, Vec<Str>),
    /// A constant.
    Literal(Value),
    /// `(pipeline).a.b`
    Group(Pipeline, Vec<Str>),
}

/// What a file holds.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) nodes: Vec<Node>,
    pub(super) defined: Vec<(String, Vec<Node>)>,
}

/// A piece of the text.
enum Piece<'t> {
    Text(&'t str),
    Action(&'t str),
}

/// An open block.
struct Open {
    kind: Kind,
    nodes: Vec<Node>,
}

enum Kind {
    File,
    Define(String),
    /// The branches before, and the condition of this one.
    If(Vec<(Option<Pipeline>, Vec<Node>)>, Option<Pipeline>),
    /// The body, once `else` came.
    With(Pipeline, Option<Vec<Node>>),
    Range {
        key: Option<Str>,
        value: Option<Str>,
        over: Pipeline,
        body: Option<Vec<Node>>,
    },
}

pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let mut defined = Vec::new();
    let mut open = vec![Open { kind: Kind::File, nodes: Vec::new() }];
    for piece in pieces(text)? {
        let Some(top) = open.last_mut() else { return Err("`end` without a block".into()) };
        let action = match piece {
            Piece::Text(text) => {
                if !text.is_empty() {
                    top.nodes.push(Node::Text(text.to_owned()));
                }
                continue;
            }
            Piece::Action(action) => action,
        };
        let (word, rest) = action.split_once(char::is_whitespace).unwrap_or((action, ""));
        match word {
            "if" => open.push(Open { kind: Kind::If(Vec::new(), Some(pipeline(rest)?)), nodes: Vec::new() }),
            "with" => open.push(Open { kind: Kind::With(pipeline(rest)?, None), nodes: Vec::new() }),
            "range" => {
                let (names, over) = match rest.split_once(":=") {
                    Some((names, over)) if names.trim_start().starts_with('$') => (names, over),
                    _ => ("", rest),
                };
                let mut names = names.split(',').map(|name| Str::new(name.trim().trim_start_matches('$')));
                let (first, second) = (names.next().filter(|name| !name.is_empty()), names.next());
                let (key, value) = if second.is_some() { (first, second) } else { (None, first) };
                let kind = Kind::Range { key, value, over: pipeline(over)?, body: None };
                open.push(Open { kind, nodes: Vec::new() });
            }
            "define" => {
                let name = rest.trim().trim_matches('"').to_owned();
                open.push(Open { kind: Kind::Define(name), nodes: Vec::new() });
            }
            "else" => otherwise(top, rest.trim())?,
            "end" => {
                let block = open.pop().filter(|_| !open.is_empty()).ok_or("`end` without a block")?;
                let node = match block.kind {
                    Kind::File => return Err("`end` without a block".into()),
                    Kind::Define(name) => {
                        defined.push((name, block.nodes));
                        continue;
                    }
                    Kind::If(mut branches, condition) => {
                        branches.push((condition, block.nodes));
                        Node::If(branches)
                    }
                    Kind::With(value, body) => {
                        let (body, otherwise) = halves(body, block.nodes);
                        Node::With(value, body, otherwise)
                    }
                    Kind::Range { key, value, over, body } => {
                        let (body, otherwise) = halves(body, block.nodes);
                        Node::Range { key, value, over, body, otherwise }
                    }
                };
                if let Some(outer) = open.last_mut() {
                    outer.nodes.push(node);
                }
            }
            _ => top.nodes.push(statement(action)?),
        }
    }
    match open.pop() {
        Some(Open { kind: Kind::File, nodes }) => Ok(Parsed { nodes, defined }),
        Some(Open { kind, .. }) => {
            let word = match kind {
                Kind::If(..) => "if",
                Kind::With(..) => "with",
                Kind::Range { .. } => "range",
                Kind::Define(_) | Kind::File => "define",
            };
            Err(format!("`{word}` without `end`"))
        }
        None => Err("`end` without a block".into()),
    }
}

fn halves(before_else: Option<Vec<Node>>, last: Vec<Node>) -> (Vec<Node>, Vec<Node>) {
    match before_else {
        Some(body) => (body, last),
        None => (last, Vec::new()),
    }
}

fn otherwise(block: &mut Open, rest: &str) -> Result<(), String> {
    let nodes = std::mem::take(&mut block.nodes);
    match &mut block.kind {
        Kind::If(branches, condition) => {
            branches.push((condition.take(), nodes));
            *condition = match rest.strip_prefix("if ") {
                Some(rest) => Some(pipeline(rest)?),
                None if rest.is_empty() => None,
                None => return Err(format!("unknown action `else {rest}`")),
            };
        }
        Kind::With(_, body) | Kind::Range { body, .. } if rest.is_empty() && body.is_none() => *body = Some(nodes),
        _ => return Err("`else` without a block".into()),
    }
    Ok(())
}

/// Cuts the text at its actions; spaces go where a dash says so, comments go altogether.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let (mut rest, mut trim) = (text, false);
    loop {
        if trim {
            rest = rest.trim_start();
        }
        let Some((before, after)) = rest.split_once("{{") else {
            pieces.push(Piece::Text(rest));
            return Ok(pieces);
        };
        let (action, after) = split_action(after).ok_or("`{{` without `}}`")?;
        let (action, before) = match action.strip_prefix('-') {
            Some(action) if action.starts_with(char::is_whitespace) => (action, before.trim_end()),
            _ => (action, before),
        };
        pieces.push(Piece::Text(before));
        let trimmed = action.strip_suffix('-').filter(|action| action.ends_with(char::is_whitespace));
        trim = trimmed.is_some();
        let action = trimmed.unwrap_or(action).trim();
        if !(action.starts_with("/*") && action.ends_with("*/")) {
            pieces.push(Piece::Action(action));
        }
        rest = after;
    }
}

/// The action up to `}}`, which may stand in strings.
fn split_action(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(q) if c == q => quote = None,
            None if c == '"' || c == '`' => quote = Some(c),
            None if text[at..].starts_with("}}") => return Some((&text[..at], &text[at + 2..])),
            _ => {}
        }
    }
    None
}

fn statement(action: &str) -> Result<Node, String> {
    if let Some(rest) = action.strip_prefix('$') {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after.trim_start();
        for (sign, declare) in [(":=", true), ("=", false)] {
            if let Some(value) = after.strip_prefix(sign) {
                return Ok(Node::Assign { name: name.into(), declare, value: pipeline(value)? });
            }
        }
    }
    Ok(Node::Print(pipeline(action)?))
}

fn pipeline(text: &str) -> Result<Pipeline, String> {
    let mut reader = Reader { rest: text };
    let pipeline = reader.pipeline()?;
    reader.space();
    if reader.rest.is_empty() { Ok(pipeline) } else { Err(format!("unexpected `{}`", reader.rest)) }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn pipeline(&mut self) -> Result<Pipeline, String> {
        let mut commands = vec![Vec::new()];
        loop {
            self.space();
            match self.rest.chars().next() {
                None | Some(')') => break,
                Some('|') => {
                    self.rest = &self.rest[1..];
                    commands.push(Vec::new());
                }
                Some(_) => {
                    let operand = self.operand()?;
                    if let Some(command) = commands.last_mut() {
                        command.push(operand);
                    }
                }
            }
        }
        if commands.iter().any(Vec::is_empty) { Err("a command is missing".into()) } else { Ok(Pipeline(commands)) }
    }

    fn operand(&mut self) -> Result<Operand, String> {
        match self.rest.chars().next() {
            Some('(') => {
                self.rest = &self.rest[1..];
                let inner = self.pipeline()?;
                self.rest = self.rest.strip_prefix(')').ok_or("`(` without `)`")?;
                Ok(Operand::Group(inner, self.fields()))
            }
            Some('"') => {
                let end = string_end(self.rest).ok_or("a string without end")?;
                let (literal, rest) = self.rest.split_at(end);
                self.rest = rest;
                Value::from_json(literal).map(Operand::Literal).map_err(|error| format!("{literal}: {error}"))
            }
            Some('`') => {
                let (literal, rest) = self.rest[1..].split_once('`').ok_or("a string without end")?;
                self.rest = rest;
                Ok(Operand::Literal(literal.into()))
            }
            Some('$') => {
                self.rest = &self.rest[1..];
                let name = self.word();
                Ok(Operand::Variable(name, self.fields()))
            }
            Some('.') => {
                let fields = self.fields();
                if fields.is_empty() {
                    self.rest = &self.rest[1..];
                }
                Ok(Operand::Field(fields))
            }
            Some(c) if c.is_ascii_digit() || c == '-' => {
                let end =
                    self.rest[1..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(self.rest.len(), |i| i + 1);
                let (number, rest) = self.rest.split_at(end);
                self.rest = rest;
                Value::from_json(number).map(Operand::Literal).map_err(|_| format!("`{number}` is no number"))
            }
            _ => {
                let word = self.word();
                Ok(match word.as_str() {
                    "" => return Err(format!("unexpected `{}`", self.rest)),
                    "true" => Operand::Literal(true.into()),
                    "false" => Operand::Literal(false.into()),
                    "nil" => Operand::Literal(Value::Null),
                    _ => Operand::Function(word),
                })
            }
        }
    }

    fn word(&mut self) -> Str {
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.into()
    }

    /// `.a.b`
    fn fields(&mut self) -> Vec<Str> {
        let mut fields = Vec::new();
        while let Some(after) = self.rest.strip_prefix('.') {
            if !after.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                break;
            }
            self.rest = after;
            fields.push(self.word());
        }
        fields
    }
}

/// Where the string that the text begins with ends.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at + 1)
    })
}
