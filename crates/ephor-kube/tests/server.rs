//! How the client talks to a server: what it sends, what it makes of the answers, what it tries again.

#![allow(unreachable_pub, reason = "shared support")]

mod support;

use std::time::Duration;

use ephor_cluster::raw::RawRequest;
use ephor_cluster::write::Propagation;
use ephor_cluster::{
    Cluster, DeleteOptions, Deletion, Discovery, ErrorKind, FieldSelector, LabelSelector, ListQuery, Patch, PatchKind,
    Resource, WatchEvent, WatchQuery, WriteOptions,
};
use ephor_expr::Value;
use ephor_kube::{Access, ConnectOptions, Impersonation, KubeCluster, Limits, ManagedFields};
use support::{Received, Reply, Server, json, kubeconfig, ok, status};

const TIMEOUT: Duration = Duration::from_secs(10);

fn config_maps() -> Resource {
    Discovery::kubernetes().find("v1", "ConfigMap").unwrap().clone()
}

fn named(name: &str, version: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"n","resourceVersion":"{version}"}}}}"#)
}

#[test]
fn objects_and_queries_are_sent_as_the_api_wants_them() {
    let server = Server::start(|_, _| ok(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#));
    let cluster = server.cluster();
    let config_maps = config_maps();
    let object = json(r#"{"metadata":{"name":"a","namespace":"n"},"data":{"k":"<v>"}}"#);
    cluster.get(&config_maps, Some("n"), "a").unwrap();
    cluster.create(&config_maps, object.clone(), &WriteOptions::default()).unwrap();
    cluster.update(&config_maps, object.clone(), &WriteOptions::dry_run()).unwrap();
    cluster.update_status(&config_maps, object.clone(), &WriteOptions::default()).unwrap();
    let forced = WriteOptions { force: true, field_manager: "me".into(), ..WriteOptions::default() };
    for (patch, options) in [
        (Patch::json(json("[]")), WriteOptions::default()),
        (Patch::merge(json("{}")), WriteOptions::default()),
        (Patch::strategic(json("{}")), WriteOptions::default()),
        (Patch::apply(object), forced),
    ] {
        cluster.patch(&config_maps, Some("n"), "a", &patch, &options).unwrap();
    }
    let query = ListQuery::in_namespace("n")
        .labels(LabelSelector::parse("a=b").unwrap())
        .fields(FieldSelector::name("x"))
        .limit(3);
    cluster.list(&config_maps, &query).unwrap();
    cluster.raw(&RawRequest { dry_run: true, ..RawRequest::post("/api/v1/x?y=z", json("{}")) }).unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/namespaces/n/configmaps/a",
            "POST /api/v1/namespaces/n/configmaps?fieldManager=ephor",
            "PUT /api/v1/namespaces/n/configmaps/a?fieldManager=ephor&dryRun=All",
            "PUT /api/v1/namespaces/n/configmaps/a/status?fieldManager=ephor",
            "PATCH /api/v1/namespaces/n/configmaps/a?fieldManager=ephor",
            "PATCH /api/v1/namespaces/n/configmaps/a?fieldManager=ephor",
            "PATCH /api/v1/namespaces/n/configmaps/a?fieldManager=ephor",
            "PATCH /api/v1/namespaces/n/configmaps/a?fieldManager=me&force=true",
            "GET /api/v1/namespaces/n/configmaps?labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&limit=3",
            "POST /api/v1/x?y=z&dryRun=All",
        ]
    );
    let received = server.received();
    let created = json(&received[1].body);
    assert_eq!((created.str_at(&["apiVersion"]), created.str_at(&["kind"])), (Some("v1"), Some("ConfigMap")));
    assert_eq!(created.str_at(&["data", "k"]), Some("<v>"));
    let types: Vec<_> = received[4..8].iter().map(|r| r.header("content-type").unwrap()).collect();
    let want = [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic, PatchKind::Apply].map(PatchKind::content_type);
    assert_eq!(types, want);
    assert_eq!(received[0].header("authorization"), Some("Bearer secret"));
    assert!(received[0].header("user-agent").unwrap().starts_with("ephor/"));
}

#[test]
fn a_deletion_says_how_far_it_got() {
    let server = Server::start(|received, _| {
        ok(match received.line.rsplit('/').next().unwrap() {
            "gone" => r#"{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"gone","uid":"u"}}"#,
            "held" => r#"{"kind":"ConfigMap","metadata":{"name":"held","deletionTimestamp":"t","finalizers":["f"]}}"#,
            "dying" => r#"{"kind":"Pod","metadata":{"deletionTimestamp":"t","deletionGracePeriodSeconds":30}}"#,
            _ => r#"{"kind":"ConfigMap","metadata":{"name":"shown","deletionTimestamp":"t"}}"#,
        })
    });
    let cluster = server.cluster();
    let options = DeleteOptions {
        uid: "u".into(),
        resource_version: "7".into(),
        propagation: Some(Propagation::Orphan),
        dry_run: true,
    };
    for (name, done) in [("gone", true), ("held", false), ("dying", false), ("shown", true)] {
        let deletion = cluster.delete(&config_maps(), Some("n"), name, &options).unwrap();
        assert_eq!(deletion.is_done(), done, "{name}");
        if let (Deletion::Done(last), "gone") = (&deletion, name) {
            assert_eq!(
                last.to_json(),
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"gone","namespace":"n","uid":"u"}}"#
            );
        }
    }
    let want = r#"{"apiVersion":"v1","dryRun":["All"],"kind":"DeleteOptions","preconditions":{"resourceVersion":"7","uid":"u"},"propagationPolicy":"Orphan"}"#;
    assert_eq!(server.received()[0].body, want);
}

