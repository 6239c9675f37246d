//! What the specification of a Pod must be like, in Pods and in the templates of workloads.

use std::collections::BTreeSet;

use ephor_expr::Value;

use crate::error::Cause;

/// Fields with few values, in the order in which an API server names them.
const POD_CHOICES: [(&str, &[&str]); 2] = [
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
    ("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
];
const CONTAINER_CHOICES: [(&str, &[&str]); 2] = [
    ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("terminationMessagePolicy", &["File", "FallbackToLogsOnError"]),
];
const PORT_CHOICES: [(&str, &[&str]); 1] = [("protocol", &["SCTP", "TCP", "UDP"])];

/// Where the kinds that make Pods have the specification of those.
pub(super) fn place(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "Pod" => Some(&["spec"]),
        "Deployment" | "DaemonSet" | "ReplicaSet" | "StatefulSet" | "ReplicationController" | "Job" => {
            Some(&["spec", "template", "spec"])
        }
        "CronJob" => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => None,
    }
}

/// What is wrong with the specification at `path`. Each claim (`volumeClaimTemplates` of a `StatefulSet`) becomes a
/// volume of its name.
pub(super) fn check(spec: &Value, path: &str, claims: &[Value], causes: &mut Vec<Cause>) {
    let volumes = list(spec, "volumes");
    let mut known = distinct(volumes, &format!("{path}.volumes"), causes);
    known.extend(claims.iter().filter_map(|claim| claim.str_at(&["metadata", "name"])));
    for key in ["initContainers", "containers"] {
        let containers = list(spec, key);
        let path = format!("{path}.{key}");
        for (index, container) in containers.iter().enumerate() {
            let path = format!("{path}[{index}]");
            for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
                let name = mount.str_at(&["name"]).unwrap_or_default();
                if !known.contains(name) {
                    causes.push(Cause::not_found(format!("{path}.volumeMounts[{index}].name"), name));
                }
            }
            if container.str_at(&["image"]).is_none_or(str::is_empty) {
                causes.push(Cause::required(format!("{path}.image"), ""));
            }
            choices(container, &path, &CONTAINER_CHOICES, causes);
            for (index, port) in list(container, "ports").iter().enumerate() {
                choices(port, &format!("{path}.ports[{index}]"), &PORT_CHOICES, causes);
            }
        }
        distinct(containers, &path, causes);
    }
    choices(spec, path, &POD_CHOICES, causes);
}

fn list<'v>(object: &'v Value, key: &str) -> &'v [Value] {
    object.get(key).and_then(Value::as_array).unwrap_or_default()
}

/// The names of the items; each may be there once.
fn distinct<'v>(items: &'v [Value], path: &str, causes: &mut Vec<Cause>) -> BTreeSet<&'v str> {
    let mut names = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let name = item.str_at(&["name"]).unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            causes.push(Cause::duplicate(format!("{path}[{index}].name"), &Value::from(name)));
        }
    }
    names
}

fn choices(object: &Value, path: &str, choices: &[(&str, &[&str])], causes: &mut Vec<Cause>) {
    for (key, allowed) in choices {
        let given = object.str_at(&[key]).filter(|given| !allowed.contains(given));
        if let Some(given) = given {
            let allowed: Vec<Value> = allowed.iter().map(|word| Value::from(*word)).collect();
            causes.push(Cause::unsupported(format!("{path}.{key}"), &Value::from(given).to_json(), &allowed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_containers_are_told() {
        let spec = Value::from_json(
            r#"{"containers":[{"name":"a","image":"x","volumeMounts":[{"name":"v"},{"name":"w"}],"imagePullPolicy":"Perhaps"},
            {"name":"a","ports":[{"protocol":"tcp"}]}],"restartPolicy":"Sometimes","volumes":[{"name":"w"},{"name":"w"}]}"#,
        )
        .unwrap();
        let mut causes = Vec::new();
        check(&spec, "spec", &[], &mut causes);
        let said: Vec<String> = causes.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                r#"spec.volumes[1].name: Duplicate value: "w""#,
                r#"spec.containers[0].volumeMounts[0].name: Not found: "v""#,
                r#"spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps": supported values: "Always", "IfNotPresent", "Never""#,
                "spec.containers[1].image: Required value",
                r#"spec.containers[1].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP""#,
                r#"spec.containers[1].name: Duplicate value: "a""#,
                r#"spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never""#,
            ]
        );
    }

    #[test]
    fn containers_mount_the_claims_of_a_stateful_set() {
        let spec = Value::from_json(r#"{"containers":[{"name":"a","image":"x","volumeMounts":[{"name":"data"}]}]}"#);
        let claim = Value::from_json(r#"{"metadata":{"name":"data"}}"#).unwrap();
        let mut causes = Vec::new();
        check(&spec.unwrap(), "spec", &[claim], &mut causes);
        assert_eq!(causes, []);
    }

    #[test]
    fn what_is_in_order_is_not_spoken_of() {
        let spec = Value::from_json(
            r#"{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"a","image":"x","imagePullPolicy":"Always",
            "volumeMounts":[{"name":"v"}],"ports":[{"protocol":"UDP"}]}],"restartPolicy":"Never","volumes":[{"name":"v"}]}"#,
        )
        .unwrap();
        let mut causes = Vec::new();
        check(&spec, "spec", &[], &mut causes);
        assert_eq!(causes, []);
    }
}
