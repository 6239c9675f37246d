//! The data of global context entries, read when a rule asks for it.

use ephor_cluster::Cluster;
use ephor_engine::fetch::Fact;
use ephor_engine::gate::ApiPath;
use ephor_engine::policy::{GlobalApiCall, GlobalContextEntry, HttpMethod, WatchedResource};
use ephor_expr::Value;
use ephor_expr::jmespath::{Expression, FixedRuntime};
use ephor_expr::value::decode;
use ephor_runtime::facts::{api, fact, objects};

/// How entries that call an API are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// There is no API.
    Refused,
    /// It is called, to read.
    Made,
}

/// The entry that `name` means (`entry` or `entry.projection`), and the projection.
pub(super) fn find<'o, 'n>(
    mut objects: impl Iterator<Item = &'o Value>,
    name: &'n str,
) -> Option<(&'o Value, Option<&'n str>)> {
    objects.find_map(|object| {
        let entry = object.str_at(&["kind"]).filter(|kind| *kind == "GlobalContextEntry").and(Some(object))?;
        match name.strip_prefix(entry.str_at(&["metadata", "name"])?)? {
            "" => Some((entry, None)),
            rest => Some((entry, Some(rest.strip_prefix('.')?))),
        }
    })
}

/// The answer to a question.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// What the rule asked for.
    pub(super) fact: Fact,
    /// The Secrets that it was made from, as far as the question alone does not tell.
    pub(super) secrets: Option<Value>,
}

impl From<Fact> for Answer {
    fn from(fact: Fact) -> Self {
        Self { fact, secrets: None }
    }
}

/// The data of an entry, or of a projection of it. `name` is what the rule calls it.
pub(super) fn global(
    cluster: &dyn Cluster,
    entry: &Value,
    name: &str,
    projection: Option<&str>,
    calls: Calls,
) -> Answer {
    let entry: GlobalContextEntry = match decode(entry) {
        Ok(entry) => entry,
        Err(faults) => {
            let why = faults.first().map(ToString::to_string).unwrap_or_default();
            return Fact::Failed(format!("global context entry `{name}`: {why}")).into();
        }
    };
    let data = match (&entry.spec.kubernetes_resource, &entry.spec.api_call) {
        (Some(watched), _) => existing(cluster, watched),
        (None, Some(call)) if calls == Calls::Made => called(cluster, call, name),
        _ => {
            let reason = format!("global context entry `{name}` calls an API, which is not done offline");
            return Fact::Unavailable(reason).into();
        }
    };
    let secrets = match &data {
        Fact::Found(data) if reads_secrets(&entry) => Some(data.clone()),
        _ => None,
    };
    Answer { fact: projected(data, entry, name, projection), secrets }
}

fn projected(data: Fact, entry: GlobalContextEntry, name: &str, projection: Option<&str>) -> Fact {
    let data = match (data, projection) {
        (Fact::Found(data), Some(_)) => data,
        (fact, _) => return fact,
    };
    let mut projections = entry.spec.projections.into_iter().flatten();
    let Some(found) = projections.find(|p| projection == Some(p.name.as_str())) else { return Fact::Missing };
    match query(&found.jmes_path, &data) {
        Ok(value) => Fact::Found(value),
        Err(reason) => Fact::Failed(format!("projection `{name}`: {reason}")),
    }
}

/// Whether the data of an entry are Secrets.
fn reads_secrets(entry: &GlobalContextEntry) -> bool {
    let watched = entry.spec.kubernetes_resource.as_ref();
    let call = entry.spec.api_call.as_ref().and_then(|call| call.url_path.as_ref());
    watched.is_some_and(|watched| watched.group.is_empty() && watched.resource == "secrets")
        || call.is_some_and(|path| path.contains("/secrets"))
}

fn existing(cluster: &dyn Cluster, watched: &WatchedResource) -> Fact {
    let discovery = match cluster.discovery() {
        Ok(discovery) => discovery,
        Err(error) => return Fact::Failed(error.to_string()),
    };
    match discovery.find_plural(&watched.group, &watched.version, &watched.resource) {
        Some(resource) => {
            let namespace = watched.namespace.as_deref().unwrap_or_default();
            fact(objects(cluster, &resource.api_version(), &resource.kind, namespace))
        }
        // There are no objects of an unknown kind.
        None => Fact::Found(Value::array(Vec::new())),
    }
}

fn called(cluster: &dyn Cluster, call: &GlobalApiCall, name: &str) -> Fact {
    match (&call.url_path, call.method.unwrap_or(HttpMethod::Get)) {
        (Some(path), HttpMethod::Get) if call.service.is_none() => match ApiPath::parse(path) {
            Ok(path) => api(cluster, HttpMethod::Get, &path, None, true),
            Err(invalid) => Fact::Failed(format!("global context entry `{name}`: {invalid}")),
        },
        _ => Fact::Unavailable(format!(
            "global context entry `{name}` calls a service or posts something, which is not done here: give its data \
             in a values file"
        )),
    }
}

fn query(text: &str, data: &Value) -> Result<Value, String> {
    let expression = Expression::compile(text).map_err(|error| error.to_string())?;
    let runtime = FixedRuntime::new(jiff::Timestamp::UNIX_EPOCH, 0);
    expression.evaluate(data, &runtime).map_err(|error| error.to_string())
}
