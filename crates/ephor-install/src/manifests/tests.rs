//! What is rendered for which values.

use std::collections::BTreeMap;

use ephor_runtime::settings::AllSettings;

use super::*;

const FROM_KYVERNO: &str = include_str!("../../../../charts/ephor/examples/from-kyverno.yaml");

fn rendered(settings: &[&str]) -> Vec<Value> {
    let settings = settings.iter().map(|&text| text.to_owned()).collect();
    render(&Release { settings, ..Release::default() }).unwrap().objects
}

fn names(objects: &[Value], kind: &str) -> Vec<String> {
    let of_kind = objects.iter().filter(|object| object.str_at(&["kind"]) == Some(kind));
    of_kind.filter_map(|object| object.str_at(&["metadata", "name"]).map(str::to_owned)).collect()
}

#[test]
fn the_default_installation() {
    insta::assert_snapshot!(to_text(&rendered(&["crds.install=false"])));
}

#[test]
fn switches_leave_parts_out() {
    let everything = rendered(&[]);
    assert_eq!(names(&everything, "CustomResourceDefinition").len(), 22);
    assert_eq!(names(&everything, "PodDisruptionBudget").len(), 0);
    assert_eq!(
        names(&everything, "Deployment"),
        [
            "kyverno-admission-controller",
            "kyverno-background-controller",
            "kyverno-cleanup-controller",
            "kyverno-reports-controller"
        ]
    );

    let less = rendered(&[
        "crds.install=false,backgroundController.enabled=false,reportsController.enabled=false",
        "cleanupController.enabled=false",
        "admissionController.replicas=3",
    ]);
    assert_eq!(names(&less, "CustomResourceDefinition").len(), 0);
    assert_eq!(names(&less, "Deployment"), ["kyverno-admission-controller"]);
    assert_eq!(names(&less, "PodDisruptionBudget"), ["kyverno-admission-controller"]);
    assert!(names(&less, "ServiceAccount").iter().all(|name| !name.contains("background")));
}

#[test]
fn all_in_one_is_one_process_with_one_account() {
    let objects = rendered(&["allInOne.enabled=true,cleanupController.enabled=false,fullnameOverride=own"]);
    assert_eq!(names(&objects, "Deployment"), ["own-admission-controller"]);
    assert_eq!(names(&objects, "ServiceAccount"), ["own-admission-controller"]);
    for binding in objects.iter().filter(|object| object.get("subjects").is_some()) {
        let subjects = binding.get("subjects").and_then(Value::as_array).unwrap();
        let subject = subjects.iter().filter_map(|subject| subject.str_at(&["name"]));
        assert_eq!(subject.collect::<Vec<_>>(), ["own-admission-controller"], "{binding:?}");
    }
    let bindings = names(&objects, "ClusterRoleBinding");
    for role in ["admission", "background", "reports"] {
        assert!(bindings.contains(&format!("own:{role}-controller")), "{role}: {bindings:?}");
    }

    let containers = ["spec", "template", "spec", "containers"];
    let deployment = objects.iter().find(|object| object.str_at(&["kind"]) == Some("Deployment")).unwrap();
    let container = deployment.at(&containers).and_then(Value::as_array).unwrap().first().unwrap();
    let arguments = container.get("args").and_then(Value::as_array).unwrap();
    let arguments: Vec<String> = arguments.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect();
    assert_eq!(arguments[..3], ["serve", "all", "--roles=admission,background,reports"]);
    let settings = AllSettings::parse(&arguments[2..], &BTreeMap::new()).unwrap();
    assert_eq!(settings.admission.background_account, "system:serviceaccount:kyverno:own-admission-controller");
    assert!(settings.background.is_some() && settings.reports.is_some() && settings.cleanup.is_none());

    let settings = vec!["allInOne.enabled=true,reports.storage=aggregated".to_owned()];
    let error = render(&Release { settings, ..Release::default() }).unwrap_err();
    assert!(error.to_string().contains("reports.storage must be stored"), "{error}");
}

