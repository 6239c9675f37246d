//! A Policy whose author tries to reach beyond his namespace.

use ephor_expr::Value;
use ephor_runtime::policies::StoredPolicy;

use super::harness::{Harness, document};

/// What the attacker does not own: nothing of it may change.
const OTHERS: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: team-b}, data: {k: theirs}}
---
{apiVersion: v1, kind: Secret, metadata: {name: theirs, namespace: team-b}, stringData: {k: theirs}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kyverno, namespace: kyverno}, data: {resourceFilters: ''}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: theirs, namespace: team-b},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: theirs}, rules: []}
---
{apiVersion: example.com/v1, kind: Zone, metadata: {name: theirs}, spec: {k: theirs}}
";

/// What is the attacker's own.
const OWN: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: team-a}, data: {to: team-b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: mine, namespace: team-a}, stringData: {to: team-b}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: mine, namespace: team-a}, spec: {replicas: 1,
  selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
    spec: {containers: [{name: main, image: example}]}}}}
";

/// A kind of which the engine does not know that it is cluster-scoped.
const ZONE: &str = "
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: zones.example.com},
  spec: {group: example.com, scope: Cluster, names: {kind: Zone, plural: zones, singular: zone, listKind: ZoneList},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
      x-kubernetes-preserve-unknown-fields: true}}}]}}
";

const TRIGGER: &str = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: trigger, namespace: NAMESPACE, labels: {go: 'yes'}}, data: {
  namespace: team-b, name: theirs, kind: Namespace, zone: Zone, apiVersion: v1,
  path: ../../team-b/configmaps/theirs}}
";

/// What happens to an attack.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The policy is refused before it runs.
    Refused,
    /// Its rule fails.
    Fails,
    /// It does something at home.
    AtHome,
}

const CONFIG_MAP: &str = "{apiVersion: v1, kind: ConfigMap, name: mine, namespace: team-a}";

fn json_patch(operations: &str) -> String {
    format!("mutate: {{targets: [{CONFIG_MAP}], patchesJson6902: '[{operations}]'}}")
}

fn merge(patch: &str) -> String {
    format!("mutate: {{targets: [{CONFIG_MAP}], patchStrategicMerge: {patch}}}")
}

fn target(target: &str) -> String {
    format!("mutate: {{targets: [{target}], patchStrategicMerge: {{metadata: {{labels: {{taken: 'yes'}}}}}}}}")
}

fn generate(body: &str) -> String {
    format!("generate: {{synchronize: true, {body}}}")
}

fn policy(namespace: &str, rule: &str, spec: &str) -> Value {
    document(&format!(
        "{{apiVersion: kyverno.io/v1, kind: Policy, metadata: {{name: p, namespace: {namespace}}}, spec: {{{spec}
           rules: [{{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap],
             selector: {{matchLabels: {{go: 'yes'}}}}}}}}]}}, {rule}}}]}}}}"
    ))
}

