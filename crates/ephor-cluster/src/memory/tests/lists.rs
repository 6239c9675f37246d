//! Lists and pages.

use super::*;
use crate::error::ErrorKind;
use crate::query::{FieldSelector, LabelSelector};

fn filled() -> MemoryCluster {
    let cluster = strict();
    for (namespace, name, tier) in [
        ("default", "b", "web"),
        ("default", "a", "db"),
        ("kube-system", "a", "web"),
        ("kube-system", "c", "db"),
        ("kube-public", "z", "web"),
    ] {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"{namespace}","labels":{{"tier":"{tier}"}}}}}}"#
        );
        create(&cluster, &text).unwrap();
    }
    cluster
}

fn places(list: &List) -> Vec<String> {
    list.items.iter().map(|o| format!("{}/{}", object::namespace(o), object::name(o))).collect()
}

#[test]
fn lists_are_sorted_and_filtered() {
    let cluster = filled();
    let labelled = |text| ListQuery::all().labels(LabelSelector::parse(text).unwrap());
    for (query, want) in [
        (ListQuery::all(), vec!["default/a", "default/b", "kube-public/z", "kube-system/a", "kube-system/c"]),
        (ListQuery::in_namespace("kube-system"), vec!["kube-system/a", "kube-system/c"]),
        (
            ListQuery::in_namespace(""),
            vec!["default/a", "default/b", "kube-public/z", "kube-system/a", "kube-system/c"],
        ),
        (ListQuery::in_namespace("kube"), vec![]),
        (labelled("tier in (web)"), vec!["default/b", "kube-public/z", "kube-system/a"]),
        (labelled("tier=db,missing"), vec![]),
        (ListQuery::all().fields(FieldSelector::name("a")), vec!["default/a", "kube-system/a"]),
        (
            ListQuery::all().fields(FieldSelector::parse("metadata.namespace!=default,metadata.name=a").unwrap()),
            vec!["kube-system/a"],
        ),
    ] {
        assert_eq!(places(&list(&cluster, "v1", "ConfigMap", &query).unwrap()), want, "{query:?}");
    }
    let nothing = list(&cluster, "v1", "Secret", &ListQuery::all()).unwrap();
    assert_eq!(nothing.resource_version, cluster.revision().to_string());
    assert!(nothing.items.is_empty());
}

#[test]
fn pages_show_one_state() {
    let cluster = filled();
    let query = ListQuery::all().limit(2);
    let first = list(&cluster, "v1", "ConfigMap", &query).unwrap();
    assert_eq!((places(&first), first.remaining), (vec!["default/a".into(), "default/b".into()], Some(3)));
    // The state changes between the pages: one object comes, one changes, one goes.
    create(&cluster, &config_map("c").replace("default", "kube-public")).unwrap();
    let z = json(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"z","namespace":"kube-public"}}"#);
    patch(&cluster, &z, r#"{"data":{"k":"v"}}"#).unwrap();
    delete(&cluster, &json(&config_map("c").replace("default", "kube-system"))).unwrap();
    let second =
        list(&cluster, "v1", "ConfigMap", &ListQuery { continue_token: first.continue_token.clone(), ..query.clone() })
            .unwrap();
    assert_eq!(places(&second), ["kube-public/z", "kube-system/a"]);
    assert_eq!(second.items[0].get("data"), None);
    assert_eq!(second.resource_version, first.resource_version);
    let third =
        list(&cluster, "v1", "ConfigMap", &ListQuery { continue_token: second.continue_token.clone(), ..query })
            .unwrap();
    assert_eq!((places(&third), third.continue_token), (vec!["kube-system/c".into()], None));
}

#[test]
fn pages_of_a_selection_do_not_count_the_rest() {
    let query = ListQuery::all().limit(1).labels(LabelSelector::parse("tier=web").unwrap());
    let page = list(&filled(), "v1", "ConfigMap", &query).unwrap();
    assert!(page.continue_token.is_some() && page.remaining.is_none());
}

#[test]
fn a_page_too_late_is_gone() {
    let cluster = MemoryCluster::new(Options { history: 3, ..Options::default() });
    for name in ["a", "b", "c"] {
        create(&cluster, &config_map(name)).unwrap();
    }
    let first = list(&cluster, "v1", "ConfigMap", &ListQuery::all().limit(1)).unwrap();
    let next = ListQuery { continue_token: first.continue_token, ..ListQuery::default() };
    for name in ["d", "e", "f"] {
        create(&cluster, &config_map(name)).unwrap();
    }
    assert_eq!(names(&list(&cluster, "v1", "ConfigMap", &next).unwrap().items), ["b", "c"]);
    create(&cluster, &config_map("g")).unwrap();
    let error = list(&cluster, "v1", "ConfigMap", &next).unwrap_err();
    assert_eq!((error.kind(), error.code(), error.reason()), (ErrorKind::Gone, 410, "Expired"));
}

#[test]
fn made_up_pages_are_refused() {
    let cluster = filled();
    for token in ["", "x", "1", "1:a", "99999:a/b", "-1:a/b"] {
        let query = ListQuery { continue_token: Some(token.into()), ..ListQuery::default() };
        assert_eq!(list(&cluster, "v1", "ConfigMap", &query).unwrap_err().code(), 400, "{token}");
    }
}

#[test]
fn single_objects_need_the_right_scope() {
    let cluster = filled();
    for (api_version, kind, namespace, name, code) in [
        ("v1", "ConfigMap", None, "a", 400),
        ("v1", "ConfigMap", Some(""), "a", 400),
        ("v1", "ConfigMap", Some("default"), "", 400),
        ("v1", "ConfigMap", Some("default"), "zz", 404),
        ("v1", "Namespace", Some("default"), "default", 404),
    ] {
        let error = cluster.get(&resource(&cluster, api_version, kind), namespace, name).unwrap_err();
        assert_eq!(error.code(), code, "{kind} {namespace:?} {name}");
    }
    assert!(cluster.get(&resource(&cluster, "v1", "Namespace"), Some(""), "default").is_ok());
}
