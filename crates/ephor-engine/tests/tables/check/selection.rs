//! `match` and `exclude` blocks.

use super::{RULE, check_policies, check_rules};

#[test]
fn filters_are_not_empty_or_ambiguous() {
    let deny = "validate: {deny: {}}";
    let matching = |block: &str| format!("{{match: {block}, {deny}}}");
    check_rules(&[
        (&matching("{}"), &["E empty-match /match"]),
        (&matching("{any: []}"), &["E empty-match /match"]),
        (&matching("{resources: {kinds: [Pod]}}"), &[]),
        (
            &matching("{any: [{resources: {kinds: [Pod]}}], all: [{resources: {kinds: [Pod]}}]}"),
            &["E any-and-all /match"],
        ),
        (&matching("{any: [{resources: {kinds: [Pod]}}], resources: {kinds: [Pod]}}"), &["E mixed-filters /match"]),
        (&matching("{any: [{}]}"), &["E empty-filter /match/any/0", "E no-kinds /match/any/0"]),
        (&matching("{any: [{subjects: [{kind: User, name: a}]}]}"), &["E no-kinds /match/any/0"]),
        (
            &matching("{any: [{resources: {kinds: [Pod], name: a, names: [b]}}]}"),
            &["E name-and-names /match/any/0/resources/name"],
        ),
        (
            &matching("{any: [{resources: {kinds: [Pod], selector: {}}}]}"),
            &["E empty-selector /match/any/0/resources/selector"],
        ),
        (
            &matching("{any: [{resources: {kinds: [Pod], selector: {matchExpressions: [{key: a, operator: In}]}}}]}"),
            &["E invalid-selector /match/any/0/resources/selector/matchExpressions/0"],
        ),
        (
            &matching("{any: [{resources: {kinds: [Pod]}, subjects: [{kind: Foo, name: a}]}]}"),
            &["E subject-kind /match/any/0/subjects/0/kind"],
        ),
        (
            &matching(
                "{any: [{resources: {kinds: [Pod]}, subjects: [{kind: User}, {kind: ServiceAccount, name: a}]}]}",
            ),
            &["E subject-name /match/any/0/subjects/0", "E subject-namespace /match/any/0/subjects/1"],
        ),
        (&matching("{any: [{resources: {kinds: [Pod]}, roles: [admin]}]}"), &["E role-name /match/any/0/roles/0"]),
        (
            &matching("{any: [{resources: {kinds: [Pod], names: ['{{ request.name }}']}}]}"),
            &["E variable-in-match /match/any/0/resources/names/0"],
        ),
        (&matching("{any: [{resources: {kinds: [Scale]}}]}"), &["E subresource-kind /match/any/0/resources/kinds/0"]),
        (&matching("{any: [{resources: {kinds: [ex.io/v1/Scale]}}]}"), &[]),
        (
            "{match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {kinds: [Pod]}}]}, validate: {deny: {}}}",
            &["E empty-match /exclude"],
        ),
        (
            "{exclude: {any: [{resources: {kinds: [Pod], namespaces: [a]}}, {subjects: [{kind: User, name: x}]}]}, validate: {deny: {}}}",
            &[],
        ),
    ]);
}

#[test]
fn fields_of_subresources_are_warned_of() {
    let rule = |kinds: &str, pattern: &str| {
        format!("{{match: {{any: [{{resources: {{kinds: [{kinds}]}}}}]}}, validate: {{pattern: {pattern}}}}}")
    };
    let warned = "W unmatched-subresource /match";
    check_rules(&[
        (&rule("Deployment", "{spec: {replicas: '>1'}}"), &[warned]),
        (&rule("Deployment", "{=(spec): {(replicas): '>1'}}"), &[warned]),
        (&rule("Deployment, Deployment/scale", "{spec: {replicas: '>1'}}"), &[]),
        (&rule("Thing", "{spec: {replicas: '>1'}}"), &[]),
        (&rule("Thing", "{status: {phase: a}}"), &[warned]),
        (&rule("Thing/status", "{status: {phase: a}}"), &[]),
    ]);
}

