//! The foreground half: admission requests in, verdicts and patches out.
//!
//! [`request`] decodes an `AdmissionReview`, [`handlers`] decide, [`answer`] writes the reply. Nothing there knows about
//! HTTP, so that the sandbox asks in process what the API server asks over the wire ([`http`]).
//!
//! - `judge`: evaluation, at once or with questions to the cluster. `lanes`: which policies a webhook is for.
//! - `mutate`, `validate`: the two webhooks. `audit`: what is judged after the reply. `update_requests`: work handed
//!   over to the background role.
//! - `filter`, [`roles`], `kinds`: what stands before any policy. [`redact`]: values of Secrets. [`observe`]: who is
//!   told.

pub mod answer;
mod audit;
mod filter;
pub mod handlers;
pub mod http;
mod judge;
mod kinds;
mod lanes;
mod messages;
mod mutate;
pub mod observe;
mod patch;
pub mod path;
pub mod redact;
pub mod request;
pub mod roles;
#[cfg(test)]
mod tests;
mod update_requests;
mod validate;

pub use answer::Answer;
pub use handlers::{HandlerOptions, Handlers, Parts};
pub use judge::{Effort, WouldBlock};
pub use path::{Lane, Webhook};
pub use request::{AdmissionRequest, AdmissionReview, Gvr, RequestError};
pub use update_requests::Waiting;
