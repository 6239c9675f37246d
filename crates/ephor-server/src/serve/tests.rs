//! The role on a cluster in memory, asked over TLS as an API server asks.

use std::collections::BTreeMap;

use ephor_cluster::{ListQuery, MemoryCluster, Resource, WriteOptions};
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_values};
use ephor_runtime::settings::AllSettings;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::*;

fn yaml(text: &str) -> Value {
    parse_values(text, &Limits::default()).unwrap().remove(0)
}

fn eventually<T>(what: impl Fn() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = what() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came");
}

/// A running role.
struct Running {
    cluster: Arc<dyn Cluster>,
    port: u16,
    stop: CancellationToken,
    thread: std::thread::JoinHandle<Result<(), ServeError>>,
}

impl Running {
    /// A cluster with the namespaces that every cluster has.
    fn cluster() -> Arc<dyn Cluster> {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let namespaces = cluster.resolve("v1", "Namespace").unwrap();
        for name in ["kyverno", "default"] {
            let namespace = yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"));
            let _ = cluster.create(&namespaces, namespace, &WriteOptions::default());
        }
        cluster
    }

    fn start(flags: &[&str]) -> Self {
        Self::start_in(Self::cluster(), flags)
    }

    fn start_in(cluster: Arc<dyn Cluster>, flags: &[&str]) -> Self {
        Self::run_in(cluster, flags, |cluster, flags, stop| {
            admission(cluster, &AdmissionSettings::parse(flags, &BTreeMap::new()).unwrap(), stop)
        })
    }

    /// Runs `run` with these flags and those that every test needs.
    fn run_in(
        cluster: Arc<dyn Cluster>,
        flags: &[&str],
        run: impl FnOnce(&Arc<dyn Cluster>, &[String], &CancellationToken) -> Result<(), ServeError> + Send + 'static,
    ) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut all = vec![
            format!("--webhookServerPort={port}"),
            "--serverIP=127.0.0.1".to_owned(),
            "--disableMetrics".to_owned(),
            "--tlsKeyAlgorithm=ECDSA".to_owned(),
        ];
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let stop = CancellationToken::new();
        let thread = std::thread::spawn({
            let (cluster, stop) = (Arc::clone(&cluster), stop.clone());
            move || run(&cluster, &all, &stop)
        });
        Self { cluster, port, stop, thread }
    }

    fn kind(&self, api_version: &str, kind: &str) -> Resource {
        self.cluster.resolve(api_version, kind).unwrap()
    }

    /// A client that trusts the role's CA, once there is one.
    fn client(&self) -> ureq::Agent {
        let secrets = self.kind("v1", "Secret");
        let pem = eventually(|| {
            let secret = self.cluster.get(&secrets, Some("kyverno"), "kyverno-svc.kyverno.svc.kyverno-tls-ca").ok()?;
            let encoded = secret.str_at(&["data", "tls.crt"])?.to_owned();
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).ok()
        });
        let root = Certificate::from_pem(&pem).unwrap();
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .root_certs(RootCerts::new_with_certs(&[root]))
            .build();
        ureq::Agent::config_builder().tls_config(tls).http_status_as_error(false).proxy(None).build().into()
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    fn ready(&self, client: &ureq::Agent) {
        eventually(|| client.get(self.url("/health/readiness")).call().ok().filter(|answer| answer.status() == 200));
    }

    /// Whether a Pod without labels is let in.
    fn allows(&self, client: &ureq::Agent) -> bool {
        let review = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",
            "kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},
            "name":"p","namespace":"default","operation":"CREATE","userInfo":{"username":"alice"},
            "object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"}}}}"#;
        let post = client.post(self.url("/validate/fail")).header("Content-Type", "application/json");
        let answer = Value::from_json(&post.send(review).unwrap().body_mut().read_to_string().unwrap()).unwrap();
        answer.at(&["response", "allowed"]) == Some(&Value::Bool(true))
    }

    fn apply_policy(&self) {
        let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: require}, spec: \
             {validationFailureAction: Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: \
             {message: denied, deny: {}}}]}}";
        let kind = self.kind("kyverno.io/v1", "ClusterPolicy");
        self.cluster.create(&kind, yaml(policy), &WriteOptions::default()).unwrap();
    }

    fn webhooks(&self, name: &str) -> usize {
        let kind = self.kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
        let found = self.cluster.get(&kind, None, name).ok();
        found.and_then(|found| found.get("webhooks").and_then(Value::as_array).map(<[_]>::len)).unwrap_or_default()
    }

    fn end(self) {
        self.stop.cancel();
        self.thread.join().unwrap().unwrap();
    }
}

