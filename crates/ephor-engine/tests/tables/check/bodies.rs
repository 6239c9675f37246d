//! Bodies of rules: which stand together, and what patterns, patches and targets must look like.

use super::check_rules;

#[test]
fn rules_have_one_body() {
    check_rules(&[
        ("{name: r}", &["E no-operation ."]),
        ("{validate: {deny: {}}, mutate: {patchStrategicMerge: {}}}", &["E several-operations ."]),
        ("{validate: {}}", &["E no-operation ."]),
        ("{validate: {message: m}}", &["E no-body /validate"]),
        ("{validate: {deny: {}, pattern: {a: b}}}", &["E several-bodies /validate"]),
        ("{validate: {pattern: {a: b}, anyPattern: [{a: b}]}}", &["E several-bodies /validate"]),
        ("{validate: {assert: {a: b}}}", &["E no-effect /validate/assert"]),
        ("{validate: {foreach: []}}", &["E empty-foreach /validate/foreach"]),
        ("{validate: {foreach: [{list: request.object.l}]}}", &["E no-body /validate/foreach/0"]),
        ("{validate: {foreach: [{list: '', deny: {}}]}}", &["E no-list /validate/foreach/0"]),
        (
            "{validate: {foreach: [{list: request.object.l, deny: {}, pattern: {a: b}}]}}",
            &["E several-bodies /validate/foreach/0"],
        ),
        ("{mutate: {}}", &["E no-operation ."]),
        (
            "{mutate: {patchStrategicMerge: {}, patchesJson6902: '[]'}}",
            &["E several-bodies /mutate", "W autogen-json-patch /mutate"],
        ),
        ("{mutate: {foreach: [{list: request.object.l}]}}", &["E no-body /mutate/foreach/0"]),
        (
            "{mutate: {foreach: [{list: request.object.l, preconditions: {}, foreach: [{list: element, patchStrategicMerge: {}}]}]}}",
            &["E nested-foreach /mutate/foreach/0"],
        ),
        ("{mutate: {mutateExistingOnPolicyUpdate: true, patchStrategicMerge: {}}}", &["E no-targets /mutate"]),
        ("{mutate: {targets: [{kind: Secret}], patchStrategicMerge: {}}}", &["E target /mutate/targets/0"]),
    ]);
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    check_rules(&[
        (
            "{validate: {manifests: {attestors: [{entries: [{keyless: {subject: a}}]}]}}}",
            &["E not-supported /validate/manifests/attestors/0/entries/0/keyless"],
        ),
        ("{validate: {manifests: {attestors: []}}}", &["E attestors /validate/manifests"]),
        ("{celPreconditions: [], validate: {deny: {}}}", &["E cel-preconditions /celPreconditions"]),
        ("{imageExtractors: {Fleet: []}, validate: {deny: {}}}", &["E not-supported /imageExtractors"]),
        ("{verifyImages: [{imageReferences: ['*']}]}", &["E not-supported /verifyImages"]),
    ]);
}

#[test]
fn fields_of_cel_belong_together() {
    let expressions = "expressions: [{expression: 'true'}]";
    let rule = |cel: &str| format!("{{validate: {{cel: {{{cel}}}}}}}");
    let kind = "paramKind: {apiVersion: v1, kind: ConfigMap}";
    check_rules(&[
        (&rule(expressions), &[]),
        (&rule("generate: true"), &["E cel /validate/cel/expressions"]),
        (&rule("expressions: [{message: m}]"), &["E cel /validate/cel/expressions/0/expression"]),
        (&rule(&format!("{expressions}, {kind}")), &["E cel /validate/cel/paramRef"]),
        (&rule(&format!("{expressions}, paramRef: {{name: a}}")), &["E cel /validate/cel/paramKind"]),
        (&rule(&format!("{expressions}, {kind}, paramRef: {{name: a, parameterNotFoundAction: Allow}}")), &[]),
        (
            &rule(&format!("{expressions}, {kind}, paramRef: {{name: a, selector: {{}}}}")),
            &["E cel /validate/cel/paramRef"],
        ),
        (
            &rule(&format!("{expressions}, {kind}, paramRef: {{parameterNotFoundAction: Deny}}")),
            &["E cel /validate/cel/paramRef"],
        ),
        (
            &rule(&format!("{expressions}, auditAnnotations: [{{valueExpression: \"'a'\"}}]")),
            &["E cel /validate/cel/auditAnnotations/0/key"],
        ),
        (
            &rule(&format!("{expressions}, variables: [{{name: a, expression: '1'}}, {{name: a, expression: '2'}}]")),
            &["E cel /validate/cel/variables/1/name"],
        ),
        (
            "{context: [{name: a, variable: {value: b}}], validate: {cel: {expressions: [{expression: 'true'}]}}}",
            &["E cel-context /context"],
        ),
        (
            "{celPreconditions: [{name: a, expression: '1'}], validate: {cel: {expressions: [{expression: 'nope'}]}}}",
            &["E cel /celPreconditions/0/expression", "E cel /validate/cel/expressions/0/expression"],
        ),
    ]);
}

