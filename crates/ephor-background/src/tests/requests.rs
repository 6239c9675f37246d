//! `UpdateRequest`s from their creation to their end.

use std::sync::Arc;

use ephor_cluster::memory::Options;
use ephor_cluster::{Cluster, DeleteOptions, MemoryCluster};
use ephor_expr::Value;
use ephor_faults::FaultyCluster;
use ephor_runtime::decision::Sender;

use super::harness::{Harness, as_controller, document};
use crate::writer::Note;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {layer: business}}}}]}
    generate:
      synchronize: false
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: '{{ request.object.metadata.name }}'
      data: {data: {k: v}}
";

/// The request that waits.
fn waiting(harness: &Harness) -> Option<Value> {
    harness.list("kyverno.io/v2", "UpdateRequest").pop()
}

fn state(harness: &Harness) -> Option<String> {
    waiting(harness).map(|request| request.str_at(&["status", "state"]).unwrap_or_default().to_owned())
}

#[test]
fn a_completed_request_says_what_it_made_and_goes() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: business}}}");
    while !matches!(state(&harness).as_deref(), Some("Completed")) {
        harness.pump();
        harness.controller.step(harness.now);
    }
    let request = waiting(&harness).unwrap();
    assert_eq!(
        request.at(&["status", "generatedResources"]).unwrap().as_array().unwrap()[0].str_at(&["name"]),
        Some("made")
    );
    harness.tick(9_000);
    harness.pump();
    harness.controller.step(harness.now);
    assert!(state(&harness).is_some());
    harness.settle();
    assert!(state(&harness).is_none());
}

#[test]
fn a_request_for_an_object_that_was_refused_fails_and_no_policy_says_so() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: other}}}");
    harness.settle();
    let request = document(
        "{apiVersion: kyverno.io/v2, kind: UpdateRequest, metadata: {name: ur-1, namespace: kyverno},
          spec: {policy: p, requestType: generate, ruleContext: [{rule: r, trigger: {apiVersion: v1, kind: Namespace,
            name: ns-a, uid: phantom}}], context: {admissionRequestInfo: {operation: CREATE, admissionRequest: {
              uid: '', operation: CREATE, object: {apiVersion: v1, kind: Namespace, metadata: {name: ns-a, uid: phantom,
              labels: {layer: business}}}, oldObject: {}}}}}}",
    );
    harness.cluster_create(&request);
    let end = harness.now + 12_000;
    while harness.now < end {
        while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
        assert!(harness.controller.state().failures.is_empty(), "{:?}", harness.controller.state().failures);
        harness.tick(100);
    }
    assert_eq!(state(&harness).as_deref(), Some("Failed"));
    harness.settle();
    assert_eq!(state(&harness), None, "given up");
    assert!(harness.controller.state().failures.is_empty(), "{:?}", harness.controller.state().failures);
    assert!(harness.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: ns-a}}").is_none());
}

#[test]
fn a_change_of_labels_that_means_nothing_is_skipped() {
    let mut harness = Harness::new();
    harness.apply(&POLICY.replace(", selector: {matchLabels: {layer: business}}", ""));
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a}}");
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {a: b}}}");
    for _ in 0..100 {
        harness.pump();
        harness.controller.step(harness.now);
    }
    let request = waiting(&harness).unwrap();
    assert_eq!(request.str_at(&["status", "state"]), Some("Skip"), "{}", request.to_json());
    assert!(request.str_at(&["status", "message"]).unwrap().contains("labels"));
}

#[test]
fn many_finished_requests_go_at_once() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    for i in 0..150 {
        let namespace =
            format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: n-{i}, labels: {{layer: business}}}}}}");
        harness.cluster_create(&document(&namespace));
    }
    for i in 0..150 {
        let namespace = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: n-{i}, labels: {{layer: business}}, annotations: {{a: b}}}}}}"
        );
        harness.apply(&namespace);
    }
    let start = harness.now;
    while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
    assert_eq!(harness.now, start, "no time has passed");
    assert!(harness.pending_requests() <= 100, "{}", harness.pending_requests());
}

#[test]
fn a_finished_request_goes_before_the_namespace_of_its_trigger() {
    let mut harness = Harness::new();
    harness.apply(
        &POLICY
            .replace("[Namespace], selector: {matchLabels: {layer: business}}", "[Secret]")
            .replace("request.object.metadata.name ", "request.object.metadata.namespace "),
    );
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a}}");
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: trigger, namespace: ns-a}}");
    while !matches!(state(&harness).as_deref(), Some("Completed")) {
        harness.pump();
        harness.controller.step(harness.now);
    }
    let start = harness.now;
    harness.delete("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a}}");
    while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
    assert!(harness.now - start < 2_000, "{} ms have passed", harness.now - start);
    assert_eq!(state(&harness), None);
}

