//! The options by which commands read from a cluster.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use ephor_cluster::Cluster;
use ephor_kube::{Access, ConnectOptions, KubeCluster, RateLimit};

use crate::host::ReadOnly;

/// Which cluster to read from.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ClusterArgs {
    /// Read from a cluster: the one that kubectl would use. Nothing is written.
    #[arg(long, short = 'c')]
    pub(super) cluster: bool,
    /// The kubeconfig of the cluster.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub(super) context: Option<String>,
    /// Only this namespace of the cluster.
    #[arg(long, short = 'n', value_name = "NAME", requires = "cluster")]
    pub(super) namespace: Option<String>,
}

/// How many requests a second: a cluster has others to serve.
const RATE: RateLimit = RateLimit { qps: 50.0, burst: 100 };

impl ClusterArgs {
    /// The cluster, to read from.
    pub(super) fn connect(&self) -> anyhow::Result<Arc<ReadOnly>> {
        Ok(Arc::new(self.read_only()?))
    }

    /// The cluster, to read from and to ask what it would make of a write.
    pub(super) fn connect_for_dry_runs(&self) -> anyhow::Result<Arc<ReadOnly>> {
        Ok(Arc::new(self.read_only()?.with_dry_runs()))
    }

    fn read_only(&self) -> anyhow::Result<ReadOnly> {
        let context = self.context.clone();
        let access = match &self.kubeconfig {
            Some(path) => Access::Kubeconfig { path: path.clone(), context },
            None => Access::Inferred { context },
        };
        let options = ConnectOptions { access, rate: Some(RATE), attempts: 3, ..ConnectOptions::default() };
        let cluster: Arc<dyn Cluster> = Arc::new(KubeCluster::connect(&options).context("cannot use the cluster")?);
        Ok(ReadOnly::new(cluster))
    }
}
