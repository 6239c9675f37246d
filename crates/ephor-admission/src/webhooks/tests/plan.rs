//! What configurations follow from which policies.

use ephor_expr::Value;
use ephor_runtime::config::Config;
use ephor_runtime::decision::{PathToken, proof};

use super::super::{BootstrapRequests, Endpoint, FailureMode, RegisteredFrom, Serving, WebhookSettings};
use super::{VALIDATE, planned, planned_with, policy, rules, validates, webhooks};

const ALL: &str = "CONNECT,CREATE,DELETE,UPDATE";
const MUTATE: &str = "mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}";

#[test]
fn rules_follow_match_and_exclude() {
    let kinds = |kinds: &str| validates(kinds);
    let filtered = |filter: &str, rest: &str| format!("match: {{any: [{{resources: {filter}}}]}}, {rest}");
    let cases: &[(&str, String, &[&str])] = &[
        ("cpol", kinds("[ConfigMap]"), &["/v1 Namespaced: configmaps: *"]),
        ("cpol", kinds("[Secret, ConfigMap]"), &["/v1 Namespaced: configmaps,secrets: *"]),
        ("cpol", kinds("[Namespace]"), &["/v1 *: namespaces: *"]),
        ("cpol", kinds("[Pod]"), &["/v1 Namespaced: pods,pods/ephemeralcontainers: *"]),
        ("cpol", kinds("[Pod/exec]"), &["/v1 Namespaced: pods/exec: *"]),
        ("cpol", kinds("['Deployment/*']"), &["apps/v1 Namespaced: deployments,deployments/scale,deployments/status: *"]),
        ("cpol", kinds("['Pod/*']"), &["/v1 Namespaced: pods,pods/attach,pods/binding,pods/ephemeralcontainers,pods/eviction,pods/exec,pods/log,pods/portforward,pods/proxy,pods/resize,pods/status: *"]),
        ("cpol", kinds("['*/scale']"), &["*/* *: */scale: *"]),
        ("cpol", kinds("['*']"), &["*/* *: *,pods/ephemeralcontainers: *"]),
        ("pol/a", kinds("['*']"), &["*/* Namespaced: *,pods/ephemeralcontainers: *"]),
        ("cpol", kinds("['*/*']"), &["*/* *: */*: *"]),
        ("cpol", kinds("['apps/v1/*']"), &["apps/v1 *: *: *"]),
        // All versions that are served: nobody gets around a policy by the version they write.
        (
            "cpol",
            kinds("[HorizontalPodAutoscaler]"),
            &["autoscaling/v1 Namespaced: horizontalpodautoscalers: *", "autoscaling/v2 Namespaced: horizontalpodautoscalers: *"],
        ),
        ("cpol", kinds("['apps/*/Stateful*']"), &["apps/v1 Namespaced: statefulsets: *"]),
        // A kind that nobody serves has no objects.
        ("cpol", kinds("[Nonsense]"), &[]),
        ("cpol", filtered("{kinds: [Secret], operations: [UPDATE, CREATE]}", VALIDATE), &["/v1 Namespaced: secrets: CREATE,UPDATE"]),
        ("cpol", filtered("{kinds: [Secret]}", &format!("exclude: {{any: [{{resources: {{operations: [DELETE]}}}}]}}, {VALIDATE}")), &["/v1 Namespaced: secrets: CONNECT,CREATE,UPDATE"]),
        (
            "cpol",
            filtered(
                "{kinds: [Secret, ConfigMap]}",
                &format!("exclude: {{any: [{{resources: {{kinds: [Secret], operations: [DELETE, CONNECT]}}}}]}}, {VALIDATE}"),
            ),
            &["/v1 Namespaced: secrets: CREATE,UPDATE", "/v1 Namespaced: configmaps: *"],
        ),
        // What an exclude takes away from some objects only is still seen.
        (
            "cpol",
            filtered(
                "{kinds: [Secret]}",
                &format!("exclude: {{any: [{{resources: {{operations: [DELETE], namespaces: [a]}}}}, {{resources: {{operations: [DELETE]}}, subjects: [{{kind: User, name: x}}]}}]}}, {VALIDATE}"),
            ),
            &["/v1 Namespaced: secrets: *"],
        ),
        (
            "cpol",
            format!("match: {{all: [{{resources: {{kinds: [Secret], operations: [CREATE, UPDATE]}}}}, {{resources: {{kinds: [Secret], operations: [CREATE, DELETE]}}}}]}}, {VALIDATE}"),
            &["/v1 Namespaced: secrets: CREATE"],
        ),
        ("cpol", format!("match: {{resources: {{kinds: [Secret], operations: [DELETE]}}}}, {VALIDATE}"), &["/v1 Namespaced: secrets: DELETE"]),
        // Generate rules see their downstreams, to keep them as they are.
        (
            "cpol",
            "match: {any: [{resources: {kinds: [Namespace], operations: [CREATE]}}]}, generate: {synchronize: true, apiVersion: v1, kind: Secret, name: x, namespace: z, data: {kind: Secret}}".to_owned(),
            &["/v1 *: namespaces: CREATE", "/v1 Namespaced: secrets: CREATE,DELETE,UPDATE"],
        ),
        (
            "cpol",
            "match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {synchronize: true, namespace: z, cloneList: {namespace: x, kinds: [v1/Secret, v1/ConfigMap]}}".to_owned(),
            &["/v1 *: namespaces: *", "/v1 Namespaced: configmaps,secrets: CREATE,DELETE,UPDATE"],
        ),
        // A mutate rule for other objects watches its triggers.
        (
            "cpol",
            format!("match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, mutate: {{targets: [{{apiVersion: v1, kind: Secret, name: x, namespace: z}}], {}", MUTATE.strip_prefix("mutate: {").unwrap()),
            &["/v1 Namespaced: configmaps: *"],
        ),
    ];
    for (kind, rule, want) in cases {
        let found = webhooks(&[policy(&format!("{kind}:p"), "", &[rule])], "validating");
        let found: Vec<String> = found.iter().flat_map(rules).collect();
        let want: Vec<String> = want
            .iter()
            .map(|line| line.strip_suffix(" *").map_or((*line).to_owned(), |l| format!("{l} {ALL}")))
            .collect();
        let (mut found, mut want) = (found, want);
        found.sort();
        want.sort();
        assert_eq!(found, want, "{rule}");
    }
}

