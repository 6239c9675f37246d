//! New keys and certificates.

use std::time::Duration;

use ephor_runtime::settings::KeyAlgorithm;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SignatureAlgorithm, date_time_ymd,
};

/// How long a CA lasts.
pub(super) const CA_LIFETIME: Duration = Duration::from_hours(365 * 24);
/// How long a serving certificate lasts.
pub(super) const LEAF_LIFETIME: Duration = Duration::from_hours(150 * 24);
/// How far before their making certificates begin: clocks differ.
const BACKDATED: Duration = Duration::from_hours(1);

/// A key or a certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate: {0}")]
pub struct IssueError(#[from] rcgen::Error);

/// A certificate with its key (PKCS #8), both PEM.
#[derive(Clone)]
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// A new CA.
pub(super) fn ca(algorithm: KeyAlgorithm, now: Timestamp) -> Result<Issued, IssueError> {
    let key = key(algorithm)?;
    let mut params = params("*.kyverno.svc", now, CA_LIFETIME);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A new serving certificate for `names`, by a CA whose certificate is the first in `ca`. It does not outlive the CA,
/// which ends at `ca_end`.
pub(super) fn leaf(
    algorithm: KeyAlgorithm,
    names: &[String],
    common_name: &str,
    ca: &Issued,
    ca_end: Timestamp,
    now: Timestamp,
) -> Result<Issued, IssueError> {
    let issuer = Issuer::from_ca_cert_pem(&ca.certificate, KeyPair::from_pem(&ca.key)?)?;
    let key = key(algorithm)?;
    let left = Duration::try_from(ca_end.duration_since(now)).unwrap_or_default();
    let mut params = params(common_name, now, LEAF_LIFETIME.min(left));
    // Names and addresses are told apart by their form.
    params.subject_alt_names = CertificateParams::new(names.to_vec())?.subject_alt_names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn params(common_name: &str, now: Timestamp, lifetime: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    let seconds = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + seconds.saturating_sub(BACKDATED);
    params.not_after = epoch + (seconds + lifetime);
    params
}

fn key(algorithm: KeyAlgorithm) -> Result<KeyPair, IssueError> {
    let algorithm: &'static SignatureAlgorithm = match algorithm {
        KeyAlgorithm::Rsa => &rcgen::PKCS_RSA_SHA256,
        KeyAlgorithm::Ecdsa => &rcgen::PKCS_ECDSA_P256_SHA256,
        KeyAlgorithm::Ed25519 => &rcgen::PKCS_ED25519,
    };
    Ok(KeyPair::generate_for(algorithm)?)
}
