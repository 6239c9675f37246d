//! What the `Priority` and `DefaultTolerationSeconds` admission of an API server add to new Pods, before webhooks see
//! them.
//!
//! A Pod with a priority class that is not there is let in: nothing runs here that would need it.

use ephor_cluster::{Cluster as _, ListQuery, MemoryCluster};
use ephor_expr::{Map, Value};

/// Nodes in these states lose their Pods, after a while.
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const TOLERATION_SECONDS: i64 = 300;

/// The Pod with its priority and with the usual tolerations.
pub(super) fn admitted(cluster: &MemoryCluster, mut pod: Value) -> Value {
    let classes = cluster.resolve("scheduling.k8s.io/v1", "PriorityClass");
    let classes = classes.and_then(|kind| cluster.list(&kind, &ListQuery::all())).map(|list| list.items);
    if let Some(spec) = pod.as_object_mut().and_then(|pod| pod.get_mut("spec")).and_then(Value::as_object_mut) {
        prioritize(spec, &classes.unwrap_or_default());
        tolerate(spec);
    }
    pod
}

fn prioritize(spec: &mut Map, classes: &[Value]) {
    let name = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let found = classes.iter().find(|class| match name.as_str() {
        "" => class.get("globalDefault").and_then(Value::as_bool) == Some(true),
        name => class.str_at(&["metadata", "name"]) == Some(name),
    });
    if found.is_none() && !name.is_empty() {
        return;
    }
    if let Some(own) = found.and_then(|class| class.str_at(&["metadata", "name"])) {
        spec.insert("priorityClassName", own);
    }
    let value = found.and_then(|class| class.get("value")).and_then(Value::as_i64).unwrap_or(0);
    spec.insert("priority", value);
    if spec.get("preemptionPolicy").is_none() {
        let policy = found.and_then(|class| class.str_at(&["preemptionPolicy"])).unwrap_or("PreemptLowerPriority");
        spec.insert("preemptionPolicy", policy);
    }
}

fn tolerate(spec: &mut Map) {
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).unwrap_or_default().to_vec();
    for taint in TAINTS {
        let covers = |toleration: &Value| {
            let text = |key: &str| toleration.str_at(&[key]).unwrap_or_default();
            matches!(text("effect"), "" | "NoExecute") && (text("key").is_empty() || text("key") == taint)
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(Value::from([
                ("effect", Value::from("NoExecute")),
                ("key", Value::from(taint)),
                ("operator", Value::from("Exists")),
                ("tolerationSeconds", Value::Int(TOLERATION_SECONDS)),
            ]));
        }
    }
    spec.insert("tolerations", tolerations);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::from_json(text).unwrap()
    }

    fn prioritized(spec: &str, classes: &[Value]) -> String {
        let mut spec = json(spec).as_object().unwrap().clone();
        prioritize(&mut spec, classes);
        Value::object(spec).to_json()
    }

    #[test]
    fn a_class_gives_its_priority() {
        let usual = json(r#"{"metadata":{"name":"usual"},"globalDefault":true,"value":5,"preemptionPolicy":"Never"}"#);
        let high = json(r#"{"metadata":{"name":"high"},"value":9}"#);
        let both = [usual, high];
        for (spec, classes, want) in [
            ("{}", &[][..], r#"{"preemptionPolicy":"PreemptLowerPriority","priority":0}"#),
            ("{}", &both, r#"{"preemptionPolicy":"Never","priority":5,"priorityClassName":"usual"}"#),
            (
                r#"{"priorityClassName":"high"}"#,
                &both,
                r#"{"preemptionPolicy":"PreemptLowerPriority","priority":9,"priorityClassName":"high"}"#,
            ),
            (r#"{"priorityClassName":"none"}"#, &both, r#"{"priorityClassName":"none"}"#),
        ] {
            assert_eq!(prioritized(spec, classes), want, "{spec}");
        }
    }

    #[test]
    fn nodes_that_fail_are_tolerated_for_a_while_unless_the_pod_says_otherwise() {
        for (tolerations, added) in [
            ("[]", 2),
            (r#"[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute","operator":"Exists"}]"#, 1),
            (r#"[{"operator":"Exists"}]"#, 0),
            (r#"[{"key":"other","operator":"Exists"}]"#, 2),
            (r#"[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]"#, 2),
        ] {
            let given = json(tolerations);
            let mut spec = Map::from_iter([("tolerations".into(), given.clone())]);
            tolerate(&mut spec);
            let count = |value: &Value| value.as_array().unwrap().len();
            assert_eq!(count(spec.get("tolerations").unwrap()) - count(&given), added, "{tolerations}");
        }
    }
}
