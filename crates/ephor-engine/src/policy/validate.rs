//! `validate` rules.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

use super::{AttestorSet, Cel, Conditions, ContextEntry, FailureAction, FailureActionOverride, filled};

/// A `validate` block: one of its bodies, and what to do about violations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Validate {
    /// Enforce or Audit, for this rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_action: Option<FailureAction>,
    /// Other actions for some namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_action_overrides: Option<Vec<FailureActionOverride>>,
    /// Whether an update of an object that already violated the rule passes; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_existing_violations: Option<bool>,
    /// Shown to the user on a violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Str>,
    /// The shape an object must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Value>,
    /// Shapes of which an object must have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_pattern: Option<Vec<Value>>,
    /// Conditions that no object may meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Deny>,
    /// Checks on each element of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Vec<ValidateForEach>>,
    /// The Kubernetes Pod Security Standards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<PodSecurity>,
    /// CEL expressions.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub cel: Option<Cel>,
    /// Signatures of manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Manifests>,
    /// Assertion trees; without effect upstream since 1.19.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assert: Option<Value>,
}

/// A `deny` body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Deny {
    /// Met conditions deny; none at all deny everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
}

/// One entry of a `validate.foreach` list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ValidateForEach {
    /// An expression that gives the elements.
    pub list: Str,
    /// Whether patterns apply to the element; default: if the element is an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_scope: Option<bool>,
    /// Data for each element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ContextEntry>>,
    /// Which elements count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Conditions>,
    /// As in [`Validate::pattern`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Value>,
    /// As in [`Validate::any_pattern`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_pattern: Option<Vec<Value>>,
    /// As in [`Validate::deny`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Deny>,
    /// A loop inside this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Vec<ValidateForEach>>,
}

/// A `podSecurity` body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PodSecurity {
    /// `privileged`, `baseline` or `restricted`.
    pub level: Str,
    /// `latest`, empty, or a version such as `v1.24`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Str>,
    /// Controls that are let off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Vec<PodSecurityExclusion>>,
}

/// A control that is let off, wholly or for some images, fields and values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PodSecurityExclusion {
    /// The control's name, for example `Capabilities`.
    pub control_name: Str,
    /// Images of the containers that are let off, with wildcards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Str>>,
    /// The field that is let off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restricted_field: Option<Str>,
    /// The values that are let off, with wildcards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Str>>,
}

/// A `manifests` body: signatures over the manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Manifests {
    /// Who must have signed: all of these sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attestors: Option<Vec<AttestorSet>>,
    /// The annotation prefix that holds the signature; default `cosign.sigstore.dev`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation_domain: Option<Str>,
    /// Fields in which the object may differ from its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_fields: Option<Vec<IgnoredFields>>,
    /// Whether the cluster is asked what it makes of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,
    /// The repository of the signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<Str>,
}

/// Fields of some objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct IgnoredFields {
    /// Which objects; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Vec<ObjectReference>>,
    /// The fields, as `spec.replicas`; `*` stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<Str>>,
}

/// Objects by identity; each part may be absent, have wildcards, and list alternatives between commas.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ObjectReference {
    /// The API group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Str>,
    /// The version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Str>,
    /// The kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Str>,
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
}

/// Dry-run settings of a `manifests` body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DryRun {
    /// Whether to run; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
}
