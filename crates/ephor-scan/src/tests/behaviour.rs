//! What reports say, and when they are written.

use ephor_cluster::object;
use ephor_expr::{Str, Value, yaml};
use ephor_reports::Dialect;

use super::harness::{Harness, config_map, wants};
use crate::controller::ReportOptions;

#[test]
fn every_object_that_a_policy_judges_has_a_report() {
    let mut harness = Harness::new();
    let made = harness.apply(&config_map("a", "good", "x"));
    harness.apply(&config_map("b", "bad", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    assert_eq!(harness.words(), ["bad: p/r=fail", "good: p/r=pass"]);
    let report = &harness.reports()[1];
    assert_eq!(object::name(report), object::text(&made, "uid"));
    assert_eq!(report.at(&["summary", "pass"]), Some(&Value::from(1_i64)));
}

#[test]
fn a_kind_of_several_pages_is_judged_whole_again_when_a_policy_changes() {
    let mut harness = Harness::new();
    for number in 0..600 {
        harness.apply(&config_map("a", &format!("m{number}"), "x"));
    }
    for (value, want) in [("x", "pass"), ("y", "fail")] {
        harness.apply(&wants("ClusterPolicy", "p", value, true));
        harness.settle();
        let words = harness.words();
        assert_eq!(words.len(), 600);
        assert!(words.iter().all(|word| word.ends_with(&format!("={want}"))), "{want}");
    }
}

#[test]
fn an_object_whose_judgement_panics_keeps_no_other_from_its_report() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "good", "x"));
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: bad, namespace: a}}");
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: q}, spec: {rules: [{name: r, match: {any: \
         [{resources: {kinds: [Secret]}}]}, context: [{name: c, configMap: {name: panics, namespace: a}}], validate: \
         {message: no, deny: {conditions: {all: [{key: '{{ c.data.v }}', operator: Equals, value: x}]}}}}]}}",
    );
    harness.settle();
    assert_eq!(harness.words(), ["good: p/r=pass"]);
}

#[test]
fn a_scan_that_finds_nothing_new_writes_nothing() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    let versions = harness.versions();
    harness.resync();
    harness.lose_watches();
    harness.settle();
    harness.crash();
    harness.settle();
    harness
        .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: a, labels: {x: z}}, data: {v: 'y'}}");
    harness.settle();
    assert_eq!(harness.versions(), versions);
}

#[test]
fn new_violations_are_told_once() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(&config_map("b", "good", "x"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    assert_eq!(harness.told(), ["m: p=fail"]);
    harness.resync();
    harness.crash();
    harness.settle();
    assert_eq!(harness.told(), [""; 0], "the stored report holds it");
    harness.apply(&wants("ClusterPolicy", "q", "x", true));
    harness.settle();
    assert_eq!(harness.told(), ["m: q=fail"]);
    harness.apply(&config_map("a", "m", "x"));
    harness.settle();
    assert_eq!(harness.told(), [""; 0]);
    harness.apply(&config_map("a", "m", "z"));
    harness.settle();
    assert_eq!(harness.told(), ["m: p=fail", "m: q=fail"]);
}

#[test]
fn results_follow_objects_policies_and_exceptions() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.apply(&wants("Policy", "q", "x", true));
    harness.settle();
    assert_eq!(harness.words(), ["m: a/q/r=fail, p/r=fail"]);
    harness.apply(&config_map("a", "m", "x"));
    harness.settle();
    assert_eq!(harness.words(), ["m: a/q/r=pass, p/r=pass"]);
    harness.apply(&wants("ClusterPolicy", "p", "z", true));
    harness.settle();
    assert_eq!(harness.words(), ["m: a/q/r=pass, p/r=fail"]);
    harness.apply(
        "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {exceptions: [{policyName: \
         p, ruleNames: [r]}], match: {any: [{resources: {kinds: [ConfigMap]}}]}}}",
    );
    harness.settle();
    assert_eq!(harness.words(), ["m: a/q/r=pass, p/r=skip"]);
    harness.delete("kyverno.io/v1", "Policy", "a", "q");
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=skip"]);
    harness.delete("kyverno.io/v1", "ClusterPolicy", "", "p");
    harness.settle();
    assert!(harness.reports().is_empty());
}

#[test]
fn the_report_of_a_deleted_object_goes() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    harness.delete("v1", "ConfigMap", "a", "m");
    harness.settle();
    assert!(harness.reports().is_empty());
}

#[test]
fn what_goes_while_no_replica_runs_is_noticed() {
    let mut harness = Harness::new();
    for name in ["m", "k"] {
        harness.apply(&config_map("a", name, "y"));
    }
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    harness.delete("v1", "ConfigMap", "a", "m");
    harness.crash();
    harness.settle();
    assert_eq!(harness.words(), ["k: p/r=fail"]);
    harness.delete("kyverno.io/v1", "ClusterPolicy", "", "p");
    harness.crash();
    harness.settle();
    assert!(harness.reports().is_empty());
}

