//! Commands that read from a cluster.

use ephor_cluster::{Cluster, MemoryCluster, WriteOptions};
use ephor_expr::yaml::{Limits, parse_values};

use super::apply_tests::Desk;
use crate::exit::Exit;

/// A cluster in which these documents were created.
pub(super) fn cluster(documents: &str) -> MemoryCluster {
    let cluster = MemoryCluster::default();
    for document in parse_values(documents, &Limits::default()).unwrap() {
        let text = |key| document.str_at(&[key]).unwrap_or_default().to_owned();
        let resource = cluster.resolve(&text("apiVersion"), &text("kind")).unwrap();
        cluster.create(&resource, document, &WriteOptions::default()).unwrap();
    }
    cluster
}

const SHOP: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: core}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: yard}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: shop}, data: {most: '2'}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: shop, labels: {team: core}}
spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shed, namespace: yard}
spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Box, plural: boxes}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
{apiVersion: example.com/v1, kind: Box, metadata: {name: crate}}
";

const TEAM: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: team-label
    match: {any: [{resources: {kinds: [Deployment, Box]}}]}
    validate:
      message: every object has a team
      pattern: {metadata: {labels: {team: '?*'}}}
";

/// Asks the cluster in every way.
const QUESTIONS: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: questions, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: config-map
    match: {any: [{resources: {kinds: [Deployment], namespaces: [shop]}}]}
    context: [{name: limits, configMap: {name: limits, namespace: shop}}]
    validate:
      message: 'at most {{ limits.data.most }} replicas'
      deny: {conditions: {any: [{key: '{{ request.object.spec.replicas }}', operator: GreaterThan, value: '{{ limits.data.most }}'}]}}
  - name: namespace-labels
    match: {any: [{resources: {kinds: [Deployment], namespaceSelector: {matchLabels: {team: core}}}}]}
    validate: {message: seen in a core namespace, deny: {}}
  - name: api-call
    match: {any: [{resources: {kinds: [Deployment], namespaces: [yard]}}]}
    context: [{name: boxes, apiCall: {urlPath: /apis/example.com/v1/boxes, jmesPath: 'items[].metadata.name'}}]
    validate: {message: 'boxes: {{ boxes }}', deny: {}}
  - name: global
    match: {any: [{resources: {kinds: [Deployment], namespaces: [yard]}}]}
    context: [{name: names, globalReference: {name: namespaces, jmesPath: '[].metadata.name'}}]
    validate: {message: 'namespaces: {{ names }}', deny: {}}
  - name: post
    match: {any: [{resources: {kinds: [Deployment], namespaces: [yard]}}]}
    context: [{name: made, apiCall: {urlPath: /api/v1/namespaces, method: POST, data: [{key: kind, value: Namespace}]}}]
    validate: {message: m, deny: {conditions: {any: [{key: '{{ made }}', operator: Equals, value: x}]}}}
";

const ENTRY: &str = "
apiVersion: kyverno.io/v2
kind: GlobalContextEntry
metadata: {name: namespaces}
spec: {kubernetesResource: {group: '', version: v1, resource: namespaces}}
";

#[test]
fn what_exists_in_a_cluster_is_judged_and_left_as_it_is() {
    let cluster = cluster(SHOP);
    let revision = cluster.revision();
    let (text, exit) = Desk::new(&[("team.yaml", TEAM)]).apply_to("@/team.yaml --cluster", &cluster);
    insta::assert_snapshot!(text);
    assert_eq!((exit, cluster.revision()), (Exit::Findings, revision));
}

#[test]
fn the_extent_is_a_choice() {
    let cluster = cluster(SHOP);
    let desk = Desk::new(&[("team.yaml", TEAM)]);
    let last = |words: &str| {
        let (text, _) = desk.apply_to(words, &cluster);
        text.trim().lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(last("@/team.yaml --cluster -n shop"), "pass: 1, fail: 0, warn: 0, error: 0, skip: 0");
    assert_eq!(last("@/team.yaml --cluster --namespace yard"), "pass: 0, fail: 1, warn: 0, error: 0, skip: 0");
    assert_eq!(last("@/team.yaml -c --cluster-wide-resources"), "pass: 0, fail: 1, warn: 0, error: 0, skip: 0");
    let (refused, exit) = desk.apply_to("@/team.yaml -n shop -r @/team.yaml", &cluster);
    assert!(refused.contains("--cluster") && exit == Exit::CouldNot, "{refused}");
}

#[test]
fn the_cluster_answers_what_policies_ask() {
    let cluster = cluster(&format!("{SHOP}---{ENTRY}"));
    let (text, exit) = Desk::new(&[("questions.yaml", QUESTIONS)]).apply_to("@/questions.yaml --cluster", &cluster);
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::Findings);
}

