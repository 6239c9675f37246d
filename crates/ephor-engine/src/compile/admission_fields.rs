//! What an API server refuses of the lists of an admission policy beside their expressions.
//!
//! Names, reasons and texts, with the limits of Kubernetes' validation of `admissionregistration.k8s.io`. Without these
//! checks a policy would pass here and be refused where it is installed.

use std::collections::BTreeSet;

use ephor_expr::cel::schema::is_identifier;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;
use crate::policy::{AuditAnnotation, CelValidation, CelVariable, MatchCondition};

/// As many conditions as a policy may have.
const MAX_CONDITIONS: usize = 64;
/// As many audit annotations as a policy may have.
const MAX_ANNOTATIONS: usize = 20;
/// How long the name part of a qualified name may be, in bytes.
const MAX_NAME: usize = 63;
/// The reasons that a violation may have. The API's documentation names `Unauthorized` too, and its validation refuses
/// it.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

fn refusal(path: Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("admission-policy", path, message)
}

/// Checks the names of `matchConditions` at `path`.
pub(super) fn check_conditions(conditions: &[MatchCondition], path: &Path, findings: &mut Vec<Diagnostic>) {
    if conditions.len() > MAX_CONDITIONS {
        findings.push(refusal(path.clone(), format!("more than {MAX_CONDITIONS} match conditions")));
    }
    let mut names = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let (name, at) = (condition.name.as_str(), path.index(i).key("name"));
        let (prefix, rest) = name.split_once('/').map_or((None, name), |(prefix, rest)| (Some(prefix), rest));
        if name.is_empty() {
            findings.push(refusal(at, "a match condition needs a name"));
        } else if !is_word(rest) || prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
            findings.push(refusal(at, format!("`{name}` is not a qualified name, as `example.com/my-name`")));
        } else if !names.insert(name) {
            findings.push(refusal(at, format!("`{name}` is there twice")));
        }
    }
}

/// Checks the names of `variables` at `path`.
pub(super) fn check_variables(variables: &[CelVariable], path: &Path, findings: &mut Vec<Diagnostic>) {
    for (i, variable) in variables.iter().enumerate() {
        if !is_identifier(&variable.name) {
            let message = format!("`{}` is not an identifier of CEL", variable.name);
            findings.push(refusal(path.index(i).key("name"), message));
        }
    }
}

/// Checks messages and reasons of `validations` at `path`.
pub(super) fn check_validations(validations: &[CelValidation], path: &Path, findings: &mut Vec<Diagnostic>) {
    for (i, validation) in validations.iter().enumerate() {
        let at = path.index(i);
        if let Some(reason) = validation.reason.as_ref().filter(|reason| !REASONS.contains(&reason.as_str())) {
            let message = format!("unknown reason `{reason}`; known: {}", REASONS.join(", "));
            findings.push(refusal(at.key("reason"), message));
        }
        let texts = [("message", &validation.message), ("messageExpression", &validation.message_expression)];
        for (key, text) in texts {
            let Some(text) = text.as_ref().filter(|text| !text.is_empty()) else { continue };
            if text.trim().is_empty() {
                findings.push(refusal(at.key(key), "the text is blank"));
            } else if key == "message" && text.trim().contains(['\n', '\r']) {
                findings.push(refusal(at.key(key), "a message has no line breaks"));
            }
        }
    }
}

/// Checks the keys of `auditAnnotations` at `path`.
pub(super) fn check_annotations(annotations: &[AuditAnnotation], path: &Path, findings: &mut Vec<Diagnostic>) {
    if annotations.len() > MAX_ANNOTATIONS {
        findings.push(refusal(path.clone(), format!("more than {MAX_ANNOTATIONS} audit annotations")));
    }
    let mut keys = BTreeSet::new();
    for (i, annotation) in annotations.iter().enumerate() {
        let (key, at) = (annotation.key.as_str(), path.index(i).key("key"));
        if !is_word(key) {
            let message = format!("`{key}` is not the name part of a qualified name, as `my-name`");
            findings.push(refusal(at, message));
        } else if !keys.insert(key) {
            findings.push(refusal(at, format!("`{key}` is there twice")));
        }
    }
}

/// Whether a text can be the name part of a qualified name.
fn is_word(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    (1..=MAX_NAME).contains(&text.len())
        && ends.iter().flatten().all(char::is_ascii_alphanumeric)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Whether a text can be the prefix of a qualified name.
fn is_subdomain(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}
