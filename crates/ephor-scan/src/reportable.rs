//! The policies, rules and kinds that are scanned.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_engine::compile::{Body, CompiledRule, Program};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::matching::KindSelector;
use ephor_engine::outcome::Phase;
use ephor_engine::select::PolicySet;
use ephor_expr::{Str, Value};
use ephor_reports::entry::process;
use ephor_reports::merge::{Rule, Stored};
use ephor_reports::report::{DISABLED, Reported};
use ephor_runtime::kinds::{GroupKind, requested_kinds, trigger_kinds};
use ephor_runtime::policies::{PolicyId, Snapshot, StoredPolicy};

/// What is scanned, as of one snapshot of the policies.
#[derive(Debug, Default)]
pub struct Reportable {
    /// The policies whose validate rules judge existing objects.
    pub set: PolicySet,
    /// The policies of `policies.kyverno.io` that mutate: existing objects fail that they would change.
    pub mutating: PolicySet,
    /// The exceptions that count.
    pub exceptions: Arc<ExceptionSet>,
    /// The kinds to scan, with the version to read them in.
    pub kinds: BTreeMap<GroupKind, Str>,
    policies: HashMap<PolicyId, Policy>,
    reported: BTreeSet<Reported>,
}

/// What of a policy matters here.
#[derive(Debug, Clone)]
struct Policy {
    /// `None` if a label keeps it out of reports.
    program: Option<Arc<Program>>,
    scanned: bool,
    /// The namespace of a `Policy`.
    namespace: Option<Str>,
    kinds: BTreeMap<GroupKind, Str>,
}

/// What must be judged again after a change of policies.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rescans {
    /// Kinds, each in one namespace (empty: in all).
    pub kinds: BTreeSet<(GroupKind, Str)>,
    /// Whether stored results may be about rules that are gone.
    pub stale: bool,
}

impl Reportable {
    /// What is scanned by the policies of a snapshot, if these sorts of rules are reported.
    pub fn of(snapshot: &Snapshot, discovery: &Discovery, reported: &BTreeSet<Reported>) -> Self {
        let mut reportable =
            Self { exceptions: Arc::clone(&snapshot.exceptions), reported: reported.clone(), ..Self::default() };
        let (mut programs, mut mutating) = (Vec::new(), Vec::new());
        for stored in snapshot.policies.values() {
            let Some(program) = &stored.program else { continue };
            let mut policy = Policy::of(stored, program, discovery);
            let mutates = program.rules.iter().any(mutates);
            policy.scanned &= reported.contains(if mutates { &Reported::Mutate } else { &Reported::Validate });
            if policy.scanned {
                if mutates { &mut mutating } else { &mut programs }.push(Arc::clone(program));
                reportable.kinds.extend(policy.kinds.iter().map(|(kind, version)| (kind.clone(), version.clone())));
            }
            reportable.policies.insert(program.id.clone(), policy);
        }
        reportable.set = PolicySet::new(programs);
        reportable.mutating = PolicySet::new(mutating);
        reportable
    }

    /// What happens to a stored result.
    pub fn fate(&self, rule: &Rule<'_>) -> Stored {
        let Some(policy) = rule.rule.policy_id().and_then(|id| self.policies.get(&id)) else { return Stored::Gone };
        let Some(program) = &policy.program else { return Stored::Gone };
        // Results of `policies.kyverno.io` name what decided, which is no rule.
        let by_name = |known: &&CompiledRule| program.id.kind.is_of_cel() || known.name == rule.rule.rule;
        match program.rules.iter().find(by_name) {
            None => Stored::Gone,
            Some(known) if !is_reported(known, &self.reported) => Stored::Gone,
            Some(known) if policy.scanned && is_scanned(known) => Stored::Replaced,
            // A result of a time when the policy was scanned is none of a request.
            Some(_) if rule.process != process(program.background) => Stored::Gone,
            Some(_) => Stored::Stands,
        }
    }

