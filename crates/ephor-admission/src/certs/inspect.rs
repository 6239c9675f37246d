//! What certificates and keys are, and whether they belong together.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_runtime::settings::KeyAlgorithm;
use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// What is wrong with stored certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertFault {
    /// There is no Secret, or not yet.
    #[error("Secret `{0}` is missing")]
    Missing(String),
    /// It holds no certificate or key that can be read.
    #[error("Secret `{name}`: {why}")]
    Unreadable {
        /// The Secret.
        name: String,
        /// Why not.
        why: String,
    },
    /// The certificate does not stand up to what the API server checks.
    #[error("serving certificate: {0}")]
    Invalid(String),
}

/// What is of interest in a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) der: CertificateDer<'static>,
    pub(super) begins: Timestamp,
    pub(super) ends: Timestamp,
    pub(super) algorithm: Option<KeyAlgorithm>,
    /// DNS names and addresses, as text.
    pub(super) names: Vec<String>,
}

impl Certificate {
    /// All certificates of a PEM text, in order. An error if one cannot be read, or there is none.
    pub(super) fn all(pem: &[u8]) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        for der in CertificateDer::pem_slice_iter(pem) {
            found.push(Self::read(&der.map_err(|error| error.to_string())?)?);
        }
        if found.is_empty() { Err("no certificate".to_owned()) } else { Ok(found) }
    }

    fn read(der: &CertificateDer<'static>) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| error.to_string());
        let alternatives = parsed.subject_alternative_name().ok().flatten();
        let names = alternatives.iter().flat_map(|san| &san.value.general_names).filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes),
            _ => None,
        });
        Ok(Self {
            begins: time(parsed.validity().not_before.timestamp())?,
            ends: time(parsed.validity().not_after.timestamp())?,
            algorithm: algorithm(&parsed.public_key().algorithm.algorithm.to_id_string()),
            names: names.collect(),
            der: der.clone(),
        })
    }

    /// The certificate as text.
    pub(super) fn pem(&self) -> String {
        let text = STANDARD.encode(&self.der);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        pem
    }

    /// Whether it holds at `now`, and still does `ahead` later.
    pub(super) fn holds(&self, now: Timestamp, ahead: Duration) -> bool {
        self.begins <= now && now.checked_add(ahead).is_ok_and(|later| later < self.ends)
    }
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(std::net::IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(std::net::IpAddr::from)).map(|address| address.to_string())
}

fn algorithm(oid: &str) -> Option<KeyAlgorithm> {
    match oid {
        "1.2.840.113549.1.1.1" => Some(KeyAlgorithm::Rsa),
        "1.2.840.10045.2.1" => Some(KeyAlgorithm::Ecdsa),
        "1.3.101.112" => Some(KeyAlgorithm::Ed25519),
        _ => None,
    }
}

/// A chain with its key, if they belong together.
pub(super) fn certified(chain: &[Certificate], key: &[u8]) -> Result<CertifiedKey, String> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("key: {error}"))?;
    let chain = chain.iter().map(|certificate| certificate.der.clone()).collect();
    // Checks that the key fits the first certificate.
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|error| error.to_string())
}

/// Whether a caller who trusts `bundle` takes `chain` for `name` at `now`.
pub(super) fn verify(chain: &[Certificate], bundle: &[Certificate], name: &str, now: Timestamp) -> Result<(), String> {
    let [leaf, rest @ ..] = chain else { return Err("no certificate".to_owned()) };
    let mut roots = RootCertStore::empty();
    for ca in bundle {
        roots.add(ca.der.clone()).map_err(|error| format!("CA: {error}"))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| format!("CA: {error}"))?;
    let name = ServerName::try_from(name.to_owned()).map_err(|error| format!("`{name}`: {error}"))?;
    let rest: Vec<_> = rest.iter().map(|certificate| certificate.der.clone()).collect();
    let seconds = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    verifier
        .verify_server_cert(&leaf.der, &rest, &name, &[], UnixTime::since_unix_epoch(seconds))
        .map(|_| ())
        .map_err(|error| error.to_string())
}
