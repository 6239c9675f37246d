//! Taking away what a scenario left.
//!
//! Upstream deletes what a scenario made and hopes for the rest; leftovers then decide later scenarios. Here everything
//! that was not there in the beginning goes, also what controllers made, and namespaces do not take their five seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ephor_expr::{Map, Value};
use ureq::http::Method;

use crate::api::{Api, ApiError, Kind};

/// How long leftovers may resist.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Kinds that are not swept: they belong to the machinery, or go with something else.
const KEPT: [&str; 5] = ["Lease", "APIService", "Event", "FlowSchema", "PriorityLevelConfiguration"];

/// Kinds that controllers make of others.
const FOLLOWERS: [&str; 6] = ["ReplicaSet", "Pod", "Job", "UpdateRequest", "ConfigMap", "Secret"];

/// What was there in the beginning.
#[derive(Debug)]
pub struct Baseline {
    objects: BTreeSet<Identity>,
    /// Objects whose data and labels are put back.
    restored: BTreeMap<Identity, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    fn of(kind: &Kind, object: &Value) -> Self {
        let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default().to_owned();
        Self {
            group: kind.group().to_owned(),
            kind: kind.kind.clone(),
            namespace: text("namespace"),
            name: text("name"),
        }
    }
}

impl Identity {
    fn is_of(&self, kind: &Kind) -> bool {
        self.kind == kind.kind && self.group == kind.group()
    }

    fn is_namespace(&self) -> bool {
        self.kind == "Namespace" && self.group.is_empty()
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl Baseline {
    /// Everything that is there now.
    pub fn of(api: &Api) -> Result<Self, ApiError> {
        let mut baseline = Self { objects: BTreeSet::new(), restored: BTreeMap::new() };
        for kind in api.stored_kinds()? {
            for object in api.list_metadata(&kind)? {
                let identity = Identity::of(&kind, &object);
                if is_restored(&identity) {
                    let namespace = Some(identity.namespace.as_str()).filter(|name| !name.is_empty());
                    baseline.restored.insert(identity.clone(), api.get(&kind, namespace, &identity.name)?);
                }
                baseline.objects.insert(identity);
            }
        }
        Ok(baseline)
    }
}

/// What scenarios change and others rely on.
fn is_restored(identity: &Identity) -> bool {
    match identity.kind.as_str() {
        "Namespace" | "Node" => identity.group.is_empty(),
        "ConfigMap" => identity.namespace == "kyverno",
        _ => false,
    }
}

/// Whether an object is the engine's own.
fn is_of_engine(identity: &Identity, object: &Value) -> bool {
    match identity.kind.as_str() {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            object.str_at(&["metadata", "labels", "webhook.kyverno.io/managed-by"]) == Some("kyverno")
        }
        "Secret" => identity.namespace == "kyverno" && identity.name.starts_with("kyverno-"),
        _ => false,
    }
}

/// Sweeps until nothing new is left.
pub fn sweep(api: &Api, baseline: &Baseline) -> Result<(), String> {
    let trouble = |error: ApiError| format!("sweeping: {error}");
    let start = Instant::now();
    let mut kinds = swept_kinds(api).map_err(trouble)?;
    loop {
        let left = pass(api, baseline, &kinds).map_err(trouble)?;
        if left.is_empty() {
            break;
        }
        if start.elapsed() > TIMEOUT {
            return Err(format!(
                "sweeping: cannot get rid of {}",
                left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ));
        }
        // Next only what was there is looked at, and what controllers make of it.
        kinds.retain(|kind| FOLLOWERS.contains(&kind.kind.as_str()) || left.iter().any(|it| it.is_of(kind)));
        std::thread::sleep(Duration::from_millis(20));
    }
    restore(api, baseline).map_err(trouble)?;
    for namespace in baseline.objects.iter().filter(|it| it.is_namespace()) {
        let path = format!("/api/v1/namespaces/{}/events", namespace.name);
        // An API without Events has none.
        let _ = api.request(&Method::DELETE, &path, None);
    }
    api.forget_kinds();
    Ok(())
}

fn swept_kinds(api: &Api) -> Result<Vec<Kind>, ApiError> {
    let mut kinds = api.stored_kinds()?;
    kinds.retain(|kind| !KEPT.contains(&kind.kind.as_str()));
    // Policies go first, so that nothing resists; namespaces next, so that nothing new gets into them; definitions
    // last, after their objects.
    kinds.sort_by_key(|kind| match (kind.group(), kind.kind.as_str()) {
        ("kyverno.io" | "policies.kyverno.io", _) => 0,
        ("", "Namespace") => 1,
        ("apiextensions.k8s.io", _) => 3,
        _ => 2,
    });
    Ok(kinds)
}

/// What is there of each kind, asked for by several threads; a kind can be on its way out.
fn list_all(api: &Api, kinds: &[Kind]) -> Result<Vec<Vec<Value>>, ApiError> {
    let share = kinds.len().div_ceil(4).max(1);
    std::thread::scope(|scope| {
        let list = |kind| match api.list_metadata(kind) {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            other => other,
        };
        let workers: Vec<_> = kinds
            .chunks(share)
            .map(|kinds| scope.spawn(move || kinds.iter().map(list).collect::<Result<Vec<_>, _>>()))
            .collect();
        let mut lists = Vec::new();
        for worker in workers {
            lists.extend(worker.join().map_err(|_| ApiError::Transport("a thread panicked".to_owned()))??);
        }
        Ok(lists)
    })
}

/// Deletes what is new; gives what was still there.
fn pass(api: &Api, baseline: &Baseline, kinds: &[Kind]) -> Result<Vec<Identity>, ApiError> {
    let mut left = Vec::new();
    for (kind, objects) in kinds.iter().zip(list_all(api, kinds)?) {
        for object in objects {
            let identity = Identity::of(kind, &object);
            if baseline.objects.contains(&identity) || is_of_engine(&identity, &object) {
                continue;
            }
            remove(api, kind, &identity, &object);
            left.push(identity);
        }
    }
    for namespace in left.iter().filter(|it| it.is_namespace()) {
        if !left.iter().any(|it| it.namespace == namespace.name) {
            // The next pass sees whether it worked.
            let _ = api.finalize_namespace(&namespace.name);
        }
    }
    Ok(left)
}

/// One attempt; whether it worked shows in the next pass.
fn remove(api: &Api, kind: &Kind, identity: &Identity, object: &Value) {
    let namespace = Some(identity.namespace.as_str()).filter(|name| !name.is_empty());
    let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    if finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
        let patch = Value::from([("metadata", Value::from([("finalizers", Value::Null)]))]);
        let _ = api.merge(kind, namespace, &identity.name, &patch);
    }
    let _ = api.delete_now(kind, namespace, &identity.name);
}

