//! A cluster that Ephor guards and works in.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ephor_testbed::control_plane::free_port;
use ephor_testbed::process::Guarded;
use ephor_testbed::{ControlPlane, Options};

use crate::balancer::Balancer;

/// How long anything may take before a test gives up on it.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A control plane, replicas of the admission role behind a balancer, and replicas of the background role.
pub(crate) struct Cluster {
    replicas: Vec<Replica>,
    /// The background role, or that of reports.
    pub(crate) workers: Vec<Worker>,
    balancer: Balancer,
    started: usize,
    pub(crate) plane: ControlPlane,
}

pub(crate) struct Replica {
    pub(crate) process: Guarded,
    pub(crate) port: u16,
}

/// A replica of a role without webhooks.
pub(crate) struct Worker {
    pub(crate) process: Guarded,
    /// What it calls itself.
    pub(crate) identity: String,
    health_port: u16,
}

/// The binary under test: a release build if one is named, because debug builds are slow under load.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("EPHOR").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_ephor")), PathBuf::from)
}

impl Cluster {
    /// A control plane with the kinds of Ephor installed, without replicas.
    pub(crate) fn start() -> Self {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        let cluster =
            Self { replicas: Vec::new(), workers: Vec::new(), balancer: Balancer::start(), started: 0, plane };
        let definitions = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/ephor/files/crds");
        cluster.ask(&["create", "namespace", "kyverno"]);
        cluster.ask(&["apply", "--server-side", "-f", definitions]);
        cluster.ask(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
        cluster
    }

    /// kubectl must do it.
    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        self.plane.ask(arguments).unwrap()
    }

    /// kubectl may fail; both outputs together.
    pub(crate) fn try_ask(&self, arguments: &[&str]) -> (bool, String) {
        let Output { status, stdout, stderr } = self.plane.kubectl().args(arguments).output().unwrap();
        (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    /// Writes a manifest to a file.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.plane.directory().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) fn apply(&self, name: &str, text: &str) {
        let file = self.file(name, text);
        self.ask(&["apply", "-f", &file]);
    }

    /// Starts replicas until there are `count`, or stops the latest until there are. Does not wait for them.
    pub(crate) fn scale(&mut self, count: usize, flags: &[&str]) {
        self.replicas.truncate(count);
        while self.replicas.len() < count {
            self.started += 1;
            let (port, number) = (free_port().unwrap(), self.started);
            let mut arguments = vec!["serve".to_owned(), "admission".to_owned(), "--disableMetrics=true".to_owned()];
            arguments.push(format!("--kubeconfig={}", self.plane.kubeconfig().display()));
            arguments.push(format!("--serverIP=127.0.0.1:{}", self.balancer.port));
            arguments.push(format!("--webhookServerPort={port}"));
            arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
            let log = self.plane.directory().join(format!("ephor-{number}.log"));
            let environment = [("KYVERNO_POD_NAME".to_owned(), format!("replica-{number}"))];
            let process = Guarded::spawn(&binary(), &arguments, &environment, &log).unwrap();
            self.replicas.push(Replica { process, port });
        }
        self.balancer.set(self.replicas.iter().map(|replica| replica.port).collect());
    }

    pub(crate) fn replicas(&mut self) -> &mut [Replica] {
        &mut self.replicas
    }

    /// Starts another replica of the background role. Does not wait for it.
    pub(crate) fn work(&mut self) {
        let kubeconfig = self.plane.kubeconfig().clone();
        self.work_by(&kubeconfig, "background", &[]);
    }

    /// Starts another replica of a role with a port for probes, as the account of `kubeconfig`. Does not wait for it.
    pub(crate) fn work_by(&mut self, kubeconfig: &Path, role: &str, flags: &[String]) {
        self.started += 1;
        let (health_port, identity) = (free_port().unwrap(), format!("worker-{}", self.started));
        let mut arguments = vec!["serve".to_owned(), role.to_owned(), "--disableMetrics=true".to_owned()];
        arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
        arguments.push(format!("--healthPort={health_port}"));
        arguments.extend_from_slice(flags);
        let log = self.plane.directory().join(format!("{identity}.log"));
        let environment = [("KYVERNO_POD_NAME".to_owned(), identity.clone())];
        let process = Guarded::spawn(&binary(), &arguments, &environment, &log).unwrap();
        self.workers.push(Worker { process, identity, health_port });
    }

    /// The replica of the background role that leads; empty if none does.
    pub(crate) fn leader(&self) -> String {
        let path = "jsonpath={.spec.holderIdentity}";
        let (found, text) =
            self.try_ask(&["get", "lease", "kyverno-background-controller", "-n", "kyverno", "-o", path]);
        if found { text } else { String::new() }
    }

    /// Waits until it holds; the logs tell why it does not.
    pub(crate) fn eventually(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            if begun.elapsed() > TIMEOUT {
                let processes = self.replicas.iter().map(|replica| &replica.process);
                let processes = processes.chain(self.workers.iter().map(|worker| &worker.process));
                let logs: Vec<String> = processes.map(|process| process.log_end(30)).collect();
                panic!("{what}: never\n{}", logs.join("\n---\n"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether a Pod without the label `team` is refused by the policy of that name. Nothing is stored.
    pub(crate) fn refuses_by(&self, policy: &str) -> bool {
        let (created, text) = self.try_pod("default");
        !created && text.contains(policy)
    }

    /// Tries to create a Pod without labels, without storing it.
    pub(crate) fn try_pod(&self, namespace: &str) -> (bool, String) {
        let pod = self.file(
            "pod.yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}",
        );
        self.try_ask(&["create", "--dry-run=server", "--namespace", namespace, "-f", &pod])
    }

    /// Whether a policy is Ready.
    pub(crate) fn is_ready(&self, policy: &str) -> bool {
        let path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
        self.try_ask(&["get", "clusterpolicy", policy, "-o", path]).1 == "True"
    }

    /// The number of the process that listens on a replica's port.
    pub(crate) fn pid(port: u16) -> u32 {
        let flag = format!("--webhookServerPort={port}");
        let output =
            Command::new("pgrep").args(["-f", "--", &format!("ephor serve admission.*{flag}")]).output().unwrap();
        let numbers = String::from_utf8_lossy(&output.stdout).into_owned();
        // The shell that guards it has the same words on its command line, after its own.
        let is_ephor = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/exe"))
                .is_ok_and(|exe| exe.file_name().is_some_and(|n| n == "ephor"))
        };
        numbers.lines().filter_map(|line| line.parse().ok()).find(is_ephor).unwrap()
    }
}

impl Worker {
    /// The status of a path that the kubelet asks.
    pub(crate) fn probe(&self, path: &str) -> Option<u16> {
        let mut connection = std::net::TcpStream::connect(("127.0.0.1", self.health_port)).ok()?;
        write!(connection, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.probe("/health/readiness") == Some(200)
    }
}

/// A policy that refuses Pods without the label `team`.
pub(crate) fn policy(name: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: {name}}}\nspec:\n  rules:\n  - name: team\n    \
         match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}\n    validate:\n      failureAction: Enforce\n      \
         message: no team\n      pattern: {{metadata: {{labels: {{team: '?*'}}}}}}\n"
    )
}
