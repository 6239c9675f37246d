//! What the writer refuses, whatever rendered the change.

use std::sync::Arc;

use ephor_cluster::write::Part;
use ephor_cluster::{Cluster, DeleteOptions, MemoryCluster, WriteOptions};
use ephor_expr::{Value, yaml};
use ephor_runtime::content::set_meta;
use ephor_runtime::facts::ClusterFacts;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::PolicyId;

use super::{Env, OutOfScope, Place, WriteError};
use crate::plan::{Action, Change, ObjectId, Proof, Reason};

fn object(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

fn config_map(namespace: &str, name: &str) -> Value {
    object(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}}}}}"))
}

fn world() -> (MemoryCluster, Env) {
    let cluster = MemoryCluster::default();
    let (namespaces, config_maps) = (cluster.resolve("v1", "Namespace"), cluster.resolve("v1", "ConfigMap"));
    let (namespaces, config_maps) = (namespaces.unwrap(), config_maps.unwrap());
    for (namespace, name) in [("team-a", "mine"), ("team-b", "theirs"), ("kyverno", "kyverno")] {
        let home = object(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"));
        cluster.create(&namespaces, home, &WriteOptions::default()).unwrap();
        cluster.create(&config_maps, config_map(namespace, name), &WriteOptions::default()).unwrap();
    }
    let shared: Arc<dyn Cluster> = Arc::new(cluster.clone());
    let answers = Arc::new(ClusterFacts::new(Arc::clone(&shared)));
    let fence: super::Fence = Arc::new(|| Ok(()));
    let env = Env::new(shared, fence, answers, "kyverno".into(), Arc::new(|_| {}), Metrics::default());
    (cluster, env)
}

fn change(id: &ObjectId, action: Action) -> Change {
    Change { id: id.clone(), api_version: "v1".into(), action, reason: Reason::Missing }
}

/// Every sort of change of one object.
fn actions(object: &Value) -> [Action; 5] {
    let (before, after) = (object.clone(), object.clone());
    [
        Action::Create(after.clone()),
        Action::Replace { before: before.clone(), after: after.clone() },
        Action::Apply { before: None, after: after.clone() },
        Action::Apply { before: Some(before.clone()), after },
        Action::Delete { before, proof: Proof::Stamped },
    ]
}

fn policy(namespace: &str) -> PolicyId {
    PolicyId::kyverno(namespace, "p")
}

#[test]
fn no_sort_of_change_leaves_the_policys_scope() {
    let (cluster, env) = world();
    let namespace = object("{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}");
    let disguised = object("{apiVersion: v1, kind: Namespace, metadata: {name: team-b, namespace: team-a}}");
    for (home, object) in [
        ("team-a", config_map("team-b", "theirs")),
        ("team-a", config_map("kyverno", "kyverno")),
        ("team-a", namespace),
        ("team-a", disguised),
        ("kyverno", config_map("kyverno", "kyverno")),
    ] {
        let revision = cluster.revision();
        for action in actions(&object) {
            let result = env.writer(&policy(home)).apply(&change(&ObjectId::of(&object), action.clone()));
            assert!(matches!(result, Err(WriteError::OutOfScope(_))), "{home} {action:?}: {result:?}");
        }
        let labelled = env.writer(&policy(home)).label(&object, "a", "b");
        assert!(matches!(labelled, Err(WriteError::OutOfScope(_))), "{labelled:?}");
        assert_eq!(cluster.revision(), revision);
    }
}

#[test]
fn a_change_for_one_object_cannot_hold_another() {
    let (cluster, env) = world();
    let revision = cluster.revision();
    for action in actions(&config_map("team-b", "theirs")) {
        let meant = ObjectId::of(&config_map("team-a", "mine"));
        let result = env.writer(&policy("team-a")).apply(&change(&meant, action.clone()));
        assert!(matches!(result, Err(WriteError::OtherObject { .. })), "{action:?}: {result:?}");
    }
    assert_eq!(cluster.revision(), revision);
}

#[test]
fn a_replacement_is_the_object_that_was_read() {
    let (cluster, env) = world();
    let resource = cluster.resolve("v1", "ConfigMap").unwrap();
    let before = cluster.get(&resource, Some("team-a"), "mine").unwrap();
    let writer = env.writer(&policy("team-a"));
    let revision = cluster.revision();
    for (key, value) in [
        ("name", Some("theirs")),
        ("namespace", Some("team-b")),
        ("namespace", None),
        ("uid", None),
        ("resourceVersion", None),
        ("resourceVersion", Some("99999")),
    ] {
        let mut after = before.clone();
        set_meta(&mut after, key, value.map(Value::from));
        for place in [Place::Part(Part::Object), Place::Part(Part::Status), Place::Subresource("status")] {
            let result = writer.replace(&resource, place, &before, &after);
            assert!(matches!(result, Err(WriteError::IdentityChanged(_))), "{key} {place:?}: {result:?}");
        }
    }
    let secrets = cluster.resolve("v1", "Secret").unwrap();
    assert!(writer.replace(&secrets, Place::Part(Part::Object), &before, &before).is_err());
    assert_eq!(cluster.revision(), revision);
}

#[test]
fn a_cluster_wide_policy_writes_everywhere() {
    let (cluster, env) = world();
    let everywhere = PolicyId::kyverno("", "p");
    let resource = cluster.resolve("v1", "ConfigMap").unwrap();
    let mut after = cluster.get(&resource, Some("team-b"), "theirs").unwrap();
    let before = after.clone();
    set_meta(&mut after, "labels", Some(object("{a: b}")));
    let replaced = env.writer(&everywhere).replace(&resource, Place::Part(Part::Object), &before, &after).unwrap();
    assert_eq!(replaced.str_at(&["metadata", "labels", "a"]), Some("b"));
    let refused = env.writer(&policy("team-a")).may_write(&resource, &ObjectId::of(&before));
    assert!(matches!(refused, Err(WriteError::OutOfScope(OutOfScope::ForeignNamespace { .. }))), "{refused:?}");
}

#[test]
fn records_are_of_ephors_own_group() {
    let (cluster, env) = world();
    let resource = cluster.resolve("v1", "ConfigMap").unwrap();
    let settings = cluster.get(&resource, Some("kyverno"), "kyverno").unwrap();
    let revision = cluster.revision();
    assert!(env.records().update(&resource, settings.clone()).is_err());
    assert!(env.records().update_status(&resource, settings).is_err());
    assert!(env.records().delete(&resource, "kyverno", &DeleteOptions::default()).is_err());
    assert_eq!(cluster.revision(), revision);
}
