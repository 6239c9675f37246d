//! `--cluster` on a real API server, as somebody who may only read.

use std::path::Path;
use std::process::{Command, Output};

use ephor_install::crds;
use ephor_testbed::{ControlPlane, Controllers, Options};

const STORED: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: team-label
    match: {any: [{resources: {kinds: [ConfigMap, Namespace], names: [shop, colours]}}]}
    context: [{name: limits, configMap: {name: limits, namespace: shop}}]
    validate:
      message: 'the team is one of {{ limits.data.teams }}'
      deny: {conditions: {any: [{key: '{{ request.object.metadata.labels.team || ''none'' }}', operator: NotEquals, value: '{{ limits.data.teams }}'}]}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  rules:
  - name: signature
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [{imageReferences: ['*'], attestors: [{entries: [{keys: {publicKeys: k}}]}]}]
";

const OBJECTS: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: core}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: shop}, data: {teams: core}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: colours, namespace: shop}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: policies}, rules: [{apiGroups: [kyverno.io, policies.kyverno.io], resources: ['*'], verbs: [get, list]}, {apiGroups: [''], resources: [namespaces, configmaps], verbs: [get, list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: policies}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: policies}, subjects: [{kind: ServiceAccount, name: reader, namespace: default}]}
";

fn apply(plane: &ControlPlane, directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    plane.ask(&["apply", "-f", path.to_str().unwrap()]).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn who_may_only_read_can_judge_a_cluster() {
    // Every request is written down, to see what was asked.
    let directory = tempfile::tempdir().unwrap();
    let (rules, log) = (directory.path().join("audit.yaml"), directory.path().join("audit.log"));
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                  - {level: Metadata, users: ['system:serviceaccount:default:reader']}\n- {level: None}\n";
    std::fs::write(&rules, policy).unwrap();
    let flags = [("--audit-policy-file", &rules), ("--audit-log-path", &log)];
    let plane = ControlPlane::start(&Options {
        controllers: Controllers::Absent,
        api_server_flags: flags.iter().map(|(flag, path)| format!("{flag}={}", path.display())).collect(),
        ..Options::default()
    })
    .expect("a control plane");
    let definitions: Vec<String> = crds::all().iter().map(ephor_expr::yaml::to_yaml).collect();
    apply(&plane, directory.path(), "crds.yaml", &definitions.join("---\n"));
    plane.ask(&["wait", "--for=condition=Established", "crd", "--all"]).unwrap();
    apply(&plane, directory.path(), "objects.yaml", OBJECTS);
    apply(&plane, directory.path(), "stored.yaml", STORED);
    let reader = plane.service_account_kubeconfig("default", "reader").unwrap();
    let ephor = |words: &str| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
        command.args(words.split(' ')).arg("--kubeconfig").arg(&reader).output().unwrap()
    };

    let judged = ephor("apply --cluster");
    insta::assert_snapshot!(text(&judged.stdout), @"

    Applying 1 policy rule(s) to 9 resource(s)...
    policy require-team -> resource shop/ConfigMap/colours failed:
    1 - team-label the team is one of core
    ----------------------------------------------------------------------
    Policies Skipped:
    ----------------------------------------------------------------------
    1. signed: `verifyImages` is not supported yet
    ----------------------------------------------------------------------

    pass: 1, fail: 1, warn: 0, error: 1, skip: 0
    ");
    assert_eq!(judged.status.code(), Some(2), "a stored policy is refused: {}", text(&judged.stderr));

    let checked = ephor("check --cluster --output-format concise");
    insta::assert_snapshot!(text(&checked.stdout), @"ClusterPolicy/signed:16:5: error[not-supported]: `verifyImages` is not supported yet (spec.rules[0].verifyImages)");
    assert_eq!(checked.status.code(), Some(1));

    std::fs::write(directory.path().join("secrets.yaml"), STORED.replace("ConfigMap, Namespace", "Secret")).unwrap();
    let refused = ephor(&format!("apply {} --cluster", directory.path().join("secrets.yaml").display()));
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused.stderr);
    assert!(told.contains("cannot list secrets: secrets is forbidden"), "{told}");

    let log = std::fs::read_to_string(&log).unwrap();
    let verbs = log.lines().map(|line| ephor_expr::Value::from_json(line).unwrap());
    let verbs: std::collections::BTreeSet<String> =
        verbs.map(|event| event.str_at(&["verb"]).unwrap_or_default().to_owned()).collect();
    assert_eq!(verbs.into_iter().collect::<Vec<_>>(), ["get", "list"]);
}
