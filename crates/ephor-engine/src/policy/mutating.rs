//! `MutatingPolicy` and `NamespacedMutatingPolicy` of `policies.kyverno.io`.
//!
//! The types carry what a document says. They share constraints and mutations with Kubernetes' own admission policies.

use ephor_expr::{Str, Value};
use serde::Deserialize;

use super::{
    AuditAnnotation, CelVariable, EvaluationMode, FailurePolicy, LabelSelector, MatchCondition, MatchPolicy,
    MatchResources, Metadata, Mutation, NamedRule, PodControllers, PolicyWebhook, ReinvocationPolicy, Switch,
};

/// A `MutatingPolicy` or `NamespacedMutatingPolicy` document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MutatingPolicy {
    /// One version of `policies.kyverno.io`.
    pub api_version: Str,
    /// The kind.
    pub kind: Str,
    /// Name, namespace and annotations.
    pub metadata: Metadata,
    /// What it says.
    pub spec: MutatingPolicySpec,
    /// What a controller wrote; ignored.
    pub status: Option<Value>,
}

/// What a `MutatingPolicy` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MutatingPolicySpec {
    /// Which requests it changes.
    pub match_constraints: Option<MatchResources>,
    /// Which of those, by expressions.
    pub match_conditions: Vec<MatchCondition>,
    /// Named expressions.
    pub variables: Vec<CelVariable>,
    /// Patches, each of the object that the one before gave.
    pub mutations: Vec<Mutation>,
    /// Properties of report entries.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// What an expression that fails means.
    pub failure_policy: Option<FailurePolicy>,
    /// Whether an API server asks again after others changed the object.
    pub reinvocation_policy: Option<ReinvocationPolicy>,
    /// Existing objects that it changes.
    pub target_match_constraints: Option<TargetConstraints>,
    /// Which of those, by expressions.
    pub target_match_conditions: Vec<MatchCondition>,
    /// Where it is evaluated.
    pub evaluation: MutationEvaluation,
    /// What is made of it for other kinds.
    pub autogen: MutationAutogen,
    /// How its webhook is registered.
    pub webhook_configuration: PolicyWebhook,
}

/// Which existing objects a policy changes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct TargetConstraints {
    /// Gives the objects.
    pub expression: Option<Str>,
    /// Labels of the object's namespace.
    pub namespace_selector: Option<LabelSelector>,
    /// Labels of the object.
    pub object_selector: Option<LabelSelector>,
    /// Objects, of which one must fit.
    pub resource_rules: Vec<NamedRule>,
    /// Objects that are left out.
    pub exclude_resource_rules: Vec<NamedRule>,
    /// Whether rules mean other versions of a resource too.
    pub match_policy: Option<MatchPolicy>,
}

/// Where a policy is evaluated, and on what.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MutationEvaluation {
    /// What it changes.
    pub mode: Option<EvaluationMode>,
    /// Whether admission requests are evaluated; yes if it does not say.
    pub admission: Switch,
    /// Whether existing objects are scanned; yes if it does not say.
    pub background: Switch,
    /// Whether existing objects are changed; no if it does not say.
    pub mutate_existing: Switch,
    /// Whether requests of the background service account are ignored; yes if it does not say.
    pub skip_background_requests: Option<bool>,
    /// Whether configurations are applied by the server.
    pub use_server_side_apply: Option<bool>,
}

/// What is made of a policy for other kinds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MutationAutogen {
    /// Policies for controllers of Pods.
    pub pod_controllers: PodControllers,
    /// A `MutatingAdmissionPolicy`.
    pub mutating_admission_policy: Switch,
}
