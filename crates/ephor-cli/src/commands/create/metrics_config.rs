//! `ephor create metrics-config`.

use ephor_expr::Value;

use super::{document, metadata, strings};

/// Arguments of `ephor create metrics-config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor create metrics-config -i team-a -i team-b -e kube-system")]
pub(super) struct Args {
    /// The ConfigMap's name.
    #[arg(long, short, default_value = "kyverno-metrics")]
    name: String,
    /// The ConfigMap's namespace.
    #[arg(long, default_value = "kyverno")]
    namespace: String,
    /// Namespaces that metrics are about; all if left out.
    #[arg(long, short, value_delimiter = ',', value_name = "NAMESPACE")]
    include: Vec<String>,
    /// Namespaces that they are not about.
    #[arg(long, short, value_delimiter = ',', value_name = "NAMESPACE")]
    exclude: Vec<String>,
}

impl Args {
    /// The ConfigMap.
    pub(super) fn document(&self) -> Value {
        let mut document = document("v1", "ConfigMap", metadata(&self.name, Some(&self.namespace)));
        let namespaces = Value::from([("include", strings(&self.include)), ("exclude", strings(&self.exclude))]);
        document.insert("data", Value::from([("namespaces", Value::from(namespaces.to_json()))]));
        Value::object(document)
    }
}
