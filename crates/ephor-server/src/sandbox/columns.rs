//! The columns of built-in kinds.

use ephor_cluster::resource::Resource;
use ephor_expr::{Map, Str, Value};
use jiff::Timestamp;

use super::json_path::{self, Step};

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    title: Str,
    kind: Str,
    /// Columns above 0 are for `-o wide`.
    priority: i64,
    content: Content,
}

/// What a cell shows.
#[derive(Debug, Clone)]
enum Content {
    /// The value at a path.
    At(&'static [&'static str]),
    /// How long ago the time at that path was.
    Since(&'static [&'static str]),
    /// How long ago the time at the first of these paths was that leads to one.
    SinceAny(&'static [&'static [&'static str]]),
    /// What the function makes of the object.
    Made(fn(&Value) -> Value),
    /// What a definition says.
    Path(Vec<Step>),
}

impl Column {
    const fn of(title: &'static str, kind: &'static str, content: Content) -> Self {
        Self { title: Str::new_static(title), kind: Str::new_static(kind), priority: 0, content }
    }

    fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    /// A column of a custom kind.
    pub(super) fn custom(title: &str, kind: &str, priority: i64, path: Vec<Step>) -> Self {
        Self { title: title.into(), kind: kind.into(), priority, content: Content::Path(path) }
    }

    /// Whether the column has that title.
    pub(super) fn is_titled(&self, title: &str) -> bool {
        self.title.eq_ignore_ascii_case(title)
    }

    /// The column in the table's head.
    pub(super) fn definition(&self) -> Value {
        let format = if self.title == "Name" { "name" } else { "" };
        // A time is shown as an age, which is text.
        let kind = if self.kind == "date" { Str::new_static("string") } else { self.kind.clone() };
        Value::from([
            ("description", Value::from(self.title.clone())),
            ("format", Value::from(format)),
            ("name", Value::from(self.title.clone())),
            ("priority", Value::Int(self.priority)),
            ("type", Value::from(kind)),
        ])
    }

    /// The cell of an object.
    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.content {
            Content::At(path) => object.at(path).cloned().map_or_else(|| Value::from("<none>"), scalar),
            Content::Since(path) => age_of(object.str_at(path), now),
            Content::SinceAny(paths) => age_of(paths.iter().find_map(|path| object.str_at(path)), now),
            Content::Made(make) => make(object),
            Content::Path(path) => {
                let found = json_path::find(object, path);
                match (self.kind.as_str(), found.as_slice()) {
                    (_, []) => Value::Null,
                    ("date", [one, ..]) => age_of(one.as_str(), now),
                    ("integer" | "number" | "boolean", [one, ..]) => (*one).clone(),
                    (_, [one]) => scalar((*one).clone()),
                    (_, more) => {
                        let texts: Vec<String> =
                            more.iter().map(|v| v.as_str().map_or_else(|| v.to_json(), str::to_owned)).collect();
                        Value::from(texts.join(","))
                    }
                }
            }
        }
    }
}

fn scalar(value: Value) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) => Value::from(value.to_json()),
        scalar => scalar,
    }
}

/// The time since then as kubectl words it: two units at most, one where it is long ago.
fn age_of(since: Option<&str>, now: Timestamp) -> Value {
    let Some(since) = since.and_then(|text| text.parse::<Timestamp>().ok()) else { return Value::from("<unknown>") };
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |a: i64, unit: &str, b: i64, small: &str| {
        if b == 0 { format!("{a}{unit}") } else { format!("{a}{unit}{b}{small}") }
    };
    let text = if seconds < 120 {
        format!("{seconds}s")
    } else if seconds < 600 {
        two(minutes, "m", seconds % 60, "s")
    } else if hours < 3 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        two(days, "d", hours % 24, "h")
    } else if days < 730 {
        format!("{days}d")
    } else {
        two(days / 365, "y", days % 365, "d")
    };
    Value::from(text)
}

/// The first column of every table.
pub(super) fn name() -> Column {
    Column::of("Name", "string", Content::At(&["metadata", "name"]))
}

/// The last column of nearly every table.
pub(super) fn age() -> Column {
    Column::of("Age", "string", Content::Since(&["metadata", "creationTimestamp"]))
}

const fn at(title: &'static str, path: &'static [&'static str]) -> Column {
    Column::of(title, "string", Content::At(path))
}

const fn made(title: &'static str, make: fn(&Value) -> Value) -> Column {
    Column::of(title, "string", Content::Made(make))
}

fn number_at(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or(0)
}

fn count_at(object: &Value, path: &[&str]) -> usize {
    match object.at(path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(members)) => members.len(),
        _ => 0,
    }
}

fn joined<'v>(texts: impl Iterator<Item = &'v str>) -> Value {
    let texts: Vec<&str> = texts.collect();
    Value::from(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
}

fn list<'v>(object: &'v Value, path: &[&str]) -> &'v [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

