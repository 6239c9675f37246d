//! Values that stand inside the text of an expression: `items[?name == '{{ x }}']`.
//!
//! The text of such an expression is parsed once, with a [`HOLE`] where each value belongs. A value fills its hole when
//! the expression is evaluated, and it fills that place only: it never becomes text of the expression, whatever quotes,
//! pipes or brackets are in it. A hole can stand for a member's name after a dot, for an index in brackets, and for
//! text or JSON between quotes.

use super::error::{CompileError, EvalError};
use super::json_text;
use crate::budget::{Budget, BudgetError};
use crate::value::{Map, Str, Value};

/// Stands in the text of an expression for a value that is known at evaluation only. Holes count from 0, in the order
/// in which they stand in the text.
pub const HOLE: char = '\u{f0000}';

/// Whether a text has holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holes {
    /// None: [`HOLE`] is a character like any other.
    None,
    /// Where a [`HOLE`] stands.
    Marked,
}

/// Encloses the number of a hole while JSON is parsed: first in a string, then where a value stands.
const IN_STRING: char = HOLE;
const AS_VALUE: char = '\u{f0001}';

/// Text with holes in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mixed(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(Str),
    Hole(usize),
}

/// JSON with holes in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MixedJson {
    Fixed(Value),
    Hole(usize),
    Text(Mixed),
    Array(Vec<MixedJson>),
    Object(Vec<(Mixed, MixedJson)>),
}

impl Mixed {
    /// The text, whose first hole is number `first`.
    pub(super) fn new(text: &str, first: usize) -> Self {
        let mut pieces = Vec::new();
        for (i, part) in text.split(HOLE).enumerate() {
            if i > 0 {
                pieces.push(Piece::Hole(first + i - 1));
            }
            if !part.is_empty() {
                pieces.push(Piece::Text(part.into()));
            }
        }
        Self(pieces)
    }

    /// The number of the hole, if there is nothing else.
    pub(super) fn lone(&self) -> Option<usize> {
        match self.0.as_slice() {
            [Piece::Hole(number)] => Some(*number),
            _ => None,
        }
    }

    pub(super) fn fill(&self, holes: &[Value], budget: &Budget) -> Result<Str, BudgetError> {
        if let [Piece::Hole(number)] = self.0.as_slice()
            && let Some(Value::String(text)) = holes.get(*number)
        {
            return Ok(text.clone());
        }
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Hole(number) => {
                    embed(holes.get(*number).unwrap_or(&Value::Null), budget, &mut out)?;
                }
            }
        }
        Ok(out.into())
    }
}

impl MixedJson {
    /// Parses JSON whose first hole is number `first`. Offsets of errors are into `text`.
    pub(super) fn parse(text: &str, first: usize) -> Result<Self, CompileError> {
        if text.contains(AS_VALUE) || text.contains("\\u") {
            return Err(CompileError::new(0, "JSON with variables in it cannot have `\\u` escapes"));
        }
        let mut marked = String::with_capacity(text.len() + 16);
        let (mut number, mut in_string, mut escaped) = (first, false, false);
        for c in text.chars() {
            match c {
                HOLE => {
                    let mark = if in_string { IN_STRING } else { AS_VALUE };
                    let quote = if in_string { "" } else { "\"" };
                    marked.extend([quote, &format!("{mark}{number}{mark}"), quote]);
                    number += 1;
                    escaped = false;
                    continue;
                }
                '"' if !escaped => in_string = !in_string,
                _ => {}
            }
            escaped = c == '\\' && !escaped;
            marked.push(c);
        }
        let value = json_text::parse(&marked).map_err(|e| CompileError::new(0, e.message))?;
        Ok(Self::read(&value))
    }

    fn read(value: &Value) -> Self {
        match value {
            Value::String(text) => match text.strip_prefix(AS_VALUE).and_then(|rest| rest.strip_suffix(AS_VALUE)) {
                Some(number) => number.parse().map_or(MixedJson::Fixed(Value::Null), MixedJson::Hole),
                None if text.contains(IN_STRING) => MixedJson::Text(marked_text(text)),
                None => MixedJson::Fixed(value.clone()),
            },
            Value::Array(items) => MixedJson::Array(items.iter().map(Self::read).collect()),
            Value::Object(map) => {
                MixedJson::Object(map.iter().map(|(key, member)| (marked_text(key), Self::read(member))).collect())
            }
            _ => MixedJson::Fixed(value.clone()),
        }
    }

    /// The value. What fills a hole outside of strings keeps its type; a text is read as JSON if it is any.
    pub(super) fn fill(&self, holes: &[Value], budget: &Budget) -> Result<Value, BudgetError> {
        Ok(match self {
            MixedJson::Fixed(value) => value.clone(),
            MixedJson::Hole(number) => match holes.get(*number) {
                Some(Value::String(text)) => {
                    budget.charge_tree(&Value::String(text.clone()))?;
                    budget.charge_bytes(text.len())?;
                    json_text::parse(text).unwrap_or_else(|_| Value::String(text.clone()))
                }
                other => other.cloned().unwrap_or_default(),
            },
            MixedJson::Text(text) => Value::String(text.fill(holes, budget)?),
            MixedJson::Array(items) => {
                Value::array(items.iter().map(|item| item.fill(holes, budget)).collect::<Result<Vec<_>, _>>()?)
            }
            MixedJson::Object(members) => {
                let mut map = Map::with_capacity(members.len());
                for (key, member) in members {
                    map.insert(key.fill(holes, budget)?, member.fill(holes, budget)?);
                }
                Value::object(map)
            }
        })
    }
}

