//! Computes the webhook configurations. Pure: policies and settings in, configurations out.

use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::Discovery;
use ephor_engine::compile::{Hook, Requested};
use ephor_engine::policy::{FailurePolicy, Operations};
use ephor_expr::{Map, Str, Value};
use ephor_runtime::config::Config;
use ephor_runtime::decision::proof::PathToken;
use ephor_runtime::policies::PolicyId;

use super::cel;
use super::cover::Wanted;
use super::demand::Demand;
use super::fixed;
use super::kinds::{Scope, resources, targets};
use super::names::{Names, failure_segment, fine_grained, paths};
use super::quota::{OverQuota, TOTAL, over_quota};
use super::render::{Webhook, keep_inside, outside_of, rule};
use super::settings::{BootstrapRequests, FailureMode, RegisteredFrom, Serving, WebhookSettings};

/// Everything that configurations follow from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// What the policies must see.
    pub demands: &'a [std::sync::Arc<Demand>],
    /// Flags.
    pub settings: &'a WebhookSettings,
    /// The `ConfigMap`.
    pub config: &'a Config,
    /// The certificates that vouch for the webhooks, PEM.
    pub ca_bundle: &'a [u8],
    /// The end of the paths for resources, by which the API server is known.
    pub token: &'a PathToken,
    /// The kinds that are served.
    pub discovery: &'a Discovery,
}

/// A wanted configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Of which kind.
    pub kind: ConfigurationKind,
    /// What it is called.
    pub name: Str,
    /// How far what others wrote into it counts.
    pub ownership: Ownership,
    /// The object.
    pub document: Value,
    /// For each webhook the policy that it belongs to alone, if it does.
    pub owners: Vec<Option<PolicyId>>,
}

/// The two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigurationKind {
    /// `ValidatingWebhookConfiguration`.
    Validating,
    /// `MutatingWebhookConfiguration`.
    Mutating,
}

impl ConfigurationKind {
    /// The `kind` of its objects.
    pub fn as_str(self) -> &'static str {
        match self {
            ConfigurationKind::Validating => "ValidatingWebhookConfiguration",
            ConfigurationKind::Mutating => "MutatingWebhookConfiguration",
        }
    }
}

/// How far what others wrote into a configuration counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// For Ephor's own kinds; nothing is negotiable.
    Own,
    /// For resources, from policies: a break-glass deadline on it counts.
    Resources,
    /// For resources, written once: rules and policies of others stay, only the CA follows.
    ResourcesOnce,
}

/// A webhook, and the policy that it belongs to alone, if it does.
pub(super) type OwnedWebhook = (Option<PolicyId>, Value);

/// What is to be registered.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The configurations in the order in which they are to be written: those that guard policies first.
    pub configurations: Vec<Configuration>,
    /// The policies that have no place in them.
    pub left_out: BTreeMap<PolicyId, OverQuota>,
}