#[test]
fn reports_in_memory_have_a_service_and_rights_and_no_definitions() {
    let objects = rendered(&["reports.storage=aggregated,openreports.installCrds=true,fullnameOverride=own"]);
    let definitions = names(&objects, "CustomResourceDefinition");
    assert!(definitions.iter().all(|name| !name.contains("policyreports") && !name.contains("openreports")));
    assert!(definitions.contains(&"ephemeralreports.reports.kyverno.io".to_owned()));
    assert!(names(&objects, "Service").contains(&"own-reports-api".to_owned()));
    assert!(names(&objects, "ClusterRoleBinding").contains(&"own:reports-controller:auth-delegator".to_owned()));
    assert!(names(&objects, "RoleBinding").contains(&"own:reports-controller:authentication-reader".to_owned()));
    let text = to_text(&objects);
    assert!(text.contains("--reports-storage=aggregated") && text.contains("--reportsServiceName=own-reports-api"));

    let stored = rendered(&[]);
    assert!(!names(&stored, "Service").contains(&"kyverno-reports-api".to_owned()));
    assert!(!to_text(&stored).contains("system:auth-delegator"));
    let settings = vec!["reports.storage=none".to_owned()];
    let error = render(&Release { settings, ..Release::default() }).unwrap_err();
    assert!(error.to_string().contains("reports.storage"), "{error}");
}

#[test]
fn without_a_replica_nothing_is_rendered() {
    let settings = vec!["admissionController.replicas=0".to_owned()];
    let error = render(&Release { settings, ..Release::default() }).unwrap_err();
    assert!(error.to_string().contains("admissionController.replicas must be at least 1"), "{error}");
}

#[test]
fn no_account_but_that_of_admission_may_create_update_requests() {
    for role in rendered(&["rbac.users=false"]) {
        let (Some(kind @ ("Role" | "ClusterRole")), Some(name)) =
            (role.str_at(&["kind"]), role.str_at(&["metadata", "name"]))
        else {
            continue;
        };
        let has = |rule: &Value, list: &str, word: &str| {
            rule.get(list)
                .and_then(Value::as_array)
                .is_some_and(|words| words.contains(&word.into()) || words.contains(&"*".into()))
        };
        let rules = role.get("rules").and_then(Value::as_array).unwrap_or_default();
        let creates = rules.iter().any(|rule| has(rule, "resources", "updaterequests") && has(rule, "verbs", "create"));
        assert_eq!(creates, (kind, name) == ("Role", "kyverno:admission-controller"), "{kind} {name}");
    }
}

#[test]
fn values_give_no_rights_but_those_that_they_name() {
    let roles = |objects: Vec<Value>| -> Vec<(String, Value)> {
        let named = objects
            .iter()
            .filter(|object| object.get("rules").is_some())
            .map(|role| (role.str_at(&["metadata", "name"]).unwrap().to_owned(), role.get("rules").cloned().unwrap()));
        named.filter(|(name, _)| !name.ends_with(":additional")).collect()
    };
    let mut given = parse_value(FROM_KYVERNO).unwrap();
    // Names of Secrets hold the namespace.
    given.as_object_mut().unwrap().remove("namespaceOverride");
    let (ours, theirs) = (roles(rendered(&[])), roles(rendered_from(&given).objects));
    assert_eq!(ours, theirs);
    assert!(ours.len() > 8, "{}", ours.len());
}

#[test]
fn kinds_are_left_out_one_by_one() {
    let all = names(&rendered(&["openreports.installCrds=true"]), "CustomResourceDefinition");
    assert_eq!(all.len(), crate::crds::files().len());
    let fewer = "crds.groups.kyverno.policies=false,crds.groups.reports.ephemeralreports=false";
    let definitions = names(&rendered(&[fewer, "openreports.installCrds=true"]), "CustomResourceDefinition");
    let gone: Vec<_> = all.iter().filter(|name| !definitions.contains(name)).collect();
    assert_eq!(gone, ["policies.kyverno.io", "ephemeralreports.reports.kyverno.io"]);
}

#[test]
fn a_misspelt_value_is_refused_with_the_nearest() {
    let settings = vec!["admissionController.replics=3,cleanupJobs.any=1".to_owned()];
    let error = render(&Release { settings, ..Release::default() }).unwrap_err();
    let told = "the chart has no value `admissionController.replics` (did you mean `replicas`?)";
    assert_eq!(error.to_string(), told);
    for (setting, nearest) in [
        ("reportsController.resources.limit.memory=1Gi", "did you mean `limits`?"),
        ("reportsController.startupProbe.failureThreshhold=3", "did you mean `failureThreshold`?"),
        ("admissionController.podSecurityContext.runAsUsr=3", "did you mean `runAsUser`?"),
        ("admissionController.container.securityContext.privilegd=true", "did you mean `privileged`?"),
    ] {
        let error = render(&Release { settings: vec![setting.to_owned()], ..Release::default() }).unwrap_err();
        assert!(error.to_string().contains(nearest), "{setting}: {error}");
    }
}

