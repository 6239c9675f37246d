//! The saved state of a sandbox: its identity and its objects.
//!
//! The identity (token, certificate, port) keeps a kubeconfig of the first run valid in the next. All of it travels as
//! one JSON document, which holds secrets.

use ephor_expr::{Map, Str, Value};

use super::tls::Certificate;

/// What makes a kubeconfig of one run valid in the next. It holds secrets, so it cannot be printed.
#[derive(Clone)]
pub struct Identity {
    /// The bearer token of clients.
    pub token: Str,
    /// The certificate of the server.
    pub certificate: Certificate,
    /// The port on the loopback interface.
    pub port: u16,
}

/// A kept sandbox.
#[derive(Clone, Default)]
pub struct State {
    /// Who the sandbox was. States of older versions have none.
    pub identity: Option<Identity>,
    /// All objects.
    pub objects: Vec<Value>,
}

/// Why a document is no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The text is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// The document has no list `objects`.
    #[error("it has no list `objects`")]
    NoObjects,
    /// The identity is not complete or cannot be used.
    #[error("its `identity` cannot be used: {0}")]
    Identity(String),
}

impl State {
    /// The text of a state file.
    pub fn text(identity: &Identity, objects: Vec<Value>) -> String {
        let identity = Value::from([
            ("certificate", Value::from(identity.certificate.pem.as_str())),
            ("key", Value::from(identity.certificate.key_pem.as_str())),
            ("port", Value::from(i64::from(identity.port))),
            ("token", Value::from(identity.token.clone())),
        ]);
        Value::from([("identity", identity), ("objects", Value::array(objects))]).to_json()
    }

    /// Reads the text of a state file.
    pub fn parse(text: &str) -> Result<Self, StateError> {
        let document = Value::from_json(text).map_err(|error| StateError::NotJson(error.to_string()))?;
        let members = document.as_object().ok_or(StateError::NoObjects)?;
        let objects = members.get("objects").and_then(Value::as_array).ok_or(StateError::NoObjects)?;
        let identity = members.get("identity").and_then(Value::as_object).map(read_identity).transpose()?;
        Ok(Self { identity, objects: objects.to_vec() })
    }
}

fn read_identity(members: &Map) -> Result<Identity, StateError> {
    let text = |key: &str| {
        let found = members.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        found.ok_or_else(|| StateError::Identity(format!("`{key}` is missing")))
    };
    let port = members.get("port").and_then(Value::as_i64).and_then(|port| u16::try_from(port).ok());
    let certificate = Certificate::from_pem(text("certificate")?, text("key")?)
        .map_err(|error| StateError::Identity(error.to_string()))?;
    Ok(Identity { token: Str::new(text("token")?), certificate, port: port.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back_as_it_was_written() {
        let identity = Identity { token: "t".into(), certificate: Certificate::new().unwrap(), port: 4711 };
        let objects = vec![Value::from([("kind", Value::from("ConfigMap"))])];
        let read = State::parse(&State::text(&identity, objects.clone())).unwrap();
        let kept = read.identity.unwrap();
        assert_eq!((kept.token.as_str(), kept.port), ("t", 4711));
        assert_eq!(kept.certificate.pem, identity.certificate.pem);
        assert_eq!(read.objects, objects);
    }

    #[test]
    fn a_state_without_identity_is_read() {
        assert!(State::parse(r#"{"objects":[]}"#).unwrap().identity.is_none());
    }

    #[test]
    fn other_documents_are_refused() {
        for (text, why) in [
            ("{", "not JSON"),
            ("[]", "no list `objects`"),
            (r#"{"objects":{}}"#, "no list `objects`"),
            (r#"{"objects":[],"identity":{}}"#, "`certificate` is missing"),
            (r#"{"objects":[],"identity":{"certificate":"x","key":"y","token":"z"}}"#, "cannot be used"),
        ] {
            let error = State::parse(text).err().unwrap().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
