//! From a byte of a string value back to the byte of the text that it came from.

use super::source_map::{Bytes, ScalarStyle};

/// The offset in `text` of byte `offset` of the scalar that stands at `at`; the end of its value counts as a byte, and
/// so do line breaks at the end of a block, even if it drops them.
pub(super) fn source_offset(text: &str, at: Bytes, style: ScalarStyle, offset: usize) -> Option<usize> {
    let (start, end) = (at.start as usize, at.end as usize);
    match style {
        ScalarStyle::Literal | ScalarStyle::Folded => block(text, start, end, style, offset),
        ScalarStyle::Plain => flow(text.get(start..end)?, style, offset).map(|found| start + found),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
            let start = start + 1;
            flow(text.get(start..end.checked_sub(1)?)?, style, offset).map(|found| start + found)
        }
    }
}

/// Walks source and value side by side.
struct Walk {
    wanted: usize,
    /// How much of the value is behind.
    value: usize,
    /// How much of the source is behind.
    source: usize,
}

impl Walk {
    /// Passes `source` bytes of the text that make `value` bytes of the value; true when the wanted byte is among
    /// them.
    fn pass(&mut self, source: usize, value: usize) -> bool {
        if self.wanted < self.value + value {
            return true;
        }
        self.value += value;
        self.source += source;
        false
    }
}

/// Plain and quoted scalars: line breaks fold, quotes and escapes are shorter in the value.
fn flow(raw: &str, style: ScalarStyle, wanted: usize) -> Option<usize> {
    let mut walk = Walk { wanted, value: 0, source: 0 };
    while let Some(rest) = raw.get(walk.source..).filter(|rest| !rest.is_empty()) {
        let (source, value) = if let Some(fold) = fold(rest) {
            fold
        } else if style == ScalarStyle::SingleQuoted && rest.starts_with("''") {
            (2, 1)
        } else if style == ScalarStyle::DoubleQuoted && rest.starts_with('\\') {
            escape(rest)?
        } else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            (length, length)
        };
        // A wanted byte inside of a character that stands for itself has its own place.
        if walk.pass(source, value) {
            let inside = if source == value { wanted - walk.value } else { 0 };
            return Some(walk.source + inside);
        }
    }
    (walk.value == wanted).then_some(walk.source)
}

/// Length of the line break after `rest`'s start, if there is one there.
fn line_break(rest: &str) -> Option<usize> {
    if rest.starts_with("\r\n") {
        return Some(2);
    }
    rest.starts_with(['\n', '\r']).then_some(1)
}

fn blank_length(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches([' ', '\t']).len()
}

/// The white space at the start of `rest` if it contains line breaks: its length, and that of what it folds to.
fn fold(rest: &str) -> Option<(usize, usize)> {
    let mut source = blank_length(rest);
    let mut breaks = 0;
    while let Some(length) = rest.get(source..).and_then(line_break) {
        breaks += 1;
        source += length;
        source += rest.get(source..).map_or(0, blank_length);
    }
    match breaks {
        0 => None,
        1 => Some((source, 1)),
        _ => Some((source, breaks - 1)),
    }
}

/// The escape at the start of `rest`: its length, and that of the character it stands for.
fn escape(rest: &str) -> Option<(usize, usize)> {
    let kind = rest.chars().nth(1)?;
    let digits = match kind {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        '\n' | '\r' => {
            let after = 1 + rest.get(1..).and_then(line_break)?;
            return Some((after + rest.get(after..).map_or(0, blank_length), 0));
        }
        'N' | '_' => return Some((2, 2)),
        'L' | 'P' => return Some((2, 3)),
        _ => return Some((1 + kind.len_utf8(), 1)),
    };
    let code = u32::from_str_radix(rest.get(2..2 + digits)?, 16).ok()?;
    match char::from_u32(code) {
        Some(c) => Some((2 + digits, c.len_utf8())),
        // The first half of a pair of surrogates; together they stand for a character of four bytes.
        None => Some((2 * (2 + digits), 4)),
    }
}

/// Block scalars: each line loses its indentation; folded ones also join lines.
fn block(text: &str, start: usize, end: usize, style: ScalarStyle, wanted: usize) -> Option<usize> {
    let line_start = text.get(..start)?.rfind(['\n', '\r'])? + 1;
    let indent = start - line_start;
    // The scalar starts at its first line that is not blank; each blank line before it is a line break of the value.
    let mut walk = Walk { wanted, value: leading_breaks(text.get(..line_start)?), source: start };
    if wanted < walk.value {
        return Some(start);
    }
    let mut previous_more_indented = false;
    let mut first = true;
    while walk.source < end {
        // Between lines: breaks and blank lines, then the indentation of the next line.
        let rest = text.get(walk.source..end)?;
        let (gap, breaks) = if first { (0, 0) } else { gap(rest, indent) };
        let line = rest.get(gap..)?.split(['\n', '\r']).next()?;
        let more_indented = line.starts_with([' ', '\t']);
        let folds = style == ScalarStyle::Folded && !previous_more_indented && !more_indented && !line.is_empty();
        let separator = if folds && breaks > 1 { breaks - 1 } else { breaks };
        if walk.pass(gap, separator) {
            return Some(walk.source);
        }
        if wanted <= walk.value + line.len() {
            return Some(walk.source + (wanted - walk.value));
        }
        walk.value += line.len();
        walk.source += line.len();
        previous_more_indented = more_indented;
        first = false;
        if line.is_empty() {
            break;
        }
    }
    (walk.value == wanted).then_some(walk.source)
}

