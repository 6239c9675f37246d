//! What cleanup costs: many objects of which the time comes at once, before a real API server that also answers users.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;

use super::admission::enforced;
use super::process::{Killed, address, administrator, cpu, megabytes, plane};
use super::reports::{POLICIES, created};
use super::test_env::{Role, count};
use crate::say;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How long creating the objects may take before their time comes, for each of them.
const TIME_TO_CREATE: Duration = Duration::from_millis(12);
const TIMEOUT: Duration = Duration::from_mins(15);
/// How many Pods a client sends to the webhook at once, to be judged and not stored.
const PODS: usize = 50;

/// Measures `objects` `ConfigMap`s whose time comes in one second, with admission of Pods beside.
pub(super) fn due_at_once(objects: usize) -> Result<()> {
    let plane = plane()?;
    let own = |name: &str| administrator(&plane, &format!("kyverno-{name}-controller"));
    let admission = Role::start(&plane, "admission", &own("admission")?, &address()?)?;
    let cleanup = Role::start(&plane, "cleanup", &own("cleanup")?, &[])?;
    let policies = plane.directory().join("policies");
    enforced(Path::new(POLICIES), &policies)?;
    let begun = Instant::now();
    while plane.ask(&["apply", "-f", &policies.to_string_lossy()]).is_err() {
        ensure!(begun.elapsed() < TIMEOUT, "the policies cannot be applied");
    }
    plane.ask(&["wait", "--for=condition=Ready", "clusterpolicy", "--all", "--timeout=60s"])?;

    let due = Timestamp::now() + TIME_TO_CREATE * u32::try_from(objects)? + Duration::from_secs(10);
    let label = due.strftime("%Y-%m-%dT%H%M%SZ");
    let documents: Vec<String> = (0..objects)
        .map(|number| {
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: job-{number}, namespace: default, labels: \
                 {{cleanup.kyverno.io/ttl: '{label}'}}}}, data: {{result: '{}'}}}}\n",
                "x".repeat(200)
            )
        })
        .collect();
    created(&plane, &documents)?;
    ensure!(Timestamp::now() < due, "creating them took too long");
    say(&format!("{objects} ConfigMaps are there; cleanup takes {:.1} MB", megabytes(cleanup.pid(), "VmRSS")?));
    // What is there before anything is due stays.
    ensure!(count(&plane, CONFIG_MAPS)? >= objects, "an object went before its time");

    let pods = plane.directory().join("pods.json");
    let review: serde_json::Value = serde_json::from_str(&fs::read_to_string("../shared/bench/review-pod.json")?)?;
    let pod = review.pointer("/request/object").context("the review is one of a Pod")?;
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": vec![pod; PODS]});
    fs::write(&pods, list.to_string())?;
    let alone = reviews(&plane, &pods, &admission, |elapsed| Ok(elapsed > Duration::from_secs(5)))?;
    say(&format!("admission alone: {alone}"));
    sleep(Duration::try_from(due - Timestamp::now()).unwrap_or_default());
    let (spent, begun) = (cpu(cleanup.pid())?, Instant::now());
    let beside = reviews(&plane, &pods, &admission, |elapsed| {
        ensure!(elapsed < TIMEOUT, "not all of them are deleted");
        // The root certificate stays.
        Ok(count(&plane, CONFIG_MAPS)? <= 1)
    })?;
    say(&format!(
        "all deleted after {:.1} s, {:.1} s of CPU, {:.1} MB at most",
        begun.elapsed().as_secs_f64(),
        cpu(cleanup.pid())? - spent,
        megabytes(cleanup.pid(), "VmHWM")?
    ));
    say(&format!("admission beside: {beside}"));
    Ok(())
}

/// Sends Pods through the API server until `ends`; what the admission role measured of its answers.
fn reviews(
    plane: &ephor_testbed::ControlPlane,
    pods: &Path,
    admission: &Role,
    ends: impl Fn(Duration) -> Result<bool>,
) -> Result<String> {
    const METRIC: &str = "kyverno_admission_review_duration_seconds_bucket{";
    let before = admission.metrics(METRIC)?;
    let stop = plane.directory().join("stop");
    // A loop of its own, so that waiting for the end does not slow it down.
    let kubectl = plane.kubectl();
    let script = format!(
        "while [ ! -e '{}' ]; do '{}' {} create --dry-run=server -f '{}' >/dev/null 2>&1; done",
        stop.display(),
        kubectl.get_program().to_string_lossy(),
        kubectl.get_args().map(|argument| format!("'{}'", argument.to_string_lossy())).collect::<Vec<_>>().join(" "),
        pods.display()
    );
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).stdout(Stdio::null());
    shell.envs(kubectl.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut client = Killed(shell.spawn()?);
    let begun = Instant::now();
    while !ends(begun.elapsed())? {
        sleep(Duration::from_millis(100));
    }
    fs::write(&stop, "")?;
    client.0.wait()?;
    fs::remove_file(&stop)?;
    let after = admission.metrics(METRIC)?;
    // Buckets of all series together, by their upper bound.
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for (series, counted) in &after {
        let bound = series.split_once("le=\"").and_then(|(_, rest)| rest.split_once('"')).context("a bucket")?.0;
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse()? };
        let new = counted - before.get(series).copied().unwrap_or(0.0);
        match buckets.iter_mut().find(|(known, _)| known.total_cmp(&bound).is_eq()) {
            Some((_, sum)) => *sum += new,
            None => buckets.push((bound, new)),
        }
    }
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = buckets.last().map_or(0.0, |(_, all)| *all);
    let within = |share: f64| buckets.iter().find(|(_, sum)| *sum >= all * share).map_or(0.0, |(bound, _)| *bound);
    Ok(format!("{all} reviews, half within {} ms, 99 % within {} ms", within(0.5) * 1e3, within(0.99) * 1e3))
}
