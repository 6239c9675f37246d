//! Lists, page by page.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

use ephor_expr::{Str, Value};

use super::events;
use super::state::{Key, State, shown, table_id};
use crate::error::ClusterError;
use crate::object;
use crate::query::{Filter, List, ListQuery};
use crate::resource::Resource;

const EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start \
    a new list without the continue parameter.";

impl State {
    pub(super) fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.check_served(resource)?;
        if !resource.stored {
            return Err(ClusterError::method_not_allowed());
        }
        let (revision, start) = match &query.continue_token {
            None => (self.revision, None),
            Some(token) => {
                let (revision, last) = parse_token(token)
                    .filter(|(revision, _)| *revision <= self.revision)
                    .ok_or_else(|| ClusterError::bad_request(format!("continue key is not valid: {token:?}")))?;
                (revision, Some(last))
            }
        };
        let objects = self.objects_at(resource, revision).ok_or_else(|| ClusterError::expired(EXPIRED))?;
        let mut found = selected(resource, &objects, &query.filter, start).peekable();
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        let mut list = List { resource_version: revision.to_string().into(), ..List::default() };
        let mut last = None;
        for (key, object) in found.by_ref().take(limit) {
            let object = shown(object, resource);
            list.items.push(if query.metadata_only { object::metadata_of(&object) } else { object });
            last = Some(key);
        }
        if let Some(last) = last.filter(|_| found.peek().is_some()) {
            list.continue_token = Some(token(revision, last));
            // A server does not count what selectors leave over.
            if query.filter.labels.is_empty() && query.filter.fields.is_empty() {
                list.remaining = Some(found.count());
            }
        }
        Ok(list)
    }

    /// The objects of a kind as they were; `None` if that is forgotten.
    fn objects_at(&self, resource: &Resource, revision: u64) -> Option<Cow<'_, BTreeMap<Key, Value>>> {
        static NONE: BTreeMap<Key, Value> = BTreeMap::new();
        let id = table_id(resource);
        let present = self.tables.get(&id).map_or(&NONE, |table| &table.objects);
        let changes = self.history.since(revision)?;
        let mut objects = Cow::Borrowed(present);
        for change in changes.rev().filter(|change| change.table == id) {
            let objects = objects.to_mut();
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }
}

/// The objects that a filter selects, after `start`.
pub(super) fn selected<'o>(
    resource: &'o Resource,
    objects: &'o BTreeMap<Key, Value>,
    filter: &'o Filter,
    start: Option<Key>,
) -> impl Iterator<Item = (&'o Key, &'o Value)> {
    let namespace = filter.namespace();
    let lower = match (start, namespace) {
        (Some(last), _) => Bound::Excluded(last),
        (None, Some(namespace)) => Bound::Included(Key { namespace: namespace.into(), name: Str::default() }),
        (None, None) => Bound::Unbounded,
    };
    objects
        .range((lower, Bound::Unbounded))
        .take_while(move |(key, _)| namespace.is_none_or(|n| key.namespace == n))
        .filter(|(_, object)| selects(filter, resource, object))
}

/// Whether a filter selects a stored object, seen as `resource`.
pub(super) fn selects(filter: &Filter, resource: &Resource, object: &Value) -> bool {
    // Other kinds have the same fields in all versions.
    if events::is_event(resource) { filter.selects(&shown(object, resource)) } else { filter.selects(object) }
}

/// A page's end: the state that all pages show, and the last object on this one.
fn token(revision: u64, last: &Key) -> Str {
    format!("{revision}:{}/{}", last.namespace, last.name).into()
}

fn parse_token(token: &str) -> Option<(u64, Key)> {
    let (revision, last) = token.split_once(':')?;
    let (namespace, name) = last.split_once('/')?;
    Some((revision.parse().ok()?, Key { namespace: namespace.into(), name: name.into() }))
}