macro_rules! number {
    ($title:literal, $($key:literal).+) => {
        Column::of($title, "integer", Content::Made(|object| Value::Int(number_at(object, &[$($key),+]))))
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

fn of_containers<'v>(object: &'v Value, key: &'static str) -> impl Iterator<Item = &'v str> {
    list(object, &["spec", "template", "spec", "containers"]).iter().filter_map(move |c| c.str_at(&[key]))
}

/// Labels as selectors are written.
fn labels(labels: Option<&Value>) -> Value {
    let labels = labels.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let terms: Vec<String> = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    joined(terms.iter().map(String::as_str))
}

/// The columns of a kind of Kubernetes itself.
pub(super) fn built_in(resource: &Resource) -> Vec<Column> {
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
            age(),
        ],
        ("batch", "jobs") => vec![ratio!("Completions", "status"."succeeded", "spec"."completions"), age()],
        ("batch", "cronjobs") => vec![
            at("Schedule", &["spec", "schedule"]),
            at("Timezone", &["spec", "timeZone"]),
            at("Suspend", &["spec", "suspend"]),
            count!("Active", "status"."active"),
            Column::of("Last Schedule", "string", Content::Since(&["status", "lastScheduleTime"])),
            age(),
        ],
        ("", "services") => vec![
            at("Type", &["spec", "type"]),
            at("Cluster-IP", &["spec", "clusterIP"]),
            made("External-IP", |service| {
                joined(list(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str))
            }),
            made("Port(s)", |service| {
                let ports = list(service, &["spec", "ports"]).iter().map(|port| {
                    format!("{}/{}", number_at(port, &["port"]), port.str_at(&["protocol"]).unwrap_or("TCP"))
                });
                let ports: Vec<String> = ports.collect();
                joined(ports.iter().map(String::as_str))
            }),
            age(),
        ],
        ("", "configmaps") => vec![count!("Data", "data"), age()],
        ("", "secrets") => vec![at("Type", &["type"]), count!("Data", "data"), age()],
        ("", "namespaces") => vec![at("Status", &["status", "phase"]), age()],
        ("", "serviceaccounts") => vec![count!("Secrets", "secrets"), age()],
        ("", "nodes") => vec![at("Version", &["status", "nodeInfo", "kubeletVersion"]), age()],
        ("", "persistentvolumeclaims") => vec![
            at("Status", &["status", "phase"]),
            at("Volume", &["spec", "volumeName"]),
            at("Capacity", &["spec", "resources", "requests", "storage"]),
            at("StorageClass", &["spec", "storageClassName"]),
            age(),
        ],
        ("", "persistentvolumes") => vec![
            at("Capacity", &["spec", "capacity", "storage"]),
            at("Reclaim Policy", &["spec", "persistentVolumeReclaimPolicy"]),
            at("Status", &["status", "phase"]),
            age(),
        ],
        ("", "events") => return events(&["involvedObject"], &["message"], &LAST_SEEN),
        ("events.k8s.io", "events") => return events(&["regarding"], &["note"], &LAST_SEEN),
        ("networking.k8s.io", "ingresses") => vec![
            at("Class", &["spec", "ingressClassName"]),
            made("Hosts", |ingress| {
                joined(list(ingress, &["spec", "rules"]).iter().map(|rule| rule.str_at(&["host"]).unwrap_or("*")))
            }),
            age(),
        ],
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
        ],
        ("coordination.k8s.io", "leases") => vec![at("Holder", &["spec", "holderIdentity"]), age()],
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            vec![count!("Webhooks", "webhooks"), age()]
        }
        ("autoscaling", _) => vec![
            number!("MinPods", "spec"."minReplicas"),
            number!("MaxPods", "spec"."maxReplicas"),
            number!("Replicas", "status"."currentReplicas"),
            age(),
        ],
        ("storage.k8s.io", "storageclasses") => vec![
            at("Provisioner", &["provisioner"]),
            at("ReclaimPolicy", &["reclaimPolicy"]),
            at("VolumeBindingMode", &["volumeBindingMode"]),
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
    std::iter::once(name()).chain(own).chain(has_template.then(templates).into_iter().flatten()).collect()
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
        Column { priority: 1, ..name() },
    ]
}

fn place(reference: Option<&Value>) -> Value {
    let part = |key: &str| reference.and_then(|r| r.str_at(&[key])).unwrap_or_default();
    Value::from(format!("{}/{}", part("kind").to_lowercase(), part("name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_worded_as_kubectl_does() {
        let then: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (seconds, want) in [
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (600, "10m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (100_000, "27h"),
            (200_000, "2d7h"),
            (8 * 86_400, "8d"),
            (800 * 86_400, "2y70d"),
        ] {
            let now = then + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(age_of(Some("2026-01-01T00:00:00Z"), now), Value::from(want), "{seconds}");
        }
    }

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
            r#"["p","0/2","Pending",0,"60s","\u003cnone\u003e","\u003cnone\u003e"]"#
        );
    }
}
