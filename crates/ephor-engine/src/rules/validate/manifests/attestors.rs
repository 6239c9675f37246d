//! Who must have signed: sets of attestors, and how many of each set.

use std::collections::BTreeMap;

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::check::Evidence;
use super::keys::PublicKey;
use super::problem::{ManifestFault, ManifestProblem};
use crate::policy::{Attestor, AttestorSet, StaticKeys};

/// How deep sets may lie inside sets.
const MAX_DEPTH: usize = 8;

/// A set of attestors.
#[derive(Debug)]
pub(super) struct Signers {
    entries: Vec<Signer>,
    /// How many of them must have signed.
    required: usize,
}

#[derive(Debug)]
struct Signer {
    /// Annotations that the object must have.
    annotations: BTreeMap<Str, Str>,
    who: Who,
}

#[derive(Debug)]
enum Who {
    Key(Box<PublicKey>),
    Set(Signers),
}

/// What a set says of an object.
pub(super) enum Answer {
    /// Enough have signed.
    Verified(String),
    /// Too few have.
    Missing(String),
}

impl Signers {
    /// Compiles the set at `path`; `None` if there were problems.
    pub(super) fn compile(
        set: &AttestorSet,
        path: &Path,
        depth: usize,
        problems: &mut Vec<ManifestProblem>,
    ) -> Option<Self> {
        let before = problems.len();
        let mut report = |path: Path, fault| problems.push(ManifestProblem { path, fault });
        if depth >= MAX_DEPTH {
            report(path.clone(), ManifestFault::TooDeep);
            return None;
        }
        let listed = set.entries.as_deref().unwrap_or_default();
        if listed.is_empty() {
            report(path.clone(), ManifestFault::NoEntries);
            return None;
        }
        let mut entries = Vec::with_capacity(listed.len());
        for (i, entry) in listed.iter().enumerate() {
            Signer::compile(entry, &path.key("entries").index(i), depth, &mut entries, problems);
        }
        let count = set.count.unwrap_or(0);
        let required = match usize::try_from(count) {
            Ok(0) => entries.len(),
            Ok(n) if n <= entries.len() => n,
            // Entries that could not be read are missing here, and reported.
            _ if problems.len() > before => 0,
            _ => {
                let fault = ManifestFault::Count { count, signers: entries.len() };
                problems.push(ManifestProblem { path: path.key("count"), fault });
                0
            }
        };
        (problems.len() == before).then_some(Self { entries, required })
    }

    /// Whether enough have signed; `path` is the set's name in messages.
    pub(super) fn ask(&self, evidence: &Evidence<'_>, path: &str) -> Answer {
        let mut verified = Vec::new();
        let mut missing = Vec::new();
        for (i, entry) in self.entries.iter().enumerate() {
            match entry.ask(evidence, &format!("{path}.entries[{i}]")) {
                Answer::Verified(reason) => verified.push(reason),
                Answer::Missing(reason) => missing.push(reason),
            }
            if verified.len() >= self.required {
                let text = self.text("succeeded", verified.len(), &verified);
                return Answer::Verified(text);
            }
        }
        Answer::Missing(self.text("failed", verified.len(), &missing))
    }

    fn text(&self, how: &str, verified: usize, reasons: &[String]) -> String {
        let (required, reasons) = (self.required, reasons.join(","));
        format!("manifest verification {how}; verifiedCount {verified}; requiredCount {required}; message {reasons}")
    }
}

impl Signer {
    /// Compiles an entry into one signer for each key.
    fn compile(
        entry: &Attestor,
        path: &Path,
        depth: usize,
        signers: &mut Vec<Self>,
        problems: &mut Vec<ManifestProblem>,
    ) {
        let mut report = |path: Path, fault| problems.push(ManifestProblem { path, fault });
        let unsupported = [
            ("certificates", entry.certificates.is_some()),
            ("keyless", entry.keyless.is_some()),
            ("repository", entry.repository.is_some()),
        ];
        for (field, _) in unsupported.iter().filter(|(_, is_set)| *is_set) {
            report(path.key(*field), ManifestFault::Unsupported(field));
        }
        let annotations = || entry.annotations.clone().unwrap_or_default();
        match (&entry.attestor, &entry.keys) {
            (Some(set), _) => {
                if let Some(set) = Signers::compile(set, &path.key("attestor"), depth + 1, problems) {
                    signers.push(Self { annotations: annotations(), who: Who::Set(set) });
                }
            }
            (None, Some(keys)) => {
                for key in public_keys(keys, &path.key("keys"), problems) {
                    signers.push(Self { annotations: annotations(), who: Who::Key(Box::new(key)) });
                }
            }
            (None, None) if unsupported.iter().any(|(_, is_set)| *is_set) => {}
            (None, None) => report(path.clone(), ManifestFault::NoKeys),
        }
    }

    fn ask(&self, evidence: &Evidence<'_>, path: &str) -> Answer {
        for (key, wanted) in &self.annotations {
            if evidence.annotation(key) != Some(wanted) {
                return Answer::Missing(format!("{path}: annotation `{key}` is not `{wanted}`"));
            }
        }
        match &self.who {
            Who::Set(set) => set.ask(evidence, &format!("{path}.attestor")),
            Who::Key(key) => match evidence.shows(key) {
                Ok(()) => Answer::Verified("signed by a valid signer".to_owned()),
                Err(reason) => Answer::Missing(format!("{path}.keys: {reason}")),
            },
        }
    }
}

fn public_keys(keys: &StaticKeys, path: &Path, problems: &mut Vec<ManifestProblem>) -> Vec<PublicKey> {
    let mut report = |field: &'static str, fault| problems.push(ManifestProblem { path: path.key(field), fault });
    for (field, is_set) in [("kms", keys.kms.is_some()), ("secret", is_given(keys.secret.as_ref()))] {
        if is_set {
            report(field, ManifestFault::Unsupported(field));
        }
    }
    let algorithm = keys.signature_algorithm.as_deref().unwrap_or("sha256");
    if algorithm != "sha256" {
        report("signatureAlgorithm", ManifestFault::Algorithm(algorithm.into()));
    }
    let Some(text) = &keys.public_keys else {
        if keys.kms.is_none() && !is_given(keys.secret.as_ref()) {
            problems.push(ManifestProblem { path: path.clone(), fault: ManifestFault::NoKeys });
        }
        return Vec::new();
    };
    PublicKey::parse_all(text).unwrap_or_else(|error| {
        report("publicKeys", error.into());
        Vec::new()
    })
}

fn is_given(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}
