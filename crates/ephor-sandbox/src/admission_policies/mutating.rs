//! `MutatingAdmissionPolicy`: patches in CEL before webhooks change the object, and once more after them.

use std::sync::Arc;

use ephor_cluster::admission::{Attributes, User};
use ephor_cluster::{ClusterError, MemoryCluster};
use ephor_engine::compile::Program;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Merger;
use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::policy::FailurePolicy;
use ephor_engine::rules::validate::admission::{Decision, Finding};
use ephor_engine::select::PolicySet;
use ephor_expr::Value;
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::facts::{ClusterFacts, evaluate};

use super::{Stored, is_exempt, review};

pub(super) const POLICY: &str = "MutatingAdmissionPolicy";
pub(super) const BINDING: &str = "MutatingAdmissionPolicyBinding";

/// The stored policies, and whom they ask.
pub(crate) struct MutatingPolicies {
    stored: Stored<Vec<MutatingPolicy>>,
    facts: ClusterFacts,
}

struct MutatingPolicy {
    program: Arc<Program>,
    /// The policy alone.
    set: PolicySet,
    /// Whether it is asked again after others changed the object.
    is_reinvoked: bool,
}

/// What the policies did to one request so far.
#[derive(Default)]
pub(crate) struct Mutations {
    /// The policies to ask again if the object changes.
    invoked: Vec<usize>,
    /// The policies to ask again.
    due: Vec<usize>,
    /// The object after the last policy.
    last: Value,
}

/// Merges by the schemas of the sandbox.
pub(crate) struct BySchema(pub(crate) MemoryCluster);

impl Merger for BySchema {
    fn merge(&self, object: &Value, configuration: &Value) -> Result<Value, String> {
        self.0.merge(object, configuration).map_err(|error| error.to_string())
    }
}

impl MutatingPolicies {
    /// The policies of a cluster. They read it as the API server does, which may read everything.
    pub(crate) fn of(cluster: &MemoryCluster) -> Self {
        let cluster = cluster.acting_as(User::default());
        let facts = ClusterFacts::new(Arc::new(cluster.clone())).with_merger(Arc::new(BySchema(cluster.clone())));
        Self { stored: Stored::of(&cluster, "v1beta1", POLICY), facts }
    }

    /// Changes the object of a request by all policies.
    pub(crate) fn mutate(
        &self,
        attributes: &mut Attributes,
        request: impl Fn(&Attributes) -> Result<AdmissionRequest, ClusterError>,
    ) -> Result<Mutations, ClusterError> {
        let mut mutations = Mutations::default();
        let policies = self.policies()?;
        let all: Vec<usize> = (0..policies.len()).collect();
        self.invoke(&policies, &all, attributes, request, &mut mutations)?;
        Ok(mutations)
    }

    /// Asks those policies again whose object others have changed since.
    pub(crate) fn mutate_again(
        &self,
        mut mutations: Mutations,
        attributes: &mut Attributes,
        request: impl Fn(&Attributes) -> Result<AdmissionRequest, ClusterError>,
    ) -> Result<(), ClusterError> {
        if attributes.object != mutations.last {
            mutations.due.append(&mut mutations.invoked);
        }
        let mut due = std::mem::take(&mut mutations.due);
        due.sort_unstable();
        due.dedup();
        self.invoke(&self.policies()?, &due, attributes, request, &mut mutations)
    }

    fn policies(&self) -> Result<Arc<Vec<MutatingPolicy>>, ClusterError> {
        self.stored.get(|compiled| {
            let policy = |(document, program): (Value, Arc<Program>)| MutatingPolicy {
                set: PolicySet::new(vec![Arc::clone(&program)]),
                program,
                is_reinvoked: document.str_at(&["spec", "reinvocationPolicy"]) == Some("IfNeeded"),
            };
            compiled.into_iter().map(policy).collect()
        })
    }

    /// Runs policies one after the other; each sees what the one before made of the object. All run before a failure
    /// counts, as in an API server.
    fn invoke(
        &self,
        policies: &[MutatingPolicy],
        which: &[usize],
        attributes: &mut Attributes,
        request: impl Fn(&Attributes) -> Result<AdmissionRequest, ClusterError>,
        mutations: &mut Mutations,
    ) -> Result<(), ClusterError> {
        let mut refusal = None;
        if !is_exempt(attributes) {
            for index in which {
                let Some(policy) = policies.get(*index) else { continue };
                let review = review(attributes, &request(attributes)?);
                let done = evaluate(&policy.set, &ExceptionSet::default(), review, Phase::Mutate, &self.facts);
                let Some(outcome) = done.outcomes.into_iter().next() else { continue };
                let after = outcome.detail.as_deref().and_then(|detail| detail.partly_patched.clone());
                let after = after.unwrap_or(done.object);
                if after != attributes.object {
                    attributes.object = after;
                    mutations.due.append(&mut mutations.invoked);
                }
                if policy.is_reinvoked && outcome.verdict != Verdict::Skip {
                    mutations.invoked.push(*index);
                }
                refusal = refusal.or_else(|| refused(&policy.program, &outcome, attributes));
            }
        }
        mutations.last = attributes.object.clone();
        refusal.map_or(Ok(()), Err)
    }
}

