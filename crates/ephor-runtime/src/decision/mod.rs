//! Admission requests, answers, and observers of decisions.
//!
//! [`request`] decodes an `AdmissionReview`, [`answer`] writes the reply, [`path`] says which policies a webhook is
//! for, [`proof`] whether a caller is the API server. Handlers tell an [`observe::Observer`] what they decided; Events
//! and metrics are observers.

pub mod answer;
pub mod observe;
pub mod path;
pub mod proof;
pub mod request;

pub use answer::Answer;
pub use path::{Webhook, WebhookScope};
pub use proof::{PathToken, PathTokens, Sender};
pub use request::{AdmissionRequest, AdmissionReview, Gvr, RequestError};
