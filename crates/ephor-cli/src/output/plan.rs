//! A plan as text: verdicts that change, by rule and namespace; then each change of an object with its reason and a
//! diff, and how many there are.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use ephor_background::plan::diff;
use ephor_background::preview::{Planned, Preview};
use ephor_scan::verdicts::{Changed, Turn, Verdicts};

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

/// How many objects of a namespace are named.
const EXAMPLES: usize = 5;

/// The verdicts that would change: for each rule and turn a message and the objects, by namespace, most first.
pub fn verdicts(found: &Verdicts, colour: bool) -> String {
    let mut out = String::new();
    let mut groups: BTreeMap<(&str, &str, Turn), BTreeMap<&str, Vec<&Changed>>> = BTreeMap::new();
    for changed in &found.changed {
        let group = groups.entry((&changed.policy, &changed.rule, changed.turn)).or_default();
        group.entry(&changed.namespace).or_default().push(changed);
    }
    for ((policy, rule, turn), by_namespace) in groups {
        let (words, shade) = match turn {
            Turn::BeginsToFail => ("would begin to fail", Colour::Red),
            Turn::BeginsToErr => ("could not be judged any more", Colour::Red),
            Turn::CeasesToFail => ("would cease to fail", Colour::Green),
        };
        let count: usize = by_namespace.values().map(Vec::len).sum();
        let line = format!("policy {policy}, rule {rule}: {count} {words}");
        let _ = writeln!(out, "{}", paint(&plain::line(&line), shade, colour));
        let message = by_namespace.values().flatten().map(|changed| &changed.message).find(|text| !text.is_empty());
        if let Some(message) = message.filter(|_| turn != Turn::CeasesToFail) {
            let _ = writeln!(out, "  {}", plain::block(message, "  "));
        }
        let mut by_namespace: Vec<_> = by_namespace.into_iter().collect();
        by_namespace.sort_by_key(|(namespace, objects)| (Reverse(objects.len()), *namespace));
        for (namespace, objects) in by_namespace {
            let place = if namespace.is_empty() { "cluster-wide" } else { namespace };
            let named: Vec<&str> = objects.iter().take(EXAMPLES).map(|changed| changed.object.as_str()).collect();
            let more = match objects.len().saturating_sub(EXAMPLES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let line = format!("{place}: {} ({}{more})", objects.len(), named.join(", "));
            let _ = writeln!(out, "  {}", plain::line(&line));
        }
    }
    if found.judged > 0 {
        if !out.is_empty() {
            out.push('\n');
        }
        let count = |turn: Turn| found.changed.iter().filter(|changed| changed.turn == turn).count();
        let (begin, cease) = (count(Turn::BeginsToFail), count(Turn::CeasesToFail));
        let mut parts = vec![
            if begin == 1 { "1 new failure".to_owned() } else { format!("{begin} new failures") },
            format!("{cease} gone"),
        ];
        if found.still_failing > 0 {
            parts.push(format!("{} as before", found.still_failing));
        }
        if count(Turn::BeginsToErr) > 0 {
            parts.push(format!("{} could not be judged any more", count(Turn::BeginsToErr)));
        }
        let objects = if found.judged == 1 { "1 object".to_owned() } else { format!("{} objects", found.judged) };
        let _ = writeln!(out, "{objects} judged: {}", parts.join(", "));
    }
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
