//! `DeletingPolicy` of `policies.kyverno.io` into programs: one rule, which says whether an object is to go.

use ephor_expr::Value;
use ephor_expr::value::{Path, decode_rest};

use super::Compiled;
use super::demands::RuleDemands;
use super::policy::decode_finding;
use super::rule::{Body, CompiledRule};
use super::validating::{self, Common};
use crate::cel::{Listed, Place, Source};
use crate::diagnostic::Diagnostic;
use crate::policy::{
    DeletingPolicy, DeletingPolicySpec, FailurePolicy, MatchResources, PodControllers, PolicyId, PolicyWebhook, Switch,
};
use crate::rules::delete::PolicyDeletion;
use crate::schedule::{Grammar, Schedule};

/// Compiles a `DeletingPolicy` or `NamespacedDeletingPolicy`.
pub(super) fn compile_deleting(document: &Value) -> Compiled {
    let (policy, faults) = decode_rest::<DeletingPolicy>(document);
    let mut findings: Vec<Diagnostic> = faults.into_iter().map(decode_finding).collect();
    let Some(policy) = policy else { return Compiled::refused(findings) };
    let spec = &policy.spec;
    let common = Common {
        id: PolicyId::of(document),
        api_version: &policy.api_version,
        metadata: &policy.metadata,
        constraints: spec.match_constraints.as_ref(),
        controllers: &PodControllers::default(),
        // It is about objects that are stored: no request waits for it, and nothing fails one.
        admission: Switch { enabled: Some(false) },
        background: Switch::default(),
        failure_policy: Some(FailurePolicy::Ignore),
        webhook: &PolicyWebhook::default(),
        actions: &[],
    };
    let path = Path::root().key("spec");
    let is_json = spec.match_constraints.is_none();
    common.check(is_json, &mut findings);
    if is_json {
        let text = "without `matchConstraints` the policy judges any JSON value: in a cluster it needs a resource rule";
        findings.push(Diagnostic::warning("cel-policy", path.key("matchConstraints"), text));
    }
    let schedule = read_schedule(&spec.schedule, &path.key("schedule"), &mut findings);
    let rule = rule(&common, spec, schedule, &mut findings);
    let program = rule
        .filter(|_| !findings.iter().any(Diagnostic::is_error))
        .map(|rule| common.program(vec![rule], common.webhook(document, &[])));
    Compiled { program, ..Compiled::refused(findings) }
}

fn read_schedule(text: &str, path: &Path, findings: &mut Vec<Diagnostic>) -> Option<Schedule> {
    if text.trim().is_empty() {
        findings.push(Diagnostic::error("schedule", path.clone(), "Required value"));
        return None;
    }
    match Schedule::parse(text, Grammar::Seconds) {
        Ok(schedule) => {
            findings.extend(schedule.never(path));
            Some(schedule)
        }
        Err(fault) => {
            let text = format!("the schedule is not in proper cron format: {fault}");
            findings.push(Diagnostic::error("schedule", path.clone(), text));
            None
        }
    }
}

fn rule(
    common: &Common<'_>,
    spec: &DeletingPolicySpec,
    schedule: Option<Schedule>,
    findings: &mut Vec<Diagnostic>,
) -> Option<CompiledRule> {
    let path = Path::root().key("spec");
    let source = Source {
        variables: Listed { items: &spec.variables, path: path.key("variables") },
        conditions: Listed { items: &spec.conditions, path: path.key("conditions") },
        ..Source::at(Place::DeletingPolicy { namespaced: common.id.kind.is_namespaced() })
    };
    let body = validating::body(&source, findings);
    let constraints = match &spec.match_constraints {
        Some(constraints) => Some(validating::matcher(Some(&of_any_operation(constraints)), findings)?),
        None => None,
    };
    let deletion = PolicyDeletion {
        id: common.id.clone(),
        schedule: schedule?,
        propagation: spec.deletion_propagation_policy,
        constraints,
        body: body?,
    };
    let name = common.id.name.clone();
    Some(CompiledRule {
        // Reports call it by the policy's name.
        declared: name.clone(),
        name,
        ..validating::unnamed(None, path, RuleDemands::default(), Body::Delete(Box::new(deletion)))
    })
}

/// The constraints without their operations: what is stored is about none.
fn of_any_operation(constraints: &MatchResources) -> MatchResources {
    let mut constraints = constraints.clone();
    for rule in constraints.resource_rules.iter_mut().chain(&mut constraints.exclude_resource_rules) {
        rule.operations.clear();
    }
    constraints
}
