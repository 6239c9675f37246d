//! `ephor create test`.

use std::str::FromStr;

use ephor_expr::{Map, Value};

use super::{CLI_VERSION, document, insert_strings, metadata};

/// Arguments of `ephor create test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor create test -p policy.yaml -r pods.yaml -f values.yaml \\
    --pass require-limits,cpu,good-pod,default,Pod --fail require-limits,cpu,bad-pod,default,Pod \\
    -o kyverno-test.yaml")]
pub(super) struct Args {
    /// The test's name.
    #[arg(long, short, default_value = "test-name")]
    name: String,
    /// Policy files.
    #[arg(long, short, value_delimiter = ',', value_name = "FILE")]
    policy: Vec<String>,
    /// Resource files.
    #[arg(long, short, value_delimiter = ',', value_name = "FILE")]
    resource: Vec<String>,
    /// A values file.
    #[arg(long, short = 'f', value_name = "FILE")]
    values: Option<String>,
    /// A result that is expected to pass: `policy,rule,resource[,namespace[,kind]]`; can be repeated.
    #[arg(long, value_name = "EXPECTATION")]
    pass: Vec<Expectation>,
    /// A result that is expected to fail.
    #[arg(long, value_name = "EXPECTATION")]
    fail: Vec<Expectation>,
    /// A result that is expected to be skipped.
    #[arg(long, value_name = "EXPECTATION")]
    skip: Vec<Expectation>,
}

impl Args {
    /// The test.
    pub(super) fn document(&self) -> Value {
        let mut document = document(CLI_VERSION, "Test", metadata(&self.name, None));
        insert_strings(&mut document, "policies", &self.policy);
        insert_strings(&mut document, "resources", &self.resource);
        if let Some(values) = &self.values {
            document.insert("variables", values.as_str());
        }
        let expected = [("pass", &self.pass), ("fail", &self.fail), ("skip", &self.skip)];
        let results = expected.into_iter().flat_map(|(result, list)| list.iter().map(move |e| e.document(result)));
        document.insert("results", Value::array(results.collect()));
        Value::object(document)
    }
}

/// `policy,rule,resource[,namespace[,kind]]`
#[derive(Debug, Clone)]
struct Expectation {
    policy: String,
    rule: String,
    resource: String,
    kind: Option<String>,
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let (policy, rule, name, rest) = match parts.as_slice() {
            [policy, rule, name, rest @ ..]
                if rest.len() <= 2 && ![policy, rule, name].iter().any(|p| p.is_empty()) =>
            {
                (policy, rule, name, rest)
            }
            _ => return Err(format!("`{text}` is not of the form `policy,rule,resource[,namespace[,kind]]`")),
        };
        let given = |i: usize| rest.get(i).filter(|part| !part.is_empty());
        let resource = given(0).map_or_else(|| (*name).to_owned(), |namespace| format!("{namespace}/{name}"));
        let kind = given(1).map(|kind| (*kind).to_owned());
        Ok(Self { policy: (*policy).to_owned(), rule: (*rule).to_owned(), resource, kind })
    }
}

impl Expectation {
    fn document(&self, result: &str) -> Value {
        let mut map = Map::new();
        map.insert("policy", self.policy.as_str());
        map.insert("rule", self.rule.as_str());
        insert_strings(&mut map, "resources", std::slice::from_ref(&self.resource));
        if let Some(kind) = &self.kind {
            map.insert("kind", kind.as_str());
        }
        map.insert("result", result);
        Value::object(map)
    }
}
