//! Single objects: creating and getting.

use ephor_cluster::raw::RawRequest;
use ephor_cluster::{ErrorKind, WriteOptions, object};
use ephor_expr::Value;

use super::Case;
use super::test_env::{TestEnv, config_map, deployment, namespace, refused};

pub(super) const CASES: &[Case] = &[
    ("a new object gets what the server gives", new_objects),
    ("what is not there is said so", missing),
    ("creation is refused", refusals),
    ("names are generated", generated_names),
    ("nothing is stored in a dry run", dry_run),
    ("reviews are answered", reviews),
    ("kinds have subresources", subresources),
    ("paths answer", paths),
];

fn new_objects(env: &TestEnv) {
    let created = env.config_map("a");
    assert_eq!((created.str_at(&["apiVersion"]), created.str_at(&["kind"])), (Some("v1"), Some("ConfigMap")));
    for key in ["uid", "creationTimestamp", "resourceVersion"] {
        assert!(!object::text(&created, key).is_empty(), "{key}: {created}");
    }
    assert!(created.at(&["metadata", "managedFields"]).is_none(), "{created}");
    assert_eq!(env.present(&created), Some(created));
    let deployment = env.create(&deployment("d"));
    assert_eq!(deployment.at(&["metadata", "generation"]).and_then(Value::as_i64), Some(1));
    let untyped = env.json(r#"{"metadata":{"name":"b","namespace":"NS"}}"#);
    let config_maps = env.resource("v1", "ConfigMap");
    let created = env.cluster.create(&config_maps, untyped, &WriteOptions::default()).unwrap();
    assert_eq!(created.str_at(&["kind"]), Some("ConfigMap"));
}

fn missing(env: &TestEnv) {
    let cluster = &*env.cluster;
    let own = Some(env.namespace.as_str());
    let not_found = |api_version, kind, namespace, words| {
        let resource = env.resource(api_version, kind);
        refused(env, cluster.get(&resource, namespace, "x"), ErrorKind::NotFound, 404, words);
    };
    not_found("v1", "ConfigMap", own, r#"configmaps "x" not found"#);
    not_found("v1", "ConfigMap", Some("no-such-namespace"), r#"configmaps "x" not found"#);
    not_found("apps/v1", "Deployment", own, r#"deployments.apps "x" not found"#);
    not_found("v1", "Namespace", None, r#"namespaces "x" not found"#);
    not_found("v1", "Namespace", own, "the server could not find the requested resource");
    refused(
        env,
        cluster.resolve("no.such.group/v1", "Thing"),
        ErrorKind::NotFound,
        404,
        r#"no matches for kind "Thing" in version "no.such.group/v1""#,
    );
    let config_maps = env.resource("v1", "ConfigMap");
    refused(env, cluster.get(&config_maps, own, ""), ErrorKind::Invalid, 400, "resource name may not be empty");
    let words = "an empty namespace may not be set when a resource name is provided";
    refused(env, cluster.get(&config_maps, None, "x"), ErrorKind::Invalid, 400, words);
}

fn refusals(env: &TestEnv) {
    env.config_map("a");
    for (text, kind, code, words) in [
        (config_map("a"), ErrorKind::AlreadyExists, 409, r#"configmaps "a" already exists"#),
        (
            config_map("a").replace("NS", "no-such-namespace"),
            ErrorKind::NotFound,
            404,
            r#"namespaces "no-such-namespace" not found"#,
        ),
        (
            config_map("").replace(r#""name":"","#, ""),
            ErrorKind::Invalid,
            422,
            r#"ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#,
        ),
        (
            config_map("A_b"),
            ErrorKind::Invalid,
            422,
            r#"ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
        ),
    ] {
        refused(env, env.try_create(&text), kind, code, words);
    }
    // A server has no better code than 500 for it.
    let born_old = config_map("b").replace(r#""name""#, r#""resourceVersion":"1","name""#);
    let error = env.try_create(&born_old).unwrap_err();
    assert_eq!(error.to_string(), "resourceVersion should not be set on objects to be created");
    let resource = env.resource("v1", "ConfigMap");
    let homeless = env.json(r#"{"metadata":{"name":"x"}}"#);
    let words = "an empty namespace may not be set during creation";
    let result = env.cluster.create(&resource, homeless, &WriteOptions::default());
    refused(env, result, ErrorKind::Invalid, 400, words);
}

fn generated_names(env: &TestEnv) {
    let text = config_map("").replace(r#""name":"""#, r#""generateName":"gen-""#);
    let (one, two) = (env.create(&text), env.create(&text));
    for object in [&one, &two] {
        let name = object::name(object);
        assert_eq!((name.len(), name.starts_with("gen-")), (9, true), "{name}");
    }
    assert_ne!(object::name(&one), object::name(&two));
}

fn dry_run(env: &TestEnv) {
    let object = env.json(&config_map("a"));
    let resource = env.resource("v1", "ConfigMap");
    let shown = env.cluster.create(&resource, object, &WriteOptions::dry_run()).unwrap();
    assert_eq!(shown.str_at(&["data", "k"]), Some("v"));
    assert_eq!(env.present(&shown), None);
    let stored = env.config_map("a");
    let mut changed = stored.clone();
    changed.as_object_mut().unwrap().insert("data", Value::from([("k", Value::from("w"))]));
    let shown = env.cluster.update(&resource, changed, &WriteOptions::dry_run()).unwrap();
    assert_eq!(shown.str_at(&["data", "k"]), Some("w"));
    assert_eq!(env.present(&stored), Some(stored));
}

fn reviews(env: &TestEnv) {
    let review = env.create(
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u","groups":["system:masters"],"resourceAttributes":{"verb":"get","resource":"pods","namespace":"NS"}}}"#,
    );
    assert_eq!(review.at(&["status", "allowed"]), Some(&Value::Bool(true)), "{review}");
    let resource = env.resource("authorization.k8s.io/v1", "SubjectAccessReview");
    assert!(!resource.stored);
    let listed = env.cluster.list(&resource, &ephor_cluster::ListQuery::all());
    assert_eq!(listed.unwrap_err().kind(), ErrorKind::Unsupported);
}

fn subresources(env: &TestEnv) {
    for (api_version, kind, name, below_version, below_kind) in [
        ("apps/v1", "Deployment", "scale", "autoscaling/v1", "Scale"),
        ("apps/v1", "Deployment", "status", "apps/v1", "Deployment"),
        ("v1", "Pod", "eviction", "policy/v1", "Eviction"),
        ("v1", "Pod", "ephemeralcontainers", "v1", "Pod"),
        ("v1", "ServiceAccount", "token", "authentication.k8s.io/v1", "TokenRequest"),
    ] {
        let resource = env.resource(api_version, kind);
        let below = resource.subresource(name).unwrap_or_else(|| panic!("{kind} {name}"));
        assert_eq!((below.api_version.as_str(), below.kind.as_str()), (below_version, below_kind), "{kind} {name}");
    }
    let discovery = env.cluster.discovery().unwrap();
    let first = |kind: &str| discovery.with_kind(kind).next().unwrap().api_version();
    assert_eq!(
        (first("Deployment").as_str(), first("Pod").as_str(), first("Ingress").as_str()),
        ("apps/v1", "v1", "networking.k8s.io/v1")
    );
    let pods = env.resource("v1", "Pod");
    assert!(pods.short_names.iter().any(|short| short == "po"));
}

fn paths(env: &TestEnv) {
    let stored = env.config_map("a");
    let get = |path: &str| env.cluster.raw(&RawRequest::get(path.replace("NS", &env.namespace)));
    let found = get("/api/v1/namespaces/NS/configmaps/a").unwrap();
    assert_eq!(object::text(&found, "uid"), object::text(&stored, "uid"));
    let list = get("/api/v1/namespaces/NS/configmaps?labelSelector=contract&limit=5").unwrap();
    assert_eq!(list.str_at(&["kind"]), Some("ConfigMapList"));
    let items = list.get("items").and_then(Value::as_array).unwrap();
    assert_eq!((items.len(), items[0].get("kind")), (1, None));
    assert!(get("/version").unwrap().str_at(&["gitVersion"]).is_some_and(|v| v.starts_with('v')));
    assert_eq!(get("/healthz").unwrap(), Value::from("ok"));
    refused(env, get("/api/v1/namespaces/NS/configmaps/x"), ErrorKind::NotFound, 404, r#"configmaps "x" not found"#);
    let words = "the server could not find the requested resource";
    refused(env, get("/apis/no.such.group/v1/things"), ErrorKind::NotFound, 404, words);
    refused(env, get("/api/v1/namespaces/NS/configmaps/a/status"), ErrorKind::NotFound, 404, words);
    let post = RawRequest::post(format!("/api/v1/namespaces/{}/configmaps", env.namespace), env.json(&config_map("b")));
    let shown = env.cluster.raw(&RawRequest { dry_run: true, ..post.clone() }).unwrap();
    assert_eq!(env.present(&shown), None);
    let made = env.cluster.raw(&post).unwrap();
    assert_eq!((object::name(&made), namespace(&made)), ("b", Some(env.namespace.as_str())));
}
