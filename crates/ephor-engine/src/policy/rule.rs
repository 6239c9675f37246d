//! Rules.

use std::collections::BTreeMap;

use ephor_expr::{Map, Str, Value};
use serde::{Deserialize, Serialize};

use super::{Conditions, ContextEntry, Generate, Match, MatchCondition, Mutate, Validate, filled, filled_validate};

/// One rule of a policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Rule {
    /// Its name, unique in the policy.
    pub name: Str,
    /// What it applies to.
    #[serde(rename = "match")]
    pub matches: Match,
    /// What it does not apply to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Match>,
    /// Data its expressions can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ContextEntry>>,
    /// When it applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Conditions>,
    /// CEL preconditions, only with `validate.cel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_preconditions: Option<Vec<MatchCondition>>,
    /// Where images stand in custom kinds, only with `verifyImages`; not built yet.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
    pub image_extractors: Option<Map>,
    /// Check objects.
    #[serde(deserialize_with = "filled_validate", skip_serializing_if = "Option::is_none")]
    pub validate: Option<Validate>,
    /// Change objects.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub mutate: Option<Mutate>,
    /// Create objects.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub generate: Option<Generate>,
    /// Verify image signatures; not built yet.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub verify_images: Option<Vec<Value>>,
    /// Extra properties of report entries, with variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_properties: Option<BTreeMap<Str, Str>>,
    /// Whether requests of the background service account are ignored; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_background_requests: Option<bool>,
}
