//! The examples of upstream's documents that Ephor was written from.
//!
//! The documents lie beside the project, in `../shared/reference/source-docs`. The tests extract every YAML example
//! from them: [`EXAMPLES`] says what each is, and the list is exact. Policies are loaded as `ephor check` loads them,
//! and where a document states what an example does, a test holds it through `ephor apply`'s own functions. Nothing
//! of the documents' text is copied into the project.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ephor_admission::status::{Description, Readiness, describe};
use ephor_cli::apply::{Inputs, Keep, Selected, run};
use ephor_cli::fix::fix;
use ephor_cli::load::{LoadedPolicies, load_file};
use ephor_cli::locate::SourceFile;
use ephor_cli::ui::Ui;
use ephor_cluster::Discovery;
use ephor_engine::outcome::Verdict;
use ephor_expr::yaml::{Limits, parse_value, parse_values};
use ephor_expr::{Map, Value};
use ephor_runtime::policies::StoredPolicy;
use jiff::Timestamp;

/// What an example is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Example {
    /// A policy that is accepted as it stands.
    Policy,
    /// A policy with a field that upstream has removed since: accepted after `ephor check --fix`.
    Old,
    /// No policy, for this reason.
    Fragment(&'static str),
}

const STATUS: Example = Example::Fragment("the status of the policy before it");
const CONDITION: Example = Example::Fragment("a condition without its rule");
const RULES: Example = Example::Fragment("rules with match and exclude alone");
const PATTERN: Example = Example::Fragment("a pattern without its rule");
const MATCH: Example = Example::Fragment("a match block alone");
const UNINDENTED: Example = Example::Fragment("its indentation is lost");

/// The documents and their examples, in order.
const EXAMPLES: [(&str, &[Example]); 5] = [
    ("autogen-rules", &[Example::Policy, STATUS, CONDITION, RULES, Example::Policy, PATTERN, PATTERN]),
    ("autogen-rules-older", &[Example::Policy, STATUS, CONDITION, RULES, Example::Policy, PATTERN, PATTERN]),
    ("generate-existing-proposal", &[MATCH, MATCH, Example::Old, Example::Old, Example::Old]),
    (
        "generate-rules",
        &[
            Example::Policy,
            Example::Policy,
            Example::Policy,
            Example::Policy,
            Example::Fragment("the binding that the next policy needs"),
            Example::Policy,
            Example::Policy,
            Example::Policy,
            Example::Policy,
        ],
    ),
    ("policy-basics", &[UNINDENTED, UNINDENTED]),
];

/// The examples of a document, repaired: one document writes comments as `//`, which is not YAML.
fn examples(document: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/source-docs");
    assert!(
        folder.is_dir(),
        "the source documents are not there: put the `shared` folder beside the project, as `{}`",
        folder.display()
    );
    let path = folder.join(document).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let found = if text.contains("```") { fenced(&text) } else { numbered(&text) };
    found.iter().map(|example| example.replace("   // ", "   # ")).collect()
}

/// Blocks between fences that are YAML by their word, or have no word.
fn fenced(text: &str) -> Vec<String> {
    let blocks = text.split("```").skip(1).step_by(2);
    let yaml = blocks.filter_map(|block| {
        let (word, body) = block.split_once('\n')?;
        matches!(word.trim(), "yaml" | "").then(|| body.to_owned())
    });
    yaml.collect()
}

/// Listings whose lines carry their number, as a copied page shows them.
fn numbered(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = line.split_at(digits);
        if number == "1" {
            found.push(String::new());
        }
        if let (false, Some(listing)) = (number.is_empty(), found.last_mut()) {
            listing.push_str(rest);
            listing.push('\n');
        }
    }
    found
}

/// What `ephor check` makes of a text.
fn load(name: &str, text: &str) -> LoadedPolicies {
    let mut loaded = LoadedPolicies::for_served(Discovery::kubernetes());
    load_file(&Arc::new(SourceFile { name: name.to_owned(), text: text.to_owned() }), &mut loaded);
    loaded
}

fn errors(loaded: &LoadedPolicies) -> Vec<String> {
    let errors = loaded.findings.iter().filter(|finding| finding.is_error());
    errors.map(|finding| format!("{}: {}: {}", finding.place(), finding.code, finding.message)).collect()
}

/// An example as YAML.
fn value(document: &str, index: usize) -> Value {
    parse_value(&examples(document)[index]).unwrap_or_else(|e| panic!("{document} {index}: {e}"))
}