/// Everything that is in no namespace of the attacker's, as it is stored.
fn foreign(harness: &Harness, home: &str) -> Vec<Value> {
    let kinds = [
        ("v1", "Namespace"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("example.com/v1", "Zone"),
    ];
    let objects = kinds.iter().flat_map(|(version, kind)| harness.list(version, kind));
    objects.filter(|object| object.str_at(&["metadata", "namespace"]) != Some(home)).collect()
}

/// Lets a policy of `home` run for a trigger; how it ends, with what the policy's failure says.
fn attack(home: &str, rule: &str, spec: &str) -> (End, String) {
    let policy = policy(home, rule, spec);
    let compiled = StoredPolicy::new(policy.clone());
    if compiled.program.is_none() {
        return (End::Refused, format!("{:?}", compiled.findings));
    }
    let mut harness = Harness::new();
    harness.apply(ZONE);
    harness.apply(OTHERS);
    harness.apply(OWN);
    harness.controller.observe_discovery(harness.cluster_discovery(), harness.now);
    // By default, policies do not apply to Ephor's own namespace.
    harness.set("{resourceFilters: ''}");
    harness.apply_object(&policy);
    harness.settle();
    let before = foreign(&harness, home);
    assert!(before.len() > 5);
    harness.apply(&TRIGGER.replace("NAMESPACE", home));
    harness.settle();
    let trigger = |object: &&Value| object.str_at(&["metadata", "name"]) != Some("trigger");
    assert_eq!(
        foreign(&harness, home).iter().filter(trigger).collect::<Vec<_>>(),
        before.iter().filter(trigger).collect::<Vec<_>>(),
        "{rule}"
    );
    let state = harness.controller.state();
    let failures: Vec<&String> = state.failures.values().flat_map(|failures| failures.values()).collect();
    (if failures.is_empty() { End::AtHome } else { End::Fails }, format!("{failures:?}"))
}

#[test]
fn no_policy_of_a_namespace_changes_anything_outside() {
    use End::{AtHome, Fails, Refused};
    let moved = "{\"op\": \"replace\", \"path\": \"/metadata/namespace\", \"value\": \"team-b\"}";
    let renamed = "{\"op\": \"replace\", \"path\": \"/metadata/name\", \"value\": \"theirs\"}";
    let unbound = "{\"op\": \"remove\", \"path\": \"/metadata/uid\"}, {\"op\": \"remove\", \"path\": \
                   \"/metadata/resourceVersion\"}";
    let binding = "{\"op\": \"replace\", \"path\": \"/kind\", \"value\": \"RoleBinding\"}, {\"op\": \"replace\", \
                   \"path\": \"/apiVersion\", \"value\": \"rbac.authorization.k8s.io/v1\"}, {\"op\": \"add\", \"path\": \
                   \"/roleRef\", \"value\": {\"apiGroup\": \"rbac.authorization.k8s.io\", \"kind\": \"ClusterRole\", \
                   \"name\": \"cluster-admin\"}}";
    let settings = "{\"op\": \"replace\", \"path\": \"/metadata\", \"value\": {\"name\": \"kyverno\", \"namespace\": \
                    \"kyverno\"}}";
    let from_data = "{\"op\": \"copy\", \"from\": \"/data/to\", \"path\": \"/metadata/namespace\"}";
    let attacks = [
        // JSON patches that make another object of the target.
        (Fails, json_patch(moved)),
        (Fails, json_patch(renamed)),
        (Fails, json_patch(&format!("{moved}, {renamed}, {unbound}"))),
        (Fails, json_patch(&format!("{binding}, {moved}, {renamed}, {unbound}"))),
        (Fails, json_patch(settings)),
        (Fails, json_patch(from_data)),
        (Fails, json_patch(unbound)),
        (Fails, json_patch("{\"op\": \"remove\", \"path\": \"/metadata\"}")),
        (Refused, json_patch("{\"op\": \"replace\", \"path\": \"\", \"value\": {}}")),
        // The same by merges, with names from the trigger.
        (Fails, merge("{metadata: {namespace: '{{ request.object.data.namespace }}'}}")),
        (Fails, merge("{metadata: {name: '{{ request.object.data.name }}', uid: null, resourceVersion: null}}")),
        (Fails, merge("{metadata: {name: '{{ request.object.data.path }}'}}")),
        (Fails, merge("{kind: '{{ request.object.data.kind }}'}")),
        (Fails, merge("{metadata: {namespace: '{{ target.data.to }}'}}")),
        // The same by loops.
        (
            Fails,
            format!(
                "mutate: {{targets: [{CONFIG_MAP}], foreach: [{{list: \"['name', 'namespace']\", patchesJson6902: \
                 '[{{\"op\": \"replace\", \"path\": \"/metadata/{{{{ element }}}}\", \"value\": \"theirs\"}}]'}}]}}"
            ),
        ),
        (
            Fails,
            format!(
                "mutate: {{targets: [{CONFIG_MAP}], foreach: [{{list: \"['team-b']\", patchStrategicMerge: {{metadata: \
                 {{namespace: '{{{{ element }}}}'}}}}}}]}}"
            ),
        ),
        // A status and a subresource, which are written in other ways.
        (
            Fails,
            "mutate: {targets: [{apiVersion: apps/v1, kind: Deployment, name: mine, namespace: team-a}], \
             patchStrategicMerge: {metadata: {namespace: team-b}, status: {observedGeneration: 7}}}"
                .to_owned(),
        ),
        (
            Fails,
            "mutate: {targets: [{apiVersion: apps/v1, kind: Deployment/scale, name: mine, namespace: team-a}], \
             patchStrategicMerge: {metadata: {namespace: team-b}, spec: {replicas: 3}}}"
                .to_owned(),
        ),
        // Targets elsewhere.
        (Refused, target("{apiVersion: v1, kind: ConfigMap, name: theirs, namespace: team-b}")),
        (Refused, target("{apiVersion: v1, kind: ConfigMap, name: theirs, namespace: '*'}")),
        (
            Refused,
            target("{apiVersion: v1, kind: ConfigMap, name: theirs, namespace: '{{ request.object.data.namespace }}'}"),
        ),
        (Refused, target("{apiVersion: v1, kind: Namespace, name: team-b}")),
        (Refused, target("{apiVersion: v1, kind: '{{ request.object.data.kind }}', name: team-b}")),
        (Refused, target("{apiVersion: '*', kind: Zone, name: theirs}")),
        (Refused, target("{apiVersion: v1, kind: 'Name*', name: team-b}")),
        (Fails, target("{apiVersion: example.com/v1, kind: Zone, name: theirs}")),
        (Fails, target("{apiVersion: example.com/v1, kind: Zone, name: 'th*'}")),
        (Fails, target("{apiVersion: example.com/v1, kind: Zone, selector: {matchLabels: {a: b}}}")),
        (Fails, target("{apiVersion: v1, kind: ConfigMap, name: '{{ request.object.data.path }}'}")),
        // Generated objects.
        (Refused, generate("apiVersion: v1, kind: Secret, name: theirs, namespace: team-b, data: {}")),
        (
            Refused,
            generate(
                "apiVersion: v1, kind: Secret, name: theirs, namespace: '{{ request.object.data.namespace }}', data: {}",
            ),
        ),
        (
            Refused,
            generate(
                "apiVersion: v1, kind: '{{ request.object.data.kind }}', name: theirs, namespace: team-a, data: {}",
            ),
        ),
        (Fails, generate("apiVersion: example.com/v1, kind: Zone, name: theirs, namespace: team-a, data: {spec: {}}")),
        (
            AtHome,
            generate(
                "apiVersion: v1, kind: Secret, name: theirs, namespace: team-a, data: {metadata: {namespace: team-b}, \
                 kind: RoleBinding}",
            ),
        ),
        (
            Fails,
            generate(
                "apiVersion: v1, kind: Secret, name: '{{ request.object.data.path }}', namespace: team-a, data: {}",
            ),
        ),
        (
            Refused,
            generate(
                "foreach: [{list: \"['team-b']\", apiVersion: v1, kind: Secret, name: theirs, namespace: '{{ element \
                 }}', data: {}}]",
            ),
        ),
        // Copies.
        (
            Refused,
            generate(
                "apiVersion: v1, kind: Secret, name: stolen, namespace: team-a, clone: {name: theirs, namespace: team-b}",
            ),
        ),
        (
            Fails,
            generate(
                "apiVersion: example.com/v1, kind: Zone, name: z, namespace: team-a, clone: {name: theirs, namespace: team-a}",
            ),
        ),
        (Refused, generate("namespace: team-a, cloneList: {namespace: team-b, kinds: [v1/Secret]}")),
        (Refused, generate("namespace: team-b, cloneList: {namespace: team-a, kinds: [v1/Secret]}")),
        (
            Refused,
            generate("namespace: team-a, cloneList: {namespace: team-a, kinds: ['v1/{{ request.object.data.kind }}']}"),
        ),
        (
            Refused,
            generate(
                "namespace: '{{ request.object.data.namespace }}', cloneList: {namespace: team-a, kinds: [v1/Secret]}",
            ),
        ),
    ];
    for (end, rule) in attacks {
        for spec in ["", "useServerSideApply: true,"] {
            let (found, why) = attack("team-a", &rule, spec);
            assert_eq!(found, end, "{rule}\n{why}");
        }
    }
}

#[test]
fn a_policy_beside_the_settings_cannot_write_them() {
    let rule = "mutate: {targets: [{apiVersion: v1, kind: ConfigMap, name: kyverno, namespace: kyverno}], \
                patchStrategicMerge: {data: {resourceFilters: '[*,*,*]'}}}";
    let (end, why) = attack("kyverno", rule, "");
    assert_eq!(end, End::Fails, "{why}");
    assert!(why.contains("holds the settings"), "{why}");
}

#[test]
fn a_label_of_another_namespaces_policy_is_not_its_word() {
    let mut harness = Harness::new();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}");
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: team-b, labels: {
        app.kubernetes.io/managed-by: kyverno, generate.kyverno.io/policy-name: p,
        generate.kyverno.io/policy-namespace: team-a, generate.kyverno.io/rule-name: r,
        generate.kyverno.io/trigger-uid: t-1}}}";
    assert_eq!(crate::plan::Claim::of(&document(object)), None);
    assert!(crate::plan::Claim::of(&document(&object.replace("namespace: team-b", "namespace: team-a"))).is_some());
}

