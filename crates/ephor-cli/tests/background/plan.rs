//! `ephor plan --cluster`, and what then happens.

use std::path::Path;
use std::process::{Command, Output};

use ephor_expr::{Value, yaml};

use crate::processes::Sandbox;
use crate::remote::{Remote, TIMEOUT, within};

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: limits}
spec:
  rules:
  - name: limits
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {team: '*'}}}}]}
    generate:
      generateExisting: true
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: limits
      namespace: '{{ request.object.metadata.name }}'
      data: {data: {pods: '10'}}
";

fn parse(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

fn run(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
    command.args(["plan", "--cluster", "--exit-code", "--kubeconfig"]).arg(kubeconfig).args(arguments);
    command.output().unwrap()
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

/// The last line of a plan, and its exit code.
fn plan(kubeconfig: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = run(kubeconfig, arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (last_line(&output), output.status.code())
}

/// A cluster at rest: nothing is left to be done, though there may be rules whose sources are missing.
pub(crate) fn assert_at_rest(kubeconfig: &Path) {
    let output = run(kubeconfig, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    let at_rest = text.starts_with("nothing to do") || text.starts_with("0 to create, 0 to change, 0 to delete");
    assert!(at_rest, "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_plan_for_a_cluster_comes_true() {
    let sandbox = Sandbox::start();
    let kubeconfig = sandbox.kubeconfig();
    let remote = Remote::connect(&kubeconfig);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let shop = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: core}}}";
    let (policy, namespace) = (file("policy.yaml", POLICY), file("shop.yaml", shop));
    let limits = parse("{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: shop}}");
    let pods = || Some(remote.read(&limits)?.str_at(&["data", "pods"])?.to_owned());
    let nothing = ("nothing to do".to_owned(), Some(0));
    let one = |words: &str| (words.to_owned(), Some(1));

    assert_eq!(plan(&kubeconfig, &[]), nothing);
    remote.apply(&parse(shop)).unwrap();
    assert_eq!(plan(&kubeconfig, &[&policy]), one("1 to create, 0 to change, 0 to delete"));
    remote.apply(&parse(POLICY)).unwrap();
    assert!(within(TIMEOUT, || pods().is_some()));

    assert_eq!(plan(&kubeconfig, &[]), nothing);
    assert_eq!(plan(&kubeconfig, &[&policy]), nothing);
    let more = POLICY.replace("'10'", "'20'");
    assert_eq!(plan(&kubeconfig, &[&file("more.yaml", &more)]), one("0 to create, 1 to change, 0 to delete"));
    remote.apply(&parse(&more)).unwrap();
    assert!(within(TIMEOUT, || pods().as_deref() == Some("20")));

    let yard = shop.replace("shop", "yard");
    assert_eq!(
        plan(&kubeconfig, &["--resource", &file("yard.yaml", &yard)]),
        one("1 to create, 0 to change, 0 to delete")
    );
    let without_team = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: null}}}";
    let gone = one("0 to create, 0 to change, 1 to delete");
    assert_eq!(plan(&kubeconfig, &["--resource", &file("less.yaml", without_team)]), gone);
    assert_eq!(plan(&kubeconfig, &["--delete", &namespace]), gone);
    assert_eq!(plan(&kubeconfig, &["--delete", &policy]), gone);
    assert_eq!(pods().as_deref(), Some("20"), "plans change nothing");
    remote.delete(&parse(POLICY)).unwrap();
    assert!(within(TIMEOUT, || pods().is_none()));
}
