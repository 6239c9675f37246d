//! The `CustomResourceDefinition`s of Kyverno's kinds and of reports, derived from the types that the engine
//! decodes and that reports consist of.
//!
//! Names, versions, columns and subresources are upstream's, so that stored objects, clients and scripts keep working.
//! Specs keep fields that no type knows: the policy webhook refuses them with their path, where pruning would take
//! them out without a word. Nothing is defaulted into stored objects but what columns show and scripts read.

mod cel;
pub mod report;
mod structural;

use std::collections::BTreeMap;

use ephor_engine::policy::{CleanupSpec, ExceptionSpec, GlobalContextSpec, PolicyCondition, PolicyStatus, Spec};
use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::update_request::{State, UpdateRequestSpec, UpdateRequestStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use structural::{UnknownFields, schema_of};

/// One kind with its versions.
struct Definition {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_name: &'static str,
    namespaced: bool,
    description: &'static str,
    versions: &'static [Version],
    columns: &'static [Column],
    content: Content,
}

/// What an object has beside its metadata.
enum Content {
    /// A spec, and a status.
    Spec {
        spec: fn() -> Value,
        /// Whether an object must have a spec; upstream does not ask that of its own objects.
        required: bool,
        status: Option<fn() -> Value>,
    },
    /// Other members.
    Members {
        members: fn() -> Map,
        /// Whether clients may write a status apart, though there is none.
        status: bool,
    },
}

struct Version {
    name: &'static str,
    state: VersionState,
}

#[derive(PartialEq, Eq)]
enum VersionState {
    Stored,
    Served,
    /// Objects of old clusters may name it as stored.
    Retired,
}

/// A column of `kubectl get`.
struct Column {
    name: &'static str,
    kind: &'static str,
    path: &'static str,
    /// Only with `-o wide`.
    wide: bool,
}

const fn column(name: &'static str, kind: &'static str, path: &'static str) -> Column {
    Column { name, kind, path, wide: false }
}

const fn wide(name: &'static str, kind: &'static str, path: &'static str) -> Column {
    Column { name, kind, path, wide: true }
}

const fn stored(name: &'static str) -> Version {
    Version { name, state: VersionState::Stored }
}

const fn served(name: &'static str) -> Version {
    Version { name, state: VersionState::Served }
}

const fn retired(name: &'static str) -> Version {
    Version { name, state: VersionState::Retired }
}

const POLICY_VERSIONS: &[Version] = &[stored("v1"), served("v2beta1")];
const POLICY_COLUMNS: &[Column] = &[
    column("ADMISSION", "boolean", ".spec.admission"),
    column("BACKGROUND", "boolean", ".spec.background"),
    column("READY", "string", r#".status.conditions[?(@.type == "Ready")].status"#),
    column("AGE", "date", ".metadata.creationTimestamp"),
    wide("FAILURE POLICY", "string", ".spec.failurePolicy"),
    wide("VALIDATE", "integer", ".status.rulecount.validate"),
    wide("MUTATE", "integer", ".status.rulecount.mutate"),
    wide("GENERATE", "integer", ".status.rulecount.generate"),
    wide("VERIFY IMAGES", "integer", ".status.rulecount.verifyimages"),
    column("MESSAGE", "string", r#".status.conditions[?(@.type == "Ready")].message"#),
];
const CLEANUP_VERSIONS: &[Version] = &[stored("v2"), served("v2beta1")];
const CLEANUP_COLUMNS: &[Column] =
    &[column("Schedule", "string", ".spec.schedule"), column("Age", "date", ".metadata.creationTimestamp")];

const KYVERNO: &str = "kyverno.io";
const EPHEMERAL_COLUMNS: &[Column] = &[
    column("Source", "string", r".metadata.labels['audit\.kyverno\.io/source']"),
    column("Group", "string", r".metadata.labels['audit\.kyverno\.io/resource\.group']"),
    column("Kind", "string", r".metadata.labels['audit\.kyverno\.io/resource\.kind']"),
    column("Owner", "string", ".spec.owner.name"),
    column("Pass", "integer", ".spec.summary.pass"),
    column("Fail", "integer", ".spec.summary.fail"),
    column("Warn", "integer", ".spec.summary.warn"),
    column("Error", "integer", ".spec.summary.error"),
    column("Skip", "integer", ".spec.summary.skip"),
    column("Age", "date", ".metadata.creationTimestamp"),
];
const REPORT_COLUMNS: &[Column] = &[
    column("Kind", "string", ".scope.kind"),
    column("Name", "string", ".scope.name"),
    column("Pass", "integer", ".summary.pass"),
    column("Fail", "integer", ".summary.fail"),
    column("Warn", "integer", ".summary.warn"),
    column("Error", "integer", ".summary.error"),
    column("Skip", "integer", ".summary.skip"),
    column("Age", "date", ".metadata.creationTimestamp"),
];
const EPHEMERAL: Content = Content::Spec { spec: kept::<report::Ephemeral>, required: true, status: Some(anything) };
const OPEN_REPORTS: &str = "openreports.io";
const REPORTS: &str = "wgpolicyk8s.io";

static DEFINITIONS: [Definition; 13] = [
    Definition {
        group: KYVERNO,
        kind: "CleanupPolicy",
        plural: "cleanuppolicies",
        short_name: "cleanpol",
        namespaced: true,
        description: "Deletes objects of its namespace on a schedule.",
        versions: CLEANUP_VERSIONS,
        columns: CLEANUP_COLUMNS,
        content: Content::Spec { spec: kept::<CleanupSpec>, required: true, status: Some(pruned::<CleanupStatus>) },
    },
    Definition {
        group: KYVERNO,
        kind: "ClusterCleanupPolicy",
        plural: "clustercleanuppolicies",
        short_name: "ccleanpol",
        namespaced: false,
        description: "Deletes objects on a schedule.",
        versions: CLEANUP_VERSIONS,
        columns: CLEANUP_COLUMNS,
        content: Content::Spec { spec: kept::<CleanupSpec>, required: true, status: Some(pruned::<CleanupStatus>) },
    },
    Definition {
        group: KYVERNO,
        kind: "ClusterPolicy",
        plural: "clusterpolicies",
        short_name: "cpol",
        namespaced: false,
        description: "Validates, mutates and generates objects of the whole cluster.",
        versions: POLICY_VERSIONS,
        columns: POLICY_COLUMNS,
        content: Content::Spec { spec: policy_spec, required: true, status: Some(pruned::<PolicyStatus>) },
    },
    Definition {
        group: KYVERNO,
        kind: "GlobalContextEntry",
        plural: "globalcontextentries",
        short_name: "gctxentry",
        namespaced: false,
        description: "Cached data that the rules of all policies can read.",
        versions: &[served("v2"), served("v2alpha1"), stored("v2beta1")],
        columns: &[
            column("AGE", "date", ".metadata.creationTimestamp"),
            column("REFRESH INTERVAL", "string", ".spec.apiCall.refreshInterval"),
            column("LAST REFRESH", "date", ".status.lastRefreshTime"),
        ],
        content: Content::Spec {
            spec: global_context_spec,
            required: true,
            status: Some(pruned::<GlobalContextStatus>),
        },
    },
    Definition {
        group: KYVERNO,
        kind: "Policy",
        plural: "policies",
        short_name: "pol",
        namespaced: true,
        description: "Validates, mutates and generates objects of its namespace.",
        versions: POLICY_VERSIONS,
        columns: POLICY_COLUMNS,
        content: Content::Spec { spec: policy_spec, required: true, status: Some(pruned::<PolicyStatus>) },
    },
    Definition {
        group: KYVERNO,
        kind: "PolicyException",
        plural: "policyexceptions",
        short_name: "polex",
        namespaced: true,
        description: "Excepts objects from rules of policies.",
        versions: &[stored("v2"), served("v2beta1")],
        columns: &[],
        content: Content::Spec { spec: kept::<ExceptionSpec>, required: true, status: None },
    },
    Definition {
        group: KYVERNO,
        kind: "UpdateRequest",
        plural: "updaterequests",
        short_name: "ur",
        namespaced: true,
        description: "Work of generate and mutate-existing rules that admission hands over.",
        versions: &[retired("v1beta1"), stored("v2")],
        columns: &[
            column("Policy", "string", ".spec.policy"),
            column("RuleType", "string", ".spec.requestType"),
            column("ResourceKind", "string", ".spec.resource.kind"),
            column("ResourceName", "string", ".spec.resource.name"),
            column("ResourceNamespace", "string", ".spec.resource.namespace"),
            column("status", "string", ".status.state"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        content: Content::Spec { spec: pruned::<UpdateRequestSpec>, required: false, status: Some(request_status) },
    },
    Definition {
        group: "reports.kyverno.io",
        kind: "ClusterEphemeralReport",
        plural: "clusterephemeralreports",
        short_name: "cephr",
        namespaced: false,
        description: "Results about a cluster-scoped object, until its report has them.",
        versions: &[stored("v1")],
        columns: EPHEMERAL_COLUMNS,
        content: EPHEMERAL,
    },
    Definition {
        group: "reports.kyverno.io",
        kind: "EphemeralReport",
        plural: "ephemeralreports",
        short_name: "ephr",
        namespaced: true,
        description: "Results about an object, until its report has them.",
        versions: &[stored("v1")],
        columns: EPHEMERAL_COLUMNS,
        content: EPHEMERAL,
    },
    Definition {
        group: REPORTS,
        kind: "ClusterPolicyReport",
        plural: "clusterpolicyreports",
        short_name: "cpolr",
        namespaced: false,
        description: "What policies say about a cluster-scoped object.",
        versions: &[stored("v1alpha2")],
        columns: REPORT_COLUMNS,
        content: Content::Members { members: report::report, status: true },
    },
    Definition {
        group: REPORTS,
        kind: "PolicyReport",
        plural: "policyreports",
        short_name: "polr",
        namespaced: true,
        description: "What policies say about an object.",
        versions: &[stored("v1alpha2")],
        columns: REPORT_COLUMNS,
        content: Content::Members { members: report::report, status: true },
    },
    Definition {
        group: OPEN_REPORTS,
        kind: "ClusterReport",
        plural: "clusterreports",
        short_name: "creps",
        namespaced: false,
        description: "What policies say about a cluster-scoped object.",
        versions: &[stored("v1alpha1")],
        columns: REPORT_COLUMNS,
        content: Content::Members { members: report::report, status: false },
    },
    Definition {
        group: OPEN_REPORTS,
        kind: "Report",
        plural: "reports",
        short_name: "reps",
        namespaced: true,
        description: "What policies say about an object.",
        versions: &[stored("v1alpha1")],
        columns: REPORT_COLUMNS,
        content: Content::Members { members: report::report, status: false },
    },
];

/// The status of a cleanup policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CleanupStatus {
    /// What is known about the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<PolicyCondition>>,
    /// When the policy last ran, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_execution_time: Option<Str>,
}

/// The status of a `GlobalContextEntry`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalContextStatus {
    /// Whether the data is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<PolicyCondition>>,
    /// When a call last succeeded, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_refresh_time: Option<Str>,
    /// Deprecated for `conditions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
}

/// The schema of a status that is never written.
fn anything() -> Value {
    kept::<BTreeMap<String, String>>()
}

fn kept<T: JsonSchema>() -> Value {
    schema_of::<T>(UnknownFields::Kept)
}

fn pruned<T: JsonSchema>() -> Value {
    schema_of::<T>(UnknownFields::Pruned)
}

/// A policy shows in `kubectl get` whether it applies at admission and in the background, also where it does not say
/// so: the columns show what is stored.
fn policy_spec() -> Value {
    let mut spec = kept::<Spec>();
    for name in ["admission", "background"] {
        default(&mut spec, &[name], true);
    }
    spec
}

/// `kubectl get ur` shows a state from the beginning. Admission writes none, which would be a second call for each
/// request: one without a state is pending.
fn request_status() -> Value {
    let mut status = pruned::<UpdateRequestStatus>();
    default(&mut status, &["state"], State::Pending.as_str());
    if let Some(status) = status.as_object_mut() {
        status.insert("default", Map::new());
    }
    status
}

/// Gives the field at `field` of a schema a default.
fn default(schema: &mut Value, field: &[&str], value: impl Into<Value>) {
    let path = field.iter().fold(Path::root(), |path, name| path.key("properties").key(*name));
    if let Some(field) = path.lookup_mut(schema).and_then(Value::as_object_mut) {
        field.insert("default", value);
    }
}

/// Scripts and tests of upstream read the method of a stored entry. An entry has one source, which the API server
/// already says (globalcontext/validate-crd).
fn global_context_spec() -> Value {
    let mut spec = kept::<GlobalContextSpec>();
    let needs = |source: &str| Value::from([("required", Value::from(vec![source]))]);
    if let Some(members) = spec.as_object_mut() {
        members.insert("oneOf", Value::array(vec![needs("kubernetesResource"), needs("apiCall")]));
    }
    default(&mut spec, &["apiCall", "method"], "GET");
    spec
}

fn definitions() -> impl Iterator<Item = &'static Definition> {
    DEFINITIONS.iter().chain(&cel::DEFINITIONS)
}

/// All definitions.
pub fn all() -> Vec<Value> {
    definitions().map(Definition::object).collect()
}

/// The definitions as files of the chart: name and text.
pub fn files() -> Vec<(String, String)> {
    definitions()
        .map(|definition| {
            let text = ephor_expr::yaml::to_yaml(&definition.object());
            (format!("{}_{}.yaml", definition.group, definition.plural), text)
        })
        .collect()
}

impl Definition {
    fn object(&self) -> Value {
        let mut properties: Map = [
            ("apiVersion", "string", "The version of this form of the object."),
            ("kind", "string", "The kind of the object."),
        ]
        .into_iter()
        .map(|(name, kind, text)| {
            (Str::new_static(name), Value::from([("type", Value::from(kind)), ("description", text.into())]))
        })
        .collect();
        properties.insert("metadata", Value::from([("type", Value::from("object"))]));
        let mut required = None;
        match &self.content {
            Content::Spec { spec, required: needed, status } => {
                properties.insert("spec", spec());
                if let Some(status) = status {
                    properties.insert("status", status());
                }
                required = needed.then_some("spec");
            }
            Content::Members { members, .. } => {
                for (name, schema) in members().iter() {
                    properties.insert(name.clone(), schema.clone());
                }
            }
        }
        let mut schema = Map::new();
        schema.insert("type", "object");
        schema.insert("description", self.description);
        schema.insert("properties", properties);
        if let Some(required) = required {
            schema.insert("required", vec![required]);
        }
        let schema = Value::from(schema);
        let names = Value::from([
            ("kind", Value::from(self.kind)),
            ("listKind", format!("{}List", self.kind).into()),
            ("plural", self.plural.into()),
            ("singular", self.kind.to_ascii_lowercase().into()),
            (
                "shortNames",
                Some(self.short_name).filter(|name| !name.is_empty()).into_iter().collect::<Vec<_>>().into(),
            ),
            (
                "categories",
                if [KYVERNO, cel::GROUP].contains(&self.group) { vec!["kyverno"] } else { Vec::new() }.into(),
            ),
        ]);
        let versions: Vec<Value> = self.versions.iter().map(|version| self.version(version, &schema)).collect();
        Value::from([
            ("apiVersion", Value::from("apiextensions.k8s.io/v1")),
            ("kind", "CustomResourceDefinition".into()),
            (
                "metadata",
                Value::from([
                    ("name", Value::from(format!("{}.{}", self.plural, self.group))),
                    // With a definition all objects of its kind go: an uninstalled release leaves users their policies.
                    ("annotations", Value::from([("helm.sh/resource-policy", Value::from("keep"))])),
                ]),
            ),
            (
                "spec",
                Value::from([
                    ("group", Value::from(self.group)),
                    ("scope", if self.namespaced { "Namespaced" } else { "Cluster" }.into()),
                    ("names", names),
                    ("versions", versions.into()),
                ]),
            ),
        ])
    }

    fn version(&self, version: &Version, schema: &Value) -> Value {
        let mut out = Map::new();
        out.insert("name", version.name);
        out.insert("served", version.state != VersionState::Retired);
        out.insert("storage", version.state == VersionState::Stored);
        out.insert("schema", Value::from([("openAPIV3Schema", schema.clone())]));
        if !self.columns.is_empty() {
            out.insert("additionalPrinterColumns", self.columns.iter().map(Column::object).collect::<Vec<_>>());
        }
        if matches!(self.content, Content::Spec { status: Some(_), .. } | Content::Members { status: true, .. }) {
            out.insert("subresources", Value::from([("status", Map::new().into())]));
        }
        out.into()
    }
}

impl Column {
    fn object(&self) -> Value {
        let mut out: Map = [("name", self.name), ("type", self.kind), ("jsonPath", self.path)]
            .into_iter()
            .map(|(key, text)| (Str::new_static(key), Value::from(text)))
            .collect();
        if self.wide {
            out.insert("priority", 1);
        }
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use ephor_cluster::Discovery;
    use ephor_cluster::discovery::resources_of;

    use super::*;

    #[test]
    fn the_kinds_known_without_definitions_are_those_that_the_definitions_define() {
        let known = Discovery::kubernetes();
        let groups: Vec<&str> = definitions().map(|definition| definition.group).collect();
        let mut expected: Vec<_> =
            known.iter().filter(|resource| groups.contains(&&*resource.group)).cloned().collect();
        let mut defined: Vec<_> = all().iter().flat_map(resources_of).collect();
        for list in [&mut expected, &mut defined] {
            list.sort_by(|a, b| (&a.kind, &a.version).cmp(&(&b.kind, &b.version)));
        }
        assert_eq!(defined, expected);
    }

    #[test]
    fn one_version_of_each_kind_is_stored() {
        for definition in all() {
            let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap();
            let stored = versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true)));
            assert_eq!(stored.count(), 1, "{definition}");
        }
    }

    #[test]
    fn policies_are_stored_with_what_their_columns_show() {
        let defaults = |name: &str| {
            let definitions = all();
            let definition = definitions.iter().find(|d| d.str_at(&["metadata", "name"]) == Some(name)).unwrap();
            let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap();
            let field = |version: &Value, name: &str| {
                let spec = ["schema", "openAPIV3Schema", "properties", "spec", "properties", name, "default"];
                version.at(&spec).cloned()
            };
            let both = versions.iter().flat_map(|version| ["admission", "background"].map(|name| field(version, name)));
            both.collect::<Vec<_>>()
        };
        for name in ["clusterpolicies.kyverno.io", "policies.kyverno.io"] {
            assert_eq!(defaults(name), vec![Some(Value::Bool(true)); 4], "{name}");
        }
    }

    #[test]
    fn unknown_fields_of_a_rule_are_kept_and_those_of_a_status_are_not() {
        let definitions = all();
        let policy =
            definitions.iter().find(|d| d.str_at(&["metadata", "name"]) == Some("policies.kyverno.io")).unwrap();
        let versions = Path::root().key("spec").key("versions").index(0).key("schema").key("openAPIV3Schema");
        let preserves = |keys: &[&str]| {
            let schema = versions.keys(keys).lookup(policy).unwrap();
            schema.get("x-kubernetes-preserve-unknown-fields").is_some()
        };
        assert!(preserves(&["properties", "spec"]));
        assert!(preserves(&["properties", "spec", "properties", "rules", "items", "properties", "mutate"]));
        assert!(!preserves(&["properties", "status"]));
    }
}
