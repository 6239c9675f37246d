//! Policies of `policies.kyverno.io` in scans.

use super::harness::{Harness, config_map, wants};

const CONFIG_MAPS: &str = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}";

fn policy(kind: &str, name: &str, body: &str) -> String {
    format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {{name: {name}}}, spec: {{{CONFIG_MAPS}, {body}}}}}"
    )
}

fn validating(name: &str, value: &str) -> String {
    policy("ValidatingPolicy", name, &format!("validations: [{{expression: \"object.data.v == '{value}'\"}}]"))
}

#[test]
fn policies_of_one_name_and_several_kinds_have_results_of_their_own() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "x"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.apply(&validating("p", "z"));
    harness.settle();
    assert_eq!(harness.words(), ["m: p/=fail, p/r=pass"]);
    // An edit is seen, and a policy that goes takes its results only.
    harness.apply(&validating("p", "x"));
    harness.settle();
    assert_eq!(harness.words(), ["m: p/=pass, p/r=pass"]);
    harness.delete("kyverno.io/v1", "ClusterPolicy", "", "p");
    harness.settle();
    assert_eq!(harness.words(), ["m: p/=pass"]);
}

#[test]
fn an_object_that_a_mutating_policy_would_change_fails_and_is_not_changed() {
    let mutations = "mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"replace\", path: \"/data/v\", \
                     value: \"x\"}]'}}]";
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "as-wanted", "x"));
    harness.apply(&config_map("a", "other", "z"));
    harness.apply(&policy("MutatingPolicy", "m", mutations));
    harness.settle();
    assert_eq!(harness.words(), ["as-wanted: m/=pass", "other: m/=fail"]);
    let values: Vec<String> =
        harness.list("v1", "ConfigMap").iter().filter_map(|map| Some(map.str_at(&["data", "v"])?.to_owned())).collect();
    assert!(values.contains(&"z".to_owned()), "{values:?}");
    let versions = harness.versions();
    harness.resync();
    harness.settle();
    assert_eq!(harness.versions(), versions, "a second scan writes nothing");
}
