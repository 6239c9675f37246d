//! Which kinds the server serves, as far as is known here.
//!
//! The table is read at once with the first question, and again when it is old. A kind that is not in it is looked up
//! in its group, so that a kind defined a moment ago is found; how often is limited, because policies may name kinds
//! that do not exist for every object.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::resource::split_api_version;
use ephor_cluster::{ClusterError, Discovery, ErrorKind, Resource};
use ephor_expr::Value;
use parking_lot::{Mutex, MutexGuard};

use crate::exchange::Exchange;
use crate::limit::Bucket;
use crate::options::{Definitions, RateLimit};
use crate::request::Request;

/// Everything at once, from servers that can; the list of groups from others.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// How long a discovery table is valid without a watch of definitions.
const CACHE_TTL: Duration = Duration::from_secs(30);
/// How long it is good when the definitions are followed. Extension servers still come and go.
const WATCHED_CACHE_TTL: Duration = Duration::from_mins(10);

/// Lookups of single kinds.
const LOOKUPS: RateLimit = RateLimit { qps: 20.0, burst: 50 };

/// The table, shared by all callers.
pub(crate) struct Served {
    known: Mutex<Option<Known>>,
    /// Held while the server is asked, so that callers with the same question share an answer.
    asking: Mutex<()>,
    lookups: Bucket,
    fresh: Duration,
}

struct Known {
    table: Arc<Discovery>,
    /// When the server was asked for all of it.
    complete: Instant,
}

impl Served {
    pub(crate) fn new(definitions: Definitions) -> Self {
        let fresh = match definitions {
            Definitions::AskedFor => CACHE_TTL,
            Definitions::Followed => WATCHED_CACHE_TTL,
        };
        Self { known: Mutex::default(), asking: Mutex::default(), lookups: Bucket::new(LOOKUPS), fresh }
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock()
    }

    /// The whole table, not older than it may be.
    pub(crate) fn table(&self, exchange: &Exchange) -> Result<Arc<Discovery>, ClusterError> {
        let oldest = Instant::now().checked_sub(self.fresh);
        self.table_since(exchange, oldest)
    }

    /// The whole table, asking the server now.
    pub(crate) fn refresh(&self, exchange: &Exchange) -> Result<Arc<Discovery>, ClusterError> {
        self.table_since(exchange, Some(Instant::now()))
    }

    /// The whole table as it was after `oldest`; `None` for any time.
    fn table_since(&self, exchange: &Exchange, oldest: Option<Instant>) -> Result<Arc<Discovery>, ClusterError> {
        let good = |known: &Option<Known>| {
            known.as_ref().filter(|k| oldest.is_none_or(|oldest| k.complete >= oldest)).map(|k| k.table.clone())
        };
        if let Some(table) = good(&self.known()) {
            return Ok(table);
        }
        let _asking = self.asking.lock();
        if let Some(table) = good(&self.known()) {
            return Ok(table);
        }
        let asked = Instant::now();
        let table = match fetch(exchange) {
            Ok(table) => Arc::new(table),
            // Better an old table than none, when it is only old.
            Err(error) => match &*self.known() {
                Some(known) if error.kind() == ErrorKind::Transient => return Ok(known.table.clone()),
                _ => return Err(error),
            },
        };
        *self.known() = Some(Known { table: table.clone(), complete: asked });
        Ok(table)
    }

    /// A kind, looked up if it is not known.
    pub(crate) fn resolve(&self, exchange: &Exchange, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        let find = |table: &Discovery| table.find(api_version, kind).cloned();
        if let Some(resource) = find(&*self.table_since(exchange, None)?) {
            return Ok(resource);
        }
        let missing = || ClusterError::no_such_kind(api_version, kind);
        let path = group_version_path(api_version).ok_or_else(missing)?;
        // Not under the lock: who waits here must not hold up others.
        self.lookups.take();
        if let Some(resource) = self.known().as_ref().and_then(|known| find(&known.table)) {
            return Ok(resource);
        }
        let list = match exchange.value(&Request::get(path)) {
            Ok(list) => list,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing()),
            Err(error) => return Err(error),
        };
        let mut known = self.known();
        let Some(known) = known.as_mut() else { return Err(missing()) };
        let mut table = (*known.table).clone();
        table.add_group_version(&list);
        known.table = Arc::new(table);
        find(&known.table).ok_or_else(missing)
    }

    /// Forgets a kind whose definition is gone.
    pub(crate) fn forget(&self, group: &str, plural: &str) {
        if let Some(known) = self.known().as_mut() {
            let mut table = (*known.table).clone();
            table.remove(group, plural);
            known.table = Arc::new(table);
        }
    }
}

/// Reads the whole discovery from the server.
fn fetch(exchange: &Exchange) -> Result<Discovery, ClusterError> {
    let mut table = Discovery::default();
    for root in ["/api", "/apis"] {
        let request = Request { accept: AGGREGATED, ..Request::get(root.to_owned()) };
        let document = exchange.value(&request)?;
        if document.str_at(&["kind"]) == Some("APIGroupDiscoveryList") {
            table.add_groups(&document);
            continue;
        }
        for api_version in group_versions(&document) {
            let Some(path) = group_version_path(&api_version) else { continue };
            match exchange.value(&Request::get(path)) {
                Ok(list) => table.add_group_version(&list),
                // An extension server that is down takes its own kinds along, and nothing else.
                Err(error) => tracing::warn!(api_version, %error, "the kinds of a group are not known"),
            }
        }
    }
    Ok(table)
}

/// The group versions in an `APIVersions` or `APIGroupList` document, of each group the preferred one first.
fn group_versions(document: &Value) -> Vec<String> {
    let list = |of: &Value, key: &str| of.get(key).and_then(Value::as_array).unwrap_or_default().to_vec();
    let mut found: Vec<String> =
        list(document, "versions").iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
    for group in list(document, "groups") {
        let preferred = group.str_at(&["preferredVersion", "groupVersion"]).map(str::to_owned);
        let versions = list(&group, "versions");
        let others = versions.iter().filter_map(|v| v.str_at(&["groupVersion"]).map(str::to_owned));
        let others: Vec<String> = others.filter(|v| Some(v) != preferred.as_ref()).collect();
        found.extend(preferred.into_iter().chain(others));
    }
    found
}

/// `None` for what no API version looks like.
fn group_version_path(api_version: &str) -> Option<String> {
    let (group, version) = split_api_version(api_version);
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.')) && text != ".."
    };
    if !plain(version) || !(group.is_empty() || plain(group)) {
        return None;
    }
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    Some(format!("{root}/{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_older_servers_name_the_preferred_version_first() {
        let groups = r#"{"kind":"APIGroupList","groups":[{"name":"g","versions":[{"groupVersion":"g/v1"},
            {"groupVersion":"g/v2"}],"preferredVersion":{"groupVersion":"g/v2"}}]}"#;
        assert_eq!(group_versions(&Value::from_json(groups).unwrap()), ["g/v2", "g/v1"]);
        let versions = Value::from_json(r#"{"kind":"APIVersions","versions":["v1"]}"#).unwrap();
        assert_eq!(group_versions(&versions), ["v1"]);
    }

    #[test]
    fn an_api_version_names_no_other_path() {
        assert_eq!(group_version_path("apps/v1").unwrap(), "/apis/apps/v1");
        assert_eq!(group_version_path("v1").unwrap(), "/api/v1");
        for wrong in ["", "a/", "a/b/c", "../v1", "a/v1?x", "/v1/.."] {
            assert_eq!(group_version_path(wrong), None, "{wrong}");
        }
    }
}
