//! What reports cost: the role before a real API server, with the policies of the benchmark set and many Pods.
//!
//! The Pods are there before the role starts, so that creating them alone takes the bare time. Writes are those that the
//! role counts itself (`kyverno_client_queries_total`).

use std::fmt::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use ephor_testbed::ControlPlane;
use ephor_testbed::control_plane::free_port;

use super::process::{administrator, cpu, megabytes, plane};
use super::test_env::{Role, count, create, difference};
use crate::say;

pub(super) const POLICIES: &str = "../shared/bench/policies";
pub(super) const REPORTS: &str = "/apis/wgpolicyk8s.io/v1alpha2/policyreports";
/// The flag that keeps reports in memory.
const AGGREGATED: &str = "--reports-storage=aggregated";
const ACCOUNT: &str = "kyverno-reports-controller";
const NAMESPACES: usize = 23;
/// How long one step may take.
const TIMEOUT: Duration = Duration::from_mins(30);
/// The interval of scans while nothing changes, and how long that is watched.
const INTERVAL: (&str, Duration) = ("30s", Duration::from_secs(100));

/// Measures `pods` Pods, and the role with more `flags`: the first scan, an edited policy, and scans without a change.
pub(super) fn reports(pods: usize, flags: &[&str]) -> Result<()> {
    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let plane = plane()?;
    let aggregated = flags.iter().any(|flag| flag == AGGREGATED);
    if aggregated {
        flags.extend(aggregate(&plane)?);
    }
    let kubeconfig = administrator(&plane, ACCOUNT)?;
    plane.ask(&["apply", "-f", POLICIES]).context("the policies of the benchmark set")?;
    let bare = create_pods(&plane, pods)?;
    say(&format!("{pods} Pods in {:.1} s, without Ephor", bare.as_secs_f64()));

    let begun = Instant::now();
    let role = Role::start(&plane, "reports", &kubeconfig, &flags)?;
    // While nothing serves reports there is no list.
    until("every Pod has a report", || Ok(count(&plane, REPORTS).is_ok_and(|count| count >= pods)))?;
    say(&format!(
        "first scan: {:.1} s, {:.1} s of CPU, {:.1} MB at most",
        begun.elapsed().as_secs_f64(),
        cpu(role.pid())?,
        megabytes(role.pid(), "VmHWM")?
    ));
    say(&format!("API calls: {}", difference(&std::collections::BTreeMap::new(), &role.calls()?).0));
    let sample = plane.ask(&["get", "--raw", &format!("{REPORTS}?limit=200")])?;
    let sample: serde_json::Value = serde_json::from_str(&sample)?;
    let items = sample.get("items").and_then(serde_json::Value::as_array).context("a list has items")?;
    let bytes: usize = items.iter().map(|item| item.to_string().len()).sum();
    say(&format!("a report as stored: {} bytes of JSON on average", bytes / items.len().max(1)));

    let (spent, calls) = (cpu(role.pid())?, role.calls()?);
    let begun = Instant::now();
    let edit = "policies.kyverno.io/severity=critical";
    plane.ask(&["annotate", "--overwrite", "clusterpolicy", "disallow-privileged-containers", edit])?;
    until("every report knows the edited policy", || {
        if aggregated {
            let reports = plane.ask(&["get", "--raw", REPORTS])?;
            return Ok(reports.matches(r#""severity":"critical""#).count() >= pods);
        }
        let (known, now) = (writes(&calls), writes(&role.calls()?));
        Ok(now - known >= pods as f64)
    })?;
    let took = begun.elapsed().as_secs_f64();
    say(&format!("a policy edited: in every report after {took:.1} s, {:.1} s of CPU", cpu(role.pid())? - spent));
    let (memory, most) = (megabytes(role.pid(), "VmRSS")?, megabytes(role.pid(), "VmHWM")?);
    say(&format!("memory: {memory:.1} MB, {most:.1} MB at most"));
    drop(role);

    flags.push(format!("--backgroundScanInterval={}", INTERVAL.0));
    let role = Role::start(&plane, "reports", &kubeconfig, &flags)?;
    until("the role has begun", || Ok(role.calls().is_ok_and(|calls| !calls.is_empty())))?;
    sleep(INTERVAL.1);
    let (spent, calls) = (cpu(role.pid())?, role.calls()?);
    sleep(INTERVAL.1);
    let after = role.calls()?;
    let written = writes(&after) - writes(&calls);
    say(&format!(
        "scans every {} without a change, for {} s: {written} writes, {:.1} s of CPU; {}",
        INTERVAL.0,
        INTERVAL.1.as_secs(),
        cpu(role.pid())? - spent,
        difference(&calls, &after).0
    ));
    ensure!(written < 1.0, "a scan without a change wrote reports");
    Ok(())
}

/// Creates the Pods in their namespaces; how long the Pods took.
pub(super) fn create_pods(plane: &ControlPlane, pods: usize) -> Result<Duration> {
    let namespaces: Vec<String> = (0..NAMESPACES)
        .map(|number| format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: ns{number}}}}}\n"))
        .collect();
    created(plane, &namespaces)?;
    until("every namespace has its account", || {
        let accounts = plane.ask(&["get", "serviceaccounts", "-A", "-o", "name"])?;
        Ok(accounts.lines().count() > NAMESPACES)
    })?;
    let documents: Vec<String> = (0..pods).map(pod).collect();
    let begun = Instant::now();
    created(plane, &documents)?;
    Ok(begun.elapsed())
}

