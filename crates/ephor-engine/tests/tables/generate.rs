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

#[test]
fn a_copy_is_never_made_where_no_namespace_is_named() {
    let said = |what: &str| {
        let rule = format!("{{generate: {{namespace: \"{{{{ request.object.spec.to }}}}\", {what}}}}}");
        Trial::new(&[policy_of_rule(&value(&rule))], review(&value("{spec: {to: ''}}"))).run().lines()
    };
    let refused = ["r error cannot clone: the target has no namespace, and the source has one"];
    assert_eq!(said("cloneList: {namespace: a, kinds: [v1/Secret]}"), refused);
    assert_eq!(said("apiVersion: v1, kind: Secret, name: s, clone: {name: s, namespace: a}"), refused);
}

#[test]
fn generated_data_is_a_map() {
    let rule =
        "{generate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: a, data: '{{ request.object.spec.d }}'}}";
    let said = |object: &str| Trial::new(&[policy_of_rule(&value(rule))], review(&value(object))).run().lines();
    assert_eq!(said("{spec: {d: [1]}}"), ["r error generate data is not a map but array"]);
    assert_eq!(said("{spec: {d: {data: {a: b}}}}"), ["r pass resource generated"]);
}
