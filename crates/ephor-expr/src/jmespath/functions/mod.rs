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

use super::{EvalError, Runtime};
use crate::value::Value;

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

/// Every function that takes values, family by family.
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

/// A function that takes values (those that take expressions are part of the evaluator).
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

/// One call: checked arguments and the world.
pub struct Call<'a> {
    /// The function's name, for errors.
    pub function: &'static str,
    /// The arguments, already of the declared types.
    pub args: &'a [Value],
    /// Time, randomness, limits.
    pub runtime: &'a dyn Runtime,
}

impl Call<'_> {
    /// A failure of this function.
    pub fn error(&self, message: impl Into<String>) -> EvalError {
        EvalError::Function { function: self.function, message: message.into() }
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