#[test]
fn patterns_have_sound_anchors_references_and_labels() {
    check_rules(&[
        ("{validate: {pattern: {spec: {+(a): 1}}}}", &["E anchor /validate/pattern/spec/+(a)"]),
        ("{validate: {anyPattern: [{spec: {+(a): 1}}]}}", &["E anchor /validate/anyPattern/0/spec/+(a)"]),
        ("{validate: {pattern: {spec: {^(a): {b: 1}}}}}", &["E anchor /validate/pattern/spec/^(a)"]),
        ("{validate: {pattern: {spec: {^(a): []}}}}", &["E anchor /validate/pattern/spec/^(a)"]),
        ("{validate: {pattern: {spec: {^(a): [{b: 1}], X(b): '', <(c): 1, =(d): {(e): 1}}}}}", &[]),
        ("{validate: {pattern: {metadata: {labels: {a: 5}}}}}", &["E label-type /validate/pattern/metadata/labels/a"]),
        (
            "{validate: {pattern: {metadata: {=(annotations): {a: true}}}}}",
            &["E label-type /validate/pattern/metadata/=(annotations)/a"],
        ),
        ("{validate: {pattern: {metadata: {labels: {a: '5', b: null}}}}}", &[]),
        (
            "{mutate: {patchStrategicMerge: {metadata: {labels: {+(a): 5}}}}}",
            &["E label-type /mutate/patchStrategicMerge/metadata/labels/+(a)"],
        ),
        ("{validate: {pattern: {spec: {x: 5, b: $(./../x)}}}}", &["E reference /validate/pattern"]),
        ("{validate: {pattern: {spec: {x: 5, b: $(./../zz)}}}}", &["E reference /validate/pattern"]),
        ("{validate: {pattern: {spec: {x: a, b: $(/spec/x)}}}}", &["E reference /validate/pattern"]),
        ("{validate: {pattern: {spec: {x: a, b: $(/validate/pattern/spec/x)}}}}", &["E reference /validate/pattern"]),
        ("{validate: {pattern: {spec: {x: a, b: $(./../x)}}}}", &[]),
        (
            "{match: {any: [{resources: {kinds: [Secret]}}]}, validate: {pattern: {x: a, b: $(/x)}}}",
            &["E reference /validate/pattern"],
        ),
        ("{mutate: {patchStrategicMerge: {spec: {b: $(./../zz)}}}}", &["E reference /mutate/patchStrategicMerge"]),
        ("{validate: {message: $(x), deny: {}}}", &["E reference /validate/message"]),
        ("{validate: {message: \\$(x), deny: {}}}", &[]),
        (
            "{validate: {deny: {conditions: {any: [{key: a, operator: Equals, value: a, message: $(x)}]}}}}",
            &["E reference /validate/deny/conditions/any/0/message"],
        ),
    ]);
}

#[test]
fn json_patches_have_paths_operations_and_values() {
    let rule = |patch: &str| format!("{{mutate: {{patchesJson6902: '{patch}'}}}}");
    let (bad, note) = ("E json-patch /mutate/patchesJson6902", "W autogen-json-patch /mutate");
    check_rules(&[
        (&rule("[{op: add, path: /a, value: 1}, {op: remove, path: /b}, {op: copy, from: /a, path: /c}]"), &[note]),
        (&rule("[{op: add, path: a, value: 1}]"), &[bad, note]),
        (&rule("[{op: put, path: /a, value: 1}]"), &[bad, note]),
        (&rule("[{op: add, path: /a}]"), &[bad, note]),
        (&rule("[{op: add, path: /a, value: null}]"), &[note]),
        (&rule("[{op: add, path: /a, value: \"{{ request.object.x }}\"}]"), &[note]),
        (
            &rule("[{op: add, path: \"/{{ request.object.x }}\", value: 1}]"),
            &["E variable-in-path /mutate/patchesJson6902", note],
        ),
        (
            "{mutate: {foreach: [{list: request.object.l, patchesJson6902: '[{op: add, path: \"/{{ element }}\", value: 1}]'}]}}",
            &[note],
        ),
    ]);
}

