//! Handlers of the resource webhooks: requests in, verdicts and patches out.
//!
//! [`handlers`] take an `AdmissionRequest` and give an `Answer`. Nothing here knows about HTTP, so that the sandbox
//! asks in process what the API server asks over the wire.
//!
//! - `judge`: evaluation, at once or with questions to the cluster. `policy_sets`: which policies a webhook is for.
//! - `registered`: which webhooks the sandbox calls. `mutate`, `validate`: the two webhooks. `audit`: what is judged
//!   after the reply. `update_requests`: work for the background role.
//! - [`results`]: what only a request knows, for the reports role.
//! - `filter`, [`roles`], `kinds`: what is looked at before any policy.

mod audit;
mod filter;
pub mod handlers;
mod judge;
mod kinds;
mod messages;
mod mutate;
mod patch;
mod policy_sets;
mod registered;
pub mod results;
pub mod roles;
#[cfg(test)]
pub(crate) mod tests;
mod update_requests;
mod validate;

pub use handlers::{HandlerOptions, Handlers, Parts};
pub use judge::{Effort, WouldBlock};
pub use registered::Called;
pub use update_requests::Waiting;
