//! Conditions, variables and context entries.

use super::check_rules;

#[test]
fn conditions_are_complete_and_their_operators_exist() {
    let rule = |condition: &str| format!("{{validate: {{deny: {{conditions: {{any: [{condition}]}}}}}}}}");
    let at = |line: &str| line.replace('.', "/validate/deny/conditions/any/0");
    for (condition, want) in [
        ("{key: a, operator: Equals, value: b}", vec![]),
        ("{key: '', operator: Equals, value: []}", vec![]),
        ("{operator: Equals, value: b}", vec!["E condition ."]),
        ("{key: null, operator: Equals, value: b}", vec!["E condition ."]),
        ("{key: a, operator: Equals}", vec!["E condition ."]),
        ("{key: a, value: b}", vec!["E condition ."]),
        ("{key: a, operator: equals, value: b}", vec!["E condition ./operator"]),
        ("{key: '{{ request.operation }}', operator: Equals, value: CREATE}", vec![]),
        ("{key: '{{request.operation}}', operator: AnyIn, value: [CREATE, '{{ request.object.x }}']}", vec![]),
        ("{key: '{{ request.operation }}', operator: Equals, value: Create}", vec!["E request-operation ./value"]),
        ("{key: '{{ request.operation }}', operator: AnyIn, value: [CREATE, 5]}", vec!["E request-operation ./value"]),
        ("{key: a, operator: AnyNotIn, value: '{{ request.object.spec.l[].x }}'}", vec!["W null-value ./value"]),
        ("{key: a, operator: AnyNotIn, value: '{{ request.object.spec.l[].x || `[]` }}'}", vec![]),
        ("{key: a, operator: AnyIn, value: '{{ request.object.spec.l[].x }}'}", vec![]),
        ("{key: a, operator: AnyNotIn, value: '{{ request.object.spec.x }}'}", vec![]),
    ] {
        let want: Vec<String> = want.iter().map(|line| at(line)).collect();
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        check_rules(&[(&rule(condition), &want)]);
    }
    check_rules(&[
        (
            "{preconditions: [{key: a, operator: Nope, value: b}], validate: {deny: {}}}",
            &["E condition /preconditions/0/operator"],
        ),
        (
            "{validate: {foreach: [{list: request.object.l, preconditions: {all: [{key: a, operator: Nope, value: b}]}, deny: {}}]}}",
            &["E condition /validate/foreach/0/preconditions/all/0/operator"],
        ),
    ]);
}