#[test]
fn pod_security_exclusions_fit_their_level() {
    let rule = |level: &str, exclude: &str| {
        format!("{{validate: {{podSecurity: {{level: {level}, version: latest, exclude: [{exclude}]}}}}}}")
    };
    let at = |key: &str| format!("E pod-security-exclude /validate/podSecurity/exclude/0/{key}");
    check_rules(&[
        (&rule("baseline", "{controlName: Capabilities, images: ['*']}"), &[]),
        (&rule("baseline", "{controlName: Capabilities}"), &[&at("images")]),
        (&rule("baseline", "{controlName: Host Namespaces, images: ['*']}"), &[&at("images")]),
        (&rule("baseline", "{controlName: Volume Types}"), &[&at("controlName")]),
        (&rule("restricted", "{controlName: Volume Types}"), &[]),
        (&rule("baseline", "{controlName: Host Namespaces, restrictedField: spec.hostNetwork}"), &[&at("values")]),
        (&rule("baseline", "{controlName: Host Namespaces, values: ['true']}"), &[&at("restrictedField")]),
    ]);
}

#[test]
fn generated_objects_have_a_name_and_a_place() {
    let rule =
        |body: &str| format!("{{match: {{any: [{{resources: {{kinds: [Namespace]}}}}]}}, generate: {{{body}}}}}");
    let target = "apiVersion: v1, kind: ConfigMap, name: a, namespace: b";
    check_rules(&[
        (&rule(&format!("{target}, data: {{data: {{a: b}}}}")), &[]),
        (
            &format!("{{name: not a label, {}", rule(&format!("{target}, data: {{}}")).trim_start_matches('{')),
            &["E label-name /name"],
        ),
        (&rule(target), &["W generate-source /generate"]),
        (&rule(&format!("{target}, data: {{}}, clone: {{name: c, namespace: d}}")), &["E generate-source /generate"]),
        (&rule("apiVersion: v1, kind: ConfigMap, namespace: b, data: {}"), &["E generate-target /generate"]),
        (&rule("kind: ConfigMap, name: a, namespace: b, data: {}"), &["W missing-api-version /generate"]),
        (&rule("kind: '{{ request.kind.kind }}', name: a, namespace: b, data: {}"), &["E generate-target /generate"]),
        (
            &rule(&format!("{target}, synchronize: true, data: {{data: {{a: \"{{{{ time_now() }}}}\"}}}}")),
            &["W rendered-once /generate/data/data/a"],
        ),
        (&rule(&format!("{target}, data: {{data: {{a: \"{{{{ random('[a-z]') }}}}\"}}}}")), &[]),
        (&rule("apiVersion: v1, kind: ConfigMap, name: a, data: {}"), &["E target-namespace /generate"]),
        (
            &rule("apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: a, namespace: b, data: {}"),
            &["E target-namespace /generate"],
        ),
        (&rule("apiVersion: ex.io/v1, kind: ClusterRole, name: a, namespace: b, data: {}"), &[]),
        (&rule(&format!("{target}, data: {{spec: {{(a): b}}}}")), &["E anchor /generate/data/spec/(a)"]),
        (&rule("namespace: b, cloneList: {namespace: c, kinds: [v1/Secret, v1/ConfigMap]}"), &[]),
        (&rule("namespace: b, cloneList: {namespace: c}"), &["E clone-list /generate/cloneList"]),
        (
            &rule(
                "namespace: b, cloneList: {namespace: c, kinds: [v1/Secret, rbac.authorization.k8s.io/v1/ClusterRole]}",
            ),
            &["E clone-list /generate/cloneList/kinds"],
        ),
        // Each namespace that is missing is named by its field.
        (&rule("namespace: b, cloneList: {kinds: [v1/Secret]}"), &["E target-namespace /generate/cloneList"]),
        (&rule("cloneList: {namespace: c, kinds: [v1/Secret]}"), &["E target-namespace /generate"]),
        (
            &rule("cloneList: {kinds: [v1/Secret]}"),
            &["E target-namespace /generate", "E target-namespace /generate/cloneList"],
        ),
        (&rule("cloneList: {kinds: [rbac.authorization.k8s.io/v1/ClusterRole]}"), &[]),
        (&rule("namespace: b, cloneList: {kinds: [rbac.authorization.k8s.io/v1/ClusterRole]}"), &[]),
        (&rule(&format!("{target}, clone: {{name: c, namespace: d}}")), &[]),
        (&rule(&format!("{target}, clone: {{name: c}}")), &["E target-namespace /generate/clone"]),
        (
            &rule("namespace: b, cloneList: {namespace: c, kinds: [v1/Secret], selector: {matchLabels: {a: 'x*'}}}"),
            &["E clone-list /generate/cloneList/selector"],
        ),
    ]);
}

