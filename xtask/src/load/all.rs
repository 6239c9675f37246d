//! What all roles in one process take, and how one of them alone compares.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::process::{address, cpu, ephor, megabytes, plane};
use super::reports::{POLICIES, REPORTS, create_pods, until};
use super::test_env::{Role, count};
use crate::say;

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
    plane.ask(&["apply", "-f", POLICIES]).context("the policies of the benchmark set")?;
    create_pods(&plane, pods)?;

    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    flags.extend(address()?);
    let begun = Instant::now();
    let role = Role::start(&plane, "all", &kubeconfig, &flags)?;
    let reports = !flags.iter().any(|flag| flag.starts_with("--roles=") && !flag.contains("reports"));
    if reports {
        until("every Pod has a report", || Ok(count(&plane, REPORTS).is_ok_and(|count| count >= pods)))?;
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
