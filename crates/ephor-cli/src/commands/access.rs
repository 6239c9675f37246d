//! The options by which commands change a cluster.

use std::path::PathBuf;

use anyhow::Context;
use ephor_kube::{Access, ConnectOptions, KubeCluster};

/// Which cluster to change.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct AccessArgs {
    /// The kubeconfig of the cluster; without, the one that kubectl would use.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl AccessArgs {
    /// The same as flags of a role.
    pub(super) fn flags(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig.as_ref().map(|path| format!("--kubeconfig={}", path.display()));
        let context = self.context.as_ref().map(|context| format!("--context={context}"));
        kubeconfig.into_iter().chain(context).collect()
    }

    /// The cluster.
    pub(super) fn connect(&self) -> anyhow::Result<KubeCluster> {
        let context = self.context.clone();
        let access = match &self.kubeconfig {
            Some(path) => Access::Kubeconfig { path: path.clone(), context },
            None => Access::Inferred { context },
        };
        KubeCluster::connect(&ConnectOptions { access, ..ConnectOptions::default() }).context("cannot use the cluster")
    }
}