    /// What must be judged again when this takes the place of `before`.
    pub fn changes_since(&self, before: &Self) -> Rescans {
        let mut rescans = Rescans::default();
        if !Arc::ptr_eq(&self.exceptions, &before.exceptions) {
            rescans.kinds.extend(self.kinds.keys().map(|kind| (kind.clone(), Str::default())));
        }
        let ids: BTreeSet<&PolicyId> = self.policies.keys().chain(before.policies.keys()).collect();
        for id in ids {
            let (old, new) = (before.policies.get(id), self.policies.get(id));
            if let (Some(old), Some(new)) = (old, new)
                && old.same_as(new)
            {
                continue;
            }
            rescans.stale |= old.is_some();
            for policy in [old, new].into_iter().flatten().filter(|policy| policy.scanned) {
                let namespace = policy.namespace.clone().unwrap_or_default();
                rescans.kinds.extend(policy.kinds.keys().map(|kind| (kind.clone(), namespace.clone())));
            }
        }
        rescans.kinds.retain(|(kind, _)| self.kinds.contains_key(kind));
        rescans
    }
}

/// Whether scans evaluate a rule: it validates, or it is one of a policy of `policies.kyverno.io` that mutates.
fn is_scanned(rule: &CompiledRule) -> bool {
    rule.phase() == Phase::Validate || mutates(rule)
}

fn mutates(rule: &CompiledRule) -> bool {
    matches!(rule.body, Body::Policy(_))
}

/// Whether results of a rule belong in reports.
fn is_reported(rule: &CompiledRule, reported: &BTreeSet<Reported>) -> bool {
    let sort = match rule.phase() {
        Phase::Validate => Reported::Validate,
        Phase::Mutate => Reported::Mutate,
        Phase::MutateExisting => Reported::MutateExisting,
        Phase::Generate => Reported::Generate,
        // What is gone has no report.
        Phase::Delete => return false,
    };
    reported.contains(&sort)
}

impl Policy {
    fn of(stored: &StoredPolicy, program: &Arc<Program>, discovery: &Discovery) -> Self {
        let reported = stored.document.at(&["metadata", "labels", DISABLED]).is_none();
        let rules = || program.rules.iter().filter(|rule| is_scanned(rule));
        let scanned = reported && program.background && rules().next().is_some();
        let mut kinds = BTreeMap::new();
        if scanned {
            for (api_version, kind) in rules().flat_map(|rule| kinds_of(rule, discovery)) {
                kinds.insert(GroupKind::new(&api_version, &kind), api_version);
            }
        }
        Self { program: reported.then(|| Arc::clone(program)), scanned, namespace: program.id.namespace.clone(), kinds }
    }

    fn same_as(&self, other: &Self) -> bool {
        let same_program = match (&self.program, &other.program) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same_program && self.kinds == other.kinds
    }
}

/// Groups of which nothing is scanned: there would be reports about reports, without end.
const REPORTS: [&str; 3] = ["openreports.io", "reports.kyverno.io", "wgpolicyk8s.io"];

/// The kinds whose objects a rule judges and that can be listed.
fn kinds_of(rule: &CompiledRule, discovery: &Discovery) -> Vec<(Str, Str)> {
    let mut kinds = if rule.body.constraints().is_some() {
        rule.demands.requests.iter().flat_map(|demand| requested_kinds(&demand.requested, discovery)).collect()
    } else {
        let made: Vec<KindSelector> =
            rule.autogen.iter().flat_map(|made| &made.kinds).map(|kind| KindSelector::parse(kind)).collect();
        let named = || rule.matches.kinds().map(|kinds| kinds.into_iter().cloned().collect::<Vec<_>>());
        let selectors = if made.is_empty() { named() } else { Some(made) };
        trigger_kinds(selectors.as_deref(), discovery)
    };
    kinds.retain(|(api_version, _)| {
        let (group, _) = ephor_cluster::resource::split_api_version(api_version);
        !REPORTS.contains(&group)
    });
    kinds
}

/// The group and kind of an object.
pub fn kind_of(object: &Value) -> GroupKind {
    let text = |key| object.str_at(&[key]).unwrap_or_default();
    GroupKind::new(text("apiVersion"), text("kind"))
}
