//! Lists.

use ephor_cluster::{ErrorKind, FieldSelector, ListQuery, object};

use super::Case;
use super::test_env::{TestEnv, config_map, labels, names, refused};

pub(super) const CASES: &[Case] = &[
    ("lists are sorted and selected", selections),
    ("pages are one list", pages),
    ("metadata comes alone", metadata),
    ("lists are refused", refusals),
];

fn selections(env: &TestEnv) {
    for name in ["b", "a", "c"] {
        env.create(&config_map(name).replace(r#""contract":"""#, &format!(r#""contract":"{name}""#)));
    }
    let config_maps = env.resource("v1", "ConfigMap");
    let list = |query: ListQuery| {
        let list = env.cluster.list(&config_maps, &query).unwrap();
        assert!(!list.resource_version.is_empty());
        assert!(list.items.iter().all(|item| item.str_at(&["kind"]) == Some("ConfigMap")));
        names(&list.items).join(",")
    };
    assert_eq!(list(env.own()), "a,b,c");
    for (selector, want) in [
        ("contract=a", "a"),
        ("contract!=a,contract", "b,c"),
        ("contract in (a,c)", "a,c"),
        ("contract,!other", "a,b,c"),
    ] {
        assert_eq!(list(ListQuery { ..env.own() }.labels(labels(selector))), want, "{selector}");
    }
    assert_eq!(list(env.own().fields(FieldSelector::name("b"))), "b");
    assert_eq!(list(env.own().fields(FieldSelector::parse("metadata.name!=b").unwrap())), "a,c");
    let everywhere =
        ListQuery::all().fields(FieldSelector::parse(&format!("metadata.namespace={}", env.namespace)).unwrap());
    assert_eq!(list(everywhere.labels(labels("contract"))), "a,b,c");
    assert_eq!(list(ListQuery::in_namespace("no-such-namespace")), "");
}

fn pages(env: &TestEnv) {
    for name in ["a", "b", "c", "d", "e"] {
        env.config_map(name);
    }
    let config_maps = env.resource("v1", "ConfigMap");
    let mut query = env.own().limit(2);
    let mut seen = Vec::new();
    let mut versions = Vec::new();
    loop {
        let page = env.cluster.list(&config_maps, &query).unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.iter().map(|o| object::name(o).to_owned()));
        versions.push(page.resource_version.clone());
        if seen.len() == 2 {
            // The pages are the list as it was.
            env.config_map("aa");
            env.config_map("f");
        }
        match page.continue_token {
            Some(token) => query.continue_token = Some(token),
            None => break,
        }
    }
    assert_eq!((seen.join(","), versions.len()), ("a,b,c,d,e".to_owned(), 3));
    assert!(versions.iter().all(|v| *v == versions[0]), "{versions:?}");
}

fn metadata(env: &TestEnv) {
    env.config_map("a");
    let list = env.cluster.list(&env.resource("v1", "ConfigMap"), &env.own().metadata_only()).unwrap();
    let keys: Vec<_> = list.items[0].as_object().unwrap().iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["apiVersion", "kind", "metadata"]);
    assert_eq!(list.items[0].str_at(&["kind"]), Some("ConfigMap"));
    assert_eq!(list.items[0].str_at(&["metadata", "labels", "contract"]), Some(""));
}

fn refusals(env: &TestEnv) {
    let config_maps = env.resource("v1", "ConfigMap");
    let query = ListQuery { continue_token: Some("made up".into()), ..env.own().limit(1) };
    let error = env.cluster.list(&config_maps, &query).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, 400), "{error}");
    let mut nothing = config_maps.clone();
    nothing.plural = "nothings".into();
    let listed = env.cluster.list(&nothing, &env.own());
    refused(env, listed, ErrorKind::NotFound, 404, "the server could not find the requested resource");
}
