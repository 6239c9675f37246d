//! The columns of the tables of each kind: of built-in ones here, of custom ones in their definitions.

use ephor_api::column::{Column, Content, age, name};
use ephor_api::table::{self, TableColumns};
use ephor_cluster::MemoryCluster;
use ephor_cluster::resource::{Origin, Resource};
use ephor_expr::{Map, Value};

use super::cells::{
    access_modes, addresses, condition, count_at, external_addresses, joined, joined_subjects, labels, list, number_at,
    of_containers, or_none, place, quotas,
};
use super::versions;

/// The columns of all kinds that a cluster serves.
pub(super) struct DefinedColumns(pub(super) MemoryCluster);

impl TableColumns for DefinedColumns {
    fn columns(&self, resource: &Resource) -> Vec<Column> {
        if resource.origin == Origin::BuiltIn {
            return built_in(resource);
        }
        let version = versions::own(&self.0, resource);
        let declared = version.as_ref().and_then(|version| version.get("additionalPrinterColumns"));
        table::custom(declared.and_then(Value::as_array))
    }
}

const fn at(title: &'static str, path: &'static [&'static str]) -> Column {
    Column::of(title, "string", Content::At(path))
}

const fn made(title: &'static str, make: fn(&Value) -> Value) -> Column {
    Column::of(title, "string", Content::Made(make))
}

/// The value at a path, or nothing.
const fn text(title: &'static str, path: &'static [&'static str]) -> Column {
    Column::of(title, "string", Content::AtOrEmpty(path))
}

macro_rules! number {
    ($title:literal, $($key:literal).+) => {
        Column::of($title, "integer", Content::Made(|object| Value::Int(number_at(object, &[$($key),+]))))
    };
}

/// Whether something is so, in two words.
macro_rules! flag {
    ($title:literal, $($key:literal).+, $yes:literal, $no:literal) => {
        made($title, |object| {
            let is_so = object.at(&[$($key),+]).and_then(Value::as_bool) == Some(true);
            Value::from(if is_so { $yes } else { $no })
        })
    };
}

macro_rules! count {
    ($title:literal, $($key:literal).+) => {
        Column::of($title, "integer", Content::Made(|object| Value::from(count_at(object, &[$($key),+]))))
    };
}

/// `3/5` of two numbers.
macro_rules! ratio {
    ($title:literal, $($some:literal).+, $($all:literal).+) => {
        made($title, |object| {
            Value::from(format!("{}/{}", number_at(object, &[$($some),+]), number_at(object, &[$($all),+])))
        })
    };
}

/// The columns of workloads for `-o wide`.
fn templates() -> [Column; 3] {
    let containers = made("Containers", |object| joined(of_containers(object, "name")));
    let images = made("Images", |object| joined(of_containers(object, "image")));
    let selector = made("Selector", |object| {
        let selector = object.at(&["spec", "selector"]);
        labels(selector.and_then(|selector| selector.get("matchLabels").or(Some(selector))))
    });
    [containers.wide(), images.wide(), selector.wide()]
}

/// The columns of a kind of Kubernetes itself.
fn built_in(resource: &Resource) -> Vec<Column> {
    let own: Vec<Column> = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => vec![
            made("Ready", |pod| {
                let ready = list(pod, &["status", "containerStatuses"]);
                let ready = ready.iter().filter(|c| c.get("ready").and_then(Value::as_bool) == Some(true)).count();
                Value::from(format!("{ready}/{}", count_at(pod, &["spec", "containers"])))
            }),
            at("Status", &["status", "phase"]),
            made("Restarts", |pod| {
                let restarts = list(pod, &["status", "containerStatuses"]).iter();
                Value::Int(restarts.map(|c| number_at(c, &["restartCount"])).sum())
            }),
            age(),
            at("IP", &["status", "podIP"]).wide(),
            at("Node", &["spec", "nodeName"]).wide(),
            at("Nominated Node", &["status", "nominatedNodeName"]).wide(),
            made("Readiness Gates", |_| Value::from("<none>")).wide(),
        ],
        ("apps", "deployments") => vec![
            ratio!("Ready", "status"."readyReplicas", "spec"."replicas"),
            number!("Up-to-date", "status"."updatedReplicas"),
            number!("Available", "status"."availableReplicas"),
            age(),
        ],
        ("apps", "statefulsets") => vec![ratio!("Ready", "status"."readyReplicas", "spec"."replicas"), age()],
        ("apps", "replicasets") | ("", "replicationcontrollers") => vec![
            number!("Desired", "spec"."replicas"),
            number!("Current", "status"."replicas"),
            number!("Ready", "status"."readyReplicas"),
            age(),
        ],
        ("apps", "daemonsets") => vec![
            number!("Desired", "status"."desiredNumberScheduled"),
            number!("Current", "status"."currentNumberScheduled"),
            number!("Ready", "status"."numberReady"),
            number!("Up-to-date", "status"."updatedNumberScheduled"),
            number!("Available", "status"."numberAvailable"),
            made("Node Selector", |set| labels(set.at(&["spec", "template", "spec", "nodeSelector"]))),
            age(),
        ],
        ("batch", "jobs") => vec![
            made("Status", |job| {
                let said = ["Complete", "Failed", "Suspended"].into_iter().find(|kind| condition(job, kind) == "True");
                Value::from(said.unwrap_or("Running"))
            }),
            ratio!("Completions", "status"."succeeded", "spec"."completions"),
            age(),
        ],
        ("batch", "cronjobs") => vec![
            at("Schedule", &["spec", "schedule"]),
            at("Timezone", &["spec", "timeZone"]),
            flag!("Suspend", "spec"."suspend", "True", "False"),
            count!("Active", "status"."active"),
            at("Last Schedule", &["status", "lastScheduleTime"]),
            age(),
        ],
        ("", "services") => vec![
            at("Type", &["spec", "type"]),
            at("Cluster-IP", &["spec", "clusterIP"]),
            made("External-IP", external_addresses),
            made("Port(s)", |service| {
                let ports = list(service, &["spec", "ports"]).iter().map(|port| {
                    let node = port.get("nodePort").map(|node| format!(":{}", node.to_json())).unwrap_or_default();
                    format!("{}{node}/{}", number_at(port, &["port"]), port.str_at(&["protocol"]).unwrap_or("TCP"))
                });
                let ports: Vec<String> = ports.collect();
                joined(ports.iter().map(String::as_str))
            }),
            age(),
            made("Selector", |service| labels(service.at(&["spec", "selector"]))).wide(),
        ],
        ("", "configmaps") => vec![count!("Data", "data"), age()],
        ("", "secrets") => vec![at("Type", &["type"]), count!("Data", "data"), age()],
        ("", "namespaces") => vec![at("Status", &["status", "phase"]), age()],
        ("", "serviceaccounts") => vec![count!("Secrets", "secrets"), age()],
        ("", "nodes") => vec![
            made("Status", |node| {
                let ready = match condition(node, "Ready") {
                    "True" => "Ready",
                    "" => "Unknown",
                    _ => "NotReady",
                };
                let cordoned = node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true);
                Value::from(format!("{ready}{}", if cordoned { ",SchedulingDisabled" } else { "" }))
            }),
            made("Roles", |node| {
                let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
                joined(
                    labels
                        .into_iter()
                        .flat_map(Map::keys)
                        .filter_map(|key| key.strip_prefix("node-role.kubernetes.io/")),
                )
            }),
            age(),
            text("Version", &["status", "nodeInfo", "kubeletVersion"]),
        ],
        ("", "persistentvolumeclaims") => vec![
            at("Status", &["status", "phase"]),
            text("Volume", &["spec", "volumeName"]),
            text("Capacity", &["status", "capacity", "storage"]),
            made("Access Modes", access_modes),
            text("StorageClass", &["spec", "storageClassName"]),
            age(),
            at("VolumeMode", &["spec", "volumeMode"]).wide(),
        ],
        ("", "persistentvolumes") => vec![
            at("Capacity", &["spec", "capacity", "storage"]),
            made("Access Modes", access_modes),
            at("Reclaim Policy", &["spec", "persistentVolumeReclaimPolicy"]),
            at("Status", &["status", "phase"]),
            made("Claim", |volume| match volume.at(&["spec", "claimRef"]) {
                Some(claim) => {
                    let part = |key: &str| claim.str_at(&[key]).unwrap_or_default();
                    Value::from(format!("{}/{}", part("namespace"), part("name")))
                }
                None => Value::from(""),
            }),
            text("StorageClass", &["spec", "storageClassName"]),
            age(),
            at("VolumeMode", &["spec", "volumeMode"]).wide(),
        ],
        ("", "resourcequotas") => {
            vec![made("Request", |quota| quotas(quota, false)), made("Limit", |quota| quotas(quota, true)), age()]
        }
        ("", "limitranges") => vec![at("Created At", &["metadata", "creationTimestamp"])],
        ("", "endpoints") => vec![
            made("Endpoints", |endpoints| {
                let subsets = list(endpoints, &["subsets"]).iter();
                joined(subsets.flat_map(|subset| list(subset, &["addresses"])).filter_map(|a| a.str_at(&["ip"])))
            }),
            age(),
        ],
        ("", "events") => return events(&["involvedObject"], &["message"], &LAST_SEEN),
        ("events.k8s.io", "events") => return events(&["regarding"], &["note"], &LAST_SEEN),
        ("networking.k8s.io", "ingresses") => vec![
            at("Class", &["spec", "ingressClassName"]),
            made("Hosts", |ingress| {
                joined(list(ingress, &["spec", "rules"]).iter().map(|rule| rule.str_at(&["host"]).unwrap_or("*")))
            }),
            made("Address", |ingress| Value::from(addresses(ingress).join(","))),
            made("Ports", |ingress| {
                Value::from(if list(ingress, &["spec", "tls"]).is_empty() { "80" } else { "80, 443" })
            }),
            age(),
        ],
        ("networking.k8s.io", "ingressclasses") => vec![
            at("Controller", &["spec", "controller"]),
            made("Parameters", |class| match class.at(&["spec", "parameters"]) {
                Some(to) => Value::from(format!(
                    "{}/{}",
                    to.str_at(&["kind"]).unwrap_or_default(),
                    to.str_at(&["name"]).unwrap_or_default()
                )),
                None => Value::from("<none>"),
            }),
            age(),
        ],
        ("policy", "poddisruptionbudgets") => vec![
            made("Min Available", |budget| or_none(budget, &["spec", "minAvailable"])),
            made("Max Unavailable", |budget| or_none(budget, &["spec", "maxUnavailable"])),
            number!("Allowed Disruptions", "status"."disruptionsAllowed"),
            age(),
        ],
        ("scheduling.k8s.io", "priorityclasses") => vec![
            number!("Value", "value"),
            flag!("Global-Default", "globalDefault", "true", "false"),
            age(),
            at("PreemptionPolicy", &["preemptionPolicy"]),
        ],
        ("node.k8s.io", "runtimeclasses") => vec![at("Handler", &["handler"]), age()],
        ("networking.k8s.io", "networkpolicies") => {
            vec![made("Pod-Selector", |policy| labels(policy.at(&["spec", "podSelector", "matchLabels"]))), age()]
        }
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") | ("apiextensions.k8s.io", _) => {
            vec![at("Created At", &["metadata", "creationTimestamp"])]
        }
        ("rbac.authorization.k8s.io", _) => vec![
            made("Role", |binding| {
                let part = |key: &str| binding.str_at(&["roleRef", key]).unwrap_or_default();
                Value::from(format!("{}/{}", part("kind"), part("name")))
            }),
            age(),
            made("Users", |binding| joined_subjects(binding, "User")).wide(),
            made("Groups", |binding| joined_subjects(binding, "Group")).wide(),
            made("ServiceAccounts", |binding| joined_subjects(binding, "ServiceAccount")).wide(),
        ],
        ("coordination.k8s.io", "leases") => vec![at("Holder", &["spec", "holderIdentity"]), age()],
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            vec![count!("Webhooks", "webhooks"), age()]
        }
        ("autoscaling", _) => vec![
            made("Reference", |scaler| {
                let part = |key: &str| scaler.str_at(&["spec", "scaleTargetRef", key]).unwrap_or_default();
                Value::from(format!("{}/{}", part("kind"), part("name")))
            }),
            made("Targets", |scaler| {
                let of = |metric: &Value| {
                    let resource = metric.get("resource")?;
                    let name = resource.str_at(&["name"])?;
                    let share = resource.at(&["target", "averageUtilization"]).map(|share| share.to_json() + "%");
                    let value = resource.str_at(&["target", "averageValue"]).map(str::to_owned);
                    Some(format!("{name}: <unknown>/{}", share.or(value)?))
                };
                let targets: Vec<String> = list(scaler, &["spec", "metrics"]).iter().filter_map(of).collect();
                joined(targets.iter().map(String::as_str))
            }),
            number!("MinPods", "spec"."minReplicas"),
            number!("MaxPods", "spec"."maxReplicas"),
            number!("Replicas", "status"."currentReplicas"),
            age(),
        ],
        ("storage.k8s.io", "storageclasses") => vec![
            at("Provisioner", &["provisioner"]),
            at("ReclaimPolicy", &["reclaimPolicy"]),
            at("VolumeBindingMode", &["volumeBindingMode"]),
            flag!("AllowVolumeExpansion", "allowVolumeExpansion", "true", "false"),
            age(),
        ],
        _ => vec![age()],
    };
    let has_template = matches!(
        (resource.group.as_str(), resource.plural.as_str()),
        ("apps", "deployments" | "statefulsets" | "replicasets" | "daemonsets")
            | ("batch", "jobs")
            | ("", "replicationcontrollers")
    );
    let templates = has_template.then(templates).into_iter().flatten();
    // The selector of a StatefulSet is not shown.
    let templates = templates.take(if resource.plural == "statefulsets" { 2 } else { 3 });
    std::iter::once(name()).chain(own).chain(templates).collect()
}

