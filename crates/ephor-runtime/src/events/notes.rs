//! The Events of each case. Their wording is that of upstream.
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

/// An object that a rule made or changed in the background.
#[derive(Debug, Clone, Copy)]
pub struct Generated<'g> {
    /// The policy.
    pub policy: &'g Reference,
    /// The rule.
    pub rule: &'g str,
    /// What it was made for, if that is known.
    pub trigger: Option<&'g Reference>,
    /// The object.
    pub object: &'g Reference,
}

impl Generated<'_> {
    fn event(&self, component: Component, regarding: &Reference, action: Action, note: String) -> Event {
        let related = (regarding != self.object).then(|| self.object.clone());
        Event { regarding: regarding.clone(), related, reason: Reason::Applied, action, component, note: note.into() }
    }

    /// The event on the trigger: upstream has none, so the words are ours.
    fn on_trigger(&self, component: Component, action: Action, verb: &str) -> Option<Event> {
        let trigger = self.trigger.filter(|trigger| *trigger != self.object)?;
        let (policy, rule, object) = (self.policy.place(), self.rule, self.object);
        let note = format!("policy {policy}/{rule} {verb} {} {}", object.kind, object.place());
        Some(self.event(component, trigger, action, note))
    }
}

/// A generate rule made an object.
pub fn generated(made: &Generated<'_>) -> Vec<Event> {
    let component = Component::Generate;
    let Reference { kind, name, .. } = made.object;
    let created = format!("Created {kind} {name} as a result of applying policy {}/{}", made.policy.place(), made.rule);
    let mut events = vec![
        made.event(component, made.policy, Action::Generated, "resource generated".to_owned()),
        made.event(component, made.object, Action::None, created),
    ];
    events.extend(made.on_trigger(component, Action::Generated, "generated"));
    events
}

/// What a generate rule made is wanted no more and was deleted. A policy that is gone is told nothing.
pub fn removed(made: &Generated<'_>, policy_exists: bool) -> Vec<Event> {
    let component = Component::Generate;
    let Reference { kind, .. } = made.object;
    let note = format!("resource deleted: {kind} {} of rule {}", made.object.place(), made.rule);
    let on_policy = policy_exists.then(|| made.event(component, made.policy, Action::CleanedUp, note));
    on_policy.into_iter().chain(made.on_trigger(component, Action::CleanedUp, "deleted")).collect()
}

/// A mutate-existing rule changed a target.
pub fn mutated_existing(made: &Generated<'_>) -> Vec<Event> {
    let component = Component::Mutate;
    let mutated = format!("mutated by policy {}/{}", made.policy.place(), made.rule);
    let mut events = vec![
        made.event(component, made.policy, Action::Mutated, "resource mutated".to_owned()),
        made.event(component, made.object, Action::None, mutated),
    ];
    events.extend(made.on_trigger(component, Action::Mutated, "mutated"));
    events
}

/// A policy could not do its work; without a rule when the whole policy could not. What it could not do it for is told
/// the same.
pub fn failed(
    component: Component,
    policy: &Reference,
    rule: Option<&str>,
    trigger: Option<Reference>,
    why: &str,
) -> Vec<Event> {
    let rule = rule.map(|rule| format!("/{rule}")).unwrap_or_default();
    let for_trigger = trigger.as_ref().map(|t| format!(" for {} {}", t.kind, t.place())).unwrap_or_default();
    let note = Str::from(format!("policy {}{rule} error{for_trigger}: {why}", policy.place()));
    let event = |regarding: &Reference, related: Option<Reference>| Event {
        regarding: regarding.clone(),
        related,
        reason: Reason::Error,
        action: Action::None,
        component,
        note: note.clone(),
    };
    let mut events = vec![event(policy, trigger.clone())];
    events.extend(trigger.map(|trigger| event(&trigger, None)));
    events
}

/// A cleanup policy deleted an object, or could not.
pub fn cleaned_up(policy: &Reference, target: &Reference, outcome: Result<(), &str>) -> Event {
    let place = format!("{}/{}", target.kind, target.place());
    let (reason, action, note) = match outcome {
        Ok(()) => (Reason::Applied, Action::CleanedUp, format!("successfully cleaned up the target resource {place}")),
        Err(why) => (Reason::Error, Action::None, format!("failed to clean up the target resource {place}: {why}")),
    };
    Event {
        regarding: policy.clone(),
        related: Some(target.clone()),
        reason,
        action,
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

    #[test]
    fn what_is_made_is_told_of_policy_object_and_trigger() {
        let (policy, trigger) = (reference("ClusterPolicy", "", "p"), reference("Namespace", "", "team"));
        let object = reference("Role", "team", "admin");
        let made = Generated { policy: &policy, rule: "r", trigger: Some(&trigger), object: &object };
        let lines = |events: &[Event]| {
            let line = |e: &Event| {
                let related = e.related.as_ref().map_or("-", |related| related.kind.as_str());
                format!("{} ({related}) {}: {}", e.regarding.kind, e.reason.as_str(), e.note)
            };
            events.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(lines(&generated(&made)), @"
        ClusterPolicy (Role) PolicyApplied: resource generated
        Role (-) PolicyApplied: Created Role admin as a result of applying policy p/r
        Namespace (Role) PolicyApplied: policy p/r generated Role team/admin
        ");
        insta::assert_snapshot!(lines(&removed(&made, true)), @"
        ClusterPolicy (Role) PolicyApplied: resource deleted: Role team/admin of rule r
        Namespace (Role) PolicyApplied: policy p/r deleted Role team/admin
        ");
        insta::assert_snapshot!(lines(&removed(&made, false)), @"Namespace (Role) PolicyApplied: policy p/r deleted Role team/admin");
        insta::assert_snapshot!(lines(&mutated_existing(&made)), @"
        ClusterPolicy (Role) PolicyApplied: resource mutated
        Role (-) PolicyApplied: mutated by policy p/r
        Namespace (Role) PolicyApplied: policy p/r mutated Role team/admin
        ");
        insta::assert_snapshot!(lines(&failed(Component::Generate, &policy, Some("r"), Some(trigger.clone()), "why")), @"
        ClusterPolicy (Namespace) PolicyError: policy p/r error for Namespace team: why
        Namespace (-) PolicyError: policy p/r error for Namespace team: why
        ");
        let itself = Generated { object: &trigger, ..made };
        assert_eq!(mutated_existing(&itself).len(), 2, "an object that is its own trigger is told of once");
    }
}
