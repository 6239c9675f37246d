//! The webhook configurations: which requests the API server sends to Ephor.
//!
//! [`plan`] says what they must be, purely from the policies that exist ([`Demand`]), the settings, the CA and the
//! kinds that are served. [`WebhookController`] is the leader's thread that makes it so and keeps it so. Nothing in
//! here looks at pods: what is registered follows from the policies alone, so that policies still hold while Ephor is
//! down.
//!
//! The number of entries depends on failure policies, not on policies; only a policy with match conditions
//! of its own gets one of its own, because the API server evaluates them. The engine's namespace is excluded from the
//! first write on, by a label that users cannot change, so that Ephor can always start.

pub mod break_glass;
mod cel;
mod controller;
mod cover;
mod demand;
mod fixed;
pub(crate) mod kinds;
mod names;
mod plan;
mod quota;
mod registered;
mod render;
mod settings;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use render::outside_of;

pub use controller::{WebhookController, WebhookSources};
pub use demand::Demand;
pub use names::{Names, paths};
pub(crate) use names::{failure_segment, fine_grained};
pub use plan::{Configuration, ConfigurationKind, Inputs, Ownership, Plan, plan};
pub use quota::OverQuota;
pub use registered::follow_registered;
pub use settings::{BootstrapRequests, Endpoint, FailureMode, RegisteredFrom, Serving, WebhookSettings};
