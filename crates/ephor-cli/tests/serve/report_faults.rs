//! `ephor serve reports` under faults: missing definitions, deaths, edits by others, a restart of the API server.

use crate::guarded::Cluster;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: colours}
spec:
  rules:
  - name: green
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [default], names: ['paint-*']}}]}
    validate: {message: not green, pattern: {data: {colour: green}}}
";
const DEFINITIONS: [&str; 2] = ["policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io"];
const OBJECTS: usize = 300;

/// `name=result` of each report about a `ConfigMap`, in order.
fn reported(cluster: &Cluster) -> Vec<String> {
    let path = "jsonpath={range .items[*]}{.scope.name}={.results[*].result} {end}";
    let (_, text) = cluster.try_ask(&["get", "polr", "-n", "default", "-o", path]);
    let mut reported: Vec<String> =
        text.split_whitespace().filter(|word| word.starts_with("paint-")).map(str::to_owned).collect();
    reported.sort();
    reported
}

fn expected() -> Vec<String> {
    let mut expected: Vec<String> = (0..OBJECTS).map(|number| format!("paint-{number}=fail")).collect();
    expected.sort();
    expected
}

/// The name of the report about a `ConfigMap`: its UID.
fn report_of(cluster: &Cluster, name: &str) -> String {
    cluster.ask(&["get", "configmap", name, "-o", "jsonpath={.metadata.uid}"])
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn reports_come_right_whatever_happens_to_role_reports_and_api_server() {
    let mut cluster = Cluster::start();
    for definition in DEFINITIONS {
        cluster.ask(&["delete", "crd", definition]);
    }
    cluster.apply("policy.yaml", POLICY);
    let objects: Vec<String> = (0..OBJECTS)
        .map(|number| {
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: paint-{number}}}, data: {{colour: red}}}}\n")
        })
        .collect();
    cluster.apply("objects.yaml", &objects.join("---\n"));
    let kubeconfig = cluster.plane.kubeconfig();
    for _ in 0..2 {
        cluster.work_by(&kubeconfig, "reports", &[]);
    }

    // Without definitions the role says so and waits; with them it goes on by itself.
    cluster.eventually("the role says what is missing", |cluster| {
        cluster.workers.iter().any(|worker| worker.process.log_end(200).contains("install the definitions of reports"))
    });
    cluster.ask(&[
        "apply",
        "--server-side",
        "-f",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/ephor/files/crds"),
    ]);

    // The leader dies in the midst of it, and the other replica does the rest.
    cluster.eventually("some reports are there", |cluster| !reported(cluster).is_empty());
    let path = "jsonpath={.spec.holderIdentity}";
    let leader = cluster.ask(&["get", "lease", "kyverno-reports-controller", "-n", "kyverno", "-o", path]);
    let place = cluster.workers.iter().position(|worker| worker.identity == leader).unwrap();
    cluster.workers.remove(place).process.kill();
    cluster.eventually("every object has its report", |cluster| reported(cluster) == expected());

    // What others do to reports is put right, and the reports of others stay.
    let (edited, deleted) = (report_of(&cluster, "paint-1"), report_of(&cluster, "paint-2"));
    let lie = r#"[{"op":"replace","path":"/results/0/result","value":"pass"}]"#;
    cluster.ask(&["patch", "polr", &edited, "--type=json", "-p", lie]);
    cluster.ask(&["delete", "polr", &deleted]);
    cluster.apply(
        "foreign.yaml",
        "{apiVersion: wgpolicyk8s.io/v1alpha2, kind: PolicyReport, metadata: {name: foreign, namespace: default}, \
         results: [{policy: theirs, result: fail}]}",
    );
    cluster.eventually("edits are put right", |cluster| reported(cluster) == expected());

    // The API server goes and comes back: what happens then is followed.
    cluster.plane.restart_api_server().unwrap();
    let green = r#"{"data":{"colour":"green"}}"#;
    cluster.ask(&["patch", "configmap", "paint-3", "--type=merge", "-p", green]);
    cluster.eventually("a change after the restart is judged", |cluster| {
        reported(cluster).contains(&"paint-3=pass".to_owned())
    });
    cluster.ask(&["get", "polr", "foreign"]);
}
