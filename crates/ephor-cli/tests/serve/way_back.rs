//! How users try Ephor, get past it in need, and take it out again.

use std::process::{Command, Output};

use crate::guarded::{Cluster, binary, policy};

/// Runs a command of Ephor's on the cluster; it must succeed.
fn ephor(cluster: &Cluster, arguments: &[&str]) -> String {
    let kubeconfig = cluster.plane.kubeconfig();
    let Output { status, stdout, stderr } =
        Command::new(binary()).args(arguments).arg("--kubeconfig").arg(kubeconfig).output().unwrap();
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

fn configurations(cluster: &Cluster) -> String {
    cluster.ask(&["get", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "-o", "name"])
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn a_shadow_lets_pass_glass_can_be_broken_and_nothing_stays_behind() {
    let mut cluster = Cluster::start();
    let rendered = Command::new(binary()).args(["install", "--print"]).output().unwrap();
    assert!(rendered.status.success());
    cluster.apply("install.yaml", &String::from_utf8(rendered.stdout).unwrap());
    cluster.apply("policy.yaml", &policy("require-team"));

    // A shadow is asked and counts, refuses nothing and says nothing about policies.
    cluster.scale(1, &["--shadow=true"]);
    let resources = "ephor-shadow-resource-validating-webhook-cfg";
    cluster.eventually("the shadow has webhooks", |c| {
        c.try_ask(&["get", "validatingwebhookconfiguration", resources, "-o", "jsonpath={.webhooks[*].name}"])
            .1
            .contains("ephor-shadow.svc")
    });
    cluster.eventually("the shadow has judged", |c| {
        let (created, text) = c.try_pod("default");
        assert!(created, "{text}");
        std::fs::read_to_string(c.plane.directory().join("ephor-1.log")).unwrap().contains("require-team")
    });
    assert!(!cluster.is_ready("require-team"));
    cluster.scale(0, &[]);

    cluster.scale(1, &[]);
    cluster.eventually("the policy is enforced", |c| c.refuses_by("require-team"));

    // Broken glass: while Ephor answers nothing changes; when it does not, requests pass.
    let said = ephor(&cluster, &["break-glass", "--for", "30m"]);
    assert!(said.starts_with("2 webhook configurations let requests through until "), "{said}");
    assert!(cluster.refuses_by("require-team"));
    cluster.replicas()[0].process.kill();
    cluster.eventually("requests pass", |c| c.try_pod("default").0);
    let events = cluster.ask(&["get", "events", "--all-namespaces", "-o", "jsonpath={.items[*].reason}"]);
    assert!(events.contains("BreakGlass"), "{events}");
    ephor(&cluster, &["break-glass", "--end"]);
    cluster.scale(0, &[]);
    cluster.scale(1, &[]);
    cluster.eventually("webhooks fail closed again", |c| {
        let kind = "validatingwebhookconfiguration";
        let path = "jsonpath={.webhooks[*].failurePolicy}";
        c.ask(&["get", kind, "kyverno-resource-validating-webhook-cfg", "-o", path]) == "Fail"
    });
    cluster.replicas()[0].process.kill();
    assert!(!cluster.try_pod("default").0);

    let listed = ephor(&cluster, &["uninstall", "--dry-run"]);
    assert!(!cluster.try_pod("default").0, "a dry run removes nothing");
    let removed = ephor(&cluster, &["uninstall", "--yes"]);
    assert_eq!(removed.lines().count(), listed.lines().count());
    assert!(removed.lines().next().unwrap().contains("WebhookConfiguration"), "webhooks first: {removed}");
    assert_eq!(configurations(&cluster), "");
    assert!(cluster.try_pod("default").0);
    assert!(cluster.ask(&["get", "clusterpolicies", "-o", "name"]).contains("require-team"), "policies are the user's");
}