/// What the configurations must be.
pub fn plan(inputs: &Inputs<'_>) -> Plan {
    let mut configurations = match inputs.settings.serving {
        Serving::Enforcing => fixed::configurations(inputs),
        // The engine that decides guards its policies itself.
        Serving::Shadow => Vec::new(),
    };
    let (ownership, of) = match inputs.settings.registered_from {
        RegisteredFrom::Policies => (Ownership::Resources, from_policies as fn(&Inputs<'_>, Hook) -> Vec<OwnedWebhook>),
        RegisteredFrom::Static => (Ownership::ResourcesOnce, everything as fn(&Inputs<'_>, Hook) -> Vec<OwnedWebhook>),
    };
    let (mut mutating, mut validating) = (of(inputs, Hook::Mutating), of(inputs, Hook::Validating));
    let left_out = left_out(inputs, mutating.iter().chain(&validating));
    for webhooks in [&mut mutating, &mut validating] {
        webhooks.retain(|(owner, _)| owner.as_ref().is_none_or(|owner| !left_out.contains_key(owner)));
    }
    for (kind, what, webhooks) in [
        (ConfigurationKind::Mutating, "resource-mutating", mutating),
        (ConfigurationKind::Validating, "resource-validating", validating),
    ] {
        let names = Names::of(inputs.settings.serving);
        configurations.push(configuration(inputs, names, kind, what, ownership, webhooks));
    }
    Plan { configurations, left_out }
}

/// The Policies with webhooks of their own that have no place among these.
fn left_out<'w>(
    inputs: &Inputs<'_>,
    webhooks: impl Iterator<Item = &'w OwnedWebhook>,
) -> BTreeMap<PolicyId, OverQuota> {
    let mut bytes: BTreeMap<&PolicyId, usize> = BTreeMap::new();
    for (owner, webhook) in webhooks {
        // Policies of `policies.kyverno.io` that find no place share a webhook.
        if let Some(owner) = owner.as_ref().filter(|owner| owner.namespace.is_some() && !owner.kind.is_of_cel()) {
            *bytes.entry(owner).or_default() += webhook.to_json().len();
        }
    }
    let owning: Vec<&Demand> = inputs
        .demands
        .iter()
        .map(AsRef::as_ref)
        .filter(|demand: &&Demand| bytes.contains_key(&demand.policy))
        .collect();
    over_quota(&owning, &bytes, TOTAL)
}

/// A configuration with the labels and annotations that all have.
pub(super) fn configuration(
    inputs: &Inputs<'_>,
    names: Names,
    kind: ConfigurationKind,
    what: &str,
    ownership: Ownership,
    webhooks: Vec<OwnedWebhook>,
) -> Configuration {
    let name = names.configuration(what);
    let texts = |given: &BTreeMap<Str, Str>| -> Map {
        given.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect()
    };
    let mut labels = texts(&inputs.config.webhook_labels);
    let (key, value) = names.label();
    labels.insert(key, value);
    let mut metadata = Map::from_iter([("labels".into(), Value::object(labels)), ("name".into(), name.clone().into())]);
    if !inputs.config.webhook_annotations.is_empty() {
        metadata.insert("annotations", texts(&inputs.config.webhook_annotations));
    }
    let (owners, webhooks) = webhooks.into_iter().unzip();
    let document = Value::from([
        ("apiVersion", Value::from("admissionregistration.k8s.io/v1")),
        ("kind", Value::from(kind.as_str())),
        ("metadata", Value::object(metadata)),
        ("webhooks", Value::array(webhooks)),
    ]);
    Configuration { kind, name, ownership, document, owners }
}

/// The failure policy that counts.
pub(super) fn failure(settings: &WebhookSettings, asked: FailurePolicy) -> FailurePolicy {
    if settings.failure_mode == FailureMode::Ignore || settings.serving == Serving::Shadow {
        FailurePolicy::Ignore
    } else {
        asked
    }
}

/// One webhook for each failure policy, then those of single policies.
fn from_policies(inputs: &Inputs<'_>, hook: Hook) -> Vec<OwnedWebhook> {
    let settings = inputs.settings;
    let mut shared: BTreeMap<&str, (FailurePolicy, Wanted, i64)> = BTreeMap::new();
    let mut own = Vec::new();
    let mut names = BTreeSet::new();
    for demand in inputs.demands.iter().filter(|demand| !demand.policy.kind.is_of_cel()) {
        let wanted = wanted(demand, hook, inputs.discovery);
        if wanted.is_empty() {
            continue;
        }
        let failure = failure(settings, demand.demands.failure_policy);
        let terms = &demand.demands.webhook;
        if terms.own {
            let timeout = terms.timeout.unwrap_or(settings.timeout);
            let (mut name, path) = fine_grained(&demand.policy);
            // `a-b/c` and `a/b-c` would be called alike, and the API server refuses that.
            while !names.insert((failure_segment(failure), name.clone())) {
                name.push_str("-2");
            }
            let conditions = bootstrap(settings, failure, &terms.match_conditions);
            let mut webhook = webhook(inputs, hook, failure, (&name, &path), timeout, &conditions, wanted.rules());
            if let Some(namespace) = &demand.policy.namespace {
                keep_inside(&[namespace], &mut webhook);
            }
            own.push((Some(demand.policy.clone()), webhook));
        } else {
            let new = || (failure, Wanted::default(), settings.timeout);
            let (_, all, timeout) = shared.entry(failure_segment(failure)).or_insert_with(new);
            all.extend(wanted);
            *timeout = (*timeout).max(terms.timeout.unwrap_or(0));
        }
    }
    let conditions = &inputs.config.match_conditions;
    let mut webhooks: Vec<OwnedWebhook> = shared
        .into_values()
        .map(|(failure, wanted, timeout)| {
            let conditions = bootstrap(settings, failure, conditions);
            (None, webhook(inputs, hook, failure, ("", ""), timeout, &conditions, wanted.rules()))
        })
        .collect();
    webhooks.extend(own);
    webhooks.extend(cel::webhooks(inputs, hook));
    webhooks
}

pub(super) fn wanted(demand: &Demand, hook: Hook, discovery: &Discovery) -> Wanted {
    let within = if demand.policy.namespace.is_some() { Scope::Namespaced } else { Scope::Any };
    let mut wanted = Wanted::default();
    for request in demand.demands.requests.iter().filter(|request| request.hook == hook) {
        let targets = match &request.requested {
            Requested::Kind(kind) => targets(kind, within, discovery),
            Requested::Resources { .. } => resources(&request.requested, within, discovery),
        };
        for target in targets {
            wanted.add(target, request.operations);
        }
    }
    wanted
}

/// Webhooks for whatever policies may come.
fn everything(inputs: &Inputs<'_>, hook: Hook) -> Vec<OwnedWebhook> {
    let operations = match hook {
        Hook::Mutating => Operations::WRITES,
        Hook::Validating => Operations::ALL,
    };
    let mut rules = rule("*", &["*"], &["*/*"], &[], "*");
    if let Some(rules) = rules.as_object_mut() {
        rules.insert("operations", operations.words());
    }
    let both = [FailurePolicy::Fail, FailurePolicy::Ignore];
    let counting: BTreeMap<&str, FailurePolicy> =
        both.map(|asked| failure(inputs.settings, asked)).map(|f| (failure_segment(f), f)).into();
    let timeout = inputs.settings.timeout;
    let rules = Value::array(vec![rules]);
    let mut webhooks = Vec::new();
    for failure in counting.into_values() {
        let conditions = bootstrap(inputs.settings, failure, &inputs.config.match_conditions);
        webhooks.push((None, webhook(inputs, hook, failure, ("", ""), timeout, &conditions, rules.clone())));
        webhooks.extend(cel::everything(inputs, hook, failure, &rules));
    }
    webhooks
}

/// `conditions`, and that the request is not the API server's own, if that is asked for.
pub(super) fn bootstrap(settings: &WebhookSettings, failure: FailurePolicy, conditions: &[Value]) -> Vec<Value> {
    let mut conditions = conditions.to_vec();
    if settings.bootstrap_requests == BootstrapRequests::Excluded && failure == FailurePolicy::Fail {
        conditions.push(Value::from([
            ("expression", Value::from("request.userInfo.username != 'system:apiserver'")),
            ("name", Value::from("exclude-bootstrap-resources")),
        ]));
    }
    conditions
}

fn webhook(
    inputs: &Inputs<'_>,
    hook: Hook,
    failure: FailurePolicy,
    (name, path): (&str, &str),
    timeout: i64,
    conditions: &[Value],
    rules: Value,
) -> Value {
    let settings = inputs.settings;
    let (word, base) = match hook {
        Hook::Mutating => ("mutate", paths::MUTATE),
        Hook::Validating => ("validate", paths::VALIDATE),
    };
    let segment = failure_segment(failure);
    let path = format!("{base}/{segment}{path}");
    let object_selector =
        inputs.config.webhooks.object_selector.clone().filter(|selector| selector.as_object().is_some());
    Webhook {
        name: Names::of(settings.serving).webhook(word, &format!("-{segment}{name}")),
        path: inputs.token.end(&path),
        failure,
        timeout,
        // Reports, Events and UpdateRequests are written, but not for a dry run.
        side_effects: "NoneOnDryRun",
        reinvocation: (hook == Hook::Mutating).then_some("IfNeeded"),
        namespace_selector: outside_of(&settings.namespace, inputs.config.webhooks.namespace_selector.as_ref()),
        object_selector: object_selector.unwrap_or_else(|| Value::object(Map::new())),
        match_conditions: conditions,
        exact: false,
        rules,
    }
    .render(settings, inputs.ca_bundle)
}