/// When an event happened last, in all forms of events. New events have a time and, once repeated, a series.
const LAST_SEEN: [&[&str]; 4] =
    [&["series", "lastObservedTime"], &["lastTimestamp"], &["deprecatedLastTimestamp"], &["eventTime"]];

fn events(
    about: &'static [&'static str],
    note: &'static [&'static str],
    last: &'static [&'static [&'static str]],
) -> Vec<Column> {
    let object: fn(&Value) -> Value = if about == ["regarding"] {
        |event| place(event.get("regarding"))
    } else {
        |event| place(event.get("involvedObject"))
    };
    vec![
        Column::of("Last Seen", "string", Content::SinceAny(last)),
        at("Type", &["type"]),
        at("Reason", &["reason"]),
        made("Object", object),
        at("Message", note),
        name().wide(),
    ]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let discovery = ephor_cluster::Discovery::kubernetes();
        let pod = discovery.find("v1", "Pod").unwrap();
        let object = Value::from_json(
            r#"{"metadata":{"name":"p","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{},{}]},"status":{"phase":"Pending"}}"#,
        )
        .unwrap();
        let cells: Vec<Value> = built_in(pod).iter().map(|column| column.cell(&object, now)).collect();
        assert_eq!(
            Value::array(cells).to_json(),
            r#"["p","0/2","Pending",0,"60s","\u003cnone\u003e","\u003cnone\u003e","\u003cnone\u003e","\u003cnone\u003e"]"#
        );
    }
}
