//! `ephor plan` on files.

use std::process::{Command, Output};

use tempfile::TempDir;

const POLICIES: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: namespace-defaults}
spec:
  rules:
  - name: deny-by-default
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      synchronize: true
      apiVersion: networking.k8s.io/v1
      kind: NetworkPolicy
      name: default-deny
      namespace: '{{ request.object.metadata.name }}'
      data: {spec: {podSelector: {}, policyTypes: [Ingress]}}
  - name: pull-secret
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: registry
      namespace: '{{ request.object.metadata.name }}'
      clone: {namespace: shared, name: registry}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: count-teams}
spec:
  rules:
  - name: note
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {team: '*'}}}}]}
    context:
    - name: registry
      apiCall: {urlPath: /api/v1/namespaces/shared/secrets/registry}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, name: teams, namespace: shared}]
      patchStrategicMerge: {data: {latest: '{{ request.object.metadata.labels.team }}', token: '{{ registry.data.token }}'}}
";

const RESOURCES: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: core}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: registry, namespace: shared}, type: Opaque, data: {token: aHVudGVyMg==}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: teams, namespace: shared}, data: {latest: none, first: alpha}}
";

fn plan(directory: &TempDir, arguments: &[&str]) -> Output {
    for (name, text) in [("policies.yaml", POLICIES), ("resources.yaml", RESOURCES)] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
    command.arg("plan").args(arguments).current_dir(directory.path()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_plan_of_files_shows_what_would_be_made() {
    let directory = tempfile::tempdir().unwrap();
    let planned = plan(&directory, &["policies.yaml", "--resource", "resources.yaml"]);
    assert_eq!(text(&planned.stderr), "");
    insta::assert_snapshot!(text(&planned.stdout));
    assert!(!text(&planned.stdout).contains("aHVudGVyMg") && !text(&planned.stdout).contains("hunter2"));
    assert_eq!(planned.status.code(), Some(0));
    let busy = plan(&directory, &["policies.yaml", "--resource", "resources.yaml", "--exit-code"]);
    assert_eq!(busy.status.code(), Some(1), "there is something to do");
}

#[test]
fn without_triggers_there_is_nothing_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let planned = plan(&directory, &["policies.yaml", "--exit-code"]);
    insta::assert_snapshot!(text(&planned.stdout), @"nothing to do");
    insta::assert_snapshot!(text(&planned.stderr), @"hint: there are no triggers: `--resource FILE` brings some, `--cluster` finds those that exist");
    assert_eq!(planned.status.code(), Some(0));
}

#[test]
fn what_would_fail_is_a_finding() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.yaml"), "{apiVersion: v1, kind: Namespace, metadata: {name: a}}").unwrap();
    let planned = plan(&directory, &["policies.yaml", "--resource", "a.yaml"]);
    insta::assert_snapshot!(text(&planned.stderr), @"error: policy namespace-defaults, Namespace a: rule pull-secret for Namespace a: source Secret shared/registry not found");
    assert!(text(&planned.stdout).ends_with("1 to create, 0 to change, 0 to delete, 1 would fail\n"));
    assert_eq!(planned.status.code(), Some(1));
    for arguments in [&["missing.yaml"][..], &["policies.yaml", "--resource", "missing.yaml"], &[]] {
        assert_eq!(plan(&directory, arguments).status.code(), Some(2), "{arguments:?}");
    }
}

const COUNTED: &str = "
apiVersion: kyverno.io/v2
kind: GlobalContextEntry
metadata: {name: namespaces}
spec:
  kubernetesResource: {version: v1, resource: namespaces}
  projections: [{name: count, jmesPath: length(@)}]
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: count}
spec:
  rules:
  - name: count
    match: {any: [{resources: {kinds: [Namespace]}}]}
    context: [{name: count, globalReference: {name: namespaces.count}}]
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: count
      namespace: '{{ request.object.metadata.name }}'
      data: {data: {count: '{{ to_string(count) }}'}}
";

const COUNTED_RESOURCES: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: yard}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: ephor}, data: {resourceFilters: '[*/*,yard,*]'}}
";

#[test]
fn a_plan_of_files_knows_global_context_and_settings() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("counted.yaml", COUNTED), ("namespaces.yaml", COUNTED_RESOURCES)] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let planned = plan(&directory, &["counted.yaml", "--resource", "namespaces.yaml"]);
    let hidden =
        |name: &str| format!("note: no policy sees Namespace {name}: the `resourceFilters` of the settings hide it\n");
    assert_eq!(text(&planned.stderr), hidden("kube-system"));
    let shown = text(&planned.stdout);
    assert!(shown.contains("create ConfigMap yard/count") && shown.contains("count: \"3\""), "{shown}");
    assert!(shown.ends_with("2 to create, 0 to change, 0 to delete\n"), "{shown}");
    let own = ["counted.yaml", "--resource", "namespaces.yaml", "--config-map", "ephor/settings"];
    let planned = plan(&directory, &own);
    assert_eq!(text(&planned.stderr), hidden("yard"));
    assert!(text(&planned.stdout).contains("create ConfigMap kube-system/count"));
    assert_eq!(plan(&directory, &["counted.yaml", "--config-map", "ephor"]).status.code(), Some(2));
}

