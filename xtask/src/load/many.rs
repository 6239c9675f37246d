//! A thousand policies: how soon a replica is ready, and how soon they all say so.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ephor_testbed::ControlPlane;
use ephor_testbed::control_plane::free_port;

use super::process::{Killed, ephor, megabytes, plane};
use crate::say;

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Starts a replica with `count` policies that have no status yet.
pub(super) fn policies(count: usize) -> Result<()> {
    let plane = plane()?;
    // A first replica creates the certificates; its webhooks would refuse policies while no server runs.
    let first = Replica::start(&plane)?;
    first.until_ready()?;
    until("webhooks are registered", || {
        Ok(plane.ask(&["get", "validatingwebhookconfigurations", "-o", "name"])?.contains("policy"))
    })?;
    // It ends as it does in a cluster, and gives its lease back.
    first.end()?;
    for kind in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
        plane.ask(&["delete", kind, "--all"])?;
    }
    let file = plane.directory().join("policies.yaml");
    fs::write(&file, documents(count))?;
    plane.ask(&["create", "-f", &file.to_string_lossy()])?;

    let begun = Instant::now();
    let replica = Replica::start(&plane)?;
    replica.until_ready()?;
    say(&format!("ready after {:.2} s with {count} policies", begun.elapsed().as_secs_f64()));
    let path = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}";
    until("all policies are Ready", || {
        Ok(plane.ask(&["get", "clusterpolicies", "-o", path])?.matches("True").count() == count)
    })?;
    say(&format!("all statuses are written after {:.1} s", begun.elapsed().as_secs_f64()));
    say(&format!("resident: {:.1} MB", megabytes(replica.process.0.id(), "VmRSS")?));
    Ok(())
}

/// Policies that want labels of Pods, each another.
fn documents(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = writeln!(
            text,
            "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: label-{number}}}\nspec:\n  rules:\n  - name: \
             label\n    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}\n    validate:\n      failureAction: Audit\n      \
             message: the label is missing\n      pattern: {{metadata: {{labels: {{'example.com/label-{number}': \
             '?*'}}}}}}\n---"
        );
    }
    text
}

/// A replica of the admission role.
struct Replica {
    process: Killed,
    port: u16,
}

impl Replica {
    fn start(plane: &ControlPlane) -> Result<Self> {
        let port = free_port()?;
        let log = fs::File::options().create(true).append(true).open(log(plane))?;
        let process = Command::new(ephor()?)
            .args(["serve", "admission", "--disableMetrics=true"])
            .arg(format!("--kubeconfig={}", plane.kubeconfig().display()))
            .arg(format!("--serverIP=127.0.0.1:{port}"))
            .arg(format!("--webhookServerPort={port}"))
            .stderr(log)
            .spawn()?;
        Ok(Self { process: Killed(process), port })
    }

    fn end(mut self) -> Result<()> {
        Command::new("kill").arg(self.process.0.id().to_string()).status()?;
        self.process.0.wait()?;
        Ok(())
    }

    fn until_ready(&self) -> Result<()> {
        let url = format!("https://127.0.0.1:{}/health/readiness", self.port);
        until("readiness is 200", || {
            let asked =
                Command::new("curl").args(["--insecure", "--silent", "--fail", &url]).stdout(Stdio::null()).status();
            Ok(asked.context("curl is needed")?.success())
        })
    }
}

fn log(plane: &ControlPlane) -> impl AsRef<Path> {
    plane.directory().join("ephor.log")
}

fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        if begun.elapsed() > TIMEOUT {
            bail!("{what}: never");
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}
