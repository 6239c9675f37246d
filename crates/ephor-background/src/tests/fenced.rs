//! What every write looks like: behind the fence, and bound to what was looked at, so that one that comes late is
//! refused or changes nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ephor_cluster::MemoryCluster;
use ephor_cluster::memory::Options;
use ephor_faults::{FaultyCluster, Write};
use ephor_runtime::lease::LostLease;

use super::actions::{TABLE, cells};
use super::harness::Harness;

/// A harness whose writes are looked at.
struct Audited {
    harness: Harness,
    /// Writes that no look at the fence came before.
    unfenced: Arc<Mutex<Vec<Write>>>,
    view: Arc<FaultyCluster>,
    /// How often the fence lets through from now on.
    passes: Arc<AtomicUsize>,
}

impl Audited {
    fn new() -> Self {
        let cluster = MemoryCluster::new(Options::default());
        let (passes, fresh) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicBool::new(false)));
        let unfenced: Arc<Mutex<Vec<Write>>> = Arc::default();
        let view = FaultyCluster::new(Arc::new(cluster.clone())).before_writes({
            let (fresh, unfenced) = (Arc::clone(&fresh), Arc::clone(&unfenced));
            move |write| {
                // One look is good for one write.
                if !fresh.swap(false, Ordering::SeqCst) {
                    unfenced.lock().unwrap().push(write.clone());
                }
                None
            }
        });
        let view = Arc::new(view);
        let fence = {
            let passes = Arc::clone(&passes);
            move || {
                let left = passes.load(Ordering::SeqCst);
                if left == 0 {
                    return Err(LostLease);
                }
                passes.store(left - 1, Ordering::SeqCst);
                fresh.store(true, Ordering::SeqCst);
                Ok(())
            }
        };
        let harness = Harness::fenced(cluster, Arc::clone(&view) as Arc<dyn ephor_cluster::Cluster>, Arc::new(fence));
        Self { harness, unfenced, view, passes }
    }

    /// Every write so far was as it should be; how many there were.
    fn check(&self) -> usize {
        assert_eq!(*self.unfenced.lock().unwrap(), [], "nobody looked at the fence");
        let writes = self.view.writes();
        let unbound: Vec<&Write> = writes.iter().filter(|write| !write.bound).collect();
        assert!(unbound.is_empty(), "bound to nothing: {unbound:?}");
        writes.len()
    }
}

#[test]
fn writes_of_the_action_tables_are_fenced_and_bound() {
    let mut verbs = std::collections::BTreeSet::new();
    for cell in cells(TABLE) {
        let mut audited = Audited::new();
        cell.play(&mut audited.harness).unwrap();
        audited.check();
        verbs.extend(audited.view.writes().into_iter().map(|write| (write.verb, write.kind)));
    }
    for verb in ["create", "update", "patch", "delete"] {
        assert!(verbs.iter().any(|(known, _)| *known == verb), "{verb} did not come up: {verbs:?}");
    }
    assert!(verbs.contains(&("delete", "UpdateRequest".to_owned())), "{verbs:?}");
}

const POLICIES: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: make}
spec:
  useServerSideApply: true
  rules:
  - name: make
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {layer: business}}}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: '{{ request.object.metadata.name }}'
      data: {data: {k: '{{ request.object.metadata.labels.value }}'}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: change}
spec:
  mutateExistingOnPolicyUpdate: true
  rules:
  - name: change
    match: {any: [{resources: {kinds: [Secret]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, name: target, namespace: default}]
      patchStrategicMerge: {data: {k: changed}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: scale}
spec:
  rules:
  - name: scale
    match: {any: [{resources: {kinds: [Secret]}}]}
    mutate:
      mutateExistingOnPolicyUpdate: true
      targets: [{apiVersion: apps/v1, kind: Deployment/scale, name: web, namespace: default}]
      patchStrategicMerge: {spec: {replicas: 4}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: fail}
spec:
  rules:
  - name: fail
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {layer: business}}}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: copy
      namespace: '{{ request.object.metadata.name }}'
      clone: {namespace: default, name: missing}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: example}]}}
";

fn live(harness: &mut Harness) {
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: target}, data: {k: v}}");
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: trigger}}");
    harness.apply(DEPLOYMENT);
    harness.apply(POLICIES);
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: one, labels: {layer: business, value: a}}}");
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: one, labels: {layer: business, value: b}}}");
    harness.settle();
}

fn data(harness: &Harness, namespace: &str, name: &str) -> Option<String> {
    let reference = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}}}}}");
    harness.find(&reference)?.str_at(&["data", "k"]).map(str::to_owned)
}

#[test]
fn other_writes_are_fenced_and_bound_too() {
    let mut audited = Audited::new();
    live(&mut audited.harness);
    assert_eq!(data(&audited.harness, "one", "made").as_deref(), Some("b"));
    assert_eq!(data(&audited.harness, "default", "target").as_deref(), Some("changed"));
    assert_eq!(*audited.unfenced.lock().unwrap(), [], "nobody looked at the fence");
    let writes = audited.view.writes();
    let unbound: Vec<&Write> = writes.iter().filter(|write| !write.bound).collect();
    assert!(unbound.is_empty(), "bound to nothing: {unbound:?}");
    let scale = |write: &Write| write.kind == "Deployment" && write.verb == "update";
    assert!(writes.iter().any(scale), "a subresource is written like everything else: {writes:?}");
    let status = |write: &Write| write.kind == "ClusterPolicy" && write.name == "fail";
    assert!(writes.iter().any(status), "the policy says what fails: {writes:?}");
}

/// Wherever the term ends, the writes end with it, and whoever comes next brings it to the same end.
#[test]
fn no_write_starts_after_the_term() {
    let whole = {
        let mut audited = Audited::new();
        live(&mut audited.harness);
        audited.view.writes().len()
    };
    assert!(whole > 10, "{whole}");
    for passes in 0..whole {
        let mut audited = Audited::new();
        audited.passes.store(passes, Ordering::SeqCst);
        live(&mut audited.harness);
        assert!(audited.view.writes().len() <= passes, "after {passes}: {:?}", audited.view.writes());
        audited.passes.store(usize::MAX, Ordering::SeqCst);
        audited.harness.restart();
        audited.harness.settle();
        assert_eq!(data(&audited.harness, "one", "made").as_deref(), Some("b"), "after {passes}");
        assert_eq!(data(&audited.harness, "default", "target").as_deref(), Some("changed"), "after {passes}");
        assert_eq!(audited.harness.pending_requests(), 0, "after {passes}");
    }
}
