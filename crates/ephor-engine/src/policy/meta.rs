//! Object metadata, as far as policies need it.

use std::collections::BTreeMap;

use ephor_expr::Str;
use serde::{Deserialize, Serialize};

/// The metadata of a policy document. Other fields are legal and ignored, as on any Kubernetes object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The object's name.
    pub name: Str,
    /// The object's namespace; empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// Labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<Str, Str>>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<Str, Str>>,
}

impl Metadata {
    /// The annotation `key`.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(Str::as_str)
    }
}
