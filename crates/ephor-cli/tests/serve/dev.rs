//! What the README says under "A real cluster", line by line, on a cluster that has nothing of Ephor.

use std::process::Command;
use std::time::{Duration, Instant};

use ephor_testbed::control_plane::free_port;
use ephor_testbed::{ControlPlane, Options};

use crate::guarded::binary;

/// How long anything may take before the test gives up on it.
const TIMEOUT: Duration = Duration::from_mins(2);

const UNPERMITTED: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unpermitted}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {apiVersion: v1, kind: PodTemplate, name: made, namespace: default, data: {template: {}}}
";

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn the_lines_of_the_readme_enforce_a_policy_and_leave_no_webhooks() {
    let plane = ControlPlane::start(&Options::default()).unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let kubeconfig = plane.kubeconfig().display().to_string();
    let lines = include_str!("../../../../README.md").lines();
    let lines = lines.map(|line| line.split('#').next().unwrap_or_default().trim().replace("FILE", &kubeconfig));
    let lines: Vec<String> = lines.collect();
    let words = |command: &str, part: &str| -> Vec<String> {
        let is_it = |line: &&String| line.starts_with(command) && line.contains(part) && line.contains(&kubeconfig);
        let line = lines.iter().find(is_it).unwrap_or_else(|| panic!("no line `{command} …{part}`"));
        line.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    let kubectl = |words: &[String]| {
        let output = plane.kubectl().args(words).current_dir(root).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };

    let port = free_port().unwrap().to_string();
    let mut dev = Command::new(binary()).args(words("ephor", " dev ")).args(["--port", &port]).spawn().unwrap();
    let mut eventually = |what: &str, holds: &mut dyn FnMut() -> Result<(), String>| {
        let until = Instant::now() + TIMEOUT;
        while let Err(why) = holds() {
            if Instant::now() >= until {
                let _ = dev.kill();
                panic!("{what}: never: {why}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    eventually("the policy is taken", &mut || match kubectl(&words("kubectl", " apply ")) {
        (true, _) => Ok(()),
        (false, text) => Err(text),
    });
    // Policies are checked as in an installation, whose background account may not create PodTemplates.
    let file = plane.directory().join("unpermitted.yaml");
    std::fs::write(&file, UNPERMITTED).unwrap();
    let create = ["create", "--dry-run=server", "-f", &file.display().to_string()].map(str::to_owned);
    eventually("the missing permission is named", &mut || match kubectl(&create) {
        (false, text) if text.contains("kyverno-background-controller requires permissions") => Ok(()),
        (_, text) => Err(text),
    });
    let mut run = words("kubectl", " run web ");
    run.push("--dry-run=server".to_owned());
    eventually("the Pod is refused", &mut || match kubectl(&run) {
        (false, text) if text.contains("allowed-registries") => Ok(()),
        (_, text) => Err(text),
    });

    let pid = dev.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(dev.wait().unwrap().success());
    let configurations = ["get", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "-o", "name"];
    assert_eq!(plane.ask(&configurations).unwrap(), "");
    let (created, text) = kubectl(&run);
    assert!(created, "{text}");
}