#[test]
fn images_of_kyverno_do_not_take_the_place_of_ephors() {
    let images = |settings: &str| -> Vec<String> {
        let objects = rendered(&["crds.install=false", settings]);
        let deployments = objects.iter().filter(|object| object.str_at(&["kind"]) == Some("Deployment"));
        let containers = deployments
            .filter_map(|object| object.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array));
        containers.filter_map(|list| list[0].str_at(&["image"]).map(str::to_owned)).collect()
    };
    let version = parse_value(chart::CHART).unwrap().str_at(&["appVersion"]).unwrap().to_owned();
    let ours = format!("ghcr.io/ephor-policy/ephor:{version}");
    let digest = format!("sha256:{}", "0".repeat(64));
    let table = [
        ("image.tag=", ours.clone()),
        ("global.image.registry=g.io,image.registry=t.io", format!("g.io/ephor-policy/ephor:{version}")),
        ("image.registry=,image.tag=v2", "ephor-policy/ephor:v2".to_owned()),
        (&*format!("image.digest={digest},image.tag=v2"), format!("ghcr.io/ephor-policy/ephor@{digest}")),
        (
            "admissionController.container.image.repository=kyverno/kyverno,admissionController.container.image.tag=v1",
            ours.clone(),
        ),
        ("admissionController.container.image.repository=mirror/kyverno/kyverno", ours.clone()),
        (
            "admissionController.container.image.repository=mine/ephor,admissionController.container.image.tag=v1",
            "ghcr.io/mine/ephor:v1".to_owned(),
        ),
    ];
    for (settings, expected) in table {
        assert_eq!(images(settings)[0], expected, "{settings}");
    }
    let settings = vec!["backgroundController.image.repository=kyverno/background-controller".to_owned()];
    let ignored = render(&Release { settings, ..Release::default() }).unwrap().ignored;
    assert_eq!(ignored[0].path, "backgroundController.image.repository");
    assert_eq!(ignored.len(), 1);
}

#[test]
fn webhooks_may_be_limited_by_a_list_of_one() {
    let given = parse_value("config: {webhooks: [{objectSelector: {matchLabels: {a: b}}}]}").unwrap();
    let rendered = render(&Release { values: vec![given], ..Release::default() }).unwrap();
    let config = rendered.objects.iter().find(|object| object.str_at(&["metadata", "name"]) == Some("kyverno"));
    let webhooks = config.and_then(|config| config.str_at(&["data", "webhooks"])).unwrap();
    assert!(webhooks.contains(r#""objectSelector":{"matchLabels":{"a":"b"}}"#), "{webhooks}");
}

#[test]
fn flags_and_config_are_what_the_roles_read() {
    let objects = rendered(&["features.policyExceptions.enabled=true,features.policyExceptions.namespace=*"]);
    let (admission, config) = read_by_roles(&objects, "kyverno");
    assert_eq!(admission.common.exceptions, ephor_runtime::policies::ExceptionScope::Everywhere);
    assert_eq!(admission.tls_secret, "kyverno-svc.kyverno.svc.kyverno-tls-pair");
    assert_eq!(config, ephor_runtime::config::Config::default_for("kyverno"));

    let (admission, config) = read_by_roles(&rendered_from(&parse_value(FROM_KYVERNO).unwrap()).objects, "policies");
    assert_eq!(admission.tls_secret, "kyverno-svc.policies.svc.kyverno-tls-pair");
    assert_eq!(admission.background_account, "system:serviceaccount:policies:kyverno-background-controller");
    assert_eq!(config.update_request_threshold, 2000);
}

/// What the roles make of the flags and of the `ConfigMap`.
fn read_by_roles(
    objects: &[Value],
    namespace: &str,
) -> (ephor_runtime::settings::AdmissionSettings, ephor_runtime::config::Config) {
    let find = |kind: &str, name: &str| {
        let of_name = |object: &&Value| object.str_at(&["metadata", "name"]) == Some(name);
        objects.iter().filter(|object| object.str_at(&["kind"]) == Some(kind)).find(of_name).unwrap()
    };
    let arguments = |name: &str| -> Vec<String> {
        let containers = find("Deployment", name).at(&["spec", "template", "spec", "containers"]);
        let list = containers.and_then(Value::as_array).unwrap()[0].get("args").and_then(Value::as_array).unwrap();
        list[2..].iter().filter_map(|argument| argument.as_str().map(str::to_owned)).collect()
    };
    let environment = std::collections::BTreeMap::from([("KYVERNO_NAMESPACE".to_owned(), namespace.to_owned())]);
    let admission =
        ephor_runtime::settings::AdmissionSettings::parse(&arguments("kyverno-admission-controller"), &environment)
            .unwrap();
    ephor_runtime::settings::BackgroundSettings::parse(&arguments("kyverno-background-controller"), &environment)
        .unwrap();
    let data = find("ConfigMap", "kyverno").get("data").and_then(Value::as_object).unwrap();
    let (config, faults) =
        ephor_runtime::config::Config::of_data(data, &ephor_runtime::config::Config::default_for(namespace));
    assert!(faults.is_empty(), "{faults:?}");
    (admission, config)
}

/// The paths of what a values file sets.
fn settings(value: &Value, path: &[Str], found: &mut Vec<Vec<Str>>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter() {
                settings(value, &[path, std::slice::from_ref(name)].concat(), found);
            }
        }
        _ => found.push(path.to_vec()),
    }
}