/// A policy of one rule on Pods with more members, for examples that are a part of one.
fn policy_with(members: &[(&str, Value)]) -> Value {
    let mut rule = Map::new();
    rule.insert("name", Value::from("example"));
    rule.insert("match", parse_value("{any: [{resources: {kinds: [Pod]}}]}").unwrap());
    for (key, value) in members {
        rule.insert(*key, value.clone());
    }
    policy_of(Value::array(vec![Value::object(rule)]))
}

fn policy_of(rules: Value) -> Value {
    let mut policy =
        parse_value("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: example}}").unwrap();
    let spec = Value::from([("background", Value::Bool(false)), ("rules", rules)]);
    policy.as_object_mut().unwrap().insert("spec", spec);
    policy
}

/// The rules of `status.autogen` as Ephor writes them.
fn autogen(policy: &Value) -> Vec<Value> {
    let description = Description::of(&StoredPolicy::new(policy.clone()));
    let ready = Readiness::Ready { failing: None };
    let status = describe(&description, &ready, None, None, Timestamp::UNIX_EPOCH).unwrap();
    status.at(&["autogen", "rules"]).and_then(Value::as_array).unwrap_or_default().to_vec()
}

/// A rule without what says nothing: empty blocks, defaults, the groups of kinds and their order.
fn essence(value: &Value) -> Value {
    if let Some(map) = value.as_object() {
        let mut kept = Map::new();
        for (key, member) in map.iter() {
            let member = essence(member);
            let empty = member.as_object().is_some_and(Map::is_empty);
            if empty || matches!(key.as_str(), "skipBackgroundRequests" | "allowExistingViolations") {
                continue;
            }
            kept.insert(key.clone(), if key.as_str() == "kinds" { plain_kinds(&member) } else { member });
        }
        return Value::object(kept);
    }
    value.as_array().map_or_else(|| value.clone(), |items| Value::array(items.iter().map(essence).collect()))
}

fn plain_kinds(kinds: &Value) -> Value {
    let kinds = kinds.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
    let mut plain: Vec<&str> = kinds.map(|kind| kind.rsplit('/').next().unwrap_or_default()).collect();
    plain.sort_unstable();
    Value::array(plain.into_iter().map(Value::from).collect())
}

/// What `ephor apply` came to: the verdicts of rules by the names of objects, and the objects it would write.
struct Applied {
    verdicts: BTreeMap<(String, String), Verdict>,
    objects: Vec<Value>,
}

fn apply(policy: &str, resources: &str) -> Applied {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut inputs = Inputs::load(&Selected {
        policies: &[file("policy.yaml", policy)],
        cluster: None,
        resources: &[file("resources.yaml", resources)],
        targets: &[],
        values: None,
        set: &[],
        context: None,
        user: None,
        exceptions: &[],
        exceptions_with_resources: false,
        exceptions_within_policies: false,
        crds: &[],
        allow_net: &[],
    });
    inputs.plan.keep = Keep::All;
    inputs.plan.write_changes = true;
    let output = directory.path().join("output.yaml");
    let results = run(inputs, Some(&output), false, &Ui::new(true, true)).unwrap();
    assert!(!results.could_not, "{:?}", results.findings);
    let verdicts = results.rows.iter().map(|row| ((row.rule.to_string(), row.subject.name.to_string()), row.verdict));
    let written = std::fs::read_to_string(&output).unwrap_or_default();
    Applied { verdicts: verdicts.collect(), objects: parse_values(&written, &Limits::default()).unwrap() }
}

fn json(value: &Value) -> String {
    value.to_string()
}

#[test]
fn every_example_is_accepted_or_listed_with_a_reason() {
    for (document, expected) in EXAMPLES {
        let found = examples(document);
        assert_eq!(found.len(), expected.len(), "{document} has other examples than the list");
        for (index, (text, expected)) in found.iter().zip(expected).enumerate() {
            let name = format!("{document} {index}");
            let loaded = load(&name, text);
            let accepted = loaded.policies.len() == 1 && errors(&loaded).is_empty();
            match expected {
                Example::Policy => assert!(accepted, "{name}: {:?}", errors(&loaded)),
                Example::Old => {
                    assert!(!accepted, "{name} is accepted as it stands: list it so");
                    assert!(loaded.findings.iter().any(|f| f.code == "removed-field"), "{:?}", errors(&loaded));
                    let fixed = load(&name, &fix(text).expect("something to fix").text);
                    assert!(fixed.policies.len() == 1 && errors(&fixed).is_empty(), "{name}: {:?}", errors(&fixed));
                }
                Example::Fragment(reason) => {
                    assert!(loaded.policies.is_empty(), "{name} ({reason}) is a policy: list it so");
                }
            }
        }
    }
}

