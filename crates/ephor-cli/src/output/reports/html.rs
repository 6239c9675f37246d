//! One page with everything in it: no script, no address, nothing that a browser would fetch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::junit_xml::escape;
use super::{change, place, severity};
use crate::reports::{Found, Group, Overview, Trend};
use crate::tally::Tally;

/// How many namespaces the heat map shows.
const COLUMNS: usize = 40;
/// How many policies the heat map shows.
const ROWS: usize = 200;
/// How many results are listed for each policy.
const LISTED: usize = 500;

const HEAD: &str = concat!(
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    "<title>Policy reports</title>\n<style>\n",
    include_str!("page.css"),
    "</style>\n</head>\n<body>\n<h1>Policy reports</h1>\n"
);

/// The page.
pub fn html(overview: &Overview) -> String {
    let mut out = HEAD.to_owned();
    numbers(&mut out, &overview.tally);
    if let Some(trend) = &overview.trend {
        change_since(&mut out, trend);
    }
    if overview.groups.is_empty() {
        out.push_str("<p>There are no results.</p>\n");
    } else {
        heat_map(&mut out, &overview.groups);
        summary(&mut out, overview);
        findings(&mut out, overview);
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn numbers(out: &mut String, tally: &Tally) {
    let Tally { pass, fail, warn, error, skip } = *tally;
    out.push_str("<ul class=\"numbers\">\n");
    for (word, count) in [("fail", fail), ("error", error), ("warn", warn), ("pass", pass), ("skip", skip)] {
        let _ = writeln!(out, "<li><b>{count}</b>{word}</li>");
    }
    out.push_str("</ul>\n");
}

/// Two bars: failures then and now.
fn change_since(out: &mut String, trend: &Trend) {
    const WIDTH: u64 = 400;
    let Trend { before, after, new, gone } = *trend;
    let most = before.max(after).max(1);
    let width = |count: u64| u128::from(count) * u128::from(WIDTH) / u128::from(most);
    let label = format!("{before} failing before, {after} failing now");
    let _ = writeln!(
        out,
        "<h2>Change</h2>\n<svg viewBox=\"0 0 600 76\" width=\"600\" height=\"76\" role=\"img\" aria-label=\"{label}\">"
    );
    for (y, word, count) in [(4, "before", before), (42, "now", after)] {
        let width = width(count);
        let (baseline, end) = (y + 20, 70 + width);
        let _ = writeln!(
            out,
            "<text x=\"0\" y=\"{baseline}\">{word}</text><rect x=\"60\" y=\"{y}\" width=\"{width}\" height=\"28\"/>\
             <text x=\"{end}\" y=\"{baseline}\">{count}</text>"
        );
    }
    let _ = writeln!(out, "</svg>\n<p>{new} new, {gone} gone</p>");
}

/// Policies down, namespaces across, the worst first. Each cell has its number, so that colour is not needed.
fn heat_map(out: &mut String, groups: &[Group]) {
    let (policies, more_policies) = worst_first(groups, |group| &group.policy, ROWS);
    let (namespaces, more_namespaces) = worst_first(groups, place, COLUMNS);
    let cells: BTreeMap<(&str, &str), &Group> =
        groups.iter().map(|group| ((group.policy.as_str(), place(group)), group)).collect();
    out.push_str(
        "<h2>Failures and errors by policy and namespace</h2>\n<div class=\"scroll\"><table class=\"heat\">\n",
    );
    out.push_str("<tr><th scope=\"col\">Policy</th>");
    for namespace in &namespaces {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(namespace));
    }
    out.push_str("</tr>\n");
    for policy in &policies {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(policy));
        for namespace in &namespaces {
            match cells.get(&(policy, namespace)) {
                Some(group) => {
                    let _ = write!(out, "<td class=\"{}\">{}</td>", heat(group.bad()), group.bad());
                }
                None => out.push_str("<td></td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
    if more_policies + more_namespaces > 0 {
        let _ = writeln!(
            out,
            "<p class=\"soft\">Left out: {more_policies} more policies and {more_namespaces} more namespaces, with fewer \
             failures.</p>"
        );
    }
}

/// The names with the most failures, and how many others there are.
fn worst_first<'g>(groups: &'g [Group], name: impl Fn(&'g Group) -> &'g str, most: usize) -> (Vec<&'g str>, usize) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for group in groups {
        *counts.entry(name(group)).or_default() += group.bad();
    }
    let mut names: Vec<(&str, u64)> = counts.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = names.len().saturating_sub(most);
    (names.into_iter().take(most).map(|(name, _)| name).collect(), more)
}

fn heat(bad: u64) -> &'static str {
    match bad {
        0 => "ok",
        1..=2 => "h1",
        3..=9 => "h2",
        10..=49 => "h3",
        _ => "h4",
    }
}

fn summary(out: &mut String, overview: &Overview) {
    out.push_str("<h2>Summary</h2>\n<div class=\"scroll\"><table>\n<tr>");
    let compared = overview.trend.map(|_| "Change");
    for header in
        ["Policy", "Namespace", "Severity", "Fail", "Error", "Warn", "Pass", "Skip"].into_iter().chain(compared)
    {
        let _ = write!(out, "<th scope=\"col\">{header}</th>");
    }
    out.push_str("</tr>\n");
    for group in &overview.groups {
        out.push_str("<tr>");
        for text in [group.policy.as_str(), place(group), severity(group.severity.as_str())] {
            let _ = write!(out, "<td class=\"name\">{}</td>", escape(text));
        }
        let Tally { pass, fail, warn, error, skip } = group.tally;
        let counts = [fail, error, warn, pass, skip].map(|count| count.to_string());
        for text in counts.into_iter().chain(change(group)) {
            let _ = write!(out, "<td class=\"n\">{text}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

/// What does not pass, a part for each policy, in the order of the summary.
fn findings(out: &mut String, overview: &Overview) {
    let mut by_policy: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
    for found in overview.findings() {
        by_policy.entry(&found.policy).or_default().push(found);
    }
    if !by_policy.is_empty() {
        out.push_str("<h2>Results</h2>\n");
    }
    let mut told = BTreeSet::new();
    for policy in overview.groups.iter().map(|group| group.policy.as_str()) {
        let Some(found) = by_policy.get(policy).filter(|_| told.insert(policy)) else { continue };
        let _ = write!(
            out,
            "<details open>\n<summary>{} ({})</summary>\n<div class=\"scroll\"><table>\n<tr><th>Rule</th>\
             <th>Resource</th><th>Result</th><th>Message</th></tr>\n",
            escape(policy),
            found.len()
        );
        for found in found.iter().take(LISTED) {
            let _ = writeln!(
                out,
                "<tr><td class=\"name\">{}</td><td class=\"name\">{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
                escape(&found.rule),
                escape(&found.subject()),
                found.result.as_str(),
                escape(&found.message)
            );
        }
        out.push_str("</table></div>\n");
        if found.len() > LISTED {
            let _ = writeln!(out, "<p class=\"soft\">{} more are not listed.</p>", found.len() - LISTED);
        }
        out.push_str("</details>\n");
    }
}
