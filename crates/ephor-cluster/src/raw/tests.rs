//! Requests and what comes back.

use ephor_expr::Value;

use super::{Method, RawRequest};
use crate::cluster::Cluster;
use crate::error::ErrorKind;
use crate::memory::{MemoryCluster, Options};
use crate::write::PatchKind;

fn json(text: &str) -> Value {
    Value::from_json(text).unwrap()
}

fn filled() -> MemoryCluster {
    let cluster = MemoryCluster::new(Options::offline());
    let unloaded = cluster.load(
        [
            r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"prod","labels":{"appPriority":"critical"}}}"#,
            r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"dev"}}"#,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"prod","labels":{"app":"web"}}}"#,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"prod"}}"#,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"dev"}}"#,
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"prod"},"status":{"replicas":2}}"#,
            r#"{"apiVersion":"config.kio.kasten.io/v1alpha1","kind":"Policy","metadata":{"name":"k","namespace":"prod"}}"#,
        ]
        .map(json),
    );
    assert!(unloaded.is_empty());
    cluster
}

fn get(cluster: &MemoryCluster, path: &str) -> Value {
    cluster.raw(&RawRequest::get(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn send(cluster: &MemoryCluster, method: Method, path: &str, body: &str) -> Result<Value, (u16, String)> {
    let request = RawRequest { method, path: path.to_owned(), body: Some(json(body)), dry_run: false };
    cluster.raw(&request).map_err(|e| (e.code(), e.to_string()))
}

#[test]
fn lists_have_the_form_of_the_server() {
    let cluster = filled();
    assert_eq!(
        get(&cluster, "/api/v1/namespaces/dev/pods").to_json(),
        r#"{"apiVersion":"v1","items":[{"metadata":{"name":"a","namespace":"dev"}}],"kind":"PodList","metadata":{"resourceVersion":"8"}}"#
    );
    let custom = get(&cluster, "/apis/config.kio.kasten.io/v1alpha1/namespaces/prod/policies");
    assert_eq!(custom.str_at(&["kind"]), Some("PolicyList"));
    assert_eq!(custom.get("items").unwrap().as_array().unwrap()[0].str_at(&["kind"]), Some("Policy"));
}

#[test]
fn paths_and_queries_select() {
    let cluster = filled();
    for (path, want) in [
        ("/api/v1/pods", "a a b"),
        ("/api/v1/namespaces/prod/pods", "a b"),
        ("/api/v1/namespaces/prod/pods/", "a b"),
        ("/api/v1/namespaces/none/pods", ""),
        ("/api/v1/namespaces", "dev prod"),
        ("/api/v1/namespaces?labelSelector=appPriority%3Dcritical", "prod"),
        ("/api/v1/namespaces?labelSelector=appPriority=critical", "prod"),
        ("/api/v1/pods?labelSelector=app+in+(web,db)", "a"),
        ("/api/v1/pods?labelSelector=!app", "a b"),
        ("/api/v1/pods?fieldSelector=metadata.name=a,metadata.namespace%3Dprod", "a"),
        ("/api/v1/pods?limit=1&pretty=true&resourceVersion=0", "a"),
        ("/apis/apps/v1/deployments", "web"),
        ("/apis/apps/v1/namespaces/prod/deployments?fieldSelector=metadata.name!=db", "web"),
    ] {
        let found = get(&cluster, path);
        let items = found.get("items").unwrap().as_array().unwrap();
        let names: Vec<_> = items.iter().map(|o| o.str_at(&["metadata", "name"]).unwrap()).collect();
        assert_eq!(names.join(" "), want, "{path}");
    }
}

#[test]
fn pages_continue_where_they_ended() {
    let cluster = filled();
    let first = get(&cluster, "/api/v1/pods?limit=2");
    assert_eq!(first.at(&["metadata", "remainingItemCount"]), Some(&Value::from(1)));
    let token = first.str_at(&["metadata", "continue"]).unwrap();
    let rest = get(&cluster, &format!("/api/v1/pods?limit=2&continue={token}"));
    assert_eq!(rest.get("items").unwrap().as_array().unwrap().len(), 1);
    assert_eq!(rest.at(&["metadata", "continue"]), None);
}

#[test]
fn single_objects_come_whole() {
    let cluster = filled();
    for (path, kind, name) in [
        ("/api/v1/namespaces/prod/pods/a", "Pod", "a"),
        ("/api/v1/namespaces/prod", "Namespace", "prod"),
        ("/api/v1/namespaces/prod/status", "Namespace", "prod"),
        ("/apis/apps/v1/namespaces/prod/deployments/web/status", "Deployment", "web"),
    ] {
        let found = get(&cluster, path);
        assert_eq!((found.str_at(&["kind"]), found.str_at(&["metadata", "name"])), (Some(kind), Some(name)), "{path}");
    }
}

#[test]
fn refusals() {
    let cluster = filled();
    let no_path = "the server could not find the requested resource";
    for (path, code, message) in [
        ("/api/v1/namespaces/prod/configmaps/nothere", 404, r#"configmaps "nothere" not found"#),
        ("/apis/apps/v1/namespaces/default/unknown", 404, no_path),
        ("/apis/apps/v9/deployments", 404, no_path),
        ("/apis/route.openshift.io/v1/Routes", 404, no_path),
        ("/api/v1/pods/a", 404, no_path),
        ("/api/v1/namespaces/prod/nodes", 404, no_path),
        ("/api/v1/namespaces/prod/pods/a/nonsense", 404, no_path),
        ("/api/v1/namespaces//pods", 404, no_path),
        ("/nonsense", 404, no_path),
        ("/apis/nonsense", 404, no_path),
        ("/api/v2", 404, no_path),
        ("/api/v1/namespaces/prod/pods/a/log", 501, "nothing runs here: there are no logs"),
        ("/api/v1/pods?watch=true", 405, r#"watch is not supported on resources of kind "pods""#),
        (
            "/api/v1/pods?labelSelector=a%3D%3D%3D",
            400,
            r#"unable to parse selector "a===": found '=', expected: ',' or 'end of string'"#,
        ),
        ("/api/v1/pods?limit=x", 400, r#"invalid limit "x""#),
        ("/api/v1/pods?limit=%zz", 400, r#"invalid URL escape in "limit=%zz""#),
    ] {
        let error = cluster.raw(&RawRequest::get(path)).expect_err(path);
        assert_eq!((error.code(), error.to_string().as_str()), (code, message), "{path}");
    }
    let missing = cluster.raw(&RawRequest::get("/api/v1/namespaces/prod/configmaps/nothere")).unwrap_err();
    assert_eq!(missing.status().str_at(&["details", "kind"]), Some("configmaps"));
}

#[test]
fn documents_about_the_server() {
    let cluster = filled();
    assert_eq!(get(&cluster, "/api").to_json(), r#"{"kind":"APIVersions","versions":["v1"]}"#);
    assert_eq!(get(&cluster, "/apis").str_at(&["kind"]), Some("APIGroupList"));
    assert_eq!(get(&cluster, "/apis/batch").str_at(&["preferredVersion", "version"]), Some("v1"));
    assert_eq!(get(&cluster, "/api/v1").str_at(&["groupVersion"]), Some("v1"));
    assert_eq!(get(&cluster, "/apis/config.kio.kasten.io/v1alpha1").str_at(&["kind"]), Some("APIResourceList"));
    let version = get(&cluster, "/version");
    assert_eq!((version.str_at(&["major"]), version.str_at(&["minor"])), (Some("1"), Some("34")));
    assert_eq!(get(&cluster, "/readyz"), Value::from("ok"));
    assert_eq!(send(&cluster, Method::Post, "/version", "{}").unwrap_err().0, 405);
}

#[test]
fn access_reviews_are_granted() {
    let cluster = filled();
    let body = r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"ann"}}"#;
    for body in [body, r#"{"spec":{"user":"ann"}}"#] {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = send(&cluster, Method::Post, path, body).unwrap();
        assert_eq!(answer.at(&["status", "allowed"]), Some(&Value::from(true)));
    }
    let path = "/apis/authorization.k8s.io/v1/namespaces/prod/localsubjectaccessreviews";
    let answer = send(&cluster, Method::Post, path, "{}").unwrap();
    assert_eq!(answer.str_at(&["metadata", "namespace"]), Some("prod"));
}

#[test]
fn objects_are_written_through_their_paths() {
    let cluster = filled();
    let collection = "/api/v1/namespaces/prod/configmaps";
    let path = "/api/v1/namespaces/prod/configmaps/c";
    let created = send(&cluster, Method::Post, collection, r#"{"metadata":{"name":"c"}}"#).unwrap();
    assert_eq!(created.str_at(&["metadata", "namespace"]), Some("prod"));
    // A namespace that a kind of the cluster is sent with is not stored.
    let homed = r#"{"metadata":{"name":"homed","namespace":"prod"}}"#;
    let stored = send(&cluster, Method::Post, "/api/v1/namespaces", homed).unwrap();
    assert_eq!(
        (stored.str_at(&["metadata", "name"]), stored.str_at(&["metadata", "namespace"])),
        (Some("homed"), None)
    );
    let put = send(&cluster, Method::Put, path, r#"{"metadata":{"name":"c"},"data":{"k":"v"}}"#).unwrap();
    assert_eq!(put.str_at(&["data", "k"]), Some("v"));
    let patched = send(&cluster, Method::Patch(PatchKind::Merge), path, r#"{"data":{"k":null,"l":"w"}}"#).unwrap();
    assert_eq!(patched.get("data").unwrap().to_json(), r#"{"l":"w"}"#);
    for (method, path, body, code) in [
        (Method::Post, "/api/v1/configmaps", "{}", 405),
        (Method::Post, path, "{}", 405),
        (Method::Put, collection, "{}", 405),
        (Method::Delete, "/api/v1/configmaps", "{}", 405),
        (Method::Put, path, r#"{"metadata":{"name":"d"}}"#, 400),
        (Method::Put, path, r#"{"metadata":{"name":"c","namespace":"dev"}}"#, 400),
        (Method::Delete, path, r#"{"preconditions":{"uid":"x"}}"#, 409),
        (Method::Delete, path, r#"{"propagationPolicy":"Sideways"}"#, 400),
    ] {
        assert_eq!(send(&cluster, method, path, body).unwrap_err().0, code, "{method:?} {path} {body}");
    }
    let status = send(&cluster, Method::Delete, path, "{}").unwrap();
    assert_eq!((status.str_at(&["status"]), status.str_at(&["details", "name"])), (Some("Success"), Some("c")));
    assert_eq!(cluster.raw(&RawRequest::get(path)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn the_status_has_a_path_of_its_own() {
    let cluster = filled();
    let path = "/apis/apps/v1/namespaces/prod/deployments/web";
    let body = r#"{"spec":{"replicas":7},"status":{"replicas":7}}"#;
    let changed = send(&cluster, Method::Patch(PatchKind::Merge), &format!("{path}/status"), body).unwrap();
    assert_eq!((changed.at(&["status", "replicas"]), changed.get("spec")), (Some(&Value::from(7)), None));
    assert_eq!(send(&cluster, Method::Delete, &format!("{path}/status"), "{}").unwrap_err().0, 405);
}

#[test]
fn nothing_is_stored_in_a_dry_run() {
    let cluster = filled();
    let before = cluster.revision();
    let path = "/api/v1/namespaces/prod/configmaps";
    let object = r#"{"metadata":{"name":"c"}}"#;
    send(&cluster, Method::Post, &format!("{path}?dryRun=All"), object).unwrap();
    cluster.raw(&RawRequest { dry_run: true, ..RawRequest::post(path, json(object)) }).unwrap();
    let dry = r#"{"dryRun":["All"]}"#;
    send(&cluster, Method::Delete, "/api/v1/namespaces/prod/pods/a", dry).unwrap();
    assert_eq!(cluster.revision(), before);
    assert_eq!(send(&cluster, Method::Post, &format!("{path}?dryRun=Some"), object).unwrap_err().0, 400);
}
