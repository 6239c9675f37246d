//! The manifests of an installation: the chart in `charts/ephor`, rendered as Helm would render it.

mod chart;
mod template;
mod values;

use ephor_expr::yaml::{Limits, parse_value, parse_values, to_yaml};
use ephor_expr::{Map, Str, Value};

pub use template::TemplateError;
pub use values::SetError;

use template::Templates;

/// What is to be rendered.
#[derive(Debug, Clone)]
pub struct Release {
    /// The namespace that everything goes to.
    pub namespace: Str,
    /// The name of the release, a label of everything.
    pub name: Str,
    /// Values over the defaults, the later over the earlier.
    pub values: Vec<Value>,
    /// Settings such as `admissionController.replicas=3`, over the values.
    pub settings: Vec<String>,
}

impl Default for Release {
    fn default() -> Self {
        Self {
            namespace: Str::new_static("kyverno"),
            name: Str::new_static("kyverno"),
            values: Vec::new(),
            settings: Vec::new(),
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The objects, in the order in which they are to be created.
    pub objects: Vec<Value>,
    /// Values that the chart does not know: the path, and the nearest that it knows.
    pub unknown: Vec<(String, Option<Str>)>,
}

/// Why there are no manifests.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A setting cannot be read.
    #[error(transparent)]
    Setting(#[from] SetError),
    /// The values do not suit the chart.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// What was rendered is not YAML.
    #[error("{file}: {why}")]
    Yaml {
        /// The file of the chart.
        file: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

/// Kinds in the order in which they are created: what others need comes first. Others follow.
const ORDER: [&str; 12] = [
    "Namespace",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "ConfigMap",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "Deployment",
];

/// The manifests of a release.
pub fn render(release: &Release) -> Result<Rendered, InstallError> {
    let yaml = |file, text| parse_value(text).map_err(|error| InstallError::Yaml { file, why: error.to_string() });
    let defaults = yaml("values.yaml", chart::VALUES)?;
    let mut given = Value::from(Map::new());
    for values in &release.values {
        // A null stays, to take a default away.
        given = given.overlaid(values);
    }
    for settings in &release.settings {
        values::set(&mut given, settings)?;
    }
    let unknown = values::unknown(&given, &defaults);
    let root = Value::from([
        ("Values", values::merged(&defaults, &given)),
        ("Chart", chart_facts(&yaml("Chart.yaml", chart::CHART)?)),
        (
            "Release",
            Value::from([
                ("Name", Value::from(release.name.clone())),
                ("Namespace", release.namespace.clone().into()),
                ("Service", "Helm".into()),
            ]),
        ),
        (
            "Files",
            crate::crds::files()
                .into_iter()
                .map(|(name, text)| (format!("files/crds/{name}").into(), text.into()))
                .collect::<Map>()
                .into(),
        ),
    ]);
    let mut templates = Templates::default();
    for (file, text) in chart::TEMPLATES {
        templates.add(file, text)?;
    }
    let mut objects = Vec::new();
    for (file, _) in chart::TEMPLATES.iter().filter(|(file, _)| !file.starts_with("templates/_")) {
        let text = templates.render(file, &root)?;
        let documents = parse_values(&text, &Limits::default())
            .map_err(|error| InstallError::Yaml { file, why: error.to_string() })?;
        objects.extend(documents.into_iter().filter(|document| !document.is_null()));
    }
    let place = |object: &Value| {
        let kind = object.str_at(&["kind"]).unwrap_or_default();
        ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
    };
    objects.sort_by_cached_key(place);
    Ok(Rendered { objects, unknown })
}

/// The namespace, which a chart cannot bring.
pub fn namespace(release: &Release) -> Value {
    Value::from([
        ("apiVersion", Value::from("v1")),
        ("kind", "Namespace".into()),
        ("metadata", Value::from([("name", Value::from(release.namespace.clone()))])),
    ])
}

/// Objects as one text for `kubectl apply -f -`.
pub fn to_text(objects: &[Value]) -> String {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&to_yaml(object));
    }
    text
}

/// Members of `Chart.yaml` under the names that templates have for them.
fn chart_facts(chart: &Value) -> Value {
    [("Name", "name"), ("Version", "version"), ("AppVersion", "appVersion")]
        .into_iter()
        .map(|(name, key)| (Str::new_static(name), chart.get(key).cloned().unwrap_or_default()))
        .collect::<Map>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(names(&everything, "CustomResourceDefinition").len(), 7);
        assert_eq!(names(&everything, "PodDisruptionBudget").len(), 0);
        assert_eq!(names(&everything, "Deployment"), ["kyverno-admission-controller", "kyverno-background-controller"]);

        let less = rendered(&["crds.install=false,backgroundController.enabled=false,admissionController.replicas=3"]);
        assert_eq!(names(&less, "CustomResourceDefinition").len(), 0);
        assert_eq!(names(&less, "Deployment"), ["kyverno-admission-controller"]);
        assert_eq!(names(&less, "PodDisruptionBudget"), ["kyverno-admission-controller"]);
        assert!(names(&less, "ServiceAccount").iter().all(|name| !name.contains("background")));
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
            let creates =
                rules.iter().any(|rule| has(rule, "resources", "updaterequests") && has(rule, "verbs", "create"));
            assert_eq!(creates, (kind, name) == ("Role", "kyverno:admission-controller"), "{kind} {name}");
        }
    }

    #[test]
    fn a_misspelt_value_is_named_with_the_nearest() {
        let settings = vec!["admissionControler.replicas=3".to_owned()];
        let rendered = render(&Release { settings, ..Release::default() }).unwrap();
        assert_eq!(rendered.unknown, [("admissionControler".to_owned(), Some("admissionController".into()))]);
    }

    #[test]
    fn flags_and_config_are_what_the_roles_read() {
        let objects = rendered(&["features.policyExceptions.enabled=true,features.policyExceptions.namespace=*"]);
        let deployment = |name: &str| {
            objects
                .iter()
                .find(|o| o.str_at(&["kind"]) == Some("Deployment") && o.str_at(&["metadata", "name"]) == Some(name))
                .unwrap()
        };
        let arguments = |name: &str| -> Vec<String> {
            let containers =
                deployment(name).at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array).unwrap();
            containers[0].get("args").and_then(Value::as_array).unwrap()[2..]
                .iter()
                .filter_map(|a| a.as_str().map(str::to_owned))
                .collect()
        };
        let environment = std::collections::BTreeMap::new();
        let admission =
            crate::settings::AdmissionSettings::parse(&arguments("kyverno-admission-controller"), &environment)
                .unwrap();
        assert_eq!(admission.common.exceptions, crate::policies::ExceptionScope::Everywhere);
        assert_eq!(admission.tls_secret, "kyverno-svc.kyverno.svc.kyverno-tls-pair");
        crate::settings::BackgroundSettings::parse(&arguments("kyverno-background-controller"), &environment).unwrap();

        let config = objects
            .iter()
            .find(|o| o.str_at(&["kind"]) == Some("ConfigMap") && o.str_at(&["metadata", "name"]) == Some("kyverno"))
            .unwrap();
        let before = crate::config::Config::default_for("kyverno");
        let (read, faults) =
            crate::config::Config::of_data(config.get("data").and_then(Value::as_object).unwrap(), &before);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(read, before);
    }
}
