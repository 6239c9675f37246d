//! The webhooks for policies of `policies.kyverno.io`.
//!
//! Policies of one kind, failure policy, pair of selectors and reinvocation share a webhook that names them in its
//! path. A policy with match conditions that the API server can evaluate, a timeout or `matchPolicy: Exact` has one of
//! its own, as long as those fit into the configuration together: the caller's certificates and the rules stand in
//! each. Others share; then Ephor evaluates their conditions, which it does anyway.

use std::collections::{BTreeMap, BTreeSet};

use ephor_engine::compile::Hook;
use ephor_engine::policy::{FailurePolicy, ProgramKind};
use ephor_expr::{Map, Value};
use ephor_runtime::decision::path::{self, Webhook as Asked};
use ephor_runtime::policies::PolicyId;
use rustc_hash::FxHasher;

use super::cover::Wanted;
use super::demand::Demand;
use super::names::{Names, failure_segment, fine_grained};
use super::plan::{Inputs, OwnedWebhook, bootstrap, failure, wanted};
use super::quota::over_quota;
use super::render::{Webhook, keep_inside, outside_of};

/// The bytes that webhooks of single policies may have together: of those of the cluster, and of those of namespaces.
const OWN_BYTES: usize = 256 << 10;
/// How many pairs of selectors the policies of one kind may have before they share webhooks without selectors.
const MAX_SELECTORS: usize = 32;
/// How many namespaces a webhook that policies share names. With more it sees all of them: the names alone would take
/// more than 64 KiB of the configuration.
const MAX_NAMESPACES: usize = 1_000;

/// What policies that share a webhook have in common beside their failure policy: the selectors of namespaces and
/// objects, and whether they are asked again.
type Common = (Option<String>, Option<String>, bool);
type Shared<'d> = BTreeMap<Common, Vec<&'d Demand>>;

/// The webhooks that the policies demand.
pub(super) fn webhooks(inputs: &Inputs<'_>, hook: Hook) -> Vec<OwnedWebhook> {
    let mut webhooks = Vec::new();
    for kind in path::kinds_of(asked(hook)) {
        let demands: Vec<&Demand> =
            inputs.demands.iter().map(AsRef::as_ref).filter(|demand: &&Demand| demand.policy.kind == kind).collect();
        let own = own_webhooks(inputs, hook, &demands);
        for policy in [FailurePolicy::Fail, FailurePolicy::Ignore] {
            let is_shared = |demand: &&&Demand| {
                failure(inputs.settings, demand.demands.failure_policy) == policy && !own.contains_key(&demand.policy)
            };
            webhooks.extend(shared(inputs, hook, (kind, policy), demands.iter().filter(is_shared).copied()));
        }
        webhooks.extend(own.into_iter().map(|(policy, webhook)| (Some(policy.clone()), webhook)));
    }
    webhooks
}

/// Webhooks for whatever policies may come.
pub(super) fn everything(
    inputs: &Inputs<'_>,
    hook: Hook,
    failure: FailurePolicy,
    rules: &Value,
) -> impl Iterator<Item = OwnedWebhook> {
    let kinds = path::kinds_of(asked(hook));
    kinds.filter(move |kind| failure == FailurePolicy::Ignore || !path::never_fails(*kind)).filter_map(move |kind| {
        let entry = Entry {
            kind,
            name: String::new(),
            path: path::of_kind(failure, kind)?,
            failure,
            timeout: inputs.settings.timeout,
            conditions: bootstrap(inputs.settings, failure, &inputs.config.match_conditions),
            selectors: (None, None),
            reinvoked: false,
            exact: false,
            rules: rules.clone(),
        };
        Some((None, entry.render(inputs, hook)))
    })
}

fn asked(hook: Hook) -> Asked {
    match hook {
        Hook::Mutating => Asked::Mutate,
        Hook::Validating => Asked::Validate,
    }
}

