//! `DeletingPolicy` and `NamespacedDeletingPolicy` of `policies.kyverno.io`.

use ephor_expr::{Str, Value};
use serde::Deserialize;

use super::{CelVariable, DeletionPropagation, MatchCondition, MatchResources, Metadata};

/// A `DeletingPolicy` or `NamespacedDeletingPolicy` document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DeletingPolicy {
    /// One version of `policies.kyverno.io`.
    pub api_version: Str,
    /// The kind.
    pub kind: Str,
    /// Name, namespace and annotations.
    pub metadata: Metadata,
    /// What it says.
    pub spec: DeletingPolicySpec,
    /// What a controller wrote; ignored.
    pub status: Option<Value>,
}

/// What a `DeletingPolicy` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DeletingPolicySpec {
    /// Which objects. Operations in it mean nothing: no request is made about an object that is to go.
    pub match_constraints: Option<MatchResources>,
    /// Which of those are deleted, by expressions: all must be true.
    pub conditions: Vec<MatchCondition>,
    /// Named expressions.
    pub variables: Vec<CelVariable>,
    /// Cron schedule.
    pub schedule: Str,
    /// How dependents are treated.
    pub deletion_propagation_policy: Option<DeletionPropagation>,
}
