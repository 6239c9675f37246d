//! What becomes of copies when their rule names another source.

use ephor_expr::{Value, yaml};

use crate::processes::Sandbox;
use crate::remote::{Remote, TIMEOUT, within};

fn object(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

fn policy(source: &str) -> Value {
    object(&format!(
        "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: copies}}
spec:
  rules:
  - name: copy
    match: {{any: [{{resources: {{kinds: [ConfigMap], names: ['trigger-*']}}}}]}}
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: 'copy-{{{{ request.object.metadata.name }}}}'
      namespace: default
      clone: {{namespace: default, name: {source}}}
"
    ))
}

fn secret(name: &str, value: &str) -> Value {
    object(&format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: default}}, data: {{k: {value}}}}}"
    ))
}

fn trigger(name: &str) -> Value {
    object(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}}}"))
}

#[test]
fn an_edit_of_the_source_leaves_copies_as_they_are_until_the_new_source_changes() {
    // In base64.
    let (one, two, three) = ("b25l", "dHdv", "dGhyZWU=");
    let sandbox = Sandbox::start();
    let cluster = Remote::connect(&sandbox.kubeconfig());
    let says = |copy: &str, value: &str| {
        let copy = cluster.read(&secret(copy, value));
        copy.is_some_and(|copy| copy.str_at(&["data", "k"]) == Some(value))
    };
    for object in [secret("old", one), secret("new", two), policy("old")] {
        cluster.apply(&object).unwrap();
    }
    assert!(within(TIMEOUT, || cluster.is_ready(&policy("old"))));
    cluster.apply(&trigger("trigger-a")).unwrap();
    assert!(within(TIMEOUT, || says("copy-trigger-a", one)));
    let before = cluster.read(&secret("copy-trigger-a", one));
    cluster.apply(&policy("new")).unwrap();
    // The copy of another trigger shows that the controller works by the edited rule.
    assert!(within(TIMEOUT, || {
        cluster.delete(&trigger("trigger-b")).ok();
        cluster.apply(&trigger("trigger-b")).unwrap();
        within(TIMEOUT / 10, || says("copy-trigger-b", two))
    }));
    assert_eq!(cluster.read(&secret("copy-trigger-a", one)), before);
    cluster.delete(&secret("old", one)).unwrap();
    cluster.apply(&secret("new", three)).unwrap();
    assert!(within(TIMEOUT, || says("copy-trigger-a", three) && says("copy-trigger-b", three)));
}