/// The webhooks of policies that share them.
fn shared<'d>(
    inputs: &Inputs<'_>,
    hook: Hook,
    (kind, failure): (ProgramKind, FailurePolicy),
    demands: impl Iterator<Item = &'d Demand>,
) -> Vec<OwnedWebhook> {
    let mut shared: Shared<'_> = BTreeMap::new();
    for demand in demands {
        // Owners of namespaces write selectors too, and must not fill the configuration with them.
        let text = |selector: &Option<Value>| selector.as_ref().filter(|_| !kind.is_namespaced()).map(Value::to_json);
        let terms = &demand.demands.webhook;
        let common = (text(&terms.namespace_selector), text(&terms.object_selector), terms.reinvoked);
        shared.entry(common).or_default().push(demand);
    }
    if shared.len() > MAX_SELECTORS {
        let mut without: Shared<'_> = BTreeMap::new();
        for ((.., reinvoked), demands) in shared {
            without.entry((None, None, reinvoked)).or_default().extend(demands);
        }
        shared = without;
    }
    let several = shared.len() > 1;
    let mut webhooks = Vec::new();
    for (common, demands) in shared {
        let mut all = Wanted::default();
        let mut timeout = inputs.settings.timeout;
        let mut policies = Vec::new();
        for demand in demands {
            let wanted = wanted(demand, hook, inputs.discovery);
            if !wanted.is_empty() {
                all.extend(wanted);
                timeout = timeout.max(demand.demands.webhook.timeout.unwrap_or(0));
                policies.push(&demand.policy);
            }
        }
        let Some(path) = path::of_policies(failure, kind, &policies).filter(|_| !policies.is_empty()) else { continue };
        let first = |selector: &Option<String>| selector.as_ref().and_then(|text| Value::from_json(text).ok());
        let entry = Entry {
            kind,
            name: if several { format!("-{:08x}", hash(&common)) } else { String::new() },
            path,
            failure,
            timeout,
            conditions: bootstrap(inputs.settings, failure, &inputs.config.match_conditions),
            selectors: (first(&common.0), first(&common.1)),
            reinvoked: common.2,
            exact: false,
            rules: all.rules(),
        };
        let mut webhook = entry.render(inputs, hook);
        let namespaces: BTreeSet<&str> = policies.iter().filter_map(|policy| policy.namespace.as_deref()).collect();
        if !namespaces.is_empty() && namespaces.len() <= MAX_NAMESPACES {
            keep_inside(&namespaces.into_iter().collect::<Vec<_>>(), &mut webhook);
        }
        webhooks.push((None, webhook));
    }
    webhooks
}

fn hash(common: &Common) -> u32 {
    use std::hash::{Hash, Hasher};
    let mut hasher = FxHasher::default();
    common.hash(&mut hasher);
    // Half of it is enough to tell a few apart.
    (hasher.finish() >> 32) as u32
}

