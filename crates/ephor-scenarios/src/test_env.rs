//! What a scenario stands on: a control plane with an engine beside it, or a sandbox, which is both.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ephor_testbed::process::Guarded;
use ephor_testbed::{Assets, ControlPlane, Options};

use crate::api::Api;

/// How long a sandbox may take until it serves.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Makes an API server have mutating admission policies.
const NATIVE_MUTATION: [&str; 2] = [
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true,admissionregistration.k8s.io/v1alpha1=true",
];

/// An API server of either kind.
#[derive(Debug)]
pub(crate) enum TestEnv {
    /// etcd, kube-apiserver and kube-controller-manager.
    ControlPlane(Box<ControlPlane>),
    /// `ephor sandbox`.
    Sandbox {
        /// Dropped before its directory.
        _process: Guarded,
        /// For the kubeconfig and the log.
        directory: tempfile::TempDir,
    },
}

impl TestEnv {
    pub(crate) fn control_plane() -> Result<Self, String> {
        let api_server_flags = NATIVE_MUTATION.map(str::to_owned).to_vec();
        let options = Options { node: Some("kind-control-plane".to_owned()), api_server_flags, ..Options::default() };
        let plane = ControlPlane::start(&options).map_err(|error| error.to_string())?;
        Ok(Self::ControlPlane(Box::new(plane)))
    }

    pub(crate) fn sandbox(binary: &Path) -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let kubeconfig = directory.path().join("kubeconfig");
        let arguments = ["sandbox".to_owned(), "--kubeconfig".to_owned(), kubeconfig.display().to_string()];
        let log = directory.path().join("sandbox.log");
        let mut process = Guarded::spawn(binary, &arguments, &[], &log).map_err(|error| error.to_string())?;
        let start = Instant::now();
        while !Api::from_kubeconfig(&kubeconfig).is_ok_and(|api| api.read("/version").is_ok()) {
            if !process.is_running() {
                return Err(process.complaint("ended").to_string());
            }
            if start.elapsed() > TIMEOUT {
                return Err(process.complaint("does not get ready").to_string());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self::Sandbox { _process: process, directory })
    }

    pub(crate) fn directory(&self) -> &Path {
        match self {
            Self::ControlPlane(plane) => plane.directory(),
            Self::Sandbox { directory, .. } => directory.path(),
        }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory().join("kubeconfig")
    }

    /// The environment in which kubectl talks to it.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        match self {
            Self::ControlPlane(plane) => plane.environment(),
            Self::Sandbox { .. } => {
                let path = std::env::var("PATH").unwrap_or_default();
                let shown = |path: PathBuf| path.display().to_string();
                vec![
                    ("KUBECONFIG".to_owned(), shown(self.kubeconfig())),
                    ("KUBECACHEDIR".to_owned(), shown(self.directory().join("cache"))),
                    ("PATH".to_owned(), format!("{}:{path}", Assets::locate().directory().display())),
                ]
            }
        }
    }
}
