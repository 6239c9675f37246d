//! Templates of objects: YAML in which `(( expression ))` stands for the value of an expression in CEL.
//!
//! In goes the text of a template, out come trees whose scalars are fixed, an expression, or text with expressions in
//! it. An expression that is a whole scalar gives any value; one within a text gives a scalar. `\\((` stands for `((`.

use ephor_expr::cel::Val;
use ephor_expr::value::Path;
use ephor_expr::yaml::{Limits, parse_values};
use ephor_expr::{Map, Str, Value};

use super::body::{Expression, Fault};
use crate::policy::{GenerationTemplate, Interpolation};

/// A part of a template.
#[derive(Debug)]
pub(super) enum Node {
    /// No expression is in it.
    Fixed(Value),
    /// One expression is all of it.
    Whole(Expression),
    /// Text with expressions in it.
    Text(Vec<Piece>),
    /// A list.
    List(Vec<Node>),
    /// An object.
    Object(Vec<(Str, Node)>),
}

/// A piece of a text.
#[derive(Debug)]
pub(super) enum Piece {
    /// As it is written.
    Fixed(Str),
    /// The text of a value.
    Value(Expression),
}

/// Compiles the expression that stands at a byte offset of the template.
type CompileAt<'c> = dyn FnMut(&str, usize) -> Option<Expression> + 'c;

struct Reader<'t, 'c> {
    text: &'t str,
    path: &'t Path,
    /// Where the last expression stands: the next one of the same text is another.
    seen: usize,
    compile: &'t mut CompileAt<'c>,
}

impl Node {
    /// The documents of a template. Expressions that do not compile are reported by `compile` and left out.
    pub(super) fn compile_all(
        template: &GenerationTemplate,
        path: &Path,
        compile: &mut CompileAt<'_>,
    ) -> Result<Vec<Self>, Fault> {
        let text = template.value.as_str();
        let fault = |message: String| Fault { path: path.clone(), offset: None, message };
        let documents = parse_values(text, &Limits::default()).map_err(|error| {
            let offset = Some(error.position.offset as usize);
            Fault { offset, ..fault(error.message) }
        })?;
        if documents.is_empty() {
            return Err(fault("the template has no document".to_owned()));
        }
        if let Some(other) = documents.iter().find(|document| document.as_object().is_none()) {
            return Err(fault(format!("a document of the template is no object but {}", other.type_name())));
        }
        if template.interpolate == Interpolation::None {
            return Ok(documents.into_iter().map(Node::Fixed).collect());
        }
        let mut reader = Reader { text, path, seen: 0, compile };
        documents.iter().map(|document| reader.node(document)).collect()
    }

    /// The expressions in it.
    pub(super) fn expressions<'n>(&'n self, found: &mut Vec<&'n Expression>) {
        match self {
            Node::Fixed(_) => {}
            Node::Whole(expression) => found.push(expression),
            Node::Text(pieces) => found.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Value(expression) => Some(expression),
                Piece::Fixed(_) => None,
            })),
            Node::List(items) => {
                for item in items {
                    item.expressions(found);
                }
            }
            Node::Object(members) => {
                for (_, member) in members {
                    member.expressions(found);
                }
            }
        }
    }

    /// The value of a part; `value` evaluates an expression.
    pub(super) fn value<'v, E: From<String>>(
        &self,
        value: &mut dyn FnMut(&Expression) -> Result<Val<'v>, E>,
    ) -> Result<Value, E> {
        Ok(match self {
            Node::Fixed(fixed) => fixed.clone(),
            Node::Whole(expression) => json(&value(expression)?)?,
            Node::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Fixed(fixed) => text.push_str(fixed),
                        Piece::Value(expression) => match json(&value(expression)?)? {
                            Value::String(part) => text.push_str(&part),
                            part @ (Value::Array(_) | Value::Object(_) | Value::Null) => {
                                let what = part.type_name();
                                let said = expression.program.text();
                                return Err(E::from(format!("{said} gives {what}, which cannot stand within a text")));
                            }
                            part => text.push_str(&part.to_json()),
                        },
                    }
                }
                Value::from(text)
            }
            Node::List(items) => Value::array(items.iter().map(|item| item.value(value)).collect::<Result<_, E>>()?),
            Node::Object(members) => {
                let member = |(key, node): &(Str, Node)| Ok((key.clone(), node.value(value)?));
                Value::object(members.iter().map(member).collect::<Result<Map, E>>()?)
            }
        })
    }
}

