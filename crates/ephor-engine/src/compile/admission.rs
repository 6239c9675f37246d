//! Kubernetes' own admission policies into programs.
//!
//! In go a `ValidatingAdmissionPolicy` and the bindings that name it, out comes a program with one rule, which is
//! called after the policy. So the engine judges them like any other policy.

use ephor_expr::value::{Path, decode_rest};
use ephor_expr::{Str, Value};

use super::Compiled;
use super::action::FailureActions;
use super::admission_fields::{check_annotations, check_conditions, check_validations, check_variables};
use super::demands::RuleDemands;
use super::policy::decode_finding;
use super::program::{Program, Scoring};
use super::rule::{Body, CompiledRule, ValidateBody, ValidateCheck};
use super::webhook::WebhookTerms;
use crate::cel::{self, Fault, Listed, Params, PatchKind, PatchSource, Place, Source};
use crate::diagnostic::Diagnostic;
use crate::matching::{Matcher, RequestMatcher, SelectorError};
use crate::policy::{
    ApplyRules, FailurePolicy, MatchResources, Metadata, MutatingAdmissionPolicy, Mutation, ParamKind, ParamRef,
    PolicyId, ProgramKind, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidationAction,
};
use crate::rules::admission::{AdmissionSelection, Binding};
use crate::rules::mutate::admission::AdmissionMutation;
use crate::rules::validate::admission::AdmissionCheck;

/// The group of Kubernetes' own admission policies.
pub const ADMISSION_GROUP: &str = "admissionregistration.k8s.io";
/// Its versions that have these policies.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// A `ValidatingAdmissionPolicyBinding` or `MutatingAdmissionPolicyBinding`, checked by itself. It is compiled with the
/// policy that it names.
#[derive(Debug, Clone)]
pub struct AdmissionBinding {
    /// Its name.
    pub name: Str,
    /// The kind of the policy that it puts to work.
    pub kind: ProgramKind,
    /// Its name.
    pub policy: Str,
    parameters: Option<ParamRef>,
    matcher: Option<RequestMatcher>,
    actions: Vec<ValidationAction>,
}

impl AdmissionBinding {
    /// Reads a document. There is a binding unless there is an error among the findings.
    pub fn of_document(document: &Value) -> (Option<Self>, Vec<Diagnostic>) {
        let (binding, faults) = decode_rest::<ValidatingAdmissionPolicyBinding>(document);
        let mut findings: Vec<Diagnostic> = faults.into_iter().map(decode_finding).collect();
        let Some(binding) = binding else { return (None, findings) };
        check_version(&binding.api_version, &mut findings);
        let (spec, path) = (binding.spec, Path::root().key("spec"));
        if spec.policy_name.is_empty() {
            let message = "the binding names no policy";
            findings.push(Diagnostic::error("admission-binding", path.key("policyName"), message));
        }
        let kind = match binding.kind.as_str() {
            "MutatingAdmissionPolicyBinding" => ProgramKind::MutatingAdmissionPolicy,
            _ => ProgramKind::ValidatingAdmissionPolicy,
        };
        let actions = path.key("validationActions");
        if kind == ProgramKind::ValidatingAdmissionPolicy {
            check_actions(&spec.validation_actions, &actions, &mut findings);
        } else if !spec.validation_actions.is_empty() {
            let message = "a binding of a MutatingAdmissionPolicy has no actions";
            findings.push(Diagnostic::error("admission-binding", actions, message));
        }
        if let Some(reference) = &spec.param_ref {
            check_parameters(reference, &path.key("paramRef"), &mut findings);
        }
        let matcher = spec.match_resources.as_ref().and_then(|block| {
            let path = path.key("matchResources");
            check_rules(block, &path, &mut findings);
            matcher(block, &path, &mut findings)
        });
        if findings.iter().any(Diagnostic::is_error) {
            return (None, findings);
        }
        let binding = Self {
            name: binding.metadata.name,
            kind,
            policy: spec.policy_name,
            parameters: spec.param_ref,
            matcher,
            actions: spec.validation_actions,
        };
        (Some(binding), findings)
    }
}

