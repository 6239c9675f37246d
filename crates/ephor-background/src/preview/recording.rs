//! Records the notifications of the controller during a plan, and the Secrets it read.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard};

use ephor_engine::fetch::{Fact, Fetch, Merger};
use ephor_engine::gate::AllowedFetch;
use ephor_engine::redact::Redactor;
use ephor_expr::{Str, Value};
use ephor_runtime::facts::{Answers, ClusterFacts};
use ephor_runtime::poison::PoisonMutex;

use crate::writer::{Note, Observer};

/// Notifications and the Secrets that were read. Clones share one state.
#[derive(Clone, Default)]
pub(super) struct Recording(Arc<PoisonMutex<Words>>);

#[derive(Default)]
struct Words {
    notes: Vec<Note>,
    secrets: Redactor,
    /// Namespaces and names of Secrets that rules asked for, whether or not they exist. The controller forgets them
    /// when it judges again, but the changes that were made of them are still part of the plan.
    asked: BTreeSet<(Str, Str)>,
}

impl Recording {
    fn lock(&self) -> MutexGuard<'_, Words> {
        self.0.lock()
    }

    /// Takes in a Secret, or several.
    pub(super) fn learn(&self, secrets: &Value) {
        self.lock().secrets.learn(secrets);
    }

    /// The observer to pass to the controller.
    pub(super) fn observer(&self) -> Observer {
        let recording = self.clone();
        Arc::new(move |note| recording.lock().notes.push(note.clone()))
    }

    /// The answers of a cluster, listened to.
    pub(super) fn answers(&self, facts: ClusterFacts) -> Arc<dyn Answers> {
        Arc::new(RecordingAnswers { facts, recording: self.clone() })
    }

    /// All notes.
    pub(super) fn notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock().notes)
    }

    /// The values of all Secrets that were read.
    pub(super) fn secrets(&self) -> Redactor {
        self.lock().secrets.clone()
    }

    /// Namespaces and names of all Secrets that were asked for by name.
    pub(super) fn asked_secrets(&self) -> BTreeSet<(Str, Str)> {
        self.lock().asked.clone()
    }

    fn ask(&self, fetch: &Fetch) {
        if let Some(secret) = secret_of(fetch) {
            self.lock().asked.insert(secret);
        }
    }
}

/// The namespace and the name of the Secret that a question is about, if it is about one.
fn secret_of(fetch: &Fetch) -> Option<(Str, Str)> {
    match fetch {
        Fetch::Object { kind, namespace, name, .. } if kind == "Secret" => Some((Str::new(namespace), Str::new(name))),
        Fetch::Api { path, .. } => {
            let object = path.objects().filter(|objects| objects.group.is_empty() && objects.resource == "secrets")?;
            Some((object.namespace.clone()?, object.name.clone()?))
        }
        _ => None,
    }
}

struct RecordingAnswers {
    facts: ClusterFacts,
    recording: Recording,
}

impl RecordingAnswers {
    fn learn(&self, fetch: &Fetch, answer: &Value) {
        if let Some(secrets) = self.secrets(fetch, answer) {
            self.recording.learn(&secrets);
        }
    }
}

impl Answers for RecordingAnswers {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        self.recording.ask(fetch.fetch());
        let fact = self.facts.answer(fetch);
        if let Fact::Found(found) = &fact {
            self.learn(fetch.fetch(), found);
        }
        fact
    }

    fn overhear(&self, fetch: &Fetch, answer: &Value) {
        self.recording.ask(fetch);
        self.learn(fetch, answer);
    }

    fn context_limit(&self) -> u64 {
        self.facts.context_limit()
    }

    fn merger(&self) -> Option<Arc<dyn Merger>> {
        self.facts.merger()
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        self.facts.secrets(fetch, answer)
    }
}
