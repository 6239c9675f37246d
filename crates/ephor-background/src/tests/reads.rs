//! Records of what rules read: how long they stay, and that no change is missed meanwhile.

use std::sync::{Arc, Mutex};

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, MemoryCluster, WriteOptions};
use ephor_expr::Value;
use ephor_faults::FaultyCluster;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::watcher::StoreEvent;

use super::bed::{Bed, as_controller};
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

fn made(bed: &Bed) -> Option<String> {
    let made = bed.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: other}}")?;
    made.str_at(&["data", "k"]).map(str::to_owned)
}

/// What the trigger's rules were judged by.
fn records(bed: &Bed, trigger: &str) -> Vec<Dependency> {
    let uid = bed.find(trigger).unwrap().str_at(&["metadata", "uid"]).unwrap().to_owned();
    let state = bed.controller.state();
    let policy = state.infos.keys().next().unwrap().clone();
    let key = crate::queue::WorkKey { policy, trigger: uid.into() };
    state.read_by(&key).cloned().collect()
}

const TRIGGER: &str = "{apiVersion: v1, kind: Secret, metadata: {name: trigger}}";

#[test]
fn a_trigger_that_is_edited_a_thousand_times_has_the_record_of_its_last_judgement() {
    // Half of the names are there; the rule fails for the others.
    let mut bed = Bed::new();
    for object in [SPACE, POLICY, &source("s0", "zero"), &source("s1", "one"), &trigger("s0")] {
        bed.apply(object);
    }
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("zero"));
    for n in 0..500 {
        bed.apply(&source(&format!("sound-{n}"), &format!("v{n}")));
        bed.apply(&trigger(&format!("sound-{n}")));
        bed.pump();
        while bed.controller.step(bed.now) == Step::Worked {}
        assert_eq!(made(&bed), Some(format!("v{n}")));
        bed.apply(&trigger(&format!("missing-{n}")));
        bed.pump();
        while bed.controller.step(bed.now) == Step::Worked {}
        assert!(records(&bed, TRIGGER).len() <= 2, "{:?}", records(&bed, TRIGGER));
    }
    bed.settle();
    assert_eq!(records(&bed, TRIGGER).len(), 1, "{:?}", records(&bed, TRIGGER));
    bed.apply(&trigger("s1"));
    bed.settle();
    let kind = GroupKind::new("v1", "ConfigMap");
    assert_eq!(records(&bed, TRIGGER), [(kind, "default".into(), "s1".into())]);
    assert_eq!(made(&bed).as_deref(), Some("one"));
    bed.apply(&source("s1", "other"));
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("other"), "what it reads now is followed");
}

#[test]
fn a_kind_is_followed_while_a_judgement_reads_it() {
    let policy = POLICY.replace(
        "'/api/v1/namespaces/default/configmaps/{{ request.object.stringData.from }}'}",
        "'/api/v1/namespaces/default/{{ request.object.stringData.from }}', jmesPath: '{data: {k: to_string(length(items))}}'}",
    );
    let mut bed = Bed::new();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: example}]}}";
    let wide = |bed: &Bed, kind: &str| {
        let watches = bed.controller.watches();
        watches.get(&GroupKind::new("v1", kind)).is_some_and(|watch| watch.wide)
    };
    for object in [SPACE, &policy, pod, &trigger("pods")] {
        bed.apply(object);
    }
    bed.settle();
    assert_eq!((made(&bed).as_deref(), wide(&bed, "Pod"), wide(&bed, "Service")), (Some("1"), true, false));
    bed.apply(&trigger("services"));
    bed.settle();
    assert_eq!((made(&bed).as_deref(), wide(&bed, "Pod"), wide(&bed, "Service")), (Some("0"), false, true));
    assert_eq!(bed.controller.state().index.of_kind(&GroupKind::new("v1", "Pod")).count(), 0);
    bed.apply(&trigger("pods"));
    bed.settle();
    bed.delete(pod);
    bed.settle();
    assert_eq!((made(&bed).as_deref(), wide(&bed, "Service")), (Some("0"), false));
}

