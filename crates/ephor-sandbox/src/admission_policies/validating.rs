//! `ValidatingAdmissionPolicy`: judges a request after all changes; warnings, or a refusal.

use std::sync::Arc;

use ephor_cluster::admission::{Attributes, User};
use ephor_cluster::{ClusterError, MemoryCluster};
use ephor_engine::compile::Program;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::policy::{FailurePolicy, ValidationAction};
use ephor_engine::rules::validate::admission::{Decision, Finding};
use ephor_engine::select::PolicySet;
use ephor_expr::Str;
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::facts::{ClusterFacts, evaluate};

use super::{Stored, is_exempt, review};

pub(super) const POLICY: &str = "ValidatingAdmissionPolicy";
pub(super) const BINDING: &str = "ValidatingAdmissionPolicyBinding";

/// The stored policies, and whom they ask.
pub(crate) struct ValidatingPolicies {
    stored: Stored<PolicySet>,
    facts: ClusterFacts,
}

impl ValidatingPolicies {
    /// The policies of a cluster. They read it as the API server does, which may read everything.
    pub(crate) fn of(cluster: &MemoryCluster) -> Self {
        let cluster = cluster.acting_as(User::default());
        let facts = ClusterFacts::new(Arc::new(cluster.clone()));
        Self { stored: Stored::of(&cluster, "v1", POLICY), facts }
    }

    /// Judges a request by all policies: warnings, or the refusal.
    pub(crate) fn judge(
        &self,
        attributes: &Attributes,
        request: &AdmissionRequest,
    ) -> Result<Vec<String>, ClusterError> {
        if is_exempt(attributes) {
            return Ok(Vec::new());
        }
        let set = self.stored.get(|compiled| PolicySet::new(compiled.into_iter().map(|(_, p)| p).collect()))?;
        if set.programs().is_empty() {
            return Ok(Vec::new());
        }
        let review = review(attributes, request);
        let done = evaluate(&set, &ExceptionSet::default(), review, Phase::Validate, &self.facts);
        let mut warnings = Vec::new();
        let mut refusal = None;
        for outcome in &done.outcomes {
            if let Some(program) = set.programs().get(outcome.policy) {
                let found = act(program, outcome, attributes, &mut warnings);
                refusal = refusal.or(found);
            }
        }
        refusal.map_or(Ok(warnings), Err)
    }
}

