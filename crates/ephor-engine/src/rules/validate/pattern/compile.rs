//! Patterns ready to match: keys split from their anchors and put in the order of evaluation, scalars parsed.

use std::sync::Arc;

use ephor_expr::scalar::wildcard::{Wildcard, has_wildcard};
use ephor_expr::{Map, Str, Value};

use super::scalar::{Scalar, Scalars};
use crate::rules::anchor::{Anchor, parse_anchor};

/// The deepest pattern that can match; deeper parts never do. Documents are bounded more tightly when they are read.
const MAX_DEPTH: usize = 256;

/// A part of a pattern.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Map(MapNode),
    /// A `labels` or `annotations` block with wildcard keys, by its number in the pattern.
    Block(usize),
    List(ListNode),
    Scalar(Scalar),
    /// Below the depth limit.
    TooDeep,
}

/// A list of a pattern.
#[derive(Debug, Clone)]
pub(super) enum ListNode {
    /// Matches nothing.
    Empty,
    /// A list that begins with a map: that map is for every item.
    Maps(Box<Node>),
    /// A list that begins with a scalar: that scalar is for every item.
    Scalars(Scalar),
    /// A list that begins with a list: item by item.
    Positional(Vec<Node>),
}

/// A map of a pattern.
#[derive(Debug, Clone, Default)]
pub(super) struct MapNode {
    /// Keys evaluated first, in byte order: all anchors but global ones.
    pub(super) anchored: Box<[Entry]>,
    /// Then global anchors and keys with anchors below, last one first; then the others in order.
    pub(super) rest: Box<[Entry]>,
    /// The blocks with wildcard keys in this map's `metadata`.
    pub(super) blocks: Box<[BlockRef]>,
}

/// A key of a pattern and what it asks for.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// As written.
    pub(super) key: Str,
    /// Without anchor.
    pub(super) name: Str,
    pub(super) rule: Rule,
    /// The name as a wildcard, if it is one and stands where those work.
    pub(super) wildcard: Option<Wildcard>,
    /// Whether the value has anchors.
    anchors_below: bool,
}

/// What a key asks of its value.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    Plain(Node),
    /// `"*"` under a plain key: anything but null.
    Present,
    Condition(Node),
    Global(Node),
    Equality(Node),
    Existence(Vec<Node>),
    Negation,
}

/// A block with wildcard keys, as seen from the map that holds the metadata.
#[derive(Debug, Clone)]
pub(super) struct BlockRef {
    /// `labels` or `annotations`.
    pub(super) tag: &'static str,
    /// The block's number in the pattern.
    pub(super) id: usize,
}

impl Entry {
    /// The same entry for the key `name`.
    pub(super) fn renamed(&self, name: &Str) -> Entry {
        let key = match parse_anchor(&self.key) {
            Some((anchor, _)) => Str::from(format!("{}({name})", anchor.prefix())),
            None => name.clone(),
        };
        Entry { key, name: name.clone(), wildcard: None, ..self.clone() }
    }
}

impl MapNode {
    /// Puts entries in their order of evaluation.
    pub(super) fn arranged(entries: Vec<Entry>, blocks: Vec<BlockRef>) -> MapNode {
        let early = |e: &Entry| !matches!(e.rule, Rule::Plain(_) | Rule::Present | Rule::Global(_));
        let (mut anchored, rest): (Vec<_>, Vec<_>) = entries.into_iter().partition(early);
        let first = |e: &Entry| e.anchors_below || matches!(e.rule, Rule::Global(_));
        let (mut rest, mut last): (Vec<_>, Vec<_>) = rest.into_iter().partition(first);
        anchored.sort_by(|a, b| a.key.cmp(&b.key));
        rest.sort_by(|a, b| b.key.cmp(&a.key));
        last.sort_by(|a, b| a.key.cmp(&b.key));
        rest.append(&mut last);
        // Policies keep many of them: no room that is not needed.
        MapNode { anchored: anchored.into(), rest: rest.into(), blocks: blocks.into() }
    }
}

/// Where a map stands, for the keys that can be wildcards.
enum Place<'a> {
    Anywhere,
    /// The value of a `metadata` key of the map that collects these blocks.
    Metadata(&'a mut Vec<BlockRef>),
    /// A `labels` or `annotations` block of a metadata.
    Block(&'static str, &'a mut Vec<BlockRef>),
}

/// Compiles one pattern.
pub(super) struct Compiler {
    scalars: Scalars,
    blocks: Vec<Arc<MapNode>>,
}

