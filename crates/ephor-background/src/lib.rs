//! Generate and mutate-existing rules at work in a cluster: objects made from policies, kept in step through every
//! change, crash and race.
//!
//! Two things bring work. What exists is watched, and what a synchronizing rule wants is worked out from that again and
//! again ([`reconcile`]), so that nothing missed stays missed. What happened only once is in an `UpdateRequest`
//! ([`requests`]), which admission writes. Both end in the same place: the live trigger, judged by the engine, planned
//! by [`plan`], written by the [`writer`].
//!
//! - [`rules`]: what of a policy matters here; [`rule_text`]: what its document says of it. [`index`]: what is known of
//!   the cluster. [`queue`]: what is to be done.
//! - [`state`]: watch events and policies in, work out. [`trigger`]: the object that a rule is about, as a review.
//! - [`existing`]: triggers that were there before their policy. [`namespace_labels`]: those whose namespace has other
//!   labels now. [`rule_activation`]: since when a rule is what it is. [`mutate`]: patches of existing objects.
//! - `request_lifecycle`: how requests end.
//! - [`write_limit`]: objects that are written too often.
//! - [`preview`]: what it would do, without doing it.
//! - [`results`]: what it leaves for reports.
//! - [`conditions`]: what policies say about it. [`health`], [`notifications`]: what metrics, probes and
//!   Events say about it.
//! - [`controller`]: one step. [`serve`]: threads around it.
//!
//! Everything but [`serve`] runs without threads and clocks, so that tests decide what happens when.

pub mod conditions;
pub mod controller;
pub mod existing;
pub mod health;
pub mod index;
pub mod mutate;
pub mod namespace_labels;
pub mod notifications;
pub mod plan;
pub mod preview;
pub mod queue;
pub mod reconcile;
mod request_lifecycle;
pub mod requests;
pub mod results;
pub mod rights;
pub mod rule_activation;
pub mod rule_text;
pub mod rules;
pub mod serve;
pub mod state;
#[cfg(test)]
mod tests;
pub mod trigger;
pub mod write_limit;
pub mod writer;

pub use controller::{Controller, Step};
pub use state::Watch;
