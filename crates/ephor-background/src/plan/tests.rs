use ephor_engine::outcome::Form;
use ephor_engine::redact::Redactor;
use ephor_expr::{Value, yaml};
use ephor_runtime::content::{OWNERSHIP_ANNOTATION, Written, fingerprint, normalized_content, set_entry, set_meta};

use super::claim::CLONE_SOURCE;
use super::*;

fn object(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

fn terms(synchronize: bool) -> Terms {
    Terms { synchronize, references: "r1".into(), ..Terms::default() }
}

fn owner() -> Owner {
    Owner { policy: ephor_runtime::policies::PolicyId::parse("p"), rule: "r".into(), trigger: "t-1".into() }
}

fn rendered(data: &str) -> Value {
    object(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: n, labels: {{
            app.kubernetes.io/managed-by: kyverno, generate.kyverno.io/policy-name: p,
            generate.kyverno.io/policy-namespace: '', generate.kyverno.io/rule-name: r,
            generate.kyverno.io/trigger-uid: t-1}}}}, data: {{k: {data}}}}}"
    ))
}

fn wanted(terms: &Terms, form: Form, data: &str) -> Wanted {
    Wanted::new(rendered(data), form, owner(), terms, "trigger", ("CREATE", ""))
}

/// `object` as a server would show it.
fn stored(object: &Value) -> Value {
    let mut object = object.clone();
    set_meta(&mut object, "uid", Some("u-1".into()));
    set_meta(&mut object, "resourceVersion", Some("7".into()));
    set_meta(&mut object, "creationTimestamp", Some("2026-01-01T00:00:00Z".into()));
    object
}

fn removed(terms: Option<&Terms>, live: &Value, cause: Cause, rendered: bool) -> Option<Change> {
    let claim = Claim::of(live)?;
    let adopted = is_adopted(live, None) == Some(true);
    plan_removal(&Removal { live, claim: &claim, cause, terms, rendered, recorded: false, adopted })
}

#[test]
fn what_is_missing_is_created() {
    for form in [Form::Data, Form::Clone, Form::CloneList] {
        for synchronize in [true, false] {
            let terms = terms(synchronize);
            let change = plan_downstream(&terms, &wanted(&terms, form, "a"), None, None).unwrap();
            assert!(matches!(change.action, Action::Create(_)));
            assert_eq!(change.reason, Reason::Missing);
        }
    }
}

#[test]
fn what_differs_is_replaced_under_synchronize_only() {
    let sync = terms(true);
    let foreign = stored(&object("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: n}, data: {k: x}}"));
    let change = plan_downstream(&sync, &wanted(&sync, Form::Data, "a"), Some(&foreign), None).unwrap();
    let Action::Replace { after, .. } = &change.action else { panic!("{change:?}") };
    assert_eq!(after.str_at(&["metadata", "uid"]), Some("u-1"));
    assert_eq!(after.str_at(&["metadata", "resourceVersion"]), Some("7"));
    let once = terms(false);
    assert_eq!(plan_downstream(&once, &wanted(&once, Form::Data, "a"), Some(&foreign), None), None);
}

#[test]
fn a_second_pass_changes_nothing() {
    for form in [Form::Data, Form::Clone, Form::CloneList] {
        let sync = terms(true);
        let wanted = wanted(&sync, form, "a");
        assert_eq!(plan_downstream(&sync, &wanted, Some(&stored(&wanted.object)), None), None);
    }
}

#[test]
fn what_the_server_added_counts_as_converged_until_it_changes() {
    let sync = terms(true);
    let wanted = wanted(&sync, Form::Data, "a");
    let mut live = stored(&wanted.object);
    set_entry(&mut live, "labels", "mutated-in-flight", Some("yes"));
    let written = Written::new(&wanted.object, &live);
    assert_eq!(plan_downstream(&sync, &wanted, Some(&live), Some(&written)), None);
    // Whoever forgot writes once more; the server then finds nothing to change.
    assert!(plan_downstream(&sync, &wanted, Some(&live), None).is_some());
    set_entry(&mut live, "labels", "by-hand", Some("yes"));
    let change = plan_downstream(&sync, &wanted, Some(&live), Some(&written)).unwrap();
    assert_eq!(change.reason, Reason::Differs);
}

