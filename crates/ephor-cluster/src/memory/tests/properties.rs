//! What holds after any sequence of calls.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

/// One call, about one of a few objects.
#[derive(Debug, Clone)]
enum Call {
    Create {
        name: u8,
        finalizer: bool,
    },
    /// Writes the object as it was read `age` reads ago.
    Update {
        name: u8,
        data: u8,
        age: u8,
    },
    Patch {
        name: u8,
        data: u8,
    },
    Unfinalize {
        name: u8,
    },
    Delete {
        name: u8,
    },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let name = 0..4u8;
    vec(
        prop_oneof![
            (name.clone(), any::<bool>()).prop_map(|(name, finalizer)| Call::Create { name, finalizer }),
            (name.clone(), 0..3u8, 0..3u8).prop_map(|(name, data, age)| Call::Update { name, data, age }),
            (name.clone(), 0..3u8).prop_map(|(name, data)| Call::Patch { name, data }),
            name.clone().prop_map(|name| Call::Unfinalize { name }),
            name.prop_map(|name| Call::Delete { name }),
        ],
        1..60,
    )
}

/// What the cluster must contain, kept in the simplest way.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    data: Option<u8>,
    finalizer: bool,
    deleting: bool,
    version: String,
}

struct Run {
    cluster: MemoryCluster,
    model: BTreeMap<u8, Model>,
    reads: BTreeMap<u8, Vec<Value>>,
}

impl Run {
    fn note(&mut self, name: u8, object: &Value) {
        self.reads.entry(name).or_default().push(object.clone());
        if let Some(model) = self.model.get_mut(&name) {
            object::text(object, "resourceVersion").clone_into(&mut model.version);
        }
    }

    /// The outcome that the model expects: whether the call succeeds, and else how it fails.
    fn call(&mut self, call: &Call) -> Result<(), TestCaseError> {
        let text = |name: u8| config_map(&format!("c{name}"));
        match *call {
            Call::Create { name, finalizer } => {
                let finalizers = if finalizer { r#"],"finalizers":["x/a"]"# } else { "]" };
                let body =
                    text(name).replace(r#""namespace""#, &format!(r#""ownerReferences":[{finalizers},"namespace""#));
                let outcome = create(&self.cluster, &body);
                let exists = self.model.contains_key(&name);
                if exists {
                    prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::AlreadyExists);
                } else {
                    let stored = outcome.unwrap();
                    self.model.insert(name, Model { finalizer, ..Model::default() });
                    self.note(name, &stored);
                }
            }
            Call::Update { name, data, age } => {
                let reads = self.reads.get(&name).map(Vec::as_slice).unwrap_or_default();
                let Some(read) = reads.len().checked_sub(1 + usize::from(age)).map(|i| &reads[i]) else {
                    return Ok(());
                };
                let mut object = read.clone();
                object.as_object_mut().unwrap().insert("data", Value::from([("k", Value::from(i64::from(data)))]));
                let read_version = object::text(read, "resourceVersion").to_owned();
                let finalizer = object::has_finalizers(read);
                let outcome = update(&self.cluster, object);
                match self.model.get_mut(&name) {
                    None => prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound),
                    Some(model) if model.version == read_version => {
                        prop_assert_eq!(model.finalizer, finalizer);
                        model.data = Some(data);
                        let stored = outcome.unwrap();
                        self.note(name, &stored);
                    }
                    Some(_) => prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Conflict),
                }
            }
            Call::Patch { name, data } => {
                let outcome = patch(&self.cluster, &json(&text(name)), &format!(r#"{{"data":{{"k":{data}}}}}"#));
                match self.model.get_mut(&name) {
                    None => prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound),
                    Some(model) => {
                        model.data = Some(data);
                        let stored = outcome.unwrap();
                        self.note(name, &stored);
                    }
                }
            }
            Call::Unfinalize { name } => {
                let outcome = patch(&self.cluster, &json(&text(name)), r#"{"metadata":{"finalizers":null}}"#);
                match self.model.get_mut(&name) {
                    None => prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound),
                    Some(model) if model.deleting => {
                        self.model.remove(&name);
                    }
                    Some(model) => {
                        model.finalizer = false;
                        let stored = outcome.unwrap();
                        self.note(name, &stored);
                    }
                }
            }
            Call::Delete { name } => {
                let outcome = delete(&self.cluster, &json(&text(name)));
                match self.model.get_mut(&name) {
                    None => prop_assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound),
                    Some(model) if model.finalizer => {
                        model.deleting = true;
                        let marked = outcome.unwrap();
                        prop_assert!(!marked.is_done());
                        self.note(name, &marked.into_object());
                    }
                    Some(_) => {
                        prop_assert!(outcome.unwrap().is_done());
                        self.model.remove(&name);
                    }
                }
            }
        }
        Ok(())
    }

    fn listed(&self) -> List {
        list(&self.cluster, "v1", "ConfigMap", &ListQuery::all()).unwrap()
    }
}