#[test]
fn a_role_starts_from_nothing_and_ends_when_it_is_told() {
    let role = Running::start(&[]);
    let client = role.client();
    role.ready(&client);
    assert!(role.allows(&client));
    role.apply_policy();
    eventually(|| (!role.allows(&client)).then_some(()));
    eventually(|| (role.webhooks("kyverno-resource-validating-webhook-cfg") > 0).then_some(()));
    let (cluster, leases) = (Arc::clone(&role.cluster), role.kind("coordination.k8s.io/v1", "Lease"));
    role.end();
    let lease = cluster.get(&leases, Some("kyverno"), "kyverno").unwrap();
    assert_eq!(lease.str_at(&["spec", "holderIdentity"]), Some(""), "the lease is given back");
}

const GENERATES_AND_AUDITS: &str = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: both}, spec: {rules: \
     [{name: make, match: {any: [{resources: {kinds: [Namespace], names: [default]}}]}, generate: {generateExisting: true, \
     synchronize: true, apiVersion: v1, kind: ConfigMap, name: made, namespace: default, data: {data: {a: b}}}}, {name: \
     judge, match: {any: [{resources: {kinds: [ConfigMap], names: [made]}}]}, validate: {message: nope, deny: {}}}]}}";

#[test]
fn all_roles_work_in_one_process_and_give_their_leases_back() {
    let cluster = Running::cluster();
    let policies = cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
    cluster.create(&policies, yaml(GENERATES_AND_AUDITS), &WriteOptions::default()).unwrap();
    let maps = cluster.resolve("v1", "ConfigMap").unwrap();
    let aged = "{apiVersion: v1, kind: ConfigMap, metadata: {name: aged, namespace: default, labels: \
        {cleanup.kyverno.io/ttl: 1s}}}";
    cluster.create(&maps, yaml(aged), &WriteOptions::default()).unwrap();
    let role = Running::run_in(cluster, &[], |cluster, flags, stop| {
        all(cluster, cluster, &AllSettings::parse(flags, &BTreeMap::new()).unwrap(), stop)
    });
    let client = role.client();
    role.ready(&client);
    eventually(|| (role.webhooks("kyverno-resource-validating-webhook-cfg") > 0).then_some(()));
    eventually(|| role.cluster.get(&maps, Some("default"), "made").ok());
    let reports = role.kind("wgpolicyk8s.io/v1alpha2", "PolicyReport");
    eventually(|| {
        let found = role.cluster.list(&reports, &ListQuery::all()).ok()?.items;
        found.iter().any(|report| report.at(&["summary", "fail"]) == Some(&Value::Int(1))).then_some(())
    });
    eventually(|| role.cluster.get(&maps, Some("default"), "aged").err());
    let (cluster, leases) = (Arc::clone(&role.cluster), role.kind("coordination.k8s.io/v1", "Lease"));
    role.end();
    let held = cluster.list(&leases, &ListQuery::all()).unwrap().items;
    let names = held.iter().filter_map(|lease| lease.str_at(&["metadata", "name"]).map(str::to_owned));
    let names: Vec<String> = names.filter(|name| !name.ends_with("-health")).collect();
    assert_eq!(
        names,
        ["kyverno", "kyverno-background-controller", "kyverno-cleanup-controller", "kyverno-reports-controller"]
    );
    assert!(held.iter().all(|lease| lease.str_at(&["spec", "holderIdentity"]).unwrap_or_default().is_empty()));
}

#[test]
fn a_role_that_cannot_run_ends_them_all() {
    let process = Arc::new(Process::counting(&Running::cluster(), Metrics::default()));
    let stop = CancellationToken::new();
    let run = |_: &Process, _: &CancellationToken| Err(ServeError::Failed("as asked".into()));
    all::start("reports", &process, &stop, run).unwrap().join().unwrap();
    assert_eq!(stop.failure().as_deref(), Some("the reports role ended: as asked"));
}

#[test]
fn a_shadow_stands_beside_and_allows() {
    let role = Running::start(&["--shadow"]);
    let client = role.client();
    role.ready(&client);
    role.apply_policy();
    eventually(|| (role.webhooks("ephor-shadow-resource-validating-webhook-cfg") > 0).then_some(()));
    assert!(role.allows(&client));
    assert_eq!(role.webhooks("kyverno-resource-validating-webhook-cfg"), 0);
    role.end();
}

/// A review that no API server sent, of a user who claims a group that has all rights.
const FORGED: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"forged",
    "kind":{"group":"","version":"v1","kind":"Namespace"},"resource":{"group":"","version":"v1","resource":"namespaces"},
    "name":"team","namespace":"team","operation":"CREATE","userInfo":{"username":"mallory","groups":["system:masters"]},
    "object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","uid":"u1"}},"dryRun":false}}"#;

const BINDS_CREATOR: &str = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: bind}, spec: {background: false, \
     rules: [{name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {synchronize: false, apiVersion: v1, \
     kind: ConfigMap, name: creator, namespace: '{{ request.object.metadata.name }}', data: {data: {user: '{{ \
     request.userInfo.username }}'}}}}]}}";

