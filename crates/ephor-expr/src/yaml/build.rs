//! Parse events to values, within limits and without recursion.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::error::Fault;
use super::options::{Dialect, DuplicateKeys, Options};
use super::resolve::{Scalar, Tag, resolve};
use super::source_map::{Bytes, ScalarStyle};
use super::trace::Trace;
use crate::{Map, Str, Value};

/// A finished item of an open array.
pub(super) type Item<N> = (Value, N);

/// A finished member of an open object.
pub(super) struct Entry<N> {
    pub(super) key: Str,
    value: Value,
    pub(super) key_at: Bytes,
    pub(super) node: N,
    /// Whether it came in through `<<`.
    merged: bool,
}

/// A scalar as the text has it.
pub(super) struct RawScalar<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) style: ScalarStyle,
    pub(super) tag: Tag,
    /// Number of its anchor, 0 if it has none.
    pub(super) anchor: usize,
    pub(super) at: Bytes,
}

/// A document's value and where it starts.
pub(super) struct Built<N> {
    pub(super) value: Value,
    pub(super) node: N,
    pub(super) start: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Collection {
    Array,
    Object,
}

impl Collection {
    fn name(self) -> &'static str {
        match self {
            Collection::Array => "an array",
            Collection::Object => "an object",
        }
    }
}

/// An array or object that is still open.
struct Frame {
    collection: Collection,
    /// Where its parts begin in `Builder::items` or `Builder::entries`.
    base: usize,
    anchor: usize,
    /// `Builder::nodes` when it was opened.
    nodes_before: usize,
    /// Height of the tallest part so far.
    height: usize,
    start: u32,
    /// Where its last part ends.
    end: u32,
    /// The key whose value comes next.
    key: Option<Key>,
}

struct Key {
    text: Str,
    at: Bytes,
    /// Whether the key is `<<` and its value's members are wanted instead of the value.
    merge: bool,
}

/// What an alias stands for.
struct Anchored<N> {
    value: Value,
    node: N,
    height: usize,
    /// Values in it, aliases followed.
    nodes: usize,
}

/// A finished value on its way into its parent.
struct Part<N> {
    value: Value,
    node: N,
    height: usize,
    at: Bytes,
}

pub(super) struct Builder<'o, T: Trace> {
    options: &'o Options,
    frames: Vec<Frame>,
    // Parts of all open collections lie on two shared stacks, so that a finished one is allocated once, to measure.
    items: Vec<Item<T::Node>>,
    entries: Vec<Entry<T::Node>>,
    anchors: FxHashMap<usize, Anchored<T::Node>>,
    nodes: usize,
    root: Option<Item<T::Node>>,
    document_start: u32,
    documents: Vec<Built<T::Node>>,
}

