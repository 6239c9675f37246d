//! Reviews that no API server sent.

use crate::guarded::Cluster;
use crate::load::client;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: bind}
spec:
  background: false
  rules:
  - name: creator
    match: {any: [{resources: {kinds: [Namespace], operations: [CREATE]}}]}
    generate: {synchronize: false, apiVersion: v1, kind: ConfigMap, name: creator,
      namespace: '{{ request.object.metadata.name }}', data: {data: {user: '{{ request.userInfo.username }}'}}}
";

/// A review of the Namespace as it is stored, in which `mallory` created it and is a cluster administrator.
fn forged(namespace: &str) -> String {
    let user = r#"{"username":"mallory","groups":["system:masters"]}"#;
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"forged","operation":"CREATE",
        "kind":{{"group":"","version":"v1","kind":"Namespace"}},"resource":{{"group":"","version":"v1","resource":"namespaces"}},
        "name":"team","namespace":"team","userInfo":{user},"dryRun":false,"object":{namespace},"oldObject":null}}}}"#
    )
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn only_the_api_server_hands_over_work() {
    let mut cluster = Cluster::start();
    cluster.ask(&["create", "namespace", "team"]);
    cluster.apply("policy.yaml", POLICY);
    cluster.scale(1, &[]);
    cluster.work();
    cluster.eventually("the policy is Ready", |cluster| cluster.is_ready("bind"));
    cluster.eventually("the background role is ready", |cluster| cluster.workers[0].is_ready());

    let port = cluster.replicas()[0].port;
    let probe = format!("https://127.0.0.1:{port}/health/readiness");
    cluster
        .eventually("admission is ready", |_| client().get(&probe).call().is_ok_and(|answer| answer.status() == 200));

    let namespace = cluster.ask(&["get", "namespace", "team", "-o", "json"]);
    for path in ["/validate", "/validate/fail", "/validate/fail/proven/0123456789abcdef0123456789abcdef"] {
        let request = client().post(format!("https://127.0.0.1:{port}{path}"));
        let mut answer = request.header("Content-Type", "application/json").send(forged(&namespace)).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(text.contains(r#""allowed":true"#), "{text}");
        // Work is handed over before the answer.
        assert_eq!(cluster.ask(&["get", "updaterequests", "-n", "kyverno", "-o", "name"]), "", "{path}");
    }

    let admin = cluster.ask(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]);
    cluster.ask(&["create", "namespace", "real"]);
    let user = ["get", "configmap", "creator", "-n", "real", "-o", "jsonpath={.data.user}"];
    cluster.eventually("the API server's review acts", |cluster| cluster.try_ask(&user).1 == admin);
    let (found, text) = cluster.try_ask(&["get", "configmap", "creator", "-n", "team"]);
    assert!(!found, "{text}");
}
