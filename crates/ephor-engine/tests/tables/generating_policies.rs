//! What the expressions and templates of a `GeneratingPolicy` give.

use ephor_engine::compile::compile;
use ephor_expr::Value;

use crate::support::{Trial, review, value};

const OBJECT: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: shop, uid: u-1}, data: {num: '3', \
                      list: 'a,b', long: '((x'}}";

/// A policy on `ConfigMaps` of the cluster, or of the namespace `shop`, with these entries of `generate`.
fn policy(kind: &str, generate: &Value) -> Value {
    let mut policy = value(&format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {{name: p, namespace: shop}}, spec: {{variables: \
         [{{name: who, expression: object.metadata.name}}], matchConstraints: {{resourceRules: [{{apiGroups: [''], \
         apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]}}}}}}"
    ));
    let spec = policy.as_object_mut().unwrap().entry("spec");
    spec.as_object_mut().unwrap().insert("generate", generate.clone());
    policy
}

fn expression(text: &str) -> Value {
    Value::array(vec![Value::from([("expression", Value::from(text))])])
}

fn template(text: &str) -> Value {
    let template = Value::from([("interpolate", Value::from("cel")), ("value", Value::from(text))]);
    Value::array(vec![Value::from([("template", template)])])
}

/// The objects as `kind namespace/name data`, or what the rule says instead.
fn made(kind: &str, generate: &Value) -> Vec<String> {
    let ran = Trial::new(&[policy(kind, generate)], review(&value(OBJECT))).run();
    let details = ran.outcomes.iter().filter_map(|outcome| outcome.detail.as_deref());
    let objects: Vec<String> = details
        .flat_map(|detail| &detail.generated)
        .map(|made| {
            let text = |keys: &[&str]| made.object.str_at(keys).unwrap_or("-").to_owned();
            let data = made.object.get("data").map(Value::to_json).unwrap_or_default();
            let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
            format!("{} {namespace}/{name} {data}", text(&["kind"]))
        })
        .collect();
    if objects.is_empty() { ran.lines() } else { objects }
}

/// What is wrong with a policy.
fn refused(kind: &str, generate: &Value) -> Vec<String> {
    let findings = compile(&policy(kind, generate)).findings;
    findings.iter().map(|finding| format!("{}@{:?}: {}", finding.path, finding.offset, finding.message)).collect()
}

#[test]
fn expressions_name_objects() {
    let cm = |more: &str| {
        format!("{{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': dyn({{'name': 'c'{more}}})}}")
    };
    for (kind, text, want) in [
        ("GeneratingPolicy", format!("generator.Apply('a', [{}])", cm("")), "ConfigMap a/c "),
        // The namespace that the call names counts.
        ("GeneratingPolicy", format!("generator.apply('a', [{}])", cm(", 'namespace': 'b'")), "ConfigMap a/c "),
        ("GeneratingPolicy", format!("generator.apply('', [{}])", cm(", 'namespace': 'b'")), "ConfigMap b/c "),
        ("GeneratingPolicy", format!("generator.apply('', [{}])", cm("")), "ConfigMap -/c "),
        (
            "GeneratingPolicy",
            format!("object.data.list.split(',').all(n, generator.Apply(n, [{}]))", cm("")),
            "ConfigMap a/c , ConfigMap b/c ",
        ),
        // One object is one object, however often it is named.
        ("GeneratingPolicy", format!("generator.Apply('a', [{}, {}])", cm(""), cm("")), "ConfigMap a/c "),
        (
            "GeneratingPolicy",
            format!(
                "generator.Apply('a', [{{'kind': dyn('SecretList'), 'apiVersion': dyn('v1'), 'items': dyn([dyn({{'metadata': {{'name': 's'}}}}), dyn({})])}}])",
                cm("")
            ),
            "Secret a/s , ConfigMap a/c ",
        ),
        (
            "GeneratingPolicy",
            "object.data.num == '4' && generator.Apply('a', [])".to_owned(),
            "p pass policy evaluated successfully",
        ),
        (
            "GeneratingPolicy",
            "generator.Apply('a', [dyn(null)])".to_owned(),
            "p error cannot generate what does not exist: each object has apiVersion, kind and metadata.name",
        ),
        (
            "GeneratingPolicy",
            "generator.Apply('a', object.data.num)".to_owned(),
            "p error failed to evaluate policy: no such overload: Apply(generator.Context, string, string)",
        ),
        (
            "GeneratingPolicy",
            "generator.Apply('a', [object.data.none])".to_owned(),
            "p error failed to evaluate policy: no such key: none",
        ),
        (
            "GeneratingPolicy",
            "generator.Apply('a', [{'kind': 'Pod'}])".to_owned(),
            "p error cannot generate an object without apiVersion",
        ),
        ("NamespacedGeneratingPolicy", format!("generator.Apply([{}])", cm("")), "ConfigMap shop/c "),
        (
            "NamespacedGeneratingPolicy",
            format!("generator.Apply([{}])", cm(", 'namespace': 'kube-system'")),
            "p error cross-namespace generation denied: policy of namespace shop, object of kube-system",
        ),
    ] {
        assert_eq!(made(kind, &expression(&text)).join(", "), want, "{text}");
    }
}

