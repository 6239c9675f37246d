//! `ephor create values`.

use std::collections::BTreeMap;

use ephor_expr::{Map, Value};

use super::pairs::{Named, Pair, object};
use super::{CLI_VERSION, document, metadata};

/// Arguments of `ephor create values`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor create values -g request.operation=UPDATE -n prod,env=prod \\
    --rule require-limits,cpu,limit=1 --resource require-limits,my-pod,request.namespace=prod")]
pub(super) struct Args {
    /// A value for all policies: `key=value`; can be repeated.
    #[arg(long, short, value_delimiter = ',', value_name = "KEY=VALUE")]
    global: Vec<Pair>,
    /// Labels of a namespace: `namespace,label=value,…`; can be repeated.
    #[arg(long, short, value_name = "NAMESPACE,LABEL=VALUE,…")]
    ns_selector: Vec<Named<1>>,
    /// Values for one rule: `policy,rule,key=value,…`; can be repeated.
    #[arg(long, value_name = "POLICY,RULE,KEY=VALUE,…")]
    rule: Vec<Named<2>>,
    /// Values for one resource under a policy: `policy,resource,key=value,…`; can be repeated.
    #[arg(long, value_name = "POLICY,RESOURCE,KEY=VALUE,…")]
    resource: Vec<Named<2>>,
}

impl Args {
    /// The values.
    pub(super) fn document(&self) -> Value {
        let mut document = document(CLI_VERSION, "Values", metadata("values", None));
        if !self.global.is_empty() {
            document.insert("globalValues", object(&self.global));
        }
        if !self.ns_selector.is_empty() {
            let entries = self.ns_selector.iter().map(|entry| entry_document(&entry.names[0], "labels", &entry.pairs));
            document.insert("namespaceSelector", Value::array(entries.collect()));
        }
        let mut policies: BTreeMap<&str, Map> = BTreeMap::new();
        for (key, list) in [("resources", &self.resource), ("rules", &self.rule)] {
            for entry in list {
                let [policy, name] = &entry.names;
                let place = policies.entry(policy).or_default().entry(key);
                if place.is_null() {
                    *place = Value::array(Vec::new());
                }
                if let Some(entries) = place.as_array_mut() {
                    entries.push(entry_document(name, "values", &entry.pairs));
                }
            }
        }
        if !policies.is_empty() {
            let policies = policies.into_iter().map(|(name, mut policy)| {
                policy.insert("name", name);
                Value::object(policy)
            });
            document.insert("policies", Value::array(policies.collect()));
        }
        Value::object(document)
    }
}

fn entry_document(name: &str, key: &'static str, pairs: &[Pair]) -> Value {
    Value::from([("name", Value::from(name)), (key, object(pairs))])
}
