//! Old spellings in policy files, rewritten in place.
//!
//! Only what keeps its meaning is rewritten, as edits of the text: comments, order and layout stay. Each fix looks
//! at a freshly parsed document, so that it may build on an earlier one, and fixing twice changes nothing.

mod actions;
mod document;
mod edit;
mod fields;
mod selection;
mod words;

use std::sync::Arc;

use ephor_engine::compile::compile;
use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::value::Path;
use ephor_expr::yaml::{Limits, parse_documents};

use crate::locate::{Located, Origin, SourceFile};
use document::Document;
use edit::Edit;

/// One rewriting.
#[derive(Debug)]
struct Fix {
    /// What is old, for a human.
    message: String,
    /// Where.
    path: Path,
    edits: Vec<Edit>,
}

/// A pass finds old spellings of one sort.
type Pass = fn(&Document<'_>) -> Vec<Fix>;

/// The passes, in the order in which they build on one another.
const PASSES: [Pass; 8] = [
    words::versions,
    words::action_case,
    words::operators,
    words::autogen_all,
    selection::names,
    selection::direct_filters,
    fields::moved,
    actions::failure_action,
];

/// More rounds than any file needs: each takes at least one old spelling away.
const MAX_ROUNDS: usize = 1000;

/// A file with its old spellings rewritten.
#[derive(Debug)]
pub struct Fixed {
    /// The new text.
    pub text: String,
    /// What was done, as messages about the old text's spellings.
    pub done: Vec<String>,
}

/// Says of each old spelling in a file that it can be rewritten: where `found` has a finding about it already, in its
/// hint, else as a warning of its own.
pub fn point_out(file: &Arc<SourceFile>, found: &mut Vec<Located>) {
    let Ok(documents) = parse_documents(&file.text, &Limits::default()) else { return };
    for parsed in documents {
        let document = Document::new(&file.text, &parsed.value, &parsed.source);
        let fixes: Vec<Fix> = PASSES.iter().flat_map(|pass| pass(&document)).collect();
        let origin = Origin { file: Arc::clone(file), map: Arc::new(parsed.source) };
        for fix in fixes {
            let own = Diagnostic::warning("deprecated", fix.path, fix.message).at_key();
            let own = Located::of_diagnostic(own, &origin);
            let mut known = false;
            for finding in found.iter_mut().filter(|finding| is_about(finding, &own)) {
                known = true;
                let help = finding.help.get_or_insert_default();
                if !help.ends_with(HINT) {
                    help.push_str(if help.is_empty() { "" } else { "; " });
                    help.push_str(HINT);
                }
            }
            if !known {
                found.push(Located { help: Some(HINT.to_owned()), ..own });
            }
        }
    }
}

const HINT: &str = "`ephor check --fix` rewrites it";

/// Whether a finding is about the old spelling that `own` is about, at its key or its value.
fn is_about(finding: &Located, own: &Located) -> bool {
    let about = matches!(
        finding.code,
        "deprecated"
            | "deprecated-field"
            | "deprecated-value"
            | "removed-field"
            | "autogen-all"
            | "deprecated-operator"
    );
    let line = |located: &Located| located.span.map(|(start, _)| start.line);
    let file = |located: &Located| located.file.as_ref().map(|file| file.name.clone());
    about && finding.path == own.path && line(finding) == line(own) && file(finding) == file(own)
}

/// Rewrites all old spellings of a text. `None` if there are none, if the text is no YAML, or if a policy that
/// compiles would not do so afterwards: then the file is better left to its author.
pub fn fix(text: &str) -> Option<Fixed> {
    let mut fixed = Fixed { text: text.to_owned(), done: Vec::new() };
    for _ in 0..MAX_ROUNDS {
        let Some((next, done)) = round(&fixed.text) else { break };
        fixed.text = next;
        fixed.done.push(done);
    }
    (!fixed.done.is_empty() && keeps_working(text, &fixed.text)).then_some(fixed)
}

/// The text after one fix, and what it was about. One at a time: a fix may change what another one sees.
fn round(text: &str) -> Option<(String, String)> {
    let documents = parse_documents(text, &Limits::default()).unwrap_or_default();
    documents.into_iter().find_map(|parsed| {
        let document = Document::new(text, &parsed.value, &parsed.source);
        let fix = PASSES.iter().find_map(|pass| pass(&document).into_iter().next())?;
        Some((edit::apply(text, fix.edits), fix.message))
    })
}

fn keeps_working(before: &str, after: &str) -> bool {
    let parsed = |text| parse_documents(text, &Limits::default());
    let (Ok(before), Ok(after)) = (parsed(before), parsed(after)) else { return false };
    before.len() == after.len()
        && before
            .iter()
            .zip(&after)
            .all(|(before, after)| compile(&before.value).program.is_none() || compile(&after.value).program.is_some())
}

#[cfg(test)]
mod tests;
