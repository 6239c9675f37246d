//! Runs the YAML parser and hands its events to a [`Builder`].

use granit_parser::{ErrorKind, Event, Parser, ScanError, StructureStyle};

use super::build::{Builder, Collection, RawScalar};
use super::error::Fault;
use super::options::Options;
use super::resolve::Tag;
use super::source_map::{Bytes, ScalarStyle};
use super::trace::Trace;

/// Parses `text` into `builder`, all of it or up to the end of the first document.
pub(super) fn feed<T: Trace>(
    text: &str,
    options: &Options,
    builder: &mut Builder<'_, T>,
    first_only: bool,
) -> Result<(), Fault> {
    let max_depth = options.limits.max_depth;
    let mut parser_options = granit_parser::options! {
        flow_nesting_limit: max_depth,
        block_nesting_limit: max_depth,
    };
    parser_options.set_emit_comments(false);
    for next in Parser::new_from_str_with_options(text, parser_options) {
        let (event, span) = next.map_err(|error| describe(&error, options))?;
        let range = span.byte_range().unwrap_or_default();
        let at = Bytes { start: range.start as u32, end: range.end as u32 };
        match event {
            Event::DocumentStart(..) => builder.begin_document(at.start),
            Event::DocumentEnd => {
                builder.end_document();
                if first_only {
                    return Ok(());
                }
            }
            Event::Alias(anchor) => builder.alias(anchor, at)?,
            Event::Scalar(content, style, anchor, tag) => {
                let (style, mut content) = (scalar_style(style), content);
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if block && unfinished_line(text, at) && content.ends_with('\n') {
                    // Upstream: a block scalar at the end of a text without a last line break has none either.
                    content.to_mut().pop();
                }
                let tag = tag.map_or(Tag::None, |tag| tag_of(&tag));
                builder.scalar(RawScalar { text: content, style, tag, anchor, at })?;
            }
            Event::SequenceStart(style, anchor, _) => {
                let start = if style == StructureStyle::Block { first_dash(text, at.start) } else { at.start };
                builder.begin(Collection::Array, anchor, start)?;
            }
            Event::MappingStart(_, anchor, _) => builder.begin(Collection::Object, anchor, at.start)?,
            // Only a flow collection ends with a token of its own.
            Event::SequenceEnd | Event::MappingEnd => builder.end((at.end > at.start).then_some(at.end))?,
            _ => {}
        }
    }
    Ok(())
}

fn scalar_style(style: granit_parser::ScalarStyle) -> ScalarStyle {
    match style {
        granit_parser::ScalarStyle::Plain => ScalarStyle::Plain,
        granit_parser::ScalarStyle::SingleQuoted => ScalarStyle::SingleQuoted,
        granit_parser::ScalarStyle::DoubleQuoted => ScalarStyle::DoubleQuoted,
        granit_parser::ScalarStyle::Literal => ScalarStyle::Literal,
        granit_parser::ScalarStyle::Folded => ScalarStyle::Folded,
    }
}

fn tag_of(tag: &granit_parser::Tag) -> Tag {
    tag.suffix_in_namespace("tag:yaml.org,2002:").map_or(Tag::Str, |name| Tag::core(&name))
}

/// Whether the block scalar at `at` runs to the end of the text and its last line has no line break.
fn unfinished_line(text: &str, at: Bytes) -> bool {
    at.end as usize == text.len() && !text.ends_with(['\n', '\r'])
}

/// The parser places some block sequences at the first item; this is the `-` before it where it can be told.
fn first_dash(text: &str, start: u32) -> u32 {
    let (before, after) = text.split_at_checked(start as usize).unwrap_or((text, ""));
    let is_dash =
        after.strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']));
    match before.trim_end_matches([' ', '\t', '\n', '\r']).strip_suffix('-') {
        Some(head) if !is_dash => head.len() as u32,
        _ => start,
    }
}

/// The parser's error in our words where its own speak of parser states.
fn describe(error: &ScanError, options: &Options) -> Fault {
    let offset = error.marker().byte_offset().unwrap_or_default() as u32;
    let message = match error.kind() {
        ErrorKind::RecursionLimitExceeded => {
            return Fault::new(offset, format!("nested deeper than {} levels", options.limits.max_depth));
        }
        ErrorKind::UnexpectedCharacter { character } => {
            return Fault::new(offset, format!("unexpected character `{}`", character.escape_debug()));
        }
        ErrorKind::UnclosedFlowCollection { open } => return Fault::new(offset, format!("`{open}` is not closed")),
        ErrorKind::UnknownAnchor => "alias of an anchor that is not defined before it",
        ErrorKind::ExpectedNodeContent => "expected a value",
        ErrorKind::ExpectedBlockMappingKey => "expected a key at this indentation",
        ErrorKind::ExpectedFlowMappingSeparator => "expected `,` or `}` in a flow mapping",
        ErrorKind::ExpectedFlowSequenceSeparator => "expected `,` or `]` in a flow sequence",
        ErrorKind::ExpectedBlockSequenceEntry => "expected `-` at this indentation",
        ErrorKind::SimpleKeyExpected => "expected `:` after the key",
        ErrorKind::MappingValueNotAllowed => "`:` after a value: expected a new line, or quotes around the text",
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            "expected spaces as indentation, found a tab"
        }
        ErrorKind::UnclosedQuotedScalar => "expected a closing quote",
        ErrorKind::UnknownQuotedScalarEscape => "unknown escape in a double-quoted string",
        ErrorKind::UndeclaredTagHandle => "tag with a handle that is not declared",
        ErrorKind::UnexpectedEof
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::UnexpectedEofBlockMapping => "unexpected end of the text",
        other => return Fault::new(offset, other.to_string()),
    };
    Fault::new(offset, message)
}