/// Puts back what was changed of the things that are always there.
fn restore(api: &Api, baseline: &Baseline) -> Result<(), ApiError> {
    for (identity, before) in &baseline.restored {
        let kind = api.kind("v1", &identity.kind)?;
        let namespace = Some(identity.namespace.as_str()).filter(|name| !name.is_empty());
        let now = match api.get(&kind, namespace, &identity.name) {
            Ok(now) => now,
            Err(error) if error.is_not_found() => {
                let mut object = before.clone();
                if let Some(metadata) =
                    object.as_object_mut().and_then(|members| members.get_mut("metadata")?.as_object_mut())
                {
                    metadata.remove("resourceVersion");
                    metadata.remove("uid");
                }
                api.create(&kind, namespace, &object)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut patch = Map::new();
        let mut metadata = Map::new();
        for part in ["labels", "annotations"] {
            let difference = difference(now.at(&["metadata", part]), before.at(&["metadata", part]));
            if !difference.is_empty() {
                metadata.insert(part, difference);
            }
        }
        if !metadata.is_empty() {
            patch.insert("metadata", metadata);
        }
        let data = difference(now.get("data"), before.get("data"));
        if !data.is_empty() {
            patch.insert("data", data);
        }
        if !patch.is_empty() {
            api.merge(&kind, namespace, &identity.name, &Value::object(patch))?;
        }
    }
    Ok(())
}

/// The merge patch that makes `now` what was `before`.
fn difference(now: Option<&Value>, before: Option<&Value>) -> Map {
    let empty = Map::new();
    let now = now.and_then(Value::as_object).unwrap_or(&empty);
    let before = before.and_then(Value::as_object).unwrap_or(&empty);
    let mut patch = Map::new();
    for key in now.keys().filter(|key| !before.contains_key(key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in before.iter().filter(|(key, value)| now.get(key) != Some(value)) {
        patch.insert(key.clone(), value.clone());
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_take_away_and_put_back() {
        let parse = |text| Value::from_json(text).unwrap();
        let now = parse(r#"{"new":"1","same":"2","changed":"3"}"#);
        let before = parse(r#"{"same":"2","changed":"4","gone":"5"}"#);
        let patch = Value::object(difference(Some(&now), Some(&before)));
        assert_eq!(patch.to_json(), r#"{"changed":"4","gone":"5","new":null}"#);
        assert!(difference(None, None).is_empty());
    }
}
