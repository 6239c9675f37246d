//! `validate.manifests`: the object equals its signed manifest.
//!
//! The object carries the signed manifest and its signatures in annotations (`cosign.sigstore.dev/message`,
//! `…/signature`, `…/signature_1`). It passes if the attestors' public keys verify enough of the signatures, and if it
//! says nothing else than the manifest does, server-set and ignored fields aside (validate-mutate-autogen.md 2.5).
//!
//! `message` opens the annotation, `compare` sets manifest and object side by side, `ignore` knows which fields
//! may differ, `keys` reads public keys, `attestors` counts who has signed.
//!
//! Nothing here asks anybody: transparency logs, certificates, key services and registries are refused by name.

mod attestors;
mod check;
mod compare;
mod ignore;
mod keys;
pub mod message;
mod problem;

#[cfg(test)]
mod tests;

pub use check::{ManifestCheck, ManifestOutcome};
pub use keys::{KeyError, PublicKey};
pub use problem::{ManifestFault, ManifestProblem};
