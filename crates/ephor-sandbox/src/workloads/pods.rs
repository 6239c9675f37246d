//! Pods and their claims as a scheduler, a kubelet and a provisioner leave them. No process runs.

use std::net::Ipv4Addr;

use ephor_cluster::object;
use ephor_expr::Value;

use super::write::{Controller, condition, now};

/// The address of the only node, of the range for documentation.
const HOST: &str = "192.0.2.1";

/// Whether a Pod is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().any(|c| c.str_at(&["type"]) == Some("Ready") && c.str_at(&["status"]) == Some("True"))
}

/// Gives every Pod the status of one that runs; the Pods of Jobs and of Helm's tests have succeeded.
pub(super) fn start(kubelet: &Controller) {
    for pod in kubelet.list("v1", "Pod") {
        let gated =
            pod.at(&["spec", "schedulingGates"]).and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
        if object::is_deleting(&pod) || gated {
            continue;
        }
        kubelet.set_status(&pod, status(&pod));
    }
}

/// Whether a Pod's processes come to an end: those of a Job, and of a test that `helm test` waits for.
fn ends(pod: &Value) -> bool {
    let owners = pod.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    let hooks = pod.str_at(&["metadata", "annotations", "helm.sh/hook"]).unwrap_or_default();
    let is_test = hooks.split(',').any(|hook| matches!(hook.trim(), "test" | "test-success"));
    let runs_once = owners.is_empty() && pod.str_at(&["spec", "restartPolicy"]) == Some("Never");
    owners.iter().any(|owner| owner.str_at(&["kind"]) == Some("Job")) || is_test && runs_once
}

fn status(pod: &Value) -> Value {
    let ended_well = ends(pod);
    let begun = pod.at(&["status", "startTime"]).cloned().unwrap_or_else(now);
    let running = Value::from([("running", Value::from([("startedAt", begun.clone())]))]);
    let ended = Value::from([(
        "terminated",
        Value::from([
            ("exitCode", Value::Int(0)),
            ("finishedAt", begun.clone()),
            ("reason", Value::from("Completed")),
            ("startedAt", begun.clone()),
        ]),
    )]);
    let reason = if ended_well { "PodCompleted" } else { "" };
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .into_iter()
        .filter(|name| !ended_well || !matches!(*name, "Ready" | "ContainersReady"))
        .map(|name| condition(pod, name, reason, ""));
    let ip = address(object::text(pod, "uid"), 10, 244);
    let state = if ended_well { &ended } else { &running };
    Value::from([
        ("conditions", Value::array(conditions.collect())),
        ("containerStatuses", containers(pod, "containers", state)),
        ("ephemeralContainerStatuses", containers(pod, "ephemeralContainers", &running)),
        ("hostIP", Value::from(HOST)),
        ("initContainerStatuses", containers(pod, "initContainers", &ended)),
        ("phase", Value::from(if ended_well { "Succeeded" } else { "Running" })),
        ("podIP", Value::from(ip.as_str())),
        ("podIPs", Value::array(vec![Value::from([("ip", Value::from(ip))])])),
        ("qosClass", pod.at(&["status", "qosClass"]).cloned().unwrap_or_else(|| Value::from("BestEffort"))),
        ("startTime", begun),
    ])
}

/// The statuses of the containers in a list of the specification; null if there are none.
fn containers(pod: &Value, list: &str, state: &Value) -> Value {
    let containers = pod.at(&["spec", list]).and_then(Value::as_array).unwrap_or_default();
    if containers.is_empty() {
        return Value::Null;
    }
    let runs = state.get("running").is_some();
    let statuses = containers.iter().map(|container| {
        let image = container.str_at(&["image"]).unwrap_or_default();
        Value::from([
            ("image", Value::from(image)),
            ("imageID", Value::from(image)),
            ("name", Value::from(container.str_at(&["name"]).unwrap_or_default())),
            // A sidecar or an ordinary container is ready while it runs, an init container once it ended.
            ("ready", Value::Bool(runs || list == "initContainers")),
            ("restartCount", Value::Int(0)),
            ("started", Value::Bool(runs)),
            ("state", state.clone()),
        ])
    });
    Value::array(statuses.collect())
}

/// An address for an object, the same in each pass.
pub(super) fn address(uid: &str, first: u8, second: u8) -> String {
    let sum = uid.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let [_, _, third, fourth] = sum.to_be_bytes();
    Ipv4Addr::new(first, second, third, fourth.clamp(1, 254)).to_string()
}

/// Binds claims to volumes that do not exist.
pub(super) fn bind_claims(binder: &Controller) {
    for claim in binder.list("v1", "PersistentVolumeClaim") {
        if object::is_deleting(&claim) {
            continue;
        }
        let capacity = claim.at(&["spec", "resources", "requests"]).cloned().unwrap_or_default();
        let modes = claim.at(&["spec", "accessModes"]).cloned().unwrap_or_default();
        let status = Value::from([("accessModes", modes), ("capacity", capacity), ("phase", Value::from("Bound"))]);
        binder.set_status(&claim, status);
    }
}