/// Compiles a `ValidatingAdmissionPolicy` or `MutatingAdmissionPolicy` with those of `bindings` that name it.
pub fn compile_admission_policy(document: &Value, bindings: &[AdmissionBinding]) -> Compiled {
    if document.str_at(&["kind"]) == Some("MutatingAdmissionPolicy") {
        compile_mutating(document, bindings)
    } else {
        compile_validating(document, bindings)
    }
}

/// What the two kinds of policies have in common.
struct Common<'p> {
    kind: ProgramKind,
    metadata: &'p Metadata,
    param_kind: Option<&'p ParamKind>,
    constraints: Option<&'p MatchResources>,
    failure_policy: Option<FailurePolicy>,
}

fn compile_validating(document: &Value, bindings: &[AdmissionBinding]) -> Compiled {
    let (policy, faults) = decode_rest::<ValidatingAdmissionPolicy>(document);
    let mut findings: Vec<Diagnostic> = faults.into_iter().map(decode_finding).collect();
    let Some(policy) = policy else { return Compiled::refused(findings) };
    check_version(&policy.api_version, &mut findings);
    let (spec, path) = (&policy.spec, Path::root().key("spec"));
    if spec.validations.is_empty() && spec.audit_annotations.is_empty() {
        let message = "the policy has neither `validations` nor `auditAnnotations`";
        findings.push(Diagnostic::error("admission-policy", path.key("validations"), message));
    }
    let source = Source {
        variables: Listed { items: &spec.variables, path: path.key("variables") },
        conditions: Listed { items: &spec.match_conditions, path: path.key("matchConditions") },
        validations: Listed { items: &spec.validations, path: path.key("validations") },
        annotations: Listed { items: &spec.audit_annotations, path: path.key("auditAnnotations") },
        ..Source::at(Place::Validation { params: spec.param_kind.is_some() })
    };
    let common = Common {
        kind: ProgramKind::ValidatingAdmissionPolicy,
        metadata: &policy.metadata,
        param_kind: spec.param_kind.as_ref(),
        constraints: spec.match_constraints.as_ref(),
        failure_policy: spec.failure_policy,
    };
    common.compile(&source, bindings, findings, |selection| {
        Body::Validate(Box::new(ValidateBody {
            check: ValidateCheck::Admission(Box::new(AdmissionCheck { selection })),
            message: None,
            actions: FailureActions::enforcing(),
            allow_existing_violations: false,
            pass_message: Str::default(),
            path,
        }))
    })
}

fn compile_mutating(document: &Value, bindings: &[AdmissionBinding]) -> Compiled {
    let (policy, faults) = decode_rest::<MutatingAdmissionPolicy>(document);
    let mut findings: Vec<Diagnostic> = faults.into_iter().map(decode_finding).collect();
    let Some(policy) = policy else { return Compiled::refused(findings) };
    check_version(&policy.api_version, &mut findings);
    let (spec, path) = (&policy.spec, Path::root().key("spec"));
    if spec.mutations.is_empty() {
        let message = "the policy has no `mutations`";
        findings.push(Diagnostic::error("admission-policy", path.key("mutations"), message));
    }
    let patches = spec.mutations.iter().enumerate().map(|(i, mutation)| {
        let (kind, text, key) = match mutation {
            Mutation::ApplyConfiguration { apply_configuration } => {
                (PatchKind::ApplyConfiguration, &apply_configuration.expression, "applyConfiguration")
            }
            Mutation::JSONPatch { json_patch } => (PatchKind::JsonPatch, &json_patch.expression, "jsonPatch"),
        };
        PatchSource { kind, text, path: path.key("mutations").index(i).keys(&[key, "expression"]) }
    });
    let source = Source {
        variables: Listed { items: &spec.variables, path: path.key("variables") },
        conditions: Listed { items: &spec.match_conditions, path: path.key("matchConditions") },
        patches: patches.collect(),
        ..Source::at(Place::Mutation { params: spec.param_kind.is_some() })
    };
    let common = Common {
        kind: ProgramKind::MutatingAdmissionPolicy,
        metadata: &policy.metadata,
        param_kind: spec.param_kind.as_ref(),
        constraints: spec.match_constraints.as_ref(),
        failure_policy: spec.failure_policy,
    };
    common.compile(&source, bindings, findings, |selection| Body::Admission(Box::new(AdmissionMutation { selection })))
}