#[test]
fn a_forged_review_hands_over_work_only_by_a_path_that_is_registered() {
    let role = Running::start(&[]);
    let kind = role.kind("kyverno.io/v1", "ClusterPolicy");
    role.cluster.create(&kind, yaml(BINDS_CREATOR), &WriteOptions::default()).unwrap();
    let client = role.client();
    role.ready(&client);
    let requests = role.kind("kyverno.io/v2", "UpdateRequest");
    let work = || role.cluster.list(&requests, &ListQuery::all()).unwrap().items.len();
    let post = |path: &str| {
        let post = client.post(role.url(path)).header("Content-Type", "application/json");
        let answer = post.send(FORGED).unwrap().body_mut().read_to_string().unwrap();
        assert!(answer.contains(r#""allowed":true"#), "{answer}");
    };
    let path = eventually(|| {
        let kind = role.kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
        let stored = role.cluster.get(&kind, None, "kyverno-resource-validating-webhook-cfg").ok()?;
        let webhook = stored.get("webhooks")?.as_array()?.first()?.clone();
        let client = webhook.get("clientConfig")?;
        client.str_at(&["service", "path"]).or_else(|| client.str_at(&["url"])).map(str::to_owned)
    });
    let path = &path[path.find("/validate").unwrap()..];
    assert!(path.contains("/proven/"), "{path}");
    let wrong = format!("{}{}", &path[..path.len() - 1], if path.ends_with('0') { '1' } else { '0' });
    for path in ["/validate", "/validate/fail", &wrong] {
        post(path);
        assert_eq!(work(), 0, "{path}");
    }
    post(path);
    assert_eq!(work(), 1);
    role.end();
}

#[test]
fn a_replica_accepts_the_path_that_is_registered_when_it_starts() {
    let token = "0123456789abcdef0123456789abcdef";
    let cluster = Running::cluster();
    let registered = format!(
        "{{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {{name: \
         kyverno-resource-mutating-webhook-cfg}}, webhooks: [{{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, \
         clientConfig: {{service: {{name: s, namespace: n, path: /mutate/fail/proven/{token}}}}}}}]}}"
    );
    let kind = cluster.resolve("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration").unwrap();
    cluster.create(&kind, yaml(&registered), &WriteOptions::default()).unwrap();
    let kind = cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
    cluster.create(&kind, yaml(BINDS_CREATOR), &WriteOptions::default()).unwrap();
    let role = Running::start_in(cluster, &[]);
    let client = role.client();
    role.ready(&client);
    let post =
        client.post(role.url(&format!("/validate/fail/proven/{token}"))).header("Content-Type", "application/json");
    assert_eq!(post.send(FORGED).unwrap().status(), 200);
    let requests = role.kind("kyverno.io/v2", "UpdateRequest");
    assert_eq!(role.cluster.list(&requests, &ListQuery::all()).unwrap().items.len(), 1);
    role.end();
}

#[test]
fn callers_show_a_certificate_where_one_is_asked_for() {
    let made = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), made.cert.pem()).unwrap();
    let role = Running::start(&[&format!("--clientCAFile={}", file.path().display())]);
    let client = role.client();
    // Probes show none.
    role.ready(&client);
    let post = client.post(role.url("/validate/fail")).header("Content-Type", "application/json");
    assert_eq!(post.send("{}").unwrap().status(), 403);
    role.end();
}

#[test]
fn the_server_listens_where_callers_reach_it() {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    // An address for documentation, which no machine has.
    let elsewhere = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    for (own, everywhere) in [(Some(loopback), false), (Some(elsewhere), true), (None, true)] {
        let address = listen(own, 0).unwrap().local_addr().unwrap();
        assert_eq!(address.ip().is_unspecified(), everywhere, "{own:?}: {address}");
    }
}

#[test]
fn metrics_of_a_server_on_loopback_are_served_there_only() {
    for (host, loopback) in [("127.0.0.1", true), ("localhost", true), ("::1", true), ("192.0.2.1", false)] {
        let flags = [format!("--serverIP={host}")];
        let settings = AdmissionSettings::parse(&flags, &BTreeMap::new()).unwrap();
        assert_eq!(own_address(&settings).is_some_and(|own| own.is_loopback()), loopback, "{host}");
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let flags = [format!("--metricsPort={port}"), "--serverIP=localhost".to_owned()];
    let settings = AdmissionSettings::parse(&flags, &BTreeMap::new()).unwrap();
    let stop = CancellationToken::new();
    let _process = Process::start(&Running::cluster(), &settings.common, own_address(&settings), &stop).unwrap();
    // A listener on all addresses would have this one too.
    assert!(TcpListener::bind(("127.0.0.2", port)).is_ok());
    stop.cancel();
}

#[tokio::test]
#[should_panic(expected = "as asked")]
async fn serving_ends_when_what_would_drain_it_panics() {
    serve_and_drain(std::future::pending::<()>(), async { panic!("as asked") }).await;
}
