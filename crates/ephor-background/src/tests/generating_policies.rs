//! `GeneratingPolicy` and `NamespacedGeneratingPolicy`: the same work as for generate rules, for objects that
//! expressions give.

use ephor_engine::policy::ProgramKind;
use ephor_expr::{Str, Value};
use ephor_runtime::policies::PolicyId;

use super::harness::{Harness, document};

/// Makes a Secret of each `ConfigMap` that is on, called as the trigger says.
const DATA: &str = "
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: p}
spec:
  evaluation: {synchronize: {enabled: true}}
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  matchConditions: [{name: go, expression: \"object.?data['go'].orValue('') == 'yes'\"}]
  generate:
  - template:
      interpolate: cel
      value: |
        apiVersion: v1
        kind: Secret
        metadata: {name: (( object.data.to )), namespace: default}
        stringData: {k: (( object.data.v ))}
";

/// Copies the Secret that a `ConfigMap` names.
const COPY: &str = "
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: p}
spec:
  evaluation: {synchronize: {enabled: true}}
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  matchConditions: [{name: go, expression: \"object.?data['go'].orValue('') == 'yes'\"}]
  generate:
  - expression: generator.Apply('team', [resource.Get('v1', 'secrets', 'default', 'source')])
";

const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {go: 'yes', to: a, v: x}}";
const SOURCE: &str = "{apiVersion: v1, kind: Secret, metadata: {name: source}, stringData: {k: x}}";
const COPIED: &str = "{apiVersion: v1, kind: Secret, metadata: {name: source, namespace: team}}";
const TEAM: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";

fn secret(name: &str) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}")
}

fn says(harness: &Harness, reference: &str) -> Option<String> {
    Some(harness.find(reference)?.str_at(&["stringData", "k"])?.to_owned())
}

/// A harness after these documents, one after the other.
fn after(documents: &[&str]) -> Harness {
    let mut harness = Harness::new();
    harness.apply(TEAM);
    for document in documents {
        harness.apply(document);
        harness.settle();
    }
    harness
}

/// A policy with another word in `evaluation`.
fn with(policy: &str, evaluation: &str) -> String {
    policy.replace("evaluation: {synchronize: {enabled: true}}", &format!("evaluation: {{{evaluation}}}"))
}

fn delete_policy(harness: &mut Harness) {
    harness.delete("{apiVersion: policies.kyverno.io/v1beta1, kind: GeneratingPolicy, metadata: {name: p}}");
    harness.settle();
}

#[test]
fn an_object_is_made_with_the_labels_of_upstream() {
    let harness = after(&[DATA, TRIGGER]);
    let made = harness.find(&secret("a")).unwrap();
    let uid = harness.find(TRIGGER).unwrap().str_at(&["metadata", "uid"]).map(Str::new).unwrap();
    let labels = made.at(&["metadata", "labels"]).and_then(Value::as_object).unwrap();
    let mut labels: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    labels.sort();
    let of_trigger = |key: &str, value: &str| format!("generate.kyverno.io/trigger-{key}={value}");
    assert_eq!(
        labels,
        [
            "app.kubernetes.io/managed-by=kyverno".to_owned(),
            "generate.kyverno.io/policy-name=p".to_owned(),
            of_trigger("group", ""),
            of_trigger("kind", "ConfigMap"),
            of_trigger("name", "t"),
            of_trigger("namespace", "default"),
            of_trigger("uid", &uid),
            of_trigger("version", "v1"),
        ]
    );
    assert_eq!(harness.pending_requests(), 0);
}

#[test]
fn an_object_has_the_owners_that_its_policy_gives_it_and_a_copy_none_of_another_namespace() {
    let owned = COPY.replace(
        "generator.Apply('team', [resource.Get('v1', 'secrets', 'default', 'source')])",
        "|-
      generator.Apply('default', [dyn({'apiVersion': dyn('v1'), 'kind': dyn('Secret'), 'metadata': dyn({
        'name': dyn('owned'), 'ownerReferences': dyn([dyn({'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'),
          'name': dyn(string(object.metadata.name)), 'uid': dyn(string(object.metadata.uid))})])})})])",
    );
    let harness = after(&[&owned, TRIGGER]);
    let owners = |harness: &Harness, reference: &str| {
        let object = harness.find(reference).unwrap();
        object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).map_or(0, <[_]>::len)
    };
    assert_eq!(owners(&harness, &secret("owned")), 1);

    let source = "{apiVersion: v1, kind: Secret, metadata: {name: source, ownerReferences: [{apiVersion: v1, kind: ConfigMap, \
                  name: t, uid: u}]}, stringData: {k: x}}";
    let harness = after(&[TRIGGER, source, COPY, &TRIGGER.replace("v: x", "v: y")]);
    assert_eq!(owners(&harness, COPIED), 0);
}

