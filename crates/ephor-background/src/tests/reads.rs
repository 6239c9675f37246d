//! Records of what rules read: how long they stay, and that no change is missed meanwhile.

use std::sync::{Arc, Mutex};

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, MemoryCluster, WriteOptions};
use ephor_expr::Value;
use ephor_faults::FaultyCluster;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::watcher::StoreEvent;

use super::harness::{Harness, as_controller};
use crate::state::Dependency;
use crate::{Controller, Step};

/// Copies a value out of the ConfigMap that the trigger names.
const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret], names: [trigger]}}]}
    context:
    - name: source
      apiCall: {urlPath: '/api/v1/namespaces/default/configmaps/{{ request.object.stringData.from }}'}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: other
      data: {data: {k: '{{ source.data.k }}'}}
";
const SPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: other}}";

fn trigger(from: &str) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: trigger}}, stringData: {{from: {from}}}}}")
}

fn source(name: &str, value: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{k: {value}}}}}")
}

fn made(harness: &Harness) -> Option<String> {
    let made = harness.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: other}}")?;
    made.str_at(&["data", "k"]).map(str::to_owned)
}

/// What the trigger's rules were judged by.
fn records(harness: &Harness, trigger: &str) -> Vec<Dependency> {
    let uid = harness.find(trigger).unwrap().str_at(&["metadata", "uid"]).unwrap().to_owned();
    let state = harness.controller.state();
    let policy = state.infos.keys().next().unwrap().clone();
    let key = crate::queue::WorkKey { policy, trigger: uid.into() };
    state.read_by(&key).cloned().collect()
}

const TRIGGER: &str = "{apiVersion: v1, kind: Secret, metadata: {name: trigger}}";

#[test]
fn a_trigger_that_is_edited_a_thousand_times_has_the_record_of_its_last_judgement() {
    // Half of the names are there; the rule fails for the others.
    let mut harness = Harness::new();
    for object in [SPACE, POLICY, &source("s0", "zero"), &source("s1", "one"), &trigger("s0")] {
        harness.apply(object);
    }
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("zero"));
    for n in 0..500 {
        harness.apply(&source(&format!("sound-{n}"), &format!("v{n}")));
        harness.apply(&trigger(&format!("sound-{n}")));
        harness.pump();
        while harness.controller.step(harness.now) == Step::Worked {}
        assert_eq!(made(&harness), Some(format!("v{n}")));
        harness.apply(&trigger(&format!("missing-{n}")));
        harness.pump();
        while harness.controller.step(harness.now) == Step::Worked {}
        assert!(records(&harness, TRIGGER).len() <= 2, "{:?}", records(&harness, TRIGGER));
    }
    harness.settle();
    assert_eq!(records(&harness, TRIGGER).len(), 1, "{:?}", records(&harness, TRIGGER));
    harness.apply(&trigger("s1"));
    harness.settle();
    let kind = GroupKind::new("v1", "ConfigMap");
    assert_eq!(records(&harness, TRIGGER), [(kind, "default".into(), "s1".into())]);
    assert_eq!(made(&harness).as_deref(), Some("one"));
    harness.apply(&source("s1", "other"));
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("other"), "what it reads now is followed");
}

#[test]
fn a_kind_is_followed_while_a_judgement_reads_it() {
    let policy = POLICY.replace(
        "'/api/v1/namespaces/default/configmaps/{{ request.object.stringData.from }}'}",
        "'/api/v1/namespaces/default/{{ request.object.stringData.from }}', jmesPath: '{data: {k: to_string(length(items))}}'}",
    );
    let mut harness = Harness::new();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: example}]}}";
    let wide = |harness: &Harness, kind: &str| {
        let watches = harness.controller.watches();
        watches.get(&GroupKind::new("v1", kind)).is_some_and(|watch| watch.wide)
    };
    for object in [SPACE, &policy, pod, &trigger("pods")] {
        harness.apply(object);
    }
    harness.settle();
    assert_eq!((made(&harness).as_deref(), wide(&harness, "Pod"), wide(&harness, "Service")), (Some("1"), true, false));
    harness.apply(&trigger("services"));
    harness.settle();
    assert_eq!((made(&harness).as_deref(), wide(&harness, "Pod"), wide(&harness, "Service")), (Some("0"), false, true));
    assert_eq!(harness.controller.state().index.of_kind(&GroupKind::new("v1", "Pod")).count(), 0);
    harness.apply(&trigger("pods"));
    harness.settle();
    harness.delete(pod);
    harness.settle();
    assert_eq!((made(&harness).as_deref(), wide(&harness, "Service")), (Some("0"), false));
}

#[test]
fn rules_that_do_not_synchronize_leave_no_records() {
    let mut harness = Harness::new();
    for object in [SPACE, &POLICY.replace("synchronize: true", "synchronize: false"), &source("s", "one")] {
        harness.apply(object);
    }
    harness.apply(&trigger("s"));
    harness.settle();
    assert_eq!((made(&harness).as_deref(), records(&harness, TRIGGER).len()), (Some("one"), 0));
    assert!(!harness.controller.watches().contains_key(&GroupKind::new("v1", "ConfigMap")));
}

