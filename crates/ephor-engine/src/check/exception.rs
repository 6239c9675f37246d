//! `PolicyException`, beyond what compiling it finds.

use ephor_expr::Value;
use ephor_expr::scalar::wildcard;
use ephor_expr::value::{Path, decode};

use super::bodies;
use crate::diagnostic::Diagnostic;
use crate::policy::{Conditions, Match, PolicyException};

/// Everything wrong with an exception that compiles; nothing for a document that does not decode.
pub fn check_exception(document: &Value) -> Vec<Diagnostic> {
    let Ok(exception) = decode::<PolicyException>(document) else { return Vec::new() };
    let mut found = Vec::new();
    if !matches!(exception.api_version.as_str(), "kyverno.io/v2" | "kyverno.io/v2beta1") {
        let message = format!("`{}` is no version of this kind: use `kyverno.io/v2`", exception.api_version);
        found.push(Diagnostic::error("api-version", Path::root().key("apiVersion"), message));
    }
    if exception.metadata.name.is_empty() {
        found.push(Diagnostic::error("no-name", Path::root().key("metadata"), "an exception needs a name"));
    }
    let spec = Path::root().key("spec");
    let at = spec.key("exceptions");
    if exception.spec.exceptions.is_empty() {
        found.push(Diagnostic::error("no-exceptions", spec.clone(), "`exceptions` names no policy"));
    }
    for (i, rules) in exception.spec.exceptions.iter().enumerate() {
        let at = at.index(i);
        if rules.policy_name.is_empty() || rules.rule_names.is_empty() {
            let message = "an entry needs a `policyName` and `ruleNames`";
            found.push(Diagnostic::error("no-exceptions", at.clone(), message));
        }
        if wildcard::has_wildcard(&rules.policy_name) {
            let message = format!("policy names take no wildcards: `{}` is never found", rules.policy_name);
            found.push(Diagnostic::warning("policy-wildcard", at.key("policyName"), message));
        }
    }
    if excepts_nothing(&exception.spec.matches) {
        let message = "`match` selects nothing: the exception has no effect";
        found.push(Diagnostic::warning("empty-match", spec.key("match"), message));
    }
    if exception.spec.background.unwrap_or(true) && selects_users(&exception.spec.matches) {
        // Upstream: exceptions/background-mode/standard. Scans know no users, so that the exception would not hold
        // there.
        let message = "users and roles are not known in background mode";
        let finding = Diagnostic::error("user-in-background", spec.key("match"), message);
        found.push(finding.with_help("set `spec.background: false`"));
    }
    let conditions = exception.spec.conditions.clone().map(Conditions::AnyAll);
    bodies::conditions(conditions.as_ref(), &spec.key("conditions"), &mut found);
    let exclusions = exception.spec.pod_security.as_deref().unwrap_or_default();
    bodies::exclusions(None, exclusions, &spec.key("podSecurity"), &mut found);
    found
}

fn selects_users(block: &Match) -> bool {
    let mut listed = block.any.iter().chain(&block.all).flatten();
    listed.any(|f| f.roles.is_some() || f.cluster_roles.is_some() || f.subjects.is_some())
        || block.roles.is_some()
        || block.cluster_roles.is_some()
        || block.subjects.is_some()
}

fn excepts_nothing(block: &Match) -> bool {
    let Match { any, all, resources, roles, cluster_roles, subjects } = block;
    let listed = any.iter().chain(all).any(|filters| !filters.is_empty());
    !listed && resources.is_none() && roles.is_none() && cluster_roles.is_none() && subjects.is_none()
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::check_exception;

    #[test]
    fn users_are_excepted_outside_of_scans_only() {
        let found = |background: &str| {
            let text = format!(
                "{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: e}}, spec: {{{background}exceptions: \
                 [{{policyName: p, ruleNames: [r]}}], match: {{any: [{{resources: {{kinds: [Pod]}}, subjects: [{{kind: User, \
                 name: u}}]}}]}}}}}}"
            );
            check_exception(&parse_value(&text).unwrap()).into_iter().map(|f| f.code).collect::<Vec<_>>()
        };
        assert_eq!(found("background: false, "), [""; 0]);
        assert_eq!(found("background: true, "), ["user-in-background"]);
        assert_eq!(found(""), ["user-in-background"]);
    }

    #[test]
    fn exceptions_that_except_nothing_are_pointed_out() {
        let text = "{apiVersion: kyverno.io/v1, kind: PolicyException, metadata: {}, spec: {match: {any: []}, \
                    exceptions: [{policyName: p*, ruleNames: []}]}}";
        let found = check_exception(&parse_value(text).unwrap());
        let found: Vec<String> = found.into_iter().map(|f| format!("{}: {}", f.path, f.message)).collect();
        insta::assert_snapshot!(found.join("\n"), @r#"
apiVersion: `kyverno.io/v1` is no version of this kind: use `kyverno.io/v2`
metadata: an exception needs a name
spec.exceptions[0]: an entry needs a `policyName` and `ruleNames`
spec.exceptions[0].policyName: policy names take no wildcards: `p*` is never found
spec.match: `match` selects nothing: the exception has no effect
"#);
    }
}
