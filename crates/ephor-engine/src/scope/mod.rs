//! Names a rule can see, and texts that use them.
//!
//! A [`Template`] is a value with `{{ }}` in it, compiled once; a [`Scope`] is what the names stand for during one
//! rule's evaluation: the request, the loop's element, context entries (loaded when first mentioned) and values given
//! by the user. Rules never share a scope.

mod compile;
mod context;
mod data;
mod entry;
mod error;
mod load;
mod names;
mod patch_text;
mod pieces;
mod resolve;
mod scan;
mod template;
mod varying;
mod world;

pub(crate) use compile::expression_diagnostic;
pub use compile::{AtBase, Compiler};
pub use context::{Checkpoint, Scope};
pub use entry::Entry;
pub use error::{Cause, ScopeError};
pub(crate) use resolve::Shape;
pub use scan::{Found, enclosing, variables};
pub use template::{Expr, Template, Variable};
pub use varying::{Varying, varying};
pub use world::{Answer, Seed, World};
