//! `--state`: what is there when a sandbox ends is there when the next one begins, and goes on.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use ephor_cluster::{Cluster as _, DeleteOptions, ListQuery, WriteOptions, object};
use ephor_expr::Value;
use ephor_kube::KubeCluster;

use crate::process::{Sandbox, eventually};

const POLICIES: &str = "examples/policies/namespace-defaults.yaml";

fn named(name: &str, namespace: &str) -> Value {
    let mut made = Value::from([("metadata", Value::from([("name", Value::from(name))]))]);
    if !namespace.is_empty() {
        object::set(&mut made, "namespace", namespace);
    }
    made
}

/// The generated objects of a namespace: kind, name, UID.
fn generated(cluster: &KubeCluster) -> Vec<(&'static str, String, String)> {
    let mut found = Vec::new();
    for (api_version, kind) in [("networking.k8s.io/v1", "NetworkPolicy"), ("v1", "ResourceQuota")] {
        let resource = cluster.resolve(api_version, kind).expect("a kind");
        for item in cluster.list(&resource, &ListQuery::in_namespace("orders")).expect("a list").items {
            found.push((kind, object::name(&item).to_owned(), object::text(&item, "uid").to_owned()));
        }
    }
    found
}

#[test]
fn a_killed_sandbox_loses_at_most_the_last_moments_and_its_kubeconfig_stays_valid() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("state.json");
    let state = file.to_str().expect("a path");

    let first = Sandbox::start(&[POLICIES, "--state", state]);
    let cluster = first.cluster();
    let maps = cluster.resolve("v1", "ConfigMap").expect("a kind");
    let made = cluster.create(&maps, named("kept", "default"), &WriteOptions::default()).expect("a map");
    let uid = object::text(&made, "uid");
    eventually("the change is on disk", || {
        std::fs::read_to_string(&file).ok().filter(|text| text.contains(uid)).map(drop)
    });
    let config = std::fs::read_to_string(first.kubeconfig()).expect("a kubeconfig");
    // SIGKILL.
    drop(first);

    let second = Sandbox::start(&[POLICIES, "--state", state]);
    assert_eq!(std::fs::read_to_string(second.kubeconfig()).expect("a kubeconfig"), config);
    // The client of the first run goes on.
    let kept = cluster.get(&maps, Some("default"), "kept").expect("it is kept");
    assert_eq!(object::text(&kept, "uid"), uid);
}

fn version(made: &Value) -> u64 {
    object::text(made, "resourceVersion").parse().expect("a number")
}

#[test]
fn what_was_generated_stays_and_is_kept_in_sync() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("state.json");
    let state = file.to_str().expect("a path");

    let first = Sandbox::start(&[POLICIES, "--state", state]);
    let cluster = first.cluster();
    let namespaces = cluster.resolve("v1", "Namespace").expect("a kind");
    cluster.create(&namespaces, named("orders", ""), &WriteOptions::default()).expect("a namespace");
    let before = eventually("two objects", || Some(generated(&cluster)).filter(|found| found.len() == 2));
    let maps = cluster.resolve("v1", "ConfigMap").expect("a kind");
    let last = cluster.create(&maps, named("first", "orders"), &WriteOptions::default()).expect("a map");
    first.stop();
    let mode = std::fs::metadata(&file).expect("a state").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it may hold Secrets");

    let second = Sandbox::start(&[POLICIES, "--state", state]);
    let cluster = second.cluster();
    let kept = cluster.get(&maps, Some("orders"), "first").expect("it is kept");
    assert_eq!(object::text(&kept, "uid"), object::text(&last, "uid"));
    let next = cluster.create(&maps, named("second", "orders"), &WriteOptions::default()).expect("a map");
    assert!(version(&next) > version(&last), "{} after {}", version(&next), version(&last));
    // Long enough for the controller to have looked at everything.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(generated(&cluster), before);

    let policies = cluster.resolve("networking.k8s.io/v1", "NetworkPolicy").expect("a kind");
    cluster.delete(&policies, Some("orders"), "deny-all", &DeleteOptions::default()).expect("it goes");
    let after = eventually("it comes back", || Some(generated(&cluster)).filter(|found| found.len() == 2));
    assert_ne!(after[0].2, before[0].2);
    assert_eq!(after[1], before[1]);
}
