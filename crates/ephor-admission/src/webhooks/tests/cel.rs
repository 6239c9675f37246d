//! The webhooks of policies of `policies.kyverno.io`.

use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_expr::yaml::parse_value;
use ephor_runtime::decision::proof;

use super::{policy, rules, validates, webhooks};

/// A policy on these resources, with `more` in its spec.
fn cel(kind: &str, place: &str, resources: &str, more: &str) -> Value {
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    let namespace = if namespace.is_empty() { String::new() } else { format!(", namespace: {namespace}") };
    let body = if kind.contains("Mutating") {
        "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{}'}}], autogen: \
         {podControllers: {controllers: []}}"
    } else if kind.contains("Generating") {
        "generate: [{expression: 'true'}]"
    } else {
        "validations: [{expression: 'true'}], autogen: {podControllers: {controllers: []}}"
    };
    let text = format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {{name: {name}{namespace}}}, spec: {{{body}, \
         matchConstraints: {{resourceRules: [{{apiGroups: [''], \
         apiVersions: [v1], operations: [CREATE], resources: {resources}}}]}}{more}}}}}"
    );
    parse_value(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `name path failurePolicy timeout conditions` of each webhook.
fn lines(webhooks: &[Value]) -> Vec<String> {
    let line = |w: &Value| {
        let conditions = w.get("matchConditions").and_then(Value::as_array).map_or(0, <[Value]>::len);
        let timeout = w.get("timeoutSeconds").and_then(Value::as_i64).unwrap();
        let (path, _) = proof::split(w.str_at(&["clientConfig", "service", "path"]).unwrap());
        let (name, failure) = (w.str_at(&["name"]).unwrap(), w.str_at(&["failurePolicy"]).unwrap());
        format!("{name} {path} {failure} {timeout} {conditions}")
    };
    webhooks.iter().map(line).collect()
}

const CONDITION: &str = ", matchConditions: [{name: c, expression: 'true'}]";

#[test]
fn policies_of_one_kind_share_a_webhook_and_some_have_their_own() {
    let documents = [
        policy("cpol:a", "", &[&validates("[Secret]")]),
        cel("ValidatingPolicy", "a", "[pods]", ""),
        cel("ValidatingPolicy", "b", "[configmaps, made-up]", ""),
        cel("ValidatingPolicy", "lenient", "[pods]", ", failurePolicy: Ignore"),
        cel("ValidatingPolicy", "mine", "[pods]", CONDITION),
        cel("NamespacedValidatingPolicy", "team/a", "[pods]", ""),
        cel("NamespacedValidatingPolicy", "team/mine", "[pods]", ", webhookConfiguration: {timeoutSeconds: 4}"),
        cel("MutatingPolicy", "a", "[pods]", ""),
        cel("GeneratingPolicy", "a", "[pods]", ""),
        cel(
            "GeneratingPolicy",
            "mine",
            "[pods]",
            &format!("{CONDITION}, evaluation: {{synchronize: {{enabled: true}}}}"),
        ),
        cel("NamespacedGeneratingPolicy", "team/a", "[pods]", ""),
    ];
    let validating = webhooks(&documents, "validating");
    assert_eq!(
        lines(&validating),
        [
            "validate.kyverno.svc-fail /validate/fail Fail 10 0",
            "vpol.validate.kyverno.svc-fail /vpol/a/b Fail 10 0",
            "vpol.validate.kyverno.svc-ignore /vpol-ignore/lenient Ignore 10 0",
            "vpol.validate.kyverno.svc-fail-finegrained-mine /vpol/mine Fail 10 1",
            "nvpol.validate.kyverno.svc-fail /nvpol/team/a Fail 10 0",
            "nvpol.validate.kyverno.svc-fail-finegrained-team-mine /nvpol/team/mine Fail 4 0",
            "gpol.validate.kyverno.svc-ignore /gpol/a Ignore 10 0",
            "gpol.validate.kyverno.svc-ignore-finegrained-mine /gpol/mine Ignore 10 1",
            "ngpol.validate.kyverno.svc-ignore /ngpol/team/a Ignore 10 0",
        ]
    );
    // The end of a trigger is the end of what was made for it.
    assert_eq!(rules(&validating[6]), ["/v1 *: pods: CONNECT,CREATE,DELETE,UPDATE"]);
    let condition = Path::root().key("matchConditions").index(0).key("expression");
    let condition = condition.lookup(&validating[7]).and_then(Value::as_str);
    assert_eq!(condition, Some("request.operation != 'CREATE' || (true)"));
    assert_eq!(rules(&validating[1]), ["/v1 *: configmaps,pods: CREATE"], "what is not served is not registered");
    assert_eq!(rules(&validating[4]), ["/v1 Namespaced: pods: CREATE"]);
    let mutating = webhooks(&documents, "mutating");
    assert_eq!(lines(&mutating), ["mpol.validate.kyverno.svc-fail /mpol/a Fail 10 0"]);
}

#[test]
fn a_policy_is_asked_again_only_if_it_says_so() {
    let documents = [
        cel("MutatingPolicy", "once", "[pods]", ", reinvocationPolicy: Never"),
        cel("MutatingPolicy", "silent", "[pods]", ""),
        cel("MutatingPolicy", "again", "[pods]", ", reinvocationPolicy: IfNeeded"),
    ];
    let found = webhooks(&documents, "mutating");
    let line = |w: &Value| {
        let (path, _) = proof::split(w.str_at(&["clientConfig", "service", "path"]).unwrap());
        format!("{path} {}", w.str_at(&["reinvocationPolicy"]).unwrap())
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    assert_eq!(lines, ["/mpol/once/silent Never", "/mpol/again IfNeeded"]);
}

#[test]
fn what_a_policy_leaves_open_is_registered_open() {
    for (resources, want) in [
        ("['*']", "/v1 *: *: CREATE"),
        ("['*/*']", "/v1 *: */*: CREATE"),
        ("[pods/exec]", "/v1 *: pods/exec: CREATE"),
        ("['pods/*']", "/v1 *: pods/*: CREATE"),
    ] {
        let found = webhooks(&[cel("ValidatingPolicy", "p", resources, "")], "validating");
        assert_eq!(rules(&found[0]), [want]);
    }
    assert!(webhooks(&[cel("ValidatingPolicy", "p", "[pods/made-up, nonsense]", "")], "validating").is_empty());
}

#[test]
fn selectors_of_policies_of_the_cluster_are_registered_and_those_of_namespaces_are_not() {
    let selecting = |kind: &str, place: &str, value: &str| {
        let mut document = cel(kind, place, "[pods]", "");
        let selector = parse_value(&format!("{{matchLabels: {{app: {value}}}}}")).unwrap();
        let at = Path::root().keys(&["spec", "matchConstraints"]);
        at.lookup_mut(&mut document).unwrap().as_object_mut().unwrap().insert("objectSelector", selector);
        document
    };
    let found = webhooks(&[selecting("ValidatingPolicy", "a", "x")], "validating");
    assert_eq!(lines(&found), ["vpol.validate.kyverno.svc-fail /vpol/a Fail 10 0"]);
    assert_eq!(found[0].str_at(&["objectSelector", "matchLabels", "app"]), Some("x"));

    let found =
        webhooks(&[selecting("ValidatingPolicy", "a", "x"), selecting("ValidatingPolicy", "b", "z")], "validating");
    let names: Vec<&str> = found.iter().map(|webhook| webhook.str_at(&["name"]).unwrap()).collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");

    let tenants: Vec<Value> =
        (0..40).map(|i| selecting("NamespacedValidatingPolicy", &format!("n{i}/p"), &format!("x{i}"))).collect();
    let found = webhooks(&tenants, "validating");
    assert_eq!(found.len(), 1, "owners of namespaces fill nothing with selectors");
    assert_eq!(found[0].at(&["objectSelector"]).unwrap().to_json(), "{}");
}

#[test]
fn webhooks_that_namespaced_policies_share_see_their_namespaces_only() {
    let namespaces = |webhook: &Value| -> Vec<String> {
        let expressions = webhook.at(&["namespaceSelector", "matchExpressions"]).and_then(Value::as_array).unwrap();
        let inside = expressions.iter().filter(|expression| expression.str_at(&["operator"]) == Some("In"));
        inside.map(|expression| expression.get("values").unwrap().to_json()).collect()
    };
    let of = |count: usize| -> Vec<Value> {
        (0..count).map(|i| cel("NamespacedValidatingPolicy", &format!("n{i}/p"), "['*']", "")).collect()
    };
    assert_eq!(namespaces(&webhooks(&of(2), "validating")[0]), ["[\"n0\",\"n1\"]"]);
    assert_eq!(namespaces(&webhooks(&[cel("ValidatingPolicy", "a", "[pods]", "")], "validating")[0]), [""; 0]);
    // Too many to name.
    assert_eq!(namespaces(&webhooks(&of(1_001), "validating")[0]), [""; 0]);
}

#[test]
fn a_thousand_policies_with_conditions_fit_into_the_configuration() {
    let long = "x".repeat(700);
    let condition = format!(", matchConditions: [{{name: c, expression: \"'{long}' != ''\"}}]");
    let mut documents: Vec<Value> =
        (0..1_000).map(|i| cel("ValidatingPolicy", &format!("policy-{i:04}"), "[pods]", &condition)).collect();
    documents.extend((0..400).map(|i| cel("NamespacedValidatingPolicy", &format!("n{i}/p"), "[pods]", &condition)));
    let found = webhooks(&documents, "validating");
    let bytes: usize = found.iter().map(|webhook| webhook.to_json().len()).sum();
    assert!(bytes < 600 << 10, "{bytes}");
    let lines = lines(&found);
    let own = lines.iter().filter(|line| line.contains("-finegrained-")).count();
    assert!((300..600).contains(&own), "{own}");
    // The others share: there are too many to name.
    assert!(lines.contains(&"vpol.validate.kyverno.svc-fail /vpols/fail Fail 10 0".to_owned()), "{:?}", lines.first());
    assert!(lines.iter().any(|line| line.starts_with("nvpol.validate.kyverno.svc-fail /nvpols/fail")));
}
