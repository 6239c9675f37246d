//! `ephor create cluster-role`.

use ephor_expr::{Map, Value};

use super::{document, metadata, strings};

/// Arguments of `ephor create cluster-role`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor create cluster-role secrets -g '' --resources secrets --verbs get,list,watch,create
  ephor create cluster-role crds -g example.com --resources foos,bars --verbs all \\
    --controllers background-controller,reports-controller")]
pub(super) struct Args {
    /// What the role is for; it becomes `kyverno-NAME-permission`.
    name: String,
    /// API groups; the core group is `''`.
    #[arg(long, short = 'g', required = true, value_delimiter = ',', value_name = "GROUP")]
    api_groups: Vec<String>,
    /// Plural names of resources.
    #[arg(long, required = true, value_delimiter = ',', value_name = "RESOURCE")]
    resources: Vec<String>,
    /// Verbs, or `all`.
    #[arg(long, required = true, value_delimiter = ',', value_name = "VERB")]
    verbs: Vec<String>,
    /// The controllers that get the permission.
    #[arg(long, value_delimiter = ',', default_value = "background-controller", value_name = "CONTROLLER")]
    controllers: Vec<String>,
}

/// What `all` stands for.
const ALL_VERBS: [&str; 6] = ["create", "delete", "get", "list", "update", "watch"];

impl Args {
    /// The role.
    pub(super) fn document(&self) -> Value {
        let mut metadata = metadata(&format!("kyverno-{}-permission", self.name), None);
        let mut labels = Map::new();
        for controller in &self.controllers {
            labels.insert(format!("rbac.kyverno.io/aggregate-to-{}", controller.trim()), "true");
        }
        metadata.insert("labels", Value::object(labels));
        let mut document = document("rbac.authorization.k8s.io/v1", "ClusterRole", metadata);
        let verbs = if self.verbs.iter().any(|verb| verb.trim() == "all") {
            strings(ALL_VERBS)
        } else {
            strings(self.verbs.iter().map(|verb| verb.trim()))
        };
        let rule = Value::from([
            ("apiGroups", strings(self.api_groups.iter().map(|group| group.trim()))),
            ("resources", strings(self.resources.iter().map(|resource| resource.trim()))),
            ("verbs", verbs),
        ]);
        document.insert("rules", Value::array(vec![rule]));
        Value::object(document)
    }
}
