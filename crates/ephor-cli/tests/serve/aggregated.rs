//! The API of reports behind a real API server: kubectl reads reports that are stored nowhere.

use std::io::BufRead as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_api::delegated::DelegatedAccess;
use ephor_api::front_proxy::FrontProxy;
use ephor_api::reports::{Limits, router};
use ephor_cluster::Cluster;
use ephor_expr::Value;
use ephor_kube::{ConnectOptions, KubeCluster};
use ephor_reports::served::{self, ServedReports};
use ephor_reports::{Dialect, Scope};
use ephor_runtime::CancellationToken;
use ephor_testbed::{ControlPlane, Options};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A control plane that forwards `wgpolicyk8s.io` to reports in memory.
struct Aggregated {
    plane: ControlPlane,
    reports: ServedReports,
    port: u16,
    stop: CancellationToken,
}

impl Drop for Aggregated {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Aggregated {
    fn start() -> Self {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        let stop = CancellationToken::new();
        let access = ephor_kube::Access::Kubeconfig { path: plane.kubeconfig(), context: None };
        let options = ConnectOptions { access, ..ConnectOptions::default() };
        let cluster: Arc<dyn Cluster> = Arc::new(KubeCluster::connect(&options).unwrap());
        let front_proxy = FrontProxy::default();
        let watcher = front_proxy.follow(&cluster, &stop);
        while !(watcher.wait_synced(Duration::from_secs(1)) && front_proxy.is_known()) {}
        let reports = ServedReports::new(&[Dialect::WgPolicy], served::Limits::default(), jiff::Timestamp::now());
        let access = Arc::new(DelegatedAccess::new(cluster, front_proxy.clone()));
        let api = router(reports.clone(), access, || true, Limits::default(), &stop);

        let made = rcgen::generate_simple_self_signed(["reports.default.svc".to_owned()]).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut tls =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_client_cert_verifier(Arc::new(front_proxy))
                .with_single_cert(vec![made.cert.der().clone()], key)
                .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = stop.clone();
        std::thread::spawn(move || ephor_server::serve::aggregated(listener, Arc::new(tls), api, &serving).unwrap());

        let bundle = STANDARD.encode(made.cert.pem());
        let file = plane.directory().join("aggregated.yaml");
        let manifest = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: reports, namespace: default}}\nspec: {{type: ExternalName, \
             externalName: localhost}}\n---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {{name: \
             v1alpha2.wgpolicyk8s.io}}\nspec: {{group: wgpolicyk8s.io, version: v1alpha2, groupPriorityMinimum: 1000, \
             versionPriority: 10, caBundle: {bundle}, service: {{name: reports, namespace: default, port: {port}}}}}\n"
        );
        std::fs::write(&file, manifest).unwrap();
        plane.ask(&["apply", "-f", &file.display().to_string()]).unwrap();
        let aggregated = Self { plane, reports, port, stop };
        aggregated.eventually(&["get", "polr", "-A"], |answer| answer.is_ok());
        aggregated
    }

    fn report(&self, namespace: &str, uid: &str) {
        let scope = Scope {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: namespace.into(),
            name: "colours".into(),
            uid: uid.into(),
        };
        let result = Value::from([
            ("message", Value::from("too bright")),
            ("policy", Value::from("colours")),
            ("result", Value::from("fail")),
        ]);
        self.reports.set(&scope, vec![result], jiff::Timestamp::now());
    }

    /// Asks until the answer is as wanted; a test that hangs says more than one that gives up.
    fn eventually(&self, arguments: &[&str], wanted: impl Fn(Result<String, String>) -> bool) {
        while !wanted(self.plane.ask(arguments).map_err(|error| error.to_string())) {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn kubectl_reads_reports_that_are_stored_nowhere() {
    let cluster = Aggregated::start();
    cluster.report("default", "1eb95854-0000-4000-8000-000000000001");
    let table = cluster.plane.ask(&["get", "polr", "-A"]).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = ["NAMESPACE", "NAME", "KIND", "NAME", "PASS", "FAIL", "WARN", "ERROR", "SKIP", "AGE"];
    assert_eq!(rows.first().unwrap(), &head, "{table}");
    let name = "1eb95854-0000-4000-8000-000000000001";
    let cells = ["default", name, "ConfigMap", "colours", "0", "1", "0", "0", "0"];
    assert_eq!(rows.get(1).unwrap().get(..9).unwrap(), &cells, "{table}");
    let described = cluster.plane.ask(&["describe", "polr", name]).unwrap();
    assert!(described.contains("too bright") && described.contains("Scope:"), "{described}");
    let refused = cluster.plane.ask(&["delete", "polr", name]).unwrap_err().to_string();
    assert!(refused.contains("delete is not supported"), "{refused}");

    let mut watch = cluster.plane.kubectl();
    let mut watch = watch.args(["get", "polr", "-w", "-o", "name"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with(name));
    let second = "1eb95854-0000-4000-8000-000000000002";
    cluster.report("default", second);
    assert!(lines.next().unwrap().unwrap().ends_with(second));
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn who_may_read_reports_is_for_rbac_to_say_and_headers_alone_open_nothing() {
    let cluster = Aggregated::start();
    cluster.report("default", "1eb95854-0000-4000-8000-000000000001");
    let account = cluster.plane.service_account_kubeconfig("default", "reader").unwrap();
    let read = |arguments: &[&str]| {
        let mut command = cluster.plane.kubectl();
        let output = command.env("KUBECONFIG", &account).args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (ok, error) = read(&["get", "polr", "-n", "default"]);
    assert!(!ok && error.to_lowercase().contains("forbidden"), "{error}");
    cluster
        .plane
        .ask(&["create", "role", "reports", "--verb=get,list", "--resource=policyreports.wgpolicyk8s.io"])
        .unwrap();
    cluster
        .plane
        .ask(&["create", "rolebinding", "reports", "--role=reports", "--serviceaccount=default:reader"])
        .unwrap();
    while !read(&["get", "polr", "-n", "default"]).0 {
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!read(&["get", "polr", "-A"]).0);

    let url = format!("https://127.0.0.1:{}/apis/wgpolicyk8s.io/v1alpha2/policyreports", cluster.port);
    let forged =
        crate::load::client().get(&url).header("X-Remote-User", "admin").header("X-Remote-Group", "system:masters");
    let answer = forged.config().http_status_as_error(false).build().call().unwrap();
    assert_eq!(answer.status().as_u16(), 401);
}
