//! Keeping places while a value is built, or not.

use super::build::{Entry, Item};
use super::source_map::{Bytes, Content, Member, Node, ScalarStyle};
use crate::Str;

/// What a [`Builder`](super::build::Builder) remembers about the place of each value.
pub(super) trait Trace {
    /// The memory of one value and its parts.
    type Node: Clone;

    /// A scalar; `style` is `None` when its text is not a plain reading of its source (as with `!!binary`).
    fn scalar(at: Bytes, style: Option<ScalarStyle>) -> Self::Node;
    /// An array.
    fn items(at: Bytes, items: &[Item<Self::Node>]) -> Self::Node;
    /// An object, its entries sorted.
    fn members(at: Bytes, entries: &[Entry<Self::Node>]) -> Self::Node;
    /// The same value used through an alias at another place.
    fn alias(at: Bytes, target: &Self::Node) -> Self::Node;
    /// The key and value of one member of an object.
    fn member(object: &Self::Node, key: &Str) -> Option<(Bytes, Self::Node)>;
    /// One item of an array.
    fn item(array: &Self::Node, index: usize) -> Option<Self::Node>;
}

/// Keeps nothing.
pub(super) struct NoTrace;

impl Trace for NoTrace {
    type Node = ();

    fn scalar(_: Bytes, _: Option<ScalarStyle>) {}
    fn items(_: Bytes, _: &[Item<()>]) {}
    fn members(_: Bytes, _: &[Entry<()>]) {}
    fn alias(_: Bytes, (): &()) {}
    fn member((): &(), _: &Str) -> Option<(Bytes, ())> {
        Some((Bytes { start: 0, end: 0 }, ()))
    }
    fn item((): &(), _: usize) -> Option<()> {
        Some(())
    }
}

/// Keeps the nodes of a [`SourceMap`](super::SourceMap).
pub(super) struct FullTrace;

impl Trace for FullTrace {
    type Node = Node;

    fn scalar(at: Bytes, style: Option<ScalarStyle>) -> Node {
        Node { at, content: style.map_or(Content::Opaque, Content::Scalar) }
    }

    fn items(at: Bytes, items: &[Item<Node>]) -> Node {
        Node { at, content: Content::Items(items.iter().map(|(_, node)| node.clone()).collect()) }
    }

    fn members(at: Bytes, entries: &[Entry<Node>]) -> Node {
        let members = entries
            .iter()
            .map(|entry| Member { key: entry.key.clone(), key_at: entry.key_at, node: entry.node.clone() })
            .collect();
        Node { at, content: Content::Members(members) }
    }

    fn alias(at: Bytes, target: &Node) -> Node {
        let content = match &target.content {
            Content::Scalar(_) | Content::Opaque => Content::Opaque,
            collection => collection.clone(),
        };
        Node { at, content }
    }

    fn member(object: &Node, key: &Str) -> Option<(Bytes, Node)> {
        let Content::Members(members) = &object.content else { return None };
        let i = members.binary_search_by(|member| member.key.cmp(key)).ok()?;
        members.get(i).map(|member| (member.key_at, member.node.clone()))
    }

    fn item(array: &Node, index: usize) -> Option<Node> {
        let Content::Items(items) = &array.content else { return None };
        items.get(index).cloned()
    }
}
