//! The sandbox from outside, without a client program.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use ephor_expr::Value;

use super::*;
use crate::live::Topic;

struct Running {
    port: u16,
    token: Str,
    live: Live,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn run(objects: &[&str]) -> Running {
    let stop = CancellationToken::new();
    let sandbox = Sandbox::new(0, None, &stop).unwrap();
    sandbox.enforce();
    let added = sandbox.add(objects.iter().map(|text| Value::from_json(text).unwrap()));
    assert!(added.refused.is_empty(), "{added:?}");
    sandbox.settle();
    let running = Running {
        port: sandbox.identity.port,
        token: sandbox.identity.token.clone(),
        live: sandbox.live.clone(),
        stop,
    };
    std::thread::spawn(move || sandbox.serve());
    running
}

impl Running {
    fn send(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut text = format!("{verb} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        let own = [("Host", format!("127.0.0.1:{}", self.port)), ("Authorization", format!("Bearer {}", self.token))];
        for (key, value) in &own {
            if !headers.iter().any(|(given, _)| given == key) {
                text.extend([*key, ": ", value.as_str(), "\r\n"]);
            }
        }
        for (key, value) in headers {
            text.extend([*key, ": ", *value, "\r\n"]);
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, head.to_owned(), body.to_owned())
    }

    fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let (code, _, body) = self.send("POST", path, &[("Content-Type", "application/json")], body);
        (code, Value::from_json(&body).unwrap())
    }
}

const NO_LATEST: &str = r#"{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"no-latest"},"spec":{"rules":[
    {"name":"tag","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"validate":{"failureAction":"Enforce","message":"no latest","pattern":{"spec":{"containers":[{"image":"!*:latest"}]}}}}]}}"#;

fn pod(image: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}}"#
    )
}

