//! Where the parts of a document stand in its text.

use std::sync::Arc;

use super::position::{Lines, Position, Span};
use super::scalar_text;
use crate::Str;
use crate::value::{Path, Segment};

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarStyle {
    /// Without quotes.
    Plain,
    /// In `'`.
    SingleQuoted,
    /// In `"`.
    DoubleQuoted,
    /// A block after `|`.
    Literal,
    /// A block after `>`.
    Folded,
}

/// Half-open byte range of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Where a value stands, and its parts.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: Bytes,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Scalar(ScalarStyle),
    /// A scalar whose text does not stand here as such: behind an alias, or `!!binary`.
    Opaque,
    Items(Arc<[Node]>),
    /// Sorted by key, as the object itself.
    Members(Arc<[Member]>),
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: Str,
    pub(super) key_at: Bytes,
    pub(super) node: Node,
}

/// Maps paths of a document's value to places in its text.
///
/// A value behind an alias has the place of the alias; its parts have their places behind the anchor. Members that
/// came in by a merge key (`<<`) have their places in the merged object.
#[derive(Debug, Clone)]
pub struct SourceMap {
    lines: Arc<Lines>,
    root: Node,
}

impl SourceMap {
    pub(super) fn new(lines: Arc<Lines>, root: Node) -> Self {
        Self { lines, root }
    }

    /// The map of the value at `path` alone; `None` when the document has no such path.
    pub fn part(&self, path: &Path) -> Option<SourceMap> {
        self.find(path).map(|(node, _)| Self { lines: Arc::clone(&self.lines), root: node.clone() })
    }

    /// Where the value at `path` stands; `None` when the document has no such path.
    pub fn value_span(&self, path: &Path) -> Option<Span> {
        self.find(path).map(|(node, _)| self.span(node.at))
    }

    /// Where the key of the member at `path` stands; `None` when the document has no such path, or it ends in an
    /// array's index.
    pub fn key_span(&self, path: &Path) -> Option<Span> {
        self.find(path).and_then(|(_, key)| key).map(|key| self.span(key))
    }

    /// Where the deepest existing value on the way to `path` stands: the value itself if it exists, at worst the
    /// whole document.
    pub fn nearest_span(&self, path: &Path) -> Span {
        let mut node = &self.root;
        for segment in &path.0 {
            match node.child(segment) {
                Some((child, _)) => node = child,
                None => break,
            }
        }
        self.span(node.at)
    }

    /// How the scalar at `path` is written; `None` when there is no scalar.
    pub fn scalar_style(&self, path: &Path) -> Option<ScalarStyle> {
        match self.find(path)?.0.content {
            Content::Scalar(style) => Some(style),
            _ => None,
        }
    }

    /// The place in the text of byte `offset` of the string value at `path`, quotes, escapes, line folding and block
    /// indentation taken into account. The end of the string is a place too. `None` when there is no scalar at
    /// `path`, it comes from an alias, or the offset is outside of it.
    pub fn offset_in_scalar(&self, path: &Path, offset: usize) -> Option<Position> {
        let node = self.find(path)?.0;
        let Content::Scalar(style) = node.content else { return None };
        let found = scalar_text::source_offset(&self.lines.text, node.at, style, offset)?;
        Some(self.lines.position(found as u32))
    }

    fn span(&self, at: Bytes) -> Span {
        self.lines.span(at.start, at.end)
    }

    fn find(&self, path: &Path) -> Option<(&Node, Option<Bytes>)> {
        path.0.iter().try_fold((&self.root, None), |(node, _), segment| node.child(segment))
    }
}

impl Node {
    fn child(&self, segment: &Segment) -> Option<(&Node, Option<Bytes>)> {
        match (&self.content, segment) {
            (Content::Items(items), Segment::Index(i)) => items.get(*i).map(|node| (node, None)),
            (Content::Members(members), Segment::Key(key)) => {
                let i = members.binary_search_by(|member| member.key.cmp(key)).ok()?;
                members.get(i).map(|member| (&member.node, Some(member.key_at)))
            }
            _ => None,
        }
    }
}
