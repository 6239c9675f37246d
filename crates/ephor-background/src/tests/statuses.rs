//! What outlives the controller, because policies' statuses say it.

use ephor_expr::Value;

use super::harness::{Harness, document};
use crate::state::Subject;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: 'made-{{ request.object.metadata.name }}'
      namespace: '{{ request.object.data.to }}'
      data: {data: {k: dg==}}
";

fn trigger(name: &str, to: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default, labels: {{on: 'yes'}}}},
          data: {{to: {to}}}}}"
    )
}

fn made(name: &str, namespace: &str) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: made-{name}, namespace: {namespace}}}}}")
}

/// The condition that says whether everything was made good: status and reason.
fn converged(harness: &Harness) -> Option<(String, String)> {
    let policy = harness.read(&document(POLICY)).unwrap();
    let conditions = policy.at(&["status", "conditions"])?.as_array()?;
    let condition = conditions.iter().find(|c| c.str_at(&["type"]) == Some("BackgroundConverged"))?;
    let text = |key: &str| condition.str_at(&[key]).unwrap_or_default().to_owned();
    Some((text("status"), text("reason")))
}

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[test]
fn a_rule_stays_with_its_triggers_when_its_policy_is_edited() {
    let mut harness = Harness::new();
    harness.apply(&trigger("older", "default"));
    harness.apply(POLICY);
    harness.apply(&trigger("dog", "default"));
    harness.settle();
    harness.apply(&POLICY.replace("dg==", "dw=="));
    harness.settle();
    harness.stop();
    harness.delete(&made("dog", "default"));
    harness.restart();
    harness.settle();
    assert!(harness.find(&made("dog", "default")).is_some());
    assert!(harness.find(&made("older", "default")).is_none(), "what came before the rule is none of its triggers");
    // Selecting others is being another rule.
    let of_all = POLICY.replace(", selector: {matchLabels: {on: 'yes'}}", "");
    harness
        .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: default}, data: {to: default}}");
    harness.apply(&of_all);
    harness.restart();
    harness.settle();
    assert!(harness.find(&made("plain", "default")).is_none());
}

#[test]
fn triggers_that_a_rule_is_through_with_are_not_looked_at_again_for_others() {
    let once = POLICY
        .replace("synchronize: true", "synchronize: false, generateExisting: true")
        .replace("synchronize: false, generateExisting: true", "synchronize: false\n      generateExisting: true");
    let mut harness = Harness::new();
    harness.apply(&trigger("dog", "default"));
    harness.apply(&trigger("cat", "nowhere"));
    harness.apply(&once);
    harness.settle();
    assert!(harness.find(&made("dog", "default")).is_some());
    harness.delete(&made("dog", "default"));
    harness.settle();
    harness.restart();
    harness.settle();
    assert!(harness.find(&made("dog", "default")).is_none(), "what was deleted stays deleted");
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}");
    harness.settle();
    assert!(harness.find(&made("cat", "nowhere")).is_some());
    assert!(harness.find(&made("dog", "default")).is_none());
}

#[test]
fn a_failure_that_is_over_is_told_as_over_also_by_another_leader() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(&trigger("cat", "nowhere"));
    harness.settle();
    assert_eq!(converged(&harness).unwrap(), pair("False", "Failing"));
    harness.stop();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}");
    harness.restart();
    harness.settle();
    assert_eq!(converged(&harness).unwrap(), pair("True", "Converged"));
}

#[test]
fn work_that_is_given_up_is_never_called_done() {
    let mut harness = Harness::new();
    let once = POLICY.replace("synchronize: true", "synchronize: false");
    harness.apply(&once);
    harness.settle();
    harness.apply(&trigger("cat", "nowhere"));
    harness.settle();
    assert_eq!(harness.pending_requests(), 0);
    assert_eq!(converged(&harness).unwrap(), pair("False", "GivenUp"));
    harness.restart();
    harness.settle();
    assert_eq!(converged(&harness).unwrap(), pair("False", "GivenUp"));
    // Another version of the policy begins anew.
    harness.apply(&once.replace("dg==", "dw=="));
    harness.settle();
    assert_eq!(converged(&harness).unwrap(), pair("True", "Converged"));
    assert_eq!(harness.given_up().len(), 1, "the request still says what became of it");
}

