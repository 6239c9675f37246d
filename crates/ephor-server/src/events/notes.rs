//! What is told in which case, word for word as upstream tells it.
//!
//! Messages of rules go in as they are shown in denials: without values from Secrets.

use ephor_engine::outcome::{RuleKind, Verdict};
use ephor_expr::Str;

use super::event::{Action, Component, Event, Reason, Reference};

/// What one rule said about one object.
#[derive(Debug, Clone, Copy)]
pub struct RuleResult<'r> {
    /// The rule's name.
    pub rule: &'r str,
    /// What the rule does.
    pub kind: RuleKind,
    /// The verdict.
    pub verdict: Verdict,
    /// The text for the user.
    pub message: &'r str,
    /// The exceptions that applied, each `namespace/name`.
    pub exceptions: &'r [Str],
}

/// Whether a request went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It did.
    Yes,
    /// It was denied.
    No,
}

/// The events about what the rules of `policy` said about `object`.
pub fn judged(
    component: Component,
    policy: &Reference,
    object: &Reference,
    results: &[RuleResult<'_>],
    admitted: Admitted,
) -> Vec<Event> {
    let mut events = Vec::new();
    let action = if admitted == Admitted::No { Action::Blocked } else { Action::Passed };
    let event = |regarding: &Reference, related, reason, action, note: String| Event {
        regarding: regarding.clone(),
        related,
        reason,
        action,
        component,
        note: note.into(),
    };
    let (name, subject) = (policy.place(), format!("{} {}", object.kind, object.place()));
    for result in results {
        let RuleResult { rule, message, .. } = result;
        match result.verdict {
            Verdict::Fail | Verdict::Warn => {
                let blocked = if admitted == Admitted::No { " (blocked)" } else { "" };
                let note = format!("{subject}: [{rule}] fail{blocked}; {message}");
                events.push(event(policy, Some(object.clone()), Reason::Violation, action, note));
                // An object that was denied is not there to be shown with an event, nor is one without a name.
                if admitted == Admitted::Yes && !object.name.is_empty() {
                    let note = format!("policy {name}/{rule} fail: {message}");
                    events.push(event(object, None, Reason::Violation, action, note));
                }
            }
            Verdict::Error => {
                let note = format!("policy {name}/{rule} error: {message}");
                events.push(event(policy, Some(object.clone()), Reason::Error, action, note));
            }
            Verdict::Skip if !result.exceptions.is_empty() => {
                for key in result.exceptions {
                    let note = format!(
                        "resource {}/{} was skipped from policy rule {name}/{rule}",
                        object.kind,
                        object.place()
                    );
                    events.push(event(&exception(key), Some(object.clone()), Reason::Skipped, Action::Passed, note));
                }
                let keys = result.exceptions.join(", ");
                let note = format!("{subject} was skipped from rule {rule} due to policy exceptions {keys}");
                events.push(event(policy, Some(object.clone()), Reason::Skipped, Action::Passed, note));
            }
            Verdict::Skip | Verdict::Pass => {}
        }
    }
    let passed = |kind| results.iter().any(|r| r.kind == kind && r.verdict == Verdict::Pass);
    let clean = results.iter().all(|r| matches!(r.verdict, Verdict::Pass | Verdict::Skip));
    if passed(RuleKind::Mutate) {
        let note = format!("{subject} is successfully mutated");
        events.push(event(policy, Some(object.clone()), Reason::Applied, Action::Mutated, note));
    }
    if clean && passed(RuleKind::Validate) {
        let note = format!("{subject}: pass");
        events.push(event(policy, Some(object.clone()), Reason::Applied, Action::Passed, note));
    }
    events
}

fn exception(key: &str) -> Reference {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    Reference {
        api_version: "kyverno.io/v2".into(),
        kind: "PolicyException".into(),
        namespace: namespace.into(),
        name: name.into(),
        uid: Str::default(),
    }
}

/// A generate rule made an object.
pub fn generated(policy: &Reference, rule: &str, downstream: &Reference) -> [Event; 2] {
    let event = |regarding: &Reference, related, action, note: String| Event {
        regarding: regarding.clone(),
        related,
        reason: Reason::Applied,
        action,
        component: Component::Generate,
        note: note.into(),
    };
    let Reference { kind, name, .. } = downstream;
    let created = format!("Created {kind} {name} as a result of applying policy {}/{rule}", policy.place());
    [
        event(policy, Some(downstream.clone()), Action::Generated, "resource generated".to_owned()),
        event(downstream, None, Action::None, created),
    ]
}

/// A mutate-existing rule changed a target.
pub fn mutated_existing(policy: &Reference, target: &Reference) -> Event {
    Event {
        regarding: policy.clone(),
        related: Some(target.clone()),
        reason: Reason::Applied,
        action: Action::Mutated,
        component: Component::Mutate,
        note: "resource mutated".into(),
    }
}

/// A policy could not do its work; without a rule when the whole policy could not.
pub fn failed(
    component: Component,
    policy: &Reference,
    rule: Option<&str>,
    object: Option<Reference>,
    why: &str,
) -> Event {
    let rule = rule.map(|rule| format!("/{rule}")).unwrap_or_default();
    Event {
        regarding: policy.clone(),
        related: object,
        reason: Reason::Error,
        action: Action::None,
        component,
        note: format!("policy {}{rule} error: {why}", policy.place()).into(),
    }
}

/// A cleanup policy deleted an object, or could not.
pub fn cleaned_up(policy: &Reference, target: &Reference, outcome: Result<(), &str>) -> Event {
    let place = format!("{}/{}", target.kind, target.place());
    let (reason, note) = match outcome {
        Ok(()) => (Reason::Applied, format!("successfully cleaned up the target resource {place}")),
        Err(why) => (Reason::Error, format!("failed to clean up the target resource {place}: {why}")),
    };
    Event {
        regarding: policy.clone(),
        related: Some(target.clone()),
        reason,
        action: Action::CleanedUp,
        component: Component::Cleanup,
        note: note.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(kind: &str, namespace: &str, name: &str) -> Reference {
        Reference { kind: kind.into(), namespace: namespace.into(), name: name.into(), ..Reference::default() }
    }

    fn result(rule: &'static str, kind: RuleKind, verdict: Verdict) -> RuleResult<'static> {
        RuleResult { rule, kind, verdict, message: "no good", exceptions: &[] }
    }

    fn told(results: &[RuleResult<'_>], admitted: Admitted) -> String {
        let events = judged(
            Component::Admission,
            &reference("ClusterPolicy", "", "p"),
            &reference("Pod", "a", "b"),
            results,
            admitted,
        );
        let line = |e: &Event| {
            let (kind, reason, action) = (&e.regarding.kind, e.reason.as_str(), e.action.as_str());
            format!("{kind} {reason} {action}: {}", e.note)
        };
        events.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn violations_are_told_of_the_policy_and_of_what_went_through() {
        let results = [result("r", RuleKind::Validate, Verdict::Fail), result("s", RuleKind::Validate, Verdict::Pass)];
        insta::assert_snapshot!(told(&results, Admitted::No), @"ClusterPolicy PolicyViolation Resource Blocked: Pod a/b: [r] fail (blocked); no good");
        insta::assert_snapshot!(told(&results, Admitted::Yes), @"
        ClusterPolicy PolicyViolation Resource Passed: Pod a/b: [r] fail; no good
        Pod PolicyViolation Resource Passed: policy p/r fail: no good
        ");
    }

    #[test]
    fn passing_is_told_once_for_a_policy() {
        let results = [
            result("r", RuleKind::Validate, Verdict::Pass),
            result("s", RuleKind::Validate, Verdict::Pass),
            result("t", RuleKind::Validate, Verdict::Skip),
        ];
        insta::assert_snapshot!(told(&results, Admitted::Yes), @"ClusterPolicy PolicyApplied Resource Passed: Pod a/b: pass");
        let mutated = [result("r", RuleKind::Mutate, Verdict::Pass)];
        insta::assert_snapshot!(told(&mutated, Admitted::Yes), @"ClusterPolicy PolicyApplied Resource Mutated: Pod a/b is successfully mutated");
        assert_eq!(told(&[result("t", RuleKind::Validate, Verdict::Skip)], Admitted::Yes), "");
    }

    #[test]
    fn errors_and_exceptions_name_the_rule() {
        let keys = [Str::new("x/y")];
        let results = [
            result("r", RuleKind::Validate, Verdict::Error),
            RuleResult { exceptions: &keys, ..result("s", RuleKind::Validate, Verdict::Skip) },
        ];
        insta::assert_snapshot!(told(&results, Admitted::Yes), @"
        ClusterPolicy PolicyError Resource Passed: policy p/r error: no good
        PolicyException PolicySkipped Resource Passed: resource Pod/a/b was skipped from policy rule p/s
        ClusterPolicy PolicySkipped Resource Passed: Pod a/b was skipped from rule s due to policy exceptions x/y
        ");
    }
}