#[test]
fn rules_that_do_not_synchronize_leave_no_records() {
    let mut bed = Bed::new();
    for object in [SPACE, &POLICY.replace("synchronize: true", "synchronize: false"), &source("s", "one")] {
        bed.apply(object);
    }
    bed.apply(&trigger("s"));
    bed.settle();
    assert_eq!((made(&bed).as_deref(), records(&bed, TRIGGER).len()), (Some("one"), 0));
    assert!(!bed.controller.watches().contains_key(&GroupKind::new("v1", "ConfigMap")));
}

#[test]
fn a_deletion_between_a_judgement_and_the_first_list_of_its_watcher_is_not_missed() {
    let policy = POLICY.replace(
        "'/api/v1/namespaces/default/configmaps/{{ request.object.stringData.from }}'}",
        "'/api/v1/namespaces/default/services', jmesPath: '{data: {k: to_string(length(items))}}'}",
    );
    let mut bed = Bed::new();
    let service = "{apiVersion: v1, kind: Service, metadata: {name: svc}, spec: {ports: [{port: 80}]}}";
    for object in [SPACE, &policy, service, &trigger("any")] {
        bed.apply(object);
    }
    bed.pump();
    // All work is done before the watcher of what was read begins.
    while bed.controller.step(bed.now) == Step::Worked {}
    assert_eq!(made(&bed).as_deref(), Some("1"));
    bed.delete(service);
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("0"));
}

/// What happens before a call of the controller, and before which one from now on.
type Act = Arc<Mutex<Option<(usize, Box<dyn FnOnce() + Send>)>>>;

/// A bed whose controller is interrupted by an act. The call that it was about to make fails if `fails` says so.
fn interrupted(fails: bool) -> (Bed, Act) {
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
    (Bed::over(cluster, Arc::new(view)), act)
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
            let (mut bed, act) = interrupted(fails);
            for object in [SPACE, &policy, &source("pointer", "a"), &source("a", "a1"), &source("b", "b1")] {
                bed.apply(object);
            }
            bed.apply(&trigger("any"));
            bed.settle();
            assert_eq!(made(&bed).as_deref(), Some("a1"));
            // The watch has asked for the key already; now admission does.
            bed.apply(&trigger("other"));
            bed.pump();
            assert_eq!(bed.controller.step(bed.now), Step::Worked);
            let (behind, controller, now) = (bed.cluster.clone(), bed.controller.clone(), bed.now);
            *act.lock().unwrap() = Some((calls, Box::new(move || overtake(&behind, &controller, now))));
            assert_eq!(bed.controller.step(bed.now), Step::Worked);
            if act.lock().unwrap().take().is_some() {
                break;
            }
            bed.settle();
            assert_eq!(made(&bed).as_deref(), Some("b1"), "interrupted at call {calls}, which fails: {fails}");
            bed.apply(&source("b", "b2"));
            bed.settle();
            assert_eq!(made(&bed).as_deref(), Some("b2"), "interrupted at call {calls}, which fails: {fails}");
            assert_eq!(records(&bed, TRIGGER).len(), 2);
            calls += 1;
        }
        assert!(calls > 2, "the pass makes more than {calls} calls");
    }
}

#[test]
fn a_call_that_fails_is_repeated_and_leaves_no_record_behind() {
    let mut calls = 0;
    loop {
        let (mut bed, act) = interrupted(true);
        for object in [SPACE, POLICY, &source("s1", "one"), &source("s2", "two"), &trigger("s1")] {
            bed.apply(object);
        }
        bed.settle();
        bed.apply(&trigger("s2"));
        bed.pump();
        let behind = bed.cluster.clone();
        // What was read before goes while a call fails.
        let act_now = move || {
            let kind = behind.resolve("v1", "ConfigMap").unwrap();
            behind.delete(&kind, Some("default"), "s1", &DeleteOptions::default()).unwrap();
        };
        *act.lock().unwrap() = Some((calls, Box::new(act_now)));
        bed.settle();
        if act.lock().unwrap().take().is_some() {
            break;
        }
        assert_eq!((made(&bed).as_deref(), records(&bed, TRIGGER).len()), (Some("two"), 1), "call {calls} fails");
        calls += 1;
    }
    assert!(calls > 2, "the controller makes more than {calls} calls");
}