#[test]
fn a_new_rendering_is_written_over_what_was_converged() {
    let sync = terms(true);
    let before = wanted(&sync, Form::Data, "a");
    let live = stored(&before.object);
    let written = Written::new(&before.object, &live);
    assert!(plan_downstream(&sync, &wanted(&sync, Form::Data, "b"), Some(&live), Some(&written)).is_some());
}

#[test]
fn server_side_apply_leaves_the_rest_alone() {
    let sync = Terms { server_side_apply: true, ..terms(true) };
    let wanted = wanted(&sync, Form::Data, "a");
    let mut live = stored(&wanted.object);
    if let Some(data) = live.as_object_mut().unwrap().get_mut("data").and_then(Value::as_object_mut) {
        data.insert("more", "b");
    }
    let written = Written { applied: true, ..Written::new(&wanted.object, &live) };
    assert_eq!(plan_downstream(&sync, &wanted, Some(&live), Some(&written)), None);
    assert!(plan_downstream(&sync, &wanted, Some(&live), None).is_some(), "an earlier apply may have said more");
    if let Some(data) = live.as_object_mut().unwrap().get_mut("data").and_then(Value::as_object_mut) {
        data.insert("k", "changed");
    }
    let change = plan_downstream(&sync, &wanted, Some(&live), Some(&written)).unwrap();
    assert!(matches!(change.action, Action::Apply { before: Some(_), .. }));
}

#[test]
fn books_of_kubernetes_controllers_survive_an_update() {
    let sync = terms(true);
    let wanted = wanted(&sync, Form::Data, "a");
    let mut live = stored(&wanted.object);
    set_entry(&mut live, "annotations", "deployment.kubernetes.io/revision", Some("1"));
    set_meta(&mut live, "finalizers", Some(Value::from(vec!["example.com/hold"])));
    assert_eq!(plan_downstream(&sync, &wanted, Some(&live), None), None);
    set_entry(&mut live, "annotations", "kubectl.kubernetes.io/last-applied-configuration", Some("{}"));
    let change = plan_downstream(&sync, &wanted, Some(&live), None).unwrap();
    let Action::Replace { after, .. } = change.action else { panic!() };
    assert!(after.at(&["metadata", "annotations", "deployment.kubernetes.io/revision"]).is_some());
    assert!(after.at(&["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"]).is_none());
    assert!(after.at(&["metadata", "finalizers"]).is_some());
}

#[test]
fn a_copy_is_not_marked_as_a_source() {
    let sync = terms(true);
    let mut source = rendered("a");
    set_entry(&mut source, "labels", CLONE_SOURCE, Some(""));
    let wanted = Wanted::new(source, Form::Clone, owner(), &sync, "trigger", ("CREATE", ""));
    assert!(wanted.object.at(&["metadata", "labels", CLONE_SOURCE]).is_none());
}

#[test]
fn numbers_among_labels_become_texts() {
    let sync = terms(true);
    let mut object = rendered("a");
    let labels =
        object.as_object_mut().unwrap().get_mut("metadata").unwrap().as_object_mut().unwrap().get_mut("labels");
    labels.unwrap().as_object_mut().unwrap().insert("index", 3_i64);
    let wanted = Wanted::new(object, Form::Data, owner(), &sync, "trigger", ("CREATE", ""));
    assert_eq!(wanted.object.str_at(&["metadata", "labels", "index"]), Some("3"));
}

/// Controllers 1.3: what is deleted, for each form and cause, under synchronize.
#[test]
fn removals_follow_the_action_table() {
    use Cause::{NoLongerRendered, PolicyGone, RuleGone, SourceGone, TriggerGone, TriggerUnmatched};
    let sync = terms(true);
    for (form, cause, deleted) in [
        (Form::Data, TriggerGone, true),
        (Form::Data, TriggerUnmatched, true),
        (Form::Data, NoLongerRendered, true),
        (Form::Data, RuleGone, true),
        (Form::Data, PolicyGone, true),
        (Form::Clone, TriggerGone, true),
        (Form::Clone, TriggerUnmatched, true),
        (Form::Clone, SourceGone, true),
        (Form::Clone, RuleGone, false),
        (Form::Clone, PolicyGone, false),
        (Form::CloneList, SourceGone, true),
        (Form::CloneList, TriggerGone, true),
        (Form::CloneList, RuleGone, true),
        (Form::CloneList, PolicyGone, true),
    ] {
        let live = stored(&wanted(&sync, form, "a").object);
        let gone = matches!(cause, RuleGone | PolicyGone);
        for known in [Some(&sync), None] {
            // Once the rule is gone, the annotation says the same.
            if known.is_some() || gone {
                let change = removed(known, &live, cause, true);
                assert_eq!(change.is_some(), deleted, "{form:?} {cause:?}");
            }
        }
        let once = terms(false);
        let live = stored(&wanted(&once, form, "a").object);
        assert_eq!(removed(Some(&once), &live, cause, true), None, "{form:?} {cause:?} without synchronize");
        assert_eq!(removed(None, &live, cause, true), None);
    }
}

