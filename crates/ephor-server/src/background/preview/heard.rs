//! What the controller says while it runs, and which Secrets it has read for that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ephor_engine::fetch::Fact;
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
        if let Fact::Found(found) = &fact {
            let secrets = secrets(found);
            let mut words = self.heard.lock();
            words.read.extend(secrets.iter().cloned());
            words.all.extend(secrets);
        }
        fact
    }
}

/// The Secrets in an answer: an object, a list of objects, or what an API server says to a list of Secrets.
fn secrets(found: &Value) -> Vec<Value> {
    let is_secret = |object: &&Value| object.str_at(&["kind"]) == Some("Secret");
    if let Some(objects) = found.as_array() {
        return objects.iter().filter(is_secret).cloned().collect();
    }
    if found.str_at(&["kind"]) != Some("SecretList") {
        return Some(found).filter(is_secret).cloned().into_iter().collect();
    }
    let items = found.get("items").and_then(Value::as_array).unwrap_or_default();
    let named = items.iter().cloned().map(|mut item| {
        if let Some(members) = item.as_object_mut() {
            members.insert("apiVersion", "v1");
            members.insert("kind", "Secret");
        }
        item
    });
    named.collect()
}
