//! `CleanupPolicy` and `ClusterCleanupPolicy`.

use ephor_expr::Value;
use ephor_expr::value::{Path, decode};

use super::size::check_size;
use super::{bodies, context, selection, variables};
use crate::compile::decode_finding;
use crate::conditions::CompiledConditions;
use crate::diagnostic::Diagnostic;
use crate::matching::{MatchMode, Matcher};
use crate::policy::{CleanupPolicy, Conditions, ContextEntry, Match, Policy, PolicyKind, Rule, Spec};
use crate::schedule::{Grammar, Schedule};
use crate::scope::{AtBase, Compiler, Entry};

/// Everything wrong with a cleanup policy's document.
pub fn check_cleanup(document: &Value) -> Vec<Diagnostic> {
    if let Some(finding) = check_size(document) {
        return vec![finding];
    }
    let cleanup: CleanupPolicy = match decode(document) {
        Ok(cleanup) => cleanup,
        Err(faults) => return faults.into_iter().map(decode_finding).collect(),
    };
    let mut found = Vec::new();
    let metadata = Path::root().key("metadata");
    let clustered = cleanup.kind == "ClusterCleanupPolicy";
    if !matches!(cleanup.api_version.as_str(), "kyverno.io/v2" | "kyverno.io/v2beta1") {
        let message = format!("`{}` is no version of this kind: use `kyverno.io/v2`", cleanup.api_version);
        found.push(Diagnostic::error("api-version", Path::root().key("apiVersion"), message));
    }
    if cleanup.metadata.name.is_empty() {
        found.push(Diagnostic::error("no-name", metadata.clone(), "a policy needs a name"));
    }
    if clustered && cleanup.metadata.namespace.as_ref().is_some_and(|ns| !ns.is_empty()) {
        let finding = Diagnostic::error(
            "namespaced-cluster-policy",
            metadata.key("namespace"),
            "a ClusterCleanupPolicy has no namespace",
        );
        found.push(finding.with_help("remove it, or make this a `CleanupPolicy`"));
    }
    let spec = Path::root().key("spec");
    match Schedule::parse(&cleanup.spec.schedule, Grammar::Minutes) {
        Ok(schedule) => found.extend(schedule.never(&spec.key("schedule"))),
        Err(fault) => {
            let message = format!("schedule spec in the cleanupPolicy is not in proper cron format: {fault}");
            found.push(Diagnostic::error("schedule", spec.key("schedule"), message));
        }
    }
    for (key, block) in [("match", Some(&cleanup.spec.matches)), ("exclude", cleanup.spec.exclude.as_ref())] {
        if let Some(block) = block {
            check_block(block, &spec.key(key), &mut found);
        }
    }
    // What remains is as in a rule outside background scans.
    let (policy, rule) = as_rule(&cleanup, clustered);
    selection::check(&policy, &rule, &spec, &mut found);
    check_entries(rule.context.as_deref().unwrap_or_default(), &spec.key("context"), &mut found);
    context::check(&policy, rule.context.as_ref(), &spec.key("context"), &mut found);
    let at = spec.key("conditions");
    bodies::conditions(rule.preconditions.as_ref(), &at, &mut found);
    variables::check_cleanup(document, &mut found);
    let mut compiler = Compiler::new(AtBase::Target, &mut found);
    Entry::compile_all(rule.context.as_ref(), &spec.key("context"), &mut compiler);
    if let Some(block) = &rule.preconditions
        && let Err(error) = CompiledConditions::compile(block, &at, |value, path| compiler.template(value, path))
    {
        found.push(Diagnostic::error("condition", error.path().clone(), error.to_string()));
    }
    found
}