/// Makes room for reports in memory, as the chart does; the flags that the role needs outside of the cluster.
fn aggregate(plane: &ControlPlane) -> Result<[String; 2]> {
    plane.ask(&["delete", "crd", "policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io"])?;
    let service =
        ["create", "service", "externalname", "kyverno-reports-api", "-n", "kyverno", "--external-name=localhost"];
    plane.ask(&service)?;
    let port = free_port()?;
    Ok([format!("--reportsServerPort={port}"), format!("--servicePort={port}")])
}

pub(super) fn created(plane: &ControlPlane, documents: &[String]) -> Result<()> {
    for mut creator in create(plane, documents)? {
        ensure!(creator.wait()?.success(), "an object could not be created");
    }
    Ok(())
}

/// How many writes of reports these calls are.
fn writes(calls: &std::collections::BTreeMap<String, f64>) -> f64 {
    let reports =
        calls.iter().filter(|(call, _)| call.ends_with("Report") && !call.starts_with("get ") && !is_read(call));
    reports.map(|(_, count)| count).sum()
}

fn is_read(call: &str) -> bool {
    ["get ", "list ", "watch "].iter().any(|verb| call.to_lowercase().starts_with(verb))
}

/// One of many Pods: every third violates some policies.
fn pod(number: usize) -> String {
    let bad = number.is_multiple_of(3);
    let mut text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: pod-{number}, namespace: ns{}, labels: {{app: a{number}, env: prod}}}}\n\
         spec:\n  securityContext: {{runAsNonRoot: true, seccompProfile: {{type: RuntimeDefault}}}}\n  containers:\n",
        number % NAMESPACES
    );
    for container in 0..=number % 3 {
        let context = if bad {
            "{privileged: true}"
        } else {
            "{allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 1000, capabilities: {drop: [ALL]}}"
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  - name: c{container}\n    image: registry.example.com/team{}/app{}:1.{container}\n    securityContext: {context}\n    \
             resources: {{requests: {{cpu: 100m, memory: 128Mi}}, limits: {{memory: 1Gi}}}}",
            number % 17,
            number % 101
        );
    }
    text
}

pub(super) fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        if begun.elapsed() > TIMEOUT {
            bail!("{what}: not after {} minutes", TIMEOUT.as_secs() / 60);
        }
        sleep(Duration::from_millis(100));
    }
    Ok(())
}