#[test]
fn auto_gen_makes_the_rules_that_the_documents_print() {
    for document in ["autogen-rules", "autogen-rules-older"] {
        let made = autogen(&value(document, 0));
        let printed = value(document, 1);
        let printed = printed.at(&["status", "autogen", "rules"]).unwrap();
        assert_eq!(essence(&Value::array(made)), essence(printed), "{document}");
        // Printed rules have empty blocks of other operations; they are rules all the same.
        let stored = load(document, &json(&policy_of(printed.clone())));
        assert_eq!(errors(&stored), [] as [String; 0], "{document}");
    }
}

#[test]
fn a_rule_that_excludes_pods_by_annotation_is_not_expanded() {
    for document in ["autogen-rules", "autogen-rules-older"] {
        let mut rules = value(document, 3).get("rules").unwrap().clone();
        for rule in rules.as_array_mut().unwrap() {
            let denies = parse_value("{message: refused, deny: {}}").unwrap();
            rule.as_object_mut().unwrap().insert("validate", denies);
        }
        assert_eq!(autogen(&policy_of(rules)), [] as [Value; 0], "{document}");
    }
}

#[test]
fn patterns_are_translated_as_the_documents_print_them() {
    for document in ["autogen-rules", "autogen-rules-older"] {
        let made = autogen(&policy_with(&[("validate", value(document, 5))]));
        assert_eq!(made[0].at(&["validate", "pattern"]), value(document, 6).get("pattern"), "{document}");
    }
}

const DEPLOYMENTS: &str = "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: inside},
 spec: {template: {spec: {containers: [{name: a, image: registry.domain.com/a}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: outside},
 spec: {template: {spec: {containers: [{name: a, image: example.com/a}]}}}}
---
{apiVersion: apps/v1, kind: Deployment,
 metadata: {name: skipped, annotations: {policy.test.io/require-requests-limits: skip}},
 spec: {template: {spec: {containers: [{name: a, image: example.com/a}]}}}}
";

#[test]
fn images_from_other_registries_are_refused_in_workloads() {
    for document in ["autogen-rules", "autogen-rules-older"] {
        let applied = apply(&examples(document)[0], DEPLOYMENTS);
        let verdict = |name: &str| applied.verdicts[&("autogen-validate-registries".to_owned(), name.to_owned())];
        assert_eq!((verdict("inside"), verdict("outside")), (Verdict::Pass, Verdict::Fail), "{document}");
    }
}

#[test]
fn a_quoted_object_is_the_workload_itself() {
    for document in ["autogen-rules", "autogen-rules-older"] {
        let applied = apply(&examples(document)[4], DEPLOYMENTS);
        let verdict = |name: &str| applied.verdicts[&("autogen-validate-resources".to_owned(), name.to_owned())];
        assert_eq!((verdict("skipped"), verdict("outside")), (Verdict::Skip, Verdict::Fail), "{document}");
    }
}

#[test]
fn the_condition_on_owners_passes_over_pods_of_jobs() {
    let pods = "
{apiVersion: v1, kind: Pod, metadata: {name: of-job, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: a, uid: a}]}}
---
{apiVersion: v1, kind: Pod,
 metadata: {name: of-set, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: a, uid: a}]}}
";
    for document in ["autogen-rules", "autogen-rules-older"] {
        let conditions = Value::from([("all", value(document, 2))]);
        let denies = parse_value("{message: refused, deny: {}}").unwrap();
        let policy = policy_with(&[("preconditions", conditions), ("validate", denies)]);
        let applied = apply(&json(&policy), pods);
        let verdict = |name: &str| applied.verdicts[&("example".to_owned(), name.to_owned())];
        assert_eq!((verdict("of-job"), verdict("of-set")), (Verdict::Skip, Verdict::Fail), "{document}");
    }
}

