//! The engine under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_testbed::ControlPlane;
use ephor_testbed::control_plane::free_port;
use ephor_testbed::process::Guarded;
use ureq::Agent;
use ureq::tls::TlsConfig;

/// How long an engine may take until it is ready.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Which engine, if any.
#[derive(Clone, Debug)]
pub enum Subject {
    /// None: for scenarios that need none, and to look at the runner itself.
    Nothing,
    /// The roles of a binary, as processes beside the control plane.
    Roles {
        /// `ephor`.
        binary: PathBuf,
        /// `admission`, `background`, `reports`, `cleanup`.
        roles: Vec<Role>,
    },
    /// `ephor sandbox`: API server and engine in one, a new one for each scenario.
    Sandbox {
        /// `ephor`.
        binary: PathBuf,
    },
}

impl Subject {
    /// What must be in the cluster before the engine starts: accounts, roles, configuration.
    pub fn manifests(&self) -> Result<String, String> {
        let (Self::Roles { binary, .. } | Self::Sandbox { binary }) = self else { return Ok(String::new()) };
        // As upstream's test configuration: the label for lifetimes counts for Pods.
        let pods = "cleanupController.rbac.clusterRole.extraResources[0]";
        let settings = [
            "openreports.installCrds=true".to_owned(),
            "features.generateMutatingAdmissionPolicy.enabled=true".to_owned(),
            format!("{pods}.apiGroups[0]="),
            format!("{pods}.resources[0]=pods"),
            format!("{pods}.verbs={{list,watch,delete}}"),
        ];
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let output = Command::new(binary).args(["install", "--print"]).args(settings).output();
        let output = output.map_err(|error| format!("{}: {error}", binary.display()))?;
        if !output.status.success() {
            return Err(format!("ephor install --print: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A role of the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `ephor serve admission`.
    Admission,
    /// `ephor serve background`.
    Background,
    /// `ephor serve reports`.
    Reports,
    /// `ephor serve cleanup`.
    Cleanup,
}

impl Role {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Background => "background",
            Self::Reports => "reports",
            Self::Cleanup => "cleanup",
        }
    }

    /// The name of its service account and deployment.
    fn account(self) -> &'static str {
        match self {
            Self::Admission => "kyverno-admission-controller",
            Self::Background => "kyverno-background-controller",
            Self::Reports => "kyverno-reports-controller",
            Self::Cleanup => "kyverno-cleanup-controller",
        }
    }
}

/// The flags that a group of scenarios needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// Those of upstream's test configuration.
    #[default]
    Standard,
    /// All policies fail open.
    FailOpen,
    /// Exceptions do not count.
    WithoutExceptions,
    /// Keys on P-256.
    Ecdsa,
    /// Ed25519 keys.
    Ed25519,
    /// Reports of openreports.io.
    OpenReports,
    /// Policies that mutate become admission policies of the API server.
    NativeMutation,
}

impl Flavour {
    /// What the scenarios of a folder need.
    pub fn of(case: &str) -> Self {
        if case.starts_with("chainsaw/force-failure-policy-ignore/") {
            Self::FailOpen
        } else if case.starts_with("chainsaw/policy-exceptions-disabled/") {
            Self::WithoutExceptions
        } else if case.starts_with("chainsaw/tls-certificates/ecdsa") {
            Self::Ecdsa
        } else if case.starts_with("chainsaw/tls-certificates/ed25519") {
            Self::Ed25519
        } else if case.starts_with("chainsaw/openreports") {
            Self::OpenReports
        } else if case.starts_with("chainsaw/generate-mutating-admission-policy") {
            Self::NativeMutation
        } else {
            Self::Standard
        }
    }

    fn reports_flags(self) -> &'static [&'static str] {
        match self {
            Self::OpenReports => &["--openreportsEnabled=true"],
            _ => &[],
        }
    }

    fn common_flags(self) -> &'static [&'static str] {
        match self {
            Self::WithoutExceptions => &[],
            _ => &["--enablePolicyException=true", "--exceptionNamespace=*"],
        }
    }

    fn admission_flags(self) -> &'static [&'static str] {
        match self {
            Self::FailOpen => &["--forceFailurePolicyIgnore=true"],
            Self::Ecdsa => &["--tlsKeyAlgorithm=ECDSA"],
            Self::Ed25519 => &["--tlsKeyAlgorithm=Ed25519"],
            Self::NativeMutation => &["--generateMutatingAdmissionPolicy=true"],
            Self::Standard | Self::WithoutExceptions | Self::OpenReports => &[],
        }
    }

    /// Whether certificates of other flavours must go first.
    pub fn has_own_certificates(self) -> bool {
        matches!(self, Self::Ecdsa | Self::Ed25519)
    }
}

/// A running engine; it ends when dropped.
#[derive(Debug, Default)]
pub struct Engine {
    processes: Vec<Guarded>,
}

impl Engine {
    /// Starts the engine and waits until it is ready.
    pub fn start(subject: &Subject, flavour: Flavour, plane: &ControlPlane) -> Result<Self, String> {
        let Subject::Roles { binary, roles } = subject else { return Ok(Self::default()) };
        let mut engine = Self::default();
        for role in roles {
            let kubeconfig =
                plane.service_account_kubeconfig("kyverno", role.account()).map_err(|error| error.to_string())?;
            let port = free_port().map_err(|error| error.to_string())?;
            let arguments = arguments(*role, flavour, &kubeconfig, port);
            let log = plane.directory().join(format!("ephor-{}.log", role.name()));
            let mut process = Guarded::spawn(binary, &arguments, &[], &log).map_err(|error| error.to_string())?;
            if *role == Role::Admission {
                wait_until_ready(&mut process, port)?;
            }
            engine.processes.push(process);
        }
        Ok(engine)
    }

    /// Says if a part of it has ended, with the end of its log.
    pub fn check(&mut self) -> Result<(), String> {
        for process in &mut self.processes {
            if !process.is_running() {
                return Err(process.complaint("ended").to_string());
            }
        }
        Ok(())
    }
}

fn arguments(role: Role, flavour: Flavour, kubeconfig: &Path, port: u16) -> Vec<String> {
    let mut arguments: Vec<String> = vec!["serve".to_owned(), role.name().to_owned()];
    arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
    arguments.push("--disableMetrics=true".to_owned());
    let mut add = |flags: &[&str]| arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
    add(flavour.common_flags());
    if role == Role::Reports {
        add(flavour.reports_flags());
    }
    if role == Role::Admission {
        add(flavour.admission_flags());
        add(&[
            "--serverIP=127.0.0.1",
            "--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller",
        ]);
        add(&["--reportsServiceAccountName=system:serviceaccount:kyverno:kyverno-reports-controller"]);
        add(&["--cleanupServiceAccountName=system:serviceaccount:kyverno:kyverno-cleanup-controller"]);
        arguments.push(format!("--webhookServerPort={port}"));
    }
    arguments
}

fn wait_until_ready(process: &mut Guarded, port: u16) -> Result<(), String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder().unversioned_rustls_crypto_provider(provider).disable_verification(true).build();
    let agent: Agent =
        Agent::config_builder().tls_config(tls).proxy(None).timeout_global(Some(Duration::from_secs(2))).build().into();
    let url = format!("https://127.0.0.1:{port}/health/readiness");
    let start = Instant::now();
    while agent.get(&url).call().is_err() {
        if !process.is_running() {
            return Err(process.complaint("ended").to_string());
        }
        if start.elapsed() > TIMEOUT {
            return Err(process.complaint("does not get ready").to_string());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
