//! The texts of podSecurity rules, as upstream fixes them.

use std::fmt::Write as _;

use ephor_expr::Str;

use super::evaluate::FailedCheck;

/// Upstream: what it says of a kind that has no Pod.
pub(super) const NO_POD: &str = "Error while getting new resource: could not find correct resource type";

/// A Pod that cannot be read.
pub(super) fn unreadable(cause: &impl std::fmt::Display) -> Str {
    format!("Error while getting new resource: {cause}").into()
}

/// The rule passes.
pub(super) fn passed(rule: &str) -> Str {
    format!("Validation rule '{rule}' passed.").into()
}

/// The rule fails: each check with its reason and fields.
pub(super) fn failed(rule: &str, level: &str, version: &str, checks: &[FailedCheck]) -> Str {
    let mut out = format!("Validation rule '{rule}' failed. It violates PodSecurity \"{level}:{version}\": ");
    for check in checks {
        let _ = write!(out, "(Forbidden reason: {}, field error list: [", check.reason);
        for (i, error) in check.errors.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            let _ = write!(out, "{separator}{error}");
        }
        out.push_str("])");
    }
    out.into()
}

/// The rule is skipped: an exception without `podSecurity` applies to it. `keys` name the exceptions.
pub fn skipped(keys: &[Str]) -> Str {
    format!("rule is skipped due to policy exception {}", keys.join(", ")).into()
}

/// The rule is skipped: the `podSecurity` entries of exceptions cover every violation. `keys` name the exceptions.
pub fn violations_excepted(keys: &[Str]) -> Str {
    format!("rule is skipped due to policy exceptions {}", keys.join(", ")).into()
}
