//! Results as `JUnit` XML: a test suite for each policy, a test case for each rule and resource.

use std::fmt::Write as _;

use ephor_engine::outcome::Verdict;

use super::plain;
use crate::apply::{Results, Row, Tally};

/// The whole XML document.
pub fn render(results: &Results) -> String {
    let mut suites: Vec<(usize, Vec<&Row>)> = Vec::new();
    let mut rows: Vec<&Row> = results.rows.iter().collect();
    rows.sort_by_key(|row| row.policy);
    for row in rows {
        match suites.last_mut() {
            Some((policy, rows)) if *policy == row.policy => rows.push(row),
            _ => suites.push((row.policy, vec![row])),
        }
    }
    let total = counts(&results.rows.iter().collect::<Vec<_>>());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let refused = results.refused.len() as u64;
    let (tests, errors) = (results.rows.len() as u64 + refused, total.error + refused);
    let _ = writeln!(
        out,
        "<testsuites name=\"ephor\" tests=\"{tests}\" failures=\"{}\" errors=\"{errors}\" skipped=\"{}\">",
        total.fail, total.skip
    );
    for (policy, rows) in suites {
        let name = results.plan.policies.get(policy).map_or("", |policy| policy.key.as_str());
        let tally = counts(&rows);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
            escape(name),
            rows.len(),
            tally.fail,
            tally.error,
            tally.skip
        );
        for row in rows {
            case(&mut out, results, row);
        }
        out.push_str("  </testsuite>\n");
    }
    for policy in &results.refused {
        let name = escape(&policy.name);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n    \
             <testcase classname=\"{name}\" name=\"load\">\n      <error message=\"{}\"/>\n    </testcase>\n  \
             </testsuite>",
            escape(&policy.reason)
        );
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts(rows: &[&Row]) -> Tally {
    let mut tally = Tally::default();
    for row in rows {
        tally.add(row.verdict);
    }
    tally
}

fn case(out: &mut String, results: &Results, row: &Row) {
    let (rule, resource) = (escape(&row.rule), escape(&row.subject.to_string()));
    let file = escape(&row.subject.file);
    let head = format!(
        "    <testcase classname=\"{rule}\" name=\"{resource}\" file=\"{file}\" line=\"{}\"",
        row.subject.line.max(1)
    );
    let element = match row.verdict {
        Verdict::Pass => {
            let _ = writeln!(out, "{head}/>");
            return;
        }
        Verdict::Warn => {
            let _ = writeln!(
                out,
                "{head}>\n      <system-out>warning: {}</system-out>\n    </testcase>",
                escape(row.text())
            );
            return;
        }
        Verdict::Fail => "failure",
        Verdict::Error => "error",
        Verdict::Skip => "skipped",
    };
    let message = escape(row.text());
    let place = results.policy(row).map(|policy| row.place(policy).place()).unwrap_or_default();
    let _ = writeln!(
        out,
        "{head}>\n      <{element} message=\"{message}\">{}</{element}>\n    </testcase>",
        escape(&place)
    );
}

/// Text for content and attributes of XML 1.0. No character in it is one that XML cannot hold.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain::text(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}
