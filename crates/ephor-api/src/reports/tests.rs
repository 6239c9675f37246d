use axum::http::header;
use ephor_reports::served;
use ephor_reports::{Dialect, Scope};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use tower::ServiceExt as _;

use super::*;

/// Refuses what it is told to, and records what it was asked.
struct Gate {
    refuses: fn(&Attributes) -> bool,
}

impl Access for Gate {
    fn check(&self, _: &Parts, attributes: &Attributes) -> Result<(), ClusterError> {
        if (self.refuses)(attributes) { Err(ClusterError::denied(403, "Forbidden", "no")) } else { Ok(()) }
    }
}

const GROUP: &str = "/apis/wgpolicyk8s.io/v1alpha2";

fn report(reports: &ServedReports, namespace: &str, uid: &str) {
    let scope = Scope {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: namespace.into(),
        name: "colours".into(),
        uid: uid.into(),
    };
    let result = Value::from([("policy", Value::from("p")), ("result", Value::from("fail"))]);
    reports.set(&scope, vec![result], Timestamp::UNIX_EPOCH);
}

fn reports() -> ServedReports {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let reports = ServedReports::new(&[Dialect::WgPolicy, Dialect::OpenReports], served::Limits::default(), now);
    report(&reports, "paint", "a");
    report(&reports, "oil", "b");
    report(&reports, "", "node");
    reports
}

/// A server with three reports that all may read.
fn open() -> Router {
    router(reports(), Arc::new(Gate { refuses: |_| false }), || true, Limits::default(), &CancellationToken::new())
}