/// What the decisions of one policy lead to: warnings, and the first refusal.
fn act(
    program: &Program,
    outcome: &Outcome,
    attributes: &Attributes,
    warnings: &mut Vec<String>,
) -> Option<ClusterError> {
    let fails_closed = program.failure_policy == FailurePolicy::Fail;
    let policy = &program.id.name;
    let refuse = |binding: Option<&Str>, message: &str, reason: Option<&Str>| {
        let with = binding.map(|binding| format!(" with binding '{binding}'")).unwrap_or_default();
        let why = format!("{POLICY} '{policy}'{with} denied request: {message}");
        ClusterError::denied_for(&attributes.resource, &attributes.name, &why, reason.map(Str::as_str))
    };
    let decisions = outcome.detail.as_deref().map(|detail| detail.decisions.as_slice()).unwrap_or_default();
    if decisions.is_empty() {
        // It could not be told whether the policy applies.
        let message = format!("failed to configure policy: {}", outcome.message);
        return fails_closed.then(|| refuse(None, &message, None));
    }
    let mut refusal = None;
    for Decision { binding, actions, finding } in decisions {
        let (message, reason) = match finding {
            Finding::Met | Finding::Unmet => continue,
            Finding::Violated { message, reason } => (message, reason.as_ref()),
            Finding::Failed(_) | Finding::Misconfigured(_) if !fails_closed => continue,
            Finding::Failed(message) => (message, None),
            Finding::Misconfigured(message) => {
                refusal.get_or_insert_with(|| refuse(binding.as_ref(), message, None));
                continue;
            }
        };
        if actions.contains(&ValidationAction::Warn) {
            let name = binding.as_deref().unwrap_or_default();
            warnings.push(format!("Validation failed for {POLICY} '{policy}' with binding '{name}': {message}"));
        }
        if actions.contains(&ValidationAction::Deny) {
            refusal.get_or_insert_with(|| refuse(binding.as_ref(), message, reason));
        }
    }
    refusal
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::{Limits, parse_values};
    use ephor_runtime::cancellation::CancellationToken;

    use crate::Sandbox;

    /// What each document of `documents` leads to: the refusal with reason and code, or the warnings.
    fn added(sandbox: &Sandbox, documents: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for document in parse_values(documents, &Limits::default()).unwrap() {
            let added = sandbox.add([document]);
            let refused = added
                .refused
                .iter()
                .map(|refused| format!("{} {}: {}", refused.error.code(), refused.error.reason(), refused.error));
            lines.extend(refused.chain(added.warnings.iter().map(|(_, warning)| format!("warning: {warning}"))));
        }
        lines
    }

    fn sandbox() -> Sandbox {
        let sandbox = Sandbox::new(0, None, &CancellationToken::new()).unwrap();
        sandbox.enforce();
        sandbox
    }

    const POLICIES: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limits}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
  validations:
    - {expression: 'size(object.data) <= int(params.data.max)', messageExpression: \"'at most ' + params.data.max\", reason: Forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: enforced}
spec:
  policyName: limits
  paramRef: {name: max, namespace: default, parameterNotFoundAction: Deny}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  failurePolicy: Ignore
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [secrets, configmaps]}]
  validations:
    - {expression: \"object.metadata.name.startsWith('my')\"}
    - {expression: 'object.metadata.nothing == 1'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: advised}
spec: {policyName: named, validationActions: [Warn, Audit]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unbound}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]
  validations: [{expression: 'false'}]
";

    #[test]
    fn stored_policies_deny_and_warn_as_their_bindings_say() {
        let sandbox = sandbox();
        assert_eq!(added(&sandbox, POLICIES), [""; 0]);
        let secrets = "
{apiVersion: v1, kind: Secret, metadata: {name: early}, stringData: {a: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: max}, data: {max: '1'}}
---
{apiVersion: v1, kind: Secret, metadata: {name: my-small}, data: {a: eA==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: big}, data: {a: eA==, b: eA==}}
";
        let got = added(&sandbox, secrets);
        assert_eq!(
            got,
            [
                "422 Invalid: secrets \"early\" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'enforced' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
                "warning: Validation failed for ValidatingAdmissionPolicy 'named' with binding 'advised': failed expression: object.metadata.name.startsWith('my')",
                "403 Forbidden: secrets \"big\" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'enforced' denied request: at most 1",
            ]
        );
    }

    #[test]
    fn a_policy_of_all_resources_denies_everything_but_changes_of_policies() {
        let sandbox = sandbox();
        let binding = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: bound}
spec: {policyName: unbound, validationActions: [Deny]}
";
        assert_eq!(added(&sandbox, &format!("{POLICIES}---{binding}---{binding}")), [""; 0]);
        let denied = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
        assert_eq!(
            added(&sandbox, denied),
            [
                "422 Invalid: namespaces \"shop\" is forbidden: ValidatingAdmissionPolicy 'unbound' with binding 'bound' denied request: failed expression: false"
            ]
        );
        sandbox.remove(&ephor_expr::yaml::parse_value(binding).unwrap()).unwrap();
        assert_eq!(added(&sandbox, denied), [""; 0]);
    }

    #[test]
    fn a_policy_that_does_not_compile_is_not_stored() {
        let policy = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: wrong}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: object.spec.containers.size()}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: idle}
spec: {policyName: wrong}
";
        assert_eq!(
            added(&sandbox(), policy),
            [
                "422 Invalid: ValidatingAdmissionPolicy.admissionregistration.k8s.io \"wrong\" is invalid: spec.validations[0].expression: Invalid value: \"object.spec.containers.size()\": must evaluate to bool but got int",
                "422 Invalid: ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"idle\" is invalid: spec.validationActions: Invalid value: \"\": an API server requires an action",
            ]
        );
    }
}
