//! Tables in the look of upstream's: `│` for corners and columns, `─` for lines.

use std::fmt::Write as _;

use super::paint::{Colour, paint};
use super::plain;

/// A table with a line of upper-case headers.
#[derive(Debug, Clone)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// The text of a cell and its colour.
#[derive(Debug, Clone)]
pub struct Cell(pub String, pub Option<Colour>);

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell(text.into(), None)
    }
}

/// Longer texts are wrapped at words.
const WIDEST: usize = 300;

impl Table {
    /// A table without rows. `ID` is put before the headers; rows are numbered.
    pub fn numbered(headers: &[&str]) -> Self {
        let headers = std::iter::once("ID").chain(headers.iter().copied()).map(str::to_owned).collect();
        Self { headers, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let number = Cell::from((self.rows.len() + 1).to_string());
        self.rows.push(std::iter::once(number).chain(cells).collect());
    }

    /// The table as text. With more than ten rows the first header says how many.
    pub fn render(&self, colour: bool) -> String {
        let mut headers = self.headers.clone();
        if let Some(first) = headers.first_mut().filter(|_| self.rows.len() > 10) {
            *first = format!("ID ({})", self.rows.len());
        }
        let wrapped: Vec<Vec<Vec<String>>> =
            self.rows.iter().map(|row| row.iter().map(|cell| wrap(&plain::text(&cell.0))).collect()).collect();
        let widths: Vec<usize> = headers
            .iter()
            .enumerate()
            .map(|(i, header)| {
                let lines = wrapped.iter().filter_map(|row| row.get(i)).flatten();
                lines.map(|line| line.chars().count()).chain([header.chars().count()]).max().unwrap_or_default()
            })
            .collect();
        let lines: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        let ruler = format!("│{}│\n", lines.join("│"));
        let mut out = ruler.clone();
        line(&mut out, &widths, |i| (headers.get(i).map_or("", String::as_str), None), colour);
        out.push_str(&ruler);
        for (row, cells) in wrapped.iter().zip(&self.rows) {
            let height = row.iter().map(Vec::len).max().unwrap_or_default();
            for n in 0..height {
                let cell = |i: usize| {
                    let text = row.get(i).and_then(|lines| lines.get(n)).map_or("", String::as_str);
                    (text, cells.get(i).and_then(|cell| cell.1))
                };
                line(&mut out, &widths, cell, colour);
            }
        }
        out.push_str(&ruler);
        out
    }
}

fn line<'c>(out: &mut String, widths: &[usize], cell: impl Fn(usize) -> (&'c str, Option<Colour>), colour: bool) {
    for (i, width) in widths.iter().enumerate() {
        let (text, shade) = cell(i);
        let padding = " ".repeat(width.saturating_sub(text.chars().count()));
        let text = shade.map_or_else(|| text.to_owned(), |shade| paint(text, shade, colour));
        let _ = write!(out, "│ {text}{padding} ");
    }
    out.push_str("│\n");
}

/// The lines of a cell: those of the text, long ones broken at spaces.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut current = String::new();
        let mut width = 0;
        for word in line.split(' ') {
            let length = word.chars().count();
            if width > 0 && width + 1 + length > WIDEST {
                lines.push(std::mem::take(&mut current));
                width = 0;
            }
            if width > 0 {
                current.push(' ');
                width += 1;
            }
            current.push_str(word);
            width += length;
        }
        lines.push(current);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_upstreams_look() {
        let mut table = Table::numbered(&["POLICY", "RESULT"]);
        table.row(["disallow-latest".into(), Cell("Fail".into(), Some(Colour::Red))]);
        table.row(["p".into(), "Pass".into()]);
        let lines = [
            "│────│─────────────────│────────│",
            "│ ID │ POLICY          │ RESULT │",
            "│────│─────────────────│────────│",
            "│ 1  │ disallow-latest │ Fail   │",
            "│ 2  │ p               │ Pass   │",
            "│────│─────────────────│────────│\n",
        ];
        assert_eq!(table.render(false), lines.join("\n"));
        assert!(table.render(true).contains("\u{1b}[31mFail\u{1b}[0m   │"));
    }

    #[test]
    fn many_rows_are_counted_and_long_cells_wrapped() {
        let mut table = Table::numbered(&["MESSAGE"]);
        for _ in 0..11 {
            table.row(["word ".repeat(100).trim_end().into()]);
        }
        let text = table.render(false);
        assert!(text.contains("│ ID (11) │ MESSAGE"), "{text}");
        assert_eq!(text.lines().count(), 3 + 11 * 2 + 1);
    }
}
