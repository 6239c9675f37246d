use std::time::Duration;

use ephor_cluster::query::Filter;
use ephor_cluster::{ErrorKind, PatchKind, WatchEvent, object};

use super::*;

const POLICY_REPORTS: &str = "/apis/wgpolicyk8s.io/v1alpha2/policyreports";
const UID: &str = "1eb95854-0000-4000-8000-000000000001";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn served(limits: Limits) -> ServedReports {
    ServedReports::new(&[Dialect::WgPolicy, Dialect::OpenReports], limits, at(0))
}

fn scope(namespace: &str, uid: &str) -> Scope {
    Scope {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: namespace.into(),
        name: "colours".into(),
        uid: uid.into(),
    }
}

fn results(result: &'static str) -> Vec<Value> {
    vec![Value::from([("policy", "p".into()), ("result", result.into())])]
}

fn set(reports: &ServedReports, namespace: &str, uid: &str, result: &'static str) {
    assert!(reports.set(&scope(namespace, uid), results(result), at(1)));
}

fn get(reports: &ServedReports, path: &str) -> Result<Value, ClusterError> {
    reports.raw(&RawRequest::get(path))
}

/// The names in a list, its version and its continue token.
fn page(reports: &ServedReports, path: &str) -> (Vec<String>, String, Option<String>) {
    let list = get(reports, path).unwrap();
    let names = list.get("items").and_then(Value::as_array).unwrap().iter().map(|o| object::name(o).to_owned());
    let text = |key| list.str_at(&["metadata", key]).map(str::to_owned);
    (names.collect(), text("resourceVersion").unwrap(), text("continue").filter(|token| !token.is_empty()))
}

fn names(reports: &ServedReports, path: &str) -> Vec<String> {
    page(reports, path).0
}

fn watch(reports: &ServedReports, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
    reports.watch(&reports.resolve("wgpolicyk8s.io/v1alpha2", "PolicyReport").unwrap(), query)
}

fn from(version: &str) -> WatchQuery {
    WatchQuery { resource_version: version.into(), ..WatchQuery::default() }
}

fn next(watch: &mut Box<dyn Watch>) -> Option<WatchEvent> {
    watch.next(Duration::ZERO).unwrap()
}

fn told(event: Option<&WatchEvent>) -> (&'static str, String) {
    let sort = match event {
        Some(WatchEvent::Added(_)) => "ADDED",
        Some(WatchEvent::Modified(_)) => "MODIFIED",
        Some(WatchEvent::Deleted(_)) => "DELETED",
        Some(WatchEvent::Bookmark(_)) => "BOOKMARK",
        None => "",
    };
    let name = event.and_then(WatchEvent::object).map(object::name);
    (sort, name.unwrap_or_default().to_owned())
}

#[test]
fn a_report_is_served_in_both_dialects_with_the_metadata_of_a_stored_object() {
    let reports = served(Limits::default());
    set(&reports, "paint", UID, "fail");
    let one = get(&reports, &format!("/apis/wgpolicyk8s.io/v1alpha2/namespaces/paint/policyreports/{UID}")).unwrap();
    let text = |path: &[&str]| one.str_at(path).unwrap_or_default().to_owned();
    assert_eq!(text(&["kind"]), "PolicyReport");
    assert_eq!(text(&["scope", "name"]), "colours");
    assert_eq!(text(&["metadata", "uid"]), "1eb95854-0000-8000-8000-000000000001");
    assert_eq!(text(&["metadata", "creationTimestamp"]), "2027-01-15T08:00:01Z");
    assert_eq!(one.at(&["summary", "fail"]), Some(&Value::from(1_i64)));
    let other = get(&reports, &format!("/apis/openreports.io/v1alpha1/namespaces/paint/reports/{UID}")).unwrap();
    assert_eq!(other.get("results"), one.get("results"));
    assert_eq!(other.str_at(&["kind"]), Some("Report"));
    let missing = get(&reports, "/apis/openreports.io/v1alpha1/namespaces/oil/reports/x").unwrap_err();
    assert_eq!(missing.code(), 404);
}

