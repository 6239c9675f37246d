//! What generate rules render.

use crate::support::{Trial, policy_of_rule, review, value};

/// The generated `ConfigMaps` as `name: data`.
fn generated(rule: &str, object: &str) -> Vec<String> {
    let ran = Trial::new(&[policy_of_rule(&value(rule))], review(&value(object))).run();
    let details = ran.outcomes.iter().filter_map(|outcome| outcome.detail.as_deref());
    details
        .flat_map(|detail| &detail.generated)
        .map(|made| {
            let name = made.object.str_at(&["metadata", "name"]).unwrap_or_default();
            format!("{name}: {}", made.object.get("data").map(ToString::to_string).unwrap_or_default())
        })
        .collect()
}

#[test]
fn of_elements_that_render_one_object_the_first_counts() {
    let target = "apiVersion: v1, kind: ConfigMap, namespace: a";
    let rule = |loops: &str| format!("{{generate: {{foreach: [{loops}]}}}}");
    let by_first_letter = format!(
        "{{list: request.object.spec.l, {target}, name: \"{{{{ truncate(element, `1`) }}}}\", data: {{data: {{e: '{{{{ element }}}}'}}}}}}"
    );
    let fixed = format!("{{list: request.object.spec.l, {target}, name: x, data: {{data: {{e: last}}}}}}");
    let object = "{spec: {l: [xa, ya, xb]}}";
    assert_eq!(generated(&rule(&by_first_letter), object), [r#"x: {"e":"xa"}"#, r#"y: {"e":"ya"}"#]);
    // Targets too.
    assert_eq!(
        generated(&rule(&format!("{by_first_letter}, {fixed}")), object),
        [r#"x: {"e":"xa"}"#, r#"y: {"e":"ya"}"#]
    );
}
