//! Two replicas of the background role: one works, the other goes on when it does not.

use std::time::{Duration, Instant};

use crate::guarded::Cluster;

const POLICIES: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: kept}
spec:
  rules:
  - name: kept
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {team: '?*'}}}}]}
    generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: kept, namespace: '{{ request.object.metadata.name }}',
      data: {data: {team: '{{ request.object.metadata.labels.team }}'}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: once}
spec:
  rules:
  - name: once
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {team: '?*'}}}}]}
    generate: {synchronize: false, apiVersion: v1, kind: ConfigMap, name: once, namespace: '{{ request.object.metadata.name }}',
      data: {data: {a: b}}}
";

/// A Namespace that a watch tells of, and a request that only admission could have made.
fn ask_for_work(cluster: &Cluster, namespace: &str) {
    cluster.apply(
        "namespace.yaml",
        &format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}, labels: {{team: a}}}}}}"),
    );
    let uid = cluster.ask(&["get", "namespace", namespace, "-o", "jsonpath={.metadata.uid}"]);
    let request = format!(
        "{{apiVersion: kyverno.io/v2, kind: UpdateRequest, metadata: {{name: ur-{namespace}, namespace: kyverno}}, spec: \
         {{requestType: generate, policy: once, ruleContext: [{{rule: once, trigger: {{apiVersion: v1, kind: Namespace, \
         name: {namespace}, uid: {uid}}}}}], context: {{}}}}}}"
    );
    cluster.apply("request.yaml", &request);
}

fn is_done(cluster: &Cluster, namespace: &str) -> bool {
    let path = "jsonpath={range .items[*]}{.metadata.name} {end}";
    let (found, names) = cluster.try_ask(&["get", "configmaps", "-n", namespace, "-o", path]);
    found && ["kept ", "once "].iter().all(|name| names.contains(name))
}

/// Waits until another replica than `former` leads and has done the work of a namespace; how long the first took.
#[expect(clippy::print_stderr, reason = "figures for whoever runs the test with --nocapture")]
fn taken_over(cluster: &mut Cluster, former: &str, namespace: &str, since: Instant) -> Duration {
    let mut taken = None;
    cluster.eventually("another replica leads", |cluster| {
        let leader = cluster.leader();
        let other = !leader.is_empty() && leader != former;
        taken = other.then(|| since.elapsed());
        other
    });
    cluster.eventually("it does the work", |cluster| is_done(cluster, namespace));
    eprintln!("taken over from {former} after {taken:?}, work done after {:?}", since.elapsed());
    taken.unwrap()
}

/// Takes the leader away from the replicas.
fn leader(cluster: &mut Cluster) -> crate::guarded::Worker {
    let name = cluster.leader();
    let place = cluster.workers.iter().position(|worker| worker.identity == name).unwrap();
    cluster.workers.remove(place)
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn a_replica_goes_on_where_the_leader_ended() {
    let mut cluster = Cluster::start();
    cluster.apply("policies.yaml", POLICIES);
    cluster.work();
    cluster.work();
    ask_for_work(&cluster, "first");
    cluster.eventually("the leader works", |cluster| is_done(cluster, "first"));
    cluster.eventually("both are ready", |cluster| cluster.workers.iter().all(crate::guarded::Worker::is_ready));

    // Killed: nobody is told.
    let mut killed = leader(&mut cluster);
    let since = Instant::now();
    killed.process.kill();
    ask_for_work(&cluster, "second");
    let took = taken_over(&mut cluster, &killed.identity, "second", since);
    assert!(took <= Duration::from_secs(15), "{took:?}");

    // Asked to end: it lets go of the lease.
    cluster.work();
    cluster.eventually("both are ready", |cluster| cluster.workers.iter().all(crate::guarded::Worker::is_ready));
    let mut ending = leader(&mut cluster);
    let since = Instant::now();
    ending.process.terminate();
    ask_for_work(&cluster, "third");
    let took = taken_over(&mut cluster, &ending.identity, "third", since);
    assert!(took <= Duration::from_secs(3), "{took:?}");
    cluster.eventually("it has ended", |_| !ending.process.is_running());
    assert_eq!(cluster.workers[0].probe("/health/liveness"), Some(200));
}
