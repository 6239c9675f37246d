//! Kubernetes Events about what policies did.
//!
//! [`notes`] says what is told in which case, as [`Event`]s in upstream's words. A [`Recorder`] takes them without ever
//! waiting: its queue is bounded, what does not fit is dropped and counted, and repetitions become a series of the
//! event that is there already. Values that come from Secrets have to be out of a message before it comes here.

mod event;
pub mod notes;
mod object;
mod observe;
mod queue;
mod recorder;

pub use event::{Action, Component, Event, Reason, Reference};
pub use recorder::{EventSettings, Recorder, SuccessEvents};