#[test]
fn variables_are_defined_where_they_are_used() {
    let message = |text: &str| format!("{{validate: {{message: '{text}', deny: {{}}}}}}");
    let (undefined, noted) = ("E undefined-variable /validate/message", "W undefined-variable /validate/message");
    check_rules(&[
        (&message("{{ request.object.a }} {{ serviceAccountName }} {{ images.containers }} {{ @ }}"), &[]),
        (&message("{{ random(`\"[a-z]\"`) }}"), &[]),
        (&message("{{ foo }}"), &[undefined]),
        (&message("{{ request.objct.a || `1` }}"), &[noted]),
        (&message("{{ request.\"userinfo\".username || `1` }}"), &[noted]),
        (&message("{{ request.[object, objct] }}"), &[noted]),
        (&message("{{ request.{a: object, b: objct} }}"), &[noted]),
        (&message("{{ request | objct }}"), &[noted]),
        (&message("{{ request.kind.knd }}"), &[noted]),
        (&message("{{ request.userInfo.{a: usernme} || `1` }}"), &[noted]),
        (&message("{{ request.userInfo.extra.x.y || request.[kind.kind, resource.resource] }}"), &[]),
        (&message("{{ request.object.[objct, kind] || items(request.object.metadata, `\"k\"`, `\"knd\"`) }}"), &[]),
        (
            "{context: [{name: c, variable: {jmesPath: request.objct}}], validate: {message: '{{ c }}', deny: {}}}",
            &["W undefined-variable /context/0/variable/jmesPath"],
        ),
        (&message("{{ request.object.objct || request.requestKind || request.uid }}"), &[]),
        (&message("{{ foo.bar || `1` }}"), &[undefined]),
        (&message("{{ request.object.a || foo }}"), &[noted]),
        (&message("{{ to_string(foo) }}"), &[noted]),
        (&message("{{ element.a }}"), &["E element-outside-foreach /validate/message"]),
        (&message("{{ target.a }}"), &["E target-outside-targets /validate/message"]),
        (&message("{{ request.object.[ }}"), &["E invalid-expression /validate/message"]),
        (&message("{{ nope(request.object) }}"), &["E invalid-expression /validate/message"]),
        ("{context: [{name: foo, variable: {value: a}}], validate: {message: '{{ foo }}', deny: {}}}", &[]),
        (
            "{validate: {foreach: [{list: request.object.l, context: [{name: foo, variable: {value: '{{ element }}'}}], \
             deny: {conditions: {all: [{key: '{{ foo }}{{ elementIndex }}{{ element0.a }}', operator: Equals, value: a}]}}}]}}",
            &[],
        ),
        (
            "{validate: {foreach: [{list: '{{ request.object.l }}', deny: {}}]}}",
            &["E invalid-expression /validate/foreach/0/list"],
        ),
        (
            "{mutate: {targets: [{apiVersion: v1, kind: Secret, context: [{name: c, variable: {value: '{{ target.data }}'}}], \
             preconditions: {all: [{key: '{{ target.a }}', operator: Equals, value: b}]}}], patchStrategicMerge: {data: {a: '{{ target.b }}'}}}}",
            &[],
        ),
        (
            "{preconditions: {all: [{key: '{{ target.a }}', operator: Equals, value: b}]}, \
             mutate: {targets: [{apiVersion: v1, kind: Secret, name: '{{ target.a }}'}], patchStrategicMerge: {data: {a: b}}}}",
            &["E target-outside-targets /mutate/targets/0/name", "E target-outside-targets /preconditions/all/0/key"],
        ),
    ]);
}

#[test]
fn context_entries_have_a_name_and_one_source() {
    let rule = |entry: &str| format!("{{context: [{entry}], validate: {{deny: {{}}}}}}");
    let entry = "E context-entry /context/0";
    check_rules(&[
        (&rule("{name: a, variable: {value: b}}"), &[]),
        (&rule("{variable: {value: b}}"), &[entry]),
        (&rule("{name: a}"), &[entry]),
        (&rule("{name: a, variable: {value: b}, configMap: {name: c, namespace: d}}"), &[entry]),
        (&rule("{name: a, variable: {}}"), &["E variable /context/0/variable"]),
        (&rule("{name: a, variable: {value: b, default: c}}"), &["E variable /context/0/variable/default"]),
        (&rule("{name: a, variable: {jmesPath: 'a['}}"), &["E invalid-expression /context/0/variable/jmesPath"]),
        (&rule("{name: images, variable: {value: b}}"), &["E reserved-name /context/0/name"]),
        (&rule("{name: request.x, variable: {value: b}}"), &["E reserved-name /context/0/name"]),
        (&rule("{name: requests, variable: {value: b}}"), &[]),
        (&rule("{name: a, configMap: {name: c}}"), &["E config-map /context/0/configMap"]),
        (
            &rule("{name: a, apiCall: {urlPath: /api, service: {url: 'http://x'}}}"),
            &["E context-entry /context/0/apiCall"],
        ),
        (&rule("{name: a, apiCall: {jmesPath: a}}"), &["E context-entry /context/0/apiCall"]),
    ]);
}

#[test]
fn lists_of_loops_read_names_that_exist() {
    let list = |list: &str| format!("{{validate: {{foreach: [{{list: {list}, pattern: {{list: nothing}}}}]}}}}");
    for (expression, want) in [
        ("request.object.spec.containers", [].as_slice()),
        ("request.objct.spec.containers", &["W undefined-variable /validate/foreach/0/list"]),
        ("requst.object.spec.containers", &["E undefined-variable /validate/foreach/0/list"]),
    ] {
        check_rules(&[(&list(expression), want)]);
    }
}
