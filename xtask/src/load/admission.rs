//! `cargo xtask load`: what admission costs, measured from outside.
//!
//! The release binary guards a real API server with the Pod security policies of the benchmark set, all enforced, and
//! `wrk` sends it the same review over TLS, on one connection and on ten, in turns. Time per request is wrk's, CPU is
//! what the kernel counted for the process, memory is its resident set at the end. The machine should be idle.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use ephor_testbed::ControlPlane;

use super::process::{Killed, cpu, ephor, megabytes, plane};
use crate::say;

const ROUNDS: usize = 5;
const SECONDS: u32 = 8;
const BENCH: &str = "../shared/bench";

/// One run of wrk.
#[derive(Debug, Clone, Copy)]
struct Run {
    per_second: f64,
    p50: f64,
    p99: f64,
    cpu: f64,
}

pub(super) fn load() -> Result<()> {
    let ephor = ephor()?;
    ensure!(Command::new("wrk").arg("-v").stdout(Stdio::null()).status().is_ok(), "wrk is needed");
    let plane = plane()?;
    let policies = plane.directory().join("policies");
    enforced(&Path::new(BENCH).join("policies"), &policies)?;
    plane.ask(&["apply", "-f", &policies.to_string_lossy()])?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let log = fs::File::create(plane.directory().join("ephor.log"))?;
    let server = Command::new(ephor)
        .args(["serve", "admission", "--disableMetrics=true"])
        .arg(format!("--kubeconfig={}", plane.kubeconfig().display()))
        .arg(format!("--serverIP=127.0.0.1:{port}"))
        .arg(format!("--webhookServerPort={port}"))
        .stderr(log)
        .spawn()?;
    let server = Killed(server);
    let pid = server.0.id();
    until_it_refuses(&plane)?;
    say(&format!("ephor {pid} guards {}; {ROUNDS} rounds of {SECONDS} s each", plane.url()));
    let url = format!("https://127.0.0.1:{port}/validate/fail");
    let mut runs = [Vec::new(), Vec::new()];
    wrk(&url, 10, 2, pid)?;
    for _ in 0..ROUNDS {
        for (runs, connections) in runs.iter_mut().zip([1, 10]) {
            runs.push(wrk(&url, connections, SECONDS, pid)?);
        }
    }
    for (runs, connections) in runs.iter().zip([1, 10]) {
        let middle = |of: fn(&Run) -> f64| median(runs.iter().map(of).collect());
        say(&format!(
            "{connections:>2} connections: {:.0} requests/s, p50 {:.2} ms, p99 {:.2} ms, {:.3} ms of CPU each",
            middle(|run| run.per_second),
            middle(|run| run.p50),
            middle(|run| run.p99),
            middle(|run| run.cpu),
        ));
    }
    say(&format!("resident: {:.1} MB", megabytes(pid, "VmRSS")?));
    Ok(())
}

/// Writes the policies of a directory to another, all enforced.
pub(super) fn enforced(from: &Path, to: &PathBuf) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("{} is not there", from.display()))? {
        let entry = entry?;
        let text = fs::read_to_string(entry.path())?;
        fs::write(
            to.join(entry.file_name()),
            text.replace("validationFailureAction: Audit", "validationFailureAction: Enforce"),
        )?;
    }
    Ok(())
}

/// Waits until a Pod that breaks the policies is refused.
fn until_it_refuses(plane: &ControlPlane) -> Result<()> {
    let manifest = plane.directory().join("bad.yaml");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, namespace: default}\n\
               spec: {hostNetwork: true, containers: [{name: c, image: nginx}]}\n";
    fs::write(&manifest, pod)?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_mins(1) {
        let tried = plane.kubectl().args(["create", "--dry-run=server", "-f"]).arg(&manifest).output()?;
        if String::from_utf8_lossy(&tried.stderr).contains("disallow-host-namespaces") {
            return Ok(());
        }
        sleep(Duration::from_millis(200));
    }
    let log = fs::read_to_string(plane.directory().join("ephor.log")).unwrap_or_default();
    bail!("a bad Pod is not refused after a minute\n{log}")
}

fn wrk(url: &str, connections: u32, seconds: u32, pid: u32) -> Result<Run> {
    let before = cpu(pid)?;
    let output = Command::new("wrk")
        .args([
            "--latency",
            &format!("-t{}", connections.min(2)),
            &format!("-c{connections}"),
            &format!("-d{seconds}s"),
        ])
        .args(["-s", &format!("{BENCH}/wrk-post.lua"), url])
        .env("BODY", format!("{BENCH}/review-pod.json"))
        .output()?;
    let spent = cpu(pid)? - before;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(!text.contains("Non-2xx"), "not every request was answered:\n{text}");
    let find = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key)).map(str::trim);
    let number = |key: &str| find(key).with_context(|| format!("wrk said:\n{text}"));
    let requests: f64 = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())
        .with_context(|| format!("wrk said:\n{text}"))?;
    Ok(Run {
        per_second: number("Requests/sec:")?.parse()?,
        p50: milliseconds(number("50%")?)?,
        p99: milliseconds(number("99%")?)?,
        cpu: spent * 1000.0 / requests,
    })
}

/// A time as wrk writes it.
fn milliseconds(text: &str) -> Result<f64> {
    for (unit, factor) in [("us", 0.001), ("ms", 1.0), ("s", 1000.0)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Ok(number.parse::<f64>()? * factor);
        }
    }
    bail!("`{text}` is no time")
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}
