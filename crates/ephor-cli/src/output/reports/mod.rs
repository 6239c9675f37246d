//! `ephor report`: stored reports as tables, data, Markdown, SARIF and a page.

mod html;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use ephor_engine::outcome::Verdict;
use ephor_expr::yaml::to_yaml;
use ephor_expr::{Map, Value};

pub use html::html;

use super::markdown::cell;
use super::paint::Colour;
use super::plain;
use super::sarif;
use super::table::{Cell, Table};
use crate::reports::{Found, Group, Overview, Trend};
use crate::tally::Tally;

/// The counts by policy and namespace.
pub fn table(overview: &Overview, colour: bool) -> String {
    let mut headers = vec!["POLICY", "NAMESPACE", "SEVERITY", "FAIL", "ERROR", "WARN", "PASS", "SKIP"];
    if overview.trend.is_some() {
        headers.push("CHANGE");
    }
    let mut table = Table::numbered(&headers);
    for group in &overview.groups {
        let Tally { pass, fail, warn, error, skip } = group.tally;
        let mut cells: Vec<Cell> =
            [group.policy.as_str(), place(group), severity(group.severity.as_str())].map(name).into();
        let counts = [
            (fail, Verdict::Fail),
            (error, Verdict::Error),
            (warn, Verdict::Warn),
            (pass, Verdict::Pass),
            (skip, Verdict::Skip),
        ];
        cells.extend(counts.map(|(count, verdict)| Cell(count.to_string(), (count > 0).then(|| Colour::of(verdict)))));
        cells.extend(change(group).map(Cell::from));
        table.row(cells);
    }
    let mut out = if overview.groups.is_empty() { String::new() } else { table.render(colour) + "\n" };
    out.push_str(&totals(overview));
    out
}

/// The counts, and below them what does not pass, with messages.
pub fn wide(overview: &Overview, colour: bool) -> String {
    let mut findings = Table::numbered(&["POLICY", "RULE", "RESOURCE", "RESULT", "SEVERITY", "MESSAGE"]);
    for found in overview.findings() {
        let result = Cell(found.result.as_str().to_owned(), Some(Colour::of(found.result)));
        let [policy, rule, subject, severity] =
            [&found.policy, &found.rule, found.subject().as_str(), severity(found.severity.as_str())].map(name);
        findings.row([policy, rule, subject, result, severity, found.message.as_str().into()]);
    }
    let mut out = table(overview, colour);
    if overview.findings().next().is_some() {
        let _ = write!(out, "\n{}", findings.render(colour));
    }
    out
}

/// Everything as one JSON object.
pub fn json(overview: &Overview) -> String {
    plain::json(&data(overview)) + "\n"
}

/// Everything as one YAML document.
pub fn yaml(overview: &Overview) -> String {
    to_yaml(&data(overview))
}

