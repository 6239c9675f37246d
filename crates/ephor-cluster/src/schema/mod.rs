//! What objects of a kind look like: fields, types, and how lists and maps are merged.
//!
//! Kubernetes describes its kinds in `OpenAPI`, and `CustomResourceDefinition`s theirs in a subset of it. A [`Schema`]
//! is one place in such a document; nothing is compiled, so a definition costs nothing until one of its objects is
//! written.
//!
//! - [`kubernetes`]: the table of the built-in kinds, cut out of Kubernetes' own document by `cargo xtask schemas`.
//! - [`conform`]: reading an object as its kind: unknown fields go, types must fit.
//! - [`wire`]: objects as protocol buffers, which typed Go clients send.
//! - [`fill`]: the defaults of custom resources. [`validate`](validate::validate): their rules, and the formats of
//!   texts.

pub(crate) mod cel;
pub mod conform;
pub mod fill;
mod format;
pub mod kubernetes;
#[cfg(test)]
mod tests;
pub mod validate;
pub mod wire;

use ephor_expr::Value;

/// References to definitions start so.
const REFERENCE: &str = "#/definitions/";

/// A place in an `OpenAPI` document: what a value may be.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'s> {
    /// Where the place is used: list and merge attributes stand there.
    site: &'s Value,
    /// The definition behind it.
    node: &'s Value,
    /// The definitions that references lead to.
    definitions: &'s Value,
    /// Whether this is the root of a custom kind.
    is_custom_root: bool,
    /// Whether this is part of a custom kind, where an object without declared fields has none.
    is_custom: bool,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anything.
    Any,
    /// An object with declared fields, or with any keys.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A number or a text.
    IntOrString,
    /// An amount like `500m`, also written as a number.
    Quantity,
}

/// How a list is merged, and owned, item by item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind<'s> {
    /// As a whole.
    Atomic,
    /// Each value once.
    Set,
    /// Objects, told apart by these fields.
    Map(Vec<&'s str>),
}

/// How strategic merge patches treat a list or map.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strategy<'s> {
    /// Whether lists are merged; else they are replaced.
    pub merge: bool,
    /// Whether a map is replaced.
    pub replace: bool,
    /// The field that tells items apart; lists of scalars have none.
    pub key: Option<&'s str>,
}

impl<'s> Schema<'s> {
    fn new(site: &'s Value, definitions: &'s Value) -> Self {
        let mut node = site;
        // References in Kubernetes' document are at most two deep.
        for _ in 0..8 {
            let target = node.str_at(&["$ref"]).and_then(|name| definitions.get(name.strip_prefix(REFERENCE)?));
            match target {
                Some(target) => node = target,
                None => break,
            }
        }
        Self { site, node, definitions, is_custom_root: false, is_custom: false }
    }

