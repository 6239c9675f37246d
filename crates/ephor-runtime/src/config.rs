//! The `ConfigMap` with the settings that can change while Ephor runs.
//!
//! A [`ConfigStore`] follows it and keeps an immutable [`Config`]. Without a `ConfigMap` the values are those that
//! upstream's chart ships. A value that cannot be read is told in the log and the one before stays in force: a typing
//! error must not open or close the cluster.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use arc_swap::ArcSwap;
use ephor_cluster::Cluster;
use ephor_engine::matching::{ExclusionList, ResourceFilters, UserExclusions};
use ephor_expr::scalar::quantity::Quantity;
use ephor_expr::{Map, Str, Value};
use parking_lot::Mutex;

use crate::cancellation::CancellationToken;
use crate::watcher::{StoreEvent, WatchTarget, Watcher};

/// What can change.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Objects that no policy sees.
    pub resource_filters: ResourceFilters,
    /// Users whose requests no policy sees.
    pub excluded_users: UserExclusions,
    /// The registry of images that name none.
    pub default_registry: Str,
    /// Whether images of pods are given their registry.
    pub default_registry_mutation: bool,
    /// Whether passes are events too.
    pub success_events: bool,
    /// Of these actions only; empty: of all.
    pub success_event_actions: Vec<Str>,
    /// What resource webhooks are limited to.
    pub webhooks: WebhookSelectors,
    /// Labels of webhook configurations.
    pub webhook_labels: BTreeMap<Str, Str>,
    /// Annotations of webhook configurations.
    pub webhook_annotations: BTreeMap<Str, Str>,
    /// Conditions of resource webhooks, as the API server takes them.
    pub match_conditions: Vec<Value>,
    /// From how many `UpdateRequest`s on no more are made.
    pub update_request_threshold: u64,
    /// How much context a rule may load, in bytes.
    pub max_context_size: u64,
}

/// What resource webhooks are limited to, as the API server takes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebhookSelectors {
    /// Which namespaces.
    pub namespace_selector: Option<Value>,
    /// Which objects.
    pub object_selector: Option<Value>,
}

