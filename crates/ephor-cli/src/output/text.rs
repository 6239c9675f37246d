//! The default output, in upstream's words: what failed, then the counts.

use std::fmt::Write as _;

use ephor_engine::outcome::{RuleKind, Verdict};

use super::paint::{Colour, paint};
use super::plain;
use super::table::{Cell, Table};
use crate::apply::{Action, Results, Row};
use crate::load::Refused;

/// How the default output looks.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// With colour.
    pub colour: bool,
    /// Without the line that says what is applied.
    pub bare: bool,
    /// A table of all results instead of the failures.
    pub table: bool,
    /// With messages in the table.
    pub detailed: bool,
}

/// What stands before lines that belong to the one above.
const INDENT: &str = "    ";

/// Everything, the counts last.
pub fn render(results: &Results, style: Style) -> String {
    let mut out = String::new();
    if !style.bare {
        let rules = results.plan.rule_count();
        let with = match results.exceptions {
            0 => String::new(),
            n => format!(" with {n} exception(s)"),
        };
        let _ = writeln!(out, "\nApplying {rules} policy rule(s) to {} resource(s){with}...", results.resources);
    }
    out.push_str(&plain::text(&results.changes));
    if style.table {
        out.push_str(&table(results, style));
    } else {
        findings(&mut out, results, style.colour);
    }
    refused(&mut out, &results.refused);
    let _ = writeln!(out, "\n{}", results.tally);
    out
}

/// Policies that were refused, with the reasons.
fn refused(out: &mut String, policies: &[Refused]) {
    if policies.is_empty() {
        return;
    }
    let rule = "-".repeat(70);
    let _ = writeln!(out, "{rule}\nPolicies Skipped:\n{rule}");
    for (i, Refused { name, reason }) in policies.iter().enumerate() {
        let _ = writeln!(out, "{}. {}: {}", i + 1, plain::line(name), plain::block(reason, INDENT));
    }
    let _ = writeln!(out, "{rule}");
}

/// What failed, could not be judged or was skipped, under a line for each policy and resource.
fn findings(out: &mut String, results: &Results, colour: bool) {
    let together = |a: &Row, b: &Row| heading(a) == heading(b) && a.policy == b.policy && a.subject == b.subject;
    let mut apart = false;
    for group in results.rows.chunk_by(together) {
        let Some((first, policy)) = group.first().and_then(|row| Some((row, results.policy(row)?))) else { continue };
        let (name, subject) = (plain::line(&policy.name), &first.subject);
        let (word, shade) = match heading(first) {
            Heading::None => continue,
            Heading::Skipped => {
                let _ = writeln!(out, "skipped mutate policy {name} -> resource {subject}");
                continue;
            }
            Heading::Failed => ("failed:", Colour::Red),
            Heading::Warned => ("failed as audit warning:", Colour::Yellow),
            Heading::Error => ("error:", Colour::Red),
        };
        if std::mem::replace(&mut apart, true) {
            out.push('\n');
        }
        let _ = writeln!(out, "policy {name} -> resource {subject} {}", paint(word, shade, colour));
        // What a cluster has stored stands on no line.
        if first.subject.line > 0 {
            let place = format!("{}:{}", first.subject.file, first.subject.line);
            let _ = writeln!(out, "{INDENT}at {}", plain::line(&place));
        }
        for (i, row) in group.iter().enumerate() {
            // Rules of policies in CEL have no names.
            let rule = if row.rule.is_empty() { String::new() } else { format!("{} ", plain::line(&row.rule)) };
            let _ = writeln!(out, "{} - {rule}{}", i + 1, plain::block(row.text(), INDENT));
            if let Some(fault) = row.fault(policy) {
                let place = format!("{} ({})", fault.place(), fault.path);
                let _ = writeln!(out, "{INDENT}at {}", plain::line(&place));
                if let Some(help) = fault.help {
                    let _ = writeln!(out, "{INDENT}{}", plain::block(&help, INDENT));
                }
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Heading {
    None,
    Failed,
    Warned,
    Error,
    Skipped,
}

fn heading(row: &Row) -> Heading {
    match row.verdict {
        Verdict::Warn if row.audited => Heading::Warned,
        // A violation of an unscored policy is a failure in all but the counts.
        Verdict::Fail | Verdict::Warn => Heading::Failed,
        Verdict::Error => Heading::Error,
        Verdict::Skip if row.action == Action::Rule(RuleKind::Mutate) => Heading::Skipped,
        Verdict::Pass | Verdict::Skip => Heading::None,
    }
}

fn table(results: &Results, style: Style) -> String {
    let mut headers = vec!["POLICY", "RULE", "RESOURCE", "RESULT", "REASON"];
    if style.detailed {
        headers.push("MESSAGE");
    }
    let mut table = Table::numbered(&headers);
    for row in &results.rows {
        let word = match row.verdict {
            Verdict::Pass => "Pass",
            Verdict::Fail => "Fail",
            Verdict::Warn => "Warn",
            Verdict::Error => "Error",
            Verdict::Skip => "Skip",
        };
        let mut cells = vec![
            Cell::from(results.policy(row).map_or("", |policy| policy.key.as_str())),
            Cell::from(row.rule.as_str()),
            Cell::from(row.subject.to_string()),
            Cell(word.to_owned(), Some(Colour::of(row.verdict))),
            // A column of `test`; upstream leaves it empty here.
            Cell::from(""),
        ];
        if style.detailed {
            cells.push(Cell::from(row.message.as_str()));
        }
        table.row(cells);
    }
    format!("\n{}", table.render(style.colour))
}
