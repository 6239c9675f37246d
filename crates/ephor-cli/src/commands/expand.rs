//! `ephor expand`: policies with what auto-gen makes of them.
//!
//! Rules follow the declared ones. A policy in CEL has its forms in its status, where a cluster shows them.

use clap::ValueEnum;
use ephor_cluster::Discovery;
use ephor_engine::autogen::{self, Eligibility, Ineligible};
use ephor_engine::compile::compile;
use ephor_engine::policy::{Match, Policy, Rule};
use ephor_expr::value::{Path, decode};
use ephor_expr::{Str, Value, yaml};

use super::CommandResult;
use crate::exit::Exit;
use crate::load::{LoadedPolicy, load_policies};
use crate::locate::Located;
use crate::output::plain;
use crate::ui::Ui;

/// Arguments of `ephor expand`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor expand policy.yaml
  ephor expand policies/ --rules-only
  ephor expand policies/ --output-format json | jq '.items[].spec.rules[].name'

Rules on Pods that cannot be rewritten for controllers are listed on standard error, with the reason. What auto-gen makes
of a ValidatingPolicy or MutatingPolicy stands in `status.autogen.configs`, as in a cluster.")]
pub(super) struct Args {
    /// Policy files, directories, globs, or `-` for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// How to print.
    #[arg(long, short, default_value = "yaml", value_name = "FORMAT")]
    output_format: Format,
    /// Print the added rules alone, by policy.
    #[arg(long)]
    rules_only: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

/// Prints the policies. Those that are refused are findings, and the exit code says so.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let loaded = load_policies(&args.paths, Discovery::kubernetes());
    let errors: Vec<Located> = loaded.findings.into_iter().filter(Located::is_error).collect();
    ui.findings(&errors);
    let mut documents = Vec::with_capacity(loaded.policies.len());
    for policy in &loaded.policies {
        let (document, notes) = expanded(policy, args.rules_only);
        if !ui.quiet() {
            for note in &notes {
                ui.say(note);
            }
        }
        documents.push(document);
    }
    let text = match args.output_format {
        Format::Yaml => documents.iter().map(yaml::to_yaml).collect::<Vec<_>>().join("---\n"),
        Format::Json => format!("{}\n", plain::json(&list(documents))),
    };
    ui.result(&text)?;
    Ok(if errors.is_empty() { Exit::Clean } else { Exit::CouldNot })
}

fn list(items: Vec<Value>) -> Value {
    Value::from([("apiVersion", Value::from("v1")), ("kind", Value::from("List")), ("items", Value::array(items))])
}

/// What is printed for a policy, and a line for each of its rules on Pods that auto-gen leaves out.
fn expanded(loaded: &LoadedPolicy, rules_only: bool) -> (Value, Vec<String>) {
    if loaded.program.id.kind.is_of_cel() {
        return expanded_cel(loaded, rules_only);
    }
    // What compiled also decodes.
    let policy: Policy = decode(&loaded.document).unwrap_or_default();
    let added: Vec<Value> = autogen::expand(&loaded.document, &policy).into_iter().map(|g| g.rule).collect();
    let notes = notes(&policy, &loaded.program.key);
    if rules_only {
        let document =
            Value::from([("policy", Value::from(loaded.program.key.clone())), ("rules", Value::array(added))]);
        return (document, notes);
    }
    let mut document = loaded.document.clone();
    let rules = Path::root().keys(&["spec", "rules"]);
    if let Some(rules) = rules.lookup_mut(&mut document).and_then(Value::as_array_mut) {
        rules.extend(added);
    }
    (document, notes)
}

