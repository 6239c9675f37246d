//! What all roles in one process take, and how one of them alone compares.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ephor_testbed::control_plane::free_port;

use super::process::{cpu, ephor, megabytes, plane};
use super::reports::{NAMESPACES, POLICIES, REPORTS, created, pod};
use super::test_env::{Role, count};
use crate::say;

const TIMEOUT: Duration = Duration::from_mins(5);

/// Starts all roles, with more `flags`, the policies of the benchmark set and `pods` Pods.
pub(super) fn all(pods: usize, flags: &[&str]) -> Result<()> {
    let plane = plane()?;
    let account = "kyverno-admission-controller";
    // The rights of an installation say which kinds can be followed at all.
    let installation = Command::new(ephor()?).args(["install", "--print", "--all-in-one"]).output()?;
    let file = plane.directory().join("install.yaml");
    fs::write(&file, installation.stdout)?;
    plane.ask(&["apply", "--server-side", "--force-conflicts", "-f", &file.to_string_lossy()])?;
    let kubeconfig = plane.service_account_kubeconfig("kyverno", account)?;
    ensure!(Path::new(POLICIES).is_dir(), "{POLICIES} is not there");
    plane.ask(&["apply", "-f", POLICIES])?;
    let namespaces: Vec<String> = (0..NAMESPACES)
        .map(|number| format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: ns{number}}}}}\n"))
        .collect();
    created(&plane, &namespaces)?;
    let begun = Instant::now();
    while plane.ask(&["get", "serviceaccounts", "-A", "-o", "name"])?.lines().count() <= NAMESPACES {
        ensure!(begun.elapsed() < TIMEOUT, "a namespace has no account");
        sleep(Duration::from_millis(100));
    }
    created(&plane, &(0..pods).map(pod).collect::<Vec<_>>())?;

    let port = free_port()?;
    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    flags.extend([format!("--serverIP=127.0.0.1:{port}"), format!("--webhookServerPort={port}")]);
    let begun = Instant::now();
    let role = Role::start(&plane, "all", &kubeconfig, &flags)?;
    let reports = !flags.iter().any(|flag| flag.starts_with("--roles=") && !flag.contains("reports"));
    while reports && !count(&plane, REPORTS).is_ok_and(|count| count >= pods) {
        ensure!(begun.elapsed() < TIMEOUT, "not every Pod has a report");
        sleep(Duration::from_millis(100));
    }
    if reports {
        say(&format!("every Pod has a report after {:.1} s", begun.elapsed().as_secs_f64()));
    }
    sleep(Duration::from_secs(30));
    say(&format!(
        "{:.1} MB ({:.1} MB without the executable), {:.1} MB at most, {:.1} s of CPU",
        megabytes(role.pid(), "VmRSS")?,
        megabytes(role.pid(), "RssAnon")?,
        megabytes(role.pid(), "VmHWM")?,
        cpu(role.pid())?
    ));
    Ok(())
}