#[test]
fn templates_are_filled() {
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\ndata:\n";
    for (data, want) in [
        ("  a: (( variables.who ))", r#"{"a":"t"}"#),
        ("  a: x-(( variables.who ))-(( int(object.data.num) + 1 ))", r#"{"a":"x-t-4"}"#),
        ("  a: (( int(object.data.num) ))", r#"{"a":3}"#),
        ("  a: (( object.data.list.split(',') ))", r#"{"a":["a","b"]}"#),
        ("  a: '(( \"))\" + string(size(\"(\")) ))'", r#"{"a":"))1"}"#),
        (r"  a: \((x)) (( variables.who ))", r#"{"a":"((x)) t"}"#),
        // What an object says is no template.
        ("  a: (( object.data.long ))", r#"{"a":"((x"}"#),
        ("  a: b", r#"{"a":"b"}"#),
    ] {
        let want = format!("ConfigMap shop/c {want}");
        assert_eq!(made("GeneratingPolicy", &template(&format!("{head}{data}\n"))), [want], "{data}");
    }
    for (data, want) in [
        ("  a: x(( object.data ))", "object.data gives object, which cannot stand within a text"),
        ("  a: (( 9223372036854775808u ))", "9223372036854775808 is too large for a number of an object"),
    ] {
        let want = format!("p error failed to evaluate policy: {want}");
        assert_eq!(made("GeneratingPolicy", &template(&format!("{head}{data}\n"))), [want], "{data}");
    }
    let two = format!("{head}  a: b\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: shop}}\n");
    assert_eq!(
        made("NamespacedGeneratingPolicy", &template(&two)),
        [r#"ConfigMap shop/c {"a":"b"}"#, "Secret shop/s "]
    );
}

#[test]
fn objects_say_who_wants_them() {
    let one = expression("generator.Apply('a', [object])");
    let ran = Trial::new(&[policy("GeneratingPolicy", &one)], review(&value(OBJECT))).run();
    let detail = ran.outcomes[0].detail.as_deref().unwrap();
    let metadata = detail.generated[0].object.get("metadata").unwrap();
    // The copy of an object is another one.
    assert_eq!(metadata.get("uid"), None);
    let label = |name: &str| metadata.str_at(&["labels", name]);
    assert_eq!(label("generate.kyverno.io/source-uid"), Some("u-1"));
    assert_eq!(label("generate.kyverno.io/trigger-name"), Some("t"));
    assert_eq!(label("generate.kyverno.io/policy-name"), Some("p"));
    assert_eq!(label("generate.kyverno.io/rule-name"), None);
}

#[test]
fn what_is_wrong_is_placed() {
    for (kind, generate, want) in [
        ("GeneratingPolicy", Value::array(Vec::new()), "spec.generate@None: Required value"),
        (
            "GeneratingPolicy",
            value("[{expression: 'true', template: {value: 'a: b'}}]"),
            "spec.generate[0]@None: exactly one of expression or template must be set",
        ),
        (
            "GeneratingPolicy",
            template("a: (( none ))"),
            "spec.generate[0].template.value@Some(6): undeclared reference to 'none' (in container '')",
        ),
        (
            "GeneratingPolicy",
            template("a: (( 1 )\nb: (( 2 )"),
            "spec.generate[0].template.value@Some(3): `((` without `))` in \"(( 1 )\"",
        ),
        (
            "GeneratingPolicy",
            template("'((a))': b"),
            "spec.generate[0].template.value@Some(1): an expression cannot stand in a key: \"((a))\"",
        ),
        (
            "GeneratingPolicy",
            template("- a"),
            "spec.generate[0].template.value@None: a document of the template is no object but array",
        ),
        ("GeneratingPolicy", template(""), "spec.generate[0].template.value@None: the template has no document"),
        // A policy of a namespace names none.
        (
            "NamespacedGeneratingPolicy",
            expression("generator.Apply('kube-system', [])"),
            "spec.generate[0].expression@Some(15): found no matching overload for 'Apply' applied to \
             'generator.Context.(string, list(dyn))'",
        ),
        // Nor may it call services.
        (
            "NamespacedGeneratingPolicy",
            expression("generator.Apply([]) && http.Get('http://x').ok"),
            "spec.generate[0].expression@Some(23): http.* is not allowed in namespaced policies",
        ),
        (
            "NamespacedGeneratingPolicy",
            template("a: [{b: 'x(( http.Get(object.u).c ))'}]"),
            "spec.generate[0].template.value@Some(0): http.* is not allowed in namespaced policies",
        ),
    ] {
        assert_eq!(refused(kind, &generate).first().map_or("", String::as_str), want);
    }
}
