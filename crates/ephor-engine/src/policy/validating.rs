//! `ValidatingPolicy` and `NamespacedValidatingPolicy` of `policies.kyverno.io`.
//!
//! The types carry what a document says. They share constraints and expressions with Kubernetes' own admission
//! policies.

use ephor_expr::{Str, Value};
use serde::Deserialize;

use super::{
    AuditAnnotation, CelValidation, CelVariable, FailurePolicy, MatchCondition, MatchResources, Metadata,
    ValidationAction,
};

/// A `ValidatingPolicy` or `NamespacedValidatingPolicy` document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ValidatingPolicy {
    /// One version of `policies.kyverno.io`.
    pub api_version: Str,
    /// The kind.
    pub kind: Str,
    /// Name, namespace and annotations.
    pub metadata: Metadata,
    /// What it says.
    pub spec: ValidatingPolicySpec,
    /// What a controller wrote; ignored.
    pub status: Option<Value>,
}

/// What a `ValidatingPolicy` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ValidatingPolicySpec {
    /// Which requests it judges.
    pub match_constraints: Option<MatchResources>,
    /// Which of those, by expressions.
    pub match_conditions: Vec<MatchCondition>,
    /// Named expressions.
    pub variables: Vec<CelVariable>,
    /// What must be true.
    pub validations: Vec<CelValidation>,
    /// Properties of report entries.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// What a match condition that fails means.
    pub failure_policy: Option<FailurePolicy>,
    /// What a violation does; none means that it denies.
    pub validation_actions: Vec<ValidationAction>,
    /// Where it is evaluated.
    pub evaluation: PolicyEvaluation,
    /// What is made of it for other kinds.
    pub autogen: PolicyAutogen,
    /// How its webhook is registered.
    pub webhook_configuration: PolicyWebhook,
}

/// Where a policy is evaluated, and on what.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyEvaluation {
    /// What it judges.
    pub mode: Option<EvaluationMode>,
    /// Whether admission requests are evaluated; yes if it does not say.
    pub admission: Switch,
    /// Whether existing objects are scanned; yes if it does not say.
    pub background: Switch,
}

/// What a policy judges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EvaluationMode {
    /// Objects of Kubernetes.
    #[default]
    Kubernetes,
    /// Any JSON value.
    #[serde(rename = "JSON")]
    Json,
    /// HTTP requests.
    #[serde(rename = "HTTP")]
    Http,
    /// Checks of an Envoy proxy.
    Envoy,
}

/// Something that is on or off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Switch {
    /// Whether it is on; `None` for the default.
    pub enabled: Option<bool>,
}

/// What is made of a policy for other kinds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyAutogen {
    /// Policies for controllers of Pods.
    pub pod_controllers: PodControllers,
    /// A `ValidatingAdmissionPolicy`.
    pub validating_admission_policy: Switch,
}

/// For which controllers of Pods a policy on Pods is repeated.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PodControllers {
    /// Their resources; `None` for all, an empty list for none.
    pub controllers: Option<Vec<Str>>,
}

/// How the webhook of a policy is registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyWebhook {
    /// How many seconds the API server waits.
    pub timeout_seconds: Option<i64>,
}
