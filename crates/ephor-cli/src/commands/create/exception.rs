//! `ephor create exception`.

use std::str::FromStr;

use ephor_expr::scalar::nearest::nearest;
use ephor_expr::{Map, Value};

use super::pairs::Pair;
use super::{document, insert_strings, metadata, strings};

/// Arguments of `ephor create exception`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor create exception build-pods --namespace ci \\
    --policy-rules require-limits,cpu,memory --any kind=Pod,name=build-*")]
#[command(group = clap::ArgGroup::new("filters").required(true))]
pub(super) struct Args {
    /// The exception's name.
    name: String,
    /// A policy and the rules that are excepted: `policy,rule,rule…`; can be repeated.
    #[arg(long, required = true, value_name = "POLICY,RULE,…")]
    policy_rules: Vec<PolicyRules>,
    /// Except objects that fit any such filter: `kind=,name=,namespace=,operation=`, each as often as needed.
    #[arg(long, group = "filters", value_name = "FILTER")]
    any: Vec<Filter>,
    /// Except objects that fit all such filters.
    #[arg(long, group = "filters", conflicts_with = "any", value_name = "FILTER")]
    all: Vec<Filter>,
    /// The exception's namespace.
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Whether background scans honour the exception.
    #[arg(long, short, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1,
          default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    background: bool,
}

impl Args {
    /// The exception.
    pub(super) fn document(&self) -> Value {
        let mut document = document("kyverno.io/v2", "PolicyException", metadata(&self.name, Some(&self.namespace)));
        let (key, filters) = if self.all.is_empty() { ("any", &self.any) } else { ("all", &self.all) };
        let filters = Value::array(filters.iter().map(Filter::document).collect());
        let rules = Value::array(self.policy_rules.iter().map(PolicyRules::document).collect());
        let spec = Value::from([
            ("background", Value::from(self.background)),
            ("match", Value::from([(key, filters)])),
            ("exceptions", rules),
        ]);
        document.insert("spec", spec);
        Value::object(document)
    }
}

/// `policy,rule,…`
#[derive(Debug, Clone)]
struct PolicyRules {
    policy: String,
    rules: Vec<String>,
}

impl FromStr for PolicyRules {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
        match (parts.next(), parts.collect::<Vec<_>>()) {
            (Some(policy), rules) if !rules.is_empty() => Ok(Self { policy, rules }),
            _ => Err(format!("`{text}` is not a policy and its rules, `policy,rule,…`")),
        }
    }
}

impl PolicyRules {
    fn document(&self) -> Value {
        Value::from([("policyName", Value::from(self.policy.as_str())), ("ruleNames", strings(&self.rules))])
    }
}

/// `kind=,name=,namespace=,operation=`
#[derive(Debug, Clone, Default)]
struct Filter {
    kinds: Vec<String>,
    names: Vec<String>,
    namespaces: Vec<String>,
    operations: Vec<String>,
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
        let mut filter = Self::default();
        for part in text.split(',') {
            let Pair { key, value } = part.parse()?;
            match key.as_str() {
                "kind" => filter.kinds.push(value),
                "name" => filter.names.push(value),
                "namespace" => filter.namespaces.push(value),
                "operation" if OPERATIONS.contains(&value.as_str()) => filter.operations.push(value),
                "operation" => return Err(format!("`{value}` is not one of {}", OPERATIONS.join(", "))),
                _ => {
                    const KNOWN: [&str; 4] = ["kind", "name", "namespace", "operation"];
                    let hint = nearest(&key, KNOWN).map_or_else(
                        || format!("known: {}", KNOWN.join(", ")),
                        |near| format!("did you mean `{near}`?"),
                    );
                    return Err(format!("unknown attribute `{key}`; {hint}"));
                }
            }
        }
        if filter.kinds.is_empty() {
            return Err(format!("`{text}` has no `kind=`"));
        }
        Ok(filter)
    }
}

impl Filter {
    fn document(&self) -> Value {
        let mut resources = Map::new();
        insert_strings(&mut resources, "kinds", &self.kinds);
        insert_strings(&mut resources, "names", &self.names);
        insert_strings(&mut resources, "namespaces", &self.namespaces);
        insert_strings(&mut resources, "operations", &self.operations);
        Value::from([("resources", Value::object(resources))])
    }
}