/// What the condition says.
fn message(harness: &Harness, policy: &str) -> String {
    let policy = harness.read(&document(policy)).unwrap();
    let conditions = policy.at(&["status", "conditions"]).and_then(Value::as_array).unwrap();
    conditions[0].str_at(&["message"]).unwrap_or_default().to_owned()
}

#[test]
fn failed_work_names_its_trigger_in_requests_and_in_policies_of_its_namespace_only() {
    let begins = "rule r for ConfigMap default/cat: ";
    let once = POLICY.replace("synchronize: true", "synchronize: false");
    let home = once.replace("kind: ClusterPolicy", "kind: Policy").replace("name: p}", "name: p, namespace: default}");
    for policy in [
        once,
        home.replace("'{{ request.object.data.to }}'", "default").replace("dg==", "'{{ request.object.data.no }}'"),
    ] {
        let mut harness = Harness::new();
        let cluster_wide = policy.contains("kind: ClusterPolicy");
        harness.apply(&policy);
        harness.settle();
        harness.apply(&trigger("cat", "nowhere"));
        harness.settle();
        let requests = harness.given_up();
        let said = requests[0].str_at(&["status", "message"]).unwrap();
        assert!(said.starts_with(begins), "{said}");
        let told = message(&harness, &policy);
        assert!(told.starts_with("1 background task fails, 1 given up: "), "{told}");
        assert_eq!(told.contains(begins), !cluster_wide, "{told}");
    }
}

#[test]
fn one_failing_trigger_is_counted_once() {
    let mut harness = Harness::new();
    // A rule that synchronizes and needs the request, so that the request and its trigger both fail.
    let policy = POLICY.replace("dg==", "'{{ base64_encode(request.userInfo.username) }}'").replace(
        "spec:
  rules:",
        "spec:
  background: false
  rules:",
    );
    harness.apply(&policy);
    harness.settle();
    harness.apply(&trigger("cat", "nowhere"));
    let mut counts = std::collections::BTreeSet::new();
    for _ in 0..200 {
        while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
        harness.tick(100);
        if converged(&harness).is_some() {
            counts.insert(message(&harness, &policy));
        }
    }
    let want = "1 background task fails, 0 given up: see Events and UpdateRequests";
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [want]);
}

#[test]
fn a_request_is_tried_again_at_once_when_its_trigger_fails_no_more() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&trigger("cat", "nowhere"));
    let failed = |harness: &Harness| {
        let requests = harness.list("kyverno.io/v2", "UpdateRequest");
        requests.iter().any(|request| request.str_at(&["status", "state"]) == Some("Failed"))
    };
    let run = |harness: &mut Harness, millis: u64| {
        let end = harness.now + millis;
        while harness.now < end {
            while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
            harness.tick(100);
        }
    };
    run(&mut harness, 8_000);
    assert!(failed(&harness) && converged(&harness).is_some_and(|(status, _)| status == "False"));
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}");
    for _ in 0..600 {
        if harness.find(&made("cat", "nowhere")).is_some() {
            break;
        }
        run(&mut harness, 100);
    }
    run(&mut harness, 500);
    assert!(harness.find(&made("cat", "nowhere")).is_some());
    assert!(!failed(&harness), "{:?}", harness.list("kyverno.io/v2", "UpdateRequest"));
}

const TWO_RULES: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: one
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    generate: {apiVersion: v1, kind: Secret, name: a, namespace: nowhere, data: {data: {k: dg==}}}
  - name: two
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    generate: {apiVersion: v1, kind: Secret, name: b, namespace: elsewhere, data: {data: {k: dg==}}}
";

#[test]
fn a_request_names_every_rule_that_fails_of_those_it_is_about() {
    let said = |policy: &str| -> Vec<String> {
        let mut harness = Harness::new();
        harness.apply(policy);
        harness.settle();
        harness.apply(&trigger("cat", "nowhere"));
        harness.settle();
        let requests = harness.given_up();
        requests.iter().map(|r| r.str_at(&["status", "message"]).unwrap_or_default().to_owned()).collect()
    };
    let both = said(TWO_RULES);
    assert_eq!(both.len(), 1, "{both:?}");
    for begin in ["rule one for ConfigMap default/cat: ", "; rule two for ConfigMap default/cat: "] {
        assert!(both[0].contains(begin), "{both:?}");
    }
}