/// Kinds that policies do not see unless the `ConfigMap` says otherwise; `[*/*,<own namespace>,*]` comes on top.
const DEFAULT_FILTERS: &str = "
    [Event,*,*] [*/*,kube-system,*] [*/*,kube-public,*] [*/*,kube-node-lease,*] [Node,*,*] [Node/?*,*,*]
    [APIService,*,*] [APIService/?*,*,*] [TokenReview,*,*] [SubjectAccessReview,*,*] [SelfSubjectAccessReview,*,*]
    [Binding,*,*] [Pod/binding,*,*] [ReplicaSet,*,*] [ReplicaSet/?*,*,*] [EphemeralReport,*,*]
    [ClusterEphemeralReport,*,*]";

/// Names of the roles whose cluster-wide objects policies do not see by default.
const ROLES: [&str; 4] = ["admission-controller", "background-controller", "cleanup-controller", "reports-controller"];

impl Config {
    /// What holds without a `ConfigMap`.
    pub fn default_for(namespace: &str) -> Self {
        let mut filters = format!("{DEFAULT_FILTERS} [*/*,{namespace},*]");
        for role in ROLES {
            for kind in ["ClusterRole", "ClusterRoleBinding"] {
                let _ = write!(filters, " [{kind},*,kyverno:{role}] [{kind},*,kyverno:{role}:*]");
            }
        }
        let away = |namespace: &str| {
            Value::from([
                ("key", Value::from("kubernetes.io/metadata.name")),
                ("operator", Value::from("NotIn")),
                ("values", Value::from(vec![namespace])),
            ])
        };
        let selector = Value::from([("matchExpressions", Value::array(vec![away("kube-system"), away(namespace)]))]);
        Self {
            resource_filters: ResourceFilters::parse(&filters).unwrap_or_default(),
            excluded_users: UserExclusions { groups: ExclusionList::parse("system:nodes"), ..Default::default() },
            default_registry: "docker.io".into(),
            default_registry_mutation: true,
            success_events: false,
            success_event_actions: Vec::new(),
            webhooks: WebhookSelectors { namespace_selector: Some(selector), object_selector: None },
            webhook_labels: BTreeMap::new(),
            webhook_annotations: [(Str::new_static("admissions.enforcer/disabled"), Str::new_static("true"))].into(),
            match_conditions: Vec::new(),
            update_request_threshold: 1000,
            max_context_size: 2 << 20,
        }
    }

    /// What the data of a `ConfigMap` says, where a key that cannot be read keeps its value of `before`; with what is
    /// wrong. A key that is missing means nothing of its kind, except for what has a default in upstream's code.
    pub fn of_data(data: &Map, before: &Self) -> (Self, Vec<String>) {
        let mut reader = Reader { data, faults: Vec::new() };
        let list = |reader: &Reader<'_>, key| ExclusionList::parse(reader.text(key));
        let config = Self {
            resource_filters: reader.parsed("resourceFilters", &before.resource_filters, ResourceFilters::parse),
            excluded_users: UserExclusions {
                groups: list(&reader, "excludeGroups"),
                usernames: list(&reader, "excludeUsernames"),
                roles: list(&reader, "excludeRoles"),
                cluster_roles: list(&reader, "excludeClusterRoles"),
            },
            default_registry: Str::new(match reader.text("defaultRegistry") {
                "" => "docker.io",
                registry => registry,
            }),
            default_registry_mutation: reader.or(
                "enableDefaultRegistryMutation",
                true,
                &before.default_registry_mutation,
                parse_bool,
            ),
            success_events: reader.or("generateSuccessEvents", false, &before.success_events, parse_bool),
            success_event_actions: reader
                .text("successEventActions")
                .split(',')
                .map(str::trim)
                .filter(|action| !action.is_empty())
                .map(Str::new)
                .collect(),
            webhooks: reader.or("webhooks", WebhookSelectors::default(), &before.webhooks, parse_selectors),
            webhook_labels: reader.or("webhookLabels", BTreeMap::new(), &before.webhook_labels, parse_texts),
            webhook_annotations: reader.or(
                "webhookAnnotations",
                BTreeMap::new(),
                &before.webhook_annotations,
                parse_texts,
            ),
            match_conditions: reader.or("matchConditions", Vec::new(), &before.match_conditions, parse_array),
            update_request_threshold: reader.or(
                "updateRequestThreshold",
                1000,
                &before.update_request_threshold,
                parse_count,
            ),
            max_context_size: reader.or("maxContextSize", 2 << 20, &before.max_context_size, parse_size),
        };
        (config, reader.faults)
    }
}

struct Reader<'d> {
    data: &'d Map,
    faults: Vec<String>,
}

impl<'d> Reader<'d> {
    fn text(&self, key: &str) -> &'d str {
        self.data.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// A key whose empty text means something.
    fn parsed<T: Clone, E: fmt::Display>(&mut self, key: &str, before: &T, parse: fn(&str) -> Result<T, E>) -> T {
        parse(self.text(key)).unwrap_or_else(|error| {
            self.faults.push(format!("`{key}`: {error}"));
            before.clone()
        })
    }

    /// A key with a default for an empty text.
    fn or<T: Clone, E: fmt::Display>(
        &mut self,
        key: &str,
        default: T,
        before: &T,
        parse: fn(&str) -> Result<T, E>,
    ) -> T {
        if self.text(key).trim().is_empty() { default } else { self.parsed(key, before, parse) }
    }
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("`{other}` is neither `true` nor `false`")),
    }
}

fn parse_count(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a whole number"))
}

fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = Quantity::parse(text.trim()).ok().and_then(|quantity| quantity.as_i64());
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(|| format!("`{text}` is not a size such as `2Mi`"))
}

