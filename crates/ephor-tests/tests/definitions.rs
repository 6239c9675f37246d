//! The `CustomResourceDefinition`s before a real API server: they install, and take what the engine reads.
//!
//! Needs the executables of a control plane: `cargo xtask cluster build`, then
//! `cargo test -p ephor-tests --test definitions -- --ignored`.

use std::path::{Path, PathBuf};

use ephor_cluster::{Cluster, ErrorKind, WriteOptions};
use ephor_engine::policy::{CleanupPolicy, GlobalContextEntry, Policy, PolicyException};
use ephor_expr::value::decode;
use ephor_expr::yaml::{Limits, parse_values};
use ephor_expr::{Map, Value};
use ephor_kube::{Access, ConnectOptions, KubeCluster};
use ephor_runtime::update_request::UpdateRequest;
use ephor_testbed::{ControlPlane, Controllers, Options};

/// Whether the engine reads the document.
fn is_readable(document: &Value) -> Option<bool> {
    let api_version = document.str_at(&["apiVersion"])?;
    let group = api_version.split_once('/')?.0;
    Some(match (group, document.str_at(&["kind"])?) {
        ("kyverno.io", "ClusterPolicy" | "Policy") => decode::<Policy>(document).is_ok(),
        ("kyverno.io", "PolicyException") => decode::<PolicyException>(document).is_ok(),
        ("kyverno.io", "GlobalContextEntry") => decode::<GlobalContextEntry>(document)
            .is_ok_and(|entry| entry.spec.kubernetes_resource.is_some() != entry.spec.api_call.is_some()),
        ("kyverno.io", "CleanupPolicy" | "ClusterCleanupPolicy") => decode::<CleanupPolicy>(document).is_ok(),
        ("kyverno.io", "UpdateRequest") => decode::<UpdateRequest>(document).is_ok(),
        _ => return None,
    })
}

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

/// The documents of the suites, with their files.
fn documents() -> Vec<(PathBuf, Value)> {
    let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance").canonicalize().unwrap();
    let mut files = Vec::new();
    for folder in ["chainsaw", "policies"] {
        yaml_files(&suites.join(folder), &mut files);
    }
    files
        .into_iter()
        .flat_map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            let documents = parse_values(&text, &Limits::default()).unwrap_or_default();
            documents.into_iter().map(move |document| (file.clone(), document)).collect::<Vec<_>>()
        })
        .collect()
}

/// What the API server wants of an object and assertions of the suites leave out.
fn completed(mut document: Value, namespaced: bool) -> Value {
    let metadata = document.as_object_mut().map(|object| object.entry("metadata"));
    if let Some(metadata) = metadata {
        if metadata.is_null() {
            *metadata = Value::object(Map::default());
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("name", "under-test");
            if namespaced {
                metadata.insert("namespace", "default");
            }
        }
    }
    document
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn the_api_server_takes_what_the_engine_reads() {
    let plane = ControlPlane::start(&Options { controllers: Controllers::Absent, ..Options::default() }).unwrap();
    let access = Access::Kubeconfig { path: plane.kubeconfig(), context: None };
    let cluster = KubeCluster::connect(&ConnectOptions { access, ..ConnectOptions::default() }).unwrap();

    let definitions = cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    for definition in ephor_install::crds::all() {
        cluster.create(&definitions, definition, &WriteOptions::default()).unwrap();
    }
    plane.ask(&["wait", "--for=condition=Established", "customresourcedefinitions", "--all"]).unwrap();
    let problems = plane
        .ask(&[
            "get",
            "crd",
            "-o",
            r#"jsonpath={.items[*].status.conditions[?(@.type=="NonStructuralSchema")].message}"#,
        ])
        .unwrap();
    assert_eq!(problems, "");

    let (mut accepted, mut refused, mut faults) = (0, 0, Vec::new());
    for (file, document) in documents() {
        let Some(readable) = is_readable(&document) else { continue };
        let (api_version, kind) = (document.str_at(&["apiVersion"]).unwrap(), document.str_at(&["kind"]).unwrap());
        let Ok(resource) = cluster.resolve(api_version, kind) else {
            faults.push(format!("{}: {api_version} {kind} is not served", file.display()));
            continue;
        };
        let object = completed(document, resource.namespaced);
        match cluster.create(&resource, object, &WriteOptions::dry_run()) {
            Ok(_) => accepted += 1,
            Err(error) if error.kind() == ErrorKind::Invalid && !readable => refused += 1,
            Err(error) => faults.push(format!("{}: {error}", file.display())),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(accepted > 1000 && refused > 0, "accepted {accepted}, refused {refused}");
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn unknown_fields_of_a_spec_are_stored_and_columns_show() {
    let plane = ControlPlane::start(&Options { controllers: Controllers::Absent, ..Options::default() }).unwrap();
    let access = Access::Kubeconfig { path: plane.kubeconfig(), context: None };
    let cluster = KubeCluster::connect(&ConnectOptions { access, ..ConnectOptions::default() }).unwrap();
    let definitions = cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    for definition in ephor_install::crds::all() {
        cluster.create(&definitions, definition, &WriteOptions::default()).unwrap();
    }
    plane.ask(&["wait", "--for=condition=Established", "customresourcedefinitions", "--all"]).unwrap();

    let policy = r#"{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"p"},
        "spec":{"new":1,"rules":[{"name":"r","math":{},"validate":{"patern":{"a":null}}}]}}"#;
    let policies = cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
    let mut stored = cluster.create(&policies, Value::from_json(policy).unwrap(), &WriteOptions::default()).unwrap();
    assert_eq!(
        stored.get("spec").unwrap().to_json(),
        r#"{"admission":true,"background":true,"new":1,"rules":[{"math":{},"name":"r","validate":{"patern":{"a":null}}}]}"#
    );
    let status = Value::from_json(
        r#"{"unknown":1,"conditions":[{"type":"Ready","status":"True","reason":"Succeeded","message":"Ready",
        "lastTransitionTime":"2026-01-01T00:00:00Z"}],"rulecount":{"validate":1,"mutate":0,"generate":0,"verifyimages":0}}"#,
    );
    stored.as_object_mut().unwrap().insert("status", status.unwrap());
    let stored = cluster.update_status(&policies, stored, &WriteOptions::default()).unwrap();
    assert!(stored.at(&["status", "unknown"]).is_none());

    let table = plane.ask(&["get", "cpol", "-o", "wide"]).unwrap();
    let words: Vec<&str> = table.split_whitespace().collect();
    assert!(table.starts_with("NAME   ADMISSION   BACKGROUND   READY   AGE"), "{table}");
    assert!(words.contains(&"True") && words.last() == Some(&"Ready"), "{table}");
    for short in ["pol", "polex", "gctxentry", "ur", "cleanpol", "ccleanpol", "kyverno"] {
        plane.ask(&["get", short, "--all-namespaces"]).unwrap();
    }
}
