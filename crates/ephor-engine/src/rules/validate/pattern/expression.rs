//! String patterns: `a | b & !c`, `>=5`, `1Mi-1Gi` (validate-mutate-autogen.md 1.2).

use std::cmp::Ordering;

use ephor_expr::Value;
use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::scalar::compare::{Measure, MeasureRange};
use ephor_expr::scalar::duration::Duration;
use ephor_expr::scalar::number::{format_e, format_f6};
use ephor_expr::scalar::quantity::{Format, Quantity};
use ephor_expr::scalar::range::parse_range;
use ephor_expr::scalar::wildcard::Wildcard;
use smol_str::format_smolstr;

/// A parsed string pattern: some alternative must hold, and of an alternative every comparison.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Debug, Clone)]
enum Comparison {
    One(Operator, Operand),
    /// `a-b` or `a!-b`.
    Range(MeasureRange),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The right side of a comparison, read in every way it can be read.
#[derive(Debug, Clone)]
struct Operand {
    measure: Measure,
    text: Wildcard,
}

impl Expression {
    /// Every text is an expression.
    pub(super) fn parse(text: &str) -> Self {
        let alternative = |part: &str| part.split('&').map(|one| Comparison::parse(one.trim())).collect();
        Expression { alternatives: text.split('|').map(alternative).collect() }
    }

    /// Whether the scalar `found` satisfies it; lists and maps never do. Each comparison is charged to `budget`.
    pub(super) fn holds(&self, found: &Value, budget: &Budget) -> Result<bool, BudgetError> {
        match found {
            Value::Array(_) | Value::Object(_) => Ok(false),
            // An integral float reads like an integer.
            Value::Float(n) => self.holds_for(&Value::number(*n), budget),
            scalar => self.holds_for(scalar, budget),
        }
    }

    fn holds_for(&self, found: &Value, budget: &Budget) -> Result<bool, BudgetError> {
        'alternatives: for all in &self.alternatives {
            for comparison in all {
                if !comparison.holds(found, budget)? {
                    continue 'alternatives;
                }
            }
            return Ok(true);
        }
        Ok(false)
    }
}

impl Comparison {
    fn parse(text: &str) -> Self {
        let one = |operator, operand: &str| Comparison::One(operator, Operand::parse(operand.trim()));
        if text.len() < 2 {
            return one(Operator::Equal, text);
        }
        for (sign, operator) in [
            (">=", Operator::GreaterOrEqual),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            ("<", Operator::Less),
            ("!", Operator::NotEqual),
        ] {
            if let Some(operand) = text.strip_prefix(sign) {
                return one(operator, operand);
            }
        }
        match parse_range(text) {
            Some(range) => Comparison::Range(MeasureRange::new(range)),
            None => one(Operator::Equal, text),
        }
    }

    fn holds(&self, found: &Value, budget: &Budget) -> Result<bool, BudgetError> {
        match self {
            Comparison::One(operator, operand) => operand.compare(*operator, found, budget),
            Comparison::Range(range) => {
                budget.charge_reading(found.as_str().map_or(0, str::len))?;
                Ok(range.holds(&measure(found)))
            }
        }
    }
}

impl Operator {
    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Operator::Equal => ordering.is_eq(),
            Operator::NotEqual => ordering.is_ne(),
            Operator::Less => ordering.is_lt(),
            Operator::LessOrEqual => ordering.is_le(),
            Operator::Greater => ordering.is_gt(),
            Operator::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl Operand {
    fn parse(text: &str) -> Self {
        Operand { measure: Measure::parse(text), text: Wildcard::new(text) }
    }

    /// As durations if both sides are, else as quantities if both are, else as texts, which know no order.
    fn compare(&self, operator: Operator, found: &Value, budget: &Budget) -> Result<bool, BudgetError> {
        if !self.measure.is_none()
            && let Some(order) = measure(found).compare(&self.measure)
        {
            return Ok(operator.accepts(order));
        }
        let equal = match operator {
            Operator::Equal => true,
            Operator::NotEqual => false,
            _ => return Ok(false),
        };
        let matches = match found {
            Value::String(s) => self.text.matches_within(s, budget)?,
            Value::Bool(b) => self.text.matches_within(if *b { "true" } else { "false" }, budget)?,
            Value::Int(n) => self.text.matches_within(&format_smolstr!("{n}"), budget)?,
            Value::Float(n) => self.text.matches_within(&format_e(*n), budget)?,
            // Nothing is neither equal nor unequal to a text.
            Value::Null | Value::Array(_) | Value::Object(_) => return Ok(false),
        };
        Ok(matches == equal)
    }
}

/// What the value measures: null counts as `0`, floats are cut to six decimals, of numbers only zero is a duration.
fn measure(found: &Value) -> Measure {
    match found {
        Value::Null => measure(&Value::Int(0)),
        Value::Int(n) => Measure {
            duration: (*n == 0).then_some(Duration::ZERO),
            quantity: Some(Quantity::from_i64(*n, Format::DecimalSi)),
        },
        Value::Float(n) => Measure { duration: None, quantity: Quantity::parse(&format_f6(*n)).ok() },
        Value::String(s) => Measure::parse(s),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Measure::default(),
    }
}