#[test]
fn the_kind_of_everything_is_for_metadata() {
    let rule = |body: &str| format!("{{match: {{any: [{{resources: {{kinds: ['*']}}}}]}}, {body}}}");
    let bad = "E any-kind /match/any/0/resources/kinds";
    check_rules(&[
        (&rule("validate: {pattern: {metadata: {labels: {a: '?*'}}}}"), &[]),
        (&rule("validate: {pattern: {spec: {a: '?*'}}}"), &[bad]),
        (&rule("validate: {anyPattern: [{metadata: {name: a}}, {spec: {a: '?*'}}]}"), &[bad]),
        (&rule("validate: {deny: {}}"), &[]),
        (&rule("validate: {foreach: [{list: request.object.l, deny: {}}]}"), &[bad]),
        (&rule("mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"), &[]),
        (&rule("mutate: {patchStrategicMerge: {spec: {a: b}}}"), &[bad]),
        (&rule("mutate: {patchesJson6902: '[{op: remove, path: /spec/a}]'}"), &[]),
        (&rule("generate: {apiVersion: v1, kind: Secret, name: a, namespace: b, data: {}}"), &[bad]),
        ("{match: {any: [{resources: {kinds: ['*', Pod]}}]}, validate: {deny: {}}}", &[bad]),
    ]);
    check_policies(&[(
        "{spec: {background: true, rules: [{match: {any: [{resources: {kinds: ['*']}}]}, validate: {deny: {}}}]}}",
        &["E any-kind /spec/rules/0/match/any/0/resources/kinds"],
    )]);
}

#[test]
fn scans_know_no_user_and_no_subresource() {
    let policy = |rule: &str| format!("{{spec: {{background: true, rules: [{rule}]}}}}");
    let kinds = |kind: &str| policy(&format!("{{match: {{any: [{{resources: {{kinds: ['{kind}']}}}}]}}, {RULE}}}"));
    let at_kind = "/spec/rules/0/match/any/0/resources/kinds/0";
    let refused = format!("E background-subresource {at_kind}");
    let warned = format!("W background-subresource {at_kind}");
    let message = |text: &str| policy(&format!("{{validate: {{message: '{text}', deny: {{}}}}}}"));
    let user = "E user-in-background /spec/rules/0/validate/message";
    check_policies(&[
        (&kinds("Pod"), &[]),
        (&kinds("Pod/exec"), &[&refused]),
        (&kinds("Pod/*"), &[&refused]),
        (&kinds("*/*"), &[&refused]),
        (&kinds("*/status"), &[&refused]),
        (&kinds("ex.io/v1/Thing/status"), &[&warned]),
        (&message("{{ request.object.metadata.name }} {{ request.operation }} {{ request.namespace }}"), &[]),
        (&message("{{ serviceAccountName }}"), &[user]),
        (&message("{{ request.userInfo.username }}"), &[user]),
        (&message("{{ request.roles }}"), &[user]),
        (&message("{{ request.clusterRoles }}"), &[user]),
        (&message("{{ request.\"userInfo\".username }}"), &[user]),
        (&message("{{ \"request\".\"roles\" }}"), &[user]),
        (&message("{{ request | userInfo.username }}"), &[user]),
        (&message("{{ request.[clusterRoles, roles] }}"), &[user]),
        (&message("{{ to_string(request.userInfo) || `1` }}"), &[user]),
        (&message("{{ request.object.userInfo }} {{ request.object.request.roles }} {{ request.name }}"), &[]),
        (
            &policy(
                "{context: [{name: who, variable: {jmesPath: request.userInfo.username}}], validate: {message: m, deny: {}}}",
            ),
            &["E user-in-background /spec/rules/0/context/0/variable/jmesPath"],
        ),
        (
            &policy(
                "{context: [{name: who, variable: {value: {request: {roles: [a]}}, jmesPath: request.roles}}], validate: {message: m, deny: {}}}",
            ),
            &[],
        ),
        (
            &policy("{validate: {message: m, foreach: [{list: request.roles, deny: {}}]}}"),
            &["E user-in-background /spec/rules/0/validate/foreach/0/list"],
        ),
        (
            &policy(&format!(
                "{{match: {{any: [{{resources: {{kinds: [Pod]}}, subjects: [{{kind: User, name: a}}]}}]}}, {RULE}}}"
            )),
            &["E user-in-background /spec/rules/0/match/any/0/subjects"],
        ),
        (
            &policy(&format!("{{exclude: {{any: [{{clusterRoles: [a]}}]}}, {RULE}}}")),
            &["E user-in-background /spec/rules/0/exclude/any/0/clusterRoles"],
        ),
        // A rule with targets lifts the ban on variables.
        (
            &policy(
                "{mutate: {targets: [{apiVersion: v1, kind: Secret}], patchStrategicMerge: {data: {a: '{{ serviceAccountName }}'}}}}",
            ),
            &[],
        ),
    ]);
}

