//! The `ephor` command line as a library: what `main` runs, and what the project's conformance tests call.
//!
//! [`load`] reads files into policies, resources and values; [`drive`] takes reviews through the engine and answers
//! its questions from a [`host::Host`]; [`commands`] are the sub-commands; [`output`] has a renderer a format.

pub mod apply;
pub mod commands;
pub mod drive;
pub mod exit;
pub mod fix;
pub mod fresh;
pub mod host;
pub mod load;
pub mod locate;
pub mod output;
pub mod testing;
pub mod ui;
