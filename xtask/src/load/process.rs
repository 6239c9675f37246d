//! The processes that are measured, and those around them.

use std::fs;
use std::path::PathBuf;
use std::process::Child;

use anyhow::{Context as _, Result, ensure};
use ephor_testbed::control_plane::free_port;
use ephor_testbed::{ControlPlane, Options};

/// The release binary.
pub(super) fn ephor() -> Result<PathBuf> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let ephor = PathBuf::from(target).join("release/ephor");
    ensure!(ephor.exists(), "`cargo build --release` comes first");
    Ok(ephor)
}

/// A process that ends with this value.
pub(super) struct Killed(pub(super) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself, which shows elsewhere.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The seconds of CPU that a process has had.
pub(super) fn cpu(pid: u32) -> Result<f64> {
    /// Linux counts in hundredths of a second, whatever its own clock does.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("ephor has ended")?;
    // The name, in brackets, may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|field| field.parse::<f64>().ok()).context("odd /proc/PID/stat");
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}

/// Memory of a process in MB, as Linux counts it: `VmRSS` is resident now, `VmHWM` was the most ever.
pub(super) fn megabytes(pid: u32, what: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    Ok(line.context("odd /proc/PID/status")?.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// A kubeconfig of an account of Ephor's namespace that may do everything.
pub(super) fn administrator(plane: &ControlPlane, account: &str) -> Result<PathBuf> {
    let kubeconfig = plane.service_account_kubeconfig("kyverno", account)?;
    let subject = format!("--serviceaccount=kyverno:{account}");
    plane.ask(&["create", "clusterrolebinding", account, "--clusterrole=cluster-admin", &subject])?;
    Ok(kubeconfig)
}

/// The flags by which the API server reaches a process on this machine.
pub(super) fn address() -> Result<[String; 2]> {
    let port = free_port()?;
    Ok([format!("--serverIP=127.0.0.1:{port}"), format!("--webhookServerPort={port}")])
}

/// A control plane that knows Ephor's kinds.
pub(super) fn plane() -> Result<ControlPlane> {
    let plane = ControlPlane::start(&Options::default())?;
    plane.ask(&["create", "namespace", "kyverno"])?;
    plane.ask(&["apply", "--server-side", "-f", "charts/ephor/files/crds"])?;
    plane.ask(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
    Ok(plane)
}