#[test]
fn mutate_rules_are_registered_for_what_they_can_change() {
    let rule = format!("match: {{any: [{{resources: {{kinds: [Secret]}}}}]}}, {MUTATE}");
    let documents = [policy("cpol:p", "", &[&rule])];
    assert!(webhooks(&documents, "validating").is_empty());
    let mutating = webhooks(&documents, "mutating");
    assert_eq!(rules(&mutating[0]), ["/v1 Namespaced: secrets: CREATE,UPDATE"]);
    assert_eq!(mutating[0].str_at(&["reinvocationPolicy"]), Some("IfNeeded"));
}

#[test]
fn controllers_of_pods_are_registered_with_them() {
    let mut document = policy("cpol:p", "", &[&validates("[Pod]")]);
    document.as_object_mut().unwrap().insert("metadata", Value::from([("name", Value::from("p"))]));
    let found = webhooks(&[document], "validating");
    assert_eq!(
        rules(&found[0]),
        [
            format!("/v1 Namespaced: pods,pods/ephemeralcontainers,replicationcontrollers: {ALL}"),
            format!("apps/v1 Namespaced: daemonsets,deployments,replicasets,statefulsets: {ALL}"),
            format!("batch/v1 Namespaced: cronjobs,jobs: {ALL}"),
        ]
    );
}

