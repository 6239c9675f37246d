//! Names in exceptions and values that no policy or rule has, among the policies that were loaded with them.

use ephor_engine::diagnostic::{Diagnostic, Severity};
use ephor_engine::policy::PolicyException;
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::scalar::wildcard;
use ephor_expr::value::{Path, decode};

use super::policies::{LoadedException, LoadedPolicy};
use super::values::Values;
use crate::locate::Located;

/// The code of these findings.
pub const STRAY_EXCEPTION: &str = "stray-exception";

/// A warning for each rule name that no rule of the named policy has, and for each policy that is not there and is
/// called almost like one that is. A policy of another name may exist elsewhere.
pub fn strays(exceptions: &[LoadedException], policies: &[LoadedPolicy]) -> Vec<Located> {
    exceptions.iter().flat_map(|exception| of(exception, policies)).collect()
}

fn of(loaded: &LoadedException, policies: &[LoadedPolicy]) -> Vec<Located> {
    // What compiled also decodes.
    let exception: PolicyException = decode(&loaded.document).unwrap_or_default();
    let mut found = Vec::new();
    for (i, entry) in exception.spec.exceptions.iter().enumerate() {
        let at = Path::root().keys(&["spec", "exceptions"]).index(i);
        let Some(policy) = policies.iter().find(|policy| policy.program.key == entry.policy_name) else {
            let near = nearest(&entry.policy_name, policies.iter().map(|policy| policy.program.key.as_str()));
            let message = format!("there is no policy `{}`", entry.policy_name);
            found.extend(near.map(|near| {
                Diagnostic::warning(STRAY_EXCEPTION, at.key("policyName"), message)
                    .with_help(format!("did you mean `{near}`?"))
            }));
            continue;
        };
        let rules = || policy.program.rules.iter().map(|rule| rule.name.as_str());
        for (j, name) in entry.rule_names.iter().enumerate() {
            if !rules().any(|rule| wildcard::matches(name, rule)) {
                let message = format!("policy `{}` has no rule `{name}`", entry.policy_name);
                let mut finding = Diagnostic::warning(STRAY_EXCEPTION, at.key("ruleNames").index(j), message);
                finding.help = Some(match nearest(name, rules()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("rules: {}", rules().collect::<Vec<_>>().join(", ")),
                });
                found.push(finding);
            }
        }
    }
    found.into_iter().map(|finding| Located::of_diagnostic(finding, &loaded.origin)).collect()
}

/// A warning for each rule that values name and their policy does not have, and for each policy that is not there and
/// is called almost like one that is. Values for other policies are for other runs.
pub fn unknown_names(values: &Values, policies: &[LoadedPolicy]) -> Vec<Located> {
    let mut found = Vec::new();
    let mut warn = |code: &'static str, message: String, near: Option<&str>| {
        let mut finding = Located::plain(code, message);
        finding.severity = Severity::Warning;
        finding.help = near.map(|near| format!("did you mean `{near}`?"));
        found.push(finding);
    };
    for given in values.policies.iter().flatten() {
        let of_policy = || policies.iter().filter(|policy| policy.program.id.name == given.name);
        if of_policy().next().is_none() {
            let near = nearest(&given.name, policies.iter().map(|policy| policy.program.id.name.as_str()));
            if near.is_some() {
                warn("unknown-policy", format!("the values name a policy `{}`, which is not there", given.name), near);
            }
            continue;
        }
        let known: Vec<&str> = of_policy()
            .flat_map(|policy| &policy.program.rules)
            .flat_map(|rule| [rule.declared.as_str(), rule.name.as_str()])
            .collect();
        for rule in given.rules.iter().flatten().filter(|rule| !known.contains(&rule.name.as_str())) {
            let message =
                format!("the values name a rule `{}`, which policy `{}` does not have", rule.name, given.name);
            warn("unknown-rule", message, nearest(&rule.name, known.iter().copied()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::strays;
    use crate::load::{LoadedPolicies, load_file};
    use crate::locate::SourceFile;
    use crate::output::findings::concise;

    #[test]
    fn names_that_nothing_has_are_pointed_out() {
        let text = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: limits}
spec:
  rules:
  - name: cpu
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {deny: {}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: ns}
spec:
  match: {any: [{resources: {kinds: [Pod]}}]}
  exceptions:
  - {policyName: limits, ruleNames: [cpu, autogen-cpu, cpus, '*-cron*', mem]}
  - {policyName: limit, ruleNames: [cpu]}
  - {policyName: elsewhere, ruleNames: [x]}
";
        let mut loaded = LoadedPolicies::default();
        load_file(&Arc::new(SourceFile { name: "p.yaml".to_owned(), text: text.to_owned() }), &mut loaded);
        insta::assert_snapshot!(concise(&strays(&loaded.exceptions, &loaded.policies)), @r#"
p.yaml:16:56: warning[stray-exception]: policy `limits` has no rule `cpus` (spec.exceptions[0].ruleNames[2]); did you mean `cpu`?
p.yaml:16:73: warning[stray-exception]: policy `limits` has no rule `mem` (spec.exceptions[0].ruleNames[4]); rules: cpu, autogen-cpu, autogen-cronjob-cpu
p.yaml:17:18: warning[stray-exception]: there is no policy `limit` (spec.exceptions[1].policyName); did you mean `limits`?
"#);
    }
}
