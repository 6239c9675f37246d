//! Maps the resource of a request to its kind.
//!
//! Kind and resource come from the review itself, so that objects of a kind that is new to Ephor are judged at once
//!. Only a subresource hides the kind of the object it belongs to (`pods/exec` sends `PodExecOptions`):
//! then discovery is asked, and its answer kept, for it never changes.

use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_engine::matching::Gvk;
use ephor_runtime::decision::request::{AdmissionRequest, Gvr};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::judge::{Effort, WouldBlock};

#[derive(Debug, Default)]
pub(super) struct Kinds(RwLock<FxHashMap<Gvr, Gvk>>);

impl Kinds {
    /// The kind of the object in the URL. One that discovery does not know is taken for what was sent.
    pub(super) fn of(
        &self,
        request: &AdmissionRequest,
        cluster: &Arc<dyn Cluster>,
        effort: Effort,
    ) -> Result<Gvk, WouldBlock> {
        if request.sub_resource.is_empty() {
            return Ok(request.kind.clone());
        }
        let gvr = &request.resource;
        if let Some(known) = self.0.read().get(gvr) {
            return Ok(known.clone());
        }
        if effort == Effort::Immediate {
            return Err(WouldBlock);
        }
        let found = cluster.discovery().ok().and_then(|discovery| {
            let resource = discovery.find_plural(&gvr.group, &gvr.version, &gvr.resource)?;
            Some(Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() })
        });
        let Some(gvk) = found else { return Ok(request.kind.clone()) };
        self.0.write().insert(gvr.clone(), gvk.clone());
        Ok(gvk)
    }
}
