//! Random text.
//!
//! `random()` has its own small reader of expressions, because the reference reads them in the strict dialect of
//! Go's package: no classes such as `\d`, no `(?…)`, no escaped letters, but stacked repetitions and anchors.
//!
//! - `generate`: the function and its generator.
//! - `pattern`: reading expressions.

mod generate;
mod pattern;

pub(super) use generate::FUNCTIONS;
pub use generate::random_text;

#[cfg(test)]
mod tests;