#[test]
fn orphans_outlive_rule_and_policy() {
    let orphan = Terms { orphan: true, ..terms(true) };
    let live = stored(&wanted(&orphan, Form::Data, "a").object);
    for cause in [Cause::RuleGone, Cause::PolicyGone] {
        assert_eq!(removed(Some(&orphan), &live, cause, true), None);
        assert_eq!(removed(None, &live, cause, true), None);
    }
    assert!(removed(Some(&orphan), &live, Cause::TriggerGone, true).is_some());
}

#[test]
fn what_a_rule_said_last_is_noted_on_what_it_spares() {
    let live = stored(&wanted(&terms(true), Form::Data, "a").object);
    for last in [Terms { orphan: true, ..terms(true) }, terms(false)] {
        for cause in [Cause::RuleGone, Cause::PolicyGone] {
            let change = removed(Some(&last), &live, cause, true).unwrap();
            let Action::Replace { after, .. } = change.action else { panic!() };
            assert_eq!(after.at(&["data"]), live.at(&["data"]));
            assert_eq!(removed(None, &after, cause, true), None, "whoever remembers nothing spares it too");
        }
    }
}

#[test]
fn a_moved_target_is_released() {
    let sync = terms(true);
    let live = stored(&wanted(&sync, Form::Data, "a").object);
    let moved = Terms { references: "r2".into(), ..terms(true) };
    let change = removed(Some(&moved), &live, Cause::NoLongerRendered, true).unwrap();
    let Action::Replace { after, .. } = change.action else { panic!() };
    assert_eq!(Claim::of(&after), None);
    assert_eq!(after.at(&["data"]), live.at(&["data"]));
}

#[test]
fn a_copy_does_not_go_with_a_source_that_it_was_not_copied_from() {
    let sync = terms(true);
    let edited = Terms { references: "r2".into(), ..terms(true) };
    for (form, terms, stays) in
        [(Form::Clone, &sync, false), (Form::Clone, &edited, true), (Form::CloneList, &edited, false)]
    {
        let live = stored(&wanted(&sync, form, "a").object);
        assert_eq!(removed(Some(terms), &live, Cause::SourceGone, true).is_none(), stays, "{form:?}");
    }
}

#[test]
fn what_was_there_before_is_deleted_with_its_source_alone() {
    let sync = terms(true);
    let live = stored(&wanted(&sync, Form::Clone, "a").adopted().object);
    for cause in [Cause::TriggerGone, Cause::TriggerUnmatched, Cause::NoLongerRendered, Cause::PolicyGone] {
        let change = removed(Some(&sync), &live, cause, true).unwrap();
        let Action::Replace { after, .. } = change.action else { panic!("{cause:?}") };
        assert!(after.at(&["metadata", "labels"]).is_none_or(|labels| !labels.to_json().contains("kyverno")));
    }
    let change = removed(Some(&sync), &live, Cause::SourceGone, true).unwrap();
    assert!(matches!(change.action, Action::Delete { .. }));
}

#[test]
fn what_was_there_before_loses_all_labels_when_its_target_moves() {
    let sync = terms(true);
    let moved = Terms { references: "r2".into(), ..terms(true) };
    let live = stored(&wanted(&sync, Form::Data, "a").adopted().object);
    let change = removed(Some(&moved), &live, Cause::NoLongerRendered, true).unwrap();
    let Action::Replace { after, .. } = change.action else { panic!() };
    assert_eq!(after.at(&["metadata", "labels"]), None);
}

