//! The functions, a table entry each: name, parameters, code, documentation and examples in one place. Help
//! (`ephor jp function`), documentation and tests come from the entries.

mod collections;
mod encoding;
mod images;
mod network;
mod numbers;
mod random;
mod standard;
mod strings;
mod time;
mod x509;

pub use random::random_text;
pub(crate) use x509::decode as decode_x509;

use std::fmt;

use super::{EvalError, Runtime};
use crate::scalar::go_regex::{ConstantRegex, GoRegex, GoRegexError};
use crate::scalar::number::format_print_full;
use crate::value::{Str, Value};

/// The families, in the order of help.
const FAMILIES: [&[Function]; 10] = [
    standard::FUNCTIONS,
    strings::FUNCTIONS,
    numbers::FUNCTIONS,
    collections::FUNCTIONS,
    encoding::FUNCTIONS,
    time::FUNCTIONS,
    x509::FUNCTIONS,
    random::FUNCTIONS,
    network::FUNCTIONS,
    images::FUNCTIONS,
];

/// Every function, family by family.
pub fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().copied().flatten()
}

/// The function called `name`.
pub fn find(name: &str) -> Option<&'static Function> {
    all().find(|f| f.name == name)
}

/// A type that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A string.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An array of anything.
    Array,
    /// An array of strings.
    ArrayOfStrings,
    /// An array of numbers.
    ArrayOfNumbers,
    /// An object.
    Object,
    /// Anything, null included.
    Any,
    /// An expression (`&expr`).
    Expression,
}

impl Type {
    /// Whether `value` is of this type. No value is an expression.
    pub(super) fn admits(self, value: &Value) -> bool {
        match self {
            Type::Any => true,
            Type::String => matches!(value, Value::String(_)),
            Type::Number => is_number(value),
            Type::Boolean => matches!(value, Value::Bool(_)),
            Type::Array => matches!(value, Value::Array(_)),
            Type::ArrayOfStrings => value.as_array().is_some_and(|a| a.iter().all(|v| v.as_str().is_some())),
            Type::ArrayOfNumbers => value.as_array().is_some_and(|a| a.iter().all(is_number)),
            Type::Object => matches!(value, Value::Object(_)),
            Type::Expression => false,
        }
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_))
}

impl fmt::Display for Type {
    /// The reference's name of the type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::String => "string",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::Array => "array",
            Type::ArrayOfStrings => "array[string]",
            Type::ArrayOfNumbers => "array[number]",
            Type::Object => "object",
            Type::Any => "any",
            Type::Expression => "expref",
        })
    }
}

/// One parameter: the types of which the argument must have one.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// The types.
    pub types: &'static [Type],
    /// Whether it may be repeated (only the last).
    pub variadic: bool,
}

impl Param {
    /// A string.
    pub const STRING: Self = Self::of(&[Type::String]);
    /// A number.
    pub const NUMBER: Self = Self::of(&[Type::Number]);
    /// A string, or a number of which the text is meant.
    pub const TEXT: Self = Self::of(&[Type::String, Type::Number]);
    /// An array of anything.
    pub const ARRAY: Self = Self::of(&[Type::Array]);
    /// An object.
    pub const OBJECT: Self = Self::of(&[Type::Object]);
    /// Anything, null included.
    pub const ANY: Self = Self::of(&[Type::Any]);

    /// One argument that has one of `types`.
    pub const fn of(types: &'static [Type]) -> Self {
        Self { types, variadic: false }
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, kind) in self.types.iter().enumerate() {
            let separator = if i == 0 { "" } else { "|" };
            write!(f, "{separator}{kind}")?;
        }
        f.write_str(if self.variadic { "..." } else { "" })
    }
}

/// A function.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its parameters; arguments are checked against them before `call`.
    pub params: &'static [Param],
    /// What it returns, for help: `string`, `number` and so on.
    pub returns: &'static str,
    /// One or two sentences of help.
    pub doc: &'static str,
    /// Expressions and their results as JSON, for help and tests; a result starting with `error` means failure.
    pub examples: &'static [(&'static str, &'static str)],
    /// The code.
    pub call: fn(&Call<'_>) -> Result<Value, EvalError>,
}

impl Function {
    /// Name, parameter types and result: `join(string, array[string]) string`.
    pub fn signature(&self) -> String {
        let params: Vec<String> = self.params.iter().map(ToString::to_string).collect();
        format!("{}({}) {}", self.name, params.join(", "), self.returns)
    }

    /// The parameter that argument `i` is for.
    pub(super) fn param(&self, i: usize) -> Option<&Param> {
        self.params.get(i).or_else(|| self.params.last().filter(|param| param.variadic))
    }
}

/// One call: checked arguments and the world.
pub struct Call<'a> {
    /// The function's name, for errors.
    pub function: &'static str,
    /// The arguments, already of the declared types; null in the place of an expression.
    pub args: &'a [Value],
    /// Where the regular expression that is the first argument is kept, if that is the same for every call.
    pub regex: Option<&'a ConstantRegex>,
    /// Evaluates the expression that is argument `i` against a value, a missing member being null.
    pub apply: &'a dyn Fn(usize, &Value) -> Result<Value, EvalError>,
    /// Time, randomness, limits.
    pub runtime: &'a dyn Runtime,
}

impl Call<'_> {
    /// A failure of this function.
    pub fn error(&self, message: impl Into<String>) -> EvalError {
        EvalError::Function { function: self.function, message: message.into() }
    }

    /// Takes `bytes` from the budget, before they are built.
    pub fn charge(&self, bytes: usize) -> Result<(), EvalError> {
        Ok(self.runtime.budget().charge_bytes(bytes)?)
    }

    /// Takes steps from the budget for reading `bytes`, where that may be long and often.
    pub fn charge_reading(&self, bytes: usize) -> Result<(), EvalError> {
        Ok(self.runtime.budget().charge_reading(bytes)?)
    }

    /// Takes steps from the budget.
    pub fn charge_steps(&self, steps: u64) -> Result<(), EvalError> {
        Ok(self.runtime.budget().charge_steps(steps)?)
    }

    /// The text of argument `i`, declared as [`Param::TEXT`]: the string, or all digits of the number.
    pub fn text(&self, i: usize) -> Str {
        match self.args.get(i) {
            Some(Value::String(s)) => s.clone(),
            Some(number) => format_print_full(number.as_f64().unwrap_or_default()).into(),
            None => Str::default(),
        }
    }

    /// Calls `then` with the regular expression that is the first argument, or with what is wrong with it. One that
    /// is the same for every call is compiled once, one from data once in an evaluation.
    pub fn with_regex<T>(
        &self,
        then: impl FnOnce(Result<&GoRegex, &GoRegexError>) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        if let Some(constant) = self.regex {
            return constant.with(self.str(0), self.runtime.regexes(), self.runtime.budget(), then)?;
        }
        let compiled = self.runtime.regexes().get(self.str(0), self.runtime.budget())?;
        then(compiled.as_ref().as_ref())
    }

    /// The string argument `i` (declared as one; empty otherwise).
    pub fn str(&self, i: usize) -> &str {
        self.args.get(i).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number argument `i` (declared as one; 0 otherwise).
    pub fn number(&self, i: usize) -> f64 {
        self.args.get(i).and_then(Value::as_f64).unwrap_or_default()
    }
}
