//! Arithmetic on numbers, quantities and durations.
//!
//! A string is a quantity if it can be one, else a duration: `5m` is five thousandths here, not minutes. Where the
//! reference goes on with an overflowed number, these functions fail.

use super::{Call, Function, Param};
use crate::jmespath::EvalError;
use crate::scalar::duration::Duration;
use crate::scalar::quantity::Quantity;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "add",
        params: &[Param::ANY, Param::ANY],
        returns: "number or string",
        doc: "The sum of two numbers, quantities or durations. A sum of quantities is written like the first.",
        examples: &[
            ("add(`1`,`2`)", "3"),
            ("add('1Ki','24')", "\"1048\""),
            ("add('1h','1s')", "\"1h0m1s\""),
            ("add('1h','30m')", "error: JMESPath function 'add': Types mismatch"),
        ],
        call: |call| with_two(call, add),
    },
    Function {
        name: "subtract",
        params: &[Param::ANY, Param::ANY],
        returns: "number or string",
        doc: "The first number, quantity or duration less the second.",
        examples: &[
            ("subtract(`3`,`2`)", "1"),
            ("subtract('1Ki','24')", "\"1k\""),
            ("subtract('1h','90s')", "\"58m30s\""),
        ],
        call: |call| with_two(call, subtract),
    },
    Function {
        name: "sum",
        params: &[Param::ARRAY],
        returns: "number or string",
        doc: "All elements added up; a single one is given back as it is.",
        examples: &[
            ("sum(`[1,2,3]`)", "6"),
            ("sum(['1Gi','1Gi'])", "\"2Gi\""),
            ("sum(`[]`)", "error: JMESPath function 'sum': at least one element in the array is required"),
        ],
        call: sum,
    },
    Function {
        name: "multiply",
        params: &[Param::ANY, Param::ANY],
        returns: "number or string",
        doc: "The product of two numbers, or of a number and a quantity or duration.",
        examples: &[
            ("multiply(`3`,`4`)", "12"),
            ("multiply('3Ki',`2`)", "\"6Ki\""),
            ("multiply(`0.5`,'1h')", "\"30m0s\""),
        ],
        call: |call| with_two(call, multiply),
    },
    Function {
        name: "divide",
        params: &[Param::ANY, Param::ANY],
        returns: "number or string",
        doc: "The quotient: a number if both are of one kind, a quantity or duration if the second is a number. A \
              quantity is cut off at the finer decimal place of the two as written.",
        examples: &[
            ("divide('6h','4h')", "1.5"),
            ("divide('1Gi','1Mi')", "1024"),
            ("divide('10',`4`)", "\"2\""),
            ("divide('1500m',`2`)", "\"750m\""),
            ("divide('10s',`3`)", "\"3.333333333s\""),
            ("divide(`1`,`0`)", "error: JMESPath function 'divide': Zero divisor passed"),
        ],
        call: |call| with_two(call, divide),
    },
    Function {
        name: "modulo",
        params: &[Param::ANY, Param::ANY],
        returns: "number or string",
        doc: "The remainder of two whole numbers, whole quantities or durations, with the sign of the first.",
        examples: &[
            ("modulo(`-7`,`3`)", "-1"),
            ("modulo('13s','4s')", "\"1s\""),
            ("modulo('1.5','1')", "error: JMESPath function 'modulo': Non-integer argument(s) passed for modulo"),
        ],
        call: |call| with_two(call, modulo),
    },
    Function {
        name: "round",
        params: &[Param::NUMBER, Param::NUMBER],
        returns: "number",
        doc: "The number rounded to so many decimal places, halves away from zero.",
        examples: &[
            ("round(`2.345`,`1`)", "2.3"),
            ("round(`-2.5`,`0`)", "-3"),
            ("round(`1`,`0.5`)", "error: JMESPath function 'round': Non-integer argument(s) passed for round off"),
        ],
        call: round,
    },
];

/// What can be calculated with.
enum Operand {
    Number(f64),
    Quantity(Quantity),
    Duration(Duration),
}

impl Operand {
    fn of(call: &Call<'_>, value: &Value) -> Result<Self, EvalError> {
        let operand = match value {
            Value::String(text) => Quantity::parse(text)
                .map(Operand::Quantity)
                .or_else(|_| Duration::parse(text).map(Operand::Duration))
                .ok(),
            _ => value.as_f64().map(Operand::Number),
        };
        operand.ok_or_else(|| call.error("invalid operand"))
    }
}

