//! Which rules auto-gen expands, what it calls the new ones, and what the annotation may say.

use ephor_engine::autogen::{self, Ineligible};
use ephor_engine::compile::compile;
use ephor_engine::policy::Policy;
use ephor_expr::value::decode;
use ephor_expr::{Str, Value};

use crate::support::{policy, value};

/// The names of the rules that auto-gen adds to a policy with these rules.
fn expanded(rules: &str) -> Vec<Str> {
    let document = policy(&value(&format!("{{spec: {{rules: {rules}}}}}")));
    let decoded: Policy = decode(&document).unwrap();
    let name = |rule: &Value| Str::new(rule.str_at(&["name"]).unwrap_or_default());
    autogen::expand(&document, &decoded).iter().map(|made| name(&made.rule)).collect()
}

fn rule(name: &str, filters: &str) -> String {
    format!("{{name: {name}, match: {{any: {filters}}}, validate: {{message: m, deny: {{}}}}}}")
}

#[test]
fn rules_on_pods_are_expanded_where_the_policy_names_pods_or_controllers() {
    let both = ["autogen-r", "autogen-cronjob-r"].as_slice();
    for (filters, others, want) in [
        ("[{resources: {kinds: [Pod]}}]", "", both),
        // Alone these are for Pods only.
        ("[{resources: {kinds: [v1/Pod]}}]", "", &[]),
        ("[{resources: {kinds: ['*/Pod']}}]", "", &[]),
        // Another rule that names Pods or a controller is enough, in `exclude` too.
        ("[{resources: {kinds: [v1/Pod]}}]", "[{resources: {kinds: [Pod], names: [a]}}]", both),
        ("[{resources: {kinds: [v1/Pod]}}]", "[{resources: {kinds: [Deployment]}}]", both),
        ("[{resources: {kinds: ['*/Pod']}}]", "[{resources: {kinds: [CronJob]}}]", both),
        ("[{resources: {kinds: [v1/Pod]}}]", "[{resources: {kinds: [apps/v1/Deployment]}}]", &[]),
        ("[{resources: {kinds: [v1/Pod]}}]", "[{resources: {kinds: [Secret]}}]", &[]),
        // Neither subresources nor Pods of other groups are Pods.
        ("[{resources: {kinds: [Pod/exec]}}]", "[{resources: {kinds: [Deployment]}}]", &[]),
        ("[{resources: {kinds: [metrics.k8s.io/v1beta1/Pod]}}]", "[{resources: {kinds: [Deployment]}}]", &[]),
        // Other kinds beside Pods, in the same filter or in the next.
        ("[{resources: {kinds: [Pod, Deployment]}}]", "", &[]),
        ("[{resources: {kinds: [v1/Pod, Secret]}}]", "[{resources: {kinds: [Job]}}]", &[]),
        ("[{resources: {kinds: [Pod]}}, {resources: {kinds: [Deployment]}}]", "", &[]),
        ("[{resources: {kinds: [Pod]}}, {resources: {kinds: [ConfigMap]}}]", "", &[]),
        ("[{resources: {kinds: [Pod]}}, {resources: {kinds: ['*']}}]", "", &[]),
        ("[{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod], namespaces: [a]}}]", "", both),
        ("[{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod/ephemeralcontainers]}}]", "", both),
    ] {
        let mut rules = vec![rule("r", filters)];
        if !others.is_empty() {
            rules.push(format!("{{name: o, match: {{any: {others}}}, mutate: {{patchesJson6902: '[]'}}}}"));
        }
        assert_eq!(expanded(&format!("[{}]", rules.join(", "))), want, "{filters} beside {others}");
    }
}

#[test]
fn names_that_become_one_by_cutting_are_told_apart() {
    let pods = "[{resources: {kinds: [Pod]}}]";
    let long = "a".repeat(60);
    let rules = [rule(&format!("{long}-b"), pods), rule(&format!("{long}-c"), pods), rule(&format!("{long}-d"), pods)];
    let cut = |prefix: &str, suffix: &str| format!("{prefix}{}{suffix}", "a".repeat(63 - prefix.len() - suffix.len()));
    assert_eq!(
        expanded(&format!("[{}]", rules.join(", "))),
        ["", "-2", "-3"].map(|suffix| [cut("autogen-", suffix), cut("autogen-cronjob-", suffix)]).concat()
    );
}

