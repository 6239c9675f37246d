//! Kubernetes' own admission policies on the command line.

use super::apply_tests::Desk;
use super::cluster_tests::cluster;
use crate::exit::Exit;

const HOME: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
";

const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: good, namespace: a, labels: {team: core}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: a}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";

const ADMISSION: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: team}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods, namespaces]}]
  validations: [{expression: \"has(object.metadata.labels) && 'team' in object.metadata.labels\", message: no team}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: pods}
spec:
  policyName: team
  validationActions: [Deny]
  matchResources:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]
";

const STRAY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: stray}
spec: {policyName: taem, validationActions: [Deny]}
";

#[test]
fn admission_policies_of_kubernetes_judge_through_their_bindings() {
    let desk = Desk::new(&[("p/policy.yaml", ADMISSION), ("p/stray.yaml", STRAY), ("pods.yaml", PODS)]);
    let (text, exit) = desk.apply("@/p -r @/pods.yaml");
    assert_eq!(exit, Exit::Findings);
    insta::assert_snapshot!(text, @r"
    p/stray.yaml:5:20: warning[unused-binding]: the policy `taem` is not among those loaded (spec.policyName); did you mean `team`?

    Applying 1 policy rule(s) to 3 resource(s)...
    policy team -> resource a/Pod/bad failed:
        at pods.yaml:7
    1 - team no team

    pass: 1, fail: 1, warn: 0, error: 0, skip: 0
    ");
    let (report, _) = desk.apply("@/p -r @/pods.yaml -p");
    for member in ["source: ValidatingAdmissionPolicy", "binding: pods", "process: background scan"] {
        assert_eq!(report.matches(member).count(), 2, "{member}: {report}");
    }
}

#[test]
fn of_a_cluster_the_resources_that_an_admission_policy_names_are_judged() {
    let desk = Desk::new(&[("p.yaml", ADMISSION)]);
    let (text, exit) = desk.apply_to("@/p.yaml --cluster", &cluster(&format!("{HOME}---{PODS}")));
    assert_eq!(exit, Exit::Findings);
    insta::assert_snapshot!(text, @r"
    Applying 1 policy rule(s) to 8 resource(s)...
    policy team -> resource a/Pod/bad failed:
    1 - team no team

    pass: 1, fail: 1, warn: 0, error: 0, skip: 0
    ");
}