#[test]
fn a_report_that_is_edited_or_deleted_by_hand_is_put_right() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    let right = harness.stored();
    let edited = harness.reports().remove(0);
    harness.edit_report(edited.clone());
    harness.settle();
    assert_eq!(harness.stored(), right);
    harness.delete("wgpolicyk8s.io/v1alpha2", "PolicyReport", "a", object::name(&edited));
    harness.settle();
    assert_eq!(harness.stored(), right);
}

#[test]
fn reports_of_other_engines_are_left_alone() {
    let mut harness = Harness::new();
    let made = harness.apply(&config_map("a", "m", "y"));
    let uid = object::text(&made, "uid");
    let foreign = format!(
        "{{apiVersion: wgpolicyk8s.io/v1alpha2, kind: PolicyReport, metadata: {{name: '{uid}', namespace: a}}, scope: \
         {{apiVersion: v1, kind: ConfigMap, name: m, namespace: a, uid: '{uid}'}}, results: [{{policy: other, result: fail}}]}}"
    );
    harness.apply(&foreign);
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    let stored = harness.list("wgpolicyk8s.io/v1alpha2", "PolicyReport");
    assert_eq!(stored.len(), 1);
    assert_eq!(ephor_reports::report::results(&stored[0])[0].str_at(&["policy"]), Some("other"));
    harness.delete("v1", "ConfigMap", "a", "m");
    harness.settle();
    assert_eq!(harness.list("wgpolicyk8s.io/v1alpha2", "PolicyReport").len(), 1);
}

#[test]
fn results_of_requests_stand_until_their_rule_goes() {
    let mut harness = Harness::new();
    let made = harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "asked", "x", false));
    harness.apply(&wants("ClusterPolicy", "scanned", "x", true));
    harness.apply(&ephemeral(&made, "asked", "r"));
    harness.settle();
    assert_eq!(harness.words(), ["m: asked/r=fail, scanned/r=fail"]);
    assert!(harness.list("reports.kyverno.io/v1", "EphemeralReport").is_empty());
    harness.apply(&config_map("a", "m", "x"));
    harness.resync();
    assert_eq!(harness.words(), ["m: asked/r=fail, scanned/r=pass"]);
    harness.delete("kyverno.io/v1", "ClusterPolicy", "", "scanned");
    harness.settle();
    assert_eq!(harness.words(), ["m: asked/r=fail"]);
    harness.delete("kyverno.io/v1", "ClusterPolicy", "", "asked");
    harness.settle();
    assert!(harness.reports().is_empty());
}

#[test]
fn reports_in_memory_show_results_of_requests_as_long_as_their_ephemeral_report_exists() {
    let mut harness = Harness::in_memory();
    let made = harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "asked", "x", false));
    harness.apply(&wants("ClusterPolicy", "scanned", "x", true));
    harness.apply(&ephemeral(&made, "asked", "r"));
    harness.settle();
    assert_eq!(harness.words(), ["m: asked/r=fail, scanned/r=fail"]);
    // Every replica needs it, also one that starts later.
    assert_eq!(harness.list("reports.kyverno.io/v1", "EphemeralReport").len(), 1);
    harness.crash();
    harness.settle();
    assert_eq!(harness.words(), ["m: asked/r=fail, scanned/r=fail"]);
    // Its deletion goes unnoticed until it is listed again.
    harness.lose_watches();
    harness.delete("reports.kyverno.io/v1", "EphemeralReport", "a", "e-asked");
    harness.settle();
    assert_eq!(harness.words(), ["m: scanned/r=fail"]);
}

#[test]
fn what_is_left_about_scanned_or_unknown_rules_is_dropped() {
    let mut harness = Harness::new();
    let made = harness.apply(&config_map("a", "m", "x"));
    harness.apply(&wants("ClusterPolicy", "scanned", "x", true));
    harness.apply(&ephemeral(&made, "scanned", "r"));
    harness.apply(&ephemeral(&made, "invented", "r"));
    harness.settle();
    assert_eq!(harness.words(), ["m: scanned/r=pass"]);
}

#[test]
fn an_ephemeral_report_says_nothing_about_another_namespace() {
    let mut harness = Harness::new();
    let made = harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "asked", "x", false));
    harness.apply(&ephemeral(&made, "asked", "r").replace("namespace: a", "namespace: b"));
    harness.settle();
    assert!(harness.reports().is_empty());
}

#[test]
fn facts_that_rules_read_are_looked_at_again() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: wanted, namespace: b}, data: {v: x}}");
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: \
         {kinds: [ConfigMap], namespaces: [a]}}]}, context: [{name: w, configMap: {name: wanted, namespace: b}}], validate: {message: never, \
         pattern: {data: {v: '{{ w.data.v }}'}}}}]}}",
    );
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=fail"]);
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: wanted, namespace: b}, data: {v: 'y'}}");
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=pass"]);
}

#[test]
fn labels_of_a_namespace_count_as_they_are_now() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: \
         {kinds: [ConfigMap], namespaceSelector: {matchLabels: {tier: gold}}}}]}, validate: {message: never, pattern: {data: {v: x}}}}]}}",
    );
    harness.settle();
    assert!(harness.reports().is_empty());
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {tier: gold}}}");
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=fail"]);
}