/// The webhooks of policies that have one of their own, as far as there is place for them.
fn own_webhooks<'d>(inputs: &Inputs<'_>, hook: Hook, demands: &[&'d Demand]) -> BTreeMap<&'d PolicyId, Value> {
    let mut webhooks: BTreeMap<&PolicyId, Value> = BTreeMap::new();
    let mut names = BTreeSet::new();
    let mut owning: Vec<&Demand> = demands.iter().filter(|demand| demand.demands.webhook.own).copied().collect();
    owning.sort_by_key(|demand| (&demand.created, &demand.policy));
    let mut of_cluster = 0;
    for demand in owning.iter().copied() {
        let wanted = wanted(demand, hook, inputs.discovery);
        if wanted.is_empty() {
            continue;
        }
        let webhook = own(inputs, hook, demand, wanted.rules(), &mut names);
        let size = webhook.to_json().len();
        if demand.policy.namespace.is_none() {
            if of_cluster + size > OWN_BYTES {
                continue;
            }
            of_cluster += size;
        }
        webhooks.insert(&demand.policy, webhook);
    }
    let sizes = webhooks.iter().map(|(policy, webhook)| (*policy, webhook.to_json().len())).collect();
    owning.retain(|demand| demand.policy.namespace.is_some() && webhooks.contains_key(&demand.policy));
    for policy in over_quota(&owning, &sizes, OWN_BYTES).keys() {
        webhooks.remove(policy);
    }
    webhooks
}

fn own(
    inputs: &Inputs<'_>,
    hook: Hook,
    demand: &Demand,
    rules: Value,
    names: &mut BTreeSet<(&'static str, String)>,
) -> Value {
    let terms = &demand.demands.webhook;
    let failure = failure(inputs.settings, demand.demands.failure_policy);
    let (mut name, _) = fine_grained(&demand.policy);
    // `a-b/c` and `a/b-c` would be called alike, and the API server refuses that.
    while !names.insert((failure_segment(failure), name.clone())) {
        name.push_str("-2");
    }
    let entry = Entry {
        kind: demand.policy.kind,
        name,
        path: path::of_policies(failure, demand.policy.kind, &[&demand.policy]).unwrap_or_default(),
        failure,
        timeout: terms.timeout.unwrap_or(inputs.settings.timeout),
        conditions: bootstrap(inputs.settings, failure, &terms.match_conditions),
        selectors: (terms.namespace_selector.clone(), terms.object_selector.clone()),
        reinvoked: terms.reinvoked,
        exact: terms.exact,
        rules,
    };
    let mut webhook = entry.render(inputs, hook);
    if let Some(namespace) = &demand.policy.namespace {
        keep_inside(&[namespace], &mut webhook);
    }
    webhook
}

/// One webhook.
struct Entry {
    kind: ProgramKind,
    /// The end of its name.
    name: String,
    path: String,
    failure: FailurePolicy,
    timeout: i64,
    conditions: Vec<Value>,
    /// Of the namespace, and of the object.
    selectors: (Option<Value>, Option<Value>),
    reinvoked: bool,
    exact: bool,
    rules: Value,
}

impl Entry {
    fn render(self, inputs: &Inputs<'_>, hook: Hook) -> Value {
        let settings = inputs.settings;
        // Upstream's word is `validate` for policies that mutate too.
        let word = format!("{}.validate", path::word(self.kind).unwrap_or_default());
        let configured = &inputs.config.webhooks;
        let namespaces = both(configured.namespace_selector.as_ref(), self.selectors.0.as_ref());
        let objects = both(configured.object_selector.as_ref(), self.selectors.1.as_ref());
        Webhook {
            name: Names::of(settings.serving)
                .webhook(&word, &format!("-{}{}", failure_segment(self.failure), self.name)),
            path: inputs.token.end(&self.path),
            failure: self.failure,
            timeout: self.timeout,
            side_effects: "NoneOnDryRun",
            reinvocation: (hook == Hook::Mutating).then_some(if self.reinvoked { "IfNeeded" } else { "Never" }),
            namespace_selector: outside_of(&settings.namespace, namespaces.as_ref()),
            object_selector: objects.unwrap_or_else(|| Value::object(Map::new())),
            match_conditions: &self.conditions,
            exact: self.exact,
            rules: self.rules,
        }
        .render(settings, inputs.ca_bundle)
    }
}

/// A selector of what both select.
fn both(one: Option<&Value>, other: Option<&Value>) -> Option<Value> {
    let (Some(one), Some(other)) = (one.filter(|one| one.as_object().is_some()), other) else {
        return one.filter(|one| one.as_object().is_some()).or(other).cloned();
    };
    let expressions =
        |selector: &Value| selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default().to_vec();
    let mut labels = one.get("matchLabels").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut both = expressions(one);
    both.extend(expressions(other));
    for (key, value) in other.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        // A label of two values is none.
        if labels.get(key).is_some_and(|known| known != value) {
            both.push(Value::from([
                ("key", Value::from(key.clone())),
                ("operator", "In".into()),
                ("values", Value::array(vec![value.clone()])),
            ]));
        } else {
            labels.insert(key.clone(), value.clone());
        }
    }
    let mut members = Map::new();
    if !both.is_empty() {
        members.insert("matchExpressions", both);
    }
    if !labels.is_empty() {
        members.insert("matchLabels", labels);
    }
    Some(members.into())
}
