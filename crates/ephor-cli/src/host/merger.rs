//! Merges configurations of policies by the schemas of Kubernetes' own kinds, which are known without a cluster.

use std::sync::{Arc, LazyLock};

use ephor_cluster::MemoryCluster;
use ephor_engine::fetch::Merger;
use ephor_expr::Value;

/// Kubernetes' own kinds; made when the first configuration is merged.
static KINDS: LazyLock<MemoryCluster> = LazyLock::new(MemoryCluster::default);

struct BuiltIn;

impl Merger for BuiltIn {
    fn merge(&self, object: &Value, configuration: &Value) -> Result<Value, String> {
        KINDS.merge(object, configuration).map_err(|error| error.to_string())
    }

    fn is_of_api_server(&self) -> bool {
        false
    }
}

/// The merger of the command line.
pub(super) fn built_in() -> Arc<dyn Merger> {
    Arc::new(BuiltIn)
}