impl Common<'_> {
    fn compile(
        &self,
        source: &Source<'_>,
        bindings: &[AdmissionBinding],
        mut findings: Vec<Diagnostic>,
        body: impl FnOnce(AdmissionSelection) -> Body,
    ) -> Compiled {
        check_conditions(source.conditions.items, &source.conditions.path, &mut findings);
        check_variables(source.variables.items, &source.variables.path, &mut findings);
        check_validations(source.validations.items, &source.validations.path, &mut findings);
        check_annotations(source.annotations.items, &source.annotations.path, &mut findings);
        let selection = self.selection(source, bindings, &mut findings);
        let selection = selection.filter(|_| !findings.iter().any(Diagnostic::is_error));
        Compiled { program: selection.map(|selection| self.program(body(selection))), ..Compiled::refused(findings) }
    }

    fn selection(
        &self,
        source: &Source<'_>,
        bindings: &[AdmissionBinding],
        findings: &mut Vec<Diagnostic>,
    ) -> Option<AdmissionSelection> {
        let at = Path::root().keys(&["spec", "matchConstraints"]);
        let block = self.constraints.filter(|block| !block.resource_rules.is_empty());
        let constraints = if let Some(block) = block {
            check_rules(block, &at, findings);
            matcher(block, &at, findings)
        } else {
            let message = "the policy matches nothing: `matchConstraints.resourceRules` is empty";
            findings.push(Diagnostic::error("admission-policy", at.key("resourceRules"), message));
            None
        };
        let body = match cel::Body::compile(source) {
            Ok(body) => {
                findings.extend(body.conditions_with_variables().map(Fault::diagnostic));
                Some(body)
            }
            Err(faults) => {
                findings.extend(faults.into_iter().map(Fault::diagnostic));
                None
            }
        };
        let own = |given: &&AdmissionBinding| given.kind == self.kind && given.policy == self.metadata.name;
        let mut own: Vec<&AdmissionBinding> = bindings.iter().filter(own).collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        let bindings = own.into_iter().map(|given| {
            let kind_and_reference = self.param_kind.zip(given.parameters.as_ref());
            let params = kind_and_reference.map(|(kind, reference)| Params::compile(kind, reference, &Path::root()));
            Ok(Binding {
                name: given.name.clone(),
                matcher: given.matcher.clone(),
                params: params.transpose()?,
                actions: given.actions.clone(),
            })
        });
        match bindings.collect::<Result<Vec<_>, SelectorError>>() {
            Ok(bindings) => Some(AdmissionSelection { constraints: constraints?, body: body?, bindings }),
            // The finding stands in the binding, which is refused for it.
            Err(_) => None,
        }
    }

    fn program(&self, body: Body) -> Program {
        let name = &self.metadata.name;
        let rule = CompiledRule {
            name: name.clone(),
            declared: name.clone(),
            path: Path::root().key("spec"),
            autogen: None,
            matches: Matcher::everything(),
            exclude: None,
            context: Vec::new(),
            preconditions: None,
            properties: Vec::new(),
            skip_background_requests: false,
            // The API server asks these policies by itself.
            demands: RuleDemands::default(),
            body,
        };
        Program {
            id: PolicyId::new(self.kind, None, name.clone()),
            key: name.clone(),
            admission: true,
            background: true,
            apply_rules: ApplyRules::All,
            failure_policy: self.failure_policy.unwrap_or_default(),
            webhook: WebhookTerms::default(),
            requests: cel::Body::default(),
            emit_warning: false,
            scoring: Scoring::of(self.metadata),
            rules: vec![rule],
        }
    }
}

fn check_version(api_version: &str, findings: &mut Vec<Diagnostic>) {
    let version = api_version.strip_prefix(ADMISSION_GROUP).and_then(|rest| rest.strip_prefix('/'));
    if !version.is_some_and(|version| VERSIONS.contains(&version)) {
        let message = format!("unknown version `{api_version}`; known of `{ADMISSION_GROUP}`: {}", VERSIONS.join(", "));
        findings.push(Diagnostic::error("admission-policy", Path::root().key("apiVersion"), message));
    }
}

