//! More than it can take at once.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::TlsConfig;

use crate::guarded::{Cluster, policy};

/// A client that trusts everybody and waits as long as an API server does by default.
pub(crate) fn client() -> Agent {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder().unversioned_rustls_crypto_provider(provider).disable_verification(true).build();
    Agent::config_builder()
        .tls_config(tls)
        .proxy(None)
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(10)))
        .build()
        .into()
}

/// A review of a ConfigMap-like Pod of about a megabyte.
fn large_review(number: usize) -> String {
    let filler: Vec<String> = (0..1000).map(|n| format!(r#""key-{n}":"{}""#, "x".repeat(1000))).collect();
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u{number}",
        "kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},
        "name":"p","namespace":"default","operation":"CREATE","userInfo":{{"username":"dev"}},
        "object":{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"default","annotations":{{{}}}}},
        "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#,
        filler.join(",")
    )
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn five_hundred_large_reviews_at_once() {
    let mut cluster = Cluster::start();
    cluster.apply("policy.yaml", &policy("require-team"));
    cluster.scale(1, &[]);
    cluster.eventually("the policy is enforced", |c| c.refuses_by("require-team"));
    let port = cluster.replicas()[0].port;
    let url = format!("https://127.0.0.1:{port}/validate/fail");
    let agent = client();
    let answers: Vec<(u16, String)> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..500)
            .map(|number| {
                let (agent, url) = (&agent, &url);
                std::thread::Builder::new()
                    .stack_size(256 << 10)
                    .spawn_scoped(scope, move || {
                        let request = agent.post(url).header("Content-Type", "application/json");
                        let mut response = request.send(large_review(number)).unwrap();
                        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
                    })
                    .unwrap()
            })
            .collect();
        asking.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // Each has its verdict, or is told that there is no room: then the API server does what the failure policy says.
    for (status, text) in &answers {
        let judged = *status == 200 && text.contains(r#""allowed":false"#) && text.contains("no team");
        assert!(judged || *status == 503, "{status} {text}");
    }
    assert!(answers.iter().any(|(status, _)| *status == 200));
    let replica = &mut cluster.replicas()[0];
    assert!(replica.process.is_running(), "{}", replica.process.log_end(30));
    let peak = peak_megabytes(Cluster::pid(port));
    // Two thirds of what the chart lets the container have.
    assert!(peak <= 256, "{peak} MB");
    assert!(cluster.refuses_by("require-team"));
}

/// The most memory that a process ever had.
fn peak_megabytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}
