//! The default output, in upstream's words: what failed, then the counts.

use std::fmt::Write as _;

use ephor_engine::outcome::{RuleKind, Verdict};

use crate::apply::{Action, Card, Plan, Row, Tally};
use crate::load::Refused;
use crate::locate::Located;

/// The line before the results: how many rules meet how many resources.
pub fn header(rules: usize, resources: u64, exceptions: usize) -> String {
    let with = if exceptions == 0 { String::new() } else { format!(" with {exceptions} exception(s)") };
    format!("\nApplying {rules} policy rule(s) to {resources} resource(s){with}...\n")
}

/// Policies that were refused, with the reasons. Empty if there is none.
pub fn refused(policies: &[Refused]) -> String {
    if policies.is_empty() {
        return String::new();
    }
    let rule = "-".repeat(70);
    let mut out = format!("{rule}\nPolicies Skipped:\n{rule}\n");
    for (i, Refused { name, reason }) in policies.iter().enumerate() {
        let _ = writeln!(out, "{}. {name}: {reason}", i + 1);
    }
    let _ = writeln!(out, "{rule}");
    out
}

/// What failed, could not be judged or was skipped, under a line for each policy and resource.
pub fn rows(plan: &Plan, rows: &[Row]) -> String {
    let mut out = String::new();
    let groups = rows.chunk_by(|a, b| heading(a) == heading(b) && a.policy == b.policy && a.subject == b.subject);
    for group in groups {
        let Some((first, card)) = group.first().and_then(|row| Some((row, plan.cards.get(row.policy)?))) else {
            continue;
        };
        let policy = &card.name;
        let subject = &first.subject;
        match heading(first) {
            Heading::None => continue,
            Heading::Skipped => {
                let _ = writeln!(out, "skipped mutate policy {policy} -> resource {subject}");
                continue;
            }
            Heading::Failed => {
                let _ = writeln!(out, "policy {policy} -> resource {subject} failed:");
            }
            Heading::Warned => {
                let _ = writeln!(out, "policy {policy} -> resource {subject} failed as audit warning:");
            }
            Heading::Error => {
                let _ = writeln!(out, "policy {policy} -> resource {subject} error:");
            }
        }
        for (i, row) in group.iter().enumerate() {
            let message = if row.message.is_empty() { "validation failed" } else { row.message.as_str() };
            let _ = writeln!(out, "{} - {} {message}", i + 1, row.rule);
            if let Some(fault) = row.fault(card) {
                let _ = writeln!(out, "    at {} ({})", fault.place(), fault.path);
                if let Some(help) = fault.help {
                    let _ = writeln!(out, "    {help}");
                }
            }
        }
        out.push('\n');
    }
    out
}

/// The last line.
pub fn summary(tally: &Tally) -> String {
    format!("\n{tally}\n")
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
        Verdict::Pass => Heading::None,
        Verdict::Fail => Heading::Failed,
        Verdict::Warn if row.audited => Heading::Warned,
        // A violation of an unscored policy is a failure in all but the counts.
        Verdict::Warn => Heading::Failed,
        Verdict::Error => Heading::Error,
        Verdict::Skip if row.action == Action::Rule(RuleKind::Mutate) => Heading::Skipped,
        Verdict::Skip => Heading::None,
    }
}

impl Row {
    /// Where in the policy an error arose.
    pub fn fault(&self, card: &Card) -> Option<Located> {
        let fault = self.detail.as_ref()?.fault.as_ref()?;
        let mut finding =
            ephor_engine::diagnostic::Diagnostic::error("rule-error", fault.path.clone(), self.message.as_str());
        finding.offset = fault.offset;
        finding.help.clone_from(&fault.help);
        Some(Located::of_diagnostic(finding, &card.origin))
    }
}
