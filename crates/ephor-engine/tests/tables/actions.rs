//! What a violation does, by rule, policy and namespace.

use ephor_engine::compile::Body;
use ephor_engine::policy::FailureAction::{self, Audit, Enforce};
use ephor_expr::Map;

use crate::support::{policy, set, value};

/// The action in a namespace whose labels are `e: p`, and whether any namespace can get Enforce.
fn action(spec: &str, rule: &str, namespace: &str) -> (FailureAction, bool) {
    let document = policy(&value(&format!("{{spec: {{{spec} rules: [{{validate: {{{rule} deny: {{}}}}}}]}}}}")));
    let set = set(&[document]);
    let Body::Validate(body) = &set.programs()[0].rules[0].body else { panic!("no validate rule") };
    let labels: Map = [("e".into(), "p".into())].into_iter().collect();
    (body.actions.action(namespace, Some(&labels)), body.actions.may_enforce())
}

#[test]
fn the_most_specific_word_decides() {
    let spec_override = "validationFailureActionOverrides: [{action: Enforce, namespaces: [a]}],";
    for (spec, rule, namespace, want) in [
        ("", "", "a", (Audit, false)),
        ("validationFailureAction: Enforce,", "", "a", (Enforce, true)),
        ("validationFailureAction: Enforce,", "failureAction: Audit,", "a", (Audit, false)),
        ("", "failureAction: Enforce,", "a", (Enforce, true)),
        (spec_override, "", "a", (Enforce, true)),
        (spec_override, "", "b", (Audit, true)),
        // The rule's own action beats the policy's override.
        (spec_override, "failureAction: Audit,", "a", (Audit, true)),
        (
            "",
            "failureAction: Audit, failureActionOverrides: [{action: Enforce, namespaces: [a*]}],",
            "ab",
            (Enforce, true),
        ),
        ("", "failureAction: Enforce, failureActionOverrides: [{action: Audit, namespaces: [a]}],", "a", (Audit, true)),
        (
            "",
            "failureActionOverrides: [{action: Audit, namespaces: [a]}, {action: Enforce, namespaces: ['b']}],",
            "b",
            (Enforce, true),
        ),
        // Both filters of an override must hold.
        (
            "validationFailureActionOverrides: [{action: Enforce, namespaces: [a], namespaceSelector: {matchLabels: {e: q}}}],",
            "",
            "a",
            (Audit, true),
        ),
        (
            "validationFailureActionOverrides: [{action: Enforce, namespaces: [b], namespaceSelector: {matchLabels: {e: p}}}],",
            "",
            "a",
            (Audit, true),
        ),
        (
            "validationFailureActionOverrides: [{action: Enforce, namespaces: [a], namespaceSelector: {matchLabels: {e: p}}}],",
            "",
            "a",
            (Enforce, true),
        ),
        // `*` takes in what has no namespace.
        ("validationFailureActionOverrides: [{action: Enforce, namespaces: ['*']}],", "", "", (Enforce, true)),
    ] {
        assert_eq!(action(spec, rule, namespace), want, "{spec} {rule} in `{namespace}`");
    }
}