#[test]
fn what_is_synchronized_follows_policy_and_trigger_and_is_restored() {
    let mut harness = after(&[DATA, TRIGGER]);
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: edited}}");
    harness.settle();
    // It has no labels any more: it is another's, until the rule takes it back.
    assert_eq!(says(&harness, &secret("a")).as_deref(), Some("x"), "an edit");
    harness.delete(&secret("a"));
    harness.settle();
    assert_eq!(says(&harness, &secret("a")).as_deref(), Some("x"), "a deletion");
    harness.apply(&TRIGGER.replace("v: x", "v: z"));
    harness.settle();
    assert_eq!(says(&harness, &secret("a")).as_deref(), Some("z"), "the trigger");
    harness.apply(&TRIGGER.replace("to: a", "to: b"));
    harness.settle();
    assert_eq!((says(&harness, &secret("a")), says(&harness, &secret("b"))), (None, Some("x".into())), "another name");
    harness.apply(&DATA.replace("(( object.data.v ))", "from-policy"));
    harness.settle();
    assert_eq!(says(&harness, &secret("b")).as_deref(), Some("from-policy"), "the policy");
    harness.apply(&DATA.replace("(( object.data.to ))", "renamed"));
    harness.settle();
    assert_eq!((says(&harness, &secret("b")), says(&harness, &secret("renamed"))), (None, Some("x".into())));
    assert_eq!(harness.pending_requests(), 0);
}

#[test]
fn what_a_trigger_no_longer_asks_for_goes() {
    for (name, act) in [
        ("deleted", (|harness| harness.delete(TRIGGER)) as fn(&mut Harness)),
        ("unmatched", |harness| harness.apply(&TRIGGER.replace("go: 'yes'", "go: 'no'"))),
    ] {
        let mut harness = after(&[DATA, TRIGGER]);
        act(&mut harness);
        harness.settle();
        assert!(harness.find(&secret("a")).is_none(), "{name}");
        let mut harness = after(&[&with(DATA, ""), TRIGGER]);
        act(&mut harness);
        harness.settle();
        assert_eq!(says(&harness, &secret("a")).as_deref(), Some("x"), "{name}, without synchronize");
    }
}

#[test]
fn without_synchronize_nothing_follows() {
    let mut harness = after(&[&with(DATA, ""), TRIGGER]);
    harness.delete(&secret("a"));
    harness.settle();
    assert!(harness.find(&secret("a")).is_none());
    harness.apply(&TRIGGER.replace("v: x", "v: z"));
    harness.settle();
    assert_eq!(says(&harness, &secret("a")).as_deref(), Some("z"), "an update is a trigger");
    harness.apply(&with(DATA, "").replace("(( object.data.v ))", "edited"));
    harness.settle();
    assert_eq!(says(&harness, &secret("a")).as_deref(), Some("z"), "an edit of the policy changes nothing");
    harness.apply(&TRIGGER.replace("v: x", "v: y"));
    harness.settle();
    assert_eq!(says(&harness, &secret("a")).as_deref(), Some("edited"), "an update makes it anew");
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: theirs}}");
    harness.apply(TRIGGER);
    harness.settle();
    assert_eq!(says(&harness, &secret("a")).as_deref(), Some("theirs"), "but not what is another's by now");
    delete_policy(&mut harness);
    assert!(harness.find(&secret("a")).is_some());
}

#[test]
fn a_policy_takes_its_objects_along_unless_it_says_otherwise() {
    for restarted in [false, true] {
        for (more, stays) in [("", false), (", orphanDownstreamOnPolicyDelete: {enabled: true}", true)] {
            let policy = with(DATA, &format!("synchronize: {{enabled: true}}{more}"));
            let mut harness = after(&[&policy, TRIGGER]);
            if restarted {
                harness.stop();
            }
            harness.delete("{apiVersion: policies.kyverno.io/v1beta1, kind: GeneratingPolicy, metadata: {name: p}}");
            if restarted {
                harness.restart();
            }
            harness.settle();
            assert_eq!(harness.find(&secret("a")).is_some(), stays, "{more} {restarted}");
        }
        let mut harness = after(&[SOURCE, COPY, TRIGGER]);
        delete_policy(&mut harness);
        assert!(harness.find(COPIED).is_some(), "upstream lets copies stay");
    }
}

