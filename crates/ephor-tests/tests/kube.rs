//! The client of API servers on a real one: restarts, growth of memory, permissions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, DeleteOptions, ErrorKind, WatchEvent, WatchQuery, WriteOptions, object};
use ephor_expr::Value;
use ephor_kube::{Access, ConnectOptions, Definitions, Impersonation, KubeCluster};
use ephor_testbed::{ControlPlane, Controllers, Options};

const TIMEOUT: Duration = Duration::from_mins(1);

fn plane() -> ControlPlane {
    ControlPlane::start(&Options { controllers: Controllers::Absent, ..Options::default() }).expect("a control plane")
}

fn options(kubeconfig: PathBuf) -> ConnectOptions {
    ConnectOptions { access: Access::Kubeconfig { path: kubeconfig, context: None }, ..ConnectOptions::default() }
}

fn config_map(name: &str, size: usize) -> Value {
    let metadata = Value::from([("name", Value::from(name)), ("namespace", Value::from("default"))]);
    Value::from([("metadata", metadata), ("data", Value::from([("k", Value::from("x".repeat(size)))]))])
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn a_watch_outlives_a_restart_of_the_server() {
    let mut plane = plane();
    let options = ConnectOptions { definitions: Definitions::Followed, ..options(plane.kubeconfig()) };
    let cluster = KubeCluster::connect(&options).expect("a client");
    let config_maps = cluster.resolve("v1", "ConfigMap").unwrap();
    let filter = Filter { namespace: Some("default".into()), ..Filter::default() };
    let query = WatchQuery { filter, metadata_only: true, ..WatchQuery::default() };
    let mut watch = cluster.watch(&config_maps, &query).unwrap();
    let mut seen = Vec::new();
    let mut read_until_seen = |names: &[&str]| {
        while !names.iter().all(|name| seen.iter().any(|seen| seen == name)) {
            match watch.next(TIMEOUT) {
                Ok(Some(WatchEvent::Added(object))) => seen.push(object::name(&object).to_owned()),
                Ok(other) => panic!("{other:?}"),
                // A server that starts knows no versions from before its start. It refuses to resume the watch if
                // any ConfigMap was written since the last event, and then the reader lists again.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
                    watch = cluster.watch(&config_maps, &query).unwrap();
                    seen.clear();
                }
            }
        }
        seen.retain(|name| name != "kube-root-ca.crt");
        seen.sort_unstable();
        seen.clone()
    };
    let create = |name| cluster.create(&config_maps, config_map(name, 1), &WriteOptions::default()).unwrap();
    create("before");
    assert_eq!(read_until_seen(&["before"]), ["before"]);
    plane.restart_api_server().expect("the server comes back");
    create("after");
    assert_eq!(read_until_seen(&["before", "after"]), ["after", "before"], "each object is reported once");
}

/// Set for the process whose memory is measured: the kubeconfig.
const WATCHED: &str = "EPHOR_TEST_WATCHED";
const COUNT: usize = 10_000;
const SIZE: usize = 20_000;

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
#[expect(clippy::print_stdout, reason = "a figure for people")]
fn ten_thousand_large_objects_take_little_memory() {
    if let Some(kubeconfig) = std::env::var_os(WATCHED) {
        return watch_and_measure(Path::new(&kubeconfig));
    }
    let plane = plane();
    let cluster: Arc<dyn Cluster> = Arc::new(KubeCluster::connect(&options(plane.kubeconfig())).expect("a client"));
    let config_maps = cluster.resolve("v1", "ConfigMap").unwrap();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (cluster, config_maps) = (&cluster, &config_maps);
            scope.spawn(move || {
                for i in (worker..COUNT).step_by(8) {
                    cluster
                        .create(config_maps, config_map(&format!("large-{i}"), SIZE), &WriteOptions::default())
                        .unwrap();
                }
            });
        }
    });
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ten_thousand_large_objects_take_little_memory", "--include-ignored", "--nocapture"])
        .env(WATCHED, plane.kubeconfig())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{told}{}", String::from_utf8_lossy(&child.stderr));
    let measured = told.lines().find(|line| line.contains("grew by")).expect("a measurement");
    println!("{measured}");
}

