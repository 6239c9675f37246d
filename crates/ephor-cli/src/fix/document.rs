//! A document as text and value at once: edits that keep its layout.
//!
//! Whatever stands behind an alias or came in by a merge key is left alone: its text is elsewhere and may have other
//! readers.

use std::ops::Range;

use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_expr::yaml::{ScalarStyle, SourceMap};

use super::edit::Edit;

/// One document of a file.
pub(super) struct Document<'t> {
    text: &'t str,
    value: &'t Value,
    map: &'t SourceMap,
}

/// How a new member's value is written.
pub(super) enum Written {
    /// On the line of its key.
    Inline(String),
    /// On lines below its key, without indentation.
    Block(Vec<String>),
}

impl<'t> Document<'t> {
    pub(super) fn new(text: &'t str, value: &'t Value, map: &'t SourceMap) -> Self {
        Self { text, value, map }
    }

    pub(super) fn kind(&self) -> (&'t str, &'t str) {
        (self.value.str_at(&["apiVersion"]).unwrap_or_default(), self.value.str_at(&["kind"]).unwrap_or_default())
    }

    /// Whether the document is a `ClusterPolicy` or `Policy`.
    pub(super) fn is_policy(&self) -> bool {
        let (api_version, kind) = self.kind();
        api_version.starts_with("kyverno.io/") && matches!(kind, "ClusterPolicy" | "Policy")
    }

