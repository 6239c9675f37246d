//! What policies in CEL may take of stack and time, however they are written.

use crate::support::{Trial, review, value};

/// What a policy says whose variables each read the one before.
fn said(variables: usize, reads: &str) -> Vec<String> {
    let mut list = vec!["{name: v0, expression: 'dyn(1)'}".to_owned()];
    list.extend((1..variables).map(|i| {
        let expression = reads.replace('$', &format!("variables.v{}", i - 1));
        format!("{{name: v{i}, expression: '{expression}'}}")
    }));
    let policy = value(&format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {{name: p}}, \
         spec: {{variables: [{}], validations: [{{expression: 'variables.v{} != null'}}], matchConstraints: \
         {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]}}}}}}",
        list.join(", "),
        variables - 1
    ));
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: d}}";
    Trial::new(&[policy], review(&value(object))).run().lines()
}

#[test]
fn variables_that_read_each_other_take_no_more_stack_than_there_is() {
    assert_eq!(said(60, "dyn([$])"), ["pass success"]);
    assert_eq!(said(5_000, "dyn($)"), ["error evaluation nests data too deeply"]);
    assert_eq!(said(5_000, "dyn([$])"), ["error evaluation nests data too deeply"]);
}

#[test]
fn variables_that_hold_each_other_twice_end_at_the_budget() {
    assert_eq!(said(60, "dyn([$, $])"), ["error evaluation takes too many steps"]);
}
