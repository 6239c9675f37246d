//! What a policy demands of those around the engine: which requests admission must see, and which objects generate
//! rules make or copy.
//!
//! It is read from the declared rules once, while they are compiled. Webhook configurations and watches follow from it,
//! so that neither looks at the policy's document again.

use std::collections::BTreeSet;

use ephor_expr::Str;

use super::program::Program;
use super::webhook::WebhookTerms;
use crate::policy::{
    FailurePolicy, GenerateParts, Match, MatchResources, NamedRule, Operation, Operations, ResourceFilter,
    ResourceSelection, Rule, RuleScope,
};

/// Which of the two kinds of admission webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Changes objects.
    Mutating,
    /// Judges objects, and notices what generate and mutate-existing rules react to.
    Validating,
}

/// The objects that requests are about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requested {
    /// Of a kind, as policies write it: `Pod`, `apps/v1/Deploy*`, `Pod/exec`.
    Kind(Str),
    /// Of resources, as API servers name them; `*` means any.
    Resources {
        /// Their groups.
        groups: Vec<Str>,
        /// Their versions.
        versions: Vec<Str>,
        /// Their plural names, with subresources: `pods`, `pods/exec`, `*/scale`.
        resources: Vec<Str>,
        /// Whether they live in namespaces; `None` for either.
        namespaced: Option<bool>,
    },
}

/// Requests that a rule must see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestDemand {
    /// In which webhook.
    pub hook: Hook,
    /// About what.
    pub requested: Requested,
    /// Under which operations.
    pub operations: Operations,
}

/// What one rule demands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleDemands {
    /// The requests that it must see: for each kind the operations of its match, less what its exclude takes away.
    pub requests: BTreeSet<RequestDemand>,
    /// The kinds that it makes or copies, as far as they are written out: `apiVersion` (empty if the rule leaves it
    /// out) and kind.
    pub downstreams: BTreeSet<(Str, Str)>,
}

/// What the rules of a policy that admission evaluates demand together, and on which terms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demands {
    /// What an error means.
    pub failure_policy: FailurePolicy,
    /// How its webhook is registered.
    pub webhook: WebhookTerms,
    /// The requests that some rule must see.
    pub requests: BTreeSet<RequestDemand>,
}

impl Program {
    /// What admission must provide for the policy; `None` if admission does not evaluate it.
    pub fn demands(&self) -> Option<Demands> {
        self.admission.then(|| Demands {
            failure_policy: self.failure_policy,
            webhook: self.webhook.clone(),
            requests: self.rules.iter().flat_map(|rule| &rule.demands.requests).cloned().collect(),
        })
    }
}

impl RuleDemands {
    /// What a rule demands.
    pub(super) fn of(rule: &Rule) -> Self {
        let (hook, default) = match &rule.mutate {
            Some(mutate) if mutate.targets.is_none() => (Hook::Mutating, Operations::WRITES),
            _ => (Hook::Validating, Operations::ALL),
        };
        let mut requests = BTreeSet::new();
        for (kind, operations) in matched(&rule.matches, default) {
            let operations = operations.without(excluded(rule.exclude.as_ref(), &kind));
            if !operations.is_empty() {
                requests.insert(RequestDemand { hook, requested: Requested::Kind(kind), operations });
            }
        }
        let mut downstreams = BTreeSet::new();
        if let Some(generate) = &rule.generate {
            let loops = generate.foreach.iter().flatten().map(|entry| entry.parts());
            downstreams.extend(loops.chain([generate.parts()]).flat_map(|parts| downstream_kinds(&parts)));
        }
        // Changes of downstreams and of their sources are noticed.
        requests.extend(downstreams.iter().map(|(api_version, kind)| RequestDemand {
            hook: Hook::Validating,
            requested: Requested::Kind(match api_version.as_str() {
                "" => kind.clone(),
                _ => format!("{api_version}/{kind}").into(),
            }),
            operations: Operations::CHANGES,
        }));
        Self { requests, downstreams }
    }

    /// What a rule demands that names resources.
    pub(super) fn of_constraints(hook: Hook, constraints: Option<&MatchResources>) -> Self {
        let rules = constraints.map(|constraints| constraints.resource_rules.as_slice()).unwrap_or_default();
        let demand = |rule: &NamedRule| RequestDemand {
            hook,
            requested: Requested::Resources {
                groups: rule.api_groups.clone(),
                versions: rule.api_versions.clone(),
                resources: rule.resources.clone(),
                namespaced: match rule.scope {
                    Some(RuleScope::Namespaced) => Some(true),
                    Some(RuleScope::Cluster) => Some(false),
                    Some(RuleScope::All) | None => None,
                },
            },
            operations: rule.operations(),
        };
        Self { requests: rules.iter().map(demand).collect(), downstreams: BTreeSet::new() }
    }
}

