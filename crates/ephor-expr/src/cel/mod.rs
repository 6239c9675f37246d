//! CEL, the Common Expression Language, as Kubernetes means it.
//!
//! An [`Environment`] says what an expression may use: variables, types with fields, libraries of functions and
//! macros. A [`Program`] is an expression compiled in one: parsed, checked, lowered. Evaluation reads borrowed values
//! through a [`Scope`], is bounded by a budget of steps and bytes, counts cost as Kubernetes does, and asks a
//! [`Host`] for what only the world outside knows.
//!
//! The way of a text: tokens, syntax tree with macros expanded, types and overloads, compiled nodes, value. Texts of
//! errors, static types, constant folding and costs are those of the reference, `cel-go`.

#![expect(clippy::cast_possible_wrap, reason = "lengths and costs are far below 2^63")]

mod ast;
mod check;
mod environment;
mod error;
mod estimate;
mod evaluate;
mod json;
pub mod library;
mod literal;
mod lower;
mod macros;
mod node;
mod parser;
pub mod profile;
mod program;
pub mod schema;
mod token;
mod types;
mod value;

pub use environment::{Edition, Environment, Literals, ObjectType, Options};
pub use error::{CompileError, EvalError, Issue};
pub use estimate::Sizes;
pub use evaluate::Watch;
pub use library::{Host, NoHost, Question};
pub use program::{MEMBERS, Program, Run, Scope, Usage};
pub use types::Type;
pub use value::{Dict, Key, List, Object, Opaque, Text, Val};

#[cfg(test)]
mod tests;
