//! Public keys as policies write them: PEM blocks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
use p256::ecdsa::{DerSignature, VerifyingKey};
use p256::pkcs8::DecodePublicKey as _;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

/// Why keys cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A reference to a key that is kept elsewhere.
    #[error("references to keys (`k8s://`, `awskms://` and so on) are not supported: write the PEM block itself")]
    Reference,
    /// A PGP key.
    #[error("PGP keys are not supported: use an ECDSA P-256 public key")]
    Pgp,
    /// No PEM block.
    #[error("no PEM block: a public key starts with `{BEGIN}`")]
    NoPem,
    /// A PEM block without end, or with text that is no base64.
    #[error("broken PEM block")]
    BrokenPem,
    /// Another kind of key.
    #[error("only ECDSA P-256 public keys are supported")]
    OtherKind,
}

impl KeyError {
    /// Whether the key may be right, but is of a kind that is not built.
    pub fn is_unsupported(self) -> bool {
        matches!(self, Self::Reference | Self::Pgp | Self::OtherKind)
    }
}

/// An ECDSA P-256 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The keys of one or more PEM blocks; text between blocks is ignored, text without a block is an error.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, KeyError> {
        let text = text.trim();
        if text.starts_with("-----BEGIN PGP") {
            return Err(KeyError::Pgp);
        }
        let mut keys = Vec::new();
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(BEGIN) {
            let (body, after) = after.split_once(END).ok_or(KeyError::BrokenPem)?;
            keys.push(Self::from_base64(body)?);
            rest = after;
        }
        match keys.is_empty() {
            false => Ok(keys),
            true if text.contains("://") => Err(KeyError::Reference),
            true => Err(KeyError::NoPem),
        }
    }

    fn from_base64(body: &str) -> Result<Self, KeyError> {
        let packed: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(packed).map_err(|_| KeyError::BrokenPem)?;
        VerifyingKey::from_public_key_der(&der).map(Self).map_err(|_| KeyError::OtherKind)
    }

    /// Whether `signature` (DER) is one of this key over the message with the SHA-256 digest `digest`.
    pub(super) fn verifies(&self, digest: &[u8], signature: &DerSignature) -> bool {
        self.0.verify_prehash(digest, signature).is_ok()
    }
}