#[test]
fn files_are_judged_with_the_facts_of_the_cluster() {
    let cluster = cluster(SHOP);
    let planned = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: planned, namespace: shop}
spec: {replicas: 5}
";
    let desk = Desk::new(&[("questions.yaml", QUESTIONS), ("planned.yaml", planned)]);
    let (text, exit) = desk.apply_to("@/questions.yaml -r @/planned.yaml --cluster", &cluster);
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::Findings);
}

#[test]
fn without_policies_those_of_the_cluster_are_applied() {
    let exception = "
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: shed, namespace: yard}
spec:
  exceptions: [{policyName: require-team, ruleNames: [team-label]}]
  match: {any: [{resources: {kinds: [Deployment], names: [shed]}}]}
";
    let cluster = cluster(&format!("{SHOP}---{TEAM}---{exception}"));
    let desk = Desk::new(&[("team.yaml", TEAM)]);
    let (text, exit) = desk.apply_to("--cluster", &cluster);
    insta::assert_snapshot!(text);
    assert_eq!(exit, Exit::Findings);
    for words in ["--cluster --exceptions-within-policies", "@/team.yaml --cluster --exceptions-with-resources"] {
        let (text, _) = desk.apply_to(words, &cluster);
        assert!(text.ends_with("pass: 1, fail: 1, warn: 0, error: 0, skip: 1 \n"), "{text}");
    }
}

#[test]
fn a_cluster_without_policies_is_not_a_clean_one() {
    let (text, exit) = Desk::new(&[]).apply_to("--cluster", &cluster(SHOP));
    assert!(text.starts_with("error[no-policies]: the cluster has no policies"), "{text}");
    assert_eq!(exit, Exit::CouldNot);
}

#[test]
fn a_target_without_api_version_has_that_of_the_only_group() {
    let policy = |kind: &str| {
        format!(
            "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: make}}
spec:
  rules:
  - name: make
    match: {{any: [{{resources: {{kinds: [Namespace]}}}}]}}
    generate: {{kind: {kind}, name: made, namespace: '{{{{ request.object.metadata.name }}}}', data: {{spec: {{}}}}}}
"
        )
    };
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
    let apply = |kind: &str, cluster: Option<&MemoryCluster>| {
        let desk = Desk::new(&[("p.yaml", &policy(kind)), ("n.yaml", namespace)]);
        match cluster {
            None => desk.apply("@/p.yaml -r @/n.yaml"),
            Some(cluster) => desk.apply_to("@/p.yaml -r @/n.yaml --cluster", cluster),
        }
    };
    let taken =
        |kind: &str, group: &str| format!("`apiVersion` is missing: `{group}` is taken, which alone serves `{kind}`");
    let several = |kind: &str| format!("`apiVersion` is missing, and `{kind}` is served by several groups");

    let (text, exit) = apply("NetworkPolicy", None);
    assert!(text.contains(&taken("NetworkPolicy", "networking.k8s.io/v1")), "{text}");
    assert!(text.contains("\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"), "{text}");
    assert_eq!(exit, Exit::Clean);
    let (text, exit) = apply("Event", None);
    assert!(text.contains(&several("Event")), "{text}");
    assert_eq!(exit, Exit::CouldNot);
    // What the files say nothing of, a cluster may serve; and it may serve more.
    let (text, _) = apply("Crate", None);
    assert!(text.contains("in a cluster it is filled in if one group alone serves the kind"), "{text}");
    let served = cluster(&["Crate", "NetworkPolicy"].map(definition).join("---"));
    let (text, _) = apply("Crate", Some(&served));
    assert!(text.contains(&taken("Crate", "example.com/v1")), "{text}");
    let (text, _) = apply("NetworkPolicy", Some(&served));
    assert!(text.contains(&several("NetworkPolicy")), "{text}");
}

fn definition(kind: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}}}
  versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]
"
    )
}