#[test]
fn existing_triggers_count_if_the_policy_says_so() {
    for synchronize in ["", ", synchronize: {enabled: true}"] {
        let mut harness = after(&[TRIGGER, &with(DATA, &synchronize.replacen(", ", "", 1))]);
        assert!(harness.find(&secret("a")).is_none(), "{synchronize}");
        delete_policy(&mut harness);
        harness.apply(&with(DATA, &format!("generateExisting: {{enabled: true}}{synchronize}")));
        harness.settle();
        assert_eq!(says(&harness, &secret("a")).as_deref(), Some("x"), "{synchronize}");
        harness.delete(&secret("a"));
        harness.restart();
        harness.settle();
        assert_eq!(harness.find(&secret("a")).is_some(), !synchronize.is_empty(), "once, unless it synchronizes");
    }
}

#[test]
fn a_copy_follows_its_source() {
    let mut harness = after(&[SOURCE, COPY, TRIGGER]);
    assert_eq!(says(&harness, COPIED).as_deref(), Some("x"));
    let uid = harness.find(SOURCE).unwrap().at(&["metadata", "uid"]).cloned();
    let copied = harness.find(COPIED).unwrap();
    assert_eq!(copied.at(&["metadata", "labels", "generate.kyverno.io/source-uid"]).cloned(), uid);
    harness.apply(&SOURCE.replace("k: x", "k: z"));
    harness.settle();
    assert_eq!(says(&harness, COPIED).as_deref(), Some("z"));
    harness.delete(SOURCE);
    harness.settle();
    assert!(harness.find(COPIED).is_none(), "its source is gone");
    harness.apply(SOURCE);
    harness.settle();
    assert_eq!(says(&harness, COPIED).as_deref(), Some("x"));
}

#[test]
fn what_is_done_is_not_done_again_after_a_restart() {
    for documents in [&[DATA, TRIGGER][..], &[SOURCE, COPY, TRIGGER]] {
        let mut harness = after(documents);
        let revision = harness.cluster.revision();
        harness.controller.resync(harness.now);
        harness.settle();
        harness.restart();
        harness.settle();
        assert_eq!(harness.cluster.revision(), revision);
    }
}

#[test]
fn policies_of_one_name_and_several_kinds_do_not_touch_what_the_others_made() {
    let of_kyverno = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: p
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {synchronize: true, apiVersion: v1, kind: Secret, name: other, namespace: default, data: {stringData: {k: x}}}
";
    let mut harness = after(&[of_kyverno, DATA, TRIGGER]);
    assert!(harness.find(&secret("a")).is_some() && harness.find(&secret("other")).is_some());
    delete_policy(&mut harness);
    assert!(harness.find(&secret("a")).is_none() && harness.find(&secret("other")).is_some());
    harness.apply(DATA);
    harness.apply(&TRIGGER.replace("v: x", "v: z"));
    harness.settle();
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    harness.settle();
    assert!(harness.find(&secret("a")).is_some() && harness.find(&secret("other")).is_none());
}

#[test]
fn what_is_made_is_no_trigger_unless_the_policy_says_so() {
    let chained = |skip: &str| {
        let spec = format!("synchronize: {{enabled: true}}{skip}");
        with(DATA, &spec)
            .replace("name: p", "name: second")
            .replace("kind: Secret", "kind: ConfigMap")
            .replace("(( object.data.to ))", "chained")
            .replace("stringData: {k: (( object.data.v ))}", "data: {made: second}")
    };
    let first = DATA
        .replace("kind: Secret", "kind: ConfigMap")
        .replace("stringData", "data")
        .replace("{k: (( object.data.v ))}", "{go: 'yes', to: b, v: z}");
    let only_made =
        |policy: String| policy.replace("object.?data['go'].orValue('') == 'yes'", "object.metadata.name == 'a'");
    for (skip, made) in
        [("", false), (", skipBackgroundRequests: true", false), (", skipBackgroundRequests: false", true)]
    {
        let second = only_made(chained(skip));
        let mut harness = Harness::new();
        harness.apply(&second);
        // It would go round in a circle: what it makes is on, too.
        harness.apply(&first.replace("object.?data['go'].orValue('') == 'yes'", "object.metadata.name == 't'"));
        harness.settle();
        harness.apply(TRIGGER);
        harness.settle();
        let config_map = |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
        assert!(harness.find(&config_map("a")).is_some());
        assert_eq!(harness.find(&config_map("chained")).is_some(), made, "{skip}");
    }
}

