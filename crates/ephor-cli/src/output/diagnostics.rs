//! Findings for a human: the line with a caret under the fault, or one line.
//!
//! The renderer shows control characters of the quoted line as symbols; all other texts are made plain here.

use std::borrow::Cow;
use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::plain;
use crate::locate::Located;

/// The longest line that is quoted, in bytes. A document in one line would be looked through for each finding in it.
const MAX_QUOTED_LINE: usize = 16 << 10;

/// The finding with the source line and a caret under the fault.
pub fn full(finding: &Located, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let level = if finding.is_error() { Level::ERROR } else { Level::WARNING };
    let message = plain::text(&finding.message);
    let name = plain::line(finding.file.as_ref().map_or("", |file| file.name.as_str()));
    let title = level.primary_title(message).id(finding.code);
    let mut group = match (&finding.file, finding.span) {
        // The text of what could not be decoded is not kept.
        (Some(file), Some((start, _))) if file.text.is_empty() => {
            title.element(annotate_snippets::Origin::path(name).line(start.line as usize))
        }
        (Some(file), Some((start, end))) => {
            let text = file.text.as_str();
            let from = text.floor_char_boundary(start.offset as usize);
            let (head, tail) = text.split_at(from);
            // A fault may span many lines; the caret goes under the first.
            let line_start = head.rfind('\n').map_or(0, |at| at + 1);
            let line_end = tail.find('\n').map_or(text.len(), |length| from + length);
            let label = plain::line(&finding.path.to_string()).into_owned();
            if line_end - line_start > MAX_QUOTED_LINE {
                let column = head.get(line_start..).map_or(0, |before| before.chars().count()) + 1;
                let place = annotate_snippets::Origin::path(name).line(start.line as usize).char_column(column);
                let group = title.element(place);
                if label.is_empty() { group } else { group.element(Level::NOTE.message(label)) }
            } else {
                let to = (end.offset as usize).clamp(from, line_end);
                let to = if to == from { (from + 1).min(line_end) } else { to };
                let to = text.ceil_char_boundary(to);
                let line = text.get(line_start..line_end).unwrap_or_default();
                group_with(title, name, (line, start.line as usize), from - line_start..to - line_start, label)
            }
        }
        (Some(_), None) => title.element(annotate_snippets::Origin::path(name)),
        (None, _) => Group::with_title(title),
    };
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(plain::text(help)));
    }
    renderer.render(&[group])
}

fn group_with<'a>(
    title: annotate_snippets::Title<'a>,
    name: Cow<'a, str>,
    (text, first_line): (&'a str, usize),
    range: std::ops::Range<usize>,
    label: String,
) -> Group<'a> {
    let annotation = AnnotationKind::Primary.span(range);
    let annotation = if label.is_empty() { annotation } else { annotation.label(label) };
    title.element(Snippet::source(text).line_start(first_line).path(name).annotation(annotation))
}

/// `file:line:column: error[code]: message (path); help`.
pub fn concise(finding: &Located) -> String {
    let place = finding.place();
    let level = if finding.is_error() { "error" } else { "warning" };
    let mut line = if place.is_empty() { String::new() } else { format!("{place}: ") };
    let _ = write!(line, "{level}[{}]: {}", finding.code, finding.message);
    if !finding.path.is_root() {
        let _ = write!(line, " ({})", finding.path);
    }
    if let Some(help) = &finding.help {
        let _ = write!(line, "; {help}");
    }
    plain::line(&line).into_owned()
}