#[test]
fn the_user_is_not_read_through_a_variable_that_holds_the_request() {
    let policy = |rule: &str| format!("{{spec: {{background: true, rules: [{rule}]}}}}");
    let rule = |context: &str, expression: &str| {
        policy(&format!("{{context: [{context}], validate: {{message: '{{{{ {expression} }}}}', deny: {{}}}}}}"))
    };
    let q = "{name: q, variable: {jmesPath: request}}";
    let user = ["E user-in-background /spec/rules/0/validate/message"];
    let refused = [
        (q, "q.userInfo.username"),
        (q, "q.[name, userInfo]"),
        (q, "values(q)"),
        (q, "q"),
        ("{name: p, variable: {jmesPath: q}}, {name: q, variable: {jmesPath: request || request}}", "p.roles"),
        ("{name: d.q, variable: {jmesPath: request}}", "d.q.userInfo"),
        ("{name: d.q, variable: {jmesPath: request}}", "to_string(d)"),
        ("", "values(request)"),
        ("", "request.*"),
        ("", "request.[userInfo]"),
        ("", "merge(request, request).userInfo"),
        ("", "to_string(request)"),
        ("", "request"),
        ("{name: x, variable: {value: roles}}", "request.{{ x }}"),
        ("{name: x, variable: {value: roles}}", "request.\"{{ x }}\""),
        ("{name: x, variable: {value: roles}}", "to_string(request.[name, {{ x }}])"),
        ("{name: x, variable: {value: roles}}", "request.object.{{ request.{{ x }}[0] }}"),
        (q, "q.{{ request.name }}"),
    ];
    for (context, expression) in refused {
        check_policies(&[(&rule(context, expression), &user)]);
    }
    for (context, expression) in [
        (q, "q.object.metadata.name"),
        (q, "q.object.userInfo"),
        (q, "q | object.spec"),
        ("{name: o, variable: {jmesPath: request.object}}", "to_string(o)"),
        ("{name: d.q, variable: {jmesPath: request}}", "d.q.object"),
        ("{name: q, variable: {value: {userInfo: a}, jmesPath: userInfo}}", "q"),
        ("", "request.object.metadata.labels.{{ request.name }}"),
        ("", "request.object.metadata.annotations.\"{{ request.name }}/roles\""),
    ] {
        check_policies(&[(&rule(context, expression), &[])]);
    }
    check_policies(&[
        (
            &policy("{validate: {message: m, foreach: [{list: 'request.*', deny: {}}]}}"),
            &["E user-in-background /spec/rules/0/validate/foreach/0/list"],
        ),
        (
            &policy(
                "{context: [{name: q, variable: {jmesPath: 'values(request)'}}], validate: {message: m, deny: {}}}",
            ),
            &["E user-in-background /spec/rules/0/context/0/variable/jmesPath"],
        ),
        (
            &policy(
                "{context: [{name: q, variable: {jmesPath: 'request.{{ request.name }}'}}], validate: {message: m, deny: {}}}",
            ),
            &["E user-in-background /spec/rules/0/context/0/variable/jmesPath"],
        ),
    ]);
}