/// A policy of the namespace `default` with these entries of `generate`.
fn namespaced(generate: &str) -> String {
    format!(
        "
apiVersion: policies.kyverno.io/v1
kind: NamespacedGeneratingPolicy
metadata: {{name: p, namespace: default}}
spec:
  evaluation: {{synchronize: {{enabled: true}}}}
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}}]
  generate:
  - {generate}
"
    )
}

#[test]
fn a_policy_of_a_namespace_stays_in_it() {
    let object = |kind: &str, namespace: &str| {
        format!(
            "expression: \"generator.Apply([{{'apiVersion': dyn('v1'), 'kind': dyn({kind}), 'metadata': \
             dyn({{'name': 'made'{namespace}}})}}])\""
        )
    };
    let made = |namespace: &str| {
        document(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: made, namespace: {namespace}}}}}"))
    };
    let id = PolicyId::new(ProgramKind::NamespacedGeneratingPolicy, Some("default"), "p".into());
    for (generate, home) in [
        (object("'Secret'", ""), true),
        (object("'Secret'", ", 'namespace': 'default'"), true),
        (object("'Secret'", ", 'namespace': 'team'"), false),
        (object("'Secret'", ", 'namespace': string(object.data.to)"), false),
        // A kind without namespaces, of which only the cluster knows that.
        (object("'Namespace'", ""), false),
        (object("object.data.kind", ""), false),
    ] {
        let mut harness = after(&[&namespaced(&generate)]);
        harness.apply(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {go: 'yes', to: team, kind: Namespace}}",
        );
        harness.settle();
        assert_eq!(harness.read(&made("default")).is_some(), home, "{generate}");
        assert!(harness.read(&made("team")).is_none(), "{generate}");
        assert!(harness.find("{apiVersion: v1, kind: Namespace, metadata: {name: made}}").is_none(), "{generate}");
        assert_eq!(harness.controller.state().failures.contains_key(&id), !home, "{generate}");
        // Triggers of other namespaces are not its own.
        harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: u, namespace: team}, data: {to: team}}");
        harness.settle();
        assert!(harness.read(&made("team")).is_none(), "{generate}");
    }
}

#[test]
fn a_policy_of_a_namespace_takes_its_objects_along() {
    let mut harness = after(&[
        &namespaced("template: {value: '{apiVersion: v1, kind: Secret, metadata: {name: made}, stringData: {k: x}}'}"),
        TRIGGER,
    ]);
    let made = harness.find(&secret("made")).unwrap();
    assert_eq!(made.str_at(&["metadata", "labels", "generate.kyverno.io/policy-namespace"]), Some("default"));
    harness.delete(
        "{apiVersion: policies.kyverno.io/v1beta1, kind: NamespacedGeneratingPolicy, metadata: {name: p, namespace: default}}",
    );
    harness.settle();
    assert!(harness.find(&secret("made")).is_none());
}

#[test]
fn a_request_names_its_policy_by_its_type() {
    // What another writer asks for, with upstream's words.
    let mut harness = after(&[TRIGGER, &with(DATA, "")]);
    let uid = harness.find(TRIGGER).unwrap().str_at(&["metadata", "uid"]).map(Str::new).unwrap();
    let request = |sort: &str, name: &str| {
        format!(
            "{{apiVersion: kyverno.io/v2, kind: UpdateRequest, metadata: {{name: {name}, namespace: kyverno}}, spec: \
             {{requestType: {sort}, policy: p, rule: '', resource: {{}}, deleteDownstream: false, context: {{}}, \
             ruleContext: [{{rule: p, trigger: {{apiVersion: v1, kind: ConfigMap, namespace: default, name: t, uid: \
             {uid}}}}}]}}}}"
        )
    };
    harness.apply(&request("generate", "ur-1"));
    harness.settle();
    assert!(harness.find(&secret("a")).is_none(), "there is no ClusterPolicy of that name");
    harness.apply(&request("cel-generate", "ur-2"));
    harness.settle();
    assert!(harness.find(&secret("a")).is_some());
}
