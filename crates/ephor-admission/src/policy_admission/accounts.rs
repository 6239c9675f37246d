//! Checks permissions of Ephor's accounts with `SubjectAccessReview`s.

use std::collections::HashMap;

use ephor_cluster::{Cluster, ClusterError};
use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_runtime::access::is_allowed;

use super::needs::{Need, Purpose, review};

/// Policies with more needs than this are checked in part.
const MAX_QUESTIONS: usize = 400;

/// Adds a finding for each need that is not met.
pub(super) fn check(cluster: &dyn Cluster, needs: &[Need], found: &mut Vec<Diagnostic>) {
    check_with(|question| is_allowed(cluster, question), needs, found);
}

fn check_with(ask: impl Fn(Value) -> Result<bool, ClusterError>, needs: &[Need], found: &mut Vec<Diagnostic>) {
    let mut known: HashMap<String, bool> = HashMap::new();
    for need in needs {
        let mut missing = Vec::new();
        for verb in &need.verbs {
            let question = review(need, verb);
            let key = question.to_json();
            let allowed = match known.get(&key) {
                Some(allowed) => *allowed,
                None if known.len() >= MAX_QUESTIONS => {
                    let message = "the policy needs so many permissions that not all of them were checked";
                    return found.push(Diagnostic::warning("permissions", Path::root(), message));
                }
                None => match ask(question) {
                    Ok(allowed) => {
                        known.insert(key, allowed);
                        allowed
                    }
                    Err(error) => {
                        // "Cannot tell" is not "may".
                        let message = format!("permissions of `{}` cannot be checked: {error}", need.account);
                        return found.push(Diagnostic::error("permissions", need.path.clone(), message));
                    }
                },
            };
            if !allowed {
                missing.push(*verb);
            }
        }
        if !missing.is_empty() {
            let finding = Diagnostic::error("permissions", need.path.clone(), message(need, &missing));
            found.push(Diagnostic { severity: need.severity, ..finding });
        }
    }
}

fn message(need: &Need, missing: &[&str]) -> String {
    let Need { account, resource, subresource, namespace, name, .. } = need;
    let below = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
    let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
    let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
    let kind = format!("{}/{}{below}{name}{place}", resource.api_version(), resource.kind);
    let verbs = missing.join(",");
    match need.purpose {
        Purpose::Rule => format!("{account} requires permissions {verbs} for resource {kind}"),
        Purpose::Mutate => format!(
            "auth check fails, additional privileges are required for the service account '{account}': {verbs} for \
             resource {kind}"
        ),
        Purpose::Cleanup => format!(
            "cleanup controller has no permission to {} kind {}: {account} requires permissions {verbs} for resource \
             {kind}",
            missing.first().copied().unwrap_or_default(),
            resource.kind
        ),
    }
}

#[cfg(test)]
mod tests {
    use ephor_cluster::Discovery;
    use ephor_engine::policy::{CleanupPolicy, Policy};
    use ephor_expr::Str;
    use ephor_expr::value::decode;
    use ephor_expr::yaml::parse_value;

    use super::*;
    use crate::policy_admission::{Accounts, needs};

    /// Answers from a list of `account verb plural[/sub] namespace name`.
    fn found(needs: &[Need], allowed: &[&str]) -> Vec<String> {
        let ask = |question: Value| {
            let text = |key| question.str_at(&["spec", "resourceAttributes", key]).unwrap_or("-").to_owned();
            let account = question.str_at(&["spec", "user"]).unwrap();
            let line =
                format!("{account} {} {} {} {}", text("verb"), text("resource"), text("namespace"), text("name"));
            Ok(allowed.iter().any(|rule| ephor_expr::scalar::wildcard::matches(rule, &line)))
        };
        let mut found = Vec::new();
        check_with(ask, needs, &mut found);
        found.iter().map(|f| format!("{:?} {f}", f.severity)).collect()
    }

