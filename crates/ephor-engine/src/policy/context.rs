//! Context entries: named data that a rule's expressions can read.

use std::collections::BTreeMap;

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

/// One entry: a name and exactly one source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ContextEntry {
    /// The variable's name.
    pub name: Str,
    /// A computed value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<VariableEntry>,
    /// A `ConfigMap`'s data and metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapRef>,
    /// The answer of the Kubernetes API or of a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_call: Option<ApiCall>,
    /// Data of an image in a registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_registry: Option<ImageData>,
    /// Data of a `GlobalContextEntry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_reference: Option<GlobalRef>,
}

/// A computed value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct VariableEntry {
    /// Literal data, with variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// An expression, over `value` if given, else over the whole context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jmes_path: Option<Str>,
    /// What to take when the expression fails or is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// A `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ConfigMapRef {
    /// Its name.
    pub name: Str,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
}

/// A call of the Kubernetes API (`urlPath`) or of a service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ApiCall {
    /// The path on the Kubernetes API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<Str>,
    /// GET (default) or POST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<HttpMethod>,
    /// The POST body, as key and value pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<RequestData>>,
    /// A service instead of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceCall>,
    /// An expression over the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jmes_path: Option<Str>,
    /// What to take when the call fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// HTTP methods of context calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Read.
    #[default]
    Get,
    /// Send data.
    Post,
}

/// One member of a POST body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RequestData {
    /// The member's name.
    pub key: Str,
    /// The member's value.
    pub value: Value,
}

/// An HTTP service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ServiceCall {
    /// The address.
    pub url: Str,
    /// Certificates to trust, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<Str>,
    /// Headers to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<BTreeMap<Str, Str>>>,
}

/// Data of an image in a registry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ImageData {
    /// The image's reference.
    pub reference: Str,
    /// An expression over the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jmes_path: Option<Str>,
    /// How to log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_registry_credentials: Option<Value>,
}

/// A reference to a `GlobalContextEntry`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
// The name is required by the definition of the kind too, in words that scenarios pin.
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GlobalRef {
    /// The entry's name, or `entry.projection`.
    pub name: Str,
    /// An expression over the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jmes_path: Option<Str>,
}
