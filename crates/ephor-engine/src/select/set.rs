//! An immutable set of programs with its index.

use std::sync::Arc;

use ephor_expr::Str;
use rustc_hash::FxHashMap;

use crate::compile::{Body, CompiledRule, Program};
use crate::matching::KindSelector;
use crate::outcome::Phase;

/// A rule of a set: indexes of its policy and of the rule in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleRef {
    /// The policy.
    pub policy: u32,
    /// The rule.
    pub rule: u32,
}

/// Compiled policies, indexed by namespace and kind. Cheap to share; a change makes a new set.
#[derive(Debug, Default)]
pub struct PolicySet {
    programs: Vec<Arc<Program>>,
    cluster: [ByKind; 4],
    namespaced: FxHashMap<Str, [ByKind; 4]>,
}

/// Rules of one phase by the kind they name; those whose kind selector has wildcards are candidates for every kind.
#[derive(Debug, Default, Clone)]
struct ByKind {
    exact: FxHashMap<Str, Vec<RuleRef>>,
    any: Vec<RuleRef>,
}

fn slot(phase: Phase) -> usize {
    match phase {
        Phase::Mutate => 0,
        Phase::Validate => 1,
        Phase::Generate => 2,
        Phase::MutateExisting => 3,
    }
}

impl PolicySet {
    /// Indexes programs; their order is the order of evaluation.
    pub fn new(programs: Vec<Arc<Program>>) -> Self {
        let mut set = Self { programs, ..Self::default() };
        for (policy, program) in set.programs.iter().enumerate() {
            let index = match &program.id.namespace {
                None => &mut set.cluster,
                Some(namespace) => set.namespaced.entry(namespace.clone()).or_default(),
            };
            for (rule, compiled) in program.rules.iter().enumerate() {
                let reference = RuleRef { policy: policy as u32, rule: rule as u32 };
                if let Some(by_kind) = index.get_mut(slot(compiled.phase())) {
                    by_kind.add(kinds(compiled), reference);
                }
            }
        }
        set
    }

    /// The programs, in order of evaluation.
    pub fn programs(&self) -> &[Arc<Program>] {
        &self.programs
    }

    /// Whether a rule that looks at objects in `namespace` names `kind` without wildcards.
    pub fn names_kind(&self, kind: &str, namespace: &str) -> bool {
        let own = self.namespaced.get(namespace);
        [Some(&self.cluster), own].into_iter().flatten().flatten().any(|by_kind| by_kind.exact.contains_key(kind))
    }

    /// The rules of a phase that can match an object of `kind` in `namespace`, in order of evaluation.
    pub fn candidates(&self, phase: Phase, kind: &str, namespace: &str, out: &mut Vec<RuleRef>) {
        out.clear();
        let own = self.namespaced.get(namespace);
        for index in [Some(&self.cluster), own].into_iter().flatten() {
            if let Some(by_kind) = index.get(slot(phase)) {
                out.extend_from_slice(&by_kind.any);
                if let Some(exact) = by_kind.exact.get(kind) {
                    out.extend_from_slice(exact);
                }
            }
        }
        out.sort_unstable();
        out.dedup();
    }
}

/// The kinds that a rule can match; `None` for any.
///
/// A validate rule made by auto-gen judges the controllers it was made for: the declared rule judges whatever else its
/// match names.
fn kinds(rule: &CompiledRule) -> Option<Vec<&str>> {
    match (&rule.autogen, &rule.body) {
        (Some(made), Body::Validate(_)) => Some(made.kinds.iter().map(Str::as_str).collect()),
        _ => rule.matches.kinds()?.into_iter().map(KindSelector::exact_kind).collect(),
    }
}

impl ByKind {
    fn add(&mut self, kinds: Option<Vec<&str>>, rule: RuleRef) {
        let Some(kinds) = kinds else { return self.any.push(rule) };
        for kind in kinds {
            let list = self.exact.entry(Str::new(kind)).or_default();
            if list.last() != Some(&rule) {
                list.push(rule);
            }
        }
    }
}
