//! Who vouches for something by a signature.

use std::collections::BTreeMap;

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

/// Some of whom a number must have signed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AttestorSet {
    /// How many; absent and 0 mean all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// Who.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<Attestor>>,
}

/// One who may have signed. What needs a network is kept as written; see [`crate::rules::validate::manifests`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Attestor {
    /// Public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<StaticKeys>,
    /// A certificate and its chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<Value>,
    /// An identity with a short-lived certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Value>,
    /// A set inside this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attestor: Option<Box<AttestorSet>>,
    /// Annotations that what is signed must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<Str, Str>>,
    /// Where the signatures are, if not where the policy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<Str>,
}

/// Public keys; each counts as an entry of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StaticKeys {
    /// PEM blocks, or a reference to where keys are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_keys: Option<Str>,
    /// The digest; default `sha256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_algorithm: Option<Str>,
    /// A key in a key management service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms: Option<Str>,
    /// A Secret that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Value>,
    /// The transparency log; manifests signed by a key are not in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rekor: Option<Value>,
    /// The certificate log; keys have no certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctlog: Option<Value>,
}