/// The refusal that a failure leads to.
fn refused(program: &Program, outcome: &Outcome, attributes: &Attributes) -> Option<ClusterError> {
    if outcome.verdict != Verdict::Error || program.failure_policy != FailurePolicy::Fail {
        return None;
    }
    let policy = &program.id.name;
    let refuse = |with: String, message: &str, reason| {
        let why = format!("policy {with} denied request: {message}");
        ClusterError::refused_by_policy(&attributes.resource, &attributes.name, why, reason)
    };
    let decision = outcome.detail.as_deref().and_then(|detail| detail.decisions.first());
    Some(match decision {
        Some(Decision { binding, finding: Finding::Failed(message), .. }) => {
            refuse(named(policy, binding.as_deref()), message, "Invalid")
        }
        Some(Decision { binding, finding: Finding::Misconfigured(message), .. }) => {
            refuse(named(policy, binding.as_deref()), message, "Forbidden")
        }
        // It could not be told whether the policy applies.
        _ => refuse(format!("{policy:?}"), &format!("failed to configure policy: {}", outcome.message), "Forbidden"),
    })
}

fn named(policy: &str, binding: Option<&str>) -> String {
    binding.map_or_else(|| format!("{policy:?}"), |binding| format!("'{policy}' with binding '{binding}'"))
}

#[cfg(test)]
mod tests {
    use ephor_cluster::Cluster as _;
    use ephor_expr::yaml::{Limits, parse_values};
    use ephor_runtime::cancellation::CancellationToken;

    use super::*;
    use crate::Sandbox;

    /// Adds a policy with these members of its `spec`, and its binding.
    fn policy(sandbox: &Sandbox, name: &str, spec: &str) {
        let text = format!(
            "{{apiVersion: admissionregistration.k8s.io/v1beta1, kind: {POLICY}, metadata: {{name: {name}}}, spec: \
             {{matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: \
             [configmaps, serviceaccounts]}}]}}, {spec}}}}}\n---\n{{apiVersion: admissionregistration.k8s.io/v1beta1, \
             kind: {BINDING}, metadata: {{name: {name}}}, spec: {{policyName: {name}}}}}"
        );
        let added = sandbox.add(parse_values(&text, &Limits::default()).unwrap());
        assert!(added.refused.is_empty() && added.warnings.is_empty(), "{:?}", added.refused);
    }

    fn sandbox() -> Sandbox {
        let sandbox = Sandbox::new(0, None, &CancellationToken::new()).unwrap();
        sandbox.enforce();
        sandbox
    }

    /// The data of a `ConfigMap` after all policies, or the refusal.
    fn data(sandbox: &Sandbox, data: &str) -> String {
        let text =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: o, namespace: default}}, data: {data}}}");
        let added = sandbox.add(parse_values(&text, &Limits::default()).unwrap());
        if let Some(refused) = added.refused.first() {
            return format!("{} {}: {}", refused.error.code(), refused.error.reason(), refused.error);
        }
        let cluster = sandbox.cluster();
        let kind = cluster.resolve("v1", "ConfigMap").unwrap();
        cluster.get(&kind, Some("default"), "o").unwrap().get("data").map(Value::to_json).unwrap_or_default()
    }

    fn configuration(expression: &str) -> String {
        format!("mutations: [{{patchType: ApplyConfiguration, applyConfiguration: {{expression: \"{expression}\"}}}}]")
    }

    #[test]
    fn policies_change_an_object_one_after_the_other() {
        let sandbox = sandbox();
        let patch = "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/data/n', \
                     value: string(size(object.data))}]\"}}]";
        policy(&sandbox, "first", &configuration("Object{data: {'m': 'merged'}}"));
        policy(&sandbox, "second", patch);
        assert_eq!(data(&sandbox, "{a: x}"), r#"{"a":"x","m":"merged","n":"2"}"#);
    }

    #[test]
    fn a_policy_is_asked_again_after_another_changed_the_object_if_it_wants_to_be() {
        for (wanted, size) in [("Never", 1), ("IfNeeded", 3)] {
            let sandbox = sandbox();
            let counting = configuration("Object{data: {'n': string(size(object.data))}}");
            policy(&sandbox, "first", &format!("reinvocationPolicy: {wanted}, {counting}"));
            policy(&sandbox, "second", &configuration("Object{data: {'m': 'merged'}}"));
            assert_eq!(data(&sandbox, "{a: x}"), format!(r#"{{"a":"x","m":"merged","n":"{size}"}}"#), "{wanted}");
        }
    }

    #[test]
    fn a_failure_refuses_the_request_unless_the_policy_says_otherwise() {
        let mutations = "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{data: {'n': \
                         object.data.missing}}\"}}, {patchType: ApplyConfiguration, applyConfiguration: {expression: \
                         \"Object{data: {'m': 'merged'}}\"}}]";
        let ignoring = sandbox();
        policy(&ignoring, "lax", &format!("failurePolicy: Ignore, {mutations}"));
        assert_eq!(data(&ignoring, "{a: x}"), r#"{"a":"x","m":"merged"}"#);
        let strict = sandbox();
        policy(&strict, "strict", mutations);
        assert_eq!(
            data(&strict, "{a: x}"),
            "403 Invalid: policy 'strict' with binding 'strict' denied request: expression 'Object{data: {'n': \
             object.data.missing}}' resulted in error: no such key: missing"
        );
    }
}
