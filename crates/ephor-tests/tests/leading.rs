//! What a leader of admission writes, on a real API server: it must take it, and keep it as it was written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_admission::certs::{CertSettings, CertStore};
use ephor_admission::leading::Leading;
use ephor_admission::webhooks::break_glass;
use ephor_cluster::{Cluster, DeleteOptions, WriteOptions};
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_values};
use ephor_kube::{Access, ConnectOptions, Definitions, KubeCluster};
use ephor_runtime::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::lease::Term;
use ephor_runtime::policies::{ExceptionScope, PolicyStore};
use ephor_runtime::settings::AdmissionSettings;
use ephor_testbed::{ControlPlane, Options};
use jiff::Timestamp;

const VALIDATING: &str = "kyverno-resource-validating-webhook-cfg";

fn create(cluster: &dyn Cluster, text: &str) {
    for object in parse_values(text, &Limits::default()).expect("YAML") {
        let text = |key| object.str_at(&[key]).expect("a kind");
        // Definitions take a moment until their kinds are served.
        let begun = Instant::now();
        loop {
            let created = cluster
                .resolve(text("apiVersion"), text("kind"))
                .and_then(|resource| cluster.create(&resource, object.clone(), &WriteOptions::default()));
            match created {
                Ok(_) => break,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn eventually(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn policy(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{background: false, {spec} \
         rules: [{{name: r, match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, validate: {{failureAction: Enforce, \
         message: m, pattern: {{spec: {{hostNetwork: false}}}}}}}}]}}}}"
    )
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn an_api_server_takes_and_keeps_what_a_leader_writes() {
    let plane = ControlPlane::start(&Options::default()).expect("a control plane");
    let access = Access::Kubeconfig { path: plane.kubeconfig(), context: None };
    let options = ConnectOptions { access, definitions: Definitions::Followed, ..ConnectOptions::default() };
    let cluster: Arc<dyn Cluster> = Arc::new(KubeCluster::connect(&options).expect("a client"));
    let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/ephor/files/crds");
    for file in std::fs::read_dir(crds).expect("definitions") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        create(&*cluster, &text);
    }
    create(&*cluster, "{apiVersion: v1, kind: Namespace, metadata: {name: kyverno}}");
    let conditions = |expression: &str| {
        format!("webhookConfiguration: {{matchConditions: [{{name: a, expression: \"{expression}\"}}]}},")
    };
    for (name, spec) in [
        ("plain", String::new()),
        ("own", conditions("request.operation == 'CREATE'")),
        ("wrong", conditions("nobody.knows == 'this'")),
    ] {
        create(&*cluster, &policy(name, &spec));
    }

    let arguments = ["--serverIP=127.0.0.1:1".to_owned(), "--tlsKeyAlgorithm=ECDSA".to_owned()];
    let settings = AdmissionSettings::parse(&arguments, &std::collections::BTreeMap::new()).expect("settings");
    let stop = CancellationToken::new();
    let policies = PolicyStore::new(ExceptionScope::Disabled);
    assert!(policies.follow(&cluster, &stop).wait_synced(Duration::from_secs(30)));
    let config = ConfigStore::new("kyverno", "kyverno");
    let certs = CertStore::new(CertSettings::of(&settings));
    certs.follow(&cluster, &stop);
    let term = Term::unlimited(&stop);
    Leading::new(&cluster, &settings, &policies, &config, &certs).start(&term);

    let kind = cluster.resolve("kyverno.io/v1", "ClusterPolicy").expect("the kind");
    let ready = |name: &str| {
        let stored = cluster.get(&kind, None, name).expect("the policy");
        let conditions = stored.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        let text = |key| conditions.first().and_then(|c| c.str_at(&[key])).unwrap_or_default().to_owned();
        (text("status"), text("message"))
    };
    for name in ["plain", "own"] {
        eventually(name, || ready(name) == ("True".to_owned(), "Ready".to_owned()));
    }
    eventually("wrong", || ready("wrong").0 == "False");
    assert!(ready("wrong").1.contains("nobody"), "{:?}", ready("wrong"));
    let stored = cluster.get(&kind, None, "plain").expect("the policy");
    let rules = stored.at(&["status", "autogen", "rules"]).and_then(Value::as_array).expect("generated rules");
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0].at(&["validate", "pattern", "spec", "template", "spec", "hostNetwork"]), Some(&false.into()));
    assert!(certs.ready(Timestamp::now()).is_ok());

    let webhooks =
        cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration").expect("the kind");
    let configuration = || cluster.get(&webhooks, None, VALIDATING).expect("the configuration");
    let names = |configuration: &Value| -> Vec<String> {
        let webhooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        webhooks.iter().filter_map(|w| w.str_at(&["name"])).map(str::to_owned).collect()
    };
    assert_eq!(names(&configuration()), ["validate.kyverno.svc-fail", "validate.kyverno.svc-fail-finegrained-own"]);

    // What the API server stores is what was wanted: nothing is written again, whatever rings.
    let before = configuration();
    create(&*cluster, "{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: default}}");
    let unrelated = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.b.io}, \
                     spec: {group: b.io, scope: Cluster, names: {kind: A, plural: as}, versions: [{name: v1, served: \
                     true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}";
    create(&*cluster, unrelated);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(configuration(), before);

    cluster.delete(&webhooks, None, VALIDATING, &DeleteOptions::default()).expect("deleted");
    eventually("back", || cluster.get(&webhooks, None, VALIDATING).is_ok_and(|again| names(&again) == names(&before)));

    let until = Timestamp::now().checked_add(Duration::from_secs(4)).expect("a time");
    break_glass::open(&*cluster, until).expect("opened");
    let failure = || {
        let live = configuration();
        let first = live.get("webhooks").and_then(Value::as_array).and_then(<[Value]>::first).cloned();
        first.and_then(|webhook| webhook.str_at(&["failurePolicy"]).map(str::to_owned)).unwrap_or_default()
    };
    assert_eq!(failure(), "Ignore");
    eventually("closed again", || failure() == "Fail");
    assert!(Timestamp::now() >= until);
    stop.cancel();
}
