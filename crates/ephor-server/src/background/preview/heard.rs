//! What the controller says while it runs, and which Secrets it has read for that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::gate::AllowedFetch;
use ephor_engine::redact::Redactor;
use ephor_expr::Value;

use crate::background::writer::{Note, Observer};
use crate::facts::{Answers, ClusterFacts};

/// Notes, and the Secrets that were read. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Words>>);

#[derive(Default)]
struct Words {
    notes: Vec<Note>,
    secrets: Redactor,
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a Secret, or several.
    pub(super) fn learn(&self, secrets: &Value) {
        self.lock().secrets.learn(secrets);
    }

    /// Whoever listens to the controller.
    pub(super) fn observer(&self) -> Observer {
        let heard = self.clone();
        Arc::new(move |note| heard.lock().notes.push(note.clone()))
    }

    /// The answers of a cluster, listened to.
    pub(super) fn answers(&self, facts: ClusterFacts) -> Arc<dyn Answers> {
        Arc::new(Listening { facts, heard: self.clone() })
    }

    /// All notes.
    pub(super) fn notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock().notes)
    }

    /// All Secrets that were read.
    pub(super) fn secrets(&self) -> Redactor {
        self.lock().secrets.clone()
    }
}

struct Listening {
    facts: ClusterFacts,
    heard: Heard,
}

impl Answers for Listening {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        let fact = self.facts.answer(fetch);
        if let Fact::Found(found) = &fact
            && let Some(secrets) = self.secrets(fetch.fetch(), found)
        {
            self.heard.learn(&secrets);
        }
        fact
    }

    fn context_limit(&self) -> u64 {
        self.facts.context_limit()
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        self.facts.secrets(fetch, answer)
    }
}