    fn of_rule(body: &str) -> Vec<Need> {
        let text = format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [{{name: r, match: \
             {{any: [{{resources: {{kinds: [Namespace]}}}}]}}, {body}}}]}}}}"
        );
        let policy: Policy = decode(&parse_value(&text).unwrap()).unwrap();
        let account = |name: &str| Some(Str::new(name));
        let accounts = Accounts {
            admission: account("adm"),
            background: account("bg"),
            reports: account("rep"),
            cleanup: account("clean"),
        };
        needs::of_policy(&policy, &accounts, &Discovery::kubernetes())
    }

    #[test]
    fn generating_takes_permissions_of_two_accounts() {
        let target = "apiVersion: v1, kind: ConfigMap, name: c, namespace: '{{ request.name }}'";
        let once = of_rule(&format!("generate: {{{target}, data: {{}}}}"));
        assert_eq!(found(&once, &["bg get configmaps - c", "bg create configmaps - c"]), [""; 0]);
        let follows = of_rule(&format!("generate: {{{target}, synchronize: true, data: {{}}}}"));
        insta::assert_snapshot!(found(&follows, &["bg get*", "bg create*", "bg list*", "bg watch*", "adm get*"]).join("\n"), @"
Error spec.rules[0].generate.kind: bg requires permissions update,delete for resource v1/ConfigMap `c`
Error spec.rules[0].generate.kind: adm requires permissions list for resource v1/ConfigMap `c`
");
    }

    #[test]
    fn every_kind_of_a_list_is_looked_at_and_sources_are_labelled() {
        let list = "namespace: a, synchronize: true, cloneList: {namespace: b, kinds: [v1/Secret, v1/ConfigMap]}";
        insta::assert_snapshot!(
            found(&of_rule(&format!("generate: {{{list}}}")), &["* secrets *", "bg * configmaps a -", "adm *", "bg list *", "bg watch *", "bg get namespaces *"]).join("\n"),
            @"Error spec.rules[0].generate.cloneList.kinds[1]: bg requires permissions update for resource v1/ConfigMap in namespace b"
        );
        let once = "apiVersion: v1, kind: Secret, name: c, namespace: a, clone: {namespace: b, name: s}";
        insta::assert_snapshot!(found(&of_rule(&format!("generate: {{{once}}}")), &["bg * a c", "bg get *"]).join("\n"), @"Warning spec.rules[0].generate.clone: bg requires permissions update for resource v1/Secret `s` in namespace b");
    }

    #[test]
    fn following_triggers_and_sources_takes_list_and_watch() {
        let copy =
            "apiVersion: v1, kind: Secret, name: c, namespace: a, synchronize: true, clone: {namespace: b, name: s}";
        let mine = ["adm *", "bg get *", "bg create *", "bg update *", "bg delete *"];
        insta::assert_snapshot!(found(&of_rule(&format!("generate: {{{copy}}}")), &mine).join("\n"), @r"
Warning spec.rules[0].generate.clone: bg requires permissions list,watch for resource v1/Secret
Warning spec.rules[0].match.any[0].resources.kinds[0]: bg requires permissions list,watch for resource v1/Namespace
");
        let existing = "generateExisting: true, apiVersion: v1, kind: Secret, name: c, namespace: a, data: {}";
        insta::assert_snapshot!(found(&of_rule(&format!("generate: {{{existing}}}")), &mine).join("\n"), @"Warning spec.rules[0].match.any[0].resources.kinds[0]: bg requires permissions list,watch for resource v1/Namespace");
    }

    #[test]
    fn applying_on_the_side_of_the_server_takes_patch() {
        let text = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {useServerSideApply: true, \
                    rules: [{name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: \
                    ConfigMap, name: c, namespace: a, data: {}}}]}}";
        let policy: Policy = decode(&parse_value(text).unwrap()).unwrap();
        let accounts = Accounts { background: Some("bg".into()), ..Accounts::default() };
        let needs = needs::of_policy(&policy, &accounts, &Discovery::kubernetes());
        insta::assert_snapshot!(found(&needs, &["bg get *", "bg create *"]).join("\n"), @"Error spec.rules[0].generate.kind: bg requires permissions patch for resource v1/ConfigMap `c` in namespace a");
    }

    #[test]
    fn roles_and_bindings_hand_out_permissions() {
        let binding = "apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: c, namespace: a, data: \
                       {roleRef: {kind: ClusterRole, name: admin}}";
        insta::assert_snapshot!(
            found(&of_rule(&format!("generate: {{{binding}}}")), &["bg get *", "bg create *"]).join("\n"),
            @"Warning spec.rules[0].generate.kind: bg requires permissions bind for resource rbac.authorization.k8s.io/v1/ClusterRole `admin` in namespace a"
        );
    }

    #[test]
    fn targets_of_mutations_are_read_and_written() {
        let targets = "mutate: {targets: [{apiVersion: apps/v1, kind: Deployment, name: d}, {apiVersion: v1, kind: \
                       '{{ x }}'}], patchStrategicMerge: {}}";
        assert_eq!(found(&of_rule(targets), &["bg get deployments - d", "bg update deployments - d"]), [""; 0]);
        insta::assert_snapshot!(found(&of_rule(targets), &["bg get *"]).join("\n"), @"Error spec.rules[0].mutate.targets[0]: auth check fails, additional privileges are required for the service account 'bg': update for resource apps/v1/Deployment `d`");
    }

    #[test]
    fn targets_that_leave_their_group_open_are_checked_for_every_group() {
        for version in ["'*'", "'{{ request.object.data.v }}'"] {
            let targets = format!(
                "mutate: {{targets: [{{apiVersion: {version}, kind: Event, namespace: a}}], patchStrategicMerge: {{}}}}"
            );
            let found = found(&of_rule(&targets), &["bg get *"]);
            assert_eq!(found.len(), 2, "{found:?}");
            assert!(found[0].contains("v1/Event") && found[1].contains("events.k8s.io/v1/Event"), "{found:?}");
        }
        let generate = "generate: {apiVersion: '{{ x }}', kind: ConfigMap, name: c, namespace: a, data: {}}";
        assert_eq!(found(&of_rule(generate), &["bg get *"]).len(), 1);
    }

    #[test]
    fn scans_that_cannot_read_are_warned_of() {
        insta::assert_snapshot!(found(&of_rule("validate: {deny: {}}"), &["rep get *"]).join("\n"), @"Warning spec.rules[0].match.any[0].resources.kinds[0]: rep requires permissions list,watch for resource v1/Namespace");
    }

    #[test]
    fn cleaning_up_takes_listing_and_deleting() {
        let text = "{apiVersion: kyverno.io/v2, kind: ClusterCleanupPolicy, metadata: {name: c}, spec: {schedule: '* * * * *', \
                    match: {any: [{resources: {kinds: [Secret], names: [s]}}]}}}";
        let policy: CleanupPolicy = decode(&parse_value(text).unwrap()).unwrap();
        let needs = needs::of_cleanup(&policy, &"clean".into(), &Discovery::kubernetes());
        assert_eq!(found(&needs, &["clean list secrets - s", "clean delete secrets - s"]), [""; 0]);
        insta::assert_snapshot!(found(&needs, &[]).join("\n"), @"Error spec.match.any[0].resources.kinds[0]: cleanup controller has no permission to delete kind Secret: clean requires permissions delete,list for resource v1/Secret `s`");
    }

    #[test]
    fn an_answer_that_does_not_come_is_no_yes() {
        let needs = of_rule("generate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: a, data: {}}");
        let mut found = Vec::new();
        check_with(|_| Err(ClusterError::timeout("later")), &needs, &mut found);
        assert!(found[0].is_error(), "{found:?}");
    }
}