const QUOTING: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quoting}
spec:
  rules:
  - name: quotes
    match: {any: [{resources: {kinds: [Namespace]}}]}
    context:
    - name: s
      apiCall: {urlPath: /api/v1/namespaces/vault/secrets/tls}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: quoted
      namespace: '{{ request.object.metadata.name }}'
      data:
        data:
          key: '{{ base64_decode(s.data.key) }}'
          quoted: \"it is {{ base64_decode(s.data.pin) }}: '{{ base64_decode(s.data.pin) }}'\"
";

#[test]
fn values_of_secrets_are_not_shown_however_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    // Four lines, and "x's".
    let key = "LS0tLS1CRUdJTi0tLS0tCmZpcnN0bGluZQpzZWNvbmRsaW5lCi0tLS0tRU5ELS0tLS0K";
    let resources = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: shop}}}}\n---\n\
         {{apiVersion: v1, kind: Secret, metadata: {{name: tls, namespace: vault}}, data: {{key: {key}, pin: eCdz}}}}\n"
    );
    for (name, text) in [("quoting.yaml", QUOTING), ("vault.yaml", &resources)] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let planned = plan(&directory, &["quoting.yaml", "--resource", "vault.yaml"]);
    let shown = text(&planned.stdout) + &text(&planned.stderr);
    assert!(shown.contains("key: <redacted>") && shown.contains("1 to create"), "{shown}");
    for secret in ["firstline", "secondline", "BEGIN", "x's", "x''s"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[test]
fn policies_that_plan_nothing_are_pointed_out() {
    let directory = tempfile::tempdir().unwrap();
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, \
                  match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]}}";
    std::fs::write(directory.path().join("mutating.yaml"), policy).unwrap();
    let planned = plan(&directory, &["mutating.yaml", "--resource", "resources.yaml"]);
    insta::assert_snapshot!(text(&planned.stderr), @"hint: no rule of these policies judges or mutates existing objects or generates some");
    assert_eq!(planned.status.code(), Some(0));
}

/// A policy that asks for a label.
fn wants(label: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: labels}}, spec: {{rules: [{{name: {label}, match: \
         {{any: [{{resources: {{kinds: [Namespace, ConfigMap]}}}}]}}, validate: {{message: 'the label {label} is missing', \
         pattern: {{metadata: {{labels: {{{label}: '?*'}}}}}}}}}}]}}}}"
    )
}

#[test]
fn verdicts_that_change_are_told_by_rule_and_namespace() {
    let directory = TempDir::new().unwrap();
    for (name, label) in [("old.yaml", "team"), ("new.yaml", "owner")] {
        std::fs::write(directory.path().join(name), wants(label)).unwrap();
    }
    let run = |arguments: &[&str]| {
        let output = plan(&directory, arguments);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = run(&["new.yaml", "--base", "old.yaml", "--resource", "resources.yaml"]);
    insta::assert_snapshot!(text);
    assert_eq!(code, Some(1), "something would begin to fail");
    let (code, text) = run(&["old.yaml", "--base", "old.yaml", "--resource", "resources.yaml"]);
    assert_eq!(text, "2 objects judged: 0 new failures, 0 gone, 1 as before\n");
    assert_eq!(code, Some(0), "nothing changes");
    let (code, text) = run(&["old.yaml", "--base", "new.yaml", "--resource", "resources.yaml", "--exit-code"]);
    assert!(text.contains("2 would cease to fail") && text.contains("1 new failure, 2 gone"), "{text}");
    assert_eq!(code, Some(1), "something changes");
}

#[test]
fn nothing_that_is_not_judged_passes_in_silence() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Widget, Pod]}}]}
    validate: {message: a team is missing, pattern: {metadata: {labels: {team: '?*'}}}}
  - name: keep
    match: {any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}
    validate: {message: never, deny: {}}
";
    write("teams.yaml", policy);
    // No definition says what a Widget is.
    write(
        "objects.yaml",
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: shop}}\n---\n\
        {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: kube-system}}",
    );
    let planned = plan(&directory, &["teams.yaml", "--resource", "objects.yaml"]);
    assert_eq!(planned.status.code(), Some(1));
    assert!(text(&planned.stdout).contains("shop: 1 (Widget/w)"), "{}", text(&planned.stdout));
    let notes = text(&planned.stderr);
    assert!(notes.contains("policy teams, rule keep judges no existing object"), "{notes}");
    assert!(notes.contains("1 object is not judged: the `resourceFilters`"), "{notes}");
}
