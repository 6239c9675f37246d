//! Files of many documents, one document's text at a time.

use std::io::{self, BufRead, BufReader, Read};

use super::document::Document;
use super::error::YamlError;
use super::options::{Limits, Options};
use super::position::{Position, locate};
use crate::Value;

/// The text of one document of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDocument {
    /// The text. A `---` line before it is left out unless it carries content or follows a directive.
    pub text: String,
    /// The number of its first line in the stream, from 1.
    pub first_line: u32,
}

impl RawDocument {
    /// The values in it, lines of errors being those of the stream: one, or none when it only looked like a document.
    pub fn values(&self, options: &Options) -> Result<Vec<Value>, YamlError> {
        self.placed(options).values(&self.text)
    }

    /// As [`RawDocument::values`] with source maps, whose lines are those of the stream too.
    pub fn documents(&self, options: &Options) -> Result<Vec<Document>, YamlError> {
        self.placed(options).documents(&self.text)
    }

    fn placed(&self, options: &Options) -> Options {
        Options { lines_before: self.first_line.saturating_sub(1), ..options.clone() }
    }
}

/// Why a stream ends early.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The source cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The source is no text, or a document in it is too long.
    #[error(transparent)]
    Text(#[from] YamlError),
}

/// Splits a byte stream into documents without holding more than one of them.
///
/// Documents are separated by lines that begin with `---` or `...`, also inside of block scalars, and by the end of a
/// JSON object that is followed by a line with another. Documents of comments alone are left out. After an error the
/// stream ends.
#[derive(Debug)]
pub struct DocumentStream<R> {
    reader: BufReader<R>,
    max_bytes: usize,
    lines_read: u32,
    /// Bytes that belong to the next document already: a line that both separates and says something.
    carried: Vec<u8>,
    finished: bool,
}

impl<R: Read> DocumentStream<R> {
    /// A stream over `reader` with the default bound on a document's length, that of [`Limits`].
    pub fn new(reader: R) -> Self {
        Self::with_max_bytes(reader, Limits::default().max_bytes)
    }

    /// A stream over `reader` in which a document has at most `max_bytes` bytes, the line that ends it included.
    pub fn with_max_bytes(reader: R, max_bytes: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            max_bytes,
            lines_read: 0,
            carried: Vec::new(),
            finished: false,
        }
    }

    fn next_document(&mut self) -> Result<Option<RawDocument>, StreamError> {
        let mut bytes = std::mem::take(&mut self.carried);
        let mut first_line = if bytes.is_empty() { self.lines_read + 1 } else { self.lines_read };
        let mut seen = Seen::default();
        if !bytes.is_empty() {
            seen.read_content(&bytes);
        }
        loop {
            let start = bytes.len();
            if !self.read_line(&mut bytes, first_line)? {
                self.finished = true;
                break;
            }
            let line = bytes.get(start..).unwrap_or_default();
            match Line::of(line, self.lines_read == 1) {
                // A directive belongs to the `---` after it.
                Line::Start if seen.directive && !seen.content => seen.content = true,
                Line::Start | Line::End if !seen.content => {
                    bytes.clear();
                    seen = Seen::default();
                    first_line = self.lines_read + 1;
                }
                Line::Start | Line::End => {
                    bytes.truncate(start);
                    break;
                }
                Line::StartWithContent if seen.content => {
                    self.carried = bytes.split_off(start);
                    break;
                }
                Line::StartWithContent => seen.content = true,
                Line::Directive if !seen.content => seen.directive = true,
                Line::Blank => {}
                Line::Directive | Line::Content => {
                    if line.starts_with(b"{") && seen.json.is_some_and(|json| json.depth == 0) {
                        self.carried = bytes.split_off(start);
                        break;
                    }
                    seen.read_content(line);
                }
            }
        }
        if !seen.content && !seen.directive {
            return Ok(None);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(RawDocument { text, first_line })),
            Err(error) => Err(invalid_utf8(error.as_bytes(), error.utf8_error().valid_up_to(), first_line).into()),
        }
    }

    /// Appends the next line with its line break to `bytes`; false at the end of the stream.
    fn read_line(&mut self, bytes: &mut Vec<u8>, first_line: u32) -> Result<bool, StreamError> {
        let room = self.max_bytes.saturating_sub(bytes.len()).saturating_add(1);
        let read = self.reader.by_ref().take(room as u64).read_until(b'\n', bytes)?;
        if bytes.len() > self.max_bytes {
            let text = String::from_utf8_lossy(bytes);
            let message = format!("expected at most {} bytes in one document", self.max_bytes);
            return Err(YamlError { message, position: locate(&text, self.max_bytes, first_line) }.into());
        }
        self.lines_read = self.lines_read.saturating_add(u32::from(read > 0));
        Ok(read > 0)
    }
}

