//! `CleanupPolicy` and `ClusterCleanupPolicy`.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

use super::{AnyAll, ContextEntry, Match, Metadata};

/// A `CleanupPolicy` or `ClusterCleanupPolicy` document (`kyverno.io/v2`, `v2beta1`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CleanupPolicy {
    /// `kyverno.io/v2` or `kyverno.io/v2beta1`.
    pub api_version: Str,
    /// `CleanupPolicy` or `ClusterCleanupPolicy`.
    pub kind: Str,
    /// Name and namespace.
    #[serde(default)]
    pub metadata: Metadata,
    /// What it says.
    pub spec: CleanupSpec,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The spec of a cleanup policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CleanupSpec {
    /// Data the conditions can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ContextEntry>>,
    /// Which objects.
    #[serde(rename = "match")]
    pub matches: Match,
    /// Which not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Match>,
    /// When; `target` is the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<AnyAll>,
    /// Cron schedule.
    pub schedule: Str,
    /// How dependents are treated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_propagation_policy: Option<DeletionPropagation>,
}

/// How dependents of a deleted object are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DeletionPropagation {
    /// Dependents first.
    Foreground,
    /// Dependents later.
    Background,
    /// Dependents stay.
    Orphan,
}

impl DeletionPropagation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Foreground, Self::Background, Self::Orphan];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "Foreground",
            Self::Background => "Background",
            Self::Orphan => "Orphan",
        }
    }

    /// What a word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }
}
