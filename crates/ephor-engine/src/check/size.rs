//! How much a policy may hold.

use ephor_expr::Value;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;
use crate::policy::ProgramKind;

/// What the `spec` of a policy may hold. Each value takes some kilobytes once it is compiled and expanded, in every
/// role; the largest policies that people publish have 300 values.
struct SizeLimit {
    values: usize,
    /// Of the values in memory, uncompiled.
    bytes: Option<usize>,
}

const OF_CLUSTER: SizeLimit = SizeLimit { values: 20_000, bytes: None };
/// The owner of a namespace is trusted with less.
const OF_NAMESPACE: SizeLimit = SizeLimit { values: 2_000, bytes: Some(256 << 10) };

/// The finding that a policy of any kind is too large, if it is.
pub(crate) fn check_size(document: &Value) -> Option<Diagnostic> {
    let spec = document.get("spec")?;
    let kind = document.str_at(&["kind"]).unwrap_or_default();
    let is_namespaced = kind == "CleanupPolicy" || ProgramKind::parse(kind).is_some_and(ProgramKind::is_namespaced);
    let limit = if is_namespaced { OF_NAMESPACE } else { OF_CLUSTER };
    let too_large = |most: String| {
        let text = format!("the policy is too large: it {most}");
        let finding = Diagnostic::error("policy-too-large", Path::root().key("spec"), text);
        finding.with_help("divide its rules among several policies")
    };
    if spec.has_more_values_than(limit.values) {
        return Some(too_large(format!("holds more than {} values", limit.values)));
    }
    let bytes = limit.bytes.filter(|bytes| spec.memory() > *bytes)?;
    Some(too_large(format!("takes more than {} KiB", bytes >> 10)))
}
