//! `ValidatingAdmissionPolicy` as an API server enforces it.
//!
//! In goes a request, out come warnings or the refusal that the client gets, with Kubernetes' texts, reasons and codes.
//! The engine judges; this module reads the stored policies and bindings, and acts on what the engine decides. Policies
//! are compiled again only after one of them or of their bindings has changed.

use std::sync::Arc;

use ephor_cluster::admission::{Attributes, User};
use ephor_cluster::{Cause, Cluster as _, ClusterError, ListQuery, MemoryCluster, object};
use ephor_engine::compile::{ADMISSION_GROUP, AdmissionBinding, Program, compile_admission_policy};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::matching::Gvk;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::policy::{FailurePolicy, ValidationAction};
use ephor_engine::rules::validate::admission::{Decision, Finding};
use ephor_engine::select::PolicySet;
use ephor_expr::{Str, Value};
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::facts::{ClusterFacts, evaluate};
use parking_lot::Mutex;

const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";

/// Resources that no such policy judges: who may change the policies must always be able to.
const EXEMPT: [(&str, &[&str]); 3] = [
    (
        ADMISSION_GROUP,
        &[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ],
    ),
    ("authentication.k8s.io", &["tokenreviews", "selfsubjectreviews"]),
    (
        "authorization.k8s.io",
        &["localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
];

/// The stored policies, and whom they ask.
pub(super) struct AdmissionPolicies {
    cluster: MemoryCluster,
    facts: ClusterFacts,
    compiled: Mutex<Arc<Compiled>>,
}

/// Policies with bindings, compiled from these versions of documents.
#[derive(Default)]
struct Compiled {
    versions: Vec<Str>,
    set: PolicySet,
}

impl AdmissionPolicies {
    /// The policies of a cluster. They read it as the API server does, which may read everything.
    pub(super) fn of(cluster: &MemoryCluster) -> Self {
        let cluster = cluster.acting_as(User::default());
        let facts = ClusterFacts::new(Arc::new(cluster.clone()));
        Self { cluster, facts, compiled: Mutex::default() }
    }

    /// Judges a request by all policies: warnings, or the refusal.
    pub(super) fn judge(
        &self,
        attributes: &Attributes,
        request: &AdmissionRequest,
    ) -> Result<Vec<String>, ClusterError> {
        let resource = &attributes.resource;
        check_policy(attributes)?;
        let exempt = |(group, plurals): &(&str, &[&str])| {
            resource.group == *group && plurals.contains(&resource.plural.as_str())
        };
        if EXEMPT.iter().any(exempt) {
            return Ok(Vec::new());
        }
        let compiled = self.compiled()?;
        if compiled.set.programs().is_empty() {
            return Ok(Vec::new());
        }
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        let review = request.review(gvk, request.user.clone(), jiff::Timestamp::now(), attributes.serial);
        let done = evaluate(&compiled.set, &ExceptionSet::default(), review, Phase::Validate, &self.facts);
        let mut warnings = Vec::new();
        let mut refusal = None;
        for outcome in &done.outcomes {
            if let Some(program) = compiled.set.programs().get(outcome.policy) {
                let found = act(program, outcome, attributes, &mut warnings);
                refusal = refusal.or(found);
            }
        }
        refusal.map_or(Ok(warnings), Err)
    }

    fn compiled(&self) -> Result<Arc<Compiled>, ClusterError> {
        let (policies, bindings) = (self.stored(POLICY)?, self.stored(BINDING)?);
        let version = |document: &Value| {
            let uid = document.str_at(&["metadata", "uid"]).unwrap_or_default();
            Str::from(format!("{uid}/{}", document.str_at(&["metadata", "resourceVersion"]).unwrap_or_default()))
        };
        let versions: Vec<Str> = policies.iter().chain(&bindings).map(version).collect();
        let mut compiled = self.compiled.lock();
        if compiled.versions != versions {
            *compiled = Arc::new(Compiled { versions, set: compile(&policies, &bindings) });
        }
        Ok(Arc::clone(&compiled))
    }

    fn stored(&self, kind: &str) -> Result<Vec<Value>, ClusterError> {
        let resource = self.cluster.resolve(&format!("{ADMISSION_GROUP}/v1"), kind)?;
        let mut documents = self.cluster.list(&resource, &ListQuery::all())?.items;
        documents.sort_by(|a, b| object::name(a).cmp(object::name(b)));
        Ok(documents)
    }
}

/// The policies that some binding puts to work.
fn compile(policies: &[Value], bindings: &[Value]) -> PolicySet {
    let bindings: Vec<AdmissionBinding> =
        bindings.iter().filter_map(|document| AdmissionBinding::of_document(document).0).collect();
    let bound = |document: &&Value| bindings.iter().any(|binding| binding.policy == object::name(document));
    let programs = policies.iter().filter(bound).filter_map(|document| {
        let compiled = compile_admission_policy(document, &bindings);
        if compiled.program.is_none() {
            tracing::warn!(policy = object::name(document), "a stored ValidatingAdmissionPolicy does not compile");
        }
        compiled.program.map(Arc::new)
    });
    PolicySet::new(programs.collect())
}

/// Refuses a policy or binding that an API server would not store.
fn check_policy(attributes: &Attributes) -> Result<(), ClusterError> {
    let resource = &attributes.resource;
    if resource.group != ADMISSION_GROUP || attributes.object.is_null() || !attributes.subresource.is_empty() {
        return Ok(());
    }
    let findings: Vec<Diagnostic> = match resource.kind.as_str() {
        POLICY => compile_admission_policy(&attributes.object, &[]).findings,
        BINDING => AdmissionBinding::of_document(&attributes.object).1,
        _ => return Ok(()),
    };
    if findings.is_empty() {
        return Ok(());
    }
    let cause = |finding: &Diagnostic| {
        let value = finding.path.lookup(&attributes.object).and_then(Value::as_str).unwrap_or_default();
        Cause::invalid(finding.path.to_string(), value, &finding.message)
    };
    let causes: Vec<Cause> = findings.iter().map(cause).collect();
    Err(ClusterError::invalid(resource, &attributes.name, &causes))
}

/// What the decisions of one policy lead to: warnings, and the first refusal.
fn act(
    program: &Program,
    outcome: &Outcome,
    attributes: &Attributes,
    warnings: &mut Vec<String>,
) -> Option<ClusterError> {
    let fails_closed = program.failure_policy == FailurePolicy::Fail;
    let policy = &program.name;
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
