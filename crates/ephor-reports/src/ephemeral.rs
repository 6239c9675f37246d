//! `EphemeralReport`s: results that a role leaves for the one that writes reports.
//!
//! The form is upstream's: labels say which object the results are about and which policies took part, annotations its
//! name and namespace. The role that writes reports takes them over and deletes them.

use ephor_engine::policy::{PolicyId, ProgramKind};
use ephor_expr::{Map, Str, Value};

use crate::report::{MANAGED_BY, MANAGER, Scope, summary};

/// The API version of `EphemeralReport` and `ClusterEphemeralReport`.
pub const API_VERSION: &str = "reports.kyverno.io/v1";
/// The longest name that a label can have behind its prefix.
const LONGEST_LABEL: usize = 63;

/// Where results come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A request.
    Admission,
    /// Work in the background.
    Background,
}

/// Results about one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Ephemeral {
    /// What its generated name begins with: the UID of the request, or of the object.
    pub prefix: Str,
    /// Where the results come from.
    pub origin: Origin,
    /// The object. Its UID is empty if it had none yet.
    pub scope: Scope,
    /// The name of its kind in URLs, for example `pods`.
    pub plural: Str,
    /// The policies, each with its version.
    pub policies: Vec<(PolicyId, Str)>,
    /// The rendered results.
    pub results: Vec<Value>,
}

/// The kind for objects in a namespace, or outside of all.
pub fn kind(namespaced: bool) -> &'static str {
    if namespaced { "EphemeralReport" } else { "ClusterEphemeralReport" }
}

impl Ephemeral {
    /// The object to create.
    pub fn object(&self) -> Value {
        let scope = &self.scope;
        let (group, version) = ephor_cluster::resource::split_api_version(&scope.api_version);
        let resource = if group.is_empty() {
            format!("{}.{version}", self.plural)
        } else {
            format!("{}.{version}.{group}", self.plural)
        };
        let mut labels = Map::new();
        labels.insert(MANAGED_BY, MANAGER);
        labels.insert(
            "audit.kyverno.io/source",
            match self.origin {
                Origin::Admission => "admission",
                Origin::Background => "background-scan",
            },
        );
        for (key, text) in [
            ("group", group),
            ("version", version),
            ("kind", &scope.kind),
            ("uid", &scope.uid),
            ("gvr", if self.origin == Origin::Admission { &resource } else { "" }),
        ] {
            // Upstream cuts a long value in two labels; its readers take none of them.
            if (!text.is_empty() || key == "group") && text.len() <= LONGEST_LABEL {
                labels.insert(format!("audit.kyverno.io/resource.{key}"), text);
            }
        }
        for (policy, version) in &self.policies {
            let prefix = match policy.kind {
                ProgramKind::ClusterPolicy => "cpol",
                ProgramKind::Policy => "pol",
                ProgramKind::ValidatingAdmissionPolicy => "vap",
                ProgramKind::MutatingAdmissionPolicy => "map",
                ProgramKind::ValidatingPolicy => "vpol",
                ProgramKind::NamespacedValidatingPolicy => "nvpol",
                ProgramKind::MutatingPolicy => "mpol",
                ProgramKind::NamespacedMutatingPolicy => "nmpol",
                ProgramKind::GeneratingPolicy => "gpol",
                ProgramKind::NamespacedGeneratingPolicy => "ngpol",
                ProgramKind::DeletingPolicy => "dpol",
                ProgramKind::NamespacedDeletingPolicy => "ndpol",
            };
            if policy.name.len() <= LONGEST_LABEL {
                labels.insert(format!("{prefix}.kyverno.io/{}", policy.name), version.clone());
            }
        }
        let mut annotations = Map::new();
        annotations.insert("audit.kyverno.io/resource.name", scope.name.clone());
        annotations.insert("audit.kyverno.io/resource.namespace", scope.namespace.clone());
        let mut metadata = Map::new();
        metadata.insert("generateName", format!("{}-", self.prefix));
        if !scope.namespace.is_empty() {
            metadata.insert("namespace", scope.namespace.clone());
        }
        metadata.insert("labels", labels);
        metadata.insert("annotations", annotations);
        let owner = ["apiVersion", "kind", "name", "uid"].map(|key| (key, Value::from("")));
        let counts = summary(self.results.iter().filter_map(|result| result.str_at(&["result"])));
        Value::from([
            ("apiVersion", API_VERSION.into()),
            ("kind", kind(!scope.namespace.is_empty()).into()),
            ("metadata", metadata.into()),
            (
                "spec",
                Value::from([
                    ("owner", Value::from(owner)),
                    ("results", Value::array(self.results.clone())),
                    ("summary", counts),
                ]),
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_what_the_results_are_about() {
        let scope = Scope {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "a".into(),
            name: "web".into(),
            uid: "u".into(),
        };
        let report = Ephemeral {
            prefix: "r".into(),
            origin: Origin::Admission,
            scope,
            plural: "deployments".into(),
            policies: [("p", "7"), ("a/q", "8"), (&*"l".repeat(64), "9")]
                .map(|(policy, version)| (PolicyId::parse(policy), version.into()))
                .to_vec(),
            results: vec![Value::from([("result", "fail".into())])],
        };
        let object = report.object();
        assert_eq!(
            object.at(&["metadata", "labels"]).unwrap().to_json(),
            r#"{"app.kubernetes.io/managed-by":"kyverno","audit.kyverno.io/resource.group":"apps","audit.kyverno.io/resource.gvr":"deployments.v1.apps","audit.kyverno.io/resource.kind":"Deployment","audit.kyverno.io/resource.uid":"u","audit.kyverno.io/resource.version":"v1","audit.kyverno.io/source":"admission","cpol.kyverno.io/p":"7","pol.kyverno.io/q":"8"}"#
        );
        assert_eq!(object.at(&["spec", "summary", "fail"]), Some(&Value::from(1_i64)));
    }
}
