//! Formats findings as messages for users of `kubectl`.
//!
//! Refusals begin with the place, warnings with the words, since clients and tests look for what stands behind
//! `Warning: `. Some words are upstream's, which users search for.

use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::Value;
use ephor_expr::value::{Path, Segment};
use ephor_runtime::decision::Answer;

use super::is_of_cel;

/// More than so many warnings, and a client shows none of them well.
const MAX_WARNINGS: usize = 20;
/// The number of errors that a message lists at most.
const MAX_ERRORS: usize = 20;

/// The answer to a request about `document`: denied if an error is among the findings.
pub(super) fn answer(findings: &[Diagnostic], document: &Value) -> Answer {
    let mut warnings: Vec<String> = Vec::new();
    for finding in findings.iter().filter(|finding| !finding.is_error()) {
        let text = warning(finding, document);
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    let mut errors: Vec<String> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.is_error()) {
        let text = refusal(finding);
        if errors.len() < MAX_ERRORS && !errors.contains(&text) {
            errors.push(text);
        }
    }
    // As upstream: what refuses a policy of `policies.kyverno.io` is a warning, too.
    if is_of_cel(document) {
        warnings.splice(0..0, errors.iter().cloned());
    }
    let answer = if errors.is_empty() { Answer::allow() } else { Answer::deny(errors.join("\n")) };
    answer.with_warnings(warnings)
}

fn refusal(finding: &Diagnostic) -> String {
    let place = place(finding);
    let message = if finding.code == "condition" && finding.path.0.last() == Some(&Segment::Key("operator".into())) {
        format!("entered value of `operator` is invalid: {}", finding.message)
    } else {
        finding.message.clone()
    };
    let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    if place.is_root() { format!("{message}{help}") } else { format!("{place}: {message}{help}") }
}

fn warning(finding: &Diagnostic, document: &Value) -> String {
    let message = match finding.path.lookup(document).and_then(Value::as_str) {
        Some(operator) if finding.code == "deprecated-operator" => {
            format!("Operator {operator} has been deprecated and will be removed soon.")
        }
        _ => finding.message.clone(),
    };
    let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    if finding.path.is_root() { format!("{message}{help}") } else { format!("{message}{help} [{}]", finding.path) }
}

/// Where a fault is. Upstream: faults of Pod Security exclusions are placed without the `validate` around them
/// (policy-validation/cluster-policy/invalid-pod-security-rule), and users search for that.
fn place(finding: &Diagnostic) -> Path {
    let keep = |segment: &&Segment| {
        finding.code != "pod-security-exclude" || !matches!(segment, Segment::Key(key) if key == "validate")
    };
    Path(finding.path.0.iter().filter(keep).cloned().collect())
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    #[test]
    fn refusals_begin_with_the_place_and_warnings_with_the_words() {
        let document = parse_value("{spec: {operator: NotIn}}").unwrap();
        let spec = Path::root().key("spec");
        let findings = [
            Diagnostic::error("a", spec.key("x"), "one").with_help("do this"),
            Diagnostic::error("condition", spec.key("operator"), "unknown operator `Is`"),
            Diagnostic::error("pod-security-exclude", spec.key("validate").key("podSecurity"), "values is required"),
            Diagnostic::warning("deprecated-operator", spec.key("operator"), "deprecated").with_help("use another"),
            Diagnostic::warning("b", Path::root(), "two"),
            Diagnostic::warning("b", Path::root(), "two"),
        ];
        let answer = answer(&findings, &document);
        insta::assert_snapshot!(answer.message.unwrap(), @"
spec.x: one (do this)
spec.operator: entered value of `operator` is invalid: unknown operator `Is`
spec.podSecurity: values is required
");
        insta::assert_snapshot!(answer.warnings.join("\n"), @"
Operator NotIn has been deprecated and will be removed soon. (use another) [spec.operator]
two
");
    }
}
