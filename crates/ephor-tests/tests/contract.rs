//! The contract of clusters, on each of them.

use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::{Cluster, MemoryCluster, memory};
use ephor_kube::{Access, ConnectOptions, Definitions, KubeCluster};
use ephor_runtime::CancellationToken;
use ephor_sandbox::Sandbox;
use ephor_testbed::{ControlPlane, Options};
use ephor_tests::contract::check;

/// Between two looks at what a cluster does in its own time.
const PAUSE: Duration = Duration::from_millis(50);

#[test]
fn the_cluster_in_memory_keeps_the_contract() {
    for (prefix, options) in [("memory", memory::Options::default()), ("server", memory::Options::server())] {
        let cluster = MemoryCluster::new(options);
        let background = cluster.clone();
        let cluster: Arc<dyn Cluster> = Arc::new(cluster);
        let failed = check(&cluster, prefix, move || {
            background.reconcile();
        });
        assert_eq!(failed, [""; 0], "{prefix}");
    }
}

#[test]
fn the_sandbox_keeps_the_contract_over_http() {
    let stop = CancellationToken::new();
    let sandbox = Sandbox::new(0, None, &stop).expect("a sandbox");
    sandbox.enforce();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, sandbox.kubeconfig()).expect("a file");
    let serving = std::thread::spawn(move || sandbox.serve());
    let access = Access::Kubeconfig { path, context: None };
    let cluster = KubeCluster::connect(&ConnectOptions { access, ..ConnectOptions::default() }).expect("a client");
    let failed = check(&(Arc::new(cluster) as Arc<dyn Cluster>), "sandbox", || std::thread::sleep(PAUSE));
    stop.cancel();
    assert!(serving.join().is_ok());
    assert_eq!(failed, [""; 0]);
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn an_api_server_keeps_the_contract() {
    let plane = ControlPlane::start(&Options::default()).expect("a control plane");
    for (prefix, definitions) in [("asked", Definitions::AskedFor), ("followed", Definitions::Followed)] {
        let access = Access::Kubeconfig { path: plane.kubeconfig(), context: None };
        let options = ConnectOptions { access, definitions, ..ConnectOptions::default() };
        let cluster: Arc<dyn Cluster> = Arc::new(KubeCluster::connect(&options).expect("a client"));
        let failed = check(&cluster, prefix, || std::thread::sleep(PAUSE));
        assert_eq!(failed, [""; 0], "{definitions:?}");
    }
}
