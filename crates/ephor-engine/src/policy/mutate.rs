//! `mutate` rules.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

use super::{Conditions, ContextEntry};

/// A `mutate` block: one form of patch, for the trigger or for targets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Mutate {
    /// Whether existing triggers count when the policy changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutate_existing_on_policy_update: Option<bool>,
    /// Existing objects to patch instead of the trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<Target>>,
    /// A strategic merge patch with anchors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_strategic_merge: Option<Value>,
    /// A JSON patch, as YAML or JSON text.
    #[serde(rename = "patchesJson6902", skip_serializing_if = "Option::is_none")]
    pub patches_json6902: Option<Str>,
    /// Patches for each element of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Vec<MutateForEach>>,
}

/// Objects that a mutate-existing rule patches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Target {
    /// The API version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Str>,
    /// The kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Str>,
    /// The namespace, with wildcards; empty means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// The name, with wildcards; empty means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// A fixed identity; upstream accepts and ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Str>,
    /// Labels of the targets, a label selector; may hold variables of the trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Value>,
    /// Data for each target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ContextEntry>>,
    /// Which targets count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Conditions>,
}

/// One entry of a `mutate.foreach` list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MutateForEach {
    /// An expression that gives the elements.
    pub list: Str,
    /// In which order; default ascending for JSON patches, descending for strategic merges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// Data for each element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ContextEntry>>,
    /// Which elements count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Conditions>,
    /// As in [`Mutate::patch_strategic_merge`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_strategic_merge: Option<Value>,
    /// As in [`Mutate::patches_json6902`].
    #[serde(rename = "patchesJson6902", skip_serializing_if = "Option::is_none")]
    pub patches_json6902: Option<Str>,
    /// A loop inside this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Vec<MutateForEach>>,
}

/// The order of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Order {
    /// First to last.
    Ascending,
    /// Last to first.
    Descending,
}
