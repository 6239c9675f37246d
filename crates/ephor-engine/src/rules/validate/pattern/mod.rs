//! `validate.pattern`: does a resource have the demanded shape?
//!
//! A pattern is compiled once ([`Pattern::compile`]) and matched against many resources. It must come without
//! variables and references: those are resolved before (see [`crate::rules::references`]). The rules of matching
//! are those of validate-mutate-autogen.md, section 1; the differences are in numbers, which read the same
//! everywhere (integers as integers), and in that skips are known by their kind and not by their message, which
//! quotes what users write.
//!
//! - `compile`: keys split from their anchors and put in order, scalars parsed;
//! - `walk`: the match itself, with `trail` (where) and `log` (what is written down about it);
//! - `scalar`, `expression`: comparison of single values;
//! - `wildcard_keys`: wildcards in the names of labels and annotations;
//! - `messages`: the texts.

mod compile;
mod expression;
mod log;
mod messages;
mod outcome;
mod scalar;
#[cfg(test)]
mod tests;
mod trail;
mod walk;
mod wildcard_keys;

pub use outcome::{Mismatch, Pattern};
pub use scalar::Scalars;
