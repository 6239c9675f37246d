//! JMESPath as `kyverno.io` policies mean it.
//!
//! A dialect of its own: a missing member of an object is an error that most operators swallow, there are about
//! forty extra functions, and a few constructs parse differently from the public specification.
//! An [`Expression`] is compiled once; evaluation reads shared values and returns shared values.
//!
//! The way of a text: tokens, syntax tree, compiled nodes, value. Compiling resolves functions and fuses fields
//! into paths; evaluating never looks up a name other than in data.

mod ast;
mod compare;
mod error;
mod evaluate;
mod expression;
mod flow;
pub mod functions;
mod go_text;
mod hole;
pub(crate) mod json_text;
mod lower;
mod node;
mod parser;
mod runtime;
mod slice;
mod token;

pub use error::{CompileError, EvalError};
pub use expression::{Expression, RootKind};
pub use flow::{Flow, Part};
pub use hole::{HOLE, embed};
pub use lower::RootIdentifier;
pub use runtime::{FixedRuntime, Root, Runtime};

#[cfg(test)]
mod tests;
