//! Deaths, restarts, and what others left behind.

use crate::guarded::{Cluster, policy};

const CONFIGURATION: &str = "kyverno-resource-validating-webhook-cfg";

/// The webhooks as they are registered.
fn registered(cluster: &Cluster) -> String {
    cluster.ask(&["get", "validatingwebhookconfiguration", CONFIGURATION, "-o", "jsonpath={.webhooks}"])
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn the_life_of_an_installation() {
    let mut cluster = Cluster::start();
    let policies: Vec<String> = (0..50).map(|n| policy(&format!("require-team-{n:02}"))).collect();
    cluster.apply("policies.yaml", &policies.join("---\n"));
    cluster.scale(3, &[]);
    cluster.eventually("policies are enforced", |c| c.refuses_by("require-team-49"));
    cluster.eventually("policies are Ready", |c| c.is_ready("require-team-00") && c.is_ready("require-team-49"));
    let before = registered(&cluster);

    // All replicas die. What they guard stays closed, their own namespace stays open, and nothing is unregistered.
    for replica in cluster.replicas() {
        replica.process.kill();
    }
    assert_eq!(registered(&cluster), before);
    let (created, text) = cluster.try_pod("default");
    assert!(!created && text.contains("failed calling webhook"), "{text}");
    let (created, text) = cluster.try_pod("kyverno");
    assert!(created, "{text}");

    // Scaled to none and back, started cold: it comes back unaided.
    cluster.scale(0, &[]);
    assert_eq!(registered(&cluster), before);
    cluster.scale(3, &[]);
    cluster.eventually("policies are enforced again", |c| c.refuses_by("require-team-49"));
    assert_eq!(registered(&cluster), before);

    // The API server goes and comes back: what is written then is followed.
    cluster.plane.restart_api_server().unwrap();
    cluster.apply("late.yaml", &policy("require-team-late"));
    cluster.eventually("a policy after the restart is enforced", |c| c.refuses_by("require-team-late"));
    cluster.eventually("and Ready", |c| c.is_ready("require-team-late"));
    for replica in cluster.replicas() {
        assert!(replica.process.is_running(), "{}", replica.process.log_end(30));
    }
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn another_version_and_upstream_leave_things_behind() {
    let mut cluster = Cluster::start();
    // What upstream stores: a lease of a Pod that is gone, webhooks to a service that is, certificates that have ended,
    // a policy with a status of its own.
    cluster.apply(
        "lease.yaml",
        "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kyverno, namespace: kyverno}, \
        spec: {holderIdentity: kyverno-admission-controller-5f7c9d-x2x, leaseDurationSeconds: 12, leaseTransitions: 3, \
        acquireTime: '2026-01-01T00:00:00.000000Z', renewTime: '2026-01-01T00:00:00.000000Z'}}",
    );
    cluster.apply("webhooks.yaml", &format!("{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, \
        metadata: {{name: {CONFIGURATION}, labels: {{webhook.kyverno.io/managed-by: kyverno}}}}, webhooks: [{{\
        name: validate.kyverno.svc-fail, admissionReviewVersions: [v1], sideEffects: NoneOnDryRun, failurePolicy: Ignore, timeoutSeconds: 1, \
        clientConfig: {{service: {{name: kyverno-svc, namespace: kyverno, path: /validate/fail}}}}, \
        rules: [{{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}}]}}]}}"));
    for kind in ["ca", "pair"] {
        let name = format!("kyverno-svc.kyverno.svc.kyverno-tls-{kind}");
        let (certificate, key) = ended_certificate();
        let (certificate, key) = (cluster.file("tls.crt", &certificate), cluster.file("tls.key", &key));
        cluster.ask(&["create", "secret", "tls", &name, "-n", "kyverno", "--cert", &certificate, "--key", &key]);
        cluster.ask(&["label", "secret", &name, "-n", "kyverno", "cert.kyverno.io/managed-by=kyverno"]);
    }
    cluster.apply("policy.yaml", &policy("require-team"));
    cluster.scale(2, &[]);
    cluster.eventually("the policy is enforced", |c| c.refuses_by("require-team"));
    cluster.eventually("and Ready", |c| c.is_ready("require-team"));

    // A later version adds what this one does not know; this one comes back and is still in charge.
    cluster.ask(&["annotate", "clusterpolicy", "require-team", "example.com/later=1"]);
    cluster.scale(0, &[]);
    let later = r#"[{"op":"add","path":"/metadata/annotations","value":{"example.com/later":"1"}},
        {"op":"replace","path":"/webhooks/0/name","value":"later.kyverno.svc-fail"}]"#;
    cluster.ask(&["patch", "validatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p", later]);
    cluster.scale(2, &[]);
    cluster.eventually("the webhooks are its own again", |c| !registered(c).contains("later.kyverno.svc-fail"));
    cluster.eventually("the policy is enforced", |c| c.refuses_by("require-team"));
}

/// A certificate of the year 2020, and its key.
fn ended_certificate() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["kyverno-svc.kyverno.svc".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2020, 2, 1);
    (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
}
