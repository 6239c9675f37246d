//! `--ready`: workloads become ready although nothing runs.
//!
//! A pass looks at all workloads and does what Kubernetes' controllers, scheduler and kubelet would do: Deployments get
//! `ReplicaSet`s, `ReplicaSet`s, `StatefulSet`s, `DaemonSet`s and Jobs get Pods, Pods get a status, Services get
//! addresses. So `kubectl rollout status`, `helm --wait` and policies about Pods work as on a cluster. Each write goes
//! through admission under the account that writes it on a cluster. `CronJob`s never start a Job.

mod deployments;
mod jobs;
mod pods;
mod replicas;
mod services;
mod write;

use std::time::Duration;

use ephor_cluster::MemoryCluster;
use ephor_runtime::cancellation::CancellationToken;

use self::write::{Backoff, Controller};

/// How soon a change is followed. Changes that come together are handled together.
const DELAY: Duration = Duration::from_millis(20);
/// How often to look again at creations that were refused.
const RETRY: Duration = Duration::from_millis(250);

/// Runs the controllers until the stop signal.
pub(super) fn run(cluster: &MemoryCluster, stop: &CancellationToken) {
    let mut seen = 0;
    let mut backoff = Backoff::default();
    while !stop.is_cancelled() {
        let revision = cluster.wait_for_change(seen, RETRY);
        if revision == seen && !backoff.is_due() {
            continue;
        }
        stop.wait(DELAY);
        seen = revision;
        pass(cluster, &mut backoff);
    }
}

/// Does what there is to do now. A pass over a cluster at rest writes nothing.
fn pass(cluster: &MemoryCluster, backoff: &mut Backoff) {
    let controller = |name| Controller::new(cluster, name);
    deployments::reconcile(&controller("deployment-controller"));
    replicas::replica_sets(&controller("replicaset-controller"), backoff);
    replicas::stateful_sets(&controller("statefulset-controller"), backoff);
    replicas::daemon_sets(&controller("daemon-set-controller"), backoff);
    jobs::reconcile(&controller("job-controller"), backoff);
    let kubelet = Controller::node(cluster);
    pods::start(&kubelet);
    pods::bind_claims(&controller("persistent-volume-binder"));
    services::reconcile(&controller("endpoint-controller"));
}

#[cfg(test)]
mod tests {
    use ephor_cluster::memory::Options;
    use ephor_cluster::{Cluster as _, ListQuery, WriteOptions, object};
    use ephor_expr::Value;
    use ephor_expr::yaml::parse_value;

    use super::*;

