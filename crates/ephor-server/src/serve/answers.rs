//! The fact sources of a role: the cluster, global context entries and services.

use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::facts::{ClusterFacts, NamespaceLabels, Source};
use ephor_runtime::globalcontext::GlobalContext;
use ephor_runtime::network::{Limits, Network};
use ephor_runtime::schemas::Schemas;
use ephor_runtime::settings::CommonSettings;
use ephor_runtime::watcher::Watcher;

/// What answers, and what it follows.
#[derive(Debug)]
pub(super) struct RoleAnswers {
    /// All of it together.
    pub(super) facts: ClusterFacts,
    /// The labels of namespaces.
    pub(super) namespaces: NamespaceLabels,
    /// The entries that are loaded.
    pub(super) global: GlobalContext,
    /// Followed until stopped; what they know is needed before anything is answered.
    pub(super) watchers: Vec<Watcher>,
}

impl RoleAnswers {
    /// Follows what is needed until `stop`.
    pub(super) fn follow(
        cluster: &Arc<dyn Cluster>,
        common: &CommonSettings,
        config: &ConfigStore,
        stop: &CancellationToken,
    ) -> Self {
        let (namespaces, namespace_watcher) = NamespaceLabels::follow(cluster, stop);
        let limits = Limits { answer: common.max_api_response, timeout: common.api_call_timeout };
        let services: Arc<dyn Source> = Arc::new(Network::of_cluster(common.services.clone(), limits));
        let (global, global_watcher) = GlobalContext::follow(cluster, Some(Arc::clone(&services)), stop);
        let facts = ClusterFacts::new(Arc::clone(cluster))
            .with_namespaces(namespaces.clone())
            .within(config.clone())
            .with_schemas(Schemas::of(cluster, stop))
            .with(Arc::new(global.clone()))
            .with(services);
        Self { facts, namespaces, global, watchers: vec![namespace_watcher, global_watcher] }
    }
}