impl<'o, T: Trace> Builder<'o, T> {
    pub(super) fn new(options: &'o Options) -> Self {
        Self {
            options,
            frames: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            anchors: FxHashMap::default(),
            nodes: 0,
            root: None,
            document_start: 0,
            documents: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Vec<Built<T::Node>> {
        self.documents
    }

    pub(super) fn begin_document(&mut self, start: u32) {
        self.anchors.clear();
        self.root = None;
        self.document_start = start;
    }

    pub(super) fn end_document(&mut self) {
        if let Some((value, node)) = self.root.take() {
            self.documents.push(Built { value, node, start: self.document_start });
        }
    }

    /// A scalar, key or value.
    pub(super) fn scalar(&mut self, raw: RawScalar<'_>) -> Result<(), Fault> {
        let RawScalar { text, style, tag, anchor, at } = raw;
        self.count(1, at.start)?;
        let plain = style == ScalarStyle::Plain;
        let scalar = resolve(&text, plain, tag, self.options.dialect).map_err(|why| Fault::new(at.start, why))?;
        if self.key_is_next() {
            let merge = scalar == Scalar::Merge;
            let text = scalar.into_key().map_err(|why| Fault::new(at.start, why))?;
            if anchor != 0 {
                self.remember(anchor, Value::String(text.clone()), T::scalar(at, Some(style)), 0, 1);
            }
            self.set_key(Key { text, at, merge });
            return Ok(());
        }
        let value = scalar.into_value(self.options.dialect).map_err(|why| Fault::new(at.start, why))?;
        let node = T::scalar(at, (tag != Tag::Binary).then_some(style));
        if anchor != 0 {
            self.remember(anchor, value.clone(), node.clone(), 0, 1);
        }
        // A document without content arrives as an empty scalar.
        let empty = at.start == at.end && plain && tag == Tag::None && anchor == 0;
        if empty && self.frames.is_empty() {
            return Ok(());
        }
        self.attach(Part { value, node, height: 0, at })
    }

    /// Opens an array or object.
    pub(super) fn begin(&mut self, collection: Collection, anchor: usize, start: u32) -> Result<(), Fault> {
        self.count(1, start)?;
        if self.key_is_next() {
            return Err(Fault::new(start, format!("expected a string as key, found {}", collection.name())));
        }
        if self.frames.len() >= self.options.limits.max_depth {
            return Err(self.too_deep(start));
        }
        let base = match collection {
            Collection::Array => self.items.len(),
            Collection::Object => self.entries.len(),
        };
        let nodes_before = self.nodes - 1;
        self.frames.push(Frame { collection, base, anchor, nodes_before, height: 0, start, end: start, key: None });
        Ok(())
    }

    /// Closes the array or object opened last. `end` is where its closing bracket ends, `None` for block style.
    pub(super) fn end(&mut self, end: Option<u32>) -> Result<(), Fault> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let at = Bytes { start: frame.start, end: end.unwrap_or(frame.end) };
        let (value, node) = match frame.collection {
            Collection::Array => {
                let items = self.items.get(frame.base..).unwrap_or_default();
                let node = T::items(at, items);
                (Value::array(self.items.drain(frame.base..).map(|(value, _)| value).collect()), node)
            }
            Collection::Object => {
                self.settle_keys(frame.base)?;
                let node = T::members(at, self.entries.get(frame.base..).unwrap_or_default());
                let map: Map = self.entries.drain(frame.base..).map(|entry| (entry.key, entry.value)).collect();
                (Value::object(map), node)
            }
        };
        let height = frame.height + 1;
        if frame.anchor != 0 {
            self.remember(frame.anchor, value.clone(), node.clone(), height, self.nodes - frame.nodes_before);
        }
        self.attach(Part { value, node, height, at })
    }

    /// An alias of the anchor with the given number.
    pub(super) fn alias(&mut self, anchor: usize, at: Bytes) -> Result<(), Fault> {
        // An anchor gets its value when it ends; one without a value is still open.
        let Some(target) = self.anchors.get(&anchor) else {
            return Err(Fault::new(at.start, "an anchor's value must not contain an alias of itself"));
        };
        let (value, height, nodes) = (target.value.clone(), target.height, target.nodes);
        let node = T::alias(at, &target.node);
        self.count(nodes, at.start)?;
        if self.frames.len() + height > self.options.limits.max_depth {
            return Err(self.too_deep(at.start));
        }
        if self.key_is_next() {
            let text = match value {
                Value::String(text) => text,
                Value::Bool(_) | Value::Int(_) => Str::new(value.to_json()),
                other => {
                    let found = other.type_name();
                    return Err(Fault::new(at.start, format!("expected a string as key, found an alias of {found}")));
                }
            };
            self.set_key(Key { text, at, merge: false });
            return Ok(());
        }
        self.attach(Part { value, node, height, at })
    }

    fn key_is_next(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { collection: Collection::Object, key: None, .. }))
    }

    fn set_key(&mut self, key: Key) {
        if let Some(frame) = self.frames.last_mut() {
            frame.end = key.at.end;
            frame.key = Some(key);
        }
    }

    fn count(&mut self, nodes: usize, offset: u32) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(nodes);
        let max = self.options.limits.max_nodes;
        if self.nodes > max {
            return Err(Fault::new(offset, format!("expected at most {max} values, aliases followed")));
        }
        Ok(())
    }

    fn too_deep(&self, offset: u32) -> Fault {
        Fault::new(offset, format!("nested deeper than {} levels", self.options.limits.max_depth))
    }

    fn remember(&mut self, anchor: usize, value: Value, node: T::Node, height: usize, nodes: usize) {
        self.anchors.insert(anchor, Anchored { value, node, height, nodes });
    }

    fn attach(&mut self, part: Part<T::Node>) -> Result<(), Fault> {
        let Part { value, node, height, at } = part;
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some((value, node));
            return Ok(());
        };
        frame.height = frame.height.max(height);
        frame.end = frame.end.max(at.end);
        if frame.collection == Collection::Array {
            self.items.push((value, node));
            return Ok(());
        }
        match frame.key.take() {
            Some(key) if key.merge => self.merge(&value, &node, at.start),
            Some(key) => {
                self.entries.push(Entry { key: key.text, value, key_at: key.at, node, merged: false });
                Ok(())
            }
            // Keys never come this way.
            None => Ok(()),
        }
    }

    /// Takes over the members of an object, or of a list of objects of which the first count most.
    fn merge(&mut self, value: &Value, node: &T::Node, offset: u32) -> Result<(), Fault> {
        let wrong = || Fault::new(offset, "expected an object or a list of objects as the value of `<<`");
        match value {
            Value::Object(map) => self.merge_object(map, node),
            Value::Array(list) => {
                for (i, item) in list.iter().enumerate().rev() {
                    let node = T::item(node, i).ok_or_else(wrong)?;
                    self.merge_object(item.as_object().ok_or_else(wrong)?, &node);
                }
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn merge_object(&mut self, map: &Map, node: &T::Node) {
        for (key, value) in map.iter() {
            if let Some((key_at, node)) = T::member(node, key) {
                self.entries.push(Entry { key: key.clone(), value: value.clone(), key_at, node, merged: true });
            }
        }
    }

    /// Sorts the entries from `base` on and leaves one for each key.
    fn settle_keys(&mut self, base: usize) -> Result<(), Fault> {
        let entries = self.entries.get_mut(base..).unwrap_or_default();
        if entries.windows(2).all(|w| matches!(w, [a, b] if a.key < b.key)) {
            return Ok(());
        }
        // Stable: equal keys stay in the order of the text.
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        if entries.windows(2).all(|w| matches!(w, [a, b] if a.key != b.key)) {
            return Ok(());
        }
        if self.options.duplicate_keys == DuplicateKeys::Error {
            for same in entries.chunk_by(|a, b| a.key == b.key) {
                let mut written = same.iter().filter(|entry| !entry.merged);
                if let (Some(first), Some(second)) = (written.next(), written.next()) {
                    return Err(Fault::duplicate_key(&second.key, second.key_at.start, first.key_at.start));
                }
            }
        }
        // Upstream: for Kubernetes `<<` is as good as a key written there, so the last counts; go-yaml v3 follows the
        // specification, where written keys go before merged ones.
        let written_first = self.options.dialect == Dialect::V3;
        let mut rest = self.entries.split_off(base);
        rest.dedup_by(|later, earlier| {
            let same = later.key == earlier.key;
            if same && !(written_first && later.merged && !earlier.merged) {
                std::mem::swap(later, earlier);
            }
            same
        });
        self.entries.append(&mut rest);
        Ok(())
    }
}
