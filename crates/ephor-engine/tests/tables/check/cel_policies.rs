//! What is wrong with policies of `policies.kyverno.io`, of whatever kind.

use ephor_engine::compile::compile;

use crate::support::value;

/// A body of each kind, and what it calls its conditions.
const KINDS: [(&str, &str, &str); 4] = [
    ("ValidatingPolicy", "matchConditions", "validations: [{expression: 'true'}]"),
    (
        "MutatingPolicy",
        "matchConditions",
        "mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/data\"}]'}}]",
    ),
    ("GeneratingPolicy", "matchConditions", "generate: [{expression: 'generator.Apply(\"a\", [])'}]"),
    ("DeletingPolicy", "conditions", "schedule: '@daily'"),
];

#[test]
fn names_are_there_once() {
    let list = |name: &str, names: [&str; 2]| {
        let items = names.map(|name| format!("{{name: {name}, expression: 'true'}}"));
        format!("{name}: [{}]", items.join(", "))
    };
    for (kind, conditions, body) in KINDS {
        let errors = |more: &str| -> Vec<String> {
            let document = value(&format!(
                "{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {{name: p}}, spec: {{{body}, \
                 matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], \
                 resources: [configmaps]}}]}}, {more}}}}}"
            ));
            let findings =
                compile(&document).findings.into_iter().filter(ephor_engine::diagnostic::Diagnostic::is_error);
            findings.map(|finding| format!("{}: {}", finding.path, finding.message)).collect()
        };
        let both = |names| format!("{}, {}", list(conditions, names), list("variables", names));
        assert!(errors(&both(["a", "b"])).is_empty(), "{kind}");
        let want = [conditions, "variables"].map(|list| format!("spec.{list}[1].name: `a` is there twice"));
        assert_eq!(errors(&both(["a", "a"])), want, "{kind}");
    }
}