/// A made-up review that came as if the API server sent it: that `user` created the Namespace.
fn forge(harness: &Harness, user: &str) {
    let namespace = harness.find("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a}}").unwrap().to_json();
    harness.admission.ask(&document(&format!(
        "{{uid: forged-{user}, operation: CREATE, kind: {{group: '', version: v1, kind: Namespace}},
          resource: {{group: '', version: v1, resource: namespaces}}, name: ns-a, namespace: ns-a,
          userInfo: {{username: {user}, groups: [dev]}}, dryRun: false, object: {namespace}, oldObject: null}}"
    )));
}

#[test]
fn a_forged_request_of_a_user_without_the_right_is_dropped() {
    let cluster = MemoryCluster::new(Options::default());
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let view = FaultyCluster::new(Arc::new(as_controller(&cluster))).with_rights({
        let asked = Arc::clone(&asked);
        move |review| {
            asked.lock().unwrap().push(review.at(&["spec", "resourceAttributes"]).unwrap().to_json());
            review.str_at(&["spec", "user"]) == Some("ann")
        }
    });
    let mut harness = Harness::over(cluster, Arc::new(view));
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: business}}}");
    let policy = POLICY.replace("spec:\n  rules", "spec:\n  background: false\n  rules");
    harness.apply(&policy.replace("{k: v}", "{k: '{{ request.userInfo.username }}'}"));
    harness.settle();
    let made =
        |harness: &Harness| harness.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: ns-a}}");
    forge(&harness, "mallory");
    assert!(waiting(&harness).is_some(), "admission hands it over");
    harness.settle();
    assert_eq!((made(&harness), waiting(&harness)), (None, None));
    assert_eq!(*asked.lock().unwrap(), [r#"{"resource":"namespaces","verb":"create","version":"v1"}"#]);
    forge(&harness, "ann");
    harness.settle();
    assert_eq!(made(&harness).unwrap().str_at(&["data", "k"]), Some("ann"));
}

/// A harness in which `ann` and the group `admins` have all rights and others have none. Its policy notes who did what
/// to a Namespace of the layer `business`, and who opened a shell in a Pod.
fn bed_of_ann() -> Harness {
    let cluster = MemoryCluster::new(Options::default());
    let view = FaultyCluster::new(Arc::new(as_controller(&cluster))).with_rights(|review| {
        let groups = review.at(&["spec", "groups"]).and_then(Value::as_array).unwrap_or_default();
        review.str_at(&["spec", "user"]) == Some("ann") || groups.contains(&Value::from("admins"))
    });
    let mut harness = Harness::over(cluster, Arc::new(view));
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: notes}}");
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: plain}}");
    harness.apply(
        &POLICY
            .replace("spec:\n  rules", "spec:\n  background: false\n  rules")
            .replace("kinds: [Namespace]", "kinds: [Namespace], operations: [CREATE, UPDATE, DELETE]")
            .replace("any: [", "any: [{resources: {kinds: [Pod/exec], operations: [CONNECT]}}, ")
            .replace("'{{ request.object.metadata.name }}'", "notes")
            .replace("{k: v}", "{k: '{{ request.userInfo.username }} {{ request.operation }}'}"),
    );
    harness.settle();
    harness
}

fn review(user: &str, group: &str, operation: &str, rest: &str) -> Value {
    document(&format!(
        "{{uid: forged, operation: {operation}, userInfo: {{username: {user}, groups: [{group}]}}, dryRun: false, {rest}}}"
    ))
}

/// What the policy of [`bed_of_ann`] noted after a made-up review that came as if the API server sent it.
fn noted_after(harness: &mut Harness, (user, group): (&str, &str), operation: &str, rest: &str) -> Option<String> {
    harness.admission.ask(&review(user, group, operation, rest));
    assert!(waiting(harness).is_some(), "admission hands it over: {user} {operation}");
    harness.settle();
    assert_eq!(waiting(harness), None, "{user} {operation}");
    let made = harness.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: notes}}")?;
    made.str_at(&["data", "k"]).map(str::to_owned)
}

/// The rest of a review of a Namespace.
fn of_namespace(name: &str, object: &str, old: &str) -> String {
    format!(
        "kind: {{group: '', version: v1, kind: Namespace}}, resource: {{group: '', version: v1, resource: namespaces}},
         name: {name}, namespace: {name}, object: {object}, oldObject: {old}"
    )
}

/// A Namespace as a forged review shows it, selected by the policy of [`bed_of_ann`].
fn posted(name: &str, uid: &str, version: u64) -> String {
    format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, uid: {uid}, resourceVersion: '{version}',
          labels: {{layer: business}}}}}}"
    )
}