impl NamedRule {
    /// The operations that it names; none named means any.
    fn operations(&self) -> Operations {
        [Operation::Connect, Operation::Create, Operation::Delete, Operation::Update]
            .into_iter()
            .filter(|operation| self.means(*operation))
            .collect()
    }
}

/// The kinds of generated objects and of their sources.
fn downstream_kinds(parts: &GenerateParts<'_>) -> Vec<(Str, Str)> {
    let listed = parts.clone_list.and_then(|list| list.kinds.as_deref()).unwrap_or_default().iter();
    let listed = listed.map(|kind| {
        let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
        (api_version.into(), kind.into())
    });
    let own = parts.kind.map(|kind| (parts.api_version.cloned().unwrap_or_default(), kind.clone()));
    let is_variable = |text: &Str| text.contains("{{") || text.contains("$(");
    let known = |(api_version, kind): &(Str, Str)| !kind.is_empty() && !is_variable(kind) && !is_variable(api_version);
    listed.chain(own).filter(known).collect()
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

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;
    use crate::compile::compile;

    /// `hook kind operations` of each demand of a policy with these rules, and the downstreams of its rules.
    fn demands(spec: &str) -> Option<(Vec<String>, Vec<String>)> {
        let text =
            format!("{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{{spec}}}}}");
        let compiled = compile(&parse_value(&text).unwrap());
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.findings));
        let shown = |demand: RequestDemand| {
            let operations = demand.operations.words().to_json().replace(['[', ']', '"'], "");
            let Requested::Kind(kind) = demand.requested else { panic!("{demand:?}") };
            format!("{:?} {kind} {operations}", demand.hook)
        };
        let requests = program.demands()?.requests.into_iter().map(shown).collect();
        let downstreams = program.rules.iter().flat_map(|rule| &rule.demands.downstreams);
        Some((requests, downstreams.map(|(version, kind)| format!("{version} {kind}")).collect()))
    }

    #[test]
    fn a_program_demands_the_requests_and_kinds_of_its_rules() {
        let validate = "validate: {message: m, deny: {}}";
        for (spec, requests, downstreams) in [
            (
                format!("background: false, rules: [{{name: r, match: {{any: [{{resources: {{kinds: [Pod], operations: [CREATE]}}}}]}}, {validate}}}]"),
                // Auto-gen adds rules, which demand requests of their own.
                &[
                    "Validating Pod CREATE",
                    "Validating apps/v1/DaemonSet CREATE",
                    "Validating apps/v1/Deployment CREATE",
                    "Validating apps/v1/ReplicaSet CREATE",
                    "Validating apps/v1/StatefulSet CREATE",
                    "Validating batch/v1/CronJob CREATE",
                    "Validating batch/v1/Job CREATE",
                    "Validating v1/ReplicationController CREATE",
                ][..],
                &[][..],
            ),
            (
                format!("background: false, rules: [{{name: r, match: {{any: [{{resources: {{kinds: [Secret, ConfigMap]}}}}]}}, \
                         exclude: {{any: [{{resources: {{kinds: [Secret], operations: [DELETE, CONNECT]}}}}]}}, {validate}}}]"),
                &["Validating ConfigMap CONNECT,CREATE,DELETE,UPDATE", "Validating Secret CREATE,UPDATE"],
                &[],
            ),
            (
                "rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {a: b}}}}]".to_owned(),
                &["Mutating ConfigMap CREATE,UPDATE"],
                &[],
            ),
            (
                "rules: [{name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: Secret, \
                 name: s, namespace: '{{request.object.metadata.name}}', data: {}}}]".to_owned(),
                &["Validating Namespace CONNECT,CREATE,DELETE,UPDATE", "Validating v1/Secret CREATE,DELETE,UPDATE"],
                &["v1 Secret"],
            ),
        ] {
            let (found, made) = demands(&spec).unwrap();
            assert_eq!(found, requests, "{spec}");
            assert_eq!(made, downstreams, "{spec}");
        }
    }

    #[test]
    fn a_policy_that_admission_does_not_evaluate_demands_nothing() {
        let rule = "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, deny: {}}}";
        assert_eq!(demands(&format!("admission: false, rules: [{rule}]")), None);
    }
}
