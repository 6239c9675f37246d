//! `generate` rules.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

use super::{Conditions, ContextEntry, LabelSelector, filled};

/// A `generate` block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Generate {
    /// Whether existing triggers count when the policy is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_existing: Option<bool>,
    /// Whether the downstream follows its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronize: Option<bool>,
    /// Whether the downstream outlives the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphan_downstream_on_policy_delete: Option<bool>,
    /// API version of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Str>,
    /// Kind of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Str>,
    /// Name of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// Namespace of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// Accepted and ignored, as upstream does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Str>,
    /// The downstream's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// An object to copy.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub clone: Option<Clone>,
    /// Objects to copy.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub clone_list: Option<CloneList>,
    /// Downstreams for each element of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Vec<GenerateForEach>>,
}

/// One object to copy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Clone {
    /// Its namespace; none for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
}

/// Several objects to copy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CloneList {
    /// Their namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// Their kinds, as `v1/Secret` or `group/version/Kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<Str>>,
    /// Their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// One entry of a `generate.foreach` list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GenerateForEach {
    /// An expression that gives the elements.
    pub list: Str,
    /// Data for each element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ContextEntry>>,
    /// Which elements count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Conditions>,
    /// API version of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Str>,
    /// Kind of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Str>,
    /// Name of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// Namespace of the downstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// Accepted and ignored, as upstream does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Str>,
    /// The downstream's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// An object to copy.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub clone: Option<Clone>,
    /// Objects to copy.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub clone_list: Option<CloneList>,
}

/// What a `generate` block without loops and an entry of a loop both say: one target and where its content comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GenerateParts<'p> {
    /// API version of the downstream.
    pub api_version: Option<&'p Str>,
    /// Kind of the downstream.
    pub kind: Option<&'p Str>,
    /// Name of the downstream.
    pub name: Option<&'p Str>,
    /// Namespace of the downstream.
    pub namespace: Option<&'p Str>,
    /// The downstream's content.
    pub data: Option<&'p Value>,
    /// An object to copy.
    pub clone: Option<&'p Clone>,
    /// Objects to copy.
    pub clone_list: Option<&'p CloneList>,
}

impl Generate {
    /// The target of a block without loops.
    pub fn parts(&self) -> GenerateParts<'_> {
        GenerateParts {
            api_version: self.api_version.as_ref(),
            kind: self.kind.as_ref(),
            name: self.name.as_ref(),
            namespace: self.namespace.as_ref(),
            data: self.data.as_ref(),
            clone: self.clone.as_ref(),
            clone_list: self.clone_list.as_ref(),
        }
    }
}

impl GenerateForEach {
    /// The target of each element.
    pub fn parts(&self) -> GenerateParts<'_> {
        GenerateParts {
            api_version: self.api_version.as_ref(),
            kind: self.kind.as_ref(),
            name: self.name.as_ref(),
            namespace: self.namespace.as_ref(),
            data: self.data.as_ref(),
            clone: self.clone.as_ref(),
            clone_list: self.clone_list.as_ref(),
        }
    }
}
