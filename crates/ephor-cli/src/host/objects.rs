//! Answers fetches from given objects, through an in-memory cluster.
//!
//! Single objects, lists, calls of the Kubernetes API and global context entries that watch resources are answered as a
//! server with these objects would.

use std::sync::{Arc, OnceLock};

use ephor_cluster::MemoryCluster;
use ephor_cluster::memory::Options;
use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::Value;
use ephor_runtime::facts::ask;

use super::Source;
use super::globals::{Calls, find, global};

/// The given objects. All others do not exist.
#[derive(Clone, Default)]
pub struct ObjectsAtHand {
    objects: Arc<Vec<Value>>,
    /// Made when the first question comes: most runs ask none.
    cluster: Arc<OnceLock<MemoryCluster>>,
    /// Whether they answer for the API itself.
    api: bool,
}

impl std::fmt::Debug for ObjectsAtHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectsAtHand({} objects)", self.objects.len())
    }
}

impl ObjectsAtHand {
    /// These objects; of two with one name the first counts.
    pub fn new(objects: Vec<Value>) -> Self {
        Self { objects: Arc::new(objects), ..Self::default() }
    }

    /// The same objects, which also answer calls of the API and global context entries.
    #[must_use]
    pub fn with_api(mut self) -> Self {
        self.api = true;
        self
    }

    fn cluster(&self) -> &MemoryCluster {
        self.cluster.get_or_init(|| {
            let cluster = MemoryCluster::new(Options::offline());
            // The cluster keeps the last of one name. What it refuses has no name and cannot be asked for.
            let _ = cluster.load(self.objects.iter().rev().cloned());
            cluster
        })
    }
}

impl Source for ObjectsAtHand {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        match fetch {
            Fetch::Global { name } if self.api => {
                let (entry, projection) = find(self.objects.iter(), name)?;
                Some(global(self.cluster(), entry, name, projection, Calls::Refused).fact)
            }
            Fetch::Api { .. } if !self.api => None,
            // Offline these are not known to be missing: they are not available offline, which others say better.
            Fetch::ConfigMap { .. } | Fetch::NamespaceLabels { .. } | Fetch::Namespace { .. } => {
                ask(self.cluster(), fetch, true).filter(|fact| matches!(fact, Fact::Found(_)))
            }
            // Nor is it known that a cluster would refuse a call: no `default` of the policy may stand in for it.
            Fetch::Api { .. } => ask(self.cluster(), fetch, true).map(|fact| match fact {
                Fact::NotFound(reason) | Fact::Failed(reason) => {
                    Fact::Unavailable(format!("{reason} (among the objects given)"))
                }
                other => other,
            }),
            // Evaluations must not influence each other.
            _ => ask(self.cluster(), fetch, true),
        }
    }

    fn secrets(&self, fetch: &Fetch) -> Option<Value> {
        let Fetch::Global { name } = fetch else { return None };
        let (entry, projection) = find(self.objects.iter(), name).filter(|_| self.api)?;
        global(self.cluster(), entry, name, projection, Calls::Refused).secrets
    }
}
