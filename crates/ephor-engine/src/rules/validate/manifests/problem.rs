//! What keeps a `manifests` body from being compiled.

use ephor_expr::Str;
use ephor_expr::value::Path;

use super::keys::KeyError;

/// A fault and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestProblem {
    /// Where, from the `manifests` block on.
    pub path: Path,
    /// What.
    pub fault: ManifestFault,
}

/// A fault of a `manifests` body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// The rule names no attestor.
    #[error("`manifests` needs `attestors`")]
    NoAttestors,
    /// A set of attestors is empty.
    #[error("a set of attestors needs `entries`")]
    NoEntries,
    /// More signatures are asked for than there are signers, or less than none.
    #[error("`count` is {count}, but there are {signers} attestors to count")]
    Count {
        /// As written.
        count: i64,
        /// How many can sign.
        signers: usize,
    },
    /// Sets inside sets go too deep.
    #[error("sets of attestors nest too deep")]
    TooDeep,
    /// An entry does not say whose signature it is about.
    #[error("an attestor needs `keys` or `attestor`")]
    NoKeys,
    /// The keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// A field that needs a network, or a form of signature that is not built.
    #[error("`{0}` is not supported for manifests: only public keys written in the policy are")]
    Unsupported(&'static str),
    /// A dry run in the cluster is asked for.
    #[error("`dryRun.enable` is not supported: manifests are compared without a cluster")]
    DryRun,
    /// Another digest than SHA-256.
    #[error("signature algorithm `{0}` is not supported: manifests are signed over SHA-256")]
    Algorithm(Str),
}

impl ManifestFault {
    /// The name of the finding.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsupported(_) | Self::DryRun | Self::Algorithm(_) => "not-supported",
            Self::Keys(error) if error.is_unsupported() => "not-supported",
            _ => "attestors",
        }
    }
}