impl<R: Read> Iterator for DocumentStream<R> {
    type Item = Result<RawDocument, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let next = self.next_document();
        self.finished |= next.is_err();
        next.transpose()
    }
}

/// What a document has so far.
#[derive(Default)]
struct Seen {
    /// Something other than comments and directives.
    content: bool,
    directive: bool,
    /// Its brackets, if it starts like JSON.
    json: Option<Json>,
}

impl Seen {
    fn read_content(&mut self, line: &[u8]) {
        if !self.content && line.starts_with(b"{") {
            self.json = Some(Json::default());
        }
        self.content = true;
        if let Some(json) = &mut self.json {
            json.read(line);
        }
    }
}

/// What a line is to the division into documents.
enum Line {
    /// `---` alone or with a comment.
    Start,
    /// `---` with content.
    StartWithContent,
    /// `...`
    End,
    Directive,
    /// Nothing or a comment.
    Blank,
    Content,
}

impl Line {
    fn of(line: &[u8], first: bool) -> Self {
        let line = if first { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) } else { line };
        let is_blank = |rest: &[u8]| {
            let first = rest.iter().find(|b| !b.is_ascii_whitespace());
            first.is_none_or(|b| *b == b'#')
        };
        let marker =
            |name: &[u8]| line.strip_prefix(name).filter(|rest| rest.first().is_none_or(u8::is_ascii_whitespace));
        if let Some(rest) = marker(b"---") {
            return if is_blank(rest) { Line::Start } else { Line::StartWithContent };
        }
        if marker(b"...").is_some_and(is_blank) {
            Line::End
        } else if line.starts_with(b"%") {
            Line::Directive
        } else if is_blank(line) {
            Line::Blank
        } else {
            Line::Content
        }
    }
}