/// Triggers and sources of the generate examples.
const CLUSTER: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}
---
{apiVersion: v1, kind: Secret, metadata: {name: regcred, namespace: default}, type: Opaque, data: {token: YQ==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: tls-pair, namespace: default}, type: Opaque, data: {token: Yg==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: secret-basic-auth, namespace: default}, type: Opaque, data: {token: Yw==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: shared, namespace: staging, labels: {allowedToBeCloned: 'true'}},
 type: Opaque, data: {token: ZA==}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: shared, namespace: staging, labels: {allowedToBeCloned: 'true'}},
 data: {token: e}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: private, namespace: staging}, data: {token: f}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: 0e4c}, spec: {ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web}},
 spec: {template: {spec: {containers: [{name: a, image: example.com/a}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: disk, namespace: local-path-storage},
 spec: {template: {spec: {containers: [{name: a, image: example.com/a}]}}}}
";

/// The kind, namespace and name of what each example generates, and in which member it has something of its own.
type Made = (&'static str, &'static str, &'static str, &'static [&'static str], &'static str);

const GENERATED: [(&str, usize, &[Made]); 11] = [
    (
        "generate-rules",
        0,
        &[(
            "ConfigMap",
            "shop",
            "zk-kafka-address",
            &["data", "ZK_ADDRESS"],
            "\"192.168.10.10:2181,192.168.10.11:2181,192.168.10.12:2181\"",
        )],
    ),
    ("generate-rules", 1, &[("NetworkPolicy", "shop", "deny-all-traffic", &["spec"], DENY_ALL)]),
    (
        "generate-rules",
        2,
        &[
            ("Secret", "kube-system", "regcred", &["data", "token"], "\"YQ==\""),
            ("Secret", "shop", "regcred", &["data", "token"], "\"YQ==\""),
        ],
    ),
    (
        "generate-rules",
        3,
        &[
            ("ConfigMap", "shop", "shared", &["data", "token"], "\"e\""),
            ("Secret", "shop", "shared", &["data", "token"], "\"ZA==\""),
        ],
    ),
    (
        "generate-rules",
        5,
        &[
            ("RoleBinding", "kube-system", "steven-rolebinding", &["roleRef", "name"], "\"admin\""),
            ("RoleBinding", "shop", "steven-rolebinding", &["roleRef", "name"], "\"admin\""),
        ],
    ),
    (
        "generate-rules",
        6,
        &[(
            "ConfigMap",
            "shop",
            "web-gen-cm",
            &["metadata", "ownerReferences"],
            r#"[{"apiVersion":"v1","kind":"Service","name":"web","uid":"0e4c"}]"#,
        )],
    ),
    (
        "generate-rules",
        7,
        &[
            ("NetworkPolicy", "kube-system", "default-deny", &["spec"], DENY_ALL),
            ("NetworkPolicy", "shop", "default-deny", &["spec"], DENY_ALL),
        ],
    ),
    (
        "generate-rules",
        8,
        &[("PodDisruptionBudget", "shop", "web-default-pdb", &["spec", "selector", "matchLabels"], r#"{"app":"web"}"#)],
    ),
    (
        "generate-existing-proposal",
        2,
        &[
            ("Secret", "kube-system", "docker", &["data", "token"], "\"Yg==\""),
            ("Secret", "shop", "docker", &["data", "token"], "\"Yg==\""),
        ],
    ),
    (
        "generate-existing-proposal",
        3,
        &[
            ("NetworkPolicy", "kube-system", "default-deny", &["spec"], DENY_ALL),
            ("NetworkPolicy", "shop", "default-deny", &["spec"], DENY_ALL),
        ],
    ),
    (
        "generate-existing-proposal",
        4,
        &[
            ("Secret", "kube-system", "secret-basic-auth", &["data", "token"], "\"Yw==\""),
            ("Secret", "shop", "secret-basic-auth", &["data", "token"], "\"Yw==\""),
        ],
    ),
];

const DENY_ALL: &str = r#"{"podSelector":{},"policyTypes":["Ingress","Egress"]}"#;

#[test]
fn generate_examples_make_what_the_documents_say() {
    let policies = EXAMPLES.iter().filter(|(document, _)| document.starts_with("generate"));
    let policies = policies.flat_map(|(_, examples)| *examples).filter(|e| !matches!(e, Example::Fragment(_)));
    assert_eq!(GENERATED.len(), policies.count(), "every generate policy has a row");
    for (document, index, expected) in GENERATED {
        let text = &examples(document)[index];
        let text = fix(text).map_or_else(|| text.clone(), |fixed| fixed.text);
        let mut made = apply(&text, CLUSTER).objects;
        let key = |object: &Value| {
            let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default().to_owned();
            (text(&["kind"]), text(&["metadata", "namespace"]), text(&["metadata", "name"]))
        };
        made.sort_by_key(key);
        let told: Vec<_> = made.iter().map(key).collect();
        assert_eq!(told.len(), expected.len(), "{document} {index}: {told:?}");
        for (object, (kind, namespace, name, path, content)) in made.iter().zip(expected) {
            assert_eq!(key(object), ((*kind).to_owned(), (*namespace).to_owned(), (*name).to_owned()));
            assert_eq!(object.at(path).map(json).as_deref(), Some(*content), "{document} {index}: {name}");
        }
    }
}
