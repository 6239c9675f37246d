//! Scalars of patterns and what they accept (validate-mutate-autogen.md 1.2).

use ephor_expr::Value;
use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::scalar::number::parse_go_float;

use super::expression::Expression;
use crate::go_text::GoText;

/// How the scalars of a pattern are understood. The three places where patterns occur differ here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scalars {
    /// By their type, integers apart from floats: `validate.pattern`.
    #[default]
    Typed,
    /// By their type, all numbers being floats, so that `5` accepts `"5.0"`: `validate.anyPattern`.
    Floats,
    /// Booleans and numbers as the text they print as, so that `true` accepts `"true"`: conditions of strategic
    /// merge patches.
    Texts,
}

/// A scalar of a pattern.
#[derive(Debug, Clone)]
pub(super) struct Scalar {
    source: Value,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Expression),
}

impl Scalar {
    /// Compiles a scalar; a list or map, which is none, becomes its text.
    pub(super) fn new(source: &Value, scalars: Scalars) -> Self {
        let test = match (source, scalars) {
            (Value::Null, _) => Test::Null,
            (Value::String(s), _) => Test::Text(Expression::parse(s)),
            (Value::Bool(b), Scalars::Typed | Scalars::Floats) => Test::Bool(*b),
            (Value::Int(n), Scalars::Typed) => Test::Int(*n),
            (Value::Int(n), Scalars::Floats) => Test::Float(*n as f64),
            (Value::Float(n), Scalars::Typed | Scalars::Floats) => Test::Float(*n),
            (other, _) => {
                let text = GoText(other).to_string();
                let test = Test::Text(Expression::parse(&text));
                return Scalar { source: Value::from(text), test };
            }
        };
        Scalar { source: source.clone(), test }
    }

    /// As written in the pattern.
    pub(super) fn source(&self) -> &Value {
        &self.source
    }

    /// Whether `found` fits; of a list, whether every item fits. The work is charged to `budget`.
    pub(super) fn accepts(&self, found: &Value, budget: &Budget) -> Result<bool, BudgetError> {
        match found {
            Value::Array(items) => {
                for item in items.iter() {
                    if !self.accepts_one(item, budget)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            one => self.accepts_one(one, budget),
        }
    }

    fn accepts_one(&self, found: &Value, budget: &Budget) -> Result<bool, BudgetError> {
        budget.charge_reading(found.as_str().map_or(0, str::len))?;
        Ok(match &self.test {
            Test::Null => is_nothing(found),
            Test::Bool(wanted) => found.as_bool() == Some(*wanted),
            Test::Int(wanted) => match found {
                Value::String(s) => s.parse() == Ok(*wanted),
                number => number.as_i64() == Some(*wanted),
            },
            Test::Float(wanted) => match found {
                Value::String(s) => parse_go_float(s) == Some(*wanted),
                number => number.as_f64() == Some(*wanted),
            },
            // A text that equals the whole pattern fits, whatever operators are in it.
            Test::Text(expression) => self.source == *found || expression.holds(found, budget)?,
        })
    }
}

/// What a null in a pattern accepts.
fn is_nothing(found: &Value) -> bool {
    match found {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(n) => *n == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::Array(_) | Value::Object(_) => false,
    }
}
