//! `GeneratingPolicy` of `policies.kyverno.io` into programs: one rule, which makes objects.

use ephor_expr::Value;
use ephor_expr::value::{Path, decode_rest};

use super::Compiled;
use super::demands::{Hook, RequestDemand, RuleDemands};
use super::policy::decode_finding;
use super::rule::{Body, CompiledRule, GeneratedBody, GeneratedContent};
use super::validating::{self, Common};
use super::webhook::Form;
use crate::cel::{Listed, Place, Source};
use crate::diagnostic::Diagnostic;
use crate::policy::{
    FailurePolicy, GeneratingPolicy, GeneratingPolicySpec, MatchCondition, Operations, PodControllers, PolicyId, Switch,
};
use crate::rules::generate::policy::PolicyGeneration;

/// Compiles a `GeneratingPolicy` or `NamespacedGeneratingPolicy`.
pub(super) fn compile_generating(document: &Value) -> Compiled {
    let (policy, faults) = decode_rest::<GeneratingPolicy>(document);
    let mut findings: Vec<Diagnostic> = faults.into_iter().map(decode_finding).collect();
    let Some(policy) = policy else { return Compiled::refused(findings) };
    let spec = &policy.spec;
    let common = Common {
        id: PolicyId::of(document),
        api_version: &policy.api_version,
        metadata: &policy.metadata,
        constraints: spec.match_constraints.as_ref(),
        controllers: &PodControllers::default(),
        admission: spec.evaluation.admission,
        // Scans make nothing.
        background: Switch { enabled: Some(false) },
        // Objects are made after the request: it waits for nothing, and nothing fails it.
        failure_policy: Some(FailurePolicy::Ignore),
        webhook: &spec.webhook_configuration,
        actions: &[],
    };
    common.check(false, &mut findings);
    if spec.generate.is_empty() {
        let path = Path::root().keys(&["spec", "generate"]);
        findings.push(Diagnostic::error("cel-policy", path, "Required value"));
    }
    let rule = rule(&common, spec, &mut findings);
    let program = rule.filter(|_| !findings.iter().any(Diagnostic::is_error)).map(|rule| {
        // An object that no longer meets the conditions is asked about, so that what was made for it goes.
        let follows = spec.evaluation.synchronize.enabled.unwrap_or(false);
        let asked = |condition: &MatchCondition| MatchCondition {
            expression: format!("request.operation != 'CREATE' || ({})", condition.expression).into(),
            ..condition.clone()
        };
        let conditions: Vec<MatchCondition> = spec.match_conditions.iter().map(asked).collect();
        let conditions = if follows { &conditions } else { &spec.match_conditions };
        let form = Form { config: "", kinds: Vec::new(), conditions };
        common.program(vec![rule], common.webhook(document, &[form]))
    });
    Compiled { program, ..Compiled::refused(findings) }
}

fn rule(common: &Common<'_>, spec: &GeneratingPolicySpec, findings: &mut Vec<Diagnostic>) -> Option<CompiledRule> {
    let path = Path::root().key("spec");
    let source = Source {
        variables: Listed { items: &spec.variables, path: path.key("variables") },
        conditions: Listed { items: &spec.match_conditions, path: path.key("matchConditions") },
        annotations: Listed { items: &spec.audit_annotations, path: path.key("auditAnnotations") },
        generations: Listed { items: &spec.generate, path: path.key("generate") },
        ..Source::at(Place::GeneratingPolicy { namespaced: common.id.kind.is_namespaced() })
    };
    let body = validating::body(&source, findings);
    let constraints = validating::matcher(spec.match_constraints.as_ref(), findings)?;
    let generation = PolicyGeneration { id: common.id.clone(), constraints, body: body? };
    let on = |switch: Switch| switch.enabled.unwrap_or(false);
    let evaluation = &spec.evaluation;
    let body = Body::Generate(Box::new(GeneratedBody {
        synchronize: on(evaluation.synchronize),
        orphan: on(evaluation.orphan_downstream_on_policy_delete),
        existing: on(evaluation.generate_existing),
        server_side_apply: spec.use_server_side_apply.unwrap_or(false),
        content: GeneratedContent::Policy(Box::new(generation)),
    }));
    let mut demands = RuleDemands::of_constraints(Hook::Validating, spec.match_constraints.as_ref());
    // Requests of any operation are wanted, as upstream registers them: an update or a deletion may end what was made
    // for the trigger.
    demands.requests =
        demands.requests.into_iter().map(|request| RequestDemand { operations: Operations::ALL, ..request }).collect();
    let name = common.id.name.clone();
    Some(CompiledRule {
        // Reports call it by the policy's name.
        declared: name.clone(),
        name,
        skip_background_requests: evaluation.skip_background_requests.unwrap_or(true),
        ..validating::unnamed(None, path, demands, body)
    })
}