fn json<E: From<String>>(value: &Val<'_>) -> Result<Value, E> {
    if let Val::Uint(n) = value
        && i64::try_from(*n).is_err()
    {
        return Err(E::from(format!("{n} is too large for a number of an object")));
    }
    value.to_json().ok_or_else(|| E::from(format!("a {} cannot stand in an object", value.type_name())))
}

impl Reader<'_, '_> {
    fn node(&mut self, value: &Value) -> Result<Node, Fault> {
        Ok(match value {
            Value::String(text) if text.contains("((") => self.text(text)?,
            Value::Array(items) => Node::List(items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?),
            Value::Object(members) => {
                let mut nodes = Vec::with_capacity(members.len());
                for (key, member) in members.iter() {
                    if key.contains("((") {
                        return Err(self.fault(key, format!("an expression cannot stand in a key: {key:?}")));
                    }
                    nodes.push((key.clone(), self.node(member)?));
                }
                Node::Object(nodes)
            }
            fixed => Node::Fixed(fixed.clone()),
        })
    }

    fn fault(&mut self, near: &str, message: String) -> Fault {
        Fault { path: self.path.clone(), offset: Some(self.place(near)), message }
    }

    /// Where a part of a scalar stands in the template: after the last one, if it is there.
    fn place(&mut self, part: &str) -> usize {
        let after = self.text.get(self.seen..).and_then(|rest| rest.find(part)).map(|at| self.seen + at);
        self.seen = after.or_else(|| self.text.find(part)).unwrap_or(0);
        self.seen
    }

    fn text(&mut self, text: &str) -> Result<Node, Fault> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut fixed = String::new();
        let mut rest = text;
        let mut is_whole = false;
        while let Some((before, after)) = rest.split_once("((") {
            if let Some(before) = before.strip_suffix('\\') {
                fixed.push_str(before);
                fixed.push_str("((");
                rest = after;
                continue;
            }
            let Some((inside, left)) = closed(after) else {
                return Err(self.fault(text, format!("`((` without `))` in {text:?}")));
            };
            fixed.push_str(before);
            is_whole = pieces.is_empty() && fixed.is_empty() && left.is_empty();
            if !fixed.is_empty() {
                pieces.push(Piece::Fixed(std::mem::take(&mut fixed).into()));
            }
            let expression = inside.trim();
            let offset = self.place(expression);
            pieces.extend((self.compile)(expression, offset).map(Piece::Value));
            rest = left;
        }
        fixed.push_str(rest);
        if pieces.is_empty() {
            return Ok(Node::Fixed(Value::from(fixed)));
        }
        if !fixed.is_empty() {
            pieces.push(Piece::Fixed(fixed.into()));
        }
        Ok(match pieces.pop() {
            Some(Piece::Value(expression)) if is_whole => Node::Whole(expression),
            last => {
                pieces.extend(last);
                Node::Text(pieces)
            }
        })
    }
}

/// What stands before the `))` that closes an expression, and what after it. Parentheses and quotes within the
/// expression count.
fn closed(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') if depth > 0 => depth -= 1,
            (None, ')') => return Some((text.get(..at)?, text.get(at..)?.strip_prefix("))")?)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_ends_where_its_parentheses_do() {
        for (text, found) in [
            (" a ))", Some((" a ", ""))),
            ("f(g(x)))) rest", Some(("f(g(x))", " rest"))),
            ("'))' + \"\\\"))\" )) ))", Some(("'))' + \"\\\"))\" ", " ))"))),
            (" a )", None),
            (" a ) )", None),
            ("(a)", None),
        ] {
            assert_eq!(closed(text), found, "{text}");
        }
    }
}