/// The counts and what does not pass, for pull requests.
pub fn markdown(overview: &Overview) -> String {
    let mut out = String::from("# Policy reports\n\n");
    out.push_str(&totals(overview));
    if !overview.groups.is_empty() {
        let (header, line) = if overview.trend.is_some() { (" Change |", "---:|") } else { ("", "") };
        let _ = write!(
            out,
            "\n| Policy | Namespace | Severity | Fail | Error | Warn | Pass | Skip |{header}\n\
             |---|---|---|---:|---:|---:|---:|---:|{line}\n"
        );
    }
    for group in &overview.groups {
        let Tally { pass, fail, warn, error, skip } = group.tally;
        let names = [&group.policy, place(group), severity(group.severity.as_str())].map(cell).join(" | ");
        let change = change(group).map_or_else(String::new, |change| format!(" {change} |"));
        let _ = writeln!(out, "| {names} | {fail} | {error} | {warn} | {pass} | {skip} |{change}");
    }
    if overview.findings().next().is_some() {
        out.push_str("\n| Policy | Rule | Resource | Result | Message |\n|---|---|---|---|---|\n");
    }
    for found in overview.findings() {
        let Found { policy, rule, result, message, .. } = found;
        let cells = [policy, rule, found.subject().as_str(), result.as_str(), message].map(cell);
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// What does not pass, for code scanning. A result stands at the object in the cluster: reports name no files.
pub fn sarif(overview: &Overview) -> String {
    let mut rules = sarif::Rules::default();
    let mut results = Vec::new();
    for found in &overview.results {
        let Some(level) = sarif::level(found.result) else { continue };
        let category = Some(&found.category).filter(|category| !category.is_empty());
        let rule = rules.index(&found.id(), sarif::rated(category, Some(found.severity.as_str())));
        let subject = found.subject();
        let logical = Value::from([("fullyQualifiedName", subject.clone().into()), ("kind", "resource".into())]);
        let at = Value::from([("logicalLocations", Value::array(vec![logical]))]);
        let message = format!("{subject}: {}", found.message);
        results.push(sarif::result(&found.id(), rule, level, &message, vec![at], Vec::new()));
    }
    sarif::log(rules.list, results)
}

fn data(overview: &Overview) -> Value {
    let groups = overview.groups.iter().map(|group| {
        let mut map = Map::new();
        map.insert("policy", group.policy.clone());
        map.insert("namespace", group.namespace.clone());
        map.insert("severity", group.severity.as_str());
        map.insert("summary", counts(&group.tally));
        if let Some(before) = group.before {
            map.insert("failingBefore", number(before));
        }
        Value::object(map)
    });
    let results = overview.results.iter().map(|found| {
        let subject = &found.subject;
        let members = [
            ("policy", found.policy.as_str()),
            ("rule", &found.rule),
            ("result", found.result.as_str()),
            ("severity", found.severity.as_str()),
            ("category", &found.category),
            ("apiVersion", &subject.api_version),
            ("kind", &subject.kind),
            ("namespace", &subject.namespace),
            ("name", &subject.name),
            ("message", &found.message),
        ];
        Value::from(members.map(|(key, text)| (key, Value::from(text))))
    });
    let mut map = Map::new();
    map.insert("summary", counts(&overview.tally));
    if let Some(Trend { before, after, new, gone }) = overview.trend {
        let members = [("before", before), ("after", after), ("new", new), ("gone", gone)];
        map.insert("trend", Value::from(members.map(|(key, count)| (key, number(count)))));
    }
    map.insert("groups", Value::array(groups.collect()));
    map.insert("results", Value::array(results.collect()));
    Value::object(map)
}

fn counts(tally: &Tally) -> Value {
    let Tally { pass, fail, warn, error, skip } = *tally;
    let members = [("pass", pass), ("fail", fail), ("warn", warn), ("error", error), ("skip", skip)];
    Value::from(members.map(|(key, count)| (key, number(count))))
}

fn number(count: u64) -> Value {
    Value::from(i64::try_from(count).unwrap_or(i64::MAX))
}

/// One line about all results.
fn totals(overview: &Overview) -> String {
    let Tally { pass, fail, warn, error, skip } = overview.tally;
    let mut out = format!("pass: {pass}, fail: {fail}, warn: {warn}, error: {error}, skip: {skip}\n");
    if let Some(Trend { before, after, new, gone }) = overview.trend {
        let _ = writeln!(out, "failing before: {before}, now: {after} ({new} new, {gone} gone)");
    }
    out
}

fn place(group: &Group) -> &str {
    if group.namespace.is_empty() { "(cluster)" } else { &group.namespace }
}

fn severity(word: &str) -> &str {
    if word.is_empty() { "-" } else { word }
}

/// How many more, or fewer, violations and errors there are than before.
fn change(group: &Group) -> Option<String> {
    let before = group.before?;
    Some(match group.bad() {
        now if now > before => format!("+{}", now - before),
        now if now < before => format!("-{}", before - now),
        _ => "0".to_owned(),
    })
}

/// The cell of a name, on one line.
fn name(text: &str) -> Cell {
    plain::line(text).into_owned().into()
}
