//! Variables in texts: what the message of a rule that denies everything comes to.

use ephor_expr::Value;

use crate::support::{Trial, policy_of_rule, review, value};

const NOT_A_STRING: &str = "the produced message didn't resolve to a string, check your policy definition.";

const DATA: &str = r#"data:
  k: v
  tpl: "{{ request.object.data.k }}"
  bad: "{{ zz }}"
  h: "<a>"
  q: 'x"y'
  b: '\{{ x }}'
  "n": 1000000
  f: 2.0
  big: 1.0e+21
  tiny: 1.0e-7
  nul: null
  l: ["{{ request.object.data.k }}", null]
  m: {"a": "<"}
"#;

/// Names of the data stand for their paths.
fn message_of(message: &str) -> String {
    let rule = Value::from([(
        "validate",
        Value::from([("message", Value::from(message)), ("deny", Value::from([] as [(&str, Value); 0]))]),
    )]);
    let lines = Trial::new(&[policy_of_rule(&rule)], review(&value(DATA))).run().lines();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    line.strip_prefix("r fail").unwrap_or_else(|| panic!("{line}")).trim_start().to_owned()
}

#[test]
fn variables_become_text() {
    let d = "request.object.data";
    for (message, want) in [
        (format!("{{{{ {d}.n }}}}"), NOT_A_STRING),
        (format!("{{{{ {d}.m }}}}"), NOT_A_STRING),
        (format!("{{{{ {d}.nul }}}}"), NOT_A_STRING),
        (format!("-{{{{ {d}.n }}}}"), "-1000000"),
        (format!("-{{{{ {d}.f }}}}"), "-2"),
        (format!("-{{{{ {d}.big }}}}"), "-1e+21"),
        (format!("-{{{{ {d}.tiny }}}}"), "-1e-07"),
        (format!("{{{{ to_string({d}.tiny) }}}}"), "1e-7"),
        (format!("-{{{{ {d}.nul }}}}"), "-null"),
        (format!("-{{{{ {d}.l }}}}"), r#"-["{{ request.object.data.k }}",null]"#),
        (format!("-{{{{ {d}.m }}}}"), "-{\"a\":\"\\u003c\"}"),
        (format!("-{{{{ {d}.h }}}}"), "-<a>"),
        (format!("-{{{{ {d}.q }}}}"), "-x\"y"),
        (format!("{{{{ {d}.tpl }}}}"), "{{ request.object.data.k }}"),
        // Upstream reads the values of variables again; here they are data.
        (format!("-{{{{ {d}.tpl }}}}"), "-{{ request.object.data.k }}"),
        (format!("-{{{{- {d}.tpl }}}}"), "-{{ request.object.data.k }}"),
        (format!("-{{{{ {d}.bad }}}}"), "-{{ zz }}"),
        (format!("-{{{{- {d}.bad }}}}"), "-{{ zz }}"),
        (format!("{{{{ {d}.b }}}}"), "\\{{ x }}"),
        (format!("-{{{{ {d}.b }}}}"), "-\\{{ x }}"),
        (format!("\\{{{{ a }}}} {{{{ {d}.k }}}}"), "{{ a }} v"),
        (format!("\\\\{{{{ {d}.k }}}}"), "\\{{ request.object.data.k }}"),
        (
            format!("{{{{ {d}.zz }}}}"),
            "validation error: rule r failed; its message cannot be shown: JMESPath query failed: Unknown key \"zz\" in path",
        ),
        (format!("-{{{{ {d}.zz || `null` }}}}"), "-null"),
        (format!("{{{{ {d}.{{{{ {d}.zz || 'k' }}}} }}}}"), "v"),
        (format!("-{{{{ {{a: {d}.k}} }}}}"), "-{\"a\":\"v\"}"),
        ("-{{ {a: {b: k}} }}".to_owned(), "-{{ {a: {b: k}} }}"),
        ("-{{ '}' }}".to_owned(), "-{{ '}' }}"),
        (format!("{{{{ {d}.k"), "{{ request.object.data.k"),
        (format!("{{ {{{{ {d}.k }}}} }}"), "{ v }"),
        ("\\$(x)".to_owned(), "$(x)"),
        // Upstream crashes.
        (format!("-{{{{- {d}.n }}}}"), "-1000000"),
    ] {
        assert_eq!(message_of(&message), want, "{message}");
    }
}

#[test]
fn keys_are_substituted_and_must_be_text() {
    let run = |key: &str| {
        let patch = Value::from([("metadata", Value::from([("labels", Value::from([(key, Value::from("1"))]))]))]);
        let rule = Value::from([("mutate", Value::from([("patchStrategicMerge", patch)]))]);
        let ran = Trial::new(&[policy_of_rule(&rule)], review(&value(DATA))).run();
        (ran.lines().join("\n"), ran.object.at(&["metadata", "labels"]).map(Value::to_json))
    };
    assert_eq!(
        run("a{{ request.object.data.k }}"),
        ("r pass mutated Pod/p".to_owned(), Some(r#"{"av":"1"}"#.to_owned()))
    );
    let (line, labels) = run("{{ request.object.data.n }}");
    assert!(line.starts_with("r error variable substitution failed: "), "{line}");
    assert_eq!(labels, None);
}
