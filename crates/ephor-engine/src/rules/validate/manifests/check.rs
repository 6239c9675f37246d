//! A compiled `manifests` body, and what it says of one object.

use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};
use p256::ecdsa::DerSignature;
use sha2::{Digest as _, Sha256};

use super::attestors::{Answer, Signers};
use super::compare::{Differences, differences};
use super::ignore::{DEFAULT_DOMAIN, IgnoreFields, group_and_version};
use super::keys::PublicKey;
use super::message::{self, MessageError};
use super::problem::{ManifestFault, ManifestProblem};
use crate::policy::Manifests;

/// How many signatures of one object are looked at.
const MAX_SIGNATURES: usize = 32;

/// How many manifests of one message are compared with the object, those of its name first.
const MAX_MANIFESTS: usize = 8;

/// A compiled `manifests` body.
#[derive(Debug)]
pub struct ManifestCheck {
    attestors: Vec<Signers>,
    /// The prefix of the annotations.
    domain: Str,
    ignored: IgnoreFields,
}

/// What a `manifests` rule says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestOutcome {
    /// The object is what enough attestors have signed.
    Pass {
        /// For the user.
        message: Str,
    },
    /// It is not.
    Fail {
        /// For the user.
        message: Str,
    },
}

impl ManifestCheck {
    /// Compiles a body. The problems' paths start at the `manifests` block.
    pub fn compile(body: &Manifests) -> Result<Self, Vec<ManifestProblem>> {
        let mut problems = Vec::new();
        let root = Path::root();
        if body.repository.as_ref().is_some_and(|repository| !repository.is_empty()) {
            let fault = ManifestFault::Unsupported("repository");
            problems.push(ManifestProblem { path: root.key("repository"), fault });
        }
        if body.dry_run.as_ref().is_some_and(|dry_run| dry_run.enable == Some(true)) {
            problems.push(ManifestProblem { path: root.keys(&["dryRun", "enable"]), fault: ManifestFault::DryRun });
        }
        let sets = body.attestors.as_deref().unwrap_or_default();
        if sets.is_empty() {
            problems.push(ManifestProblem { path: root.clone(), fault: ManifestFault::NoAttestors });
        }
        let path = root.key("attestors");
        let attestors = sets
            .iter()
            .enumerate()
            .filter_map(|(i, set)| Signers::compile(set, &path.index(i), 0, &mut problems))
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let domain = body.annotation_domain.as_ref().filter(|domain| !domain.is_empty());
        let domain = domain.cloned().unwrap_or(Str::new_static(DEFAULT_DOMAIN));
        let ignored = IgnoreFields::new(&domain, body.ignore_fields.as_deref().unwrap_or_default());
        Ok(Self { attestors, domain, ignored })
    }

    /// Judges an object.
    ///
    /// A signature by the wrong key is a failure like a missing one; upstream calls it an error, which under
    /// `failurePolicy: Ignore` would let the object in.
    pub fn evaluate(&self, object: &Value) -> ManifestOutcome {
        let evidence = Evidence::new(self, object);
        let mut reasons = Vec::with_capacity(self.attestors.len());
        for (i, set) in self.attestors.iter().enumerate() {
            match set.ask(&evidence, &format!(".attestors[{i}]")) {
                Answer::Verified(reason) => reasons.push(reason),
                Answer::Missing(reason) => return ManifestOutcome::Fail { message: reason.into() },
            }
        }
        let message = format!("verified manifest signatures; {}", reasons.join(","));
        ManifestOutcome::Pass { message: message.into() }
    }
}

/// What an object brings along as evidence of its signers.
pub(super) struct Evidence<'o> {
    annotations: Option<&'o Map>,
    signed: Result<Signed, Absent>,
}

/// A signed message.
struct Signed {
    /// SHA-256 of the bytes that the signatures are over.
    digest: [u8; 32],
    signatures: Vec<DerSignature>,
    /// Where the object differs from the manifest, or why there is none.
    content: Result<Differences, Unmatched>,
}