#[test]
fn a_forged_review_in_the_name_of_a_user_with_the_right_is_judged_by_the_live_object() {
    let mut harness = bed_of_ann();
    let live = harness.find("{apiVersion: v1, kind: Namespace, metadata: {name: plain}}").unwrap();
    let uid = live.str_at(&["metadata", "uid"]).unwrap().to_owned();
    let (absent, plain) = (posted("absent", "phantom", 1), posted("plain", &uid, 0));
    for (operation, name, object, old) in [
        ("CREATE", "absent", absent.as_str(), "null"),
        ("UPDATE", "absent", &absent, &absent),
        // The live object is not what the review shows.
        ("CREATE", "plain", &plain, "null"),
        ("UPDATE", "plain", &plain, &plain),
        // The object is still there.
        ("DELETE", "plain", "null", &plain),
    ] {
        assert_eq!(
            noted_after(&mut harness, ("ann", "dev"), operation, &of_namespace(name, object, old)),
            None,
            "{operation} {name}"
        );
    }
    // Once the live object is as the review says, the same review acts.
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: plain, labels: {layer: business}}}");
    harness.settle();
    assert_eq!(
        noted_after(&mut harness, ("ann", "dev"), "CREATE", &of_namespace("plain", &plain, "null")).as_deref(),
        Some("ann CREATE")
    );
}

/// The API server takes groups as true, and no stored object proves a deletion or a connection, so the sender decides.
#[test]
fn an_unproven_sender_has_nothing_done_whatever_the_review_claims() {
    let live = "{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {layer: business}}}";
    let bed_with_team = || {
        let mut harness = bed_of_ann();
        harness.apply(live);
        harness.settle();
        harness
    };
    let team = bed_with_team().find(live).unwrap().to_json();
    let creation = of_namespace("team", &team, "null");
    let deletion = of_namespace("absent", "null", &posted("absent", "phantom", 1));
    let connection = "kind: {group: '', version: v1, kind: PodExecOptions}, subResource: exec, name: absent,
         resource: {group: '', version: v1, resource: pods}, namespace: nowhere, oldObject: null,
         object: {apiVersion: v1, kind: PodExecOptions, command: [sh]}";
    for (operation, rest) in [("CREATE", creation.as_str()), ("DELETE", &deletion), ("CONNECT", connection)] {
        for (user, group) in [("ann", "dev"), ("mallory", "admins")] {
            let harness = bed_with_team();
            harness.admission.ask_as(Sender::Unproven, &review(user, group, operation, rest));
            assert_eq!(waiting(&harness), None, "{user} {operation}");
            assert_eq!(
                noted_after(&mut bed_with_team(), (user, group), operation, rest),
                Some(format!("{user} {operation}")),
                "the API server's review acts"
            );
        }
        assert_eq!(noted_after(&mut bed_with_team(), ("mallory", "dev"), operation, rest), None, "without the right");
    }
}

#[test]
fn a_request_for_a_trigger_that_was_replaced_ends_without_a_word() {
    let trigger = "{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: business}}}";
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    // Admission sees two creations with different UIDs; only the second object is there when the work begins.
    harness.apply(trigger);
    let first = waiting(&harness).unwrap();
    assert_eq!(first.str_at(&["spec", "resource", "name"]), Some("ns-a"), "`kubectl get ur` shows the trigger");
    harness.delete(trigger);
    harness.apply(trigger);
    harness.cluster_create(&{
        let mut again = first.clone();
        for key in ["uid", "resourceVersion", "creationTimestamp"] {
            ephor_runtime::content::set_meta(&mut again, key, None);
        }
        ephor_runtime::content::set_meta(&mut again, "name", Some("ur-first".into()));
        again
    });
    let end = harness.now + 60_000;
    while harness.now < end {
        while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {
            for request in harness.list("kyverno.io/v2", "UpdateRequest") {
                assert_ne!(request.str_at(&["status", "state"]), Some("Failed"), "{}", request.to_json());
            }
        }
        harness.tick(100);
    }
    assert!(harness.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: ns-a}}").is_some());
    assert_eq!(harness.pending_requests(), 0);
    let failed = |note: &Note| matches!(note, Note::Failed { .. });
    assert!(!harness.notes.lock().unwrap().iter().any(failed), "{:?}", harness.notes);
    assert!(harness.controller.state().failures.is_empty(), "{:?}", harness.controller.state().failures);
}

/// Somebody else refuses to let the namespace go.
fn delete_in_vain(harness: &mut Harness, namespace: &str) {
    harness.admission.refuse(true);
    let resource = harness.cluster.resolve("v1", "Namespace").unwrap();
    let deleted = harness.cluster.delete(&resource, None, namespace, &DeleteOptions::default());
    harness.admission.refuse(false);
    assert!(deleted.is_err_and(|error| error.code() == 403));
}

#[test]
fn a_deletion_that_was_refused_does_not_lose_the_update_before_it() {
    let mut harness = Harness::new();
    let made = "{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: ns-a}}";
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: business}}}");
    harness.apply(&POLICY.replace("synchronize: false", "synchronize: true"));
    harness.settle();
    delete_in_vain(&mut harness, "ns-a");
    harness.settle();
    assert_eq!(harness.find(made), None, "the trigger is older than the policy");
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: business, a: b}}}");
    delete_in_vain(&mut harness, "ns-a");
    harness.settle();
    assert!(harness.find(made).is_some());
    assert_eq!(harness.pending_requests(), 0);
}