#[test]
fn the_same_results_are_no_change_and_no_results_are_no_report() {
    let reports = served(Limits::default());
    set(&reports, "paint", "a", "fail");
    let (_, before, _) = page(&reports, POLICY_REPORTS);
    assert!(!reports.set(&scope("paint", "a"), results("fail"), at(9)));
    assert_eq!(page(&reports, POLICY_REPORTS).1, before);
    assert!(reports.set(&scope("paint", "a"), Vec::new(), at(9)));
    assert!(!reports.set(&scope("paint", "a"), Vec::new(), at(9)));
    assert_eq!(names(&reports, POLICY_REPORTS), [""; 0]);
}

#[test]
fn lists_hold_the_reports_of_their_scope_that_selectors_select() {
    let reports = served(Limits::default());
    for (namespace, uid) in [("", "node"), ("oil", "b"), ("paint", "a"), ("paint", "c")] {
        set(&reports, namespace, uid, "pass");
    }
    let group = "/apis/wgpolicyk8s.io/v1alpha2";
    for (path, want) in [
        ("/clusterpolicyreports", vec!["node"]),
        ("/policyreports", vec!["b", "a", "c"]),
        ("/namespaces/paint/policyreports", vec!["a", "c"]),
        ("/namespaces/pain/policyreports", vec![]),
        ("/policyreports?fieldSelector=metadata.name%3Dc", vec!["c"]),
        ("/policyreports?fieldSelector=metadata.namespace%3Doil", vec!["b"]),
        ("/policyreports?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dkyverno", vec!["b", "a", "c"]),
        ("/policyreports?labelSelector=app.kubernetes.io%2Fmanaged-by%21%3Dkyverno", vec![]),
    ] {
        assert_eq!(names(&reports, &format!("{group}{path}")), want, "{path}");
    }
    let unknown = get(&reports, &format!("{group}/policyreports?fieldSelector=scope.kind%3DPod")).unwrap_err();
    assert_eq!(unknown.code(), 400);
}

#[test]
fn the_pages_of_a_list_show_the_state_of_the_first() {
    let reports = served(Limits { history: 4, ..Limits::default() });
    for uid in ["a", "c", "e"] {
        set(&reports, "paint", uid, "pass");
    }
    let (first, version, token) = page(&reports, &format!("{POLICY_REPORTS}?limit=1"));
    assert_eq!(first, ["a"]);
    set(&reports, "paint", "b", "pass");
    assert!(reports.set(&scope("paint", "c"), Vec::new(), at(2)));
    set(&reports, "paint", "c", "fail");
    let rest = format!("{POLICY_REPORTS}?continue={}", token.unwrap());
    assert_eq!(page(&reports, &rest), (vec!["c".to_owned(), "e".to_owned()], version, None));
    for uid in ["f", "g"] {
        set(&reports, "paint", uid, "pass");
    }
    assert_eq!(get(&reports, &rest).unwrap_err().kind(), ErrorKind::Gone);
    let broken = get(&reports, &format!("{POLICY_REPORTS}?continue=x")).unwrap_err();
    assert_eq!(broken.code(), 400);
}

#[test]
fn a_continue_token_leads_to_no_other_namespace() {
    let reports = served(Limits::default());
    for (namespace, uid) in [("", "node"), ("oil", "a"), ("oil", "b"), ("paint", "a")] {
        set(&reports, namespace, uid, "pass");
    }
    let (_, version, _) = page(&reports, POLICY_REPORTS);
    for (namespace, last) in [("paint", "oil/"), ("oil", "paint/"), ("water", "/")] {
        let path = format!("/apis/wgpolicyk8s.io/v1alpha2/namespaces/{namespace}/policyreports");
        let found = get(&reports, &format!("{path}?continue={version}/{last}")).unwrap();
        let foreign = |report: &&Value| object::namespace(report) != namespace;
        assert_eq!(found.get("items").and_then(Value::as_array).unwrap().iter().find(foreign), None);
    }
}

