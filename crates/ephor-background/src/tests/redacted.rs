//! Values of Secrets in what fails: Events and `UpdateRequest`s are read by people who may not read the Secret.

use ephor_expr::Value;

use super::harness::Harness;
use crate::writer::Note;

const SECRET: &str = "
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: default}
data: {password: U3VwZXJTZWNyZXRWYWx1ZTk5, spaced: QW5vdGhlciBTZWNyZXQgVmFsdWU=}
";
const VALUES: [&str; 4] =
    ["SuperSecretValue99", "Another Secret Value", "U3VwZXJTZWNyZXRWYWx1ZTk5", "QW5vdGhlciBTZWNyZXQgVmFsdWU="];

fn policy(rule: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec:\n  rules:\n  - name: r\n    \
         match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}\n{rule}"
    )
}

/// The rule reads a Secret and renders what the cluster refuses, in words that quote the value.
#[test]
fn what_fails_quotes_no_value_of_a_secret() {
    let read = "    context: [{name: s, apiCall: {urlPath: /api/v1/namespaces/default/secrets/s}}]\n";
    let generate = format!(
        "{read}    generate: {{apiVersion: v1, kind: ConfigMap, namespace: default, synchronize: true, name: \"{{{{ \
         s.data.password | base64_decode(@) }}}}\", data: {{data: {{a: b}}}}}}"
    );
    let foreach = format!(
        "{read}    generate: {{synchronize: false, foreach: [{{list: \"['a']\", apiVersion: v1, kind: ConfigMap, namespace: \
         default, name: \"{{{{ s.data.password | base64_decode(@) }}}}\", data: {{data: {{a: b}}}}}}]}}"
    );
    let label = "    mutate: {targets: [{apiVersion: v1, kind: Secret, name: s, namespace: default}], \
                 patchStrategicMerge: {metadata: {labels: {x: \"{{ target.data.spaced | base64_decode(@) }}\"}}}}"
        .to_owned();
    let name = "    mutate: {targets: [{apiVersion: v1, kind: Secret, name: s, namespace: default}], patchesJson6902: \
                '[{\"op\":\"replace\",\"path\":\"/metadata/name\",\"value\":\"{{ target.data.password | base64_decode(@) \
                }}\"}]'}"
        .to_owned();
    for rule in [generate, foreach, label, name] {
        let mut harness = Harness::new();
        harness.apply(SECRET);
        harness.apply(&policy(&rule));
        harness.settle();
        harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: cat, namespace: default}}");
        harness.settle();
        let mut told: Vec<String> = Vec::new();
        for note in harness.notes.lock().unwrap().iter() {
            if let Note::Failed { message, .. } = note {
                told.push(message.clone());
            }
        }
        assert!(!told.is_empty(), "nothing failed: {rule}");
        told.extend(harness.list("kyverno.io/v2", "UpdateRequest").iter().map(ephor_expr::Value::to_json));
        told.extend(
            harness.list("kyverno.io/v1", "ClusterPolicy").iter().filter_map(|p| Some(p.get("status")?.to_json())),
        );
        assert!(told.iter().any(|text| text.contains("redacted")), "{told:?}");
        for text in &told {
            for value in VALUES {
                assert!(!text.contains(value), "{rule}\n{text}");
            }
        }
    }
}

/// What a policy notes about a Secret goes to reports.
#[test]
fn annotations_of_what_is_made_show_no_value_of_a_secret() {
    let mut harness = Harness::new();
    harness.apply(
        "
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
  auditAnnotations: [{key: noted, valueExpression: string(object.data.password)}]
  generate:
  - template:
      interpolate: cel
      value: |
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: made, namespace: default}
",
    );
    harness.settle();
    harness.apply(SECRET);
    harness.settle();
    let notes = harness.notes.lock().unwrap();
    let words = notes.iter().find_map(|note| match note {
        Note::Changed { words, .. } => Some(words),
        _ => None,
    });
    let noted = Value::object(words.expect("nothing was made").properties.clone()).to_json();
    assert!(noted.contains("redacted"), "{noted}");
    assert!(VALUES.iter().all(|value| !noted.contains(value)), "{noted}");
}