#[test]
fn labels_alone_prove_nothing() {
    let sync = terms(true);
    let own = stored(&wanted(&sync, Form::Data, "a").object);
    // Somebody copied the object, labels, annotations and all.
    let mut copy = own.clone();
    set_meta(&mut copy, "name", Some("mine".into()));
    assert_eq!(removed(Some(&sync), &copy, Cause::TriggerGone, false), None);
    assert_eq!(removed(None, &copy, Cause::PolicyGone, false), None);
    // Made by upstream, which has no annotations: the rule must render it.
    let mut bare = own.clone();
    set_entry(&mut bare, "annotations", OWNERSHIP_ANNOTATION, None);
    assert_eq!(removed(Some(&sync), &bare, Cause::TriggerGone, false), None);
    let change = removed(Some(&sync), &bare, Cause::TriggerGone, true).unwrap();
    assert!(matches!(change.action, Action::Delete { proof: Proof::Rendered, .. }));
    let change = removed(Some(&sync), &own, Cause::TriggerGone, false).unwrap();
    assert!(matches!(change.action, Action::Delete { proof: Proof::Stamped, .. }));
}

#[test]
fn leaving_synchronize_is_noted_on_the_object() {
    let sync = terms(true);
    let live = stored(&wanted(&sync, Form::Data, "a").object);
    let once = terms(false);
    let change = plan_downstream(&once, &wanted(&once, Form::Data, "b"), Some(&live), None).unwrap();
    let Action::Replace { after, .. } = change.action else { panic!() };
    assert_eq!(after.at(&["data"]), live.at(&["data"]), "the content stays");
    assert_eq!(removed(None, &after, Cause::RuleGone, true), None);
    assert_eq!(plan_downstream(&once, &wanted(&once, Form::Data, "b"), Some(&after), None), None);
}

#[test]
fn people_are_spared_the_notes() {
    let sync = terms(true);
    let change = plan_downstream(&sync, &wanted(&sync, Form::Data, "a"), None, None).unwrap();
    let (full, short) = (diff::render(&change), diff::readable(&change, &Redactor::default()));
    for note in ["generate.kyverno.io/rule-name", "managed-by", "ephor.dev/generated"] {
        assert!(full.contains(note) && !short.contains(note), "{note}: {short}");
    }
}

#[test]
fn values_of_secrets_are_never_printed() {
    let secret = |value: &str| {
        object(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: s, namespace: n, annotations: {{
                kubectl.kubernetes.io/last-applied-configuration: '{value}'}}}},
               data: {{same: c2FtZQ==, other: {value}}}, stringData: {{plain: {value}}}}}"
        ))
    };
    let change = Change {
        id: ObjectId::of(&secret("YQ==")),
        api_version: "v1".into(),
        action: Action::Replace { before: secret("b2xkb2xk"), after: secret("bmV3bmV3") },
        reason: Reason::Differs,
    };
    let text = diff::render(&change);
    for value in ["b2xkb2xk", "bmV3bmV3", "c2FtZQ=="] {
        assert!(!text.contains(value), "{text}");
    }
    assert!(text.contains("- ") && text.contains("other: (hidden, before)") && text.contains("other: (hidden, after)"));
    assert!(!text.contains("same: (hidden, "));
}

#[test]
fn what_comes_from_secrets_only_says_that_it_differs() {
    let mut secrets = Redactor::default();
    secrets.learn(&object("{stringData: {old: hunter2, new: hunter3}}"));
    let map = |value: &str| {
        let data = format!("{{same: of hunter2, changed: of {value}}}");
        object(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: n}}, data: {data}}}"))
    };
    let change = Change {
        id: ObjectId::of(&map("")),
        api_version: "v1".into(),
        action: Action::Replace { before: map("hunter2"), after: map("hunter3") },
        reason: Reason::Differs,
    };
    let text = diff::readable(&change, &secrets);
    let lines =
        ["-   changed: of <redacted> (before)", "+   changed: of <redacted> (after)", "    same: of <redacted>"];
    assert!(lines.iter().all(|line| text.lines().any(|shown| shown == *line)), "{text}");
}

#[test]
fn fingerprints_do_not_depend_on_what_the_server_writes() {
    let plain = rendered("a");
    assert_eq!(fingerprint(&normalized_content(&plain)), fingerprint(&normalized_content(&stored(&plain))));
}