#[test]
fn empty_blocks_do_not_count() {
    // As upstream stores rules, and as it prints them in `status.autogen.rules`.
    let stored = "match: {any: [{resources: {kinds: [ConfigMap]}}], resources: {}}, exclude: {resources: {}}";
    let data = "apiVersion: v1, kind: ConfigMap, name: c, namespace: a";
    for (body, want) in [
        ("validate: {deny: {}}, mutate: {}, generate: {clone: {}, cloneList: {}}, verifyImages: []", [].as_slice()),
        ("mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}, validate: {}, generate: {}", &[]),
        // As an API server with definitions of 1.13 shows `validate: {}`.
        ("mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}, validate: {allowExistingViolations: true}", &[]),
        ("validate: {allowExistingViolations: true}", &["E no-operation ."]),
        (
            "mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}, validate: {allowExistingViolations: false}",
            &["E no-body /validate", "E several-operations ."],
        ),
        ("validate: {deny: {}}, imageExtractors: {}", &[]),
        ("validate: {deny: {}}, imageExtractors: {Pod: []}", &["E not-supported /imageExtractors"]),
        (&format!("generate: {{{data}, data: {{}}, clone: {{}}, cloneList: {{}}}}, validate: {{}}, mutate: {{}}"), &[]),
        (
            &format!(
                "generate: {{foreach: [{{list: request.object.data, {data}, data: {{}}, clone: {{}}, cloneList: {{}}}}]}}"
            ),
            &[],
        ),
        ("validate: {}, mutate: {}, generate: {clone: {}}, verifyImages: []", &["E no-operation ."]),
        ("validate: {deny: {}}, mutate: {targets: []}", &["E no-body /mutate", "E several-operations ."]),
    ] {
        check_rules(&[(&format!("{{{stored}, {body}}}"), want)]);
    }
}

#[test]
fn generated_objects_are_maps_with_plain_names() {
    let rule =
        |body: &str| format!("{{match: {{any: [{{resources: {{kinds: [Namespace]}}}}]}}, generate: {{{body}}}}}");
    let target = "apiVersion: v1, kind: ConfigMap, name: a, namespace: b";
    for (body, want) in [
        (format!("{target}, data: [a]"), ["E generate-data /generate/data"].as_slice()),
        (format!("{target}, data: text"), &["E generate-data /generate/data"]),
        (format!("{target}, data: 'a {{{{ request.object }}}}'"), &["E generate-data /generate/data"]),
        (format!("{target}, data: '{{{{ request.object }}}}'"), &[]),
        ("apiVersion: v1, kind: ConfigMap, name: 'a*', namespace: b, data: {}".into(), &["E wildcard /generate/name"]),
        ("apiVersion: v1, kind: ConfigMap, name: a, namespace: 'b?', data: {}".into(), &["E wildcard /generate/namespace"]),
        (
            "apiVersion: v1, kind: ConfigMap, name: \"x-{{ request.object.metadata.name || '*' }}\", namespace: b, data: {}"
                .into(),
            &[],
        ),
        (format!("{target}, clone: {{name: 'c*', namespace: d}}"), &["E wildcard /generate/clone/name"]),
        (
            "namespace: b, cloneList: {namespace: '*', kinds: [v1/Secret]}".into(),
            &["E wildcard /generate/cloneList/namespace"],
        ),
        (
            "apiVersion: apps/v1, kind: Deployment/scale, name: a, namespace: b, data: {}".into(),
            &["W generate-subresource /generate/kind"],
        ),
        (
            "apiVersion: autoscaling/v1, kind: Scale, name: a, namespace: b, data: {}".into(),
            &["W generate-subresource /generate/kind"],
        ),
        (
            "apiVersion: apps/v1, kind: Deployment.scale, name: a, namespace: b, data: {}".into(),
            &["W generate-subresource /generate/kind"],
        ),
        (
            "namespace: b, cloneList: {namespace: c, kinds: [v1/Secret, v1/Secret/status, apps/v1/Deployment/scale]}".into(),
            &[
                "W generate-subresource /generate/cloneList/kinds/1",
                "W generate-subresource /generate/cloneList/kinds/2",
            ],
        ),
        ("apiVersion: ex.io/v1, kind: Scale, name: a, namespace: b, data: {}".into(), &[]),
        ("apiVersion: v1, kind: configmap, name: a, namespace: b, data: {}".into(), &["E kind-case /generate/kind"]),
        ("namespace: b, cloneList: {namespace: c, kinds: [v1/secret]}".into(), &["E kind-case /generate/cloneList/kinds/0"]),
    ] {
        check_rules(&[(&rule(&body), want)]);
    }
}