/// The same for a policy in CEL.
fn expanded_cel(loaded: &LoadedPolicy, rules_only: bool) -> (Value, Vec<String>) {
    let key = &loaded.program.key;
    let configs = compile(&loaded.document).description.configs;
    let reason = if configs.is_empty() { unexpanded(&loaded.document) } else { None };
    let notes = reason.map(|reason| format!("{key}: the policy is not expanded: {reason}")).into_iter().collect();
    if rules_only {
        return (Value::from([("policy", Value::from(key.clone())), ("configs", Value::object(configs))]), notes);
    }
    let mut document = loaded.document.clone();
    if !configs.is_empty()
        && let Some(members) = document.as_object_mut()
    {
        let mut status = members.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        status.insert("autogen", Value::from([("configs", Value::object(configs))]));
        members.insert("status", status);
    }
    (document, notes)
}

/// Why nothing is made of a policy in CEL whose author may expect it: of those kinds that auto-gen knows, one that
/// names Pods.
fn unexpanded(document: &Value) -> Option<&'static str> {
    let spec = document.get("spec")?;
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).unwrap_or_default().to_vec();
    let rules = list(spec.get("matchConstraints")?, "resourceRules");
    let names_pods = |rule: &Value| list(rule, "resources").iter().any(|resource| resource.as_str() == Some("pods"));
    let is_known = document.str_at(&["kind"]).is_some_and(|kind| {
        let kind = kind.strip_prefix("Namespaced").unwrap_or(kind);
        matches!(kind, "ValidatingPolicy" | "MutatingPolicy")
    });
    if !is_known || !rules.iter().any(names_pods) {
        return None;
    }
    let controllers = spec.at(&["autogen", "podControllers", "controllers"]).and_then(Value::as_array);
    Some(if controllers.is_some_and(<[_]>::is_empty) {
        "`autogen.podControllers.controllers` turns auto-gen off"
    } else if list(spec, "mutations").iter().any(|mutation| mutation.get("jsonPatch").is_some()) {
        "it has a JSON patch, whose paths are those of a Pod"
    } else {
        "auto-gen needs one resource rule, on `pods` of `v1` alone, without names, exclusions and an object selector"
    })
}

fn notes(policy: &Policy, key: &Str) -> Vec<String> {
    let off = autogen::controllers(policy).is_empty();
    let eligibility = Eligibility::of(policy);
    let rules = policy.spec.rules.iter();
    rules
        .filter_map(|rule| match eligibility.check(rule) {
            Ok(()) if off => Some(format!(
                "{key}: rule `{}` is not expanded: the annotation `{}` turns auto-gen off",
                rule.name,
                autogen::ANNOTATION
            )),
            Err(Ineligible::Named) => None,
            Err(reason) if names_pods(rule) => Some(format!("{key}: rule `{}` is not expanded: {reason}", rule.name)),
            Ok(()) | Err(_) => None,
        })
        .collect()
}