#[test]
fn namespaces_take_turns_however_much_work_one_of_them_has() {
    let mut harness = Harness::new();
    for namespace in ["team-a", "team-b"] {
        harness.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"));
    }
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, \
         match: {any: [{resources: {kinds: [ConfigMap], names: ['t-*']}}]}, \
         generate: {synchronize: true, generateExisting: true, apiVersion: v1, kind: Secret, \
         name: '{{ request.object.metadata.name }}', namespace: '{{ request.namespace }}', data: {}}}]}}",
    );
    harness.settle();
    let trigger = |namespace: &str, number: usize| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: t-{number}, namespace: {namespace}}}}}")
    };
    for number in 0..50 {
        harness.apply(&trigger("team-a", number));
    }
    harness.apply(&trigger("team-b", 0));
    while harness.pump() {}
    let made = |harness: &Harness| {
        let of = |namespace: &str| {
            harness
                .list("v1", "Secret")
                .iter()
                .filter(|s| s.str_at(&["metadata", "namespace"]) == Some(namespace))
                .count()
        };
        (of("team-a"), of("team-b"))
    };
    assert_eq!(made(&harness), (0, 0));
    while made(&harness).1 == 0 {
        assert_eq!(harness.controller.step(harness.now), crate::controller::Step::Worked);
    }
    assert!(made(&harness).0 < 5, "{:?}", made(&harness));
}