fn parse_json(text: &str) -> Result<Value, String> {
    Value::from_json(text).map_err(|error| error.to_string())
}

fn parse_array(text: &str) -> Result<Vec<Value>, String> {
    match parse_json(text)? {
        Value::Array(items) => Ok(Arc::unwrap_or_clone(items).into_vec()),
        other => Err(format!("expected an array, found {}", other.type_name())),
    }
}

fn parse_texts(text: &str) -> Result<BTreeMap<Str, Str>, String> {
    let value = parse_json(text)?;
    let members = value.as_object().ok_or_else(|| format!("expected an object, found {}", value.type_name()))?;
    members
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) => Ok((key.clone(), text.clone())),
            other => Err(format!("`{key}`: expected a string, found {}", other.type_name())),
        })
        .collect()
}

/// One object; older installations have it as the only item of an array.
fn parse_selectors(text: &str) -> Result<WebhookSelectors, String> {
    let value = parse_json(text)?;
    let value = match value.as_array() {
        Some([]) => return Ok(WebhookSelectors::default()),
        Some([only]) => only.clone(),
        Some(_) => return Err("expected one entry".to_owned()),
        None => value,
    };
    let members = value.as_object().ok_or_else(|| format!("expected an object, found {}", value.type_name()))?;
    let mut selectors = WebhookSelectors::default();
    for (key, value) in members.iter() {
        let place = match key.as_str() {
            "namespaceSelector" => &mut selectors.namespace_selector,
            "objectSelector" => &mut selectors.object_selector,
            other => return Err(format!("unknown field `{other}` (known: namespaceSelector, objectSelector)")),
        };
        match value {
            Value::Null => {}
            Value::Object(_) => *place = Some(value.clone()),
            other => return Err(format!("`{key}`: expected an object, found {}", other.type_name())),
        }
    }
    Ok(selectors)
}

type Subscriber = Box<dyn Fn(&Arc<Config>) + Send + Sync>;

/// The present configuration. Clones are the same store.
#[derive(Clone)]
pub struct ConfigStore(Arc<Shared>);

struct Shared {
    namespace: Str,
    name: Str,
    config: ArcSwap<Config>,
    subscribers: Mutex<Vec<Subscriber>>,
}

impl fmt::Debug for ConfigStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigStore({}/{})", self.0.namespace, self.0.name)
    }
}

