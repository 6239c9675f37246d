//! What a cluster does that does all that an API server does.

use std::sync::{Arc, Mutex};

use super::*;
use crate::admission::{Admission, Attributes, Mutated, User};
use crate::raw::{Method, RawRequest};
use crate::write::{FieldValidation, PatchKind};

fn server() -> MemoryCluster {
    MemoryCluster::new(Options::server())
}

fn apply(cluster: &MemoryCluster, manager: &str, force: bool, text: &str) -> Result<Value, ClusterError> {
    let object = json(text);
    let options = WriteOptions { field_manager: manager.into(), force, ..WriteOptions::default() };
    let patch = Patch::apply(object.clone());
    cluster.patch(&resource_of(cluster, &object), namespace_of(&object), object::name(&object), &patch, &options)
}

fn web(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web","namespace":"default"}},"spec":{spec}}}"#
    )
}

const TEMPLATE: &str = r#""selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"x:1"}]}}"#;

#[test]
fn objects_are_stored_as_their_kind_has_them() {
    let cluster = server().acting_as(User::default());
    let stored = create(&cluster, &web(&format!(r#"{{{TEMPLATE},"colour":"red"}}"#))).unwrap();
    assert_eq!(cluster.take_warnings(), [r#"unknown field "spec.colour""#]);
    let at = |keys: &[&str]| stored.at(keys).map(Value::to_json).unwrap_or_default();
    assert_eq!(at(&["spec", "replicas"]), "1");
    assert_eq!(at(&["spec", "strategy", "rollingUpdate", "maxSurge"]), r#""25%""#);
    let containers = stored.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array).unwrap();
    assert_eq!(containers[0].str_at(&["imagePullPolicy"]), Some("IfNotPresent"));
    assert_eq!(stored.at(&["spec", "colour"]), None);

    let strict = WriteOptions { field_validation: FieldValidation::Strict, ..WriteOptions::default() };
    let odd = json(&web(r#"{"colour":"red"}"#));
    let error = cluster.create(&resource_of(&cluster, &odd), odd, &strict).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"Deployment in version "apps/v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.colour""#
    );
    for (spec, want) in [
        (r#"{"replicas":"three"}"#, "cannot unmarshal string into field spec.replicas of type int32"),
        ("{}", "spec.selector: Required value"),
        (
            r#"{"selector":{"matchLabels":{"x":"y"}},"template":{"spec":{"containers":[{"image":"x"}]}}}"#,
            "containers[0].name: Required value",
        ),
    ] {
        let error = create(&cluster, &web(spec)).unwrap_err().to_string();
        assert!(error.contains(want), "{spec}: {error}");
    }
}

#[test]
fn a_custom_kind_follows_its_definition() {
    let cluster = server().acting_as(User::default());
    let mut definition = json(definition());
    let schema = json(
        r#"{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","maximum":5},"colour":{"type":"string","default":"red"}}}}}}"#,
    );
    let versions = definition.as_object_mut().unwrap().entry("spec").as_object_mut().unwrap().entry("versions");
    for version in versions.as_array_mut().unwrap() {
        version.as_object_mut().unwrap().insert("schema", schema.clone());
    }
    create(&cluster, &definition.to_json()).unwrap();
    let stored = create(&cluster, &box_named("a").replace(r#""size":1"#, r#""size":1,"odd":true"#)).unwrap();
    assert_eq!(stored.get("spec").unwrap().to_json(), r#"{"colour":"red","size":1}"#);
    let error = patch(&cluster, &stored, r#"{"spec":{"size":9}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"Box.example.com "a" is invalid: spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5"#
    );
}

#[test]
fn mistakes_in_manifests_are_refused() {
    let cluster = server();
    for (object, want) in [
        (
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"a"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"x"}}"#,
            Some(r#"Secret "a" is invalid: data[tls.key]: Required value"#),
        ),
        (
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"b"},"type":"own/type"}"#,
            None,
        ),
        (
            r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"namespace":"default","name":"a"},"spec":{"schedule":"* * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"x"}]}}}}}}"#,
            Some(
                r#"CronJob.batch "a" is invalid: spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]"#,
            ),
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"a"},"spec":{"containers":[{"name":"c","image":"x"}],"restartPolicy":"Perhaps"}}"#,
            Some(
                r#"Pod "a" is invalid: spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never""#,
            ),
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a","finalizers":["x"]}}"#,
            Some(
                r#"ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified"#,
            ),
        ),
    ] {
        let said = create(&cluster, object).err().map(|error| error.to_string());
        assert_eq!(said.as_deref(), want, "{object}");
    }
}

#[test]
fn appliers_share_an_object_with_those_who_update_it() {
    let cluster = server();
    let first = apply(&cluster, "kubectl", false, &web(&format!(r#"{{{TEMPLATE},"replicas":2}}"#))).unwrap();
    assert_eq!(object::text(&first, "uid").len(), 36);
    let again = apply(&cluster, "kubectl", false, &web(&format!(r#"{{{TEMPLATE},"replicas":2}}"#))).unwrap();
    assert_eq!(first, again);
    let scaled = patch(&cluster, &first, r#"{"spec":{"replicas":5}}"#).unwrap();
    assert_eq!(scaled.at(&["metadata", "generation"]), Some(&Value::Int(2)));
    let error = apply(&cluster, "kubectl", false, &web(&format!(r#"{{{TEMPLATE},"replicas":2}}"#))).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"Apply failed with 1 conflict: conflict with "unknown" using apps/v1: .spec.replicas"#
    );
    let left = apply(&cluster, "kubectl", false, &web(&format!("{{{TEMPLATE}}}"))).unwrap();
    assert_eq!(left.at(&["spec", "replicas"]), Some(&Value::Int(5)));
    let error = apply(&cluster, "", false, &web("{}")).unwrap_err();
    assert!(error.to_string().ends_with("fieldManager: Required value: is required for apply patch"), "{error}");
}

#[test]
fn a_strategic_patch_adds_a_container_at_the_end() {
    let cluster = server();
    let stored = create(&cluster, &web(&format!("{{{TEMPLATE}}}"))).unwrap();
    let patch =
        Patch::strategic(json(r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"y"}]}}}}"#));
    let options = WriteOptions::default();
    let patched = cluster.patch(&resource_of(&cluster, &stored), Some("default"), "web", &patch, &options).unwrap();
    let containers = patched.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array).unwrap();
    let names: Vec<_> = containers.iter().map(|c| c.str_at(&["name"]).unwrap()).collect();
    assert_eq!(names, ["c", "side"]);
}

/// Notes what it is asked, labels what is created, refuses what is called so.
#[derive(Default)]
struct Doorman {
    asked: Mutex<Vec<String>>,
}

impl Doorman {
    fn note(&self, step: &str, a: &Attributes) {
        let subresource = if a.subresource.is_empty() { String::new() } else { format!("/{}", a.subresource) };
        let has = |object: &Value| if object.is_null() { "-" } else { "+" };
        let line = format!(
            "{step} {} {}{subresource} {} {}{} {}",
            a.operation.text(),
            a.resource.plural,
            a.name,
            has(&a.old_object),
            has(&a.object),
            a.user.name
        );
        self.asked.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Admission for Doorman {
    fn mutate(&self, attributes: &Attributes) -> Result<Mutated, ClusterError> {
        self.note("mutate", attributes);
        let mut object = attributes.object.clone();
        if attributes.operation == crate::admission::Operation::Create {
            object::set(&mut object, "labels", Value::from([("seen", Value::from("yes"))]));
        }
        Ok(Mutated { object: Some(object), warnings: vec!["mutated".to_owned()] })
    }

    fn validate(&self, attributes: &Attributes) -> Result<Vec<String>, ClusterError> {
        self.note("validate", attributes);
        if attributes.name == "evil" {
            return Err(ClusterError::denied(400, "", "admission webhook \"x\" denied the request: evil"));
        }
        Ok(vec!["looked at".to_owned()])
    }
}

fn guarded() -> (MemoryCluster, Arc<Doorman>) {
    let cluster = server();
    let doorman = Arc::new(Doorman::default());
    assert!(cluster.set_admission(doorman.clone()));
    (cluster.acting_as(User::new("alice", ["dev"])), doorman)
}

#[test]
fn admission_is_asked_before_every_write_and_in_order() {
    let (cluster, doorman) = guarded();
    let stored = create(&cluster, &config_map("a")).unwrap();
    assert_eq!(stored.str_at(&["metadata", "labels", "seen"]), Some("yes"));
    assert_eq!(cluster.take_warnings(), ["mutated", "looked at"]);
    assert_eq!(doorman.take(), ["mutate CREATE configmaps a -+ alice", "validate CREATE configmaps a -+ alice"]);
    patch(&cluster, &stored, r#"{"data":{"k":"v"}}"#).unwrap();
    assert_eq!(doorman.take(), ["mutate UPDATE configmaps a ++ alice", "validate UPDATE configmaps a ++ alice"]);
    delete(&cluster, &stored).unwrap();
    assert_eq!(doorman.take(), ["mutate DELETE configmaps a +- alice", "validate DELETE configmaps a +- alice"]);
    assert_eq!(create(&cluster, &config_map("evil")).unwrap_err().code(), 400);
    assert_eq!(present(&cluster, &json(&config_map("evil"))), None);
    let generated = config_map("x").replace("\"name\"", "\"generateName\"");
    doorman.take();
    let stored = create(&cluster, &generated).unwrap();
    let name = object::name(&stored);
    let want = ["mutate CREATE configmaps  -+ alice".to_owned(), format!("validate CREATE configmaps {name} -+ alice")];
    assert_eq!(doorman.take(), want);
}

#[test]
fn subresources_are_admitted_as_what_they_are() {
    let (cluster, doorman) = guarded();
    create(&cluster, &web(&format!("{{{TEMPLATE}}}"))).unwrap();
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"x"}]}}"#;
    create(&cluster, pod).unwrap();
    doorman.take();
    let request = |method, path: &str, body: Option<&str>| RawRequest {
        method,
        path: path.to_owned(),
        body: body.map(json),
        dry_run: false,
    };
    let scale = "/apis/apps/v1/namespaces/default/deployments/web/scale";
    let answer =
        cluster.raw(&request(Method::Patch(PatchKind::Merge), scale, Some(r#"{"spec":{"replicas":3}}"#))).unwrap();
    assert_eq!((answer.str_at(&["kind"]), answer.at(&["spec", "replicas"])), (Some("Scale"), Some(&Value::Int(3))));
    assert_eq!(doorman.take()[0], "mutate UPDATE deployments/scale web ++ alice");
    assert_eq!(cluster.raw(&request(Method::Get, scale, None)).unwrap(), answer);
    let exec = "/api/v1/namespaces/default/pods/p/exec?command=sh&command=-c&stdin=true";
    assert_eq!(cluster.raw(&request(Method::Post, exec, None)).unwrap_err().code(), 501);
    assert_eq!(doorman.take()[1], "validate CONNECT pods/exec p -+ alice");
    let eviction = r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p","namespace":"default"}}"#;
    cluster.raw(&request(Method::Post, "/api/v1/namespaces/default/pods/p/eviction", Some(eviction))).unwrap();
    assert_eq!(doorman.take()[0], "mutate CREATE pods/eviction p -+ alice");
    assert_eq!(present(&cluster, &json(pod)), None);
}

#[test]
fn controllers_empty_namespaces_and_collect_garbage_as_themselves() {
    let (cluster, doorman) = guarded();
    let place = create(&cluster, &namespace("n")).unwrap();
    let owner = create(&cluster, &config_map("a").replace("default", "n")).unwrap();
    let uid = object::text(&owner, "uid");
    let owned = format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s","namespace":"n","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"{uid}"}}]}}}}"#
    );
    let owned = create(&cluster, &owned).unwrap();
    delete(&cluster, &owner).unwrap();
    doorman.take();
    assert_eq!(cluster.reconcile(), 1);
    assert_eq!(present(&cluster, &owned), None);
    assert_eq!(
        doorman.take()[1],
        "validate DELETE secrets s +- system:serviceaccount:kube-system:generic-garbage-collector"
    );
    create(&cluster, &config_map("evil").replace("\"evil\"", "\"b\"").replace("default", "n")).unwrap();
    assert!(!delete(&cluster, &place).unwrap().is_done());
    assert_eq!(present(&cluster, &place).unwrap().str_at(&["status", "phase"]), Some("Terminating"));
    cluster.reconcile();
    assert_eq!(present(&cluster, &place), None);
    assert!(doorman.take().iter().any(|line| line.ends_with("kube-system:namespace-controller")));
}

/// Changes the object behind the back of the first write that it is asked about.
struct Intruder {
    cluster: MemoryCluster,
    done: Mutex<bool>,
}

impl Admission for Intruder {
    fn mutate(&self, attributes: &Attributes) -> Result<Mutated, ClusterError> {
        let first = !std::mem::replace(&mut *self.done.lock().unwrap(), true);
        if first && !attributes.old_object.is_null() {
            patch(&self.cluster, &attributes.old_object, r#"{"data":{"other":"1"}}"#)?;
        }
        Ok(Mutated::default())
    }

    fn validate(&self, _: &Attributes) -> Result<Vec<String>, ClusterError> {
        Ok(Vec::new())
    }
}

#[test]
fn a_write_that_was_overtaken_starts_over_or_is_a_conflict() {
    for (conditional, want) in [(false, Ok(r#"{"mine":"2","other":"1"}"#)), (true, Err(409))] {
        let cluster = server();
        let stored = create(&cluster, &config_map("a")).unwrap();
        let intruder = Intruder { cluster: cluster.clone(), done: Mutex::new(false) };
        cluster.set_admission(Arc::new(intruder));
        let version = object::text(&stored, "resourceVersion");
        let condition =
            if conditional { format!(r#","metadata":{{"resourceVersion":"{version}"}}"#) } else { String::new() };
        let got = patch(&cluster, &stored, &format!(r#"{{"data":{{"mine":"2"}}{condition}}}"#));
        let got = got.map(|object| object.get("data").unwrap().to_json()).map_err(|e| e.code());
        assert_eq!(got, want.map(str::to_owned));
    }
}

#[test]
fn the_scale_of_a_custom_kind_is_where_its_definition_says() {
    let cluster = server();
    create(
        &cluster,
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
        "spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget","categories":["all"]},
        "versions":[{"name":"v1","served":true,"storage":true,
            "subresources":{"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
            "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}"#,
    )
    .unwrap();
    let widget = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"default"},"spec":{"size":3}}"#;
    let resource = resource_of(&cluster, &json(widget));
    assert_eq!(&*resource.categories, ["all"]);
    create(&cluster, widget).unwrap();
    let path = format!("{}/scale", resource.path(Some("default"), Some("a")));
    let scale = cluster.raw(&RawRequest::get(&path)).unwrap();
    assert_eq!(scale.at(&["spec", "replicas"]), Some(&Value::Int(3)));
    let body = Some(json(r#"{"spec":{"replicas":5}}"#));
    let request = RawRequest { method: Method::Patch(PatchKind::Merge), path, body, dry_run: false };
    cluster.raw(&request).unwrap();
    let stored = cluster.get(&resource, Some("default"), "a").unwrap();
    assert_eq!(stored.get("spec").unwrap().to_json(), r#"{"size":5}"#);
}

#[test]
fn events_are_selected_by_the_fields_of_both_forms() {
    let cluster = server();
    create(
        &cluster,
        r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e","namespace":"default"},
        "eventTime":"2026-01-01T00:00:00.000000Z","reason":"r","action":"a","type":"Normal","note":"n",
        "reportingController":"c","reportingInstance":"i","regarding":{"kind":"Pod","name":"p","namespace":"default"}}"#,
    )
    .unwrap();
    for (path, selected) in [
        ("/api/v1/events?fieldSelector=involvedObject.name%3Dp", 1),
        ("/api/v1/events?fieldSelector=involvedObject.name%3Dq", 0),
        ("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp", 1),
    ] {
        let list = cluster.raw(&RawRequest::get(path)).unwrap();
        assert_eq!(list.get("items").and_then(Value::as_array).unwrap().len(), selected, "{path}");
    }
}

#[test]
fn empty_lists_and_maps_are_as_good_as_missing() {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","annotations":{}},
        "spec":{"containers":[{"name":"c","image":"x","env":[],"securityContext":{}}],"nodeSelector":{},"volumes":[{"name":"v","emptyDir":{}}]}}"#;
    let stored = create(&server(), pod).unwrap();
    assert_eq!(stored.at(&["metadata", "annotations"]), None);
    let spec = stored.get("spec").unwrap();
    assert_eq!(spec.get("nodeSelector"), None);
    let first = |key: &str| spec.get(key).and_then(Value::as_array).unwrap()[0].clone();
    assert_eq!(first("containers").get("env"), None);
    // Empty structures say something.
    assert!(first("containers").get("securityContext").is_some());
    assert!(first("volumes").get("emptyDir").is_some());
}