    /// The schema of a built-in kind.
    pub fn built_in(api_version: &str, kind: &str) -> Option<Schema<'static>> {
        kubernetes::find(api_version, kind)
    }

    /// The schema of a custom kind: an `openAPIV3Schema`.
    pub fn custom(document: &'s Value) -> Self {
        Self { is_custom_root: true, is_custom: true, ..Self::new(document, kubernetes::definitions()) }
    }

    /// A place below the root of such a schema.
    pub fn part_of_custom(document: &'s Value) -> Self {
        Self { is_custom: true, ..Self::new(document, kubernetes::definitions()) }
    }

    fn attribute(&self, key: &str) -> Option<&'s Value> {
        self.site.get(key).or_else(|| self.node.get(key))
    }

    fn flag(&self, key: &str) -> bool {
        self.attribute(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// What values here are.
    pub fn kind(&self) -> Kind {
        if self.flag("x-kubernetes-int-or-string") || self.node.str_at(&["format"]) == Some("int-or-string") {
            return Kind::IntOrString;
        }
        if self.definitions.get(kubernetes::QUANTITY).is_some_and(|q| std::ptr::eq(q, self.node)) {
            return Kind::Quantity;
        }
        match self.node.str_at(&["type"]) {
            Some("object") => Kind::Object,
            Some("array") => Kind::Array,
            Some("string") => Kind::String,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            _ if self.node.get("properties").is_some() => Kind::Object,
            _ => Kind::Any,
        }
    }

    /// The `format` of a text or number.
    pub fn format(&self) -> Option<&'s str> {
        self.node.str_at(&["format"])
    }

    /// Whether null is a value here.
    pub fn is_nullable(&self) -> bool {
        self.flag("nullable")
    }

    /// Whether values here are objects of their own, with `apiVersion`, `kind` and `metadata`.
    pub fn is_embedded(&self) -> bool {
        self.is_custom_root || self.flag("x-kubernetes-embedded-resource")
    }

    /// Whether fields that are not declared stay.
    pub fn keeps_unknown(&self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
            || self.attribute("additionalProperties").and_then(Value::as_bool) == Some(true)
            // Built-in types without any member hold arbitrary documents (`RawExtension`, `FieldsV1`).
            || (self.node.get("properties").is_none()
                && self.node.get("additionalProperties").is_none()
                && !self.is_custom)
    }

    /// What is declared for the member `key`: `None` if nothing is.
    pub fn member(&self, key: &str) -> Option<Schema<'s>> {
        if self.is_embedded() {
            match key {
                "apiVersion" | "kind" => return Some(self.below(&kubernetes::TEXT)),
                "metadata" => return kubernetes::metadata(),
                _ => {}
            }
        }
        if let Some(property) = self.node.get("properties").and_then(|p| p.get(key)) {
            return Some(self.below(property));
        }
        self.node.get("additionalProperties").filter(|a| a.as_object().is_some()).map(|a| self.below(a))
    }

    /// Whether `key` is a field by name, and no key of a map.
    pub fn declares(&self, key: &str) -> bool {
        (self.is_embedded() && matches!(key, "apiVersion" | "kind" | "metadata"))
            || self.node.get("properties").is_some_and(|p| p.get(key).is_some())
    }

    /// Whether the field `key` is as good as missing with that value: built-in kinds do not keep lists and maps
    /// without anything in them.
    fn omits(&self, key: &str, member: Schema<'_>, value: &Value) -> bool {
        let empty = match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty() && member.node.get("additionalProperties").is_some(),
            _ => return false,
        };
        empty && !member.is_custom && self.declares(key) && !self.required().any(|required| required == key)
    }

    /// What is declared for the items of a list.
    pub fn items(&self) -> Option<Schema<'s>> {
        self.node.get("items").map(|items| self.below(items))
    }

    fn below(&self, site: &'s Value) -> Schema<'s> {
        Self { is_custom: self.is_custom, ..Self::new(site, self.definitions) }
    }

    /// The declared fields.
    pub fn fields(&self) -> impl Iterator<Item = (&'s str, Schema<'s>)> {
        let here = *self;
        let properties = self.node.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(move |p| p.iter().map(move |(key, site)| (key.as_str(), here.below(site))))
    }

    /// The fields that must be there.
    pub fn required(&self) -> impl Iterator<Item = &'s str> {
        texts(self.node.get("required"))
    }

    /// The value of a field that is missing.
    pub fn default_value(&self) -> Option<&'s Value> {
        self.attribute("default")
    }

    /// How a list is merged by server-side apply.
    pub fn list_kind(&self) -> ListKind<'s> {
        match self.attribute("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(texts(self.attribute("x-kubernetes-list-map-keys")).collect()),
            _ => ListKind::Atomic,
        }
    }

    /// Whether a map is owned as a whole by server-side apply.
    pub fn is_atomic_map(&self) -> bool {
        self.attribute("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic")
    }

    /// How strategic merge patches treat this.
    pub fn strategy(&self) -> Strategy<'s> {
        let words = self.attribute("x-kubernetes-patch-strategy").and_then(Value::as_str).unwrap_or_default();
        Strategy {
            merge: words.split(',').any(|word| word == "merge"),
            replace: words.split(',').any(|word| word == "replace"),
            key: self.attribute("x-kubernetes-patch-merge-key").and_then(Value::as_str),
        }
    }

    /// A keyword of the schema, for rules.
    fn keyword(&self, key: &str) -> Option<&'s Value> {
        self.node.get(key)
    }
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
}