/// Whether a rule is written for Pods among others, so that its author may expect it to be expanded.
fn names_pods(rule: &Rule) -> bool {
    let Match { any, all, resources, .. } = &rule.matches;
    let listed = any.iter().chain(all).flatten().filter_map(|filter| filter.resources.as_ref());
    listed
        .chain(resources)
        .flat_map(|r| r.kinds.iter().flatten())
        .any(|kind| matches!(kind.as_str(), "Pod" | "v1/Pod" | "*/Pod"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::load::{LoadedPolicies, load_file};
    use crate::locate::SourceFile;

    fn expand_text(text: &str, rules_only: bool) -> String {
        let mut loaded = LoadedPolicies::default();
        load_file(&Arc::new(SourceFile { name: "policy.yaml".to_owned(), text: text.to_owned() }), &mut loaded);
        assert!(loaded.findings.is_empty(), "{:?}", loaded.findings);
        let policy = loaded.policies.first().unwrap();
        let (document, notes) = expanded(policy, rules_only);
        yaml::to_yaml(&document) + &notes.join("\n")
    }

    #[test]
    fn rules_for_controllers_follow_the_declared_ones() {
        let text = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: no host network
      pattern: {spec: {hostNetwork: false}}
";
        insta::assert_snapshot!(expand_text(text, false), @r#"
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: p
spec:
  rules:
  - match:
      any:
      - resources:
          kinds:
          - Pod
    name: r
    validate:
      message: no host network
      pattern:
        spec:
          hostNetwork: false
  - match:
      any:
      - resources:
          kinds:
          - apps/v1/DaemonSet
          - apps/v1/Deployment
          - batch/v1/Job
          - apps/v1/ReplicaSet
          - v1/ReplicationController
          - apps/v1/StatefulSet
    name: autogen-r
    validate:
      message: no host network
      pattern:
        spec:
          template:
            spec:
              hostNetwork: false
  - match:
      any:
      - resources:
          kinds:
          - batch/v1/CronJob
    name: autogen-cronjob-r
    validate:
      message: no host network
      pattern:
        spec:
          jobTemplate:
            spec:
              template:
                spec:
                  hostNetwork: false
"#);
    }

    /// A policy in CEL with more members of its spec, about Pods.
    fn cel(kind: &str, more: &str) -> String {
        format!(
            "{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {{name: p}}, spec: {{matchConstraints: \
             {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]}}, {more}}}}}"
        )
    }

    #[test]
    fn forms_of_policies_in_cel_stand_where_a_cluster_shows_them() {
        let policy = cel(
            "ValidatingPolicy",
            "autogen: {podControllers: {controllers: [deployments]}}, validations: [{expression: object.spec.hostNetwork \
             == false}]",
        );
        let alone = expand_text(&policy, true);
        insta::assert_snapshot!(alone, @r#"
configs:
  defaults:
    spec:
      autogen:
        podControllers:
          controllers:
          - deployments
      matchConstraints:
        resourceRules:
        - apiGroups:
          - apps
          apiVersions:
          - v1
          operations:
          - CREATE
          resources:
          - deployments
      validations:
      - expression: object.spec.template.spec.hostNetwork == false
    targets:
    - group: apps
      kind: Deployment
      resource: deployments
      version: v1
policy: p
"#);
        let document = yaml::parse_value(&expand_text(&policy, false)).unwrap();
        let declared = yaml::parse_value(&policy).unwrap();
        assert_eq!(document.get("spec"), declared.get("spec"));
        let configs = yaml::parse_value(&alone).unwrap().get("configs").cloned();
        assert_eq!(document.at(&["status", "autogen", "configs"]), configs.as_ref());
    }

    #[test]
    fn the_reason_is_given_where_a_policy_in_cel_is_left_out() {
        let validation = "validations: [{expression: 'true'}]";
        for (policy, want) in [
            (
                cel("ValidatingPolicy", &format!("autogen: {{podControllers: {{controllers: []}}}}, {validation}")),
                "p: the policy is not expanded: `autogen.podControllers.controllers` turns auto-gen off",
            ),
            (
                cel("ValidatingPolicy", validation).replace("[pods]", "[pods, services]"),
                "p: the policy is not expanded: auto-gen needs one resource rule, on `pods` of `v1` alone, without names, \
                 exclusions and an object selector",
            ),
            (
                cel(
                    "MutatingPolicy",
                    "mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/a\"}]'}}]",
                ),
                "p: the policy is not expanded: it has a JSON patch, whose paths are those of a Pod",
            ),
            (cel("ValidatingPolicy", validation).replace("[pods]", "[services]"), ""),
            (cel("DeletingPolicy", "schedule: '@daily'"), ""),
        ] {
            assert_eq!(expand_text(&policy, true), format!("configs: {{}}\npolicy: p\n{want}"));
        }
    }

    #[test]
    fn the_reason_is_given_where_a_rule_on_pods_is_left_out() {
        let text = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: by-name
    match: {any: [{resources: {kinds: [Pod], names: [a]}}]}
    validate: {pattern: {spec: {x: 1}}}
  - name: on-nodes
    match: {any: [{resources: {kinds: [Node]}}]}
    validate: {pattern: {spec: {x: 1}}}
";
        insta::assert_snapshot!(expand_text(text, true), @r#"
policy: p
rules: []
p: rule `by-name` is not expanded: it selects by name, labels or annotations, which controllers need not share with their Pods
"#);
    }
}
