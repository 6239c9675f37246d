//! `GeneratingPolicy` and `NamespacedGeneratingPolicy` of `policies.kyverno.io`.
//!
//! The types carry what a document says. They share constraints and expressions with the other kinds of that group.

use ephor_expr::{Str, Value};
use serde::Deserialize;

use super::{AuditAnnotation, CelVariable, MatchCondition, MatchResources, Metadata, PolicyWebhook, Switch};

/// A `GeneratingPolicy` or `NamespacedGeneratingPolicy` document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GeneratingPolicy {
    /// One version of `policies.kyverno.io`.
    pub api_version: Str,
    /// The kind.
    pub kind: Str,
    /// Name, namespace and annotations.
    pub metadata: Metadata,
    /// What it says.
    pub spec: GeneratingPolicySpec,
    /// What a controller wrote; ignored.
    pub status: Option<Value>,
}

/// What a `GeneratingPolicy` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GeneratingPolicySpec {
    /// Which requests have objects made.
    pub match_constraints: Option<MatchResources>,
    /// Which of those, by expressions.
    pub match_conditions: Vec<MatchCondition>,
    /// Named expressions.
    pub variables: Vec<CelVariable>,
    /// The objects.
    pub generate: Vec<Generation>,
    /// Properties of report entries.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// When objects are made, and how long they are looked after.
    pub evaluation: GenerationEvaluation,
    /// Whether objects are applied by the server.
    pub use_server_side_apply: Option<bool>,
    /// How its webhook is registered.
    pub webhook_configuration: PolicyWebhook,
}

/// Objects to make: either an expression that names them, or a template.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Generation {
    /// Calls `generator.Apply`.
    pub expression: Option<Str>,
    /// The objects as YAML.
    pub template: Option<GenerationTemplate>,
}

/// Objects as YAML.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GenerationTemplate {
    /// One document for each object.
    pub value: Str,
    /// Whether there are expressions in it.
    pub interpolate: Interpolation,
}

/// Whether there are expressions in a template.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// All of it is text.
    #[default]
    None,
    /// `(( expression ))` stands for the value of an expression in CEL.
    Cel,
}

/// When a policy makes objects, and how long it looks after them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GenerationEvaluation {
    /// Whether admission requests are evaluated; yes if it does not say.
    pub admission: Switch,
    /// Whether existing triggers count when the policy is applied; no if it does not say.
    pub generate_existing: Switch,
    /// Whether objects are kept as the policy gives them; no if it does not say.
    pub synchronize: Switch,
    /// Whether objects outlive the policy; no if it does not say.
    pub orphan_downstream_on_policy_delete: Switch,
    /// Whether requests of the background service account are ignored; yes if it does not say.
    pub skip_background_requests: Option<bool>,
}
