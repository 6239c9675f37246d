//! The policy engine: policies in, verdicts and changes out.
//!
//! The way of a policy: a document is decoded into [`policy`] types, checked ([`check`]), expanded by [`autogen`] and
//! compiled ([`compile`]) into programs that a [`select::PolicySet`] indexes. The way of a request: a
//! [`review::Review`] goes through the phases of an [`evaluation::Evaluation`], which asks for [`fetch::Fact`]s through
//! the [`gate`] and gives [`outcome::Outcome`]s.
//!
//! The crate is pure: no files, network, threads or clock. The same functions serve admission, background
//! controllers, scans and the command line.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

pub mod autogen;
pub mod cel;
pub mod check;
pub mod cleanup;
pub mod compile;
pub mod conditions;
pub mod diagnostic;
pub mod evaluation;
pub mod exceptions;
pub mod fetch;
pub mod gate;
mod go_text;
pub mod images;
pub mod matching;
pub mod outcome;
pub mod policy;
pub mod redact;
pub mod review;
pub mod rules;
pub mod schedule;
pub mod scope;
pub mod select;
pub mod trace;
