//! Exceptions: what was made stays as it is.

use super::harness::Harness;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    generate:
      synchronize: true
      generateExisting: true
      orphanDownstreamOnPolicyDelete: false
      apiVersion: v1
      kind: Secret
      name: made
      namespace: '{{ request.object.metadata.namespace }}'
      data: {data: {k: '{{ request.object.data.v }}'}}
";
const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, labels: {on: 'yes'}}, data: {v: x}}";
const EXCEPTION: &str = "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e}, spec: {
  exceptions: [{policyName: p, ruleNames: [r]}],
  match: {any: [{resources: {kinds: [ConfigMap], names: [t]}}]}}}";
const MADE: &str = "{apiVersion: v1, kind: Secret, metadata: {name: made}}";

fn said(harness: &Harness) -> Option<String> {
    harness.find(MADE).map(|made| made.str_at(&["data", "k"]).unwrap_or_default().to_owned())
}

fn excepted() -> Harness {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    harness.apply(EXCEPTION);
    harness.settle();
    harness
}

#[test]
fn what_an_exception_is_about_stays_as_it_is_until_it_goes() {
    let mut harness = excepted();
    harness.apply(&TRIGGER.replace("v: x", "v: z"));
    harness.settle();
    assert_eq!(said(&harness).as_deref(), Some("x"));
    harness.restart();
    harness.settle();
    assert_eq!(said(&harness).as_deref(), Some("x"));
    harness.delete(EXCEPTION);
    harness.settle();
    assert_eq!(said(&harness).as_deref(), Some("z"));
}

#[test]
fn what_an_exception_is_about_goes_with_its_trigger() {
    let mut harness = excepted();
    harness.delete(TRIGGER);
    harness.settle();
    assert_eq!(said(&harness), None);
}

#[test]
fn a_foreign_object_with_copied_labels_outlives_an_exception() {
    let mut harness = excepted();
    let mut copy = harness.find(MADE).unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        ephor_runtime::content::set_meta(&mut copy, key, None);
    }
    ephor_runtime::content::set_meta(&mut copy, "name", Some("mine".into()));
    harness.apply_object(&copy);
    harness.settle();
    harness.delete(TRIGGER);
    harness.settle();
    assert!(harness.find("{apiVersion: v1, kind: Secret, metadata: {name: mine}}").is_some());
}

#[test]
fn what_stays_as_it_is_says_all_the_same_whether_it_outlives_its_policy() {
    let mut harness = excepted();
    harness.apply(&POLICY.replace("PolicyDelete: false", "PolicyDelete: true"));
    harness.settle();
    harness.stop();
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    harness.restart();
    harness.settle();
    assert!(said(&harness).is_some(), "the policy's last word was that it stays");
}
