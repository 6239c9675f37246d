//! What the controller says while it runs, and which Secrets it has read for that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::gate::AllowedFetch;
use ephor_expr::Value;

use crate::background::writer::{Note, Observer};
use crate::facts::{Answers, ClusterFacts};

/// Notes, each with the Secrets that were read in the same step. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Words>>);

#[derive(Default)]
struct Words {
    notes: Vec<(Note, Vec<Value>)>,
    /// Read in this step.
    read: Vec<Value>,
    /// Read in any step.
    all: Vec<Value>,
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step begins.
    pub(super) fn step(&self) {
        self.lock().read.clear();
    }

    /// Whoever listens to the controller.
    pub(super) fn observer(&self) -> Observer {
        let heard = self.clone();
        Arc::new(move |note| {
            let mut words = heard.lock();
            let read = words.read.clone();
            words.notes.push((note.clone(), read));
        })
    }

    /// The answers of a cluster, listened to.
    pub(super) fn answers(&self, facts: ClusterFacts) -> Arc<dyn Answers> {
        Arc::new(Listening { facts, heard: self.clone() })
    }

    /// All notes, and all Secrets that were read.
    pub(super) fn take(&self) -> (Vec<(Note, Vec<Value>)>, Vec<Value>) {
        let words = std::mem::take(&mut *self.lock());
        (words.notes, words.all)
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
            let secrets = each_secret(&secrets);
            let mut words = self.heard.lock();
            words.read.extend(secrets.iter().cloned());
            words.all.extend(secrets);
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

/// One Secret, an array or a list, each with its kind: API servers leave that out in lists.
fn each_secret(secrets: &Value) -> Vec<Value> {
    let items = secrets.as_array().or_else(|| secrets.get("items").and_then(Value::as_array));
    let items = items.unwrap_or(std::slice::from_ref(secrets)).iter().cloned();
    let named = items.map(|mut item| {
        if let Some(members) = item.as_object_mut() {
            members.insert("apiVersion", "v1");
            members.insert("kind", "Secret");
        }
        item
    });
    named.collect()
}
