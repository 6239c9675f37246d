//! An immutable set of programs with its index.

use std::sync::Arc;

use ephor_expr::Str;
use rustc_hash::FxHashMap;

use crate::compile::{Body, CompiledRule, Program};
use crate::matching::KindSelector;
use crate::outcome::Phase;
use crate::policy::is_own_group;
use crate::review::Review;
use crate::rules::admission::resource_of;

/// A rule of a set: indexes of its policy and of the rule in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleRef {
    /// The policy.
    pub policy: u32,
    /// The rule.
    pub rule: u32,
}

/// Compiled policies, indexed by namespace, and by kind or resource. Cheap to share; a change makes a new set.
#[derive(Debug, Default)]
pub struct PolicySet {
    programs: Vec<Arc<Program>>,
    cluster: [ByKind; PHASES],
    namespaced: FxHashMap<Str, [ByKind; PHASES]>,
}

/// Rules of one phase by the kind or the resource that they name; those that name any are candidates for every kind.
#[derive(Debug, Default, Clone)]
struct ByKind {
    exact: FxHashMap<Str, Vec<RuleRef>>,
    /// Rules of policies that name resources, not kinds.
    by_resource: FxHashMap<Str, Vec<RuleRef>>,
    any: Vec<RuleRef>,
}

/// How many phases there are.
const PHASES: usize = 5;

fn slot(phase: Phase) -> usize {
    match phase {
        Phase::Mutate => 0,
        Phase::Validate => 1,
        Phase::Generate => 2,
        Phase::MutateExisting => 3,
        Phase::Delete => 4,
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
                    match compiled.body.constraints() {
                        Some(constraints) => by_kind.add_resources(constraints.resources(), reference),
                        None => by_kind.add(kinds(compiled), reference),
                    }
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

    /// The rules of a phase that can match what a review is about, in order of evaluation.
    ///
    /// A namespaced policy judges and changes no policies, exceptions and the like: one that denies everything could not
    /// be deleted again, not even by an administrator, and would deny Ephor the writing of its status.
    pub fn candidates(&self, phase: Phase, review: &Review, out: &mut Vec<RuleRef>) {
        out.clear();
        let own = self.namespaced.get(&review.namespace).filter(|_| !is_own_group(&review.gvk.group));
        for index in [Some(&self.cluster), own].into_iter().flatten() {
            if let Some(by_kind) = index.get(slot(phase)) {
                out.extend_from_slice(&by_kind.any);
                if let Some(exact) = by_kind.exact.get(&review.gvk.kind) {
                    out.extend_from_slice(exact);
                }
                if !by_kind.by_resource.is_empty()
                    && let Some(named) = by_kind.by_resource.get(&*resource_of(review))
                {
                    out.extend_from_slice(named);
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
    /// Adds a rule under the resources that it names; `None` if it names any.
    fn add_resources(&mut self, resources: Option<Vec<&str>>, rule: RuleRef) {
        let Some(resources) = resources else { return self.any.push(rule) };
        for resource in resources {
            let list = self.by_resource.entry(Str::new(resource)).or_default();
            if list.last() != Some(&rule) {
                list.push(rule);
            }
        }
    }

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

#[cfg(test)]
mod tests {
    use ephor_expr::Value;
    use ephor_expr::yaml::parse_value;

    use super::*;
    use crate::compile::compile;

    #[test]
    fn a_namespaced_policy_judges_no_policies() {
        let spec = "spec: {validations: [{expression: 'false'}], matchConstraints: {resourceRules: [{apiGroups: ['*'], \
                    apiVersions: ['*'], operations: ['*'], resources: ['*']}]}}";
        let program = |kind: &str, metadata: &str| {
            let text = format!("{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {metadata}, {spec}}}");
            Arc::new(compile(&parse_value(&text).unwrap()).program.unwrap())
        };
        let set = PolicySet::new(vec![
            program("NamespacedValidatingPolicy", "{name: lock, namespace: a}"),
            program("ValidatingPolicy", "{name: all}"),
        ]);
        let found = |api_version: &str, kind: &str| {
            let text = format!("{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: x, namespace: a}}}}");
            let review = Review::of_object(parse_value(&text).unwrap(), jiff::Timestamp::UNIX_EPOCH);
            let mut found = Vec::new();
            set.candidates(Phase::Validate, &review, &mut found);
            found.iter().map(|at| set.programs()[at.policy as usize].id.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("v1", "ConfigMap"), ["lock", "all"]);
        assert_eq!(found("kyverno.io/v1", "Policy"), ["all"]);
        assert_eq!(found("policies.kyverno.io/v1", "NamespacedValidatingPolicy"), ["all"]);
    }

    #[test]
    fn rules_that_name_resources_are_found_by_them() {
        let program = |name: &str, resources: &str| {
            let text = format!(
                "{{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {{name: {name}}}, spec: \
                 {{autogen: {{podControllers: {{controllers: []}}}}, validations: [{{expression: 'true'}}], \
                 matchConstraints: {{resourceRules: [{{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: \
                 {resources}}}]}}}}}}"
            );
            Arc::new(compile(&parse_value(&text).unwrap()).program.unwrap())
        };
        let set = PolicySet::new(vec![
            program("pods", "[pods]"),
            program("exec", "[pods/exec]"),
            program("both", "[deployments, pods]"),
            program("any", "['*']"),
            program("scale", "['*/scale']"),
        ]);
        let found = |kind: &str, resource: Option<&str>| {
            let object = parse_value(&format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: x}}}}")).unwrap();
            let mut review = Review::of_object(object, jiff::Timestamp::UNIX_EPOCH);
            if let Some(resource) = resource {
                let resource = Value::from([("resource", Value::from(resource))]);
                review.attributes = ephor_expr::Map::from_iter([("resource".into(), resource)]);
            }
            let mut found = Vec::new();
            set.candidates(Phase::Validate, &review, &mut found);
            found.iter().map(|at| set.programs()[at.policy as usize].id.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("Pod", None), ["pods", "exec", "both", "any", "scale"]);
        assert_eq!(found("Deployment", None), ["both", "any", "scale"]);
        // A request says which resource it is about.
        assert_eq!(found("Odd", Some("pods")), ["pods", "exec", "both", "any", "scale"]);
        assert_eq!(found("Odd", None), ["any", "scale"]);
    }
}
