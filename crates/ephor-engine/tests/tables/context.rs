//! Variable entries of the context: values, defaults, and the order in which they are loaded.

use crate::support::run_rule;

/// What `shown` is with these entries, `✗` if it cannot be told.
fn shown(entries: &str, shown: &str) -> String {
    let entries: Vec<String> = entries
        .split("; ")
        .map(|entry| {
            let (name, variable) = entry.split_once(" = ").unwrap();
            format!("{{name: {name}, variable: {variable}}}")
        })
        .collect();
    let quoted = shown.replace('\'', "''");
    // The error of a message is swallowed, that of a condition is not.
    let rule = format!(
        "context: [{}]\nvalidate: {{deny: {{conditions: {{all: [{{key: 'x{quoted}', operator: NotEquals, value: zz, \
         message: '{quoted}'}}]}}}}}}",
        entries.join(", ")
    );
    let lines = run_rule(&rule, "{k: v, nul: null}");
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    match line.strip_prefix("r fail ") {
        Some(text) => text.to_owned(),
        None if line.starts_with("r error ") => "✗".to_owned(),
        None => panic!("{line}"),
    }
}

#[test]
fn variables_have_values_expressions_and_defaults() {
    let o = "request.object";
    for (entries, using, want) in [
        ("c = {value: {\"a\": \"q\"}, jmesPath: a}", "{{ c }}", "q"),
        ("c = {value: {\"a\": 1}, jmesPath: b, default: d}", "{{ c }}", "d"),
        ("c = {value: {\"a\": 1}, jmesPath: b | @, default: d}", "{{ c }}", "✗"),
        ("c = {value: {\"a\": 1}, jmesPath: request.object.k, default: d}", "{{ c }}", "d"),
        ("c = {jmesPath: request.object.k}", "{{ c }}", "v"),
        ("c = {jmesPath: request.object.zz, default: d}", "{{ c }}", "d"),
        ("c = {jmesPath: request.object.nul, default: d}", "{{ c }}", "d"),
        ("c = {jmesPath: request.object.nul}", "{{ c }}", "✗"),
        ("c = {jmesPath: to_upper(`1`), default: d}", "{{ c }}", "d"),
        ("c = {jmesPath: request.object.k, default: '{{ request.object.zz }}'}", "{{ c }}", "✗"),
        ("c = {jmesPath: request.object.zz, default: '{{ request.object.k }}'}", "{{ c }}", "v"),
        ("c = {jmesPath: '{{ request.object.metadata }}'}", "{{ c }}", "✗"),
        ("c = {value: '{{ request.object.nul }}'}", "{{ c }}", "✗"),
        ("c = {value: '{{ request.object.zz }}'}", "{{ request.object.k }}", "v"),
        ("c = {value: '{{ request.object.zz }}'}", "{{ request.object.zz || 'c' }}", "✗"),
        ("c = {value: '{{ request.object.zz }}'}", "{{ request.object.zz || '_c' }}", "✗"),
        ("c = {value: '{{ request.object.zz }}'}", "{{ request.object.zz || 'xc' }}", "xc"),
        ("c = {value: '{{ request.object.zz }}'}", "{{ request.object.zz || '.c' }}", ".c"),
    ] {
        assert_eq!(shown(entries, using), want, "{entries}: {using} over {o}");
    }
}

#[test]
fn entries_load_when_they_are_mentioned() {
    for (entries, using, want) in [
        ("a = {value: '{{ b }}'}; b = {value: B}", "{{ a }}", "✗"),
        ("a = {value: '{{ b }}'}; b = {value: B}", "{{ b }}{{ a }}", "BB"),
        ("a = {value: 1}; a = {value: '{{ a }}2'}; a = {value: '{{ a }}3'}", "{{ a }}", "123"),
        ("a = {value: {\"p\": 1}}; a = {value: {\"q\": 2}}", "-{{ a }}", "-{\"q\":2}"),
        ("a = {value: 1}; b = {value: '{{ a }}b'}; a = {value: 2}", "{{ a }} {{ b }}", "2 2b"),
        ("a = {value: 1}; b = {value: '{{ a }}b'}; a = {value: 2}", "{{ b }} {{ a }}", "1b 2"),
        ("my-c = {value: 1}", "-{{ \"my-c\" }}", "-1"),
    ] {
        assert_eq!(shown(entries, using), want, "{entries}: {using}");
    }
}
