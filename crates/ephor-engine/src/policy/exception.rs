//! `PolicyException`.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

use super::{AnyAll, Match, Metadata, PodSecurityExclusion};

/// A `PolicyException` document (`kyverno.io/v2`, `v2beta1`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyException {
    /// `kyverno.io/v2` or `kyverno.io/v2beta1`.
    pub api_version: Str,
    /// `PolicyException`.
    pub kind: Str,
    /// Name and namespace.
    #[serde(default)]
    pub metadata: Metadata,
    /// What it says.
    pub spec: ExceptionSpec,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The spec of a `PolicyException`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ExceptionSpec {
    /// Whether scans honour it; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Which objects are excepted.
    #[serde(rename = "match")]
    pub matches: Match,
    /// When they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<AnyAll>,
    /// From which rules.
    pub exceptions: Vec<ExceptionRules>,
    /// From which Pod Security controls only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<Vec<PodSecurityExclusion>>,
}

/// Rules of one policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ExceptionRules {
    /// The policy, exactly; `namespace/name` for a `Policy`.
    pub policy_name: Str,
    /// Its rules, with wildcards; auto-generated names must be covered.
    pub rule_names: Vec<Str>,
}