    const WORKLOADS: [&str; 5] = [
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: x}]}}}}",
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: default}, spec: {replicas: 2, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}",
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: default}, spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: x}]}}}}",
        "{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: default}, spec: {completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}",
        "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default}, spec: {type: LoadBalancer, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}}",
    ];

    fn settled(workloads: &[&str]) -> MemoryCluster {
        let cluster = MemoryCluster::new(Options::server());
        for text in workloads {
            put(&cluster, text);
        }
        settle(&cluster);
        cluster
    }

    fn settle(cluster: &MemoryCluster) {
        let mut backoff = Backoff::default();
        for _ in 0..20 {
            let before = cluster.revision();
            pass(cluster, &mut backoff);
            if cluster.revision() == before {
                return;
            }
        }
        panic!("the passes find no end");
    }

    fn put(cluster: &MemoryCluster, text: &str) {
        let object = parse_value(text).unwrap();
        let text = |key: &str| object.str_at(&[key]).unwrap();
        let resource = cluster.resolve(text("apiVersion"), text("kind")).unwrap();
        cluster.create(&resource, object.clone(), &WriteOptions::default()).unwrap();
    }

    fn all(cluster: &MemoryCluster, api_version: &str, kind: &str) -> Vec<Value> {
        let resource = cluster.resolve(api_version, kind).unwrap();
        cluster.list(&resource, &ListQuery::in_namespace("default")).unwrap().items
    }

    fn status(cluster: &MemoryCluster, api_version: &str, kind: &str, keys: &[&str]) -> String {
        let found = all(cluster, api_version, kind);
        let numbers = keys.iter().map(|key| found[0].at(&["status", key]).map_or("-".to_owned(), Value::to_json));
        numbers.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_workload_becomes_ready() {
        let cluster = settled(&WORKLOADS);
        let ready = ["replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "observedGeneration"];
        assert_eq!(status(&cluster, "apps/v1", "Deployment", &ready), "2 2 2 2 1");
        assert_eq!(status(&cluster, "apps/v1", "StatefulSet", &ready), "2 2 2 2 1");
        let daemons = ["desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable"];
        assert_eq!(status(&cluster, "apps/v1", "DaemonSet", &daemons), "1 1 1 1");
        assert_eq!(status(&cluster, "batch/v1", "Job", &["succeeded", "active"]), "2 -");
        let mut phases: Vec<String> =
            all(&cluster, "v1", "Pod").iter().map(|pod| pod.str_at(&["status", "phase"]).unwrap().to_owned()).collect();
        phases.sort();
        assert_eq!(phases, ["Running", "Running", "Running", "Running", "Running", "Succeeded", "Succeeded"]);
        let claims = all(&cluster, "v1", "PersistentVolumeClaim");
        let names: Vec<&str> = claims.iter().map(object::name).collect();
        assert_eq!(names, ["data-db-0", "data-db-1"]);
        assert!(claims.iter().all(|claim| claim.str_at(&["status", "phase"]) == Some("Bound")));
    }

    #[test]
    fn services_get_addresses_and_the_endpoints_of_their_pods() {
        let cluster = settled(&WORKLOADS);
        let service = &all(&cluster, "v1", "Service").into_iter().find(|s| object::name(s) == "web").unwrap();
        assert!(service.str_at(&["spec", "clusterIP"]).unwrap().starts_with("10.96."));
        assert!(service.at(&["status", "loadBalancer", "ingress"]).is_some());
        let endpoints = all(&cluster, "v1", "Endpoints").into_iter().find(|e| object::name(e) == "web").unwrap();
        let subset = &endpoints.at(&["subsets"]).and_then(Value::as_array).unwrap()[0];
        assert_eq!(subset.get("addresses").and_then(Value::as_array).unwrap().len(), 2);
        assert_eq!(subset.get("ports").unwrap().to_json(), r#"[{"name":"http","port":8080,"protocol":"TCP"}]"#);
    }

    #[test]
    fn a_new_template_replaces_the_pods_and_scaling_follows() {
        let cluster = settled(&WORKLOADS[..1]);
        let before: Vec<String> = all(&cluster, "v1", "Pod").iter().map(|pod| object::name(pod).to_owned()).collect();
        let deployments = cluster.resolve("apps/v1", "Deployment").unwrap();
        let mut web = cluster.get(&deployments, Some("default"), "web").unwrap();
        let edited =
            web.to_json().replace(r#""image":"x""#, r#""image":"y""#).replace(r#""replicas":2"#, r#""replicas":3"#);
        web = Value::from_json(&edited).unwrap();
        cluster.update(&deployments, web, &WriteOptions::default()).unwrap();
        settle(&cluster);
        let pods = all(&cluster, "v1", "Pod");
        assert_eq!(pods.len(), 3);
        assert!(pods.iter().all(|pod| !before.iter().any(|name| name == object::name(pod))));
        let sets = all(&cluster, "apps/v1", "ReplicaSet");
        let mut sizes: Vec<i64> = sets.iter().filter_map(|set| set.at(&["spec", "replicas"])?.as_i64()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [0, 3]);
    }

    #[test]
    fn revisions_count_templates_and_one_that_comes_back_is_the_newest() {
        let revision = |found: &Value| {
            found.str_at(&["metadata", "annotations", "deployment.kubernetes.io/revision"]).unwrap_or("-").to_owned()
        };
        let cluster = settled(&WORKLOADS[..1]);
        let deployments = cluster.resolve("apps/v1", "Deployment").unwrap();
        for (image, of_deployment, of_sets) in
            [("x", "1", ["1"].as_slice()), ("y", "2", &["1", "2"]), ("x", "3", &["2", "3"])]
        {
            let web = cluster.get(&deployments, Some("default"), "web").unwrap().to_json();
            let web = web
                .replace(r#""image":"x""#, r#""image":"y""#)
                .replace(r#""image":"y""#, &format!(r#""image":"{image}""#));
            cluster.update(&deployments, Value::from_json(&web).unwrap(), &WriteOptions::default()).unwrap();
            settle(&cluster);
            assert_eq!(revision(&cluster.get(&deployments, Some("default"), "web").unwrap()), of_deployment);
            let mut sets: Vec<String> = all(&cluster, "apps/v1", "ReplicaSet").iter().map(revision).collect();
            sets.sort();
            assert_eq!(sets, of_sets);
        }
    }

    #[test]
    fn tests_of_a_chart_succeed() {
        for (name, hook, policy, phase) in [
            ("test", "test", "Never", "Succeeded"),
            ("two", "post-install, test-success", "Never", "Succeeded"),
            ("other", "post-install", "Never", "Running"),
            ("always", "test", "Always", "Running"),
        ] {
            let pod = format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default, annotations: {{helm.sh/hook: '{hook}'}}}},
                  spec: {{restartPolicy: {policy}, containers: [{{name: c, image: x}}]}}}}"
            );
            let cluster = settled(&[pod.as_str()]);
            assert_eq!(status(&cluster, "v1", "Pod", &["phase"]), format!("\"{phase}\""), "{name}");
        }
    }
}
