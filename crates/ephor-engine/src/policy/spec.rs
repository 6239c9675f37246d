//! `ClusterPolicy` and `Policy`.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

use super::{LabelSelector, Metadata, Rule};

/// A `ClusterPolicy` or `Policy` document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// `kyverno.io/v1` or `kyverno.io/v2beta1`.
    pub api_version: Str,
    /// Which of the two.
    pub kind: PolicyKind,
    /// Name, namespace, annotations.
    #[serde(default)]
    pub metadata: Metadata,
    /// What it says.
    pub spec: Spec,
    /// What a controller wrote; ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// Which of the two policy kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PolicyKind {
    /// Applies to the whole cluster.
    #[default]
    ClusterPolicy,
    /// Applies to its own namespace.
    Policy,
}

/// The spec that both kinds share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Spec {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Whether all rules run or the first that decides ends the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_rules: Option<ApplyRules>,
    /// Whether admission requests are evaluated; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<bool>,
    /// Whether existing objects are scanned; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Whether audit results come back as warnings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emit_warning: Option<bool>,
    /// How the webhook is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_configuration: Option<WebhookConfiguration>,
    /// Deprecated for `webhookConfiguration.failurePolicy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Deprecated for `webhookConfiguration.timeoutSeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_timeout_seconds: Option<i64>,
    /// Deprecated for `validate.failureAction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_failure_action: Option<FailureAction>,
    /// Deprecated for `validate.failureActionOverrides`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_failure_action_overrides: Option<Vec<FailureActionOverride>>,
    /// Deprecated for `mutate.mutateExistingOnPolicyUpdate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutate_existing_on_policy_update: Option<bool>,
    /// Deprecated for `generate.generateExisting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_existing: Option<bool>,
    /// Always refused; the old name of `generateExisting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_existing_on_policy_update: Option<bool>,
    /// Whether generated objects are applied by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_server_side_apply: Option<bool>,
    /// Without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_validation: Option<bool>,
}

/// Which rules of a policy run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ApplyRules {
    /// All.
    #[default]
    All,
    /// Up to the first that passes or fails.
    One,
}

/// What a violation does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
// Aliases are not part of a derived schema.
#[cfg_attr(feature = "schema", schemars(extend("enum" = ["audit", "enforce", "Audit", "Enforce"])))]
pub enum FailureAction {
    /// It is reported.
    #[default]
    #[serde(alias = "audit")]
    Audit,
    /// It denies the request.
    #[serde(alias = "enforce")]
    Enforce,
}

/// Another action for some namespaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct FailureActionOverride {
    /// The action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<FailureAction>,
    /// Namespaces, with wildcards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<Str>>,
    /// Labels of namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// What the API server does when the webhook cannot answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FailurePolicy {
    /// Refuse the request.
    #[default]
    Fail,
    /// Let it through.
    Ignore,
}

/// How the webhook of a policy is registered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct WebhookConfiguration {
    /// What happens when the webhook cannot answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// 1 to 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// CEL conditions, evaluated by the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_conditions: Option<Vec<Value>>,
}
