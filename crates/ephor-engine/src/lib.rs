//! The policy engine.

pub mod conditions;
pub mod images;
pub mod matching;
pub mod policy;
pub mod rules;

mod go_text;