    pub(super) fn get(&self, path: &Path) -> Option<&'t Value> {
        path.lookup(self.value)
    }

    pub(super) fn str(&self, path: &Path) -> Option<&'t str> {
        self.get(path).and_then(Value::as_str)
    }

    /// The paths of the policy's rules.
    pub(super) fn rules(&self) -> Vec<Path> {
        let rules = Path::root().keys(&["spec", "rules"]);
        let count = self.get(&rules).and_then(Value::as_array).map_or(0, <[Value]>::len);
        (0..count).map(|i| rules.index(i)).collect()
    }

    /// The text of the value at `path`, if it stands in its place in the document.
    fn range(&self, path: &Path) -> Option<Range<usize>> {
        let mut outer = 0..self.text.len();
        for length in 0..=path.0.len() {
            let part = Path(path.0.get(..length)?.to_vec());
            let span = self.map.value_span(&part)?;
            let inner = span.start.offset as usize..span.end.offset as usize;
            let inside = outer.start <= inner.start && inner.end <= outer.end;
            let before = self.text.get(..inner.start)?.split_whitespace().next_back().unwrap_or_default();
            let shared = self.text.get(inner.clone())?.starts_with('*') || before.starts_with(['&', '!']);
            if !inside || shared {
                return None;
            }
            outer = inner;
        }
        Some(outer)
    }

    fn key_range(&self, path: &Path) -> Option<Range<usize>> {
        self.range(path)?;
        let span = self.map.key_span(path)?;
        let parent = self.range(&Path(path.0.split_last()?.1.to_vec()))?;
        let key = span.start.offset as usize..span.end.offset as usize;
        (parent.start <= key.start && key.end <= parent.end).then_some(key)
    }

    /// Another text for the string at `path`, quoted as before.
    pub(super) fn set_text(&self, path: &Path, new: &str) -> Option<Edit> {
        let range = self.range(path)?;
        let quote = match self.map.scalar_style(path)? {
            ScalarStyle::Plain => "",
            ScalarStyle::SingleQuoted => "'",
            ScalarStyle::DoubleQuoted => "\"",
            ScalarStyle::Literal | ScalarStyle::Folded => return None,
        };
        Some(Edit::replace(range, format!("{quote}{new}{quote}")))
    }

    /// Another name for the member at `path`.
    pub(super) fn rename(&self, path: &Path, new: &str) -> Option<Edit> {
        let key = self.key_range(path)?;
        let plain = !self.text.get(key.clone())?.starts_with(['"', '\'', '&', '!', '?']);
        plain.then(|| Edit::replace(key, new))
    }

    /// Brackets around the string at `path`, which makes it a list of one.
    pub(super) fn bracket(&self, path: &Path) -> Option<Vec<Edit>> {
        let range = self.range(path)?;
        let plain = match self.map.scalar_style(path)? {
            ScalarStyle::Plain => true,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => false,
            ScalarStyle::Literal | ScalarStyle::Folded => return None,
        };
        if plain && self.text.get(range.clone())?.contains([',', '[', ']', '{', '}', '\n']) {
            return None;
        }
        Some(vec![Edit::insert(range.start, "["), Edit::insert(range.end, "]")])
    }

    fn is_flow(&self, range: &Range<usize>) -> bool {
        self.text.get(range.clone()).is_some_and(|text| text.starts_with(['{', '[']))
    }

    fn line_start(&self, offset: usize) -> usize {
        self.text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
    }

    /// Where the line of `offset` ends, before its line break.
    fn line_end(&self, offset: usize) -> usize {
        let rest = self.text.get(offset..).unwrap_or_default();
        offset
            + rest
                .find('\n')
                .map_or(rest.len(), |at| at - usize::from(rest.get(..at).is_some_and(|l| l.ends_with('\r'))))
    }

    fn line_break(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn column(&self, offset: usize) -> usize {
        self.text.get(self.line_start(offset)..offset).map_or(0, |before| before.chars().count())
    }

    /// The comment that belongs to a member of a block: behind its value, or behind its key if the value begins on the
    /// next line. Empty if there is none.
    pub(super) fn comment(&self, path: &Path) -> &'t str {
        let comment = || {
            let (key, value) = (self.key_range(path)?, self.range(path)?);
            let below = self.line_start(key.start) != self.line_start(value.start);
            let from = if below { key.end } else { value.end };
            let rest = self.text.get(from..self.line_end(from))?.trim_start_matches(':').trim();
            rest.starts_with('#').then_some(rest)
        };
        comment().unwrap_or_default()
    }

    /// Takes the member at `path` away, and its comment with it: for a member that is written elsewhere.
    pub(super) fn take(&self, path: &Path) -> Option<Edit> {
        let mut edit = self.remove(path)?;
        if !edit.text.is_empty() {
            let next = self.text.get(edit.range.end..).map_or(0, |t| t.find('\n').map_or(t.len(), |at| at + 1));
            edit.range.end += next;
            edit.text.clear();
        }
        Some(edit)
    }

    /// Takes the member at `path` away. A comment behind it stays.
    pub(super) fn remove(&self, path: &Path) -> Option<Edit> {
        let key = self.key_range(path)?;
        let value = self.range(path)?;
        let parent = self.range(&Path(path.0.split_last()?.1.to_vec()))?;
        let end = key.end.max(value.end);
        if self.is_flow(&parent) {
            let rest = self.text.get(end..parent.end)?;
            let after = rest.trim_start();
            if let Some(next) = after.strip_prefix(',') {
                return Some(Edit::replace(key.start..parent.end - next.trim_start().len(), ""));
            }
            let before = self.text.get(parent.start..key.start)?.trim_end();
            let start = parent.start + before.strip_suffix(',').unwrap_or(before).len();
            return Some(Edit::replace(start..end, ""));
        }
        let start = self.line_start(key.start);
        let indent = self.text.get(start..key.start)?;
        if !indent.trim().is_empty() {
            return None;
        }
        let line_end = self.line_end(end);
        let rest = self.text.get(end..line_end)?.trim();
        if rest.starts_with('#') {
            return Some(Edit::replace(start..line_end, format!("{indent}{rest}")));
        }
        let next = self.text.get(line_end..).map_or(0, |t| t.find('\n').map_or(t.len(), |at| at + 1));
        rest.is_empty().then(|| Edit::replace(start..line_end + next, ""))
    }

    /// Adds a first member to the object at `path`.
    pub(super) fn insert(&self, path: &Path, key: &str, value: &Written) -> Option<Edit> {
        self.insert_with(path, key, value, "")
    }

    /// Adds a first member with a comment, which an object in braces cannot hold.
    pub(super) fn insert_with(&self, path: &Path, key: &str, value: &Written, comment: &str) -> Option<Edit> {
        let object = self.get(path)?.as_object()?;
        let range = self.range(path)?;
        if self.is_flow(&range) {
            let Written::Inline(value) = value else { return None };
            let comma = if object.is_empty() { "" } else { ", " };
            return Some(Edit::insert(range.start + 1, format!("{key}: {value}{comma}")));
        }
        let at = self.line_end(self.key_range(path)?.start);
        if object.is_empty() || at > range.start {
            return None;
        }
        let indent = " ".repeat(self.column(range.start));
        let comment = if comment.is_empty() { String::new() } else { format!(" {comment}") };
        let lines = match value {
            Written::Inline(value) => vec![format!("{indent}{key}: {value}{comment}")],
            Written::Block(lines) => {
                let below = lines.iter().map(|line| format!("{indent}  {line}").trim_end().to_owned());
                std::iter::once(format!("{indent}{key}:{comment}")).chain(below).collect()
            }
        };
        let line_break = self.line_break();
        Some(Edit::insert(at, format!("{line_break}{}", lines.join(line_break))))
    }

    /// The value at `path` as it can be written somewhere else; in an object in braces if `flow`.
    pub(super) fn copy(&self, path: &Path, flow: bool) -> Option<Written> {
        let range = self.range(path)?;
        let text = self.text.get(range.clone())?;
        if self.is_flow(&range) && !text.contains('\n') {
            return Some(Written::Inline(text.to_owned()));
        }
        if flow || self.is_flow(&range) {
            return Some(Written::Inline(self.get(path)?.to_json()));
        }
        let indent = self.column(range.start);
        let dedent = |line: &str| {
            let spaces = line.len() - line.trim_start_matches(' ').len();
            line.get(spaces.min(indent)..).unwrap_or_default().trim_end().to_owned()
        };
        // From the line below the key, so that a comment above the first part comes along.
        let below = self.line_end(self.key_range(path)?.end);
        // The comment behind the last part belongs to it.
        let line_end = self.line_end(range.end);
        let commented = self.text.get(range.end..line_end)?.trim_start().starts_with('#');
        let end = if commented { line_end } else { range.end };
        let lines = self.text.get(below..end)?.trim_end().lines().skip(1);
        Some(Written::Block(lines.map(dedent).collect()))
    }

    /// Whether the object at `path` is written in braces.
    pub(super) fn in_braces(&self, path: &Path) -> bool {
        self.range(path).is_some_and(|range| self.is_flow(&range))
    }

    /// Puts all members of the object at `path` into a list of one under a new key.
    pub(super) fn wrap(&self, path: &Path, key: &str) -> Option<Vec<Edit>> {
        let range = self.range(path)?;
        if self.is_flow(&range) {
            return Some(vec![
                Edit::insert(range.start + 1, format!("{key}: [{{")),
                Edit::insert(range.end.checked_sub(1)?, "}]"),
            ]);
        }
        let indent = " ".repeat(self.column(range.start));
        let before = self.text.get(self.line_start(range.start)..range.start)?;
        if !before.trim().is_empty() {
            return None;
        }
        let mut edits = vec![Edit::insert(range.start, format!("{key}:{}{indent}- ", self.line_break()))];
        let inner = self.text.get(range.clone())?.trim_end();
        for (at, _) in inner.match_indices('\n') {
            let line = inner.get(at + 1..)?.lines().next().unwrap_or_default();
            if !line.trim().is_empty() {
                edits.push(Edit::insert(range.start + at + 1, "  "));
            }
        }
        Some(edits)
    }
}