async fn send(router: &Router, method: &str, path: &str, accept: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).header(header::ACCEPT, accept);
    let response = router.clone().oneshot(request.body(Body::from("never read")).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    (status, String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

async fn get(router: &Router, path: &str) -> (u16, Value) {
    let (status, body) = send(router, "GET", path, "application/json").await;
    (status, Value::from_json(&body).unwrap_or_default())
}

#[tokio::test]
async fn discovery_offers_both_groups_to_readers() {
    let router = open();
    let (status, groups) = get(&router, "/apis").await;
    let names = groups.get("groups").and_then(Value::as_array).unwrap().iter();
    let names: Vec<&str> = names.map(|group| group.str_at(&["name"]).unwrap()).collect();
    assert_eq!((status, names), (200, vec!["wgpolicyk8s.io", "openreports.io"]));
    for (path, kind) in [
        ("/apis/wgpolicyk8s.io", "APIGroup"),
        (GROUP, "APIResourceList"),
        ("/apis/openreports.io/v1alpha1", "APIResourceList"),
    ] {
        let (status, found) = get(&router, path).await;
        assert_eq!((status, found.str_at(&["kind"])), (200, Some(kind)), "{path}");
    }
    assert_eq!(get(&router, "/apis/apps/v1").await.0, 404);
    let all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    assert!(send(&router, "GET", "/apis", all).await.1.contains("APIGroupDiscoveryList"));
}

#[tokio::test]
async fn reports_are_read_as_objects_tables_and_metadata() {
    let router = open();
    let one = format!("{GROUP}/namespaces/paint/policyreports/a");
    assert_eq!(get(&router, &one).await.1.str_at(&["scope", "name"]), Some("colours"));
    assert_eq!(get(&router, &format!("{GROUP}/namespaces/oil/policyreports/a")).await.0, 404);
    let all = format!("{GROUP}/policyreports");
    let table = send(&router, "GET", &all, "application/json;as=Table;v=v1;g=meta.k8s.io").await.1;
    let table = Value::from_json(&table).unwrap();
    let heads = table.get("columnDefinitions").and_then(Value::as_array).unwrap().iter();
    let heads: Vec<&str> = heads.map(|head| head.str_at(&["name"]).unwrap()).collect();
    assert_eq!(heads, ["Name", "Kind", "Name", "Pass", "Fail", "Warn", "Error", "Skip", "Age"]);
    let rows = table.get("rows").and_then(Value::as_array).unwrap();
    let cells: Vec<String> = rows.iter().map(|row| row.get("cells").unwrap().to_json()).collect();
    assert_eq!(cells.len(), 2);
    assert!(cells.iter().all(|cells| cells.contains(r#""ConfigMap","colours",0,1,0,0,0,"#)), "{cells:?}");
    let metadata = send(&router, "GET", &one, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").await.1;
    assert!(metadata.contains("PartialObjectMetadata") && !metadata.contains("results"), "{metadata}");
    let protobuf = send(&router, "GET", &one, "application/vnd.kubernetes.protobuf").await;
    assert_eq!(protobuf.0, 406);
}

#[tokio::test]
async fn lists_come_by_selectors_and_in_pages() {
    let router = open();
    let names = |list: &Value| -> Vec<String> {
        let items = list.get("items").and_then(Value::as_array).unwrap_or_default().iter();
        items.map(|item| item.str_at(&["metadata", "name"]).unwrap().to_owned()).collect()
    };
    for (path, want) in [
        ("policyreports", vec!["b", "a"]),
        ("namespaces/oil/policyreports", vec!["b"]),
        ("clusterpolicyreports", vec!["node"]),
        ("policyreports?fieldSelector=metadata.namespace%3Dpaint", vec!["a"]),
        ("policyreports?labelSelector=app.kubernetes.io%2Fmanaged-by%21%3Dkyverno", vec![]),
    ] {
        assert_eq!(names(&get(&router, &format!("{GROUP}/{path}")).await.1), want, "{path}");
    }
    let (_, first) = get(&router, &format!("{GROUP}/policyreports?limit=1")).await;
    let token = first.str_at(&["metadata", "continue"]).unwrap();
    assert_eq!(names(&get(&router, &format!("{GROUP}/policyreports?limit=1&continue={token}")).await.1), ["a"]);
    assert_eq!(get(&router, &format!("{GROUP}/policyreports?limit=many")).await.0, 400);
}

#[tokio::test]
async fn a_list_without_a_limit_comes_in_parts_that_are_one_document() {
    let reports = reports();
    for number in 0..1_200 {
        let uid = format!("uid-{number:04}");
        let scope = Scope {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: "many".into(),
            name: format!("c{number}").into(),
            uid: uid.into(),
        };
        reports.set(
            &scope,
            vec![Value::from([("policy", "p".into()), ("result", "pass".into())])],
            Timestamp::UNIX_EPOCH,
        );
    }
    let gate = Arc::new(Gate { refuses: |_| false });
    let router = router(reports, gate, || true, Limits::default(), &CancellationToken::new());
    let path = format!("{GROUP}/namespaces/many/policyreports");
    for (query, accept, key, want) in [
        ("", "application/json", "items", 1_200),
        ("?resourceVersion=0", "application/json", "items", 1_200),
        ("?limit=2000", "application/json", "items", 1_200),
        ("?limit=100", "application/json", "items", 100),
        ("", "application/json;as=Table;v=v1;g=meta.k8s.io", "rows", 1_200),
        ("", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "items", 1_200),
    ] {
        let (code, body) = send(&router, "GET", &format!("{path}{query}"), accept).await;
        let list = Value::from_json(&body).unwrap();
        assert_eq!((code, list.get(key).and_then(Value::as_array).map(<[Value]>::len)), (200, Some(want)), "{query}");
        let whole = list.at(&["metadata", "continue"]).is_none();
        assert_eq!(whole, want == 1_200, "{query}");
        assert!(list.str_at(&["metadata", "resourceVersion"]).is_some(), "{query}");
    }
}

#[tokio::test]
async fn writes_are_refused_with_a_status_and_without_reading_their_body() {
    let router = open();
    for (method, path, verb) in [
        ("POST", "namespaces/paint/policyreports", "create"),
        ("PUT", "namespaces/paint/policyreports/a", "update"),
        ("PATCH", "namespaces/paint/policyreports/a", "patch"),
        ("DELETE", "namespaces/paint/policyreports/a", "delete"),
    ] {
        let (code, body) = send(&router, method, &format!("{GROUP}/{path}"), "application/json").await;
        let status = Value::from_json(&body).unwrap();
        let message = status.str_at(&["message"]).unwrap_or_default();
        assert_eq!((code, status.str_at(&["reason"])), (405, Some("MethodNotAllowed")));
        assert!(message.contains(&format!("{verb} is not supported")), "{message}");
    }
    assert_eq!(send(&router, "POST", "/apis", "application/json").await.0, 405);
}

#[tokio::test]
async fn a_watch_sends_what_there_is_and_then_changes() {
    let reports = reports();
    let gate = Arc::new(Gate { refuses: |_| false });
    let stop = CancellationToken::new();
    let router = router(reports.clone(), gate, || true, Limits::default(), &stop);
    let asked = Request::builder().uri(format!("{GROUP}/namespaces/paint/policyreports?watch=true&timeoutSeconds=60"));
    let mut body = router.clone().oneshot(asked.body(Body::empty()).unwrap()).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(br#"{"object":"#) && first.ends_with(b"\"type\":\"ADDED\"}\n"), "{first:?}");
    report(&reports, "oil", "c");
    report(&reports, "paint", "d");
    let next = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let next = Value::from_json(std::str::from_utf8(&next).unwrap()).unwrap();
    assert_eq!(next.str_at(&["object", "metadata", "name"]), Some("d"));
    stop.cancel();
    while body.frame().await.is_some() {}
    let (code, _) = get(&router, &format!("{GROUP}/policyreports?watch=true&resourceVersion=1")).await;
    assert_eq!(code, 410);
}

#[tokio::test]
async fn a_watch_beyond_the_limit_is_refused() {
    let limits = Limits { watches: 1, ..Limits::default() };
    let stop = CancellationToken::new();
    let router = router(reports(), Arc::new(Gate { refuses: |_| false }), || true, limits, &stop);
    let asked = || Request::builder().uri(format!("{GROUP}/policyreports?watch=true")).body(Body::empty()).unwrap();
    let kept = router.clone().oneshot(asked()).await.unwrap();
    assert_eq!(kept.status(), 200);
    assert_eq!(router.clone().oneshot(asked()).await.unwrap().status(), 429);
    stop.cancel();
}

#[tokio::test]
async fn each_request_but_probes_is_checked_as_what_it_is() {
    let refused = |attributes: fn(&Attributes) -> bool| {
        let gate = Arc::new(Gate { refuses: attributes });
        router(reports(), gate, || true, Limits::default(), &CancellationToken::new())
    };
    let nothing = refused(|_| true);
    for path in [GROUP, "/apis", "/openapi/v2", "/openapi/v3", "/nothing", &format!("{GROUP}/policyreports")] {
        assert_eq!(get(&nothing, path).await.0, 403, "{path}");
    }
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(get(&nothing, path).await.0, 200, "{path}");
    }
    let no_watches = refused(|attributes| matches!(attributes, Attributes::Resource { verb: "watch", .. }));
    let paint = format!("{GROUP}/namespaces/paint/policyreports");
    assert_eq!(get(&no_watches, &paint).await.0, 200);
    for query in ["watch=true", "watch=1", "watch=", "x=y&watch=true", "%77atch=true"] {
        assert_eq!(get(&no_watches, &format!("{paint}?{query}")).await.0, 403, "{query}");
    }
    let only_paint = refused(|a| !matches!(a, Attributes::Resource { namespace, .. } if namespace == "paint"));
    assert_eq!(get(&only_paint, &paint).await.0, 200);
    assert_eq!(get(&only_paint, &format!("{GROUP}/policyreports")).await.0, 403);
}

#[tokio::test]
async fn reports_that_are_not_complete_are_not_served() {
    let gate = Arc::new(Gate { refuses: |_| false });
    let router = router(reports(), gate, || false, Limits::default(), &CancellationToken::new());
    assert_eq!(get(&router, "/readyz").await.0, 503);
    assert_eq!(get(&router, &format!("{GROUP}/policyreports")).await.0, 503);
    assert_eq!(get(&router, GROUP).await.0, 200);
}

#[tokio::test]
async fn openapi_names_the_paths_and_the_kinds() {
    let router = open();
    let (_, index) = get(&router, "/openapi/v3").await;
    let places: Vec<_> = index.get("paths").and_then(Value::as_object).unwrap().iter().map(|(key, _)| key).collect();
    assert_eq!(places, ["apis/openreports.io/v1alpha1", "apis/wgpolicyk8s.io/v1alpha2"]);
    let (_, third) = get(&router, "/openapi/v3/apis/wgpolicyk8s.io/v1alpha2").await;
    assert!(third.at(&["components", "schemas", "io.wgpolicyk8s.v1alpha2.PolicyReport"]).is_some());
    let (_, second) = get(&router, "/openapi/v2").await;
    let path = format!("{GROUP}/namespaces/{{namespace}}/policyreports/{{name}}");
    assert_eq!(second.str_at(&["paths", &path, "get", "x-kubernetes-action"]), Some("get"));
    assert_eq!(get(&router, "/openapi/v3/apis/apps/v1").await.0, 404);
}

#[test]
fn the_columns_are_those_of_the_definitions() {
    for file in [
        include_str!("../../../../charts/ephor/files/crds/wgpolicyk8s.io_policyreports.yaml"),
        include_str!("../../../../charts/ephor/files/crds/openreports.io_clusterreports.yaml"),
    ] {
        let lines: Vec<&str> = file.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let start = file.contains("{{").then(|| lines.iter().position(|line| line.contains("apiVersion:")).unwrap());
        let text = lines.get(start.unwrap_or(0)..).unwrap().join("\n");
        let definition = ephor_expr::yaml::parse_value(&text).unwrap();
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap();
        let own = versions.first().unwrap().get("additionalPrinterColumns").and_then(Value::as_array).unwrap();
        assert_eq!(own, declared());
    }
}
