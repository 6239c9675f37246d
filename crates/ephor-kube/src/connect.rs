//! Connecting: which server, which credentials, which trust.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::options::{Access, ConnectOptions};

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no connection to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be read, or does not say enough.
    #[error("kubeconfig: {0}")]
    Kubeconfig(Box<KubeconfigError>),
    /// There is no kubeconfig, and this process does not run in a cluster.
    #[error("no cluster: there is no kubeconfig (`KUBECONFIG`, `~/.kube/config`), and this is no Pod: {0}")]
    NoCluster(InClusterError),
    /// What a Pod is given to reach its server is incomplete.
    #[error("in-cluster configuration: {0}")]
    InCluster(InClusterError),
    /// The credentials or certificates are no good.
    #[error("{0}")]
    Client(Box<kube::Error>),
    /// The name of the client cannot be sent.
    #[error("client name `{0}` has characters that a header cannot have")]
    ClientName(String),
    /// There is no thread for input and output.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

// Not as a source: the texts of these errors contain their causes already.
impl From<KubeconfigError> for ConnectError {
    fn from(error: KubeconfigError) -> Self {
        Self::Kubeconfig(Box::new(error))
    }
}

/// Finds out where to connect to.
pub(crate) async fn config(options: &ConnectOptions) -> Result<Config, ConnectError> {
    let in_context = |context: &Option<String>| KubeConfigOptions { context: context.clone(), ..Default::default() };
    let mut config = match &options.access {
        Access::Kubeconfig { path, context } => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &in_context(context)).await?
        }
        Access::Inferred { context } if context.is_some() || has_kubeconfig() => {
            Config::from_kubeconfig(&in_context(context)).await?
        }
        Access::Inferred { .. } => Config::incluster().map_err(ConnectError::NoCluster)?,
        Access::InCluster => Config::incluster().map_err(ConnectError::InCluster)?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Requests have a timeout as a whole, and retries of our own that know which ones may be repeated.
    config.read_timeout = None;
    config.default_retry = false;
    let name = &options.client_name;
    let agent = HeaderValue::from_str(&format!("{name}/{}", env!("CARGO_PKG_VERSION")))
        .map_err(|_| ConnectError::ClientName(name.clone()))?;
    config.headers.push((USER_AGENT, agent));
    if let Some(somebody) = &options.impersonate {
        config.auth_info.impersonate = Some(somebody.user.clone());
        config.auth_info.impersonate_groups = Some(somebody.groups.clone()).filter(|groups| !groups.is_empty());
    }
    Ok(config)
}

/// A client for it. The connection itself is made by the first request.
pub(crate) fn client(config: Config) -> Result<Client, ConnectError> {
    // Fails if a provider is installed already, which then stays.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::try_from(config).map_err(|e| ConnectError::Client(Box::new(e)))
}

/// Whether kubectl would use a kubeconfig.
fn has_kubeconfig() -> bool {
    if env::var_os("KUBECONFIG").is_some_and(|paths| env::split_paths(&paths).any(|p| !p.as_os_str().is_empty())) {
        return true;
    }
    env::var_os("HOME").is_some_and(|home| PathBuf::from(home).join(".kube/config").is_file())
}