fn without(value: &Value, path: &[Str]) -> Value {
    let (Value::Object(members), Some((first, rest))) = (value, path.split_first()) else { return value.clone() };
    let kept = members.iter().filter(|(name, _)| !rest.is_empty() || *name != first);
    kept.map(|(name, value)| (name.clone(), if name == first { without(value, rest) } else { value.clone() }))
        .collect::<Map>()
        .into()
}

fn rendered_from(values: &Value) -> Rendered {
    render(&Release { values: vec![values.clone()], ..Release::default() }).unwrap()
}

#[test]
fn a_values_file_of_kyvernos_chart_is_taken_and_no_setting_of_it_is_lost() {
    let given = parse_value(FROM_KYVERNO).unwrap();
    let ignored = rendered_from(&given).ignored;
    // Definitions of kinds are long, and only their own settings change them.
    let objects_of = |values: Value, definitions: bool| {
        let settings = vec![format!("crds.install={definitions}")];
        render(&Release { values: vec![values], settings, ..Release::default() }).unwrap().objects
    };
    let (whole, short) = (objects_of(given.clone(), true), objects_of(given.clone(), false));
    let mut paths = Vec::new();
    settings(&given, &[], &mut paths);
    assert!(paths.len() > 80, "{}", paths.len());
    // What says nothing but the default.
    let defaults = ["fullnameOverride", "crds.install", "policyReportsCleanup.enabled"];
    for path in paths {
        let name = path.iter().map(Str::as_str).collect::<Vec<_>>().join(".");
        if ignored.iter().any(|ignored| ignored.path == name) || defaults.contains(&name.as_str()) {
            continue;
        }
        let (definitions, objects) = if name.starts_with("crds.") { (true, &whole) } else { (false, &short) };
        assert_ne!(&objects_of(without(&given, &path), definitions), objects, "`{name}` has no effect");
    }
}

