//! Owners and what they take with them.

use super::*;
use crate::write::Propagation;

fn owned(name: &str, owners: &[(&Value, bool)]) -> String {
    let references: Vec<String> = owners
        .iter()
        .map(|(owner, blocks)| {
            format!(
                r#"{{"apiVersion":"{}","kind":"{}","name":"{}","uid":"{}","blockOwnerDeletion":{blocks}}}"#,
                owner.str_at(&["apiVersion"]).unwrap(),
                owner.str_at(&["kind"]).unwrap(),
                object::name(owner),
                object::text(owner, "uid"),
            )
        })
        .collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{name}","namespace":"default","ownerReferences":[{}]}}}}"#,
        references.join(",")
    )
}

fn owner_names(object: &Value) -> Vec<&str> {
    let references = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    references.iter().map(|r| r.str_at(&["name"]).unwrap()).collect()
}

fn delete_by(cluster: &MemoryCluster, object: &Value, propagation: Propagation) -> Deletion {
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    delete_with(cluster, object, &options).unwrap()
}

#[test]
fn dependents_go_after_their_last_owner() {
    let cluster = strict();
    let [a, b] = ["a", "b"].map(|name| create(&cluster, &config_map(name)).unwrap());
    let only = create(&cluster, &owned("only", &[(&a, false)])).unwrap();
    let both = create(&cluster, &owned("both", &[(&a, false), (&b, false)])).unwrap();
    let grandchild = create(&cluster, &owned("grandchild", &[(&only, false)])).unwrap();
    assert_eq!(cluster.collect_garbage(), 0);
    delete(&cluster, &a).unwrap();
    assert!(present(&cluster, &only).is_some(), "collection takes its time");
    assert_eq!(cluster.collect_garbage(), 3);
    assert_eq!((present(&cluster, &only), present(&cluster, &grandchild)), (None, None));
    assert_eq!(owner_names(&present(&cluster, &both).unwrap()), ["b"]);
    delete(&cluster, &b).unwrap();
    cluster.collect_garbage();
    assert_eq!(present(&cluster, &both), None);
}

#[test]
fn an_owner_is_known_by_its_uid() {
    let cluster = strict();
    let first = create(&cluster, &config_map("a")).unwrap();
    let dependent = create(&cluster, &owned("d", &[(&first, false)])).unwrap();
    delete(&cluster, &first).unwrap();
    create(&cluster, &config_map("a")).unwrap();
    cluster.collect_garbage();
    assert_eq!(present(&cluster, &dependent), None);
}

#[test]
fn an_owner_in_the_foreground_goes_after_those_who_block_it() {
    let cluster = strict();
    let owner = create(&cluster, &deployment("a")).unwrap();
    let child = create(&cluster, &owned("child", &[(&owner, true)])).unwrap();
    let child = patch(&cluster, &child, r#"{"metadata":{"finalizers":["x/a"]}}"#).unwrap();
    let grandchild = create(&cluster, &owned("grandchild", &[(&child, true)])).unwrap();
    let waiting = delete_by(&cluster, &owner, Propagation::Foreground).into_object();
    assert_eq!(waiting.at(&["metadata", "finalizers"]).unwrap().to_json(), r#"["foregroundDeletion"]"#);
    cluster.collect_garbage();
    assert_eq!(present(&cluster, &grandchild), None, "the foreground reaches down");
    assert!(object::is_deleting(&present(&cluster, &child).unwrap()));
    assert!(present(&cluster, &owner).is_some());
    patch(&cluster, &child, r#"{"metadata":{"finalizers":null}}"#).unwrap();
    assert_eq!(present(&cluster, &child), None);
    cluster.collect_garbage();
    assert_eq!(present(&cluster, &owner), None);
}

#[test]
fn orphans_stay_without_their_owner() {
    let cluster = strict();
    let [a, b] = ["a", "b"].map(|name| create(&cluster, &config_map(name)).unwrap());
    let orphan = create(&cluster, &owned("o", &[(&a, true), (&b, true)])).unwrap();
    assert!(!delete_by(&cluster, &a, Propagation::Orphan).is_done());
    cluster.collect_garbage();
    assert_eq!(present(&cluster, &a), None);
    assert_eq!(owner_names(&present(&cluster, &orphan).unwrap()), ["b"]);
    delete_by(&cluster, &b, Propagation::Orphan);
    cluster.collect_garbage();
    let orphan = present(&cluster, &orphan).unwrap();
    assert_eq!(orphan.at(&["metadata", "ownerReferences"]), None);
}

#[test]
fn nothing_is_collected_on_a_guess() {
    let cluster = strict();
    let stranger = json(r#"{"apiVersion":"unknown.io/v1","kind":"Thing","metadata":{"name":"t","uid":"u"}}"#);
    let dependent = create(&cluster, &owned("d", &[(&stranger, false)])).unwrap();
    let far = create(&cluster, &config_map("far")).unwrap();
    // A cluster-scoped object cannot belong to a namespaced one.
    let node =
        owned("n", &[(&far, false)]).replace(r#""Secret""#, r#""Node""#).replace(r#""namespace":"default","#, "");
    let node = create(&cluster, &node).unwrap();
    delete(&cluster, &far).unwrap();
    assert_eq!(cluster.collect_garbage(), 0);
    assert!(present(&cluster, &dependent).is_some() && present(&cluster, &node).is_some());
}

#[test]
fn owners_in_another_namespace_do_not_count() {
    let cluster = strict();
    let owner = create(&cluster, &config_map("a").replace("default", "kube-system")).unwrap();
    let dependent = create(&cluster, &owned("d", &[(&owner, false)])).unwrap();
    cluster.collect_garbage();
    assert_eq!(present(&cluster, &dependent), None);
}