fn as_rule(cleanup: &CleanupPolicy, clustered: bool) -> (Policy, Rule) {
    let policy = Policy {
        kind: if clustered { PolicyKind::ClusterPolicy } else { PolicyKind::Policy },
        metadata: cleanup.metadata.clone(),
        spec: Spec { background: Some(false), ..Spec::default() },
        ..Policy::default()
    };
    let rule = Rule {
        matches: cleanup.spec.matches.clone(),
        exclude: cleanup.spec.exclude.clone(),
        context: cleanup.spec.context.clone(),
        preconditions: cleanup.spec.conditions.clone().map(Conditions::AnyAll),
        ..Rule::default()
    };
    (policy, rule)
}

/// A cleanup has no user, so there is none to select.
fn check_block(block: &Match, path: &Path, found: &mut Vec<Diagnostic>) {
    let listed = block.any.iter().chain(&block.all).flatten();
    let in_filters = listed.into_iter().any(|f| f.roles.is_some() || f.cluster_roles.is_some() || f.subjects.is_some());
    if in_filters || block.roles.is_some() || block.cluster_roles.is_some() || block.subjects.is_some() {
        let message = "a cleanup policy has no user: roles and subjects cannot be selected";
        found.push(Diagnostic::error("user-in-cleanup", path.clone(), message));
    }
    if let Err(error) = Matcher::compile(block, MatchMode::Cleanup) {
        let mut place = path.clone();
        place.0.extend(error.path().0.iter().cloned());
        found.push(Diagnostic::error("invalid-selector", place, error.to_string()));
    }
}

fn check_entries(entries: &[ContextEntry], path: &Path, found: &mut Vec<Diagnostic>) {
    for (i, entry) in entries.iter().enumerate() {
        for (key, is_set) in
            [("configMap", entry.config_map.is_some()), ("imageRegistry", entry.image_registry.is_some())]
        {
            if is_set {
                let message = format!("`{key}` cannot be used in a cleanup policy");
                found.push(Diagnostic::error("cleanup-context", path.index(i).key(key), message).at_key());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::check_cleanup;

    fn found(spec: &str) -> Vec<String> {
        let text =
            format!("apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {{name: c}}\nspec: {spec}");
        check_cleanup(&parse_value(&text).unwrap()).into_iter().map(|f| format!("{}: {}", f.path, f.message)).collect()
    }

    #[test]
    fn a_good_policy_has_no_findings() {
        let spec = "{schedule: '*/5 * * * *', match: {any: [{resources: {kinds: [Pod]}}]}, \
                    conditions: {any: [{key: '{{ target.metadata.name }}', operator: Equals, value: x}]}}";
        assert_eq!(found(spec), [""; 0]);
    }

    #[test]
    fn names_that_are_not_there_and_dates_that_never_come_are_warned_of() {
        let spec = "{schedule: '0 0 31 2 *', match: {any: [{resources: {kinds: [Pod]}}]}, \
                    context: [{name: known, variable: {value: x}}], \
                    conditions: {any: [{key: '{{ known }}{{ targt.metadata.name }}', operator: Equals, value: x}]}}";
        insta::assert_snapshot!(found(spec).join("\n"), @"
        spec.schedule: no such time ever comes, so the policy never runs
        spec.conditions.any[0].key: policy contains invalid variables: `targt` is not defined
        ");
    }

    #[test]
    fn faults_are_found_with_their_places() {
        let spec = "{schedule: hourly, match: {any: [{resources: {kinds: [Pod]}, roles: ['a:b']}]}, \
                    context: [{name: c, configMap: {name: a, namespace: b}}], \
                    conditions: {any: [{key: '{{ target. }}', operator: Is, value: x}]}}";
        insta::assert_snapshot!(found(spec).join("\n"), @r#"
spec.schedule: schedule spec in the cleanupPolicy is not in proper cron format: expected 5 fields, found 1
spec.match: a cleanup policy has no user: roles and subjects cannot be selected
spec.context[0].configMap: `configMap` cannot be used in a cleanup policy
spec.conditions.any[0].operator: unknown operator `Is`
"#);
    }
}
