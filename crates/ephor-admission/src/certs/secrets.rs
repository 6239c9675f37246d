//! The Secrets: what they hold, and how they are written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::{Map, Str, Value};

use super::issue::Issued;

/// The label that says that Ephor (or upstream) renews the Secret.
const MANAGED_BY: (&str, &str) = ("cert.kyverno.io/managed-by", "kyverno");

/// What a TLS Secret holds, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TlsSecret {
    pub(super) certificates: Vec<u8>,
    pub(super) key: Vec<u8>,
    /// Who issued the certificate, where an issuer leaves that beside it.
    pub(super) issuers: Vec<u8>,
    /// Whether it is Ephor's to renew.
    pub(super) managed: bool,
}

impl TlsSecret {
    /// Reads a Secret object.
    pub(super) fn of(secret: &Value) -> Self {
        let bytes = |key: &str| {
            let text = secret.str_at(&["data", key]).unwrap_or_default();
            STANDARD.decode(text).unwrap_or_default()
        };
        Self {
            certificates: bytes("tls.crt"),
            key: bytes("tls.key"),
            issuers: bytes("ca.crt"),
            managed: secret.str_at(&["metadata", "labels", MANAGED_BY.0]) == Some(MANAGED_BY.1),
        }
    }
}

/// The Secret with a certificate: a new one, or `before` with other contents.
pub(super) fn written(namespace: &Str, name: &Str, issued: &Issued, before: Option<&Value>) -> Value {
    let mut secret = before.cloned().unwrap_or_else(|| {
        Value::from([
            ("apiVersion", Value::from("v1")),
            ("kind", Value::from("Secret")),
            (
                "metadata",
                Value::from([("name", Value::from(name.clone())), ("namespace", Value::from(namespace.clone()))]),
            ),
            ("type", Value::from("kubernetes.io/tls")),
        ])
    });
    if let Some(members) = secret.as_object_mut() {
        let encoded = |text: &str| Value::from(STANDARD.encode(text));
        members.insert(
            "data",
            Value::from([("tls.crt", encoded(&issued.certificate)), ("tls.key", encoded(&issued.key))]),
        );
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            let labels = metadata.entry("labels");
            if labels.as_object().is_none() {
                *labels = Value::object(Map::new());
            }
            if let Some(labels) = labels.as_object_mut() {
                labels.insert(MANAGED_BY.0, MANAGED_BY.1);
            }
        }
    }
    secret
}
