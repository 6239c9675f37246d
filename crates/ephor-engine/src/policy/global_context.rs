//! `GlobalContextEntry`.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

use super::{HttpMethod, Metadata, RequestData, ServiceCall};

/// A `GlobalContextEntry` document (`kyverno.io/v2alpha1`, `v2beta1`, `v2`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GlobalContextEntry {
    /// One of the three versions.
    pub api_version: Str,
    /// `GlobalContextEntry`.
    pub kind: Str,
    /// Its name.
    #[serde(default)]
    pub metadata: Metadata,
    /// What it says.
    pub spec: GlobalContextSpec,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The spec of a `GlobalContextEntry`: exactly one source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GlobalContextSpec {
    /// Objects that are watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_resource: Option<WatchedResource>,
    /// A call that is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_call: Option<GlobalApiCall>,
    /// Named expressions over the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projections: Option<Vec<Projection>>,
}

/// Objects that are watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WatchedResource {
    /// The API group; empty only with version `v1`.
    pub group: Str,
    /// The API version.
    pub version: Str,
    /// The plural name.
    pub resource: Str,
    /// A single namespace, or all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
}

/// A call that is repeated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GlobalApiCall {
    /// The path on the Kubernetes API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<Str>,
    /// GET (default) or POST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<HttpMethod>,
    /// The POST body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<RequestData>>,
    /// A service instead of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceCall>,
    /// A Go duration; default 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_interval: Option<Str>,
    /// At least 1; default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_limit: Option<i64>,
}

/// A named expression over the data of an entry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Projection {
    /// Its name.
    pub name: Str,
    /// The expression.
    pub jmes_path: Str,
}
