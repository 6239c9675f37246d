use clap::Parser;
use ephor_engine::exceptions::Exception;
use ephor_expr::{Value, yaml};

use super::{Args, Command};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn created(line: &[&str]) -> Value {
    let line = Line::try_parse_from(["create"].iter().chain(line)).unwrap();
    match line.args.command {
        Command::ClusterRole(args) => args.document(),
        Command::Exception(args) => args.document(),
        Command::MetricsConfig(args) => args.document(),
        Command::Test(args) => args.document(),
        Command::UserInfo(args) => args.document(),
        Command::Values(args) => args.document(),
    }
}

fn refused(line: &[&str]) -> String {
    let error = Line::try_parse_from(["create"].iter().chain(line)).unwrap_err().to_string();
    error.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn exceptions_are_those_that_the_engine_takes() {
    let document = created(&[
        "exception",
        "e",
        "--policy-rules",
        "p,r1,r2",
        "--any",
        "kind=Pod,kind=Deployment,name=test-*",
        "--namespace",
        "ns",
        "--background=false",
    ]);
    insta::assert_snapshot!(yaml::to_yaml(&document), @r#"
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: e
  namespace: ns
spec:
  background: false
  exceptions:
  - policyName: p
    ruleNames:
    - r1
    - r2
  match:
    any:
    - resources:
        kinds:
        - Pod
        - Deployment
        names:
        - test-*
"#);
    assert!(Exception::compile(&document).is_ok());
}

#[test]
fn tests_have_the_current_schema() {
    let document = created(&[
        "test",
        "-p",
        "policy.yaml",
        "-r",
        "a.yaml,b.yaml",
        "-f",
        "values.yaml",
        "--pass",
        "p,r,pod,ns,Pod",
        "--fail",
        "p,r,bad",
    ]);
    insta::assert_snapshot!(yaml::to_yaml(&document), @r#"
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata:
  name: test-name
policies:
- policy.yaml
resources:
- a.yaml
- b.yaml
results:
- kind: Pod
  policy: p
  resources:
  - ns/pod
  result: pass
  rule: r
- policy: p
  resources:
  - bad
  result: fail
  rule: r
variables: values.yaml
"#);
}

#[test]
fn values_are_grouped_by_policy() {
    let document = created(&[
        "values",
        "-g",
        "request.mode=dev",
        "-n",
        "prod,env=prod",
        "--rule",
        "p,r,env=demo",
        "--rule",
        "p,s,a=1,b=2",
        "--resource",
        "q,pod,env=demo",
    ]);
    insta::assert_snapshot!(yaml::to_yaml(&document), @r#"
apiVersion: cli.kyverno.io/v1alpha1
globalValues:
  request.mode: dev
kind: Values
metadata:
  name: values
namespaceSelector:
- labels:
    env: prod
  name: prod
policies:
- name: p
  rules:
  - name: r
    values:
      env: demo
  - name: s
    values:
      a: "1"
      b: "2"
- name: q
  resources:
  - name: pod
    values:
      env: demo
"#);
}

#[test]
fn users_have_groups_and_roles() {
    let document = created(&["user-info", "-u", "molly", "-g", "dev,ops", "-c", "admin", "-r", "ns:deployer"]);
    insta::assert_snapshot!(yaml::to_yaml(&document), @r#"
apiVersion: cli.kyverno.io/v1alpha1
clusterRoles:
- admin
kind: UserInfo
metadata:
  name: user-info
roles:
- ns:deployer
userInfo:
  groups:
  - dev
  - ops
  username: molly
"#);
}

#[test]
fn cluster_roles_aggregate_to_controllers() {
    let document = created(&["cluster-role", "secrets", "-g", "", "--resources", "secrets", "--verbs", "all"]);
    insta::assert_snapshot!(yaml::to_yaml(&document), @r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    rbac.kyverno.io/aggregate-to-background-controller: "true"
  name: kyverno-secrets-permission
rules:
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - create
  - delete
  - get
  - list
  - update
  - watch
"#);
}

#[test]
fn metrics_are_configured_by_a_config_map() {
    let document = created(&["metrics-config", "-i", "a", "-i", "b", "-e", "c"]);
    insta::assert_snapshot!(yaml::to_yaml(&document), @r#"
apiVersion: v1
data:
  namespaces: '{"exclude":["c"],"include":["a","b"]}'
kind: ConfigMap
metadata:
  name: kyverno-metrics
  namespace: kyverno
"#);
}

#[test]
fn bad_arguments_are_refused_with_the_reason() {
    let refusals: Vec<String> = [
        &["exception", "e", "--policy-rules", "p", "--any", "kind=Pod"][..],
        &["exception", "e", "--policy-rules", "p,r", "--any", "kinds=Pod"],
        &["exception", "e", "--policy-rules", "p,r", "--any", "name=x"],
        &["exception", "e", "--policy-rules", "p,r", "--any", "kind=Pod,operation=create"],
        &["test", "--pass", "p,r"],
        &["values", "-g", "a"],
        &["values", "--rule", "p,a=1"],
    ]
    .into_iter()
    .map(refused)
    .collect();
    insta::assert_snapshot!(refusals.join("\n"), @r#"
error: invalid value 'p' for '--policy-rules <POLICY,RULE,…>': `p` is not a policy and its rules, `policy,rule,…`
error: invalid value 'kinds=Pod' for '--any <FILTER>': unknown attribute `kinds`; did you mean `kind`?
error: invalid value 'name=x' for '--any <FILTER>': `name=x` has no `kind=`
error: invalid value 'kind=Pod,operation=create' for '--any <FILTER>': `create` is not one of CREATE, UPDATE, DELETE, CONNECT
error: invalid value 'p,r' for '--pass <EXPECTATION>': `p,r` is not of the form `policy,rule,resource[,namespace[,kind]]`
error: invalid value 'a' for '--global <KEY=VALUE>': `a` is not of the form `key=value`
error: invalid value 'p,a=1' for '--rule <POLICY,RULE,KEY=VALUE,…>': `p,a=1` does not start with 2 names
"#);
}
