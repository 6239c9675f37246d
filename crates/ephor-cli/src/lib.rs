//! The `ephor` command line as a library: what `main` runs, and what the project's conformance tests call.
//!
//! [`load`] reads files into policies, resources and values; [`host`] answers the
//! engine's questions; [`commands`] are the sub-commands; [`output`] has a renderer a format.

pub mod apply;
pub mod commands;
pub mod exit;
pub mod fix;
pub mod fresh;
pub mod host;
pub mod load;
pub mod locate;
pub mod output;
mod policy_change;
pub mod reports;
pub mod tally;
pub mod testing;
pub mod ui;
