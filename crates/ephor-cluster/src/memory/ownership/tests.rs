//! Scenes of several managers.

use ephor_expr::Value;

use super::{Writer, apply, conflict_message, record};
use crate::schema::Schema;

fn json(text: &str) -> Value {
    Value::from_json(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn writer(manager: &str) -> Writer<'_> {
    Writer { manager, api_version: "apps/v1", subresource: "", now: "2026-01-01T00:00:00Z" }
}

fn deployment(spec: &str) -> Value {
    json(&format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"d","namespace":"n"}},"spec":{spec}}}"#
    ))
}

fn schema() -> Option<Schema<'static>> {
    Schema::built_in("apps/v1", "Deployment")
}

fn spec(object: &Value) -> String {
    object.get("spec").map(Value::to_json).unwrap_or_default()
}

#[test]
fn what_a_manager_no_longer_applies_goes_unless_somebody_else_owns_it() {
    let one =
        apply(schema(), None, &deployment(r#"{"replicas":2,"paused":true,"minReadySeconds":5}"#), &writer("a"), false)
            .unwrap();
    let shared = apply(schema(), Some(&one), &deployment(r#"{"paused":true}"#), &writer("b"), false).unwrap();
    let less = apply(schema(), Some(&shared), &deployment(r#"{"replicas":2}"#), &writer("a"), false).unwrap();
    assert_eq!(spec(&less), r#"{"paused":true,"replicas":2}"#);
}

#[test]
fn a_change_to_what_another_owns_is_a_conflict_that_force_wins() {
    let mut created = deployment(r#"{"replicas":2}"#);
    record(schema(), None, &mut created, &writer("creator"), true);
    let config = deployment(r#"{"replicas":3}"#);
    let conflicts = apply(schema(), Some(&created), &config, &writer("applier"), false).unwrap_err();
    assert_eq!(
        conflict_message(&conflicts),
        r#"Apply failed with 1 conflict: conflict with "creator" using apps/v1: .spec.replicas"#
    );
    let forced = apply(schema(), Some(&created), &config, &writer("applier"), true).unwrap();
    assert_eq!(spec(&forced), r#"{"replicas":3}"#);
    let owners = forced.at(&["metadata", "managedFields"]).unwrap().to_json();
    assert!(!owners.contains("creator") && owners.contains("applier"), "{owners}");
    // The same value is shared, not fought over.
    let same = apply(schema(), Some(&created), &deployment(r#"{"replicas":2}"#), &writer("applier"), false).unwrap();
    assert!(same.at(&["metadata", "managedFields"]).unwrap().to_json().contains("creator"));
}

#[test]
fn kubectl_takes_over_what_it_applied_itself() {
    let noted = |spec: &str| {
        let mut object = deployment(spec);
        let text = object.to_json();
        let note = Value::from([(super::LAST_APPLIED, Value::from(text))]);
        object
            .as_object_mut()
            .unwrap()
            .get_mut("metadata")
            .unwrap()
            .as_object_mut()
            .unwrap()
            .insert("annotations", note);
        object
    };
    let mut live = noted(r#"{"replicas":2,"paused":true}"#);
    record(schema(), None, &mut live, &writer("kubectl-client-side-apply"), true);
    let config = deployment(r#"{"replicas":3}"#);
    assert_eq!(
        spec(&apply(schema(), Some(&live), &config, &writer("kubectl"), false).unwrap()),
        r#"{"paused":true,"replicas":3}"#
    );
    // Nobody else does, and what somebody changed since is theirs.
    assert!(apply(schema(), Some(&live), &config, &writer("other"), false).is_err());
    let mut scaled = live.clone();
    scaled.as_object_mut().unwrap().insert("spec", json(r#"{"replicas":5,"paused":true}"#));
    record(schema(), Some(&live), &mut scaled, &writer("scaler"), true);
    let conflicts = apply(schema(), Some(&scaled), &config, &writer("kubectl"), false).unwrap_err();
    assert_eq!(conflicts[0].fields, [".spec.replicas"]);
}

#[test]
fn items_of_keyed_lists_belong_to_those_who_applied_them() {
    let containers = |items: &str| deployment(&format!(r#"{{"template":{{"spec":{{"containers":{items}}}}}}}"#));
    let first = apply(schema(), None, &containers(r#"[{"name":"web","image":"1"}]"#), &writer("a"), false).unwrap();
    let second =
        apply(schema(), Some(&first), &containers(r#"[{"name":"side","image":"9"}]"#), &writer("b"), false).unwrap();
    let names = |object: &Value| {
        let list = object.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array).unwrap().to_vec();
        list.iter().map(|c| c.str_at(&["name"]).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&second), ["web", "side"]);
    let renamed =
        apply(schema(), Some(&second), &containers(r#"[{"name":"app","image":"1"}]"#), &writer("a"), false).unwrap();
    let mut after = names(&renamed);
    after.sort();
    assert_eq!(after, ["app", "side"]);
    let image = apply(schema(), Some(&second), &containers(r#"[{"name":"web","image":"2"}]"#), &writer("b"), false);
    assert_eq!(
        conflict_message(&image.unwrap_err()),
        r#"Apply failed with 1 conflict: conflict with "a": .spec.template.spec.containers[name="web"].image"#
    );
}

#[test]
fn an_update_takes_what_it_changes_and_only_that() {
    let applied = apply(schema(), None, &deployment(r#"{"replicas":2,"paused":true}"#), &writer("a"), false).unwrap();
    let mut scaled = applied.clone();
    scaled.as_object_mut().unwrap().insert("spec", json(r#"{"replicas":5,"paused":true}"#));
    record(schema(), Some(&applied), &mut scaled, &writer("scaler"), true);
    let managers = scaled.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap();
    let fields = |name: &str| {
        let found = managers.iter().find(|m| m.str_at(&["manager"]) == Some(name)).unwrap();
        found.get("fieldsV1").unwrap().to_json()
    };
    assert_eq!(fields("a"), r#"{"f:spec":{"f:paused":{}}}"#);
    assert_eq!(fields("scaler"), r#"{"f:spec":{"f:replicas":{}}}"#);
    // Leaving the field out does not take it from its new owner.
    let less = apply(schema(), Some(&scaled), &deployment(r#"{"paused":true}"#), &writer("a"), false).unwrap();
    assert_eq!(spec(&less), r#"{"paused":true,"replicas":5}"#);
}

#[test]
fn nothing_changes_when_the_same_is_applied_again() {
    let config = deployment(r#"{"replicas":2,"template":{"metadata":{"labels":{"a":"b"}}}}"#);
    let once = apply(schema(), None, &config, &writer("a"), false).unwrap();
    let later = Writer { now: "2027-01-01T00:00:00Z", ..writer("a") };
    assert_eq!(apply(schema(), Some(&once), &config, &later, false).unwrap(), once);
}