/// How many blank lines end `before`, the text up to the first line of a block scalar that is not blank.
fn leading_breaks(before: &str) -> usize {
    before.lines().rev().take_while(|line| line.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\r'))).count()
}

/// Line breaks, blank lines and `indent` spaces at the start of `rest`: their length, and the number of breaks.
fn gap(rest: &str, indent: usize) -> (usize, usize) {
    let (mut length, mut breaks) = (0, 0);
    while let Some(line_break) = rest.get(length..).and_then(line_break) {
        breaks += 1;
        length += line_break;
        let spaces = rest.get(length..).map_or(0, |next| next.len() - next.trim_start_matches(' ').len());
        length += spaces.min(indent);
    }
    (length, breaks)
}

#[cfg(test)]
mod tests {
    use crate::Value;
    use crate::value::Path;
    use crate::yaml::{Limits, parse_documents};

    /// Every character of the string at `a` must be found in the text, or be the reading of `escapes`.
    fn check(text: &str, read_from: &[(char, &str)]) {
        let document = parse_documents(text, &Limits::default()).unwrap().remove(0);
        let path = Path::root().key("a");
        let Some(Value::String(value)) = path.lookup(&document.value) else { panic!("no string in {text:?}") };
        let mut last = 0;
        for (offset, c) in value.char_indices() {
            let place = document.source.offset_in_scalar(&path, offset).unwrap();
            let source = &text[place.offset as usize..];
            let known = read_from.iter().any(|(read, written)| *read == c && source.starts_with(written));
            assert!(known || source.starts_with(c), "{text:?}: {c:?} at {offset} is placed at {source:?}");
            assert!(place.offset >= last, "{text:?}: places run backwards");
            last = place.offset;
        }
        assert!(document.source.offset_in_scalar(&path, value.len()).is_some(), "{text:?}: no end");
    }

    #[test]
    fn characters_of_flow_scalars_are_found_in_the_text() {
        check("a: {{ x.y }}é中 z".replace("{{", "(").as_str(), &[]);
        check("b: 1\na: one two # c", &[]);
        check("a: one\n  two\n\n\n  three", &[(' ', "\n"), ('\n', "\n")]);
        check("a: 'it''s é'", &[]);
        check("a: 'one  \r\n   two \n\n three'", &[(' ', "  \r\n"), ('\n', " \n\n")]);
        check(
            r#"a: "q\"\\\t\x41\u00e9\ud83d\ude00\U0001F600\N\_\L\P\/ z""#,
            &[
                ('\t', r"\t"),
                ('A', r"\x41"),
                ('"', r#"\""#),
                ('é', r"\u00e9"),
                ('😀', r"\ud83d"),
                ('😀', r"\U"),
                ('\u{85}', r"\N"),
                ('\u{a0}', r"\_"),
                ('\u{2028}', r"\L"),
                ('\u{2029}', r"\P"),
                ('/', r"\/"),
            ],
        );
        check("a: \"one \\\n   two\n  \\ three\"", &[(' ', "\n"), (' ', "\\ ")]);
    }

    #[test]
    fn characters_of_block_scalars_are_found_in_the_text() {
        check("a: |\n  x\n    é y\n\n  z\nb: 1\n", &[]);
        check("a: |-\n  x\n  y", &[]);
        check("a: |2-\n   x\n  y\n", &[]);
        check("a: |\r\n  x\r\n  y\r\n", &[('\n', "\r\n")]);
        check("a: |+\n  x\n\n\n", &[]);
        check("a: >\n  one\n  two\n\n  three\n    four\n  five\n", &[(' ', "\n")]);
        check("a: >-\n  one\n  two\n\n\n    three\n\n  four\n  five\n\n", &[(' ', "\n")]);
    }

    #[test]
    fn leading_blank_lines_of_a_block_are_counted() {
        let text = "a: |\n\n\n  x\n  y\n";
        let document = parse_documents(text, &Limits::default()).unwrap().remove(0);
        let place = document.source.offset_in_scalar(&Path::root().key("a"), 4).unwrap();
        assert_eq!((place.line, place.column), (5, 3));
    }
}
