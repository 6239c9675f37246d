//! Places in a text: offsets, lines and columns.

use std::fmt;
use std::sync::Arc;

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Offset in bytes from the start of the parsed text, from 0.
    pub offset: u32,
}

impl Default for Position {
    fn default() -> Self {
        Self { line: 1, column: 1, offset: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Where it starts.
    pub start: Position,
    /// Where it ends: the first place that no longer belongs to it.
    pub end: Position,
}

/// The length of the line break at `offset` (`\n`, `\r\n` or `\r`), if there is one.
fn line_break_at(bytes: &[u8], offset: usize) -> Option<usize> {
    match (bytes.get(offset)?, bytes.get(offset + 1)) {
        (b'\r', Some(b'\n')) => Some(2),
        (b'\r' | b'\n', _) => Some(1),
        _ => None,
    }
}

/// The place of byte `offset` of `text`, whose first line has the number `first_line`. Reads the text up to there:
/// meant for the one error of a parse. An offset outside the text or inside a character is moved back.
pub(super) fn locate(text: &str, offset: usize, first_line: u32) -> Position {
    let offset = text.floor_char_boundary(offset);
    let bytes = text.as_bytes();
    let (mut line, mut line_start, mut at) = (first_line, 0, 0);
    while at < offset {
        match line_break_at(bytes, at) {
            // An offset between `\r` and `\n` still belongs to the line that they end.
            Some(length) if at + length <= offset => {
                at += length;
                line = line.saturating_add(1);
                line_start = at;
            }
            Some(_) => break,
            None => at += 1,
        }
    }
    Position { line, column: column(text, line_start, offset), offset: offset as u32 }
}

/// The column, from 1, of `offset` on the line that starts at `line_start`. A byte order mark takes no column.
fn column(text: &str, line_start: usize, offset: usize) -> u32 {
    let before = text.get(line_start..offset).unwrap_or_default();
    let before = if line_start == 0 { before.strip_prefix('\u{feff}').unwrap_or(before) } else { before };
    before.chars().count() as u32 + 1
}

/// A text kept with the starts of its lines, to place any number of offsets.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) text: Arc<str>,
    starts: Vec<u32>,
    first_line: u32,
}

impl Lines {
    /// Copies `text`; its first line has the number `first_line`.
    pub(super) fn new(text: &str, first_line: u32) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        let mut at = 0;
        while at < bytes.len() {
            if let Some(length) = line_break_at(bytes, at) {
                at += length;
                starts.push(at as u32);
            } else {
                at += 1;
            }
        }
        Self { text: text.into(), starts, first_line }
    }

    pub(super) fn position(&self, offset: u32) -> Position {
        let index = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let line_start = self.starts.get(index).copied().unwrap_or_default();
        Position {
            line: self.first_line.saturating_add(index as u32),
            column: column(&self.text, line_start as usize, offset as usize),
            offset,
        }
    }

    pub(super) fn span(&self, start: u32, end: u32) -> Span {
        Span { start: self.position(start), end: self.position(end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns_in_characters() {
        let text = "\u{feff}aé: 1\r\nb\rc\n\n中文x";
        let lines = Lines::new(text, 10);
        for (needle, line, column) in
            [("a", 10, 1), (":", 10, 3), ("b", 11, 1), ("c", 12, 1), ("中", 14, 1), ("x", 14, 3)]
        {
            let offset = text.find(needle).unwrap();
            let want = Position { line, column, offset: offset as u32 };
            assert_eq!(lines.position(offset as u32), want, "{needle}");
            assert_eq!(locate(text, offset, 10), want, "{needle}");
        }
        assert_eq!(locate("ab", 99, 1).column, 3);
    }
}
