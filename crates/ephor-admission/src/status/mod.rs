//! Status of policies: whether they hold, and what they were expanded to.
//!
//! [`Readiness`] says whether the API server sends what a policy must see; [`describe`] writes the status that follows,
//! purely. [`StatusController`] is the leader's thread that writes what differs, several policies at a time.

mod cel;
mod controller;
mod document;
mod readiness;
mod reporting;
#[cfg(test)]
mod tests;

pub use controller::StatusController;
pub use document::{Description, describe};
pub use readiness::{Readiness, readiness};
