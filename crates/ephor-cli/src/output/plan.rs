//! A plan as text: each change with its reason and a diff, then how many there are.

use std::fmt::Write as _;

use ephor_background::plan::diff;
use ephor_background::preview::{Planned, Preview};

use super::paint::{Colour, paint};
use super::plain;

/// The plan.
pub fn text(plan: &Preview, colour: bool) -> String {
    let mut out = String::new();
    for Planned { policy, rule, trigger, change } in &plan.changes {
        let what = if trigger.is_empty() { String::new() } else { format!(", for {trigger}") };
        let _ = writeln!(out, "{}:", plain::line(&format!("policy {policy}, rule {rule}{what}")));
        let diff = diff::readable(change, &plan.secrets);
        let diff = plain::text(&diff);
        for line in diff.lines() {
            let shade = match line.get(..2) {
                Some("+ ") => Some(Colour::Green),
                Some("- ") => Some(Colour::Red),
                _ => None,
            };
            let line = shade.map_or_else(|| line.into(), |shade| paint(line, shade, colour));
            let _ = writeln!(out, "{line}");
        }
        out.push('\n');
    }
    out.push_str(&summary(plan));
    out
}

fn summary(plan: &Preview) -> String {
    if plan.changes.is_empty() && plan.failures.is_empty() {
        return "nothing to do\n".to_owned();
    }
    let count = |verbs: &[&str]| plan.changes.iter().filter(|p| verbs.contains(&p.change.verb())).count();
    let (create, change, delete) = (count(&["create"]), count(&["change", "mutate"]), count(&["delete"]));
    let failing = match plan.failures.len() {
        0 => String::new(),
        number => format!(", {number} would fail"),
    };
    format!("{create} to create, {change} to change, {delete} to delete{failing}\n")
}