#[test]
fn the_words_of_the_server_arrive() {
    let server = Server::start(|received, _| match received.line.rsplit('/').next().unwrap() {
        "status" => Reply::Document(403, status(403, "Forbidden", "no way")),
        "html" => Reply::Document(401, "<html>".to_owned()),
        "plain" => Reply::Document(404, "404 page not found".to_owned()),
        "healthz" => Reply::Text("not json".to_owned()),
        _ => ok("not json"),
    });
    let cluster = server.cluster();
    let get = |name| {
        let error = cluster.get(&config_maps(), Some("n"), name).unwrap_err();
        (error.kind(), error.code(), error.to_string())
    };
    assert_eq!(get("status"), (ErrorKind::Forbidden, 403, "no way".to_owned()));
    assert_eq!(get("html").0, ErrorKind::Forbidden);
    assert_eq!(get("plain"), (ErrorKind::NotFound, 404, "the server could not find the requested resource".to_owned()));
    assert_eq!(get("other").0, ErrorKind::Transient);
    assert_eq!(cluster.raw(&RawRequest::get("/healthz")).unwrap(), Value::from("not json"));
    let error = cluster.raw(&RawRequest::get("/broken")).unwrap_err().to_string();
    assert!(error.starts_with("the server's answer is no JSON: "), "{error}");
}

/// How often a request arrives when the server always answers like that.
fn attempts(reply: impl Fn() -> Reply + Send + Sync + 'static, call: impl Fn(&KubeCluster)) -> usize {
    let server = Server::start(move |_, _| reply());
    let options = ConnectOptions { attempts: 3, attempts_to_write: 3, ..server.options() };
    call(&KubeCluster::connect(&options).unwrap());
    server.lines().len()
}

