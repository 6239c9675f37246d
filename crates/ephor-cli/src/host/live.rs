//! Answers from a cluster that is there, which is only read.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::policy::HttpMethod;
use ephor_expr::Value;
use ephor_runtime::facts::{ask, fact, objects};
use parking_lot::Mutex;

use super::globals::{Answer, Calls, find, global};
use super::{ReadOnly, Source};

/// How many answers are kept: the same question has the same answer throughout a run.
const KEPT: usize = 4096;

/// A cluster as a source of facts.
pub struct Live {
    cluster: Arc<ReadOnly>,
    /// Entries beside the policies; they win over those of the cluster.
    entries: Vec<Value>,
    answers: Mutex<HashMap<Fetch, Answer>>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl Live {
    /// The cluster, and the given global context entries.
    pub fn new(cluster: Arc<ReadOnly>, entries: Vec<Value>) -> Self {
        Self { cluster, entries, answers: Mutex::default() }
    }

    fn ask(&self, fetch: &Fetch) -> Option<Answer> {
        match fetch {
            Fetch::Api { method: HttpMethod::Post, path, .. } if !path.is_review() => {
                Some(Fact::Unavailable(format!("`POST {path}` is not sent: `--cluster` only reads")).into())
            }
            Fetch::Global { name } => Some(self.global(name)),
            _ => ask(&*self.cluster, fetch, true).map(Answer::from),
        }
    }

    fn global(&self, name: &str) -> Answer {
        let cluster: &dyn Cluster = &*self.cluster;
        if let Some((entry, projection)) = find(self.entries.iter(), name) {
            return global(cluster, entry, name, projection, Calls::Made);
        }
        let stored = match objects(cluster, "", "GlobalContextEntry", "") {
            Ok(stored) => stored,
            Err(error) => return fact(Err(error)).into(),
        };
        match find(stored.as_array().unwrap_or_default().iter(), name) {
            Some((entry, projection)) => global(cluster, entry, name, projection, Calls::Made),
            None => Fact::Unavailable(format!("there is no global context entry `{name}` in the cluster")).into(),
        }
    }

    /// The answer to a question, asked once.
    fn known(&self, fetch: &Fetch) -> Option<Answer> {
        if let Some(known) = self.answers.lock().get(fetch) {
            return Some(known.clone());
        }
        // Not under the lock: threads that ask different things do not wait for each other.
        let answer = self.ask(fetch)?;
        let mut answers = self.answers.lock();
        if answers.len() < KEPT {
            answers.insert(fetch.clone(), answer.clone());
        }
        Some(answer)
    }
}

impl Source for Live {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        Some(self.known(fetch)?.fact)
    }

    fn secrets(&self, fetch: &Fetch) -> Option<Value> {
        matches!(fetch, Fetch::Global { .. }).then(|| self.known(fetch)?.secrets).flatten()
    }
}