#[test]
fn what_is_not_enforced_is_refused_or_warned_of() {
    let sandbox = Sandbox::new(0, None, &CancellationToken::new()).unwrap();
    sandbox.enforce();
    let object = |api_version: &str, kind: &str, spec: &str| {
        Value::from_json(&format!(
            r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":"a"}},"spec":{spec}}}"#
        ))
        .unwrap()
    };
    let added = sandbox.add([
        object("policies.kyverno.io/v1", "GeneratingPolicy", r#"{"generate":[{"expression":"true"}]}"#),
        object("policies.kyverno.io/v1", "DeletingPolicy", r#"{"schedule":"@daily"}"#),
        object("policies.kyverno.io/v1", "ValidatingPolicy", r#"{"validations":[{"expression":"false"}]}"#),
        object(
            "kyverno.io/v2",
            "ClusterCleanupPolicy",
            r#"{"schedule":"* * * * *","match":{"any":[{"resources":{"kinds":["Pod"]}}]}}"#,
        ),
    ]);
    let refused: Vec<String> = added.refused.iter().map(|refused| refused.error.to_string()).collect();
    assert_eq!(
        refused,
        [
            "admission webhook \"validate-policy.kyverno.svc\" denied the request: spec.matchConstraints: Required value: a \
             matchConstraints with at least one resource rule is required",
            "admission webhook \"validate-policy.kyverno.svc\" denied the request: spec.matchConstraints: Required value: a \
             matchConstraints with at least one resource rule is required",
            "admission webhook \"validate-policy.kyverno.svc\" denied the request: spec.matchConstraints: Required value: a \
             matchConstraints with at least one resource rule is required",
        ]
    );
    assert_eq!(added.warnings.iter().map(|(_, warning)| warning.as_str()).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_policy_is_enforced_over_http() {
    let running = run(&[NO_LATEST]);
    let pods = "/api/v1/namespaces/default/pods";
    let refused = running.post(pods, &pod("x:latest"));
    let message = refused.1.str_at(&["message"]).unwrap_or_default();
    assert!(message.starts_with("admission webhook \"validate.kyverno.svc-fail\" denied the request:"), "{message}");
    assert_eq!(running.post(pods, &pod("x:1")).0, 201);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let (code, _, body) = running.send("GET", pods, &[("Accept", table)], "");
    let shown = Value::from_json(&body).unwrap();
    assert_eq!((code, shown.str_at(&["kind"])), (200, Some("Table")));
}

#[test]
fn a_policy_with_match_conditions_is_asked_about_requests_that_meet_them() {
    let conditions =
        r#""webhookConfiguration":{"matchConditions":[{"name":"a","expression":"object.spec.hostname != 'free'"}]},"#;
    let policy = NO_LATEST.replace(r#""spec":{"rules""#, &format!(r#""spec":{{{conditions}"rules""#));
    assert!(policy.contains("matchConditions"));
    let running = run(&[&policy]);
    let pods = "/api/v1/namespaces/default/pods";
    let named =
        |hostname: &str| pod("x:latest").replace(r#""spec":{"#, &format!(r#""spec":{{"hostname":"{hostname}","#));
    let message = |answer: &(u16, Value)| answer.1.str_at(&["message"]).unwrap_or_default().to_owned();
    let refused = message(&running.post(pods, &named("other")));
    let webhook = "admission webhook \"validate.kyverno.svc-fail-finegrained-no-latest\" denied the request:";
    assert!(refused.starts_with(webhook), "{refused}");
    // A condition that fails denies under failure policy Fail, as an API server does.
    let failed = running.post(pods, &pod("x:latest"));
    let want =
        "pods \"p\" is forbidden: expression 'object.spec.hostname != 'free'' resulted in error: no such key: hostname";
    assert_eq!((failed.0, message(&failed).as_str()), (403, want));
    assert_eq!(running.post(pods, &named("free")).0, 201);
}

#[test]
fn strangers_stay_outside() {
    let running = run(&[]);
    let path = "/api/v1/namespaces";
    let code = |headers: &[(&str, &str)]| running.send("GET", path, headers, "").0;
    assert_eq!(code(&[]), 200);
    assert_eq!(code(&[("Authorization", "Bearer wrong")]), 401);
    assert_eq!(code(&[("Host", "evil.example")]), 403);
    assert_eq!(code(&[("Origin", "http://evil.example")]), 403);
    assert_eq!(running.send("GET", "/readyz", &[("Authorization", "none")], "").0, 200);
}

#[test]
fn media_types_that_are_not_spoken_are_refused_as_clients_expect() {
    let running = run(&[]);
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(running.send("GET", "/api/v1/pods", &[("Accept", protobuf)], "").0, 406);
    assert_eq!(
        running
            .send("GET", "/api/v1/pods", &[("Accept", "application/vnd.kubernetes.protobuf,application/json")], "")
            .0,
        200
    );
    assert_eq!(running.send("POST", "/api/v1/namespaces", &[("Content-Type", protobuf)], "k8s").0, 415);
    assert_eq!(running.send("PATCH", "/api/v1/namespaces/default", &[("Content-Type", "text/plain")], "{}").0, 415);
    assert_eq!(running.send("POST", "/api/v1/namespaces", &[("Content-Type", "application/json")], "{").0, 400);
}

#[test]
fn a_watch_tells_what_happens() {
    let running = run(&[]);
    let path = "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true";
    let watch = std::thread::scope(|scope| {
        let watching = scope.spawn(|| running.send("GET", path, &[], "").2);
        std::thread::sleep(Duration::from_millis(300));
        running.post("/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"a"}}"#);
        watching.join().unwrap()
    });
    assert!(watch.contains("k8s.io/initial-events-end"), "{watch}");
    assert!(watch.contains(r#""name":"a""#) && watch.contains(r#""type":"ADDED""#), "{watch}");
}

#[test]
fn warnings_come_as_headers() {
    let running = run(&[]);
    let odd = r#"{"metadata":{"name":"a"},"colour":1}"#;
    let path = "/api/v1/namespaces/default/configmaps";
    let (code, head, _) = running.send("POST", path, &[("Content-Type", "application/json")], odd);
    assert_eq!(code, 201);
    assert!(head.contains(r#"warning: 299 - "unknown field \"colour\"""#), "{head}");
    assert_eq!(running.post(&format!("{path}?fieldValidation=Strict"), odd).0, 400);
}

#[test]
fn namespaces_that_files_take_for_granted_are_made() {
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}"#;
    let running = run(&[map]);
    let (code, _, _) = running.send("GET", "/api/v1/namespaces/shop", &[], "");
    assert_eq!(code, 200);
}

impl Running {
    /// The decisions that the page shows, the latest last.
    fn decisions(&self) -> Vec<Value> {
        self.shown(Topic::Decision)
    }

    /// The events of a topic, the latest last.
    fn shown(&self, topic: Topic) -> Vec<Value> {
        let shown = self.live.watch().0;
        let events = shown.iter().filter(|event| event.topic == topic);
        events.map(|event| Value::from_json(&event.data).unwrap()).collect()
    }
}

const LABEL_SECRETS: &str = r#"{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"secrets"},"spec":{"rules":[
    {"name":"label","match":{"any":[{"resources":{"kinds":["Secret"]}}]},"mutate":{"patchStrategicMerge":{"data":{"more":"bW9yZQ=="}}}},
    {"name":"read","match":{"any":[{"resources":{"kinds":["Secret"]}}]},
     "context":[{"name":"other","apiCall":{"urlPath":"/api/v1/namespaces/default/secrets/other"}}],
     "validate":{"failureAction":"Enforce","message":"no {{ request.object.data.password }} or {{ other.data.password }}",
        "deny":{"conditions":{"any":[{"key":"{{ request.object.data.password }}","operator":"NotEquals","value":"{{ other.data.password }}"}]}}}}]}}"#;

#[test]
fn one_write_is_one_decision_with_its_reasons_and_its_changes() {
    let default_pull = r#"{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"pull"},"spec":{"rules":[
        {"name":"always","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"mutate":{"patchStrategicMerge":{"metadata":{"labels":{"checked":"true"}}}}}]}}"#;
    let running = run(&[NO_LATEST, default_pull]);
    running.post("/api/v1/namespaces/default/pods", &pod("x:latest"));
    let decisions = running.decisions();
    let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert_eq!((decision.str_at(&["ended"]), decision.str_at(&["name"])), (Some("denied"), Some("p")));
    assert!(decision.str_at(&["changed"]).unwrap().contains("\n+  labels:\n+    checked: \"true\"\n"), "{decision}");
    let rules = decision.get("rules").and_then(Value::as_array).unwrap();
    let told: Vec<_> = rules.iter().map(|rule| (rule.str_at(&["rule"]), rule.str_at(&["verdict"]))).collect();
    assert_eq!(told, [(Some("always"), Some("pass")), (Some("tag"), Some("fail"))]);
    let steps = rules[1].get("steps").unwrap().to_json();
    assert!(steps.contains("match.any[0] selects the resource"), "{steps}");
}

#[test]
fn dry_runs_and_requests_without_policies_are_shown_as_such() {
    let running = run(&[NO_LATEST]);
    running.post("/api/v1/namespaces/default/pods?dryRun=All", &pod("x:1"));
    running.post("/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"settings"}}"#);
    let decisions = running.decisions();
    let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert_eq!(decision.get("dryRun"), Some(&Value::Bool(true)));
    let requests = running.shown(Topic::Request);
    let map = requests.iter().find(|request| request.str_at(&["name"]) == Some("settings")).unwrap();
    assert_eq!(map.str_at(&["path"]), Some("/api/v1/namespaces/default/configmaps/settings"));
    assert_eq!(map.get("dryRun"), Some(&Value::Bool(false)));
}

#[test]
fn the_page_shows_objects_without_values_of_secrets() {
    let running = run(&[]);
    let secret = r#"{"metadata":{"name":"mine"},"data":{"password":"aHVudGVyMg=="}}"#;
    running.post("/api/v1/namespaces/default/secrets", secret);
    let path = format!("/ephor/object?path=/api/v1/namespaces/default/secrets/mine&token={}", running.token);
    let (code, _, body) = running.send("GET", &path, &[], "");
    assert_eq!(code, 200);
    assert!(body.contains("name: mine") && !body.contains("aHVudGVyMg=="), "{body}");
}

#[test]
fn what_rules_do_by_themselves_is_shown_with_its_reason() {
    let generate = r#"{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"quota"},"spec":{"rules":[
        {"name":"q","match":{"any":[{"resources":{"kinds":["Namespace"],"names":["shop"]}}]},"generate":{"apiVersion":"v1","kind":"ConfigMap","name":"limits",
        "namespace":"{{ request.object.metadata.name }}","synchronize":true,"data":{"data":{"a":"b"}}}}]}}"#;
    let running = run(&[generate]);
    running.post("/api/v1/namespaces", r#"{"metadata":{"name":"shop"}}"#);
    let made = || running.decisions().into_iter().find(|decision| decision.str_at(&["ended"]) == Some("done"));
    let mut seen = made();
    for _ in 0..500 {
        if seen.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        seen = made();
    }
    let seen = seen.expect("the object is made").to_json();
    assert!(seen.contains(r#""name":"limits""#) && seen.contains("for Namespace shop"), "{seen}");
    assert!(seen.contains("it is not there"), "{seen}");
}

#[test]
fn values_of_secrets_are_shown_nowhere() {
    let running = run(&[LABEL_SECRETS]);
    let path = "/api/v1/namespaces/default/secrets";
    // The first one cannot be judged, for what it is compared with is missing.
    let other = r#"{"metadata":{"name":"other"},"data":{"password":"b3BlbiBzZXNhbWU="}}"#;
    running.post(path, other);
    assert_eq!(running.post(path, r#"{"metadata":{"name":"mine"},"data":{"password":"aHVudGVyMg=="}}"#).0, 400);
    let shown = Value::array(running.decisions()).to_json();
    assert!(shown.contains("<redacted>") || shown.contains("redacted"), "{shown}");
    for value in ["aHVudGVyMg==", "hunter2", "b3BlbiBzZXNhbWU=", "open sesame", "bW9yZQ=="] {
        assert!(!shown.contains(value), "{value}: {shown}");
    }
}

#[test]
fn a_new_namespace_has_its_default_objects_before_its_creation_is_answered() {
    let running = run(&[]);
    for number in 0..20 {
        let name = format!("shop-{number}");
        running.post("/api/v1/namespaces", &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#));
        let path = format!("/api/v1/namespaces/{name}/configmaps/kube-root-ca.crt");
        assert_eq!(running.send("GET", &path, &[], "").0, 200, "{name}");
    }
}

const WIDGETS: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
    "spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},"versions":[
    {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
     "additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"}]},
    {"name":"v1beta1","served":true,"storage":false,"deprecated":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name != 'bad'","message":"not this one"}]}}}],
    "conversion":{"strategy":"Webhook"}}}"#;

#[test]
fn definitions_and_old_versions_come_with_warnings() {
    let running = run(&[]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, head, _) = running.send("POST", definitions, &[("Content-Type", "application/json")], WIDGETS);
    assert_eq!(code, 201);
    let warning = "warning: 299 - \"the conversion webhook is stored, but nothing here calls it\"";
    assert!(head.contains(warning), "{head}");
    let (_, head, _) = running.send("GET", "/apis/example.com/v1beta1/namespaces/default/widgets", &[], "");
    let warning = "warning: 299 - \"example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget\"";
    assert!(head.contains(warning), "{head}");
    let table = [("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let (_, head, body) = running.send("GET", "/apis/example.com/v1/namespaces/default/widgets", &table, "");
    assert!(!head.contains("warning"), "{head}");
    let columns = Value::from_json(&body).unwrap();
    let columns = columns.get("columnDefinitions").and_then(Value::as_array).unwrap();
    let names: Vec<&str> = columns.iter().filter_map(|column| column.str_at(&["name"])).collect();
    assert_eq!(names, ["Name", "Size"]);
}

#[test]
fn rules_of_definitions_are_enforced() {
    let running = run(&[]);
    running.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS);
    let post = |name: &str| {
        let body = format!(r#"{{"apiVersion":"example.com/v1beta1","kind":"Widget","metadata":{{"name":"{name}"}}}}"#);
        let head = [("Content-Type", "application/json")];
        running.send("POST", "/apis/example.com/v1beta1/namespaces/default/widgets", &head, &body)
    };
    assert_eq!(post("good").0, 201);
    let (code, _, body) = post("bad");
    assert_eq!(code, 422);
    assert!(body.contains(r#"Invalid value: \"object\": not this one"#), "{body}");
    let broken = WIDGETS.replace("self.metadata.name", "self.metadata.nope").replace("widgets", "gadgets");
    let head = [("Content-Type", "application/json")];
    let (code, _, body) =
        running.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &head, &broken);
    assert_eq!(code, 422);
    assert!(body.contains("undefined field 'nope'"), "{body}");
}

#[test]
fn there_are_only_so_many_watches() {
    let running = run(&[]);
    let open = || {
        let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
        let request = format!(
            "GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\r\n",
            running.port, running.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        (stream, String::from_utf8_lossy(&begin).into_owned())
    };
    let mut watches: Vec<_> = (0..server::WATCHES).map(|_| open()).collect();
    assert!(watches.iter().all(|(_, begin)| begin == "HTTP/1.1 200"));
    assert_eq!(open().1, "HTTP/1.1 429");
    watches.pop();
    let begun = Instant::now();
    while open().1 != "HTTP/1.1 200" && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_watch_may_be_asked_for_as_long_as_numbers_go() {
    let running = run(&[]);
    let path = format!("/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds={}", u64::MAX);
    let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    let (port, token) = (running.port, &running.token);
    let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    running.post("/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"a"}}"#);
    let mut told = String::new();
    while !told.contains("ADDED") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "the watch ended: {told}");
        told.push(char::from(byte[0]));
    }
}

#[test]
fn an_apply_that_creates_says_so() {
    let running = run(&[]);
    let path = "/api/v1/namespaces/default/configmaps/a?fieldManager=me";
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
    let apply = || running.send("PATCH", path, &[("Content-Type", "application/apply-patch+yaml")], body).0;
    assert_eq!([apply(), apply()], [201, 200]);
}

/// A rule about `ConfigMaps` that reads a path and shows what it finds.
fn reading(name: &str, path: &str) -> String {
    format!(
        r#"{{"name":"{name}","match":{{"any":[{{"resources":{{"kinds":["ConfigMap"]}}}}]}},
            "context":[{{"name":"c","apiCall":{{"urlPath":"{path}"}}}}],
            "validate":{{"failureAction":"Enforce","message":"found {{{{ c }}}}",
                "deny":{{"conditions":{{"any":[{{"key":"{{{{ to_string(c) }}}}","operator":"NotEquals","value":""}}]}}}}}}}}"#
    )
}

fn reading_policy(kind: &str, namespace: &str, rules: &[String]) -> String {
    format!(
        r#"{{"apiVersion":"kyverno.io/v1","kind":"{kind}","metadata":{{"name":"reading"{namespace}}},"spec":{{"rules":[{}]}}}}"#,
        rules.join(",")
    )
}

const TEAM_A: &str =
    r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a","labels":{"billing":"topsecret"}}}"#;
const FOREIGN: &str = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"kube-system"},"data":{"k":"dG9wc2VjcmV0"}}"#;

#[test]
fn a_policy_of_a_namespace_reads_nothing_outside_whatever_its_paths_and_its_data_say() {
    let rules: Vec<String> = [
        "/api/v1/namespaces/kube-system/%73ecrets/x",
        "/api/v1/namespaces/team-a",
        "/api/v1/namespaces/team-a/status",
        "/api/v1/nodes/n/proxy/namespaces/team-a/x",
        "/api/v1/namespaces/team-a/..%2fkube-system/secrets/x",
        "/api/v1/namespaces/team-a/pods?watch=true",
        "/api/v1/namespaces/team-a/services/http:s:80/proxy/",
        "/api/v1/namespaces/team-a/configmaps/{{ request.object.data.steps }}",
        "/api/v1/namespaces/team-a/configmaps/{{ request.object.data.encoded }}",
        "/api/v1/namespaces/team-a/configmaps/{{ request.object.data.query }}",
        "/api/v1/namespaces/{{ request.object.data.namespace }}/secrets/x",
        "/api/v1/{{ request.object.data.resource }}/kube-system/secrets",
    ]
    .iter()
    .enumerate()
    .map(|(i, path)| reading(&format!("r{i}."), path))
    .collect();
    let policy = reading_policy("Policy", r#","namespace":"team-a""#, &rules);
    let running = run(&[TEAM_A, FOREIGN, &policy]);
    let map = r#"{"metadata":{"name":"m"},"data":{"steps":"../../kube-system/secrets/x","encoded":"..%2f..%2fkube-system%2fsecrets%2fx",
        "query":"x?watch=true","namespace":"kube-system","resource":"namespaces"}}"#;
    let (code, answer) = running.post("/api/v1/namespaces/team-a/configmaps", map);
    let message = answer.str_at(&["message"]).unwrap();
    assert_eq!(code, 400, "{message}");
    for i in 0..rules.len() {
        assert!(message.contains(&format!("r{i}.")), "rule {i}: {message}");
    }
    let shown = format!("{message}{}", Value::array(running.decisions()).to_json());
    assert!(!shown.contains("topsecret") && !shown.contains("dG9wc2VjcmV0"), "{shown}");
    assert!(!message.contains("found "), "{message}");
}

#[test]
fn secrets_are_hidden_however_the_path_spells_them() {
    let paths = ["/api/v1/namespaces/kube-system/%73ecrets/x", "/api/v1/%73ecrets?limit=9"];
    let rules: Vec<String> = paths.iter().enumerate().map(|(i, path)| reading(&format!("r{i}."), path)).collect();
    let running = run(&[TEAM_A, FOREIGN, &reading_policy("ClusterPolicy", "", &rules)]);
    let (_, answer) = running.post("/api/v1/namespaces/team-a/configmaps", r#"{"metadata":{"name":"m"}}"#);
    let message = answer.str_at(&["message"]).unwrap();
    assert_eq!(message.matches("found ").count(), paths.len(), "{message}");
    assert!(message.contains("<redacted>"), "{message}");
    assert!(!message.contains("topsecret") && !message.contains("dG9wc2VjcmV0"), "{message}");
}

#[test]
fn a_dry_run_of_a_request_posts_nothing() {
    let rule = reading("makes", "/api/v1/namespaces")
        .replace(r#""urlPath""#, r#""method":"POST","data":[{"key":"metadata","value":{"name":"made"}}],"urlPath""#);
    let running = run(&[&reading_policy("ClusterPolicy", "", &[rule])]);
    let path = "/api/v1/namespaces/default/configmaps";
    let map = r#"{"metadata":{"name":"m"}}"#;
    let (code, answer) = running.post(&format!("{path}?dryRun=All"), map);
    let message = answer.str_at(&["message"]).unwrap();
    assert_eq!(code, 400, "{message}");
    assert!(message.contains("`/api/v1/namespaces` is not called in a dry run"), "{message}");
    let made = || running.send("GET", "/api/v1/namespaces/made", &[], "").0;
    assert_eq!(made(), 404);
    running.post(path, map);
    assert_eq!(made(), 200);
}

#[test]
fn objects_that_are_added_carry_what_kubectl_apply_looks_for() {
    let secret = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"v"}}"#;
    let running = run(&[secret]);
    let (_, _, stored) = running.send("GET", "/api/v1/namespaces/default/configmaps/c", &[], "");
    let stored = Value::from_json(&stored).unwrap();
    let noted = stored.str_at(&["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"]);
    let noted = Value::from_json(noted.unwrap()).unwrap();
    assert_eq!((noted.str_at(&["data", "k"]), noted.str_at(&["metadata", "namespace"])), (Some("v"), Some("default")));
}