#[test]
fn a_result_keeps_its_time_while_it_says_the_same() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    let at = |harness: &Harness| {
        harness.reports()[0].get("results").unwrap().as_array().unwrap()[0].get("timestamp").cloned()
    };
    let first = at(&harness);
    harness.apply(&wants("ClusterPolicy", "q", "x", true));
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=fail, q/r=fail"]);
    assert_eq!(at(&harness), first);
}

#[test]
fn only_wanted_results_are_stored_and_a_repaired_object_loses_its_failure() {
    let allowed = Some(vec![Str::new_static("fail")]);
    let mut harness = Harness::with(ReportOptions { allowed, ..ReportOptions::default() });
    harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=fail"]);
    harness.apply(&config_map("a", "m", "x"));
    harness.settle();
    assert!(harness.reports().is_empty());
}

#[test]
fn reports_can_be_open_reports_in_several_parts() {
    let mut harness =
        Harness::with(ReportOptions { dialect: Dialect::OpenReports, max_bytes: 300, ..ReportOptions::default() });
    harness.apply(&config_map("a", "m", "y"));
    for policy in ["p", "q", "s"] {
        harness.apply(&wants("ClusterPolicy", policy, "x", true));
    }
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=fail", "m: q/r=fail", "m: s/r=fail"]);
    harness.delete("kyverno.io/v1", "ClusterPolicy", "", "q");
    harness.settle();
    assert_eq!(harness.words(), ["m: p/r=fail", "m: s/r=fail"]);
    assert_eq!(harness.stored(), harness.expected());
}

#[test]
fn there_are_no_reports_about_reports() {
    let mut harness = Harness::new();
    harness.apply(&config_map("a", "m", "y"));
    harness
        .apply(&wants("ClusterPolicy", "p", "x", true).replace("[ConfigMap]", "[ConfigMap, PolicyReport, '*Report']"));
    harness.settle();
    harness.resync();
    let about: Vec<String> =
        harness.reports().iter().map(|r| r.str_at(&["scope", "kind"]).unwrap().to_owned()).collect();
    assert!(about.iter().any(|kind| kind == "ConfigMap"), "{about:?}");
    assert!(!about.iter().any(|kind| kind.ends_with("Report")), "{about:?}");
}

#[test]
fn values_of_secrets_are_in_no_report() {
    let mut harness = Harness::new();
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}, data: {k: dG9wc2VjcmV0}}");
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: \
         {kinds: [Secret]}}]}, reportProperties: {quoted: '{{ request.object.data.k }}', whole: '{{ request.object.data }}'}, \
         validate: {message: \"it is {{ request.object.data.k }} or {{ base64_decode(request.object.data.k) \
         }}\", deny: {}}}]}}",
    );
    harness.settle();
    let report = harness.reports().remove(0).to_json().replace("\\u003c", "<").replace("\\u003e", ">");
    assert!(report.contains("it is <redacted> or <redacted>"), "{report}");
    assert!(report.contains(r#""quoted":"<redacted>""#), "{report}");
    assert!(!report.contains("dG9wc2VjcmV0") && !report.contains("topsecret"), "{report}");
}

#[test]
fn a_report_in_another_namespace_that_names_an_object_changes_nothing() {
    let mut harness = Harness::new();
    let made = harness.apply(&config_map("a", "m", "y"));
    harness.apply(&wants("ClusterPolicy", "p", "x", true));
    harness.settle();
    let right = harness.versions();
    let uid = object::text(&made, "uid");
    harness.apply(&format!(
        "{{apiVersion: wgpolicyk8s.io/v1alpha2, kind: PolicyReport, metadata: {{name: '{uid}', namespace: b, labels: \
         {{app.kubernetes.io/managed-by: kyverno}}}}, scope: {{apiVersion: v1, kind: ConfigMap, name: m, namespace: b, uid: \
         '{uid}'}}, results: [{{policy: p, rule: r, result: pass}}]}}"
    ));
    harness.resync();
    let versions = harness.versions();
    assert!(right.iter().all(|version| versions.contains(version)), "{right:?} {versions:?}");
    assert!(harness.words().contains(&"m: p/r=fail".to_owned()));
}

/// An `EphemeralReport` with one failure about an object.
fn ephemeral(about: &Value, policy: &str, rule: &str) -> String {
    let text = |key| object::text(about, key);
    let (uid, name) = (text("uid"), text("name"));
    let document = format!(
        "{{apiVersion: reports.kyverno.io/v1, kind: EphemeralReport, metadata: {{name: e-{policy}, namespace: a, labels: \
         {{audit.kyverno.io/resource.group: '', audit.kyverno.io/resource.version: v1, audit.kyverno.io/resource.kind: ConfigMap, \
         audit.kyverno.io/resource.uid: '{uid}'}}, annotations: {{audit.kyverno.io/resource.name: {name}}}}}, spec: {{results: \
         [{{policy: {policy}, rule: {rule}, result: fail, source: kyverno, properties: {{process: admission review}}}}]}}}}"
    );
    assert!(yaml::parse_value(&document).is_ok());
    document
}
