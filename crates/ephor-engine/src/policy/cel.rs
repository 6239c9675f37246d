//! CEL in policies: the fields that `validate.cel` shares with the admission policies of Kubernetes.

use ephor_expr::Str;
use serde::{Deserialize, Serialize};

use super::LabelSelector;

/// A `validate.cel` block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Cel {
    /// Whether upstream makes a `ValidatingAdmissionPolicy` of the rule. Ephor evaluates the rule itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate: Option<bool>,
    /// Expressions that must be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expressions: Option<Vec<CelValidation>>,
    /// The kind of the objects that expressions read as `params`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param_kind: Option<ParamKind>,
    /// Which objects of that kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param_ref: Option<ParamRef>,
    /// Texts for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_annotations: Option<Vec<AuditAnnotation>>,
    /// Named expressions that others read as `variables.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Vec<CelVariable>>,
}

/// An expression that must be true, and what to say if it is not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CelValidation {
    /// Gives a bool.
    pub expression: Str,
    /// The text of a violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Str>,
    /// Gives the text of a violation; `message` if it fails or is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<Str>,
    /// The reason of a violation, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Str>,
}

/// A named condition on requests: `celPreconditions` and `matchConditions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MatchCondition {
    /// Its name.
    pub name: Str,
    /// Gives a bool.
    pub expression: Str,
}

/// A named expression.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CelVariable {
    /// Its name.
    pub name: Str,
    /// Gives its value.
    pub expression: Str,
}

/// An annotation of the audit event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AuditAnnotation {
    /// Its key.
    pub key: Str,
    /// Gives a string, or null for no annotation.
    pub value_expression: Str,
}

/// The kind of parameter objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ParamKind {
    /// The API version, such as `rules.example.com/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Str>,
    /// The kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Str>,
}

/// Which parameter objects a policy reads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ParamRef {
    /// The one with this name, or
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// those in this namespace; default: the namespace of the object that is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// those with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// What it means that there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter_not_found_action: Option<ParameterNotFound>,
}

/// What missing parameters mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ParameterNotFound {
    /// The policy has nothing to say.
    Allow,
    /// The policy fails.
    Deny,
}