#[test]
fn only_what_does_no_harm_is_tried_again() {
    let read = |cluster: &KubeCluster| {
        assert_eq!(cluster.get(&config_maps(), Some("n"), "a").unwrap_err().kind(), ErrorKind::Transient);
    };
    let write = |cluster: &KubeCluster| {
        let object = json(r#"{"metadata":{"name":"a","namespace":"n"}}"#);
        let error = cluster.create(&config_maps(), object, &WriteOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transient);
    };
    let code = |code: u16| move || Reply::Document(code, status(code, "X", "x"));
    let later = |code: u16| move || Reply::With(code, "retry-after: 0", status(code, "X", "x"));
    for (asked, reads, writes) in [(429, 3, 3), (500, 3, 1), (503, 3, 1), (504, 3, 1)] {
        assert_eq!((attempts(code(asked), read), attempts(code(asked), write)), (reads, writes), "{asked}");
    }
    assert_eq!((attempts(later(503), read), attempts(later(503), write)), (3, 3));
    assert_eq!((attempts(|| Reply::HangUp, read) >= 3, attempts(|| Reply::HangUp, write)), (true, 1));
    let refused = |cluster: &KubeCluster| {
        assert_eq!(cluster.get(&config_maps(), Some("n"), "a").unwrap_err().kind(), ErrorKind::Conflict);
    };
    assert_eq!(attempts(code(409), refused), 1);
}

#[test]
fn a_writer_that_asks_for_one_attempt_writes_once() {
    let server = Server::start(|_, _| Reply::With(429, "retry-after: 0", status(429, "TooManyRequests", "later")));
    let cluster = KubeCluster::connect(&ConnectOptions { attempts_to_write: 1, ..server.options() }).unwrap();
    let object = json(r#"{"metadata":{"name":"a","namespace":"n"}}"#);
    assert!(cluster.create(&config_maps(), object, &WriteOptions::default()).is_err());
    assert!(cluster.delete(&config_maps(), Some("n"), "a", &DeleteOptions::default()).is_err());
    assert_eq!(server.lines().len(), 2);
    assert!(cluster.get(&config_maps(), Some("n"), "a").is_err());
    assert!(server.lines().len() > 3, "reads are tried again");
}

#[test]
fn a_server_that_comes_back_is_not_missed() {
    let server = Server::start(|_, before| match before {
        0 => Reply::HangUp,
        1 => Reply::With(503, "retry-after: 0", String::new()),
        _ => ok(r#"{"kind":"ConfigMap","metadata":{"name":"a"}}"#),
    });
    assert!(server.cluster().get(&config_maps(), Some("n"), "a").is_ok());
}

#[test]
fn nobody_there_is_a_passing_failure() {
    let server = Server::start(|_, _| ok("{}"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    // Port 1 is nobody's.
    std::fs::write(&path, kubeconfig("127.0.0.1:1")).unwrap();
    let options =
        ConnectOptions { access: Access::Kubeconfig { path, context: None }, attempts: 2, ..server.options() };
    let error = KubeCluster::connect(&options).unwrap().get(&config_maps(), Some("n"), "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient);
    let text = error.to_string();
    assert!(text.starts_with("cannot connect to the API server: ") && text.contains("refused"), "{text}");
}

#[test]
fn answers_that_never_end_are_given_up() {
    let server = Server::start(|_, _| Reply::Stream { chunks: vec!["{".to_owned()], open: true });
    let short = Limits { timeout: Duration::from_millis(50), ..Limits::default() };
    let options = ConnectOptions { limits: short, ..server.options() };
    let error = KubeCluster::connect(&options).unwrap().get(&config_maps(), Some("n"), "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient);
    let server = Server::start(|_, _| ok(&format!("\"{}\"", "x".repeat(2000))));
    let small = Limits { answer: 1000, ..Limits::default() };
    let options = ConnectOptions { limits: small, ..server.options() };
    let error = KubeCluster::connect(&options).unwrap().get(&config_maps(), Some("n"), "a").unwrap_err();
    assert_eq!(error.to_string(), "the answer is larger than 1000 bytes");
    assert_eq!(server.lines().len(), 1, "it would be as large again");
    let path = RawRequest::get("/x");
    assert!(KubeCluster::connect(&options).unwrap().raw(&path).is_ok(), "calls by path have limits of their own");
    let options = ConnectOptions { limits_of_paths: small, ..server.options() };
    assert!(KubeCluster::connect(&options).unwrap().raw(&path).is_err());
}

#[test]
fn contexts_and_impersonation_choose_who_calls() {
    let server = Server::start(|_, _| ok("{}"));
    let Access::Kubeconfig { path, .. } = server.options().access else { unreachable!() };
    let there = Access::Kubeconfig { path: path.clone(), context: Some("there".to_owned()) };
    let somebody = Impersonation { user: "jane".to_owned(), groups: vec!["g".to_owned(), "h".to_owned()] };
    let options = ConnectOptions { access: there, impersonate: Some(somebody), ..server.options() };
    let cluster = KubeCluster::connect(&options).unwrap();
    assert_eq!((cluster.default_namespace(), server.cluster().default_namespace()), ("away", "home"));
    assert!(cluster.server().contains(&server.address));
    cluster.raw(&RawRequest::get("/x")).unwrap();
    let received = &server.received()[0];
    let groups: Vec<_> = received.headers.iter().filter(|(k, _)| k == "impersonate-group").map(|(_, v)| v).collect();
    assert_eq!((received.header("impersonate-user"), groups.len()), (Some("jane"), 2));
    let nowhere = Access::Kubeconfig { path, context: Some("nowhere".to_owned()) };
    assert!(KubeCluster::connect(&ConnectOptions { access: nowhere, ..server.options() }).is_err());
}

#[test]
fn a_whole_list_is_read_in_pages_and_begun_anew_when_they_are_gone() {
    let server = Server::start(|received, before| {
        let page = |names: &[&str], token: &str| {
            let items: Vec<_> = names.iter().map(|name| named(name, "5")).collect();
            ok(&format!(
                r#"{{"kind":"ConfigMapList","metadata":{{"resourceVersion":"9","continue":"{token}"}},"items":[{}]}}"#,
                items.join(",")
            ))
        };
        match (before, received.line.contains("continue=")) {
            (0, _) => page(&["a"], "t1"),
            (1, true) => page(&["b"], "t 2"),
            (2, true) => Reply::Document(410, status(410, "Expired", "too late")),
            _ => page(&["a", "b", "c"], ""),
        }
    });
    let list = server.cluster().list(&config_maps(), &ListQuery::all()).unwrap();
    assert_eq!((list.items.len(), list.resource_version.as_str(), list.continue_token), (3, "9", None));
    assert_eq!(list.items[0].str_at(&["kind"]), Some("ConfigMap"));
    let lines = server.lines();
    assert!(lines[2].ends_with("limit=500&continue=t%202") && !lines[3].contains("limit"), "{lines:?}");
}

#[test]
fn metadata_comes_with_the_kind_it_belongs_to_and_without_managed_fields() {
    let partial = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","managedFields":[{}]}}"#;
    let server = Server::start(move |_, _| ok(&format!(r#"{{"kind":"L","metadata":{{}},"items":[{partial}]}}"#)));
    let list = server.cluster().list(&config_maps(), &ListQuery::all().metadata_only()).unwrap();
    assert_eq!(list.items[0].to_json(), r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#);
    assert!(server.received()[0].header("accept").unwrap().contains("as=PartialObjectMetadataList"));
    let whole = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{}}"#;
    let ignorant = Server::start(move |_, _| ok(&format!(r#"{{"kind":"L","metadata":{{}},"items":[{whole}]}}"#)));
    let trimmed = ignorant.cluster().list(&config_maps(), &ListQuery::all().metadata_only()).unwrap();
    assert_eq!(trimmed.items, list.items);
    let kept = ConnectOptions { managed_fields: ManagedFields::Kept, ..server.options() };
    let list = KubeCluster::connect(&kept).unwrap().list(&config_maps(), &ListQuery::all()).unwrap();
    assert!(list.items[0].at(&["metadata", "managedFields"]).is_some());
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn watch_lines(server: &Server) -> Vec<String> {
    server.lines().into_iter().filter(|line| line.contains("watch=true")).collect()
}

#[test]
fn a_watch_goes_on_where_the_stream_before_ended() {
    let bookmark = |version| event("BOOKMARK", &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#));
    let server = Server::start(move |received, _| {
        let stream = |chunks, open| Reply::Stream { chunks, open };
        let from = |version: &str| received.line.contains(&format!("resourceVersion={version}&"));
        if !received.line.contains("watch=true") {
            return ok(&format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#, named("a", "5")));
        }
        match () {
            () if from("10") => stream(vec![event("MODIFIED", &named("a", "11")), bookmark("12")], false),
            () if from("12") => stream(vec![event("DELETED", &named("a", "13"))], true),
            () => Reply::Document(410, status(410, "Expired", "too old")),
        }
    });
    let query = WatchQuery { bookmarks: true, ..WatchQuery::default() };
    let mut watch = server.cluster().watch(&config_maps(), &query).unwrap();
    let mut next = || watch.next(TIMEOUT).unwrap().unwrap();
    assert!(matches!(next(), WatchEvent::Added(object) if object.str_at(&["kind"]) == Some("ConfigMap")));
    assert!(matches!(next(), WatchEvent::Modified(_)));
    assert_eq!(next(), WatchEvent::Bookmark("12".into()));
    assert!(matches!(next(), WatchEvent::Deleted(_)));
    assert_eq!(watch.next(Duration::ZERO).unwrap(), None);
    assert_eq!(watch_lines(&server).len(), 2);
}

#[test]
fn a_watch_that_missed_something_is_over() {
    let server = Server::start(|received, _| {
        if received.line.contains("resourceVersion=1&") {
            return Reply::Document(410, status(410, "Expired", "too old"));
        }
        let chunks = vec![event("ADDED", &named("a", "6")), event("ERROR", &status(410, "Expired", "too old"))];
        Reply::Stream { chunks, open: true }
    });
    let cluster = server.cluster();
    let from = |version: &str| WatchQuery { resource_version: version.into(), ..WatchQuery::default() };
    assert_eq!(cluster.watch(&config_maps(), &from("1")).err().unwrap().kind(), ErrorKind::Gone);
    let mut watch = cluster.watch(&config_maps(), &from("5")).unwrap();
    assert!(watch.next(TIMEOUT).unwrap().is_some());
    assert_eq!(watch.next(TIMEOUT).unwrap_err().kind(), ErrorKind::Gone);
    assert!(watch.next(TIMEOUT).is_err(), "and stays over");
}

#[test]
fn an_event_in_pieces_is_one_event() {
    let server = Server::start(|_, _| {
        let text = event("ADDED", &named("ä", "6"));
        // In the middle of a letter of two bytes is where a text cannot be cut, so this cuts before it.
        let (head, tail) = text.split_at(text.find('ä').unwrap());
        let chunks = vec![head.to_owned(), format!("{tail}\n{text}{head}"), tail.to_owned()];
        Reply::Stream { chunks, open: true }
    });
    let query = WatchQuery { resource_version: "5".into(), ..WatchQuery::default() };
    let mut watch = server.cluster().watch(&config_maps(), &query).unwrap();
    for _ in 0..3 {
        let event = watch.next(TIMEOUT).unwrap().unwrap();
        assert_eq!(event.object().unwrap().str_at(&["metadata", "name"]), Some("ä"));
    }
}

/// An object that nests that many levels.
fn nested(name: &str, levels: usize) -> String {
    let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"7"}},"spec":{open}{close}}}"#)
}

#[test]
fn objects_as_deep_as_an_api_server_reads_arrive() {
    for levels in [5_000, 10_000] {
        let server = Server::start(move |received, _| match received.line.as_str() {
            line if line.contains("watch=true") => {
                let chunks = vec![event("MODIFIED", &nested("deep", levels)), event("ADDED", &named("flat", "8"))];
                Reply::Stream { chunks, open: true }
            }
            line if line.contains("/deep") => ok(&nested("deep", levels)),
            _ => ok(&format!(
                r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{},{}]}}"#,
                nested("deep", levels),
                named("flat", "8")
            )),
        });
        let cluster = server.cluster();
        let list = cluster.list(&config_maps(), &ListQuery::all()).unwrap();
        let names: Vec<_> = list.items.iter().filter_map(|item| item.str_at(&["metadata", "name"])).collect();
        assert_eq!(names, ["deep", "flat"]);
        assert!(list.items[0].is_deeper_than(levels - 1));
        assert_eq!(cluster.get(&config_maps(), Some("n"), "deep").unwrap(), list.items[0]);
        assert_eq!(cluster.raw(&RawRequest::get("/deep")).unwrap().get("spec"), list.items[0].get("spec"));

        let from = WatchQuery { resource_version: "5".into(), ..WatchQuery::default() };
        let mut watch = cluster.watch(&config_maps(), &from).unwrap();
        assert_eq!(watch.next(TIMEOUT).unwrap().unwrap(), WatchEvent::Modified(list.items[0].clone()));
        assert_eq!(watch.next(TIMEOUT).unwrap().unwrap(), WatchEvent::Added(list.items[1].clone()));
    }
}

#[test]
fn an_event_that_cannot_be_read_is_passed_over_and_the_others_arrive() {
    let server = Server::start(|_, _| {
        let chunks = vec![
            event("ADDED", &named("first", "6")),
            event("MODIFIED", &nested("first", 10_002)),
            event("DELETED", "[broken"),
            event("DELETED", "null"),
            "no event\n".to_owned(),
            event("ADDED", &named("second", "8")),
        ];
        Reply::Stream { chunks, open: true }
    });
    let from = WatchQuery { resource_version: "5".into(), ..WatchQuery::default() };
    let mut watch = server.cluster().watch(&config_maps(), &from).unwrap();
    for name in ["first", "second"] {
        let event = watch.next(TIMEOUT).unwrap().unwrap();
        assert!(
            matches!(&event, WatchEvent::Added(object) if object.str_at(&["metadata", "name"]) == Some(name)),
            "{event:?}"
        );
    }
    assert_eq!(watch.next(Duration::ZERO).unwrap(), None);
}

fn discovery_document(received: &Received, boxes: bool) -> Reply {
    let resource = r#"{"resource":"boxes","responseKind":{"group":"g.io","kind":"Box","version":"v1"},"scope":"Namespaced","singularResource":"box","verbs":["get","list"]}"#;
    let path = received.line.trim_start_matches("GET ");
    match path {
        "/api" => ok(r#"{"kind":"APIGroupDiscoveryList","items":[]}"#),
        "/apis" => ok(&format!(
            r#"{{"kind":"APIGroupDiscoveryList","items":[{{"metadata":{{"name":"g.io"}},"versions":[{{"version":"v1","resources":[{}]}}]}}]}}"#,
            if boxes { resource } else { "" }
        )),
        "/apis/g.io/v1" => ok(r#"{"kind":"APIResourceList","groupVersion":"g.io/v1","resources":[
            {"name":"boxes","kind":"Box","namespaced":true,"verbs":["get","list"]},
            {"name":"boxes/status","kind":"Box","namespaced":true,"verbs":["get"]}]}"#),
        _ => Reply::Document(404, "404 page not found".to_owned()),
    }
}

#[test]
fn kinds_are_known_at_once_and_looked_up_when_not() {
    let server = Server::start(|received, _| discovery_document(received, true));
    let cluster = server.cluster();
    assert_eq!(cluster.resolve("g.io/v1", "Box").unwrap().plural, "boxes");
    assert_eq!(cluster.discovery().unwrap().iter().count(), 1);
    assert_eq!(server.lines(), ["GET /api", "GET /apis"]);
    assert!(server.received()[1].header("accept").unwrap().contains("APIGroupDiscoveryList"));
    let error = cluster.resolve("g.io/v2", "Box").unwrap_err();
    assert_eq!(error.to_string(), r#"no matches for kind "Box" in version "g.io/v2""#);

    let server = Server::start(|received, _| discovery_document(received, false));
    let cluster = server.cluster();
    let found = cluster.resolve("g.io/v1", "Box").unwrap();
    assert!(found.has_status());
    assert_eq!(cluster.resolve("g.io/v1", "Box").unwrap(), found);
    assert_eq!(server.lines(), ["GET /api", "GET /apis", "GET /apis/g.io/v1"]);
}

#[test]
fn calls_work_on_the_threads_of_a_runtime() {
    let server = Server::start(|_, _| ok("{}"));
    let cluster = server.cluster();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async move {
        cluster.raw(&RawRequest::get("/x")).unwrap();
        drop(cluster);
    });
}