impl Compiler {
    /// The compiled pattern, and its blocks with wildcard keys by number.
    pub(super) fn compile(pattern: &Value, scalars: Scalars) -> (Node, Vec<Arc<MapNode>>) {
        let mut compiler = Compiler { scalars, blocks: Vec::new() };
        let (root, _) = compiler.node(pattern, Place::Anywhere, 0);
        (root, compiler.blocks)
    }

    /// Compiles `value`; also says whether there are anchors in it.
    fn node(&mut self, value: &Value, place: Place<'_>, depth: usize) -> (Node, bool) {
        if depth > MAX_DEPTH {
            return (Node::TooDeep, false);
        }
        match value {
            Value::Object(map) => self.map(map, place, depth),
            Value::Array(items) => self.list(items, depth),
            scalar => (Node::Scalar(Scalar::new(scalar, self.scalars)), false),
        }
    }

    fn list(&mut self, items: &[Value], depth: usize) -> (Node, bool) {
        let (mut nodes, anchors) = self.nodes(items, depth);
        let list = match nodes.first() {
            None => ListNode::Empty,
            Some(Node::Scalar(scalar)) => ListNode::Scalars(scalar.clone()),
            Some(Node::List(_) | Node::TooDeep) => ListNode::Positional(nodes),
            Some(Node::Map(_) | Node::Block(_)) => ListNode::Maps(Box::new(nodes.swap_remove(0))),
        };
        (Node::List(list), anchors)
    }

    fn nodes(&mut self, items: &[Value], depth: usize) -> (Vec<Node>, bool) {
        let mut anchors = false;
        let nodes = items.iter().map(|item| {
            let (node, below) = self.node(item, Place::Anywhere, depth + 1);
            anchors |= below;
            node
        });
        (nodes.collect(), anchors)
    }

    fn map(&mut self, map: &Map, mut place: Place<'_>, depth: usize) -> (Node, bool) {
        let mut blocks = Vec::new();
        let mut entries = Vec::with_capacity(map.len());
        let mut anchors = false;
        for (key, value) in map.iter() {
            let (anchor, name) = match parse_anchor(key) {
                // Not an anchor in patterns; policies with it are refused.
                Some((Anchor::AddIfAbsent, _)) | None => (None, key.as_str()),
                Some((anchor, name)) => (Some(anchor), name),
            };
            anchors |= anchor.is_some();
            if matches!(place, Place::Block(..)) && value.as_str().is_none() {
                continue;
            }
            let below = match (&mut place, name) {
                (Place::Metadata(holder), "labels") => Place::Block("labels", holder),
                (Place::Metadata(holder), "annotations") => Place::Block("annotations", holder),
                (_, "metadata") => Place::Metadata(&mut blocks),
                _ => Place::Anywhere,
            };
            let (rule, anchors_below) = self.rule(anchor, value, below, depth + 1);
            anchors |= anchors_below;
            let wildcard = (matches!(place, Place::Block(..)) && has_wildcard(name)).then(|| Wildcard::new(name));
            entries.push(Entry { key: key.clone(), name: Str::new(name), rule, wildcard, anchors_below });
        }
        let has_wildcards = entries.iter().any(|e| e.wildcard.is_some());
        let node = MapNode::arranged(entries, blocks);
        match place {
            Place::Block(tag, holder) if has_wildcards => {
                let id = self.blocks.len();
                self.blocks.push(Arc::new(node));
                holder.push(BlockRef { tag, id });
                (Node::Block(id), anchors)
            }
            _ => (Node::Map(node), anchors),
        }
    }

    fn rule(&mut self, anchor: Option<Anchor>, value: &Value, place: Place<'_>, depth: usize) -> (Rule, bool) {
        let kind = match anchor {
            None if value.as_str() == Some("*") => return (Rule::Present, false),
            Some(Anchor::Negation) => return (Rule::Negation, false),
            Some(Anchor::Existence) => {
                let wanted = value.as_array().unwrap_or(std::slice::from_ref(value));
                let (nodes, anchors) = self.nodes(wanted, depth);
                return (Rule::Existence(nodes), anchors);
            }
            None | Some(Anchor::AddIfAbsent) => Rule::Plain,
            Some(Anchor::Condition) => Rule::Condition,
            Some(Anchor::Global) => Rule::Global,
            Some(Anchor::Equality) => Rule::Equality,
        };
        let (node, anchors) = self.node(value, place, depth);
        (kind(node), anchors)
    }
}
