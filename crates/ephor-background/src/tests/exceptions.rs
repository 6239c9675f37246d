//! Exceptions: what was made stays as it is.

use super::bed::Bed;

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

fn said(bed: &Bed) -> Option<String> {
    bed.find(MADE).map(|made| made.str_at(&["data", "k"]).unwrap_or_default().to_owned())
}

fn excepted() -> Bed {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.apply(TRIGGER);
    bed.settle();
    bed.apply(EXCEPTION);
    bed.settle();
    bed
}

#[test]
fn what_an_exception_is_about_stays_as_it_is_until_it_goes() {
    let mut bed = excepted();
    bed.apply(&TRIGGER.replace("v: x", "v: z"));
    bed.settle();
    assert_eq!(said(&bed).as_deref(), Some("x"));
    bed.restart();
    bed.settle();
    assert_eq!(said(&bed).as_deref(), Some("x"));
    bed.delete(EXCEPTION);
    bed.settle();
    assert_eq!(said(&bed).as_deref(), Some("z"));
}

#[test]
fn what_an_exception_is_about_goes_with_its_trigger() {
    let mut bed = excepted();
    bed.delete(TRIGGER);
    bed.settle();
    assert_eq!(said(&bed), None);
}

#[test]
fn a_foreign_object_with_copied_labels_outlives_an_exception() {
    let mut bed = excepted();
    let mut copy = bed.find(MADE).unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        ephor_runtime::content::set_meta(&mut copy, key, None);
    }
    ephor_runtime::content::set_meta(&mut copy, "name", Some("mine".into()));
    bed.apply_object(&copy);
    bed.settle();
    bed.delete(TRIGGER);
    bed.settle();
    assert!(bed.find("{apiVersion: v1, kind: Secret, metadata: {name: mine}}").is_some());
}

#[test]
fn what_stays_as_it_is_says_all_the_same_whether_it_outlives_its_policy() {
    let mut bed = excepted();
    bed.apply(&POLICY.replace("PolicyDelete: false", "PolicyDelete: true"));
    bed.settle();
    bed.stop();
    bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    bed.restart();
    bed.settle();
    assert!(said(&bed).is_some(), "the policy's last word was that it stays");
}