#[test]
fn settings_without_effect_are_told_of_one_by_one() {
    let given = parse_value(FROM_KYVERNO).unwrap();
    let lines: Vec<_> = rendered_from(&given).ignored.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_defaults_have_every_value_that_the_schema_knows() {
    let schema = parse_value(chart::SCHEMA).unwrap();
    let mut missing = Vec::new();
    undescribed(&schema, &schema, &parse_value(chart::VALUES).unwrap(), "", &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

/// Properties that `values` lacks, but for those that have one value only and those that repeat `features`.
fn undescribed(root: &Value, schema: &Value, values: &Value, path: &str, missing: &mut Vec<String>) {
    let reference = schema.str_at(&["$ref"]).and_then(|reference| reference.rsplit('/').next());
    let schema = reference.and_then(|name| root.at(&["definitions", name])).unwrap_or(schema);
    let properties = schema.get("properties").and_then(Value::as_object).map(|map| map.iter().collect::<Vec<_>>());
    for (name, property) in properties.unwrap_or_default() {
        let path = format!("{path}.{name}");
        let own = ["x-ephor-ignored", "x-ephor-missing"].iter().all(|key| property.get(key).is_none());
        // What is handed to Kubernetes as it is has no defaults here.
        let of_kubernetes = ["probe", "resources", "securityContext", "podSecurityContext"];
        let target = property.str_at(&["$ref"]).and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
        if of_kubernetes.contains(&target) && values.get(name).is_some() {
            continue;
        }
        if !own || name == "featuresOverride" || name == "defaultRegistry" || only_missing(root, property) {
            continue;
        }
        match values.get(name) {
            Some(value) => undescribed(root, property, value, &path, missing),
            None => missing.push(path),
        }
    }
}

/// Whether all that a schema knows has no effect or only one value.
fn only_missing(root: &Value, schema: &Value) -> bool {
    let reference = schema.str_at(&["$ref"]).and_then(|reference| reference.rsplit('/').next());
    let schema = reference.and_then(|name| root.at(&["definitions", name])).unwrap_or(schema);
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| {
        properties.iter().all(|(_, p)| p.get("x-ephor-ignored").is_some() || p.get("x-ephor-missing").is_some())
    })
}

#[test]
fn what_ephor_cannot_do_is_refused_and_not_left_out() {
    let table = [
        (
            "admissionController.tracing.enabled=true",
            "`admissionController.tracing.enabled` is `true`: Ephor does not export traces yet; only false is accepted",
        ),
        (
            "features.tuf.enabled=true",
            "`features.tuf.enabled` is `true`: image verification is not part of Ephor yet; only false is accepted",
        ),
        (
            "features.policyExceptions.enabled=yes",
            "`features.policyExceptions.enabled` is `\"yes\"`: expected true or false",
        ),
        (
            "admissionController.service.port=65536",
            "`admissionController.service.port` is `65536`: expected a whole number from 1 to 65535",
        ),
        (
            "namespaceOverride=a/b",
            "`namespaceOverride` is `\"a/b\"`: expected a text that matches `^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$`",
        ),
        (
            "admissionController.networkPolicy.enabled=null",
            "`admissionController.networkPolicy.enabled` cannot be null",
        ),
        (
            "config.create=false",
            "templates/config.yaml: config.name must say which ConfigMap roles follow when config.create is false",
        ),
    ];
    for (setting, expected) in table {
        let error = render(&Release { settings: vec![setting.to_owned()], ..Release::default() }).unwrap_err();
        assert_eq!(error.to_string(), expected, "{setting}");
    }
}

#[test]
fn nothing_in_a_value_is_a_template_or_a_line_of_yaml() {
    // As deep in quotes as templates put anything.
    let hostile = "x\"\nhostPID: true # {{ .Release.Name }}\\";
    let given = Value::from([
        ("customLabels", Value::from([("team", Value::from(hostile))])),
        (
            "config",
            Value::from([("excludeUsernames", Value::from(vec![hostile])), ("successEventActions", "a".into())]),
        ),
        (
            "grafana",
            Value::from([("enabled", true.into()), ("annotations", Value::from([("a", Value::from(hostile))]))]),
        ),
        (
            "admissionController",
            Value::from([
                ("podAnnotations", Value::from([("a", Value::from(hostile))])),
                ("nodeSelector", Value::from([("a", Value::from(hostile))])),
                (
                    "container",
                    Value::from([
                        ("extraArgs", Value::from([("a", Value::from(hostile))])),
                        (
                            "extraEnvVars",
                            Value::array(vec![Value::from([("name", Value::from("A")), ("value", hostile.into())])]),
                        ),
                    ]),
                ),
            ]),
        ),
    ]);
    let rendered = rendered_from(&given);
    let deployment = |objects: &[Value]| {
        objects.iter().find(|object| object.str_at(&["kind"]) == Some("Deployment")).cloned().unwrap()
    };
    let admission = deployment(&rendered.objects);
    let spec = admission.at(&["spec", "template", "spec"]).unwrap();
    assert!(spec.get("hostPID").is_none());
    assert_eq!(spec.str_at(&["nodeSelector", "a"]), Some(hostile));
    assert_eq!(admission.str_at(&["spec", "template", "metadata", "annotations", "a"]), Some(hostile));
    let containers = spec.get("containers").and_then(Value::as_array).unwrap();
    let arguments = containers[0].get("args").and_then(Value::as_array).unwrap();
    assert_eq!(arguments.last(), Some(&format!("--a={hostile}").into()));
}

#[test]
fn values_files_copied_whole_from_kyvernos_chart_lose_their_templates_and_say_so() {
    let settings = [
        r#"config.resourceFilters={[Event\,*\,*],[ConfigMap\,{{ include "kyverno.namespace" . }}\,*]}"#,
        r#"grafana.enabled=true,grafana.configMapName={{ include "kyverno.fullname" . }}-grafana"#,
    ];
    let settings = settings.iter().map(|&text| text.to_owned()).collect();
    let rendered = render(&Release { settings, ..Release::default() }).unwrap();
    let told: Vec<_> = rendered.ignored.iter().map(|ignored| ignored.path.as_str()).collect();
    assert_eq!(told, ["config.resourceFilters[1]", "grafana.configMapName"]);
    assert!(names(&rendered.objects, "ConfigMap").contains(&"kyverno-grafana".to_owned()));
    let config = rendered.objects.iter().find(|object| object.str_at(&["metadata", "name"]) == Some("kyverno"));
    let filters = config.and_then(|config| config.str_at(&["data", "resourceFilters"])).unwrap();
    assert!(filters.starts_with("[Event,*,*]\n[*/*,kyverno,*]"), "{filters}");
}
