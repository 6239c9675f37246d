//! The interface of observers of decisions: events, metrics, reports.

use std::sync::Arc;
use std::time::Duration;

use ephor_engine::compile::Program;
use ephor_engine::matching::Gvk;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_expr::Value;

use super::answer::Answer;
use super::path::Webhook;
use super::request::AdmissionRequest;
use crate::explain::ExplainedRule;
use crate::policies::Snapshot;

/// What the rules of one phase said about one request.
#[derive(Debug, Clone, Copy)]
pub struct Decided<'d> {
    /// The phase.
    pub phase: Phase,
    /// The request.
    pub request: &'d AdmissionRequest,
    /// The kind of the object in the URL.
    pub gvk: &'d Gvk,
    /// The object as it was judged; after mutation in the mutate phase.
    pub object: &'d Value,
    /// All policies at that moment.
    pub snapshot: &'d Snapshot,
    /// The programs that took part; `policy` of an outcome is an index into them.
    pub programs: &'d [Arc<Program>],
    /// The outcomes, without values of Secrets.
    pub outcomes: &'d [Outcome],
    /// How they came about, likewise; nothing unless the handlers are asked to explain.
    pub explained: &'d [ExplainedRule],
    /// Whether the request was denied because of them.
    pub blocked: bool,
    /// How long the phase took.
    pub took: Duration,
}

/// An observer of decisions. It is called in the thread that answers, so it must be quick and must not block.
pub trait Observer: Send + Sync {
    /// Rules were evaluated. Called once for each phase with outcomes, also for audit after the reply.
    fn decided(&self, decided: &Decided<'_>);

    /// A request was answered; `answer` is what the API server sees.
    fn answered(&self, request: &AdmissionRequest, webhook: Webhook, answer: &Answer, took: Duration);

    /// A shadow answered: the API server saw a plain yes instead of `answer`.
    fn shadowed(&self, request: &AdmissionRequest, webhook: Webhook, answer: &Answer, took: Duration) {
        self.answered(request, webhook, answer, took);
    }

    /// Something was given up, because there was too much of it or it panicked.
    fn dropped(&self, what: Dropped) {
        let _ = what;
    }
}

/// All of them, one after the other.
impl Observer for Vec<Arc<dyn Observer>> {
    fn decided(&self, decided: &Decided<'_>) {
        for observer in self {
            observer.decided(decided);
        }
    }

    fn answered(&self, request: &AdmissionRequest, webhook: Webhook, answer: &Answer, took: Duration) {
        for observer in self {
            observer.answered(request, webhook, answer, took);
        }
    }

    fn shadowed(&self, request: &AdmissionRequest, webhook: Webhook, answer: &Answer, took: Duration) {
        for observer in self {
            observer.shadowed(request, webhook, answer, took);
        }
    }

    fn dropped(&self, what: Dropped) {
        for observer in self {
            observer.dropped(what);
        }
    }
}

/// What was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// The audit of a request.
    Audit,
    /// An `UpdateRequest` that watches make good.
    UpdateRequest,
    /// A request beyond the limits of the server.
    Request,
    /// The work of a review whose sender is not known to be the API server.
    Unproven,
}

/// An observer who does not look.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn decided(&self, _: &Decided<'_>) {}
    fn answered(&self, _: &AdmissionRequest, _: Webhook, _: &Answer, _: Duration) {}
}