#[test]
fn a_request_does_not_fail_for_a_rule_that_it_is_not_about() {
    let mut harness = Harness::new();
    let policy = TWO_RULES
        .replace("name: a, namespace: nowhere", "synchronize: true, name: a, namespace: nowhere")
        .replace("namespace: elsewhere", "namespace: default");
    harness.apply(&policy);
    harness.settle();
    harness.apply(&trigger("cat", "nowhere"));
    harness.settle();
    for request in harness.given_up() {
        let rules = request.at(&["spec", "ruleContext"]).and_then(Value::as_array).unwrap();
        let names: Vec<_> = rules.iter().filter_map(|rule| rule.str_at(&["rule"])).collect();
        let said = request.str_at(&["status", "message"]).unwrap();
        assert_eq!((names, said.starts_with("rule one for ")), (vec!["one"], true), "{said}");
    }
    assert!(harness.find("{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: default}}").is_some());
    assert_eq!(converged(&harness).unwrap(), pair("False", "Failing"));
    assert_eq!(message(&harness, &policy), "1 background task fails, 0 given up: see Events and UpdateRequests");
}

#[test]
fn work_that_is_given_up_fails_no_more_when_its_trigger_is_gone_also_for_another_leader() {
    let once = POLICY.replace("synchronize: true", "synchronize: false");
    for restarts in [false, true] {
        let mut harness = Harness::new();
        harness.apply(&once);
        harness.settle();
        harness.apply(&trigger("cat", "nowhere"));
        harness.settle();
        assert_eq!(converged(&harness).unwrap(), pair("False", "GivenUp"));
        if restarts {
            harness.restart();
            harness.settle();
            assert_eq!(converged(&harness).unwrap(), pair("False", "GivenUp"));
        }
        harness.delete(&trigger("cat", "nowhere"));
        harness.settle();
        assert_eq!(converged(&harness).unwrap(), pair("True", "Converged"), "{restarts}");
    }
}

#[test]
fn a_status_says_since_when_rules_look_for_what_they_look_for() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    let since = |harness: &Harness| harness.read(&document(POLICY)).unwrap().at(&["status", "rulesSince"]).cloned();
    let first = since(&harness).unwrap();
    assert_eq!(first.as_array().map(<[Value]>::len), Some(1));
    harness.tick(5_000);
    harness.apply(&POLICY.replace("dg==", "dw=="));
    harness.settle();
    assert_eq!(since(&harness), Some(first.clone()));
    harness.tick(5_000);
    harness.apply(&POLICY.replace("'yes'", "'no'"));
    harness.settle();
    assert_ne!(since(&harness), Some(first));
}

#[test]
fn a_policy_says_within_a_second_that_work_fails() {
    let mut harness = Harness::new();
    harness.apply(&POLICY.replace("synchronize: true", "synchronize: false"));
    harness.settle();
    harness.apply(&trigger("cat", "nowhere"));
    let end = harness.now + 1_000;
    while harness.now < end {
        while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
        harness.tick(100);
    }
    assert_eq!(converged(&harness).unwrap(), pair("False", "Failing"));
}

#[test]
fn objects_that_fail_and_succeed_in_turn_cause_a_bounded_number_of_statuses() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&trigger("cat", "nowhere"));
    let key = ephor_runtime::policies::PolicyId::parse("p");
    let version = |harness: &Harness| {
        harness.read(&document(POLICY)).unwrap().str_at(&["metadata", "resourceVersion"]).map(str::to_owned)
    };
    let (mut changes, mut last) = (0, version(&harness));
    for i in 0..600 {
        let fails = (i % 20 < 10).then(|| "no".to_owned());
        harness.controller.state().set_failure(&key, Subject::Trigger("other".into()), fails, harness.now);
        while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
        harness.tick(100);
        let now = version(&harness);
        changes += usize::from(now != last);
        last = now;
    }
    assert!(changes <= 13, "{changes} in a minute");
}