fn check_actions(actions: &[ValidationAction], path: &Path, findings: &mut Vec<Diagnostic>) {
    let message = if actions.is_empty() {
        // The command line judges under such a binding, as upstream does; an API server refuses it.
        findings.push(Diagnostic::warning("admission-binding", path.clone(), "an API server requires an action"));
        return;
    } else if actions.contains(&ValidationAction::Deny) && actions.contains(&ValidationAction::Warn) {
        "`Deny` and `Warn` exclude each other: a refusal carries its message"
    } else if actions.iter().enumerate().any(|(i, action)| actions.iter().take(i).any(|before| before == action)) {
        "an action stands here twice"
    } else {
        return;
    };
    findings.push(Diagnostic::error("admission-binding", path.clone(), message));
}

fn check_parameters(reference: &ParamRef, path: &Path, findings: &mut Vec<Diagnostic>) {
    let named = reference.name.as_ref().is_some_and(|name| !name.is_empty());
    if named == reference.selector.is_some() {
        let message = "parameters have either a `name` or a `selector`";
        findings.push(Diagnostic::error("admission-binding", path.clone(), message));
    }
    // An API server refuses the binding; it takes what upstream writes without the field on the command line.
    if reference.parameter_not_found_action.is_none() {
        let message = "an API server requires `parameterNotFoundAction`; here it is `Deny`";
        findings.push(Diagnostic::warning("admission-binding", path.clone(), message));
    }
}

/// Rules that can match nothing are mistakes.
fn check_rules(block: &MatchResources, path: &Path, findings: &mut Vec<Diagnostic>) {
    let lists = [("resourceRules", &block.resource_rules), ("excludeResourceRules", &block.exclude_resource_rules)];
    for (key, rules) in lists {
        for (i, rule) in rules.iter().enumerate() {
            if rule.operations.is_empty() {
                // Upstream's command line takes such a rule, for all operations; an API server refuses it.
                let message = "an API server requires `operations`; here it is all of them";
                findings.push(Diagnostic::warning(
                    "admission-policy",
                    path.key(key).index(i).key("operations"),
                    message,
                ));
            }
            let parts = [
                ("apiGroups", rule.api_groups.is_empty()),
                ("apiVersions", rule.api_versions.is_empty()),
                ("resources", rule.resources.is_empty()),
            ];
            for (part, _) in parts.into_iter().filter(|(_, empty)| *empty) {
                let path = path.key(key).index(i).key(part);
                findings.push(Diagnostic::error("admission-policy", path, format!("`{part}` must not be empty")));
            }
        }
    }
}