/// Counts the brackets of JSON text.
#[derive(Default, Clone, Copy)]
struct Json {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Json {
    fn read(&mut self, line: &[u8]) {
        for byte in line {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

/// The text that `bytes` are, or the place of the first that are no UTF-8.
pub fn text_from_utf8(bytes: &[u8]) -> Result<&str, YamlError> {
    std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, error.valid_up_to(), 1))
}

fn invalid_utf8(bytes: &[u8], valid_up_to: usize, first_line: u32) -> YamlError {
    let valid = bytes.get(..valid_up_to).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default();
    let position: Position = locate(valid, valid_up_to, first_line);
    let byte = bytes.get(valid_up_to).copied().unwrap_or_default();
    YamlError { message: format!("expected UTF-8 text, found the byte 0x{byte:02x}"), position }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(u32, String)> {
        DocumentStream::new(text.as_bytes()).map(|d| d.unwrap()).map(|d| (d.first_line, d.text)).collect()
    }

    fn error(bytes: &[u8], max: usize) -> YamlError {
        let mut stream = DocumentStream::with_max_bytes(bytes, max);
        let error = stream.by_ref().find_map(Result::err).unwrap();
        assert!(stream.next().is_none(), "the stream ends after an error");
        match error {
            StreamError::Text(error) => error,
            StreamError::Io(error) => panic!("{error}"),
        }
    }

    #[test]
    fn documents_split_at_markers() {
        for (text, want) in [
            ("", vec![]),
            ("# c\n---\n# d\n--- # e\n\n", vec![]),
            ("a: 1", vec![(1, "a: 1")]),
            ("# c\n---\na: 1\n---\nb: 2\n", vec![(3, "a: 1\n"), (5, "b: 2\n")]),
            ("a\n---\n---\n---\nb\n", vec![(1, "a\n"), (5, "b\n")]),
            ("a\r\n---\r\nb\r\n", vec![(1, "a\r\n"), (3, "b\r\n")]),
            ("\u{feff}---\na\n", vec![(2, "a\n")]),
            ("a\n--- {b: 1}\n---\tx\n", vec![(1, "a\n"), (2, "--- {b: 1}\n"), (3, "---\tx\n")]),
            ("a: |\n  x\n  ---\n---x\n --- y\n", vec![(1, "a: |\n  x\n  ---\n---x\n --- y\n")]),
            ("a: |\n  x\n---\nb\n", vec![(1, "a: |\n  x\n"), (4, "b\n")]),
            ("a\n...\n# c\nb\n... # d\n...\n", vec![(1, "a\n"), (3, "# c\nb\n")]),
            ("%YAML 1.2\n---\na\n...\n%YAML 1.2\n--- b\n", vec![(1, "%YAML 1.2\n---\na\n"), (5, "%YAML 1.2\n--- b\n")]),
            ("a: b\n%c: d\n", vec![(1, "a: b\n%c: d\n")]),
        ] {
            let want: Vec<_> = want.into_iter().map(|(line, text)| (line, text.to_owned())).collect();
            assert_eq!(split(text), want, "{text:?}");
        }
    }

    #[test]
    fn json_objects_need_no_markers() {
        let text = "{\"a\": \"}\\\"{\"}\n{\n\"b\": [\n{\"x\": 1},\n{\"y\": 2}\n]}\n\n{}\n---\n{\"c\": 1}\n";
        let values: Vec<String> = DocumentStream::new(text.as_bytes())
            .flat_map(|document| document.unwrap().values(&Options::default()).unwrap())
            .map(|value| value.to_json())
            .collect();
        assert_eq!(values, [r#"{"a":"}\"{"}"#, r#"{"b":[{"x":1},{"y":2}]}"#, "{}", r#"{"c":1}"#]);
    }

    #[test]
    fn lines_are_those_of_the_stream() {
        let text = "a: 1\n---\nb: 1\nb: 2\n";
        let second = DocumentStream::new(text.as_bytes()).nth(1).unwrap().unwrap();
        let error = second.values(&Options::default()).unwrap_err();
        assert_eq!((error.position.line, error.position.column), (4, 1));
        assert_eq!(
            second
                .documents(&Options { duplicate_keys: crate::yaml::DuplicateKeys::LastWins, ..Options::default() })
                .unwrap()[0]
                .start
                .line,
            3
        );
    }

    #[test]
    fn documents_over_the_limit_are_refused_with_their_place() {
        let error = error(b"a: 1\n---\nb: 12345\nc: 6789012345\n", 15);
        assert_eq!((error.position.line, error.position.column), (4, 7));
        assert_eq!(error.message, "expected at most 15 bytes in one document");
        assert!(DocumentStream::with_max_bytes(&b"a: 1\n---\nb: 2\n"[..], 9).all(|d| d.is_ok()));
    }

    #[test]
    fn an_endless_line_is_refused_at_the_limit() {
        let mut stream = DocumentStream::new(io::repeat(b'a'));
        assert!(matches!(stream.next(), Some(Err(StreamError::Text(_)))));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_place() {
        let error = error(b"a: 1\n---\nx: \xc3\xa9\ny: \xff\n", 100);
        assert_eq!((error.position.line, error.position.column), (4, 4));
        assert_eq!(error.message, "expected UTF-8 text, found the byte 0xff");
        assert_eq!(text_from_utf8(b"a\n\xc3").unwrap_err().position.line, 2);
        assert_eq!(text_from_utf8(b"ok"), Ok("ok"));
    }
}
