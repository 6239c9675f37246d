//! Kinds that come and go.

use ephor_cluster::{Cluster, DeleteOptions, ErrorKind};

use super::Case;
use super::test_env::{TestEnv, refused};

pub(super) const CASES: &[Case] = &[
    ("a new kind is served", come),
    ("a kind goes with its definition", go),
    ("kinds outside of namespaces", cluster_scoped),
];

/// Defines the kind `Box` in a group of the case's own, which it gives back.
pub(super) fn define(env: &TestEnv, scope: &str) -> String {
    let group = format!("{}.example.com", env.namespace);
    let schema = r#"{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}"#;
    env.create(&format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"boxes.{group}"}},
        "spec":{{"group":"{group}","scope":"{scope}","names":{{"kind":"Box","plural":"boxes","singular":"box","listKind":"BoxList","shortNames":["bx"]}},
        "versions":[{{"name":"v1","served":true,"storage":true,"schema":{schema},"subresources":{{"status":{{}}}}}}]}}}}"#
    ));
    // A server takes a moment until it serves a kind.
    env.eventually("the kind is known", || env.cluster.resolve(&format!("{group}/v1"), "Box").ok());
    group
}

fn come(env: &TestEnv) {
    let group = define(env, "Namespaced");
    let resource = env.resource(&format!("{group}/v1"), "Box");
    assert_eq!((resource.plural.as_str(), resource.namespaced, resource.has_status()), ("boxes", true, true));
    let text = format!(
        r#"{{"apiVersion":"{group}/v1","kind":"Box","metadata":{{"name":"a","namespace":"NS"}},"spec":{{"size":1}}}}"#
    );
    // Nor does it take objects at once.
    let stored = env.eventually("the kind is served", || env.try_create(&text).ok());
    assert_eq!(env.present(&stored), Some(stored));
    let words = format!(r#"no matches for kind "Box" in version "{group}/v2""#);
    refused(env, env.cluster.resolve(&format!("{group}/v2"), "Box"), ErrorKind::NotFound, 404, &words);
    refused(
        env,
        env.cluster.resolve(&format!("{group}/v1"), "Bag"),
        ErrorKind::NotFound,
        404,
        &format!(r#"no matches for kind "Bag" in version "{group}/v1""#),
    );
}

fn go(env: &TestEnv) {
    let group = define(env, "Namespaced");
    let resource = env.resource(&format!("{group}/v1"), "Box");
    let definition = env.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let name = format!("boxes.{group}");
    env.cluster.delete(&definition, None, &name, &DeleteOptions::default()).unwrap();
    let gone = |cluster: &dyn Cluster| cluster.get(&definition, None, &name).is_err();
    env.eventually("the definition is gone", || gone(&*env.cluster).then_some(()));
    let words = "the server could not find the requested resource";
    env.eventually("the kind is no longer served", || {
        let error = env.cluster.get(&resource, Some(&env.namespace), "a").unwrap_err();
        (error.to_string() == words).then_some(())
    });
}

fn cluster_scoped(env: &TestEnv) {
    let group = define(env, "Cluster");
    let text = format!(r#"{{"apiVersion":"{group}/v1","kind":"Box","metadata":{{"name":"a"}}}}"#);
    let stored = env.eventually("the kind is served", || env.try_create(&text).ok());
    assert_eq!(env.present(&stored), Some(stored));
    let words = "the namespace of the provided object does not match the namespace sent on the request";
    let homed = text.replace(r#""name":"a""#, r#""name":"b","namespace":"NS""#);
    refused(env, env.try_create(&homed), ErrorKind::Invalid, 400, words);
}
