//! Rules of definitions in CEL: the sandbox and a real API server say the same of the same objects.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ephor_testbed::{Assets, ControlPlane, Controllers, Options};

use crate::process::{Sandbox, eventually};

/// A schema of `spec`, as a kind with this plural, and the values to create, with what each is changed to.
type Case = (&'static str, &'static str, &'static [(&'static str, Option<&'static str>)]);

const CASES: &[Case] = &[
    (
        "bounds",
        "{type: integer, x-kubernetes-validations: [{rule: self <= 3, message: too large}, {rule: 'self > 0'}]}",
        &[("3", None), ("4", None), ("0", None), ("2", Some("5"))],
    ),
    (
        "grows",
        "{type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, \
         messageExpression: \"'it went ' + 'down'\"}]}",
        &[("3", Some("4")), ("3", Some("2"))],
    ),
    (
        "range",
        "{type: object, properties: {min: {type: integer}, max: {type: integer}}, x-kubernetes-validations: \
         [{rule: self.min <= self.max, fieldPath: .min, reason: FieldValueForbidden}]}",
        &[("{min: 1, max: 2}", None), ("{min: 2, max: 1}", None), ("{min: 1}", None)],
    ),
    (
        "names",
        "{type: array, items: {type: string, maxLength: 50}, maxItems: 10, x-kubernetes-validations: \
         [{rule: \"self.all(n, n.startsWith('a'))\"}, {rule: self.size() < 3, reason: FieldValueRequired}]}",
        &[("[a, ab]", None), ("[a, b]", None), ("[a, a, a]", None), ("[b, b, b]", None)],
    ),
    (
        "ports",
        "{type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: \
         {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}, \
         x-kubernetes-validations: [{rule: self.port == oldSelf.port, message: fixed}]}}",
        &[
            ("[{name: a, port: 1}]", Some("[{name: b, port: 2}, {name: a, port: 1}]")),
            ("[{name: a, port: 1}]", Some("[{name: a, port: 2}]")),
        ],
    ),
    (
        "labels",
        "{type: object, maxProperties: 5, additionalProperties: {type: string, maxLength: 9, \
         x-kubernetes-validations: [{rule: int(self) > 0}]}}",
        &[("{k: '1'}", None), ("{k: '0'}", None), ("{k: x}", None)],
    ),
    (
        "either",
        "{x-kubernetes-int-or-string: true, x-kubernetes-validations: [{rule: self > 1}]}",
        &[("2", None), ("1", None), ("two", None)],
    ),
    (
        "once",
        "{type: string, maxLength: 9, x-kubernetes-validations: [{rule: \
         '!oldSelf.hasValue() || oldSelf.value() == self', optionalOldSelf: true}]}",
        &[("a", Some("a")), ("a", Some("b"))],
    ),
    (
        "when",
        "{type: string, format: date-time, x-kubernetes-validations: [{rule: \"self.getFullYear() > 2000\"}]}",
        &[("'2020-01-01T00:00:00Z'", None), ("'1999-01-01T00:00:00Z'", None)],
    ),
];

/// A rule as it is first, one that replaces it, and the values that an object of the kind has: first, then and last.
/// What breaks only the rule that came later may stay, with a warning.
const RATCHETED: &[(&str, &str, &str, &[&str])] = &[(
    "later",
    "{type: object, properties: {a: {type: integer}, b: {type: integer}, l: {type: array, maxItems: 5, items: \
         {type: integer}}}}",
    "{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: self < 3, message: small}]}, \
         b: {type: integer}, l: {type: array, maxItems: 5, items: {type: integer, x-kubernetes-validations: \
         [{rule: self < 3}]}}}, x-kubernetes-validations: [{rule: self.a < 2}, {rule: '!has(self.b) || self.b / 0 > 1'}]}",
    &["{a: 5, l: [1, 7]}", "{a: 5, l: [1, 7]}", "{a: 5, l: [1, 7], b: 1}", "{a: 6, l: [7, 1]}", "{a: 1, l: [8]}"],
)];

/// Rules that are no good, as a schema of `spec`, and some that look so.
const BROKEN: &[&str] = &[
    "{type: integer, x-kubernetes-validations: [{rule: self.nope}]}",
    "{type: integer, x-kubernetes-validations: [{rule: '1'}]}",
    "{type: integer, x-kubernetes-validations: [{rule: 'true', messageExpression: '1'}]}",
    "{type: integer, x-kubernetes-validations: [{rule: ' '}]}",
    "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: has(self.b)}]}",
    "{type: array, maxItems: 3, items: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}",
    "{type: array, maxItems: 3, x-kubernetes-list-type: set, items: {type: integer, x-kubernetes-validations: \
     [{rule: self >= oldSelf}]}}",
    "{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: object, properties: {b: {type: integer, \
     x-kubernetes-validations: [{rule: self >= oldSelf}]}}}}}",
    "{type: object, x-kubernetes-map-type: atomic, maxProperties: 3, additionalProperties: {type: integer, \
     x-kubernetes-validations: [{rule: self >= oldSelf}]}}",
    "{type: integer, x-kubernetes-validations: [{rule: self > 1, optionalOldSelf: true}]}",
    "{x-kubernetes-preserve-unknown-fields: true, x-kubernetes-validations: [{rule: 'true'}]}",
    "{type: object, properties: {a: {x-kubernetes-preserve-unknown-fields: true}}, x-kubernetes-validations: \
     [{rule: has(self.a)}]}",
    "{type: integer, x-kubernetes-validations: [{rule: 'true', message: ' '}]}",
    "{type: integer, x-kubernetes-validations: [{rule: 'true', message: \"a\\nb\"}]}",
    "{type: integer, x-kubernetes-validations: [{rule: \"true ||\\nfalse\"}]}",
    "{type: integer, x-kubernetes-validations: [{rule: 'true', messageExpression: ' '}]}",
    "{type: integer, x-kubernetes-validations: [{rule: 'true', reason: Other}]}",
    "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: 'true', fieldPath: .b}]}",
    "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: 'true', fieldPath: \"['a']\"}]}",
    // What rules cost at most.
    "{type: string, x-kubernetes-validations: [{rule: \"self.contains('a')\"}]}",
    "{type: string, x-kubernetes-validations: [{rule: 'self.contains(self)'}]}",
    "{type: string, maxLength: 10000, x-kubernetes-validations: [{rule: 'self.contains(self)'}]}",
    "{type: string, maxLength: 1000, x-kubernetes-validations: [{rule: 'self.contains(self)'}]}",
    "{type: string, x-kubernetes-validations: [{rule: 'true', messageExpression: 'self + self'}]}",
    "{type: string, x-kubernetes-validations: [{rule: 'true', messageExpression: \"self.replace(self, self)\"}]}",
    "{type: array, items: {type: string}, x-kubernetes-validations: [{rule: \"self.all(x, x == 'abc')\"}]}",
    "{type: array, items: {type: integer}, x-kubernetes-validations: [{rule: 'self.all(x, self.all(y, x == y))'}]}",
    "{type: array, maxItems: 100, items: {type: array, maxItems: 100, items: {type: string, maxLength: 100, \
     x-kubernetes-validations: [{rule: \"self.startsWith('a')\"}, {rule: \"self.matches('^[a-z0-9]+$')\"}]}}}",
    "{type: array, maxItems: 1000, items: {type: array, maxItems: 100, items: {type: string, maxLength: 100, \
     x-kubernetes-validations: [{rule: \"self.startsWith('a')\"}, {rule: \"self.matches('^[a-z0-9]+$')\"}]}}}",
    "{type: array, items: {type: object, required: [name], properties: {name: {type: string, maxLength: 63}, ports: \
     {type: array, items: {type: integer, x-kubernetes-validations: [{rule: self > 1}]}}}, \
     x-kubernetes-validations: [{rule: 'self.name.size() > 3'}]}}",
    "{type: object, additionalProperties: {type: object, properties: {a: {type: string, enum: [b, ccc], \
     x-kubernetes-validations: [{rule: \"self.contains('b')\"}]}}}}",
    "{type: array, maxItems: 400, items: {type: string, maxLength: 100, x-kubernetes-validations: \
     [{rule: \"self.matches('^[a-z0-9]+$') && self.matches('^[a-z0-9]+$') && self.matches('^[a-z0-9]+$') && \
     self.matches('^[a-z0-9]+$') && self.matches('^[a-z0-9]+$') && self.matches('^[a-z0-9]+$') && \
     self.matches('^[a-z0-9]+$') && self.matches('^[a-z0-9]+$') && self.matches('^[a-z0-9]+$')\"}]}}",
];

fn definition(plural: &str, schema: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {{name: {plural}.rules.example.com}}\nspec:\n  group: rules.example.com\n  scope: Namespaced\n  \
         names: {{plural: {plural}, kind: K{plural}}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    \
         schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec: {schema}\n        \
         x-kubernetes-validations: [{{rule: \"self.metadata.name != 'refused'\", message: not this name}}]\n"
    )
}

fn object(plural: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: rules.example.com/v1\nkind: K{plural}\nmetadata: {{name: {name}, namespace: default}}\nspec: {spec}\n"
    )
}

/// What kubectl says at the server of `kubeconfig`.
fn kubectl(kubeconfig: &Path, line: &str, input: &str) -> String {
    let mut command = Command::new(Assets::locate().tool("kubectl"));
    command.args(line.split(' ')).env("KUBECONFIG", kubeconfig);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kubectl is built");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn rules_of_definitions_judge_as_a_real_server_does() {
    let plane = ControlPlane::start(&Options { controllers: Controllers::Absent, ..Options::default() })
        .expect("a control plane");
    let sandbox = Sandbox::start(&[]);
    let (real, ours) = (plane.kubeconfig(), sandbox.kubeconfig());
    let mut differences = Vec::new();
    let mut compare = |line: &str, input: &str| {
        let (wanted, found) = (kubectl(&real, line, input), kubectl(&ours, line, input));
        // A real server judges fields in no order.
        if sorted(&wanted) != sorted(&found) {
            differences.push(format!("{input}\nreal: {wanted}ours: {found}"));
        }
    };
    for (plural, schema, values) in CASES {
        compare("create -f -", &definition(plural, schema));
        // What one server refuses to serve has been compared.
        let known = format!("get crd {plural}.rules.example.com -o name");
        if [&real, &ours].into_iter().any(|server| kubectl(server, &known, "").contains("NotFound")) {
            continue;
        }
        for server in [&real, &ours] {
            eventually("the definition is served", || {
                let line = format!("get {plural}.rules.example.com");
                kubectl(server, &line, "").contains("No resources found").then_some(())
            });
        }
        for (index, (value, changed)) in values.iter().enumerate() {
            let name = format!("o{index}");
            compare("create -f -", &object(plural, &name, value));
            if let Some(changed) = changed {
                compare("replace -f -", &object(plural, &name, changed));
            }
        }
        compare("create -f -", &object(plural, "refused", values[0].0));
    }
    for (plural, schema, changed, values) in RATCHETED {
        compare("create -f -", &definition(plural, schema));
        let line = format!("get {plural}.rules.example.com");
        let is_served = |server| kubectl(server, &line, "").contains("No resources found");
        for server in [&real, &ours] {
            eventually("the definition is served", || is_served(server).then_some(()));
        }
        compare("create -f -", &object(plural, "o", values[0]));
        compare("apply -f -", &definition(plural, changed));
        // The next schema is used soon after it is stored.
        for server in [&real, &ours] {
            let probe = object(plural, "probe", values[0]);
            eventually("the rules hold", || {
                kubectl(server, "create --dry-run=server -f -", &probe).contains("small").then_some(())
            });
        }
        for value in *values {
            compare("replace -f -", &object(plural, "o", value));
        }
    }
    for (index, schema) in BROKEN.iter().enumerate() {
        compare("create -f -", &definition(&format!("broken{index}"), schema));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
