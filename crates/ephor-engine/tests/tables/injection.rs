//! Hostile data: what the writer of an object puts into it stays data, wherever a policy uses it.

use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::Value;

use crate::support::{Ran, Trial, policy_of_rule, review, value};

/// What no row may show.
const SECRET: &str = "TOP";

/// The data of an object that says `x`.
fn hostile(x: &Value) -> Value {
    let mut object =
        value(r#"data: {k: v, a.b: dotted, list: [zero, one], "it's": quoted, "{{ secret.token }}": braces}"#);
    object.as_object_mut().unwrap().entry("data").as_object_mut().unwrap().insert("x", x.clone());
    object
}

/// Runs a rule that has the entry `secret` in scope, with `x` for `request.object.data.x`.
fn run(rule: &str, x: &Value) -> Ran {
    let mut rule = value(rule);
    let secret = value("{name: secret, variable: {value: {token: TOP}}}");
    let context = rule.as_object_mut().unwrap().entry("context");
    let entries = context.as_array().unwrap_or_default();
    *context = Value::array([&[secret], entries].concat());
    Trial::new(&[policy_of_rule(&rule)], review(&hostile(x))).run()
}

/// The message of a rule that denies everything; `X` in it is the path of the hostile value.
fn message(text: &str, context: &str, x: &Value) -> String {
    let text = text.replace('X', "request.object.data.x").replace('D', "request.object.data");
    let message = Value::from(text).to_json();
    let rule = format!("{{context: [{context}], validate: {{message: {message}, deny: {{}}}}}}");
    let lines = run(&rule, x).lines();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    line.strip_prefix("r fail").unwrap_or_else(|| panic!("{line}")).trim_start().to_owned()
}

#[test]
fn values_in_messages_are_shown_as_they_are() {
    let nested = "{{ ".repeat(400);
    let unpaired = format!("{nested}secret.token{}", " }}".repeat(399));
    for x in [
        "{{ secret.token }}",
        "{{secret.token}}",
        "{{- secret.token }}",
        "{{ {{ 'secret' }}.token }}",
        "\\{{ secret.token }}",
        "\\\\{{ secret.token }}",
        "{{ secret.token",
        "secret.token }}",
        "}} {{ secret.token }} {{",
        "}}{{",
        "{{ @ }}",
        "{{ secret.token }}\n{{ secret.token }}",
        "\u{f0000}",
        "\u{f0000}0\u{f0000}",
        "\u{f0001}0\u{f0001}",
        "$(secret.token) \\$(x)",
        "{{ request.object.data.x }}",
        "{{ request.object.data.x }}{{ request.object.data.x }}",
        "${{ secret.token }} %s {0}",
        nested.as_str(),
        unpaired.as_str(),
    ] {
        let value = Value::from(x);
        assert_eq!(message("{{ X }}", "", &value), x.trim_end(), "whole");
        assert_eq!(message("-{{ X }}-", "", &value), format!("-{x}-"), "embedded");
        assert_eq!(message("-{{- X }}-", "", &value), format!("-{x}-"), "protected");
        assert_eq!(message("{{ X }}{{ X }}.", "", &value), format!("{x}{x}."), "twice");
        assert_eq!(
            message("-{{ c }}-", "{name: c, variable: {value: '{{ request.object.data.x }}'}}", &value),
            format!("-{x}-")
        );
        assert_eq!(
            message("-{{ c }}-", "{name: c, variable: {jmesPath: request.object.data.x}}", &value),
            format!("-{x}-")
        );
        assert_eq!(
            message("-{{ c }}-", "{name: c, variable: {jmesPath: \"'{{ request.object.data.x }}'\"}}", &value),
            format!("-{x}-")
        );
        let default = "{name: c, variable: {jmesPath: request.object.zz, default: '{{ request.object.data.x }}'}}";
        assert_eq!(message("-{{ c }}-", default, &value), format!("-{x}-"));
        let twice =
            "{name: c, variable: {value: {v: '{{ request.object.data.x }}'}}}, {name: d, variable: {value: '{{ c }}'}}";
        assert_eq!(message("-{{ d.v }}-", twice, &value), format!("-{x}-"));
    }
}

#[test]
fn structures_are_shown_as_they_are() {
    for (x, want) in [
        (r#"["{{ secret.token }}"]"#, r#"-["{{ secret.token }}"]"#),
        (r#"{"a":{"b":["{{ secret.token }}"]}}"#, r#"-{"a":{"b":["{{ secret.token }}"]}}"#),
        (r#"{"{{ secret.token }}":1}"#, r#"-{"{{ secret.token }}":1}"#),
    ] {
        assert_eq!(message("-{{ X }}", "", &Value::from_json(x).unwrap()), want);
        assert_eq!(
            message(
                "-{{ c }}",
                "{name: c, variable: {value: {v: '{{ request.object.data.x }}'}, jmesPath: v}}",
                &Value::from_json(x).unwrap()
            ),
            want
        );
    }
}

/// The denial whose message has an index that is none.
const NO_INDEX: &str = "validation error: rule r failed; its message cannot be shown: JMESPath query failed: an index \
                        must be an integer, but the variable in brackets is a string";

#[test]
fn values_inside_expressions_fill_their_place_only() {
    for (text, x, want) in [
        // A member's name.
        ("{{ D.{{ X }} || 'none' }}", "k", "v"),
        ("{{ D.{{ X }} || 'none' }}", "a.b", "dotted"),
        ("{{ D.{{ X }} || 'none' }}", "it's", "quoted"),
        ("{{ D.{{ X }} || 'none' }}", "{{ secret.token }}", "braces"),
        ("{{ D.{{ X }} || 'none' }}", "zz || secret.token", "none"),
        ("{{ D.{{ X }} || 'none' }}", "k }}{{ secret.token", "none"),
        ("{{ D.{{ X }} || 'none' }}", "k | [0] || secret.token", "none"),
        ("{{ D.{{ X }} || 'none' }}", "\"k\"", "none"),
        ("{{ D.{{ X }} || 'none' }}", "*", "none"),
        ("{{ D.{{ X }} || 'none' }}", "", "none"),
        ("{{ D | {{ X }} || 'none' }}", "k", "v"),
        ("{{ D | {{ X }} || 'none' }}", "k || secret.token", "none"),
        ("{{ [D][?{{ X }} == 'v'] | length(@) | to_string(@) }}", "k == 'v' || @", "0"),
        ("{{ D.\"{{ X }}\" || 'none' }}", "a.b", "dotted"),
        ("{{ D.\"{{ X }}\" || 'none' }}", "k\" || secret.token || \"k", "none"),
        ("{{ D.\"{{ X }}\" || 'none' }}", "\\u006b", "none"),
        ("{{ D.\"{{ X }}\" || 'none' }}", "k\\", "none"),
        ("{{ D.{{ X }}st[0] || 'none' }}", "li", "zero"),
        // A text.
        ("{{ to_upper('{{ X }}') }}", "') || secret.token || to_upper('", "') || SECRET.TOKEN || TO_UPPER('"),
        ("{{ to_upper('{{ X }}') }}", "\\' || secret.token || \\'", "\\' || SECRET.TOKEN || \\'"),
        ("{{ to_upper('{{ X }}') }}", "a'\n}}{{ b", "A'\n}}{{ B"),
        ("{{ to_upper('a{{ X }}c') }}", "\\", "A\\C"),
        ("{{ '{{ X }}' == 'v' || 'no' }}", "v' || 'v", "no"),
        ("{{ keys({v: `1`})[?@ == '{{ X }}'] | [0] || 'no' }}", "v' || @ == 'v", "no"),
        ("{{ to_upper('{{ to_lower('{{ X }}') }}') }}", "a') || secret.token || ('", "A') || SECRET.TOKEN || ('"),
        // JSON.
        ("{{ to_string(contains(`[\"a\", \"{{ X }}\"]`, 'b')) }}", "a\", \"b", "false"),
        ("{{ to_string(contains(`[\"a\", {{ X }}]`, 'b')) }}", "\"a\", \"b\"", "false"),
        ("{{ to_string(contains(`[\"a\", \"{{ X }}\"]`, 'b')) }}", "b", "true"),
        ("{{ to_string(`{{ X }}`) }}", "a` || secret.token || `b", "a` || secret.token || `b"),
        ("{{ to_string(`{\"a\": \"{{ X }}\"}`) }}", "b\", \"c\": \"d", r#"{"a":"b\", \"c\": \"d"}"#),
        ("{{ to_string(`{\"{{ X }}\": 1}`) }}", "b\": 2, \"c", r#"{"b\": 2, \"c":1}"#),
        ("{{ sum([`{{ X }}`, `1`]) | to_string(@) }}", "41", "42"),
        // An index.
        ("{{ D.list[{{ X }}] }}", "1", "one"),
        ("{{ D.list[{{ X }}] }}", "-1", "one"),
        ("-{{ D.list[{{ X }}] }}", "7", "-null"),
        ("{{ D.list[{{ X }}] }}", "0] || secret.token || D.list[0", NO_INDEX),
        ("{{ D.list[{{ X }}] }}", "*", NO_INDEX),
    ] {
        let got = message(text, "", &Value::from(x));
        assert_eq!(got, want, "{text} with {x}");
        assert!(!got.contains(SECRET));
    }
}

#[test]
fn values_that_would_be_expressions_are_refused_when_the_policy_is_loaded() {
    for text in [
        "{{ {{ request.object.data.x }} }}",
        "{{ {{ request.object.data.x }}.token }}",
        "{{ \"{{ request.object.data.x }}\".token }}",
        "{{ @.{{ request.object.data.x }} }}",
        "{{ length({{ request.object.data.x }}) }}",
        "{{ {{ request.object.data.x }}('a') }}",
        "{{ request.object.data.k == {{ request.object.data.x }} }}",
        "{{ request.object.data.list[{{ request.object.data.x }}:] }}",
        "{{ request.object.data.k {{ request.object.data.x }} }}",
    ] {
        let rule = value(&format!("validate: {{message: {}, deny: {{}}}}", Value::from(text).to_json()));
        let compiled = ephor_engine::compile::compile(&policy_of_rule(&rule));
        let found = crate::support::texts(&compiled.findings);
        assert!(
            compiled.program.is_none() && found.iter().any(|f| f.starts_with("invalid-expression")),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn deny_lists_see_what_is_stored() {
    let x = Value::from("{{ 'serve' || evil }}");
    let list = "{any: [{key: '{{ request.object.data.x }}', operator: AnyIn, value: ['serve']},
                       {key: 'a {{ request.object.data.x }}', operator: Equals, value: 'a serve'},
                       {key: ['{{ request.object.data.x }}'], operator: AnyIn, value: ['serve']}]}";
    assert_eq!(
        run(&format!("validate: {{deny: {{conditions: {list}}}}}"), &x).lines(),
        ["r pass validation rule 'r' passed."]
    );
    let listed = "{any: [{key: serve, operator: AnyIn, value: '{{ split(request.object.data.x, '','') }}'},
                         {key: serve, operator: AnyIn, value: ['{{ request.object.data.x }}', '-{{ request.object.data.x }}']}]}";
    assert_eq!(
        run(&format!("validate: {{deny: {{conditions: {listed}}}}}"), &x).lines(),
        ["r pass validation rule 'r' passed."]
    );
    // What a mutation writes is what conditions saw.
    let stored = |patch: &str| {
        run(&format!("mutate: {patch}"), &x).object.str_at(&["metadata", "labels", "mode"]).map(str::to_owned)
    };
    let merged = "{patchStrategicMerge: {metadata: {labels: {mode: '{{ request.object.data.x }}'}}}}";
    assert_eq!(stored(merged).unwrap(), "{{ 'serve' || evil }}");
    let prefixed = "{patchStrategicMerge: {metadata: {labels: {mode: 'x{{ request.object.data.x }}'}}}}";
    assert_eq!(stored(prefixed).unwrap(), "x{{ 'serve' || evil }}");
    let json = "{patchesJson6902: '[{op: add, path: /metadata/labels/mode, value: \"{{ request.object.data.x }}\"}]'}";
    assert_eq!(stored(json).unwrap(), "{{ 'serve' || evil }}");
    let plain =
        "{patchesJson6902: \"- op: add\\n  path: /metadata/labels/mode\\n  value: {{ request.object.data.x }}\"}";
    assert_eq!(stored(plain).unwrap(), "{{ 'serve' || evil }}");
    let looped = "{foreach: [{list: '[request.object.data.x]', patchStrategicMerge: {metadata: {labels: {mode: '-{{ element }}'}}}}]}";
    assert_eq!(stored(looped).unwrap(), "-{{ 'serve' || evil }}");
}

#[test]
fn values_in_json_patches_add_no_operations() {
    let after = |value: &str, x: &str| {
        let text = format!("- op: add\n  path: /metadata/labels\n  value: {value}\n");
        let rule = Value::from([("mutate", Value::from([("patchesJson6902", Value::from(text))]))]).to_json();
        let ran = run(&rule, &Value::from(x));
        assert_eq!(ran.object.at(&["data", "k"]), Some(&Value::from("v")), "{value} with {x}: {:?}", ran.lines());
        ran.object.at(&["metadata", "labels"]).map(Value::to_json).unwrap_or_default()
    };
    let evil = "a\n- op: replace\n  path: /data/k\n  value: gone";
    let text = Value::from(evil).to_json();
    let quote = "a\"\n- op: remove\n  path: /data/k\n- op: add\n  path: /z\n  value: \"b";
    let plain = "{{ request.object.data.x }}";
    for (value, x, want) in [
        (plain, evil, text.clone()),
        ("\"{{ request.object.data.x }}\"", quote, Value::from(quote).to_json()),
        ("'{{ request.object.data.x }}'", "a', b: 'c", Value::from("a', b: 'c").to_json()),
        ("{l: \"{{ request.object.data.x }}\"}", "a\", m: \"b", r#"{"l":"a\", m: \"b"}"#.to_owned()),
        ("{l: {{ request.object.data.x }}}", "a, m: b", r#"{"l":"a, m: b"}"#.to_owned()),
        ("{l: {{ request.object.data.x }}}", "a: b", r#"{"l":"a: b"}"#.to_owned()),
        ("{\"{{ request.object.data.x }}\": l}", "a\": b, \"c", r#"{"a\": b, \"c":"l"}"#.to_owned()),
        ("{l: {{ request.object.data.x }}}", "a # b", r#"{"l":"a # b"}"#.to_owned()),
        // A scalar without quotes is read as YAML reads one, as upstream does.
        ("{l: {{ request.object.data.x }}}", "12", r#"{"l":12}"#.to_owned()),
        ("{l: '{{ request.object.data.x }}'}", "12", r#"{"l":"12"}"#.to_owned()),
        ("{l: {{ request.object.data.x }}}", "true", r#"{"l":true}"#.to_owned()),
        (plain, r#"{"a": ["b"]}"#, r#"{"a":["b"]}"#.to_owned()),
        (
            plain,
            "{\"a\": 1}\n- op: remove\n  path: /data/k",
            Value::from("{\"a\": 1}\n- op: remove\n  path: /data/k").to_json(),
        ),
        ("{{ request.object.data.list }}", "", r#"["zero","one"]"#.to_owned()),
    ] {
        assert_eq!(after(value, x), want, "{value} with {x}");
    }
}

#[test]
fn values_in_paths_of_json_patches_add_no_steps() {
    let after = |path: &str, x: &str| {
        let text = format!("[{{op: add, path: {path}, value: new}}]");
        let list = "[request.object.data.x]";
        let entry = Value::from([("list", Value::from(list)), ("patchesJson6902", Value::from(text))]);
        let rule = Value::from([("mutate", Value::from([("foreach", Value::from(vec![entry]))]))]).to_json();
        let ran = run(&rule, &Value::from(x));
        (ran.lines().join("\n"), ran.object)
    };
    let x = "{{ element }}";
    for (path, x, at) in [
        (format!("\"/metadata/labels/{x}\""), "a/b", ["metadata", "labels", "a/b"]),
        (format!("/metadata/labels/{x}"), "a/b", ["metadata", "labels", "a/b"]),
        (format!("'/metadata/labels/{x}'"), "a~1b", ["metadata", "labels", "a/b"]),
        (format!("'/metadata/labels/x-{x}'"), "a/b", ["metadata", "labels", "x-a/b"]),
        (format!("'/metadata/{x}/k'"), "labels", ["metadata", "labels", "k"]),
        // The policy's author lets the object name the whole path.
        (format!("'{x}'"), "/metadata/labels/k", ["metadata", "labels", "k"]),
        (format!("'{x}/k'"), "/metadata/labels", ["metadata", "labels", "k"]),
    ] {
        let (lines, object) = after(&path, x);
        assert_eq!(object.str_at(&at), Some("new"), "{path} with {x}: {lines}");
    }
    for (path, x) in [
        (format!("'/metadata/{x}'"), "labels/k"),
        (format!("'/data/k{x}'"), "/../../metadata/labels/k"),
        (format!("'/{x}/k'"), "metadata/labels"),
    ] {
        let (lines, object) = after(&path, x);
        assert_eq!(object.at(&["metadata", "labels", "k"]), None, "{path} with {x}: {lines}");
    }
}

#[test]
fn wildcards_that_select_targets_come_from_the_policy_only() {
    for (selects, x, want) in [
        ("name: '{{ request.object.data.x }}', namespace: a", "*", "would count as a wildcard"),
        ("name: '{{ request.object.data.x }}', namespace: a", "c?", "would count as a wildcard"),
        ("name: '{{ request.object.data.x }}', namespace: a", "''", "which would select all"),
        ("name: 'c-{{ request.object.data.x }}', namespace: a", "'*'", "would count as a wildcard"),
        ("name: c, namespace: '{{ request.object.data.x }}'", "'*'", "would count as a wildcard"),
        ("name: c, namespace: '{{ request.object.data.x }}'", "''", "which would select all"),
        (
            "namespace: a, selector: {matchLabels: {app: '{{ request.object.data.x }}'}}",
            "'*'",
            "would count as a wildcard",
        ),
        (
            "namespace: a, selector: {matchLabels: {'{{ request.object.data.x }}': b}}",
            "'*'",
            "would count as a wildcard",
        ),
        (
            "namespace: a, selector: '{{ request.object.data.x }}'",
            "{matchLabels: {app: '*'}}",
            "would count as a wildcard",
        ),
    ] {
        let patch = "patchStrategicMerge: {metadata: {labels: {a: b}}}";
        let rule = format!("{{mutate: {{targets: [{{apiVersion: v1, kind: ConfigMap, {selects}}}], {patch}}}}}");
        let ran = run(&rule, &value(if x == "*" { "'*'" } else { x }));
        assert!(ran.asked.is_empty(), "{selects} with {x} asks for {:?}", ran.asked);
        assert!(ran.lines().join("\n").contains(want), "{selects} with {x}: {:?}", ran.lines());
    }
}

#[test]
fn wildcards_of_a_value_from_the_object_are_no_pattern() {
    let x = "{{ request.object.data.x }}";
    for (value_text, given, denied) in [
        (format!("'{x}'"), "'*'", true),
        (format!("'{x}'"), "p?od", true),
        (format!("'{x}'"), "prod", false),
        (format!("['{x}', dev]"), "'*'", true),
        // The policy's own wildcards, here and in context entries, are meant.
        (format!("'{x}*'"), "pr", false),
        ("'{{ request.object.data.none || ''pr*'' }}'".to_owned(), "a", false),
        ("'{{ allowed }}'".to_owned(), "a", false),
    ] {
        for operator in ["NotEquals", "AnyNotIn"] {
            if operator == "NotEquals" && value_text.starts_with('[') {
                continue;
            }
            let rule = format!(
                "{{context: [{{name: allowed, variable: {{value: 'p*'}}}}], validate: {{message: nope, deny: {{conditions: {{any: \
                 [{{key: prod, operator: {operator}, value: {value_text}}}]}}}}}}}}"
            );
            let lines = run(&rule, &value(given)).lines().join("\n");
            assert_eq!(lines.contains("fail"), denied, "{operator} {value_text} with {given}: {lines}");
        }
    }
}

#[test]
fn wildcards_of_a_value_that_comes_from_the_object_by_way_of_a_name_are_no_pattern() {
    let condition = |value: &str| format!("{{any: [{{key: prod, operator: NotEquals, value: '{value}'}}]}}");
    let context = |definition: &str, value: &str| {
        let deny = condition(value);
        format!("{{context: [{definition}], validate: {{message: nope, deny: {{conditions: {deny}}}}}}}")
    };
    let looped = |list: &str, value: &str| {
        let deny = condition(value);
        format!("{{validate: {{message: nope, foreach: [{{list: \"{list}\", deny: {{conditions: {deny}}}}}]}}}}")
    };
    let x = "request.object.data.x";
    for (rule, given, denied) in [
        (context(&format!("{{name: v, variable: {{jmesPath: {x}}}}}"), "{{ v }}"), "'*'", true),
        (context(&format!("{{name: v, variable: {{jmesPath: {x}}}}}"), "{{ v }}"), "prod", false),
        (context(&format!("{{name: v, variable: {{value: '{{{{ {x} }}}}'}}}}"), "{{ v }}"), "'*'", true),
        (
            context(&format!("{{name: v, variable: {{value: {{a: '{{{{ {x} }}}}'}}, jmesPath: a}}}}"), "{{ v }}"),
            "'*'",
            true,
        ),
        (
            context(
                &format!("{{name: v, variable: {{jmesPath: {x}}}}}, {{name: w, variable: {{jmesPath: v}}}}"),
                "{{ w }}",
            ),
            "'*'",
            true,
        ),
        // A wildcard that the policy writes stays one, also where the object gives the rest.
        (context(&format!("{{name: v, variable: {{value: '{{{{ {x} }}}}*'}}}}"), "{{ v }}"), "pr", false),
        (context(&format!("{{name: v, variable: {{jmesPath: {x}, default: '*'}}}}"), "{{ v }}"), "'p*'", false),
        (context("{name: v, variable: {value: ['p*']}}", "{{ v[0] }}"), "a", false),
        (looped(&format!("[{x}]"), "{{ element }}"), "'*'", true),
        (looped(&format!("[{x}]"), "{{ element0 }}"), "prod", false),
        (looped("`[\\\"p*\\\"]`", "{{ element }}"), "a", false),
    ] {
        let lines = run(&rule, &value(given)).lines().join("\n");
        assert!(!lines.contains("error"), "{rule}: {lines}");
        assert_eq!(lines.contains("fail"), denied, "{rule} with {given}: {lines}");
    }
}

#[test]
fn anchors_come_from_the_policy_only() {
    let lines = |rule: &str, x: &str| run(rule, &value(x)).lines().join("\n");
    let refused = "comes from a variable and would count as an anchor or a directive";
    for (rule, x, want) in [
        // A pattern that asks for a key which is not there fails, whatever the key is called.
        ("validate: {pattern: {metadata: {'{{ request.object.data.x }}': '?*'}}}", "X(name)", refused),
        ("validate: {pattern: {metadata: {'{{ request.object.data.x }}': zz}}}", "=(zz)", refused),
        ("validate: {pattern: {metadata: {'({{ request.object.data.x }}': zz}}}", "zz)", refused),
        ("validate: {pattern: {metadata: {'({{ request.object.data.x }})': zz}}}", "name", "r skip "),
        ("validate: {pattern: {metadata: '{{ request.object.data.x }}'}}", "{(name): zz, labels: {a: b}}", refused),
        ("validate: {pattern: {metadata: '{{ request.object.data.x }}'}}", "{l: [{X(name): zz}]}", refused),
        ("validate: {anyPattern: [{metadata: '{{ request.object.data.x }}'}]}", "{<(name): zz}", refused),
        ("mutate: {patchStrategicMerge: {metadata: {labels: '{{ request.object.data.x }}'}}}", "{+(a): b}", refused),
        ("mutate: {patchStrategicMerge: {metadata: {labels: {'{{ request.object.data.x }}': b}}}}", "<(zz)", refused),
        ("mutate: {patchStrategicMerge: {metadata: {finalizers: ['{{ request.object.data.x }}', b]}}}", "(a)", refused),
        (
            "mutate: {patchStrategicMerge: {metadata: '{{ request.object.data.x }}'}}",
            "{labels: {$patch: delete}}",
            refused,
        ),
        (
            "mutate: {patchStrategicMerge: {metadata: {'{{ request.object.data.x }}': [a]}}}",
            "$setElementOrder/l",
            refused,
        ),
        ("mutate: {patchStrategicMerge: {metadata: {labels: {'+({{ request.object.data.x }})': b}}}}", "a", "r pass "),
        // Operators and wildcards of values count, as upstream: policies keep them in ConfigMaps.
        ("validate: {pattern: {metadata: {name: '{{ request.object.data.x }}'}}}", "p* | z", "r pass "),
        ("validate: {pattern: {metadata: {name: '{{ request.object.data.x }}'}}}", "'!p'", "r fail "),
        // References are resolved before variables and never in values.
        ("validate: {pattern: {metadata: {name: '{{ request.object.data.x }}'}}}", "$(./../../kind)", "r fail "),
        // A key of the policy cannot be replaced.
        (
            "mutate: {patchStrategicMerge: {metadata: {labels: {a: fixed, '{{ request.object.data.x }}': b}}}}",
            "a",
            "which the object has already",
        ),
    ] {
        let got = lines(rule, x);
        assert!(got.contains(want), "{rule} with {x}: {got}");
        assert!(want != refused || got.starts_with("r error "), "{got}");
    }
}

#[test]
fn questions_carry_values_as_they_are() {
    let x = "{{ secret.token }}";
    for (entry, want) in [
        (
            "configMap: {name: '{{ request.object.data.x }}', namespace: 'n-{{ request.object.data.x }}'}",
            Fetch::ConfigMap { namespace: "n-{{ secret.token }}".into(), name: x.into() },
        ),
        ("globalReference: {name: '{{ request.object.data.x }}'}", Fetch::Global { name: x.into() }),
    ] {
        let rule = format!(
            "{{context: [{{name: secret, variable: {{value: {{token: TOP}}}}}}, {{name: c, {entry}}}],
              validate: {{message: '{{{{ c.data.v }}}}', deny: {{}}}}}}"
        );
        let mut trial = Trial::new(&[policy_of_rule(&value(&rule))], review(&hostile(&Value::from(x))));
        trial.answers = vec![(want.clone(), Fact::Found(value("data: {v: '{{ secret.token }}'}")))];
        let ran = trial.run();
        assert_eq!(ran.asked, [want]);
        assert_eq!(ran.lines(), [format!("r fail {x}")]);
    }
}

#[test]
fn answers_are_data() {
    // The attack: an annotation names an entry that reads another namespace.
    let rule = "
        context:
        - {name: other, apiCall: {urlPath: /api/v1/namespaces/vault/secrets/tls}}
        - {name: own, apiCall: {urlPath: /api/v1/namespaces/a/configmaps, default: {note: '{{ request.object.metadata.name }}'}}}
        validate: {message: 'not {{ request.object.data.x }} {{ own.note }}', deny: {}}";
    let own = Fetch::Api {
        method: ephor_engine::policy::HttpMethod::Get,
        path: ephor_engine::gate::ApiPath::parse("/api/v1/namespaces/a/configmaps").unwrap(),
        body: None,
    };
    let ask = |fact: Fact| {
        let mut trial =
            Trial::new(&[policy_of_rule(&value(rule))], review(&hostile(&Value::from("{{ other.data.key }}"))));
        trial.answers = vec![(own.clone(), fact)];
        let ran = trial.run();
        assert_eq!(ran.asked, std::slice::from_ref(&own));
        ran.lines().join("\n")
    };
    assert_eq!(
        ask(Fact::Found(value("note: '{{ other.data.key }}'"))),
        "r fail not {{ other.data.key }} {{ other.data.key }}"
    );
    // The default is text of the policy.
    assert_eq!(ask(Fact::Failed("forbidden".into())), "r fail not {{ other.data.key }} p");
}

#[test]
fn expressions_are_text_of_the_policy() {
    let shown = |entries: &str, x: &str| message("{{ c }}", entries, &Value::from(x));
    let c = |path: &str| format!("{{name: c, variable: {{value: {{k: v, l: {{k: w}}}}, jmesPath: '{path}'}}}}");
    // A variable that the policy itself defines may be the expression.
    assert_eq!(shown(&format!("{{name: e, variable: {{value: l.k}}}}, {}", c("{{ e }}")), ""), "w");
    // One from data may not, but it may name a member.
    let unshown = |cause: &str| {
        format!("validation error: rule r failed; its message cannot be shown: failed to load context entry c: {cause}")
    };
    let foreign = "the jmesPath is the value of a variable; only text of the policy is an expression";
    assert_eq!(shown(&c("{{ request.object.data.x }}"), "k"), unshown(foreign));
    assert_eq!(shown(&c("l.{{ request.object.data.x }}"), "k"), "w");
    assert_eq!(shown(&c("\"{{ request.object.data.x }}\""), "k"), "v");
    let unknown = "JMESPath query failed: Unknown key \"l.k\" in path";
    assert_eq!(shown(&c("\"{{ request.object.data.x }}\""), "l.k"), unshown(unknown));
}
