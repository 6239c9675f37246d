//! Expressions in scenarios: `(length(items))`, `($error != null)`.
//!
//! They are JMESPath in a dialect: `$name` is a binding, and what is missing is null. Bindings are put into the text as
//! literals, which are expressions everywhere a name is; functions that have other names here are renamed.

use std::collections::BTreeMap;

use ephor_expr::jmespath::{Expression, FixedRuntime};
use ephor_expr::{Map, Value};

/// Values by name, as `$name` in expressions.
#[derive(Clone, Debug, Default)]
pub struct Bindings(BTreeMap<String, Value>);

impl Bindings {
    /// Sets a value; an earlier one of the same name is hidden.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a value in place.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.trim_start_matches('$').to_owned(), value.into());
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// Why an expression has no value.
#[derive(Debug, thiserror::Error)]
#[error("`{text}`: {problem}")]
pub struct ExpressionError {
    text: String,
    problem: String,
}

/// The text between the parentheses of a string that is an expression.
pub fn inside(text: &str) -> Option<&str> {
    text.strip_prefix('(')?.strip_suffix(')').filter(|inner| !inner.is_empty())
}

/// The value of an expression over `value`; what is missing is null.
pub fn evaluate(text: &str, value: &Value, bindings: &Bindings) -> Result<Value, ExpressionError> {
    let fail = |problem: String| ExpressionError { text: text.to_owned(), problem };
    let plain = substitute(text, bindings).map_err(|name| fail(format!("there is no binding `${name}`")))?;
    let expression = Expression::compile(&plain).map_err(|error| fail(error.to_string()))?;
    match expression.evaluate(value, &FixedRuntime::new(jiff::Timestamp::now(), 0)) {
        Ok(value) => Ok(value),
        Err(error) if error.is_unknown_key() => Ok(Value::Null),
        Err(error) => Err(fail(error.to_string())),
    }
}

/// Functions of the dialect: their name, the name here, and what is added to their arguments.
const FUNCTIONS: [(&str, &str, &str); 2] =
    [("json_parse", "parse_json", ""), ("trim_space", "trim", r#", `" \t\r\n"`"#)];

/// Replaces names of bindings and functions outside of quotes; gives an unknown binding as the error.
fn substitute(text: &str, bindings: &Bindings) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut quote = None;
    // What to add before each parenthesis that is open closes.
    let mut closings = Vec::new();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                out.push(c);
                out.extend(rest.next());
            }
            (Some(end), _) => {
                out.push(c);
                quote = (c != end).then_some(end);
            }
            (None, '\'' | '"' | '`') => {
                out.push(c);
                quote = Some(c);
            }
            (None, '$') => {
                let mut name = String::new();
                while let Some(next) = rest.next_if(|next| next.is_alphanumeric() || *next == '_') {
                    name.push(next);
                }
                let Some(value) = bindings.get(&name) else { return Err(name) };
                out.push('`');
                out.push_str(&value.to_json().replace('`', "\\`"));
                out.push('`');
            }
            (None, '(') => {
                let renamed = FUNCTIONS.iter().find(|(name, ..)| out.ends_with(name));
                if let Some((name, here, _)) = renamed {
                    out.truncate(out.len() - name.len());
                    out.push_str(here);
                }
                closings.push(renamed.map_or("", |(_, _, added)| added));
                out.push(c);
            }
            (None, ')') => {
                out.push_str(closings.pop().unwrap_or_default());
                out.push(c);
            }
            (None, _) => out.push(c),
        }
    }
    Ok(out)
}

/// A document with the strings that are expressions replaced by their values. Keys stay as they are, and so do strings
/// in parentheses that are no expressions of this language: policies hold such texts of others.
pub fn render(document: &Value, bindings: &Bindings) -> Value {
    match document {
        Value::String(text) => inside(text)
            .and_then(|inner| evaluate(inner, &Value::Null, bindings).ok())
            .unwrap_or_else(|| document.clone()),
        Value::Array(items) => Value::array(items.iter().map(|item| render(item, bindings)).collect()),
        Value::Object(members) => {
            let mut rendered = Map::new();
            for (key, value) in members.iter() {
                rendered.insert(key.clone(), render(value, bindings));
            }
            Value::object(rendered)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_see_bindings_and_the_value() {
        let bindings = Bindings::default()
            .with("error", "no `way`, don't \"try\"")
            .with("nothing", Value::Null)
            .with("test", Value::from_json(r#"{"metadata":{"name":"a"}}"#).unwrap());
        let value = Value::from_json(r#"{"items":[{"type":"a","n":1},{"type":"b"}]}"#).unwrap();
        for (text, want) in [
            ("$error != null", "true"),
            ("$nothing != null", "false"),
            ("$error", r#""no `way`, don't \"try\"""#),
            ("contains($error, 'don\\'t')", "true"),
            ("contains($error, '$error')", "false"),
            ("$test.metadata.name", r#""a""#),
            ("items[?type == $test.metadata.name].n", "[1]"),
            ("length(items)", "2"),
            ("trim_space(join('', [' a ', ' (b) ']))", r#""a  (b)""#),
            ("json_parse('{\"a\": [1]}').a", "[1]"),
            ("missing", "null"),
            ("missing.deeper", "null"),
            ("missing == null", "true"),
        ] {
            let found = evaluate(text, &value, &bindings).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found.to_json(), want, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_is_named() {
        for (text, want) in [("$a", "`$a`: there is no binding `$a`"), ("nope(@)", "`nope(@)`: ")] {
            let error = evaluate(text, &Value::Null, &Bindings::default()).unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
    }

    #[test]
    fn documents_are_rendered_where_they_hold_expressions() {
        let document =
            Value::from_json(r#"{"(k)":"($n)","cel":"(has(object.spec.x) ? 1 : 2)","l":["($n)","n"]}"#).unwrap();
        let rendered = render(&document, &Bindings::default().with("n", "ns"));
        assert_eq!(rendered.to_json(), r#"{"(k)":"ns","cel":"(has(object.spec.x) ? 1 : 2)","l":["ns","n"]}"#);
    }
}