#[test]
fn a_watch_tells_what_happens_after_its_version() {
    let reports = served(Limits::default());
    set(&reports, "paint", "a", "pass");
    let (_, version, _) = page(&reports, POLICY_REPORTS);
    let mut all = watch(&reports, &from("")).unwrap();
    assert_eq!(told(next(&mut all).as_ref()), ("ADDED", "a".to_owned()));
    let mut later = watch(&reports, &from(&version)).unwrap();
    assert_eq!(next(&mut later), None);
    set(&reports, "", "node", "pass");
    set(&reports, "paint", "a", "fail");
    set(&reports, "oil", "b", "fail");
    assert!(reports.set(&scope("paint", "a"), Vec::new(), at(2)));
    let want = [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a"), ("", "")].map(|(s, n)| (s, n.to_owned()));
    for watch in [&mut all, &mut later] {
        assert_eq!([(); 4].map(|()| told(next(watch).as_ref())), want);
    }
    let filter = Filter { namespace: Some("oil".into()), ..Filter::default() };
    let mut narrow = watch(&reports, &WatchQuery { filter, bookmarks: true, ..from(&version) }).unwrap();
    assert_eq!([(); 3].map(|()| told(next(&mut narrow).as_ref()).0), ["ADDED", "BOOKMARK", ""]);
}

#[test]
fn the_last_state_of_a_removed_report_has_the_version_of_the_removal() {
    let reports = served(Limits::default());
    set(&reports, "paint", "a", "pass");
    let mut watch = watch(&reports, &from(&page(&reports, POLICY_REPORTS).1)).unwrap();
    reports.set(&scope("paint", "a"), Vec::new(), at(2));
    let Some(WatchEvent::Deleted(last)) = next(&mut watch) else { panic!("no removal") };
    assert_eq!(object::text(&last, "resourceVersion"), page(&reports, POLICY_REPORTS).1);
}

#[test]
fn versions_that_are_forgotten_or_of_another_process_are_gone() {
    let reports = served(Limits { history: 2, ..Limits::default() });
    let (_, start, _) = page(&reports, POLICY_REPORTS);
    let mut slow = watch(&reports, &from(&start)).unwrap();
    for uid in ["a", "b", "c"] {
        set(&reports, "paint", uid, "pass");
    }
    assert_eq!(slow.next(Duration::ZERO).unwrap_err().kind(), ErrorKind::Gone);
    let later = ServedReports::new(&[Dialect::WgPolicy], Limits::default(), at(5));
    let foreign = page(&later, POLICY_REPORTS).1;
    for version in [start.as_str(), "1", &foreign] {
        assert_eq!(watch(&reports, &from(version)).err().unwrap().kind(), ErrorKind::Gone, "{version}");
    }
    assert_eq!(watch(&reports, &from("x")).err().unwrap().code(), 400);
}

#[test]
fn watches_beyond_the_limit_are_refused_until_one_ends() {
    let reports = served(Limits { watches: 1, ..Limits::default() });
    let only = watch(&reports, &from("")).unwrap();
    assert_eq!(watch(&reports, &from("")).err().unwrap().code(), 429);
    drop(only);
    assert!(watch(&reports, &from("")).is_ok());
}

#[test]
fn writes_are_refused_and_discovery_does_not_offer_them() {
    let reports = served(Limits::default());
    set(&reports, "paint", "a", "pass");
    let one = "/apis/wgpolicyk8s.io/v1alpha2/namespaces/paint/policyreports";
    for (method, path, verb) in [
        (Method::Post, one.to_owned(), "create"),
        (Method::Put, format!("{one}/a"), "update"),
        (Method::Patch(PatchKind::Apply), format!("{one}/a?force=true"), "patch"),
        (Method::Delete, format!("{one}/a"), "delete"),
        (Method::Delete, one.to_owned(), "delete"),
    ] {
        let error = reports.raw(&RawRequest { method, path, body: None, dry_run: false }).unwrap_err();
        let message = format!("{verb} is not supported on resources of kind \"policyreports.wgpolicyk8s.io\"");
        assert_eq!((error.code(), error.to_string().contains(&message)), (405, true), "{error}");
    }
    let offered = get(&reports, "/apis/wgpolicyk8s.io/v1alpha2").unwrap();
    let resources = offered.get("resources").and_then(Value::as_array).unwrap();
    let shown: Vec<_> =
        resources.iter().map(|r| (r.str_at(&["name"]).unwrap(), r.get("verbs").unwrap().to_json())).collect();
    let verbs = || r#"["get","list","watch"]"#.to_owned();
    assert_eq!(shown, [("clusterpolicyreports", verbs()), ("policyreports", verbs())]);
    assert_eq!(get(&reports, "/api/v1/pods").unwrap_err().code(), 404);
}