#[test]
fn what_a_wider_rule_sees_is_not_said_twice() {
    let create =
        |kinds: &str| format!("match: {{any: [{{resources: {{kinds: {kinds}, operations: [CREATE]}}}}]}}, {VALIDATE}");
    for (policies, want) in [
        (
            vec![
                policy("cpol:a", "", &[&validates("['*']")]),
                policy("pol/x:b", "", &[&validates("['*']")]),
                policy("cpol:c", "", &[&validates("[Secret]")]),
            ],
            vec![format!("*/* *: *,pods/ephemeralcontainers: {ALL}")],
        ),
        // Only for the operations that the wider one is called for.
        (
            vec![policy("cpol:a", "", &[&create("['*']")]), policy("cpol:b", "", &[&validates("[Secret]")])],
            vec![
                "/v1 Namespaced: secrets: CONNECT,DELETE,UPDATE".to_owned(),
                "*/* *: *,pods/ephemeralcontainers: CREATE".to_owned(),
            ],
        ),
        // What two policies want of one kind is one rule.
        (
            vec![policy("cpol:a", "", &[&create("[Secret]")]), policy("cpol:b", "", &[&validates("[Secret]")])],
            vec![format!("/v1 Namespaced: secrets: {ALL}")],
        ),
        (
            vec![
                policy("cpol:a", "", &[&create("['*/*']")]),
                policy("cpol:b", "", &[&create("[Pod/exec, '*/scale', 'Deployment/*']")]),
            ],
            vec!["*/* *: */*: CREATE".to_owned()],
        ),
    ] {
        assert_eq!(rules(&webhooks(&policies, "validating")[0]), want);
    }
}

#[test]
fn entries_depend_on_failure_policies_and_not_on_policies() {
    let rule = validates("[Secret]");
    let many: Vec<Value> = (0..200)
        .map(|i| policy(&format!("cpol:p{i}"), if i % 2 == 0 { "failurePolicy: Ignore" } else { "" }, &[&rule]))
        .collect();
    let found = webhooks(&many, "validating");
    let names: Vec<_> = found.iter().map(|w| w.str_at(&["name"]).unwrap()).collect();
    assert_eq!(names, ["validate.kyverno.svc-fail", "validate.kyverno.svc-ignore"]);
}

#[test]
fn the_longest_timeout_counts_and_never_less_than_the_flag() {
    let rule = validates("[Secret]");
    let timeout = |specs: &[&str]| {
        let documents: Vec<_> =
            specs.iter().enumerate().map(|(i, spec)| policy(&format!("cpol:p{i}"), spec, &[&rule])).collect();
        webhooks(&documents, "validating")[0].get("timeoutSeconds").and_then(Value::as_i64).unwrap()
    };
    assert_eq!(timeout(&[""]), 10);
    assert_eq!(timeout(&["webhookConfiguration: {timeoutSeconds: 5}"]), 10);
    assert_eq!(timeout(&["webhookConfiguration: {timeoutSeconds: 20}", "webhookTimeoutSeconds: 15"]), 20);
}

#[test]
fn policies_with_conditions_of_their_own_get_a_webhook_of_their_own() {
    let spec = "webhookConfiguration: {timeoutSeconds: 5, matchConditions: [{name: a, expression: 'true'}]}";
    let rule = validates("[Secret]");
    let documents = [
        policy("cpol:mine", spec, &[&rule]),
        policy("cpol:other", "", &[&rule]),
        policy("pol/a-b:c", spec, &[&rule]),
        policy("pol/a:b-c", spec, &[&rule]),
    ];
    let found = webhooks(&documents, "validating");
    let lines: Vec<String> = found
        .iter()
        .map(|w| {
            let text = |keys: &[&str]| w.str_at(keys).unwrap_or("-").to_owned();
            let conditions = w.get("matchConditions").and_then(Value::as_array).map_or(0, <[Value]>::len);
            let timeout = w.get("timeoutSeconds").and_then(Value::as_i64).unwrap();
            let (path, _) = proof::split(w.str_at(&["clientConfig", "service", "path"]).unwrap());
            format!("{} {path} {timeout} {conditions}", text(&["name"]))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "validate.kyverno.svc-fail /validate/fail 10 0",
            "validate.kyverno.svc-fail-finegrained-mine /validate/fail/finegrained/mine 5 1",
            "validate.kyverno.svc-fail-finegrained-a-b-c /validate/fail/finegrained/a-b/c 5 1",
            // Equal names are refused by the API server.
            "validate.kyverno.svc-fail-finegrained-a-b-c-2 /validate/fail/finegrained/a/b-c 5 1",
        ]
    );
}

