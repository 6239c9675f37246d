//! The manifests of an installation: the chart in `charts/ephor`, rendered as Helm would render it.

mod chart;
mod schema;
mod template;
mod values;

use ephor_expr::yaml::{Limits, parse_value, parse_values, to_yaml};
use ephor_expr::{Map, Str, Value};

pub use schema::{Ignored, ValueFault};
pub use template::TemplateError;
pub use values::SetError;

use schema::Schema;
use template::Templates;

/// What is to be rendered.
#[derive(Debug, Clone)]
pub struct Release {
    /// The namespace that everything goes to, unless the values name another.
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

/// The manifests, and what is to be said about the values.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The namespace of the objects.
    pub namespace: Str,
    /// The objects, in the order in which they are to be created.
    pub objects: Vec<Value>,
    /// Values of Kyverno's chart that have no effect.
    pub ignored: Vec<Ignored>,
}

impl Rendered {
    /// The Namespace itself, which a chart cannot bring.
    pub fn namespace_object(&self) -> Value {
        Value::from([
            ("apiVersion", Value::from("v1")),
            ("kind", "Namespace".into()),
            ("metadata", Value::from([("name", Value::from(self.namespace.clone()))])),
        ])
    }
}

/// Why there are no manifests.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A setting cannot be read.
    #[error(transparent)]
    Setting(#[from] SetError),
    /// The chart does not take the values.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Values(Vec<ValueFault>),
    /// The values do not suit each other.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A file of the chart, or what it renders to, cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
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
    let yaml =
        |file, text| parse_value(text).map_err(|error| InstallError::Unreadable { file, why: error.to_string() });
    let defaults = yaml("values.yaml", chart::VALUES)?;
    let mut given = Value::from(Map::new());
    for values in &release.values {
        // A null stays, to take a default away.
        given = given.overlaid(values);
    }
    for settings in &release.settings {
        values::set(&mut given, settings)?;
    }
    let schema: Schema = serde_json::from_str(chart::SCHEMA)
        .map_err(|error| InstallError::Unreadable { file: "values.schema.json", why: error.to_string() })?;
    let values = values::merged(&defaults, &given);
    let faults = schema.faults(&values);
    if !faults.is_empty() {
        return Err(InstallError::Values(faults));
    }
    let override_of = values.str_at(&["namespaceOverride"]).filter(|name| !name.is_empty());
    let namespace = override_of.map_or_else(|| release.namespace.clone(), Str::new);
    let root = Value::from([
        ("Values", values),
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
                .chain([(Str::new_static(chart::DASHBOARD.0), chart::DASHBOARD.1.into())])
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
            .map_err(|error| InstallError::Unreadable { file, why: error.to_string() })?;
        objects.extend(documents.into_iter().filter(|document| !document.is_null()));
    }
    let place = |object: &Value| {
        let kind = object.str_at(&["kind"]).unwrap_or_default();
        ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
    };
    objects.sort_by_cached_key(place);
    Ok(Rendered { namespace, objects, ignored: schema.ignored(&given) })
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
mod tests;
