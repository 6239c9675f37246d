//! Queries and the lists they give.

use std::fmt;

use ephor_expr::{Map, Str, Value};

use super::{FieldSelector, LabelSelector};
use crate::resource::Resource;

/// Which objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only of this namespace; of all namespaces if `None` or empty.
    pub namespace: Option<Str>,
    /// Only with such labels.
    pub labels: LabelSelector,
    /// Only with such fields.
    pub fields: FieldSelector,
}

impl Filter {
    /// The namespace, if one is asked for.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|n| !n.is_empty())
    }

    /// Whether an object's labels and fields are as asked (its namespace is not looked at).
    pub fn selects(&self, object: &Value) -> bool {
        let labels = || object.at(&["metadata", "labels"]).and_then(Value::as_object);
        (self.labels.is_empty() || self.labels.matches(labels())) && self.fields.matches(object)
    }
}

/// What to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Which objects.
    pub filter: Filter,
    /// At most so many at once; 0 for all.
    pub limit: usize,
    /// Where the page before ended ([`List::continue_token`]). The pages together are the list as it was when the
    /// first one was read.
    pub continue_token: Option<Str>,
    /// Only `apiVersion`, `kind` and `metadata` of each object: all that many controllers need, and far smaller.
    pub metadata_only: bool,
    /// What becomes of the list when one of its objects cannot be read.
    pub on_unreadable: OnUnreadable,
}

/// What becomes of a list when one of its objects cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUnreadable {
    /// The list fails: a caller that takes an absent object for a deleted one is not misled.
    #[default]
    Fail,
    /// The others are listed, and [`List::unreadable`] tells of it.
    Report,
}

/// An object of a list that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnreadableItem {
    /// Its namespace, where that is known.
    pub namespace: Str,
    /// Its name; empty if that cannot be read either.
    pub name: Str,
    /// Its version; empty if that cannot be read either.
    pub resource_version: Str,
    /// Why it cannot be read.
    pub reason: String,
}

impl fmt::Display for UnreadableItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object `{}/{}` of the list cannot be read: {}", self.namespace, self.name, self.reason)
    }
}

impl ListQuery {
    /// Everything, in all namespaces.
    pub fn all() -> Self {
        Self::default()
    }

    /// Everything in one namespace.
    pub fn in_namespace(namespace: impl Into<Str>) -> Self {
        Self { filter: Filter { namespace: Some(namespace.into()), ..Filter::default() }, ..Self::default() }
    }

    /// Only objects with such labels.
    #[must_use]
    pub fn labels(mut self, labels: LabelSelector) -> Self {
        self.filter.labels = labels;
        self
    }

    /// Only objects with such fields.
    #[must_use]
    pub fn fields(mut self, fields: FieldSelector) -> Self {
        self.filter.fields = fields;
        self
    }

    /// Only the metadata of each object.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// At most so many objects at once.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// What was listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    /// The objects, by namespace and name, each with `apiVersion` and `kind`.
    pub items: Vec<Value>,
    /// The state of the cluster that the list shows; a watch from here misses nothing.
    pub resource_version: Str,
    /// For [`ListQuery::continue_token`], when there is more.
    pub continue_token: Option<Str>,
    /// How many more there are, where that is known.
    pub remaining: Option<usize>,
    /// Objects that exist and cannot be read; only where [`OnUnreadable::Report`] asks for them.
    pub unreadable: Vec<UnreadableItem>,
}

impl List {
    /// The list as an API server answers it: `kind: PodList`, `metadata`, `items`. Items of built-in kinds come
    /// without `apiVersion` and `kind` there, those of custom kinds with both.
    pub fn into_document(self, resource: &Resource) -> Value {
        let mut metadata = Map::from_iter([("resourceVersion".into(), Value::from(self.resource_version))]);
        if let Some(token) = self.continue_token {
            metadata.insert("continue", token);
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount", remaining);
        }
        let mut items = self.items;
        if resource.origin == crate::resource::Origin::BuiltIn {
            for members in items.iter_mut().filter_map(Value::as_object_mut) {
                members.remove("apiVersion");
                members.remove("kind");
            }
        }
        Value::from([
            ("apiVersion", Value::from(resource.api_version())),
            ("items", Value::array(items)),
            ("kind", Value::from(resource.list_kind())),
            ("metadata", Value::object(metadata)),
        ])
    }
}

/// What to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchQuery {
    /// Which objects. One that begins or ceases to be selected is reported as added or deleted.
    pub filter: Filter,
    /// What happened after this state ([`List::resource_version`]). If empty or `0`, the present objects are
    /// reported as added first.
    pub resource_version: Str,
    /// Whether to be told how far the cluster has moved on while nothing of interest happened.
    pub bookmarks: bool,
    /// Only `apiVersion`, `kind` and `metadata` of each object.
    pub metadata_only: bool,
}