/// A text of marked JSON.
fn marked_text(text: &str) -> Mixed {
    let mut pieces = Vec::new();
    for (i, part) in text.split([IN_STRING, AS_VALUE]).enumerate() {
        match part.parse() {
            Ok(number) if i % 2 == 1 => pieces.push(Piece::Hole(number)),
            _ if part.is_empty() => {}
            _ => pieces.push(Piece::Text(part.into())),
        }
    }
    Mixed(pieces)
}

/// The index that a value is, where one is wanted.
pub(super) fn index(value: Option<&Value>) -> Result<i64, EvalError> {
    let number = match value {
        Some(Value::Int(number)) => Some(*number),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| {
        let found = value.map_or("nothing", Value::type_name);
        EvalError::Other(format!("an index must be an integer, but the variable in brackets is a {found}"))
    })
}

/// Appends a value as part of a text: a string as it is, anything else as compact JSON, with the two-digit exponents
/// that Go's formatting (not its JSON) gives numbers.
pub fn embed(value: &Value, budget: &Budget, out: &mut String) -> Result<(), BudgetError> {
    let size = budget.charge_tree(value)?;
    budget.charge_bytes(size)?;
    match value {
        Value::String(text) => out.push_str(text),
        Value::Float(_) => {
            let json = value.to_json();
            match json.split_once("e-") {
                Some((digits, exponent)) if exponent.len() == 1 => out.extend([digits, "e-0", exponent]),
                _ => out.push_str(&json),
            }
        }
        _ => out.push_str(&value.to_json()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Value;
    use crate::jmespath::{Expression, FixedRuntime, HOLE, RootKind};

    /// The value, as JSON, of an expression in which `_` is a hole that `hole` fills, or what is wrong.
    fn filled(text: &str, root: RootKind, hole: &str) -> String {
        let data = Value::from_json(r#"{"o":{"k":"v","a.b":1},"l":[10,20],"secret":"TOP"}"#).unwrap();
        let hole = Value::from_json(hole).unwrap();
        let text = text.replace('_', &HOLE.to_string());
        let holes = vec![hole; text.matches(HOLE).count()];
        match Expression::compile_with_holes(&text, root) {
            Ok(expression) => match expression.fill(&holes, &data, &FixedRuntime::default()) {
                Ok(value) => value.to_json(),
                Err(error) => error.to_string(),
            },
            Err(error) => format!("{}: {}", error.offset, error.message),
        }
    }

    #[test]
    fn a_value_fills_its_place_and_no_other() {
        for (text, hole, want) in [
            ("o._", r#""k""#, r#""v""#),
            ("o._", r#""a.b""#, "1"),
            ("o.a_b", r#"".""#, "1"),
            ("o.\"a_b\"", r#"".""#, "1"),
            ("o._", r#""k || secret""#, "Unknown key \"k || secret\" in path"),
            ("o._ || 'none'", r#""k || secret""#, r#""none""#),
            ("o.[_]", r#""k""#, r#"["v"]"#),
            ("o.\"_\"", r#""k\" || secret""#, "Unknown key \"k\" || secret\" in path"),
            ("l[_]", "1", "20"),
            ("l[_]", r#""-1""#, "20"),
            ("l[_]", r#""*""#, "an index must be an integer, but the variable in brackets is a string"),
            ("'a_c_'", r#""' || secret || '""#, r#""a' || secret || 'c' || secret || '""#),
            ("'_'", "[1]", r#""[1]""#),
            ("`_`", "[1]", "[1]"),
            ("`_`", r#""7""#, "7"),
            ("`_`", r#""` || secret""#, r#""` || secret""#),
            ("`[_, \"_\"]`", r#""1, 2""#, r#"["1, 2","1, 2"]"#),
            ("`{\"_\": [_]}`", r#""k""#, r#"{"k":["k"]}"#),
            ("`\"\\\\_\"`", r#""\"""#, r#""\\\"""#),
        ] {
            assert_eq!(filled(text, RootKind::Names, hole), want, "{text} with {hole}");
        }
    }

    #[test]
    fn a_value_names_no_variable() {
        let refused = "the value of a variable cannot be an expression or the name of a variable";
        for (text, offset) in [("_", 0), ("\"_\"", 0), ("o == _", 5), ("length(_)", 7), ("@._", 2), ("_.k", 0)] {
            assert_eq!(filled(text, RootKind::Names, r#""secret""#), format!("{offset}: {refused}"), "{text}");
        }
        assert_eq!(filled("_", RootKind::Data, r#""secret""#), r#""TOP""#);
        assert_eq!(filled("_", RootKind::Data, r#""o.k""#), "Unknown key \"o.k\" in path");
    }

    #[test]
    fn a_text_without_holes_may_have_the_character() {
        let text = format!("'a{HOLE}'");
        let value = Expression::compile(&text).unwrap().evaluate(&Value::Null, &FixedRuntime::default()).unwrap();
        assert_eq!(value.as_str(), Some(format!("a{HOLE}").as_str()));
    }
}
