//! A control plane with both roles at work, and what they say they asked of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use ephor_testbed::ControlPlane;
use ephor_testbed::control_plane::free_port;

use super::process::{Killed, address, administrator, ephor, plane};

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_mins(15);
/// How many kubectls create objects at once; each sends at most 50 a second.
const CREATORS: usize = 4;

/// The control plane and the processes.
pub(super) struct TestEnv {
    // Processes end before the control plane.
    pub(super) admission: Role,
    pub(super) background: Role,
    pub(super) plane: ControlPlane,
}

/// A process of Ephor.
pub(super) struct Role {
    process: Killed,
    metrics_port: u16,
}

impl TestEnv {
    /// Starts everything, with policies, and waits until those are ready.
    pub(super) fn start(policies: &str) -> Result<Self> {
        let plane = plane()?;
        let own = |name: &str| administrator(&plane, &format!("kyverno-{name}-controller"));
        let background =
            "--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller".to_owned();
        let flags = [address()?.as_slice(), &[background]].concat();
        let admission = Role::start(&plane, "admission", &own("admission")?, &flags)?;
        let background = Role::start(&plane, "background", &own("background")?, &[])?;
        let env = Self { admission, background, plane };
        let file = file(&env.plane, "policies.yaml", policies)?;
        env.until("the policies can be applied", |env| {
            Ok(env.plane.ask(&["apply", "-f", &file.to_string_lossy()]).is_ok())
        })?;
        env.plane.ask(&["wait", "--for=condition=Ready", "clusterpolicy", "--all", "--timeout=60s"])?;
        // Until the webhooks that the policies need are heeded everywhere.
        sleep(Duration::from_secs(3));
        Ok(env)
    }

    /// Kills the background role. It comes back with [`TestEnv::restart`].
    pub(super) fn kill(&mut self) -> Result<()> {
        self.background.process.0.kill()?;
        self.background.process.0.wait()?;
        Ok(())
    }

    pub(super) fn restart(&mut self) -> Result<()> {
        let kubeconfig = self.plane.directory().join("kyverno-kyverno-background-controller.kubeconfig");
        self.background = Role::start(&self.plane, "background", &kubeconfig, &[])?;
        Ok(())
    }

    /// Begins to create objects, several at once.
    pub(super) fn create(&self, documents: &[String]) -> Result<Vec<Child>> {
        create(&self.plane, documents)
    }

    /// How many objects of a kind there are, by the path of their list.
    pub(super) fn count(&self, path: &str) -> Result<usize> {
        count(&self.plane, path)
    }

    /// Waits until it holds; how long that took.
    pub(super) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> Result<bool>) -> Result<Duration> {
        let begun = Instant::now();
        while !holds(self)? {
            if begun.elapsed() > TIMEOUT {
                let log = fs::read_to_string(self.plane.directory().join("background.log")).unwrap_or_default();
                let end: Vec<&str> = log.lines().rev().take(20).collect();
                bail!("{what}: never\n{}", end.join("\n"));
            }
            sleep(Duration::from_millis(100));
        }
        Ok(begun.elapsed())
    }
}

fn file(plane: &ControlPlane, name: &str, text: &str) -> Result<PathBuf> {
    let path = plane.directory().join(name);
    fs::write(&path, text)?;
    Ok(path)
}

/// Begins to create objects, several at once.
pub(super) fn create(plane: &ControlPlane, documents: &[String]) -> Result<Vec<Child>> {
    let mut children = Vec::new();
    for (number, part) in documents.chunks(documents.len().div_ceil(CREATORS)).enumerate() {
        let file = file(plane, &format!("create-{number}.yaml"), &part.join("---\n"))?;
        children.push(plane.kubectl().args(["create", "-f"]).arg(file).stdout(Stdio::null()).spawn()?);
    }
    Ok(children)
}

/// How many objects of a kind there are, by the path of their list.
pub(super) fn count(plane: &ControlPlane, path: &str) -> Result<usize> {
    let list = plane.ask(&["get", "--raw", &format!("{path}?limit=1")])?;
    let list: serde_json::Value = serde_json::from_str(&list)?;
    let here = list.get("items").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    let rest = list.pointer("/metadata/remainingItemCount").and_then(serde_json::Value::as_u64).unwrap_or(0);
    Ok(here + usize::try_from(rest)?)
}

impl Role {
    pub(super) fn start(
        plane: &ControlPlane,
        name: &str,
        kubeconfig: &std::path::Path,
        flags: &[String],
    ) -> Result<Self> {
        let metrics_port = free_port()?;
        let log = fs::File::options().create(true).append(true).open(plane.directory().join(format!("{name}.log")))?;
        let process = Command::new(ephor()?)
            .args(["serve", name])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--metricsPort={metrics_port}"))
            .args(flags)
            .stderr(log)
            .spawn()?;
        Ok(Self { process: Killed(process), metrics_port })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// The series whose names begin so, with their values.
    pub(super) fn metrics(&self, name: &str) -> Result<BTreeMap<String, f64>> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.metrics_port)).context("no metrics are served")?;
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "metrics are refused: {answer}");
        let mut found = BTreeMap::new();
        for line in answer.lines().filter(|line| line.starts_with(name)) {
            let (series, value) = line.rsplit_once(' ').context("an odd line of metrics")?;
            found.insert(series.to_owned(), value.parse()?);
        }
        Ok(found)
    }

    /// What it asked of the API server so far, by operation and kind.
    pub(super) fn calls(&self) -> Result<BTreeMap<String, f64>> {
        let mut calls = BTreeMap::new();
        for (series, count) in self.metrics("kyverno_client_queries_total{")? {
            let label = |key: &str| {
                let rest = series.split_once(&format!("{key}=\""))?.1;
                rest.split_once('"').map(|(value, _)| value.to_owned())
            };
            let name =
                format!("{} {}", label("operation").unwrap_or_default(), label("resource_kind").unwrap_or_default());
            *calls.entry(name).or_default() += count;
        }
        Ok(calls)
    }
}

/// What came in between, most frequent first, and all of it together.
pub(super) fn difference(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> (String, f64) {
    let known = |name: &String| before.get(name).copied().unwrap_or(0.0);
    let mut grown: Vec<(&String, f64)> = after.iter().map(|(name, count)| (name, count - known(name))).collect();
    grown.retain(|(_, count)| *count > 0.0);
    grown.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut text = String::new();
    for (name, count) in &grown {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{name} {count}", if text.is_empty() { "" } else { ", " });
    }
    (text, grown.iter().map(|(_, count)| count).sum())
}
