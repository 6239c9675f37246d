//! Cells of tables for built-in kinds that show more than one field.

use ephor_expr::{Map, Value};

pub(super) fn number_at(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn count_at(object: &Value, path: &[&str]) -> usize {
    match object.at(path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(members)) => members.len(),
        _ => 0,
    }
}

pub(super) fn joined<'v>(texts: impl Iterator<Item = &'v str>) -> Value {
    let texts: Vec<&str> = texts.collect();
    Value::from(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
}

pub(super) fn list<'v>(object: &'v Value, path: &[&str]) -> &'v [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// The status of a condition; empty if there is none.
pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> &'v str {
    let found = list(object, &["status", "conditions"]).iter().find(|c| c.str_at(&["type"]) == Some(kind));
    found.and_then(|c| c.str_at(&["status"])).unwrap_or_default()
}

pub(super) fn access_modes(object: &Value) -> Value {
    let short = |mode: &Value| match mode.as_str().unwrap_or_default() {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    Value::from(list(object, &["spec", "accessModes"]).iter().map(short).collect::<Vec<_>>().join(","))
}

/// The limits of a quota, or what else it is about.
pub(super) fn quotas(quota: &Value, limits: bool) -> Value {
    let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object);
    let shown = hard.into_iter().flat_map(Map::iter).filter(|(name, _)| name.starts_with("limits") == limits);
    let shown = shown.map(|(name, hard)| {
        let used = quota.str_at(&["status", "used", name]).unwrap_or("0");
        format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
    });
    Value::from(shown.collect::<Vec<_>>().join(", "))
}

pub(super) fn or_none(object: &Value, path: &[&str]) -> Value {
    object.at(path).map_or_else(
        || Value::from("N/A"),
        |value| Value::from(value.as_str().map_or_else(|| value.to_json(), str::to_owned)),
    )
}

/// Where a load balancer listens.
pub(super) fn addresses(object: &Value) -> Vec<&str> {
    let given = list(object, &["status", "loadBalancer", "ingress"]).iter();
    given.filter_map(|one| one.str_at(&["ip"]).or(one.str_at(&["hostname"]))).collect()
}

pub(super) fn external_addresses(service: &Value) -> Value {
    let own = list(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str);
    match service.str_at(&["spec", "type"]) {
        Some("ExternalName") => Value::from(service.str_at(&["spec", "externalName"]).unwrap_or("<none>")),
        Some("LoadBalancer") => {
            let all: Vec<&str> = addresses(service).into_iter().chain(own).collect();
            if all.is_empty() { Value::from("<pending>") } else { joined(all.into_iter()) }
        }
        _ => joined(own),
    }
}

pub(super) fn joined_subjects(binding: &Value, kind: &str) -> Value {
    let subjects = list(binding, &["subjects"]).iter().filter(|subject| subject.str_at(&["kind"]) == Some(kind));
    let names = subjects.map(|subject| {
        let namespace = subject.str_at(&["namespace"]).map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{namespace}{}", subject.str_at(&["name"]).unwrap_or_default())
    });
    Value::from(names.collect::<Vec<_>>().join(", "))
}

pub(super) fn of_containers<'v>(object: &'v Value, key: &'static str) -> impl Iterator<Item = &'v str> {
    list(object, &["spec", "template", "spec", "containers"]).iter().filter_map(move |c| c.str_at(&[key]))
}

/// Labels as selectors are written.
pub(super) fn labels(labels: Option<&Value>) -> Value {
    let labels = labels.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let terms: Vec<String> = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    joined(terms.iter().map(String::as_str))
}

pub(super) fn place(reference: Option<&Value>) -> Value {
    let part = |key: &str| reference.and_then(|r| r.str_at(&[key])).unwrap_or_default();
    Value::from(format!("{}/{}", part("kind").to_lowercase(), part("name")))
}
