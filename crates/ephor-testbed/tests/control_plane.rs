//! A control plane does what tests of policies rely on.
//!
//! These need the executables: `cargo xtask cluster build`, then `cargo test -p ephor-testbed -- --ignored`.

use std::time::Duration;

use ephor_testbed::{ControlPlane, Options};

/// Asks until the answer is as wanted; a test that hangs says more than one that gives up.
fn wait_for(plane: &ControlPlane, arguments: &[&str], wanted: impl Fn(Result<&str, &str>) -> bool) {
    loop {
        let answer = plane.ask(arguments).map_err(|error| error.to_string());
        if wanted(answer.as_deref().map_err(String::as_str)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn a_control_plane_serves_authorizes_collects_and_cleans_up() {
    let node = Some("kind-control-plane".to_owned());
    let mut plane = ControlPlane::start(&Options { node, ..Options::default() }).unwrap();
    let beside = ControlPlane::start(&Options::default()).unwrap();
    assert_ne!(plane.url(), beside.url());

    let who = plane.ask(&["auth", "whoami", "-o", "json"]).unwrap();
    for part in ["kubernetes-admin", "kubeadm:cluster-admins", "system:masters"] {
        assert!(who.contains(part), "{who}");
    }
    assert!(plane.ask(&["get", "node", "kind-control-plane"]).unwrap().contains("Ready"));
    assert!(beside.ask(&["get", "node", "kind-control-plane"]).is_err());

    // A service account may do what RBAC says, and nothing else.
    let account = plane.service_account_kubeconfig("kyverno", "tester").unwrap();
    let list = || {
        let mut command = plane.kubectl();
        command.env("KUBECONFIG", &account).args(["get", "configmaps", "--namespace", "kyverno"]);
        command.output().unwrap()
    };
    let refusal = String::from_utf8(list().stderr).unwrap();
    assert!(refusal.contains(r#"User "system:serviceaccount:kyverno:tester" cannot list"#), "{refusal}");
    plane.ask(&["create", "clusterrolebinding", "t", "--clusterrole=view", "--serviceaccount=kyverno:tester"]).unwrap();
    while !list().status.success() {
        std::thread::sleep(Duration::from_millis(50));
    }

    // Controllers make Pods from Deployments, and remove what is owned or contained.
    plane.ask(&["create", "deployment", "web", "--image=nginx", "--namespace", "kyverno"]).unwrap();
    let pods = ["get", "pods", "--namespace", "kyverno", "--output", "name"];
    wait_for(&plane, &pods, |answer| answer.is_ok_and(|names| names.starts_with("pod/web-")));
    plane.ask(&["delete", "deployment", "web", "--namespace", "kyverno"]).unwrap();
    wait_for(&plane, &pods, |answer| answer.is_ok_and(str::is_empty));

    let url = plane.url().to_owned();
    plane.stop_api_server();
    assert!(plane.ask(&["get", "namespaces"]).is_err());
    plane.start_api_server().unwrap();
    assert_eq!(plane.url(), url);
    assert!(plane.ask(&["get", "namespace", "kyverno"]).is_ok(), "what was stored is still there");

    let directory = plane.directory().to_owned();
    assert!(directory.exists());
    drop(plane);
    assert!(!directory.exists());
    assert!(beside.ask(&["get", "namespaces"]).is_ok(), "the other one is not touched");
}
