//! Outcomes that a result is about.

use ephor_engine::outcome::{Outcome, RuleKind, Verdict};
use ephor_expr::Value;

use super::case::Case;
use super::compare::same_object;
use super::respond::Response;
use super::subjects::Subject;
use super::suite::Expectation;
use crate::load::parse_operation;

/// An outcome for a subject.
pub(super) struct Hit<'r> {
    pub(super) subject: Subject,
    pub(super) outcome: &'r Outcome,
    pub(super) verdict: Verdict,
    pub(super) message: &'r str,
    /// Objects to compare with the expected ones.
    pub(super) after: Vec<&'r Value>,
}

/// The outcomes that the rules of `policies` that `result` names gave for `subject`.
pub(super) fn hits<'r>(
    case: &'r Case,
    responses: &'r [Response],
    result: &Expectation,
    policies: &[usize],
    subject: Subject,
) -> Vec<Hit<'r>> {
    let operation = result.operation.as_deref().and_then(parse_operation);
    let relevant = || {
        let responses = responses.iter().filter(|r| policies.contains(&r.policy) && r.operation == operation);
        let outcomes = responses.flat_map(|r| r.outcomes.iter().map(move |outcome| (r, outcome)));
        outcomes.filter(|(response, outcome)| is_wanted(case, result, response.policy, outcome))
    };
    let own = relevant().filter(|(response, _)| subject == response.subject);
    let own: Vec<Hit<'_>> = own.map(|(response, outcome)| of_trigger(subject, response, outcome)).collect();
    if !own.is_empty() {
        return own;
    }
    let Some(object) = subject.object(case) else { return own };
    let targets = relevant().flat_map(|(_, outcome)| {
        let detail = outcome.detail.as_ref();
        detail.into_iter().flat_map(|d| &d.targets).map(move |target| (outcome, target))
    });
    targets
        .filter(|(_, target)| same_object(&target.before, object))
        .map(|(outcome, target)| Hit {
            subject,
            outcome,
            verdict: target.verdict,
            message: &target.message,
            after: vec![&target.after],
        })
        .collect()
}

fn is_wanted(case: &Case, result: &Expectation, policy: usize, outcome: &Outcome) -> bool {
    let Some(wanted) = result.rule() else { return true };
    let program = case.policies.policies.get(policy).map(|loaded| &loaded.program);
    // Rules of policies in CEL have no names: upstream takes any.
    if outcome.rule.is_empty() {
        return true;
    }
    let declared = program.and_then(|p| p.rules.get(outcome.index)).map(|rule| rule.declared.as_str());
    outcome.rule == wanted || declared == Some(wanted)
}

fn of_trigger<'r>(subject: Subject, response: &'r Response, outcome: &'r Outcome) -> Hit<'r> {
    let after = match &outcome.detail {
        Some(detail) if !detail.targets.is_empty() => detail.targets.iter().map(|t| &t.after).collect(),
        Some(detail) if !detail.generated.is_empty() => detail.generated.iter().map(|g| &g.object).collect(),
        _ if outcome.kind == RuleKind::Mutate => vec![&response.after],
        _ => Vec::new(),
    };
    Hit { subject, outcome, verdict: outcome.verdict, message: &outcome.message, after }
}