/// Holds the metadata of all objects, as a controller would, and says what that takes.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn watch_and_measure(kubeconfig: &Path) {
    let cluster = KubeCluster::connect(&options(kubeconfig.to_path_buf())).expect("a client");
    let config_maps = cluster.resolve("v1", "ConfigMap").unwrap();
    let before = resident();
    let query = WatchQuery { metadata_only: true, ..WatchQuery::default() };
    let mut watch = cluster.watch(&config_maps, &query).unwrap();
    let mut held = Vec::new();
    while held.len() < COUNT {
        match watch.next(TIMEOUT).unwrap().expect("an event") {
            WatchEvent::Added(object) => held.push(object),
            other => panic!("{other:?}"),
        }
    }
    let grown = resident().saturating_sub(before);
    println!("from {} KiB, grew by {} KiB for {} objects of {SIZE} bytes", before / 1024, grown / 1024, held.len());
    // A fifth of the objects themselves would be 40 MB.
    assert!(grown < 40 << 20, "grew by {grown} bytes");
}

/// The memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn what_somebody_may_not_do_is_said_in_the_words_of_the_server() {
    let plane = plane();
    let kubeconfig = plane.service_account_kubeconfig("default", "nobody").unwrap();
    let cluster = KubeCluster::connect(&options(kubeconfig)).expect("a client");
    let config_maps = cluster.resolve("v1", "ConfigMap").unwrap();
    let error = cluster.get(&config_maps, Some("default"), "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    let words = r#"configmaps "a" is forbidden: User "system:serviceaccount:default:nobody" cannot get resource "configmaps" in API group "" in the namespace "default""#;
    assert_eq!(error.to_string(), words);

    let jane = Impersonation { user: "jane".to_owned(), groups: vec!["system:masters".to_owned()] };
    let options = ConnectOptions { impersonate: Some(jane), ..options(plane.kubeconfig()) };
    let cluster = KubeCluster::connect(&options).expect("a client");
    assert!(cluster.create(&config_maps, config_map("a", 1), &WriteOptions::default()).is_ok());
    let review = cluster.resolve("authentication.k8s.io/v1", "SelfSubjectReview").unwrap();
    let answer = cluster.create(
        &review,
        Value::from([("metadata", Value::from([("x", Value::Null)]))]),
        &WriteOptions::default(),
    );
    assert_eq!(answer.unwrap().str_at(&["status", "userInfo", "username"]), Some("jane"));
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn kinds_that_come_and_go_are_known_without_asking_for_them() {
    let plane = plane();
    let options = ConnectOptions { definitions: Definitions::Followed, ..options(plane.kubeconfig()) };
    let cluster = KubeCluster::connect(&options).expect("a client");
    let is_known = || cluster.discovery().unwrap().with_kind("Box").next().is_some();
    assert!(!is_known());
    let definitions = cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let definition = r#"{"metadata":{"name":"boxes.example.com"},"spec":{"group":"example.com","scope":"Cluster",
        "names":{"kind":"Box","plural":"boxes"},"versions":[{"name":"v1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#;
    cluster.create(&definitions, Value::from_json(definition).unwrap(), &WriteOptions::default()).unwrap();
    eventually("the kind is known", is_known);
    cluster.delete(&definitions, None, "boxes.example.com", &DeleteOptions::default()).unwrap();
    eventually("the kind is forgotten", || !is_known());
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn a_server_that_is_away_is_a_passing_failure() {
    let mut plane = plane();
    let cluster = KubeCluster::connect(&options(plane.kubeconfig())).expect("a client");
    let config_maps = cluster.resolve("v1", "ConfigMap").unwrap();
    plane.stop_api_server();
    let error = cluster.get(&config_maps, Some("default"), "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
    let error = cluster.create(&config_maps, config_map("a", 1), &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
    plane.start_api_server().expect("the server comes back");
    assert!(cluster.create(&config_maps, config_map("a", 1), &WriteOptions::default()).is_ok());
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