/// Why an object has no evidence at all.
#[derive(Debug, thiserror::Error)]
enum Absent {
    #[error("no signature found in the annotations `{0}/signature` and `{0}/message`")]
    Unsigned(Str),
    #[error("the annotation `{0}/message` cannot be read: {1}")]
    Unreadable(Str, MessageError),
    #[error("signatures kept in an image (`{0}/resourceBundleRef`) are not supported")]
    InImage(Str),
}

/// Why a message says nothing of an object.
#[derive(Debug, thiserror::Error)]
enum Unmatched {
    #[error("the signed message cannot be read: {0}")]
    Unreadable(#[from] MessageError),
    #[error("the signed message has no manifest of this kind")]
    OtherKinds,
}

impl<'o> Evidence<'o> {
    fn new(check: &ManifestCheck, object: &'o Value) -> Self {
        let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
        Self { annotations, signed: Signed::read(check, object, annotations) }
    }

    /// The object's annotation `key`.
    pub(super) fn annotation(&self, key: &str) -> Option<&'o str> {
        self.annotations?.get(key)?.as_str()
    }

    /// Whether the owner of `key` has signed the object, or why this cannot be said.
    pub(super) fn shows(&self, key: &PublicKey) -> Result<(), String> {
        let signed = self.signed.as_ref().map_err(ToString::to_string)?;
        if !signed.signatures.iter().any(|signature| key.verifies(&signed.digest, signature)) {
            return Err("failed to verify signature.".to_owned());
        }
        match &signed.content {
            Ok(found) if found.is_empty() => Ok(()),
            Ok(found) => Err(format!("failed to verify signature. diff found; {found}")),
            Err(reason) => Err(format!("failed to verify signature. {reason}")),
        }
    }
}

impl Signed {
    fn read(check: &ManifestCheck, object: &Value, annotations: Option<&Map>) -> Result<Self, Absent> {
        let domain = &check.domain;
        let annotation = |name: &str| annotations?.get(&format!("{domain}/{name}"))?.as_str();
        let first = format!("{domain}/signature");
        let texts = annotations.into_iter().flat_map(Map::iter).filter_map(|(key, value)| {
            let is_signature = match key.strip_prefix(first.as_str()) {
                Some("") => true,
                Some(rest) => rest.strip_prefix('_').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())),
                None => false,
            };
            value.as_str().filter(|_| is_signature)
        });
        let texts: Vec<&str> = texts.take(MAX_SIGNATURES).collect();
        let Some(message) = annotation("message").filter(|_| !texts.is_empty()) else {
            return Err(match annotation("resourceBundleRef") {
                Some(_) => Absent::InImage(domain.clone()),
                None => Absent::Unsigned(domain.clone()),
            });
        };
        let bytes = message::signed_bytes(message).map_err(|error| Absent::Unreadable(domain.clone(), error))?;
        let digest = Sha256::digest(&bytes).into();
        // What is no signature verifies nothing.
        let signatures = texts.into_iter().filter_map(|text| {
            let der = message::decode_base64(text).ok()?;
            DerSignature::from_bytes(&der).ok()
        });
        Ok(Self { digest, signatures: signatures.collect(), content: compared(check, object, bytes) })
    }
}

/// Compares an object with the manifests of a message, and gives the differences from the one that is nearest.
fn compared(check: &ManifestCheck, object: &Value, signed: Vec<u8>) -> Result<Differences, Unmatched> {
    let kind = |value: &Value| value.str_at(&["kind"]).map(Str::new);
    let name = |value: &Value| value.str_at(&["metadata", "name"]).map(Str::new);
    let mut manifests = message::manifests(signed)?;
    manifests.retain(|manifest| {
        kind(manifest) == kind(object) && group_and_version(manifest).0 == group_and_version(object).0
    });
    manifests.sort_by_key(|manifest| name(manifest) != name(object));
    let ignored = check.ignored.for_object(object);
    let mut nearest: Option<Differences> = None;
    for manifest in manifests.iter().take(MAX_MANIFESTS) {
        let found = differences(manifest, object, &ignored);
        if found.is_empty() {
            return Ok(found);
        }
        nearest.get_or_insert(found);
    }
    nearest.ok_or(Unmatched::OtherKinds)
}
