//! What is tested, as processes: the sandbox, or the roles beside a control plane.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use ephor_testbed::control_plane::free_port;
use ephor_testbed::process::Guarded;
use ephor_testbed::{ControlPlane, Options};
use tempfile::TempDir;

/// The binary under test: a release build if one is named, because debug builds are slow under load.
fn binary() -> PathBuf {
    std::env::var_os("EPHOR").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_ephor")), PathBuf::from)
}

/// How long a process may take until it is ready.
const TIMEOUT: Duration = Duration::from_mins(1);

/// `ephor sandbox`.
pub(crate) struct Sandbox {
    // Dropped before its directory.
    _process: Guarded,
    directory: TempDir,
}

impl Sandbox {
    /// Starts one and waits until it says that it is ready.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let kubeconfig = directory.path().join("kubeconfig");
        let arguments = ["sandbox".to_owned(), "--kubeconfig".to_owned(), kubeconfig.display().to_string()];
        let mut process = Guarded::spawn(&binary(), &arguments, &[], &log).unwrap();
        let begun = Instant::now();
        while !process.log_end(20).contains("The sandbox is ready") {
            assert!(process.is_running() && begun.elapsed() < TIMEOUT, "{}", process.log_end(20));
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { _process: process, directory }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }
}

/// The roles, beside a control plane, as the accounts that the installation gives them.
pub(crate) struct Roles {
    // Dropped before the control plane.
    processes: Vec<Guarded>,
    pub(crate) plane: ControlPlane,
}

/// What a user adds to the installation for policies that make Secrets.
const SECRETS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ephor-tests:secrets
  labels: {rbac.kyverno.io/aggregate-to-background-controller: 'true', rbac.kyverno.io/aggregate-to-admission-controller: 'true'}
rules:
- {apiGroups: [''], resources: [secrets], verbs: [get, list, watch, create, update, patch, delete]}
";

impl Roles {
    /// Starts a control plane, installs what `ephor install` prints except for what would run Pods, and starts one
    /// process for each role. Does not wait for them.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with further flags for the admission role.
    pub(crate) fn start_with(flags: &[&str]) -> Self {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        let printed = Command::new(binary()).args(["install", "--print"]).output().unwrap();
        let documents = String::from_utf8(printed.stdout).unwrap();
        let runs = |document: &&str| !document.lines().any(|line| line == "kind: Deployment");
        let kept: Vec<&str> = documents.split("\n---\n").filter(runs).collect();
        for (name, text) in [("installation.yaml", kept.join("\n---\n")), ("secrets.yaml", SECRETS.to_owned())] {
            let file = plane.directory().join(name);
            std::fs::write(&file, text).unwrap();
            plane.ask(&["apply", "--server-side", "-f", &file.display().to_string()]).unwrap();
        }
        plane.ask(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).unwrap();
        let port = free_port().unwrap();
        let mut admission = vec!["--serverIP=127.0.0.1".to_owned(), format!("--webhookServerPort={port}")];
        admission.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let processes = [("admission", &admission[..]), ("background", &[])].map(|(role, flags)| {
            let account = format!("kyverno-{role}-controller");
            let kubeconfig = plane.service_account_kubeconfig("kyverno", &account).unwrap();
            let mut arguments = vec!["serve".to_owned(), role.to_owned(), "--disableMetrics=true".to_owned()];
            arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
            arguments.extend_from_slice(flags);
            Guarded::spawn(&binary(), &arguments, &[], &plane.directory().join(format!("{role}.log"))).unwrap()
        });
        Self { processes: processes.into(), plane }
    }

    /// Whether all roles still run.
    pub(crate) fn assert_running(&mut self) {
        for process in &mut self.processes {
            assert!(process.is_running(), "{}", process.log_end(30));
        }
    }
}
