//! What a policy must see: for each rule the kinds and operations of its match, less what its exclude takes away.

use std::collections::BTreeSet;

use ephor_cluster::object;
use ephor_engine::autogen;
use ephor_engine::compile::Program;
use ephor_engine::policy::{
    FailurePolicy, GenerateParts, Match, Operation, Policy, ResourceFilter, ResourceSelection, Rule,
};
use ephor_expr::value::{decode, decode_rest};
use ephor_expr::{Str, Value};
use ephor_runtime::policies::{PolicyId, StoredPolicy};

use super::operations::Operations;

/// Which of the two resource configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Changes objects.
    Mutating,
    /// Judges objects, and notices what generate and mutate-existing rules react to.
    Validating,
}

/// What a policy must see.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The policy.
    pub policy: PolicyId,
    /// When it was created (RFC 3339); empty if it does not say.
    pub created: Str,
    /// What it means when it cannot be asked.
    pub failure_policy: FailurePolicy,
    /// How long the API server waits, if the policy says so.
    pub timeout: Option<i64>,
    /// Conditions for a webhook of its own.
    pub match_conditions: Vec<Value>,
    /// What it must see.
    pub wants: Vec<Want>,
}

/// One kind that a rule must see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    /// Where.
    pub hook: Hook,
    /// The kind, as policies write it: `Pod`, `apps/v1/Deploy*`, `Pod/exec`.
    pub kind: Str,
    /// Under which operations.
    pub operations: Operations,
}

impl Demand {
    /// What a stored policy must see; `None` if admission does not ask it.
    pub fn of(stored: &StoredPolicy) -> Option<Self> {
        let program = stored.program.as_ref().filter(|program| program.admission)?;
        let (policy, _) = decode_rest::<Policy>(&stored.document);
        let policy = policy?;
        let webhook = policy.spec.webhook_configuration.as_ref();
        Some(Self {
            policy: stored.key.clone(),
            created: Str::new(object::text(&stored.document, "creationTimestamp")),
            failure_policy: program.failure_policy,
            timeout: webhook.and_then(|w| w.timeout_seconds).or(policy.spec.webhook_timeout_seconds),
            match_conditions: program.match_conditions.clone(),
            wants: wants(&policy, &stored.document, program).into_iter().collect(),
        })
    }
}

fn wants(policy: &Policy, document: &Value, program: &Program) -> BTreeSet<Want> {
    // Of a refused policy only the sound rules work.
    let works = |rule: &Rule| program.rules.iter().any(|compiled| compiled.declared == rule.name);
    let mut wants = BTreeSet::new();
    for rule in policy.spec.rules.iter().filter(|rule| works(rule)) {
        rule_wants(rule, &mut wants);
    }
    for generated in autogen::expand(document, policy) {
        let declared = policy.spec.rules.get(generated.source);
        if declared.is_some_and(works)
            && let Ok(rule) = decode::<Rule>(&generated.rule)
        {
            rule_wants(&rule, &mut wants);
        }
    }
    wants
}

fn rule_wants(rule: &Rule, wants: &mut BTreeSet<Want>) {
    let (hook, default) = match &rule.mutate {
        Some(mutate) if mutate.targets.is_none() => (Hook::Mutating, Operations::WRITES),
        _ => (Hook::Validating, Operations::ALL),
    };
    for (kind, operations) in matched(&rule.matches, default) {
        let operations = operations.without(excluded(rule.exclude.as_ref(), &kind));
        if !operations.is_empty() {
            wants.insert(Want { hook, kind, operations });
        }
    }
    if let Some(generate) = &rule.generate {
        let loops = generate.foreach.iter().flatten().map(|entry| entry.parts());
        for parts in loops.chain([generate.parts()]) {
            for kind in downstream_kinds(&parts) {
                wants.insert(Want { hook: Hook::Validating, kind, operations: Operations::CHANGES });
            }
        }
    }
}

/// The kinds of generated objects and of their sources: changes of either are noticed.
fn downstream_kinds(parts: &GenerateParts<'_>) -> Vec<Str> {
    let listed = parts.clone_list.and_then(|list| list.kinds.as_deref()).unwrap_or_default();
    let own = parts.kind.map(|kind| match parts.api_version {
        Some(version) => [version.as_str(), "/", kind].into_iter().collect(),
        None => kind.clone(),
    });
    let known = |kind: &Str| !kind.is_empty() && !kind.contains("{{") && !kind.contains("$(");
    listed.iter().cloned().chain(own).filter(known).collect()
}

/// The kinds that a `match` names, each with its operations.
fn matched(block: &Match, default: Operations) -> Vec<(Str, Operations)> {
    let mut found = Vec::new();
    let mut add = |selection: &ResourceSelection, operations: Operations| {
        found.extend(selection.kinds.iter().flatten().map(|kind| (kind.clone(), operations)));
    };
    let own = |selection: &ResourceSelection| operations(selection).unwrap_or(default);
    for selection in selections(block.any.as_deref()) {
        add(selection, own(selection));
    }
    // All filters must hold, so the operations are those that all of them allow.
    let common = selections(block.all.as_deref()).filter_map(operations).reduce(Operations::and).unwrap_or(default);
    for selection in selections(block.all.as_deref()) {
        add(selection, common);
    }
    if let Some(selection) = &block.resources {
        add(selection, own(selection));
    }
    found
}

/// The operations under which an `exclude` leaves out all objects of a kind, whatever they are.
fn excluded(block: Option<&Match>, kind: &Str) -> Operations {
    let Some(block) = block else { return Operations::NONE };
    let listed = block.any.iter().flatten().filter_map(|filter| bare(filter));
    let direct = ResourceFilter {
        resources: block.resources.clone(),
        roles: block.roles.clone(),
        cluster_roles: block.cluster_roles.clone(),
        subjects: block.subjects.clone(),
    };
    listed
        .chain(bare(&direct))
        .filter(|selection| match selection.kinds.as_deref().filter(|kinds| !kinds.is_empty()) {
            Some(kinds) => kinds.contains(kind),
            None => true,
        })
        .map(|selection| operations(selection).unwrap_or(Operations::ALL))
        .fold(Operations::NONE, Operations::or)
}

/// The selection of a filter that says nothing but kinds and operations.
fn bare(filter: &ResourceFilter) -> Option<&ResourceSelection> {
    let of_users =
        [&filter.roles, &filter.cluster_roles].iter().any(|list| list.is_some()) || filter.subjects.is_some();
    let selection = filter.resources.as_ref().filter(|_| !of_users)?;
    let rest = ResourceSelection { kinds: None, operations: None, ..selection.clone() };
    let says = selection.kinds.is_some() || selection.operations.is_some();
    (says && rest == ResourceSelection::default()).then_some(selection)
}

fn selections(filters: Option<&[ResourceFilter]>) -> impl Iterator<Item = &ResourceSelection> {
    filters.unwrap_or_default().iter().filter_map(|filter| filter.resources.as_ref())
}

fn operations(selection: &ResourceSelection) -> Option<Operations> {
    let listed: &[Operation] = selection.operations.as_deref().filter(|listed| !listed.is_empty())?;
    Some(listed.iter().copied().collect())
}
