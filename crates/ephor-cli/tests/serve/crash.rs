//! The background role dies in the middle of its work and comes back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Stdio;

use crate::guarded::Cluster;

/// How many triggers there are.
const TRIGGERS: usize = 500;
const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: mirror}
spec:
  rules:
  - name: mirror
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [triggers], selector: {matchLabels: {mirror: 'yes'}}}}]}
    generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: 'of-{{ request.object.metadata.name }}',
      namespace: mirrors, data: {data: {k: '{{ request.object.data.k }}'}}}
";

/// The `ConfigMap`s that were made for triggers, with what they say.
fn mirrors(cluster: &Cluster) -> BTreeMap<String, String> {
    let path = "jsonpath={range .items[*]}{.metadata.name} {.data.k}{\"\\n\"}{end}";
    let labels = "app.kubernetes.io/managed-by=kyverno";
    let text = cluster.ask(&["get", "configmaps", "-n", "mirrors", "-l", labels, "-o", path]);
    text.lines().filter_map(|line| line.split_once(' ')).map(|(name, k)| (name.to_owned(), k.to_owned())).collect()
}

/// How many requests wait, by policy and trigger.
fn requests(cluster: &Cluster) -> BTreeMap<String, usize> {
    let path = "jsonpath={range .items[*]}{.spec.policy} {.spec.ruleContext[*].trigger.uid}{\"\\n\"}{end}";
    let text = cluster.ask(&["get", "updaterequests", "-n", "kyverno", "-o", path]);
    let mut requests = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        *requests.entry(line.to_owned()).or_default() += 1;
    }
    requests
}

fn at_most_one_each(cluster: &Cluster) -> usize {
    let requests = requests(cluster);
    let more: Vec<_> = requests.iter().filter(|(_, count)| **count > 1).collect();
    assert!(more.is_empty(), "several requests for one policy and trigger: {more:?}");
    requests.len()
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn work_goes_on_after_a_crash() {
    let mut cluster = Cluster::start();
    for namespace in ["triggers", "mirrors"] {
        cluster.ask(&["create", "namespace", namespace]);
    }
    cluster.apply("policy.yaml", POLICY);
    cluster.scale(1, &[]);
    cluster.eventually("the policy is Ready", |cluster| cluster.is_ready("mirror"));
    cluster.work();
    cluster.eventually("the background role is ready", |cluster| cluster.workers[0].is_ready());

    let mut triggers = String::new();
    for number in 0..TRIGGERS {
        let _ = writeln!(
            triggers,
            "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: t{number}, namespace: triggers, labels: \
             {{mirror: 'yes'}}}}, data: {{k: v{number}}}}}"
        );
    }
    let triggers = cluster.file("triggers.yaml", &triggers);
    let mut creating = cluster.plane.kubectl().args(["create", "-f", &triggers]).stdout(Stdio::null()).spawn().unwrap();
    cluster.eventually("a fifth is made", |cluster| {
        at_most_one_each(cluster);
        mirrors(cluster).len() > TRIGGERS / 5
    });
    cluster.workers.remove(0).process.kill();
    while creating.try_wait().unwrap().is_none() {
        at_most_one_each(&cluster);
    }
    assert!(creating.wait().unwrap().success());
    // What nobody sees happen is made good as well.
    cluster.ask(&["delete", "configmap", "t0", "-n", "triggers"]);
    let begun = mirrors(&cluster).len();
    assert!(begun < TRIGGERS, "it was killed too late");

    cluster.work();
    let mut wanted: BTreeMap<String, String> =
        (1..TRIGGERS).map(|number| (format!("of-t{number}"), format!("v{number}"))).collect();
    cluster.eventually("all are made", |cluster| {
        at_most_one_each(cluster);
        mirrors(cluster) == wanted
    });
    cluster.eventually("no request is left", |cluster| at_most_one_each(cluster) == 0);

    // A second death, with nothing to do: nothing is written anew.
    let versions = |cluster: &Cluster| {
        let path = "jsonpath={range .items[*]}{.metadata.uid} {.metadata.resourceVersion}{\"\\n\"}{end}";
        cluster.ask(&["get", "configmaps", "-n", "mirrors", "-o", path])
    };
    let before = versions(&cluster);
    cluster.workers.remove(0).process.kill();
    cluster.work();
    cluster.ask(&["create", "configmap", "late", "-n", "triggers", "--from-literal=k=late"]);
    cluster.ask(&["label", "configmap", "late", "-n", "triggers", "mirror=yes"]);
    wanted.insert("of-late".to_owned(), "late".to_owned());
    cluster.eventually("it works again", |cluster| mirrors(cluster) == wanted);
    let after = versions(&cluster);
    assert!(before.lines().all(|line| after.lines().any(|known| known == line)), "written without need");
}