fn with_two(
    call: &Call<'_>,
    calculate: fn(&Call<'_>, Operand, Operand) -> Result<Value, EvalError>,
) -> Result<Value, EvalError> {
    match call.args {
        [a, b] => calculate(call, Operand::of(call, a)?, Operand::of(call, b)?),
        _ => Err(mismatch(call)),
    }
}

fn mismatch(call: &Call<'_>) -> EvalError {
    call.error("Types mismatch")
}

fn zero_divisor(call: &Call<'_>) -> EvalError {
    call.error("Zero divisor passed")
}

/// A finite number as a value.
fn number(call: &Call<'_>, n: f64) -> Result<Value, EvalError> {
    if n.is_finite() { Ok(Value::number(n)) } else { Err(call.error("the result is out of range")) }
}

/// A quantity or duration as text, if it could be calculated.
fn text(call: &Call<'_>, result: Option<impl ToString>) -> Result<Value, EvalError> {
    result.map(|r| r.to_string().into()).ok_or_else(|| call.error("the result is out of range"))
}

/// So many nanoseconds, a fraction cut off; `None` beyond the range of a duration.
fn nanoseconds(n: f64) -> Option<Duration> {
    (n.abs() < -(i64::MIN as f64)).then_some(Duration(n as i64))
}

fn add(call: &Call<'_>, a: Operand, b: Operand) -> Result<Value, EvalError> {
    match (a, b) {
        (Operand::Number(a), Operand::Number(b)) => number(call, a + b),
        (Operand::Quantity(a), Operand::Quantity(b)) => text(call, a.add(&b)),
        (Operand::Duration(a), Operand::Duration(b)) => text(call, a.0.checked_add(b.0).map(Duration)),
        _ => Err(mismatch(call)),
    }
}

fn subtract(call: &Call<'_>, a: Operand, b: Operand) -> Result<Value, EvalError> {
    match (a, b) {
        (Operand::Number(a), Operand::Number(b)) => number(call, a - b),
        (Operand::Quantity(a), Operand::Quantity(b)) => text(call, a.sub(&b)),
        (Operand::Duration(a), Operand::Duration(b)) => text(call, a.0.checked_sub(b.0).map(Duration)),
        _ => Err(mismatch(call)),
    }
}

fn sum(call: &Call<'_>) -> Result<Value, EvalError> {
    let Some((first, rest)) = call.args.first().and_then(Value::as_array).and_then(<[Value]>::split_first) else {
        return Err(call.error("at least one element in the array is required"));
    };
    rest.iter().try_fold(first.clone(), |sum, item| add(call, Operand::of(call, &sum)?, Operand::of(call, item)?))
}

fn multiply(call: &Call<'_>, a: Operand, b: Operand) -> Result<Value, EvalError> {
    match (a, b) {
        (Operand::Number(a), Operand::Number(b)) => number(call, a * b),
        (Operand::Quantity(q), Operand::Number(n)) | (Operand::Number(n), Operand::Quantity(q)) => {
            text(call, q.mul_f64(n))
        }
        (Operand::Duration(d), Operand::Number(n)) | (Operand::Number(n), Operand::Duration(d)) => {
            // Through seconds, as in the reference: `1.5s` times 9.295 is a nanosecond short.
            text(call, nanoseconds(d.as_secs_f64() * n * 1e9))
        }
        _ => Err(mismatch(call)),
    }
}

fn divide(call: &Call<'_>, a: Operand, b: Operand) -> Result<Value, EvalError> {
    match (a, b) {
        (Operand::Quantity(a), Operand::Quantity(b)) => {
            let ratio = a.ratio(&b).ok_or_else(|| zero_divisor(call))?;
            number(call, ratio)
        }
        (_, Operand::Number(0.0)) | (Operand::Duration(_), Operand::Duration(Duration(0))) => Err(zero_divisor(call)),
        (Operand::Duration(a), Operand::Duration(b)) => number(call, a.as_secs_f64() / b.as_secs_f64()),
        (Operand::Number(a), Operand::Number(b)) => number(call, a / b),
        (Operand::Quantity(q), Operand::Number(n)) => text(call, q.div_f64(n)),
        (Operand::Duration(d), Operand::Number(n)) => text(call, nanoseconds(d.as_secs_f64() / n * 1e9)),
        _ => Err(mismatch(call)),
    }
}

fn modulo(call: &Call<'_>, a: Operand, b: Operand) -> Result<Value, EvalError> {
    match (a, b) {
        (Operand::Number(a), Operand::Number(b)) => {
            let not_whole = || call.error("Non-integer argument(s) passed for modulo");
            let a = Value::Float(a).as_i64().ok_or_else(not_whole)?;
            let b = Value::Float(b).as_i64().ok_or_else(not_whole)?;
            if b == 0 {
                return Err(zero_divisor(call));
            }
            Ok(Value::Int(a.wrapping_rem(b)))
        }
        (Operand::Quantity(a), Operand::Quantity(b)) => {
            let rest = a.modulo(&b).map_err(|e| call.error(e.to_string()))?;
            Ok(rest.to_string().into())
        }
        (Operand::Duration(_), Operand::Duration(Duration(0))) => Err(zero_divisor(call)),
        (Operand::Duration(a), Operand::Duration(b)) => Ok(Duration(a.0.wrapping_rem(b.0)).to_string().into()),
        _ => Err(mismatch(call)),
    }
}

fn round(call: &Call<'_>) -> Result<Value, EvalError> {
    let (n, places) = (call.number(0), call.number(1));
    if Value::Float(places).as_i64().is_none() {
        return Err(call.error("Non-integer argument(s) passed for round off"));
    }
    if places < 0.0 {
        return Err(call.error(format!("argument #2 is out of bounds ({places})")));
    }
    let unit = 10f64.powf(places);
    number(call, (n * unit).round() / unit)
}