#[test]
fn a_deletion_between_a_judgement_and_the_first_list_of_its_watcher_is_not_missed() {
    let policy = POLICY.replace(
        "'/api/v1/namespaces/default/configmaps/{{ request.object.stringData.from }}'}",
        "'/api/v1/namespaces/default/services', jmesPath: '{data: {k: to_string(length(items))}}'}",
    );
    let mut harness = Harness::new();
    let service = "{apiVersion: v1, kind: Service, metadata: {name: svc}, spec: {ports: [{port: 80}]}}";
    for object in [SPACE, &policy, service, &trigger("any")] {
        harness.apply(object);
    }
    harness.pump();
    // All work is done before the watcher of what was read begins.
    while harness.controller.step(harness.now) == Step::Worked {}
    assert_eq!(made(&harness).as_deref(), Some("1"));
    harness.delete(service);
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("0"));
}

/// What happens before a call of the controller, and before which one from now on.
type Act = Arc<Mutex<Option<(usize, Box<dyn FnOnce() + Send>)>>>;

/// A harness whose controller is interrupted by an act. The call that it was about to make fails if `fails` says so.
fn interrupted(fails: bool) -> (Harness, Act) {
    let cluster = MemoryCluster::default();
    let act: Act = Arc::default();
    let due = Arc::clone(&act);
    let view = FaultyCluster::new(Arc::new(as_controller(&cluster))).interrupted(move || {
        let act = {
            let mut due = due.lock().unwrap();
            let (calls, _) = due.as_mut()?;
            if *calls > 0 {
                *calls -= 1;
                return None;
            }
            due.take()
        };
        if let Some((_, act)) = act {
            act();
        }
        fails.then(|| ClusterError::unreachable("connection refused"))
    });
    (Harness::over(cluster, Arc::new(view)), act)
}

/// Another source counts from now on, and another pass over the same key begins and ends.
fn overtake(cluster: &MemoryCluster, controller: &Controller, now: u64) {
    let kind = cluster.resolve("v1", "ConfigMap").unwrap();
    let mut pointer = cluster.get(&kind, Some("default"), "pointer").unwrap();
    pointer.as_object_mut().unwrap().insert("data", Value::from([("k", Value::from("b"))]));
    let stored = cluster.update(&kind, pointer, &WriteOptions::default()).unwrap();
    controller.observe(&GroupKind::new("v1", "ConfigMap"), true, StoreEvent::Apply(stored), now);
    assert_eq!(controller.step(now), Step::Worked);
}

#[test]
fn a_pass_that_writes_after_a_younger_one_is_corrected() {
    // The rule reads which ConfigMap counts, and then that one.
    let pointer = "
    - name: pointer
      apiCall: {urlPath: /api/v1/namespaces/default/configmaps/pointer}
    - name: source";
    let policy =
        POLICY.replace("\n    - name: source", pointer).replace("request.object.stringData.from", "pointer.data.k");
    for fails in [false, true] {
        let mut calls = 0;
        loop {
            let (mut harness, act) = interrupted(fails);
            for object in [SPACE, &policy, &source("pointer", "a"), &source("a", "a1"), &source("b", "b1")] {
                harness.apply(object);
            }
            harness.apply(&trigger("any"));
            harness.settle();
            assert_eq!(made(&harness).as_deref(), Some("a1"));
            // The watch has asked for the key already; now admission does.
            harness.apply(&trigger("other"));
            harness.pump();
            assert_eq!(harness.controller.step(harness.now), Step::Worked);
            let (behind, controller, now) = (harness.cluster.clone(), harness.controller.clone(), harness.now);
            *act.lock().unwrap() = Some((calls, Box::new(move || overtake(&behind, &controller, now))));
            assert_eq!(harness.controller.step(harness.now), Step::Worked);
            if act.lock().unwrap().take().is_some() {
                break;
            }
            harness.settle();
            assert_eq!(made(&harness).as_deref(), Some("b1"), "interrupted at call {calls}, which fails: {fails}");
            harness.apply(&source("b", "b2"));
            harness.settle();
            assert_eq!(made(&harness).as_deref(), Some("b2"), "interrupted at call {calls}, which fails: {fails}");
            assert_eq!(records(&harness, TRIGGER).len(), 2);
            calls += 1;
        }
        assert!(calls > 2, "the pass makes more than {calls} calls");
    }
}

#[test]
fn a_call_that_fails_is_repeated_and_leaves_no_record_behind() {
    let mut calls = 0;
    loop {
        let (mut harness, act) = interrupted(true);
        for object in [SPACE, POLICY, &source("s1", "one"), &source("s2", "two"), &trigger("s1")] {
            harness.apply(object);
        }
        harness.settle();
        harness.apply(&trigger("s2"));
        harness.pump();
        let behind = harness.cluster.clone();
        // What was read before goes while a call fails.
        let act_now = move || {
            let kind = behind.resolve("v1", "ConfigMap").unwrap();
            behind.delete(&kind, Some("default"), "s1", &DeleteOptions::default()).unwrap();
        };
        *act.lock().unwrap() = Some((calls, Box::new(act_now)));
        harness.settle();
        if act.lock().unwrap().take().is_some() {
            break;
        }
        assert_eq!(
            (made(&harness).as_deref(), records(&harness, TRIGGER).len()),
            (Some("two"), 1),
            "call {calls} fails"
        );
        calls += 1;
    }
    assert!(calls > 2, "the controller makes more than {calls} calls");
}