#[test]
fn conditions_of_a_namespaced_policy_are_not_asked_about_other_namespaces() {
    // One that fails to evaluate denies the request: `object.metadata.labels.x == ''` does for all without labels.
    let spec = "webhookConfiguration: {matchConditions: [{name: a, expression: 'object.metadata.labels.x == \"\"'}]}";
    let documents =
        [policy("pol/team-a:p", spec, &[&validates("[Secret]")]), policy("cpol:p", spec, &[&validates("[Secret]")])];
    let own = Value::from_json(r#"{"key":"kubernetes.io/metadata.name","operator":"In","values":["team-a"]}"#).unwrap();
    let bound: Vec<(String, bool)> = webhooks(&documents, "validating")
        .iter()
        .map(|webhook| {
            let expressions = webhook.at(&["namespaceSelector", "matchExpressions"]).and_then(Value::as_array).unwrap();
            (webhook.str_at(&["name"]).unwrap().to_owned(), expressions.contains(&own))
        })
        .collect();
    assert_eq!(
        bound,
        [
            ("validate.kyverno.svc-fail-finegrained-team-a-p".into(), true),
            ("validate.kyverno.svc-fail-finegrained-p".into(), false),
        ]
    );
}

#[test]
fn the_engines_namespace_is_excluded_whatever_the_config_map_says() {
    let document = policy("cpol:p", "", &[&validates("['*']")]);
    for selector in
        ["null", "{}", r#"{"matchLabels":{"a":"b"}}"#, r#"{"matchExpressions":[{"key":"x","operator":"Exists"}]}"#]
    {
        let mut config = Config::default_for("kyverno");
        config.webhooks.namespace_selector = Some(Value::from_json(selector).unwrap()).filter(|v| !v.is_null());
        let settings = WebhookSettings { namespace: "own".into(), ..WebhookSettings::default() };
        for (name, configuration) in planned(std::slice::from_ref(&document), &settings, &config) {
            for webhook in configuration.get("webhooks").and_then(Value::as_array).unwrap() {
                if rules(webhook).iter().all(|rule| !rule.contains("*/*")) {
                    // Webhooks for Ephor's own kinds keep nobody from starting.
                    continue;
                }
                let expressions = webhook.at(&["namespaceSelector", "matchExpressions"]).and_then(Value::as_array);
                let own =
                    Value::from_json(r#"{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["own"]}"#);
                assert!(expressions.unwrap().contains(&own.unwrap()), "{name} {selector}");
            }
        }
    }
}

#[test]
fn paths_for_resources_end_in_the_token_and_others_do_not() {
    let token = PathToken::of_key(b"key");
    let documents = [policy("cpol:p", "", &[&validates("[Secret]")])];
    for endpoint in [Endpoint::Service { port: 443 }, Endpoint::Url("https://10.0.0.1:9443".into())] {
        let settings = WebhookSettings { endpoint, ..WebhookSettings::default() };
        let config = Config::default_for("kyverno");
        let planned = planned_with(&documents, &settings, &config, &token);
        let webhooks = planned.iter().filter_map(|(_, document)| document.get("webhooks")?.as_array()).flatten();
        let path = |webhook: &Value| {
            let client = webhook.get("clientConfig").unwrap();
            client.str_at(&["service", "path"]).or_else(|| client.str_at(&["url"])).unwrap().to_owned()
        };
        let (proven, others): (Vec<_>, Vec<_>) = webhooks.map(path).partition(|path| path.contains("/proven/"));
        assert!(proven.len() == 1 && proven[0].ends_with(&token.end("/validate/fail")), "{proven:?}");
        assert!(!others.is_empty());
    }
}

#[test]
fn failure_can_be_ignored_for_all() {
    let settings = WebhookSettings { failure_mode: FailureMode::Ignore, ..WebhookSettings::default() };
    let document = policy("cpol:p", "failurePolicy: Fail", &[&validates("[Pod]")]);
    let planned = planned(&[document], &settings, &Config::default_for("kyverno"));
    let (_, validating) = planned.iter().find(|(name, _)| name == "kyverno-resource-validating-webhook-cfg").unwrap();
    let webhook = &validating.get("webhooks").and_then(Value::as_array).unwrap()[0];
    assert_eq!(webhook.str_at(&["name"]), Some("validate.kyverno.svc-ignore"));
    assert_eq!(webhook.str_at(&["failurePolicy"]), Some("Ignore"));
    let (path, _) = proof::split(webhook.str_at(&["clientConfig", "service", "path"]).unwrap());
    assert_eq!(path, "/validate/ignore");
}

#[test]
fn a_policy_that_admission_does_not_ask_is_not_registered() {
    let stored = ephor_runtime::policies::StoredPolicy::new(policy(
        "cpol:p",
        "admission: false, background: true",
        &[&validates("[Pod]")],
    ));
    assert!(stored.program.is_some());
    assert!(super::super::Demand::of(&stored).is_none());
}

#[test]
fn of_a_refused_policy_the_sound_rules_are_registered() {
    let faulty = "match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {patern: {}}";
    let found = webhooks(&[policy("cpol:p", "", &[faulty, &validates("[Secret]")])], "validating");
    assert_eq!(rules(&found[0]), [format!("/v1 Namespaced: secrets: {ALL}")]);
}

#[test]
fn the_api_servers_own_requests_can_be_left_out_where_failure_would_refuse_them() {
    let settings = WebhookSettings { bootstrap_requests: BootstrapRequests::Excluded, ..WebhookSettings::default() };
    let rule = validates("[Pod]");
    let documents = [policy("cpol:a", "", &[&rule]), policy("cpol:b", "failurePolicy: Ignore", &[&rule])];
    let planned = planned(&documents, &settings, &Config::default_for("kyverno"));
    let (_, validating) = planned.last().unwrap();
    let conditions = |i: usize| {
        let webhook = &validating.get("webhooks").and_then(Value::as_array).unwrap()[i];
        webhook.get("matchConditions").and_then(Value::as_array).map_or(0, <[Value]>::len)
    };
    assert_eq!((conditions(0), conditions(1)), (1, 0));
}

#[test]
fn in_shadow_nothing_is_refused_and_nothing_of_the_other_engine_is_touched() {
    let settings = WebhookSettings { serving: Serving::Shadow, ..WebhookSettings::default() };
    let document = policy("cpol:p", "failurePolicy: Fail", &[&validates("[Pod]")]);
    let planned = planned(&[document], &settings, &Config::default_for("kyverno"));
    let names: Vec<_> = planned.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ephor-shadow-resource-mutating-webhook-cfg", "ephor-shadow-resource-validating-webhook-cfg"]);
    for (_, configuration) in &planned {
        assert_eq!(configuration.at(&["metadata", "labels", "webhook.kyverno.io/managed-by"]), None);
        for webhook in configuration.get("webhooks").and_then(Value::as_array).unwrap() {
            assert_eq!(webhook.str_at(&["failurePolicy"]), Some("Ignore"));
        }
    }
}

#[test]
fn all_configurations() {
    let documents = [
        policy(
            "cpol:p",
            "",
            &[&validates("[Secret]"), &format!("match: {{any: [{{resources: {{kinds: [Secret]}}}}]}}, {MUTATE}")],
        ),
        policy("cpol:q", "failurePolicy: Ignore", &[&validates("[Node]")]),
    ];
    let planned = planned(&documents, &WebhookSettings::default(), &Config::default_for("kyverno"));
    insta::assert_snapshot!(texts(&planned));
}

#[test]
fn static_configurations_outside_of_the_cluster() {
    let settings = WebhookSettings {
        registered_from: RegisteredFrom::Static,
        endpoint: Endpoint::Url("https://127.0.0.1:9443".into()),
        ..WebhookSettings::default()
    };
    let planned = planned(&[], &settings, &Config::default_for("kyverno"));
    let resources: Vec<_> = planned.into_iter().filter(|(name, _)| name.contains("resource")).collect();
    insta::assert_snapshot!(texts(&resources));
}

fn texts(planned: &[(String, Value)]) -> String {
    planned.iter().map(|(_, document)| ephor_expr::yaml::to_yaml(document)).collect::<Vec<_>>().join("---\n")
}