#[test]
fn a_cut_name_is_not_that_of_a_declared_rule() {
    let pods = "[{resources: {kinds: [Pod]}}]";
    let long = "a".repeat(60);
    let written = format!("autogen-{}", "a".repeat(55));
    let rules = [rule(&long, pods), rule(&written, "[{resources: {kinds: [Secret]}}]")];
    let made = expanded(&format!("[{}]", rules.join(", ")));
    assert_eq!(made, [format!("autogen-{}-2", "a".repeat(53)), format!("autogen-cronjob-{}", "a".repeat(47))]);
    // A name that was not cut is the one that upstream gives.
    let rules = [rule("r", pods), rule("autogen-r", "[{resources: {kinds: [Deployment]}}]")];
    assert_eq!(expanded(&format!("[{}]", rules.join(", "))), ["autogen-r", "autogen-cronjob-r"]);
}

#[test]
fn why_a_rule_is_not_expanded_is_true() {
    for (filters, exclude, want) in [
        ("[{resources: {kinds: [Secret]}}]", "", Ineligible::NotOnPods),
        ("[{resources: {kinds: [v1/Pod]}}]", "", Ineligible::OnlyQualified),
        ("[{resources: {kinds: ['*/Pod']}}]", "", Ineligible::OnlyQualified),
        (
            "[{resources: {kinds: [Pod]}}]",
            "exclude: {any: [{resources: {kinds: [Secret]}}]}, ",
            Ineligible::ExcludesOthers,
        ),
    ] {
        let rules = format!("[{{{exclude}match: {{any: {filters}}}, validate: {{deny: {{}}}}}}]");
        let decoded: Policy = decode(&policy(&value(&format!("{{spec: {{rules: {rules}}}}}")))).unwrap();
        assert_eq!(autogen::Eligibility::of(&decoded).check(&decoded.spec.rules[0]), Err(want), "{rules}");
    }
}

#[test]
fn the_annotation_names_kinds_with_a_pod_template() {
    for (annotation, want) in [
        ("none", ""),
        ("", ""),
        ("Deployment,CronJob", ""),
        ("Deployment, CloneSet", ""),
        ("Deployment, none", "warning: `none` has no effect beside other kinds (remove `none`, or the kinds)"),
        ("Deployment,,Job", "warning: the list of kinds has an empty item (remove the comma)"),
        (
            "Namespace",
            "warning: `Namespace` of Kubernetes has no Pod template; it is read as a custom kind (name kinds such as `Deployment,CronJob`, or `none`)",
        ),
        ("deployment", "error: `deployment` is no kind with a Pod template (did you mean `Deployment`?)"),
        ("Deployment,cronjob", "error: `cronjob` is no kind with a Pod template (did you mean `CronJob`?)"),
        ("None", "error: `None` is no kind with a Pod template (did you mean `none`?)"),
        ("ALL", "error: `ALL` is no kind with a Pod template (name kinds such as `Deployment,CronJob`, or `none`)"),
        ("*", "error: `*` is no kind with a Pod template (name kinds such as `Deployment,CronJob`, or `none`)"),
        ("Pod", "error: `Pod` is no kind with a Pod template (name kinds such as `Deployment,CronJob`, or `none`)"),
        (
            "apps/v1/Deployment",
            "error: `apps/v1/Deployment` is no kind with a Pod template (name kinds such as `Deployment,CronJob`, or `none`)",
        ),
        (
            "Deployments",
            "warning: `Deployments` is no controller kind of Kubernetes; it is read as a custom kind (did you mean `Deployment`?)",
        ),
    ] {
        let document = policy(&value(&format!(
            "{{metadata: {{name: p, annotations: {{pod-policies.kyverno.io/autogen-controllers: '{annotation}'}}}}, spec: {{rules: [{{validate: {{deny: {{}}}}}}]}}}}"
        )));
        let lines: Vec<String> = compile(&document)
            .findings
            .iter()
            .map(|f| {
                let severity = if f.is_error() { "error" } else { "warning" };
                format!("{severity}: {} ({})", f.message, f.help.as_deref().unwrap_or_default())
            })
            .collect();
        assert_eq!(lines.join("\n"), want, "{annotation}");
    }
}