impl ConfigStore {
    /// The defaults, until the `ConfigMap` of that name is known.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self(Arc::new(Shared {
            namespace: namespace.into(),
            name: name.into(),
            config: ArcSwap::from_pointee(Config::default_for(namespace)),
            subscribers: Mutex::default(),
        }))
    }

    /// Follows the `ConfigMap` until `stop`.
    pub fn follow(&self, cluster: &Arc<dyn Cluster>, stop: &CancellationToken) -> Watcher {
        let watched = WatchTarget::all("v1", "ConfigMap").in_namespace(&self.0.namespace).named(&self.0.name);
        let store = self.clone();
        Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| store.apply(change))
    }

    /// The present configuration.
    pub fn get(&self) -> Arc<Config> {
        self.0.config.load_full()
    }

    /// Calls `subscriber` after each change, in the thread that made it. It must be quick.
    pub fn subscribe(&self, subscriber: impl Fn(&Arc<Config>) + Send + Sync + 'static) {
        self.0.subscribers.lock().push(Box::new(subscriber));
    }

    /// Takes in a change of the `ConfigMap`.
    pub fn apply(&self, change: StoreEvent) {
        let object = match change {
            StoreEvent::Reset(objects) => objects.into_iter().next(),
            StoreEvent::Apply(object) => Some(object),
            StoreEvent::Delete(_) => None,
        };
        let before = self.get();
        let config = match object {
            None => Config::default_for(&self.0.namespace),
            Some(object) => {
                let empty = Map::new();
                let data = object.get("data").and_then(Value::as_object).unwrap_or(&empty);
                let (config, faults) = Config::of_data(data, &before);
                for fault in faults {
                    tracing::error!(config_map = %self.0.name, "{fault}; the value before stays in force");
                }
                config
            }
        };
        if config == *before {
            return;
        }
        let config = Arc::new(config);
        self.0.config.store(Arc::clone(&config));
        for subscriber in self.0.subscribers.lock().iter() {
            subscriber(&config);
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_engine::matching::{Gvk, UserInfo};

    use super::*;

    fn config_map(entries: &[(&str, &str)]) -> Value {
        let data: Map = entries.iter().map(|(k, v)| (Str::new(k), Value::from(*v))).collect();
        Value::from([("data", data.into())])
    }

    fn pod() -> Gvk {
        Gvk::new("v1", "Pod")
    }

    #[test]
    fn without_a_config_map_the_system_is_left_alone() {
        let config = ConfigStore::new("ephor", "kyverno").get();
        for (gvk, subresource, namespace, name, dropped) in [
            (pod(), "", "kube-system", "p", true),
            (pod(), "", "ephor", "p", true),
            (pod(), "", "default", "p", false),
            (pod(), "binding", "default", "p", true),
            (Gvk::new("apps/v1", "ReplicaSet"), "", "default", "r", true),
            (Gvk::new("v1", "Namespace"), "", "", "kube-system", true),
            (
                Gvk::new("rbac.authorization.k8s.io/v1", "ClusterRole"),
                "",
                "",
                "kyverno:admission-controller:core",
                true,
            ),
            (Gvk::new("rbac.authorization.k8s.io/v1", "ClusterRole"), "", "", "other", false),
        ] {
            assert_eq!(config.resource_filters.drops(&gvk, subresource, namespace, name), dropped, "{gvk:?} {name}");
        }
        let node = UserInfo { groups: vec!["system:nodes".into()], ..UserInfo::default() };
        assert!(config.excluded_users.excludes(&node));
    }

    #[test]
    fn changes_hold_at_once_and_faults_keep_the_value_before() {
        let store = ConfigStore::new("kyverno", "kyverno");
        let seen = Arc::new(Mutex::new(0));
        store.subscribe({
            let seen = Arc::clone(&seen);
            move |_| *seen.lock() += 1
        });
        store.apply(StoreEvent::Reset(vec![config_map(&[
            ("resourceFilters", "[Secret,*,*]"),
            ("webhooks", r#"{"namespaceSelector":{"matchLabels":{"a":"b"}}}"#),
            ("matchConditions", r#"[{"name":"x","expression":"true"}]"#),
            ("updateRequestThreshold", "7"),
            ("maxContextSize", "1Mi"),
            ("generateSuccessEvents", "true"),
        ])]));
        let config = store.get();
        assert!(config.resource_filters.drops(&Gvk::new("v1", "Secret"), "", "a", "b"));
        assert!(!config.resource_filters.drops(&pod(), "", "kube-system", "p"));
        assert_eq!((config.update_request_threshold, config.max_context_size), (7, 1 << 20));
        assert_eq!(config.match_conditions.len(), 1);
        assert!(config.success_events && config.webhooks.namespace_selector.is_some());
        assert_eq!(config.excluded_users, UserExclusions::default());

        let broken = config_map(&[("resourceFilters", "[Secret"), ("webhooks", r#"{"x":1}"#), ("maxContextSize", "x")]);
        let (after, faults) = Config::of_data(broken.get("data").unwrap().as_object().unwrap(), &config);
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert_eq!((&after.resource_filters, &after.webhooks), (&config.resource_filters, &config.webhooks));
        assert_eq!(after.update_request_threshold, 1000);

        store.apply(StoreEvent::Delete(Value::Null));
        assert_eq!(*store.get(), Config::default_for("kyverno"));
        assert_eq!(*seen.lock(), 2);
    }
}
