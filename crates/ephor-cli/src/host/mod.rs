//! Answers to the engine's questions on the command line.
//!
//! A [`Host`] is a list of sources, asked in order: mocks and values of a test file, an in-memory cluster of the given
//! objects or a real cluster that is only read, the network where the user allows it. A question that no source answers
//! gets [`Fact::Unavailable`] with a reason: the rule that needs it is an error, never a silent pass.

mod globals;
mod live;
mod objects;
mod read_only;

pub use ephor_runtime::network::{AllowedHost, InvalidHost, Network};
pub use live::Live;
pub use objects::ObjectsAtHand;
pub use read_only::ReadOnly;

use std::fmt;
use std::sync::{Arc, LazyLock};

use ephor_engine::fetch::{Fact, Fetch, Merger};
use ephor_engine::gate::AllowedFetch;
use ephor_engine::redact::secrets_of;
use ephor_expr::{Str, Value};
pub use ephor_runtime::facts::Source;
use ephor_runtime::facts::{Answers, secrets_in};
use ephor_runtime::schemas::Schemas;

/// Merges configurations of policies into objects of Kubernetes' own kinds, whose schemas are known without a cluster.
static SCHEMAS: LazyLock<Arc<dyn Merger>> = LazyLock::new(|| Arc::new(Schemas::built_in()));

/// All sources of a run.
#[derive(Default)]
pub struct Host {
    sources: Vec<Box<dyn Source>>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({} sources)", self.sources.len())
    }
}

impl Host {
    /// A host that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source, asked after those already there.
    #[must_use]
    pub fn with(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Box::new(source));
        self
    }
}

impl Answers for Host {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        let fetch = fetch.fetch();
        self.sources.iter().find_map(|source| source.answer(fetch)).unwrap_or_else(|| unanswered(fetch))
    }

    /// Unlimited: a command serves one user, and the limit is a setting of an installation.
    fn context_limit(&self) -> u64 {
        0
    }

    fn merger(&self) -> Option<Arc<dyn Merger>> {
        Some(Arc::clone(&SCHEMAS))
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        // Entries are read here when they are asked for, by sources that do not look at their kinds.
        secrets_in(self.sources.iter().map(|source| &**source), fetch, answer).or_else(|| secrets_of(answer))
    }
}

/// The answer when no source has one.
fn unanswered(fetch: &Fetch) -> Fact {
    let reason = match fetch {
        // Every namespace carries its name as a label; offline nothing else is known of it.
        Fetch::NamespaceLabels { name } => {
            return Fact::Found(Value::from([(
                Str::new_static("kubernetes.io/metadata.name"),
                Value::from(name.clone()),
            )]));
        }
        Fetch::Namespace { name } => {
            let metadata = Value::from([("name", Value::from(name.clone()))]);
            return Fact::Found(Value::from([
                ("apiVersion", Value::from("v1")),
                ("kind", Value::from("Namespace")),
                ("metadata", metadata),
            ]));
        }
        Fetch::Parameters { kind, .. } => {
            format!("objects of kind {kind} are not available offline: give them as resources")
        }
        Fetch::ConfigMap { namespace, name } => {
            format!(
                "ConfigMap `{namespace}/{name}` is not available offline: give its data in a values file or as a resource"
            )
        }
        Fetch::Api { path, .. } => format!("the Kubernetes API is not reachable offline (`{path}`)"),
        Fetch::Service { url, .. } => {
            let host = ephor_runtime::network::host_of(url).unwrap_or_else(|| "HOST".to_owned());
            format!("`{url}` is not called without `--allow-net {host}` of `ephor apply` and `ephor cel eval`")
        }
        Fetch::Global { name } => {
            format!("global context entry `{name}` is not available offline: give it in a values file")
        }
        Fetch::Image { reference, .. } => {
            format!("image registries are not used offline (`{reference}`): give the data in a values file")
        }
        Fetch::Host { name } => {
            format!("names are not looked up without `--allow-net {name}` of `ephor apply` and `ephor cel eval`")
        }
        Fetch::Object { kind, namespace, name, .. } => format!("{kind} `{namespace}/{name}` is not available offline"),
        Fetch::Objects { kind, .. } => format!("objects of kind {kind} are not available offline"),
    };
    Fact::Unavailable(reason)
}

#[cfg(test)]
mod tests {
    use ephor_engine::fetch::ServiceAnswer;
    use ephor_engine::policy::HttpMethod;

    use super::*;

    #[test]
    fn what_is_not_called_names_the_flag() {
        let unavailable = |fetch: Fetch| {
            let fetch = ephor_engine::gate::allow(fetch, ephor_engine::gate::Asker::default()).unwrap();
            match Host::new().with(Network::of(vec!["example.com".parse().unwrap()])).answer(&fetch) {
                Fact::Unavailable(reason) => reason,
                other => panic!("{other:?}"),
            }
        };
        let service = Fetch::Service {
            method: HttpMethod::Get,
            url: "https://data.test:8443/x".into(),
            headers: Vec::new(),
            body: None,
            ca_bundle: None,
            answer: ServiceAnswer::Document,
        };
        let reason = unavailable(service);
        assert!(reason.contains("`--allow-net data.test`"), "{reason}");
        let reason = unavailable(Fetch::Host { name: "data.test".into() });
        assert!(reason.contains("`--allow-net data.test`"), "{reason}");
    }
}
