//! `ephor serve reports --reports-storage aggregated` behind a real API server.

use ephor_testbed::control_plane::free_port;

use crate::guarded::Cluster;

const POLICIES: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: colours}
spec:
  rules:
  - name: green
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [default], names: [paint]}}]}
    validate: {message: not green, pattern: {data: {colour: green}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: asked}
spec:
  background: false
  rules:
  - name: user
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [default], names: [paint]}}]}
    validate: {message: not yours, deny: {conditions: {all: [{key: '{{ request.userInfo.username }}', operator: Equals, value: eve}]}}}
";
const DEFINITIONS: [&str; 2] = ["policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io"];

/// What an admission role leaves about the `ConfigMap` of that UID.
fn ephemeral(uid: &str) -> String {
    format!(
        "apiVersion: reports.kyverno.io/v1
kind: EphemeralReport
metadata:
  name: from-admission
  namespace: default
  annotations: {{audit.kyverno.io/resource.name: paint, audit.kyverno.io/resource.namespace: default}}
  labels:
    audit.kyverno.io/resource.group: ''
    audit.kyverno.io/resource.version: v1
    audit.kyverno.io/resource.kind: ConfigMap
    audit.kyverno.io/resource.uid: {uid}
spec:
  owner: {{apiVersion: '', kind: '', name: '', uid: ''}}
  results: [{{source: kyverno, policy: asked, rule: user, result: fail, scored: true, message: not yours,
    properties: {{process: admission review}}}}]
  summary: {{fail: 1}}
"
    )
}

/// The kubeconfig of the role's own account, with the rights that the chart gives it where reports are in memory.
fn account(cluster: &Cluster) -> std::path::PathBuf {
    let settings = ["install", "--print", "--set", "reports.storage=aggregated,crds.install=false"];
    let printed = std::process::Command::new(crate::guarded::binary()).args(settings).output().unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    let is_right = |document: &&str| {
        let kinds = ["ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
        document.lines().any(|line| line.strip_prefix("kind: ").is_some_and(|kind| kinds.contains(&kind)))
    };
    let rights: Vec<&str> = text.split("---\n").filter(is_right).collect();
    cluster.apply("rights.yaml", &rights.join("---\n"));
    let name = "kyverno-reports-controller";
    // No controller gathers cluster roles here, so the role is bound itself.
    let role = "--clusterrole=kyverno:reports-controller:core";
    cluster.ask(&["create", "clusterrolebinding", "core", role, &format!("--serviceaccount=kyverno:{name}")]);
    let view = "--clusterrole=view";
    cluster.ask(&["create", "clusterrolebinding", "read", view, &format!("--serviceaccount=kyverno:{name}")]);
    cluster.plane.service_account_kubeconfig("kyverno", name).unwrap()
}

/// `policy=result …` of the report about the `ConfigMap`; the error if there is none.
fn results(cluster: &Cluster, uid: &str) -> String {
    let path = "jsonpath={range .results[*]}{.policy}={.result} {end}";
    cluster.try_ask(&["get", "polr", "-n", "default", uid, "-o", path]).1
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn reports_are_computed_and_served_and_nothing_is_stored() {
    let mut cluster = Cluster::start();
    let port = free_port().unwrap();
    cluster.apply("policies.yaml", POLICIES);
    cluster.apply(
        "service.yaml",
        "{apiVersion: v1, kind: Service, metadata: {name: kyverno-reports-api, namespace: kyverno}, spec: {type: \
         ExternalName, externalName: localhost}}",
    );
    cluster.ask(&["create", "configmap", "paint", "--from-literal=colour=red"]);
    let uid = cluster.ask(&["get", "configmap", "paint", "-o", "jsonpath={.metadata.uid}"]);
    let uid = uid.as_str();

    // While the definitions of the kinds are there, the API server has the group, and the role says so and waits.
    let flags = [
        "--reports-storage=aggregated".to_owned(),
        format!("--reportsServerPort={port}"),
        format!("--servicePort={port}"),
    ];
    let account = account(&cluster);
    cluster.work_by(&account, "reports", &flags);
    cluster.eventually("the role is ready", |cluster| cluster.workers[0].is_ready());
    cluster.eventually("the role says why it does not serve", |cluster| {
        cluster.workers[0].process.log_end(200).contains("APIService `v1alpha2.wgpolicyk8s.io` is not Ephor's")
    });
    assert!(!cluster.ask(&["get", "polr", "-A"]).contains(uid), "a report was stored");
    for definition in DEFINITIONS {
        cluster.ask(&["delete", "crd", definition]);
    }
    cluster.eventually("the report is served", |cluster| results(cluster, uid) == "colours=fail ");
    assert!(cluster.ask(&["get", "polr", "-A"]).contains("paint"));
    // Without definitions nothing of that group can be in etcd.
    let definitions = cluster.ask(&["get", "crd", "-o", "name"]);
    assert!(!definitions.contains("wgpolicyk8s.io"), "{definitions}");

    // What a request knew is shown as long as its EphemeralReport exists, also by a replica that starts later.
    cluster.apply("ephemeral.yaml", &ephemeral(uid));
    cluster
        .eventually("the result of a request is shown", |cluster| results(cluster, uid) == "asked=fail colours=fail ");
    cluster.ask(&["get", "ephemeralreport", "from-admission"]);
    cluster.workers.remove(0).process.kill();
    cluster.work_by(&account, "reports", &flags);
    cluster.eventually("another replica shows the same", |cluster| results(cluster, uid) == "asked=fail colours=fail ");
    cluster.ask(&["delete", "ephemeralreport", "from-admission"]);
    cluster.eventually("the result goes with it", |cluster| results(cluster, uid) == "colours=fail ");

    // The way back: the definitions return, and the role that stores reports removes the registration.
    cluster.workers.remove(0).process.kill();
    cluster.ask(&[
        "apply",
        "--server-side",
        "-f",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/ephor/files/crds"),
    ]);
    cluster.work_by(&account, "reports", &[]);
    cluster.eventually("the report is stored", |cluster| results(cluster, uid) == "colours=fail ");
    let served = ["get", "apiservice", "v1alpha2.wgpolicyk8s.io", "-o", "jsonpath={.spec.service}"];
    assert_eq!(cluster.ask(&served), "");
}
