//! All that a run needs, loaded and compiled.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_engine::cleanup::CleanupProgram;
use ephor_engine::compile::Program;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::matching::UserInfo;
use ephor_engine::outcome::Phase;
use ephor_engine::select::PolicySet;
use ephor_expr::{Map, Str, Value};

use crate::host::Host;
use crate::load::{LoadedPolicy, Values};
use crate::locate::Origin;

/// What output shows of a policy.
#[derive(Debug, Clone)]
pub struct PolicySummary {
    /// `namespace/name`, or the name.
    pub key: Str,
    /// The name.
    pub name: Str,
    /// The namespace, of namespaced policies.
    pub namespace: Option<Str>,
    /// `policies.kyverno.io/category`.
    pub category: Option<Str>,
    /// `policies.kyverno.io/severity`.
    pub severity: Option<Str>,
    /// What it is for, in words: `policies.kyverno.io/description`.
    pub description: Option<Str>,
    /// Whether reports count its failures.
    pub scored: bool,
    /// Whether existing objects are scanned; `None` for kinds without that notion.
    pub background: Option<bool>,
    /// Where it stands.
    pub origin: Origin,
    /// The compiled policy; `None` for cleanup policies.
    pub program: Option<Arc<Program>>,
}

/// Policies that are evaluated together.
#[derive(Debug)]
pub struct PolicyBatch {
    /// Their index.
    pub set: PolicySet,
    /// Position of the set's first policy; the others follow.
    pub first: usize,
    /// The name of its only policy; empty for a batch of several.
    pub name: Str,
}

/// Which verdicts keep their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Those that the default output shows: failures, warnings, errors and mutations that were skipped.
    Findings,
    /// All.
    All,
}

/// All that a run needs. Shared by its threads.
#[derive(Debug)]
pub struct Plan {
    /// The policies, in load order; cleanup policies last.
    pub policies: Vec<PolicySummary>,
    /// Mutations: each policy sees what the ones before made of the object, and each result is shown.
    pub mutations: Vec<PolicyBatch>,
    /// Policies with validate rules.
    pub validations: Vec<PolicyBatch>,
    /// Policies with generate or mutate-existing rules.
    pub creations: Vec<PolicyBatch>,
    /// Policies that delete.
    pub deletions: Vec<PolicyBatch>,
    /// Cleanup policies, each with its policy.
    pub cleanups: Vec<(usize, CleanupProgram)>,
    /// Exceptions, in load order.
    pub exceptions: ExceptionSet,
    /// Who answers the engine's questions.
    pub host: Host,
    /// Values given by the user.
    pub values: Option<Values>,
    /// Single values given by the user; they win.
    pub set: Map,
    /// Who asks.
    pub user: Option<UserInfo>,
    /// The time of the run.
    pub now: jiff::Timestamp,
    /// Which rows are kept.
    pub keep: Keep,
    /// Whether violations under Audit are warnings.
    pub audit_warn: bool,
    /// Whether changed and created objects are printed.
    pub print_changes: bool,
    /// Whether changed and created objects are written to a place of the user's.
    pub write_changes: bool,
    /// Kinds of CRDs that have no namespace, as group and kind.
    pub cluster_scoped: BTreeSet<(Str, Str)>,
}

impl PolicySummary {
    /// The policy of a policy that compiled.
    pub fn of(policy: &LoadedPolicy) -> Self {
        let program = &policy.program;
        Self {
            key: program.key.clone(),
            name: program.id.name.clone(),
            namespace: program.id.namespace.clone(),
            category: program.scoring.category.clone(),
            severity: program.scoring.severity.clone(),
            description: annotation(&policy.document, "policies.kyverno.io/description"),
            scored: !program.scoring.unscored,
            background: Some(program.background),
            origin: policy.origin.clone(),
            program: Some(Arc::clone(program)),
        }
    }

    /// The policy of a policy document that has no program.
    pub fn of_document(document: &Value, origin: &Origin) -> Self {
        let text = |keys: &[&str]| document.str_at(keys).map(Str::new);
        let name = text(&["metadata", "name"]).unwrap_or_default();
        let namespace = text(&["metadata", "namespace"]);
        Self {
            key: namespace.as_ref().map_or_else(|| name.clone(), |ns| format!("{ns}/{name}").into()),
            name,
            namespace,
            category: annotation(document, "policies.kyverno.io/category"),
            severity: annotation(document, "policies.kyverno.io/severity"),
            description: annotation(document, "policies.kyverno.io/description"),
            scored: true,
            background: None,
            origin: origin.clone(),
            program: None,
        }
    }
}

fn annotation(document: &Value, name: &str) -> Option<Str> {
    document.at(&["metadata", "annotations", name]).and_then(Value::as_str).map(|text| text.trim().into())
}

impl PolicyBatch {
    /// The batches of the policies that have rules of a phase of `phases`: one batch for all, or one for each policy
    /// when what one gets differs from what the next gets.
    pub fn of(programs: &[Arc<Program>], phases: &[Phase], apart: bool) -> Vec<PolicyBatch> {
        let takes_part = |program: &Program| program.rules.iter().any(|rule| phases.contains(&rule.phase()));
        if apart {
            let batches = programs.iter().enumerate().filter(|(_, program)| takes_part(program));
            return batches
                .map(|(i, program)| PolicyBatch {
                    set: PolicySet::new(vec![Arc::clone(program)]),
                    first: i,
                    name: program.id.name.clone(),
                })
                .collect();
        }
        if programs.iter().any(|program| takes_part(program)) {
            vec![PolicyBatch { set: PolicySet::new(programs.to_vec()), first: 0, name: Str::default() }]
        } else {
            Vec::new()
        }
    }
}

impl Plan {
    /// How many rules there are, auto-generated ones counted; a policy without rules counts as one.
    pub fn rule_count(&self) -> usize {
        self.policies.iter().map(|policy| policy.program.as_ref().map_or(1, |program| program.rules.len())).sum()
    }
}
