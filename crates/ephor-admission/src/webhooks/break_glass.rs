//! Break-glass: makes the resource webhooks fail open for a limited time.
//!
//! [`open`] sets the resource webhooks to `Ignore` and writes the deadline into an annotation on their configurations,
//! both in one write. Ephor need not be running. The leader keeps it until the deadline, then reverts it. A deadline
//! that cannot be read or lies too far away does not count.

use std::time::Duration;

use ephor_cluster::{Cluster, ClusterError, ErrorKind, Patch, WriteOptions};
use ephor_expr::{Map, Value};
use jiff::Timestamp;

use super::names::Names;
use super::plan::ConfigurationKind;
use super::settings::Serving;

/// The annotation on a resource webhook configuration: RFC 3339.
pub const ANNOTATION: &str = "ephor.dev/break-glass-until";

/// No glass stays open longer.
pub const MAX_DURATION: Duration = Duration::from_hours(24);

/// The deadline that a configuration carries, if it counts at `now`.
pub fn deadline(configuration: &Value, now: Timestamp) -> Option<Timestamp> {
    let text = configuration.str_at(&["metadata", "annotations", ANNOTATION])?;
    let until: Timestamp = text.parse().ok()?;
    let latest = now.checked_add(MAX_DURATION).unwrap_or(Timestamp::MAX);
    (until > now && until <= latest).then_some(until)
}

/// The two configurations that break-glass is about.
pub fn configurations() -> [(ConfigurationKind, ephor_expr::Str); 2] {
    let names = Names::of(Serving::Enforcing);
    [
        (ConfigurationKind::Mutating, names.configuration("resource-mutating")),
        (ConfigurationKind::Validating, names.configuration("resource-validating")),
    ]
}

/// `configuration` as it is while the glass is open until then.
#[must_use]
pub fn opened(configuration: &Value, until: Timestamp) -> Value {
    let mut opened = configuration.clone();
    let Some(members) = opened.as_object_mut() else { return opened };
    for webhook in members.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(webhook) = webhook.as_object_mut() {
            webhook.insert("failurePolicy", "Ignore");
        }
    }
    let metadata = members.entry("metadata");
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    if let Some(metadata) = metadata.as_object_mut() {
        let annotations = metadata.entry("annotations");
        if annotations.as_object().is_none() {
            *annotations = Value::object(Map::new());
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(ANNOTATION, until.to_string());
        }
    }
    opened
}

/// Opens the glass until `until`. How many configurations were changed; those that do not exist need no glass.
pub fn open(cluster: &dyn Cluster, until: Timestamp) -> Result<usize, ClusterError> {
    let mut changed = 0;
    for (kind, name) in configurations() {
        let resource = cluster.resolve("admissionregistration.k8s.io/v1", kind.as_str())?;
        let mut attempts = 0;
        loop {
            let live = match cluster.get(&resource, None, &name) {
                Ok(live) => live,
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            attempts += 1;
            match cluster.update(&resource, opened(&live, until), &WriteOptions::default()) {
                Ok(_) => {
                    changed += 1;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Conflict && attempts < 10 => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(changed)
}

/// Ends it early: takes the deadline away, whereupon the leader reverts the rest. How many configurations had one.
pub fn close(cluster: &dyn Cluster) -> Result<usize, ClusterError> {
    let mut changed = 0;
    for (kind, name) in configurations() {
        let resource = cluster.resolve("admissionregistration.k8s.io/v1", kind.as_str())?;
        let live = match cluster.get(&resource, None, &name) {
            Ok(live) => live,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if live.at(&["metadata", "annotations", ANNOTATION]).is_some() {
            let none = Value::from([(ANNOTATION, Value::Null)]);
            let patch = Value::from([("metadata", Value::from([("annotations", none)]))]);
            cluster.patch(&resource, None, &name, &Patch::merge(patch), &WriteOptions::default())?;
            changed += 1;
        }
    }
    Ok(changed)
}

/// The Event that says since when and until when, written beside the configurations. Who opened the glass is in it as
/// far as the cluster tells.
pub fn announce(cluster: &dyn Cluster, now: Timestamp, until: Timestamp) -> Result<(), ClusterError> {
    let who = cluster
        .resolve("authentication.k8s.io/v1", "SelfSubjectReview")
        .and_then(|review| {
            let document = [("apiVersion", "authentication.k8s.io/v1"), ("kind", "SelfSubjectReview")];
            let document = document.map(|(key, text)| (key, Value::from(text)));
            cluster.create(&review, Value::from(document), &WriteOptions::default())
        })
        .ok()
        .and_then(|answer| answer.str_at(&["status", "userInfo", "username"]).map(str::to_owned))
        .unwrap_or_else(|| "an unknown user".to_owned());
    let (kind, name) = configurations()[1].clone();
    let event = Value::from([
        ("apiVersion", Value::from("events.k8s.io/v1")),
        ("kind", "Event".into()),
        (
            "metadata",
            Value::from([
                ("name", Value::from(format!("{name}.{:x}", now.as_nanosecond()))),
                ("namespace", "default".into()),
            ]),
        ),
        ("eventTime", now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into()),
        ("type", "Warning".into()),
        ("reason", "BreakGlass".into()),
        ("action", "FailurePolicyIgnored".into()),
        ("note", format!("{who} lets requests through until {until} when policies cannot be asked").into()),
        ("reportingController", "ephor".into()),
        ("reportingInstance", "ephor-break-glass".into()),
        (
            "regarding",
            Value::from([
                ("apiVersion", Value::from("admissionregistration.k8s.io/v1")),
                ("kind", kind.as_str().into()),
                ("name", name.into()),
            ]),
        ),
    ]);
    let events = cluster.resolve("events.k8s.io/v1", "Event")?;
    cluster.create(&events, event, &WriteOptions::default()).map(|_| ())
}
