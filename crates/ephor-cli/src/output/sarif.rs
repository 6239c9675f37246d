//! Results as SARIF 2.1.0, for code scanning.

use std::collections::BTreeMap;

use ephor_engine::outcome::Verdict;
use ephor_expr::scalar::percent::{self, AsciiSet};
use ephor_expr::{Map, Str, Value};

use super::plain;
use crate::apply::{PolicySummary, Results};
use crate::locate::Located;

/// The whole log: what failed, could not be judged or could not be loaded. A result stands at the resource; its policy
/// is a related location.
pub fn render(results: &Results) -> String {
    let mut rules = Rules::default();
    let mut found = Vec::new();
    for finding in &results.findings {
        let rule = rules.index(finding.code, Map::new());
        let level = if finding.is_error() { "error" } else { "warning" };
        let place = place(finding);
        found.push(result(finding.code, rule, level, &finding.message, place.into_iter().collect(), Vec::new()));
    }
    for row in &results.rows {
        let Some((level, policy)) = level(row.verdict).zip(results.policy(row)) else { continue };
        let id = if row.rule.is_empty() { policy.key.to_string() } else { format!("{}/{}", policy.key, row.rule) };
        let rule = rules.index(&id, describe(policy));
        let at = region(&row.subject.file, i64::from(row.subject.line), None);
        let message = format!("{}: {}", row.subject, row.text());
        found.push(result(&id, rule, level, &message, vec![at], place(&row.place(policy)).into_iter().collect()));
    }
    log(rules.list, found)
}

/// The document around rules and results: one run of `ephor`.
pub(super) fn log(rules: Vec<Value>, results: Vec<Value>) -> String {
    let driver = Value::from([
        ("name", "ephor".into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("informationUri", env!("CARGO_PKG_REPOSITORY").into()),
        ("rules", Value::array(rules)),
    ]);
    let run = Value::from([
        ("tool", Value::from([("driver", driver)])),
        ("columnKind", "unicodeCodePoints".into()),
        ("results", Value::array(results)),
    ]);
    let log = Value::from([
        ("$schema", "https://json.schemastore.org/sarif-2.1.0.json".into()),
        ("version", "2.1.0".into()),
        ("runs", Value::array(vec![run])),
    ]);
    format!("{}\n", plain::json(&log))
}

/// The level of a result; `None` for verdicts that code scanning does not show.
pub(super) fn level(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Fail | Verdict::Error => Some("error"),
        Verdict::Warn => Some("warning"),
        Verdict::Pass | Verdict::Skip => None,
    }
}

/// The rules of the log, each once, in order of appearance.
#[derive(Default)]
pub(super) struct Rules {
    known: BTreeMap<String, usize>,
    pub(super) list: Vec<Value>,
}

impl Rules {
    pub(super) fn index(&mut self, id: &str, mut about: Map) -> usize {
        if let Some(index) = self.known.get(id) {
            return *index;
        }
        about.insert("id", id);
        self.list.push(Value::object(about));
        self.known.insert(id.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// What code scanning shows of a policy.
fn describe(policy: &PolicySummary) -> Map {
    let mut about = rated(policy.category.as_ref(), policy.severity.as_deref());
    if let Some(text) = &policy.description {
        about.insert("fullDescription", Value::from([("text", text.clone().into())]));
    }
    about
}

/// Category and severity as code scanning reads them.
pub(super) fn rated(category: Option<&Str>, severity: Option<&str>) -> Map {
    let mut about = Map::new();
    let mut properties = Map::new();
    if let Some(category) = category {
        properties.insert("tags", vec![category.clone()]);
    }
    // The scale of code scanning: 0 to 10.
    let score = match severity {
        Some("critical") => Some("9.5"),
        Some("high") => Some("8.0"),
        Some("medium") => Some("5.5"),
        Some("low") => Some("2.0"),
        _ => None,
    };
    if let Some(score) = score {
        properties.insert("security-severity", score);
    }
    if !properties.is_empty() {
        about.insert("properties", properties);
    }
    about
}

pub(super) fn result(id: &str, rule: usize, level: &str, message: &str, at: Vec<Value>, related: Vec<Value>) -> Value {
    let mut map = Map::new();
    map.insert("ruleId", id);
    map.insert("ruleIndex", rule);
    map.insert("level", level);
    map.insert("message", Value::from([("text", message.into())]));
    map.insert("locations", Value::array(at));
    if !related.is_empty() {
        map.insert("relatedLocations", Value::array(related));
    }
    Value::object(map)
}

fn place(located: &Located) -> Option<Value> {
    let file = located.file.as_ref()?;
    let (line, column) = located.span.map_or((1, None), |(at, _)| (at.line, Some(i64::from(at.column))));
    Some(region(&file.name, i64::from(line), column))
}

fn region(file: &str, line: i64, column: Option<i64>) -> Value {
    let mut region = Map::new();
    region.insert("startLine", line.max(1));
    if let Some(column) = column {
        region.insert("startColumn", column);
    }
    let artifact = Value::from([("uri", uri(file).into())]);
    let physical = Value::from([("artifactLocation", artifact), ("region", region.into())]);
    Value::from([("physicalLocation", physical)])
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let path = path.trim_start_matches("./").replace('\\', "/");
    percent::encode(&path, IN_PATH).to_string()
}

/// What is encoded in a path of a URI.
const IN_PATH: &AsciiSet = &percent::RESERVED.remove(b'/');