/// The state that events lead to, starting from a list.
fn replayed(list: &List, events: &[WatchEvent]) -> Vec<Value> {
    let by_name = |object: &Value| object::name(object).to_owned();
    let mut objects: BTreeMap<String, Value> = list.items.iter().map(|o| (by_name(o), o.clone())).collect();
    for event in events {
        match event {
            WatchEvent::Added(o) => assert!(objects.insert(by_name(o), o.clone()).is_none(), "added twice"),
            WatchEvent::Modified(o) => assert!(objects.insert(by_name(o), o.clone()).is_some(), "modified in absence"),
            WatchEvent::Deleted(o) => assert!(objects.remove(&by_name(o)).is_some(), "deleted in absence"),
            WatchEvent::Bookmark(_) => {}
        }
    }
    objects.into_values().collect()
}

fn version(object: &Value) -> u64 {
    object::text(object, "resourceVersion").parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_calls_keeps_the_promises(calls in calls()) {
        let mut run = Run { cluster: strict(), model: BTreeMap::new(), reads: BTreeMap::new() };
        let mut lists = vec![run.listed()];
        let mut revision = run.cluster.revision();
        for call in &calls {
            let before = run.listed().items;
            run.call(call)?;
            let list = run.listed();
            // The version moves exactly when something changes.
            let now = run.cluster.revision();
            prop_assert!(now >= revision);
            prop_assert_eq!(now > revision, list.items != before);
            revision = now;
            // The cluster contains what the model says.
            let found: BTreeMap<u8, Model> = list.items.iter().map(|o| {
                let name = object::name(o)[1..].parse().unwrap();
                let data = o.at(&["data", "k"]).and_then(Value::as_i64).map(|n| n as u8);
                let version = object::text(o, "resourceVersion").to_owned();
                (name, Model { data, finalizer: object::has_finalizers(o), deleting: object::is_deleting(o), version })
            }).collect();
            prop_assert_eq!(&found, &run.model);
            lists.push(list);
        }
        // A watch from any list leads to the present state, through versions that only grow.
        let end = run.listed();
        for list in &lists {
            let mut watch = watch(&run.cluster, "v1", "ConfigMap", &list.resource_version);
            let events = events(&mut *watch);
            let versions: Vec<u64> = events.iter().filter_map(WatchEvent::object).map(version).collect();
            prop_assert!(versions.windows(2).all(|w| w[0] < w[1]), "{:?}", versions);
            prop_assert_eq!(replayed(list, &events), end.items.clone());
        }
        // A list read page by page from then on shows the state of its first page.
        for list in &lists {
            let token = format!("{}:/", list.resource_version);
            let query = ListQuery { continue_token: Some(token.into()), ..ListQuery::default() };
            let then = super::list(&run.cluster, "v1", "ConfigMap", &query).unwrap();
            prop_assert_eq!(&then.items, &list.items);
        }
    }
}