fn matcher(block: &MatchResources, path: &Path, findings: &mut Vec<Diagnostic>) -> Option<RequestMatcher> {
    match RequestMatcher::compile(block, path) {
        Ok(matcher) => Some(matcher),
        Err(error) => {
            findings.push(Diagnostic::error("invalid-selector", error.path().clone(), error.to_string()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    fn lines(findings: &[Diagnostic]) -> String {
        findings.iter().map(|finding| format!("{} {finding}", finding.code)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_policy_is_refused_for_all_that_is_wrong_with_it() {
        let policy = "
apiVersion: admissionregistration.k8s.io/v2
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], operations: [CREATE], resources: [deployments]}]
    objectSelector: {matchExpressions: [{key: a, operator: In}]}
  matchConditions: [{name: c, expression: 'object.x +'}]
  variables: [{name: v, expression: '1'}]
  validations:
    - {expression: 'variables.v', reason: Bad}
    - {expression: 'variables.w == 1'}
    - {expression: 'params.x == 1', massage: no}
";
        let compiled = compile_admission_policy(&parse_value(policy).unwrap(), &[]);
        assert!(compiled.program.is_none());
        insta::assert_snapshot!(lines(&compiled.findings), @r"
        unknown-field spec.validations[2].massage: unknown field `massage` (did you mean `message`?)
        admission-policy apiVersion: unknown version `admissionregistration.k8s.io/v2`; known of `admissionregistration.k8s.io`: v1, v1beta1, v1alpha1
        admission-policy spec.validations[0].reason: unknown reason `Bad`; known: Forbidden, Invalid, RequestEntityTooLarge
        admission-policy spec.matchConstraints.resourceRules[0].apiVersions: `apiVersions` must not be empty
        invalid-selector spec.matchConstraints.objectSelector.matchExpressions[0]: operator `In` of a label selector needs `values`
        cel spec.matchConditions[0].expression: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
        cel spec.validations[0].expression: must evaluate to bool but got int
        cel spec.validations[1].expression: undefined field 'w'
        cel spec.validations[2].expression: undeclared reference to 'params' (in container '')
        ");
        let empty =
            "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}}";
        let compiled = compile_admission_policy(&parse_value(empty).unwrap(), &[]);
        insta::assert_snapshot!(lines(&compiled.findings), @r"
        admission-policy spec.validations: the policy has neither `validations` nor `auditAnnotations`
        admission-policy spec.matchConstraints.resourceRules: the policy matches nothing: `matchConstraints.resourceRules` is empty
        ");
    }

    #[test]
    fn names_and_texts_are_those_that_an_api_server_takes() {
        let policy = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  matchConditions:
    - {name: example.com/a, expression: 'true'}
    - {name: example.com/a, expression: 'variables.good'}
    - {name: a b, expression: 'true'}
    - {name: A/b/c, expression: 'true'}
  variables:
    - {name: good, expression: 'true'}
    - {name: a-b, expression: 'true'}
    - {name: for, expression: 'true'}
  validations:
    - {expression: 'true', message: "a\nb", reason: Unauthorized}
    - {expression: 'true', message: ' '}
    - {expression: 'true', message: "fine\n", reason: Invalid}
  auditAnnotations:
    - {key: k y, valueExpression: "'v'"}
    - {key: k, valueExpression: "'v'"}
    - {key: k, valueExpression: "'v'"}
"#;
        let compiled = compile_admission_policy(&parse_value(policy).unwrap(), &[]);
        insta::assert_snapshot!(lines(&compiled.findings), @r"
        admission-policy spec.matchConditions[1].name: `example.com/a` is there twice
        admission-policy spec.matchConditions[2].name: `a b` is not a qualified name, as `example.com/my-name`
        admission-policy spec.matchConditions[3].name: `A/b/c` is not a qualified name, as `example.com/my-name`
        admission-policy spec.variables[1].name: `a-b` is not an identifier of CEL
        admission-policy spec.variables[2].name: `for` is not an identifier of CEL
        admission-policy spec.validations[0].reason: unknown reason `Unauthorized`; known: Forbidden, Invalid, RequestEntityTooLarge
        admission-policy spec.validations[0].message: a message has no line breaks
        admission-policy spec.validations[1].message: the text is blank
        admission-policy spec.auditAnnotations[0].key: `k y` is not the name part of a qualified name, as `my-name`
        admission-policy spec.auditAnnotations[2].key: `k` is there twice
        cel spec.matchConditions[1].expression: undeclared reference to 'variables' (in container '')
        ");
        let many = (0..65).map(|i| format!("{{name: c{i}, expression: 'true'}}")).collect::<Vec<_>>().join(", ");
        let policy = format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {{name: p}},
            spec: {{matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE],
            resources: [pods]}}]}}, validations: [{{expression: 'true'}}], matchConditions: [{many}]}}}}"
        );
        let compiled = compile_admission_policy(&parse_value(&policy).unwrap(), &[]);
        insta::assert_snapshot!(lines(&compiled.findings), @"admission-policy spec.matchConditions: more than 64 match conditions");
    }

    #[test]
    fn a_binding_names_a_policy_one_sort_of_parameters_and_actions_that_go_together() {
        let binding = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec:
  paramRef: {name: a, selector: {}}
  validationActions: [Deny, Warn]
  matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], resources: []}]}
";
        let (binding, findings) = AdmissionBinding::of_document(&parse_value(binding).unwrap());
        assert!(binding.is_none());
        insta::assert_snapshot!(lines(&findings), @r"
        admission-binding spec.policyName: the binding names no policy
        admission-binding spec.validationActions: `Deny` and `Warn` exclude each other: a refusal carries its message
        admission-binding spec.paramRef: parameters have either a `name` or a `selector`
        admission-binding spec.paramRef: an API server requires `parameterNotFoundAction`; here it is `Deny`
        admission-policy spec.matchResources.excludeResourceRules[0].operations: an API server requires `operations`; here it is all of them
        admission-policy spec.matchResources.excludeResourceRules[0].resources: `resources` must not be empty
        ");
    }
}
