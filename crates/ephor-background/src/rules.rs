//! The parts of a policy that the background role needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_engine::compile::{Body, GenerateWhat, Program};
use ephor_engine::matching::{Gvk, KindSelector};
use ephor_engine::select::PolicySet;
use ephor_expr::{Str, Value};
use ephor_runtime::kinds::{kinds_of_triggers, with_api_versions};
use ephor_runtime::policies::{PolicyId, StoredPolicy};
use ephor_runtime::traits::{Traits, traits};

use super::rule_activation::RuleActivation;
use super::rule_text::{self, RuleText};
use crate::plan::Terms;

/// A policy with generate or mutate-existing rules.
#[derive(Debug, Clone)]
pub struct PolicyInfo {
    /// What it is called.
    pub key: PolicyId,
    /// Its UID.
    pub uid: Str,
    /// Its generation.
    pub generation: i64,
    /// The program, to see whether it changed; `None` for a policy that is refused.
    pub program: Option<Arc<Program>>,
    /// A set of this policy alone.
    pub set: Arc<PolicySet>,
    /// The names of all rules in the document, also of faulty ones.
    pub declared: BTreeSet<Str>,
    /// The generate rules.
    pub generate: Vec<GenerateInfo>,
    /// The mutate-existing rules.
    pub mutate: Vec<MutateInfo>,
    /// The document with groups that it leaves to discovery; `None` if it leaves none, or discovery cannot tell.
    pub completed: Option<Value>,
}

/// A generate rule.
#[derive(Debug, Clone)]
pub struct GenerateInfo {
    /// Its name.
    pub name: Str,
    /// What it says about its downstreams.
    pub terms: Terms,
    /// The kinds of its triggers; `None` for any.
    pub kinds: Option<Vec<KindSelector>>,
    /// What it depends on besides the trigger.
    pub traits: Traits,
    /// Since when it is what it is.
    pub activation: RuleActivation,
    /// Kinds that it makes or copies, as far as they are written out: `apiVersion` and kind.
    pub downstream_kinds: BTreeSet<(Str, Str)>,
    /// Whether it copies objects.
    pub copies: bool,
}

/// A mutate-existing rule.
#[derive(Debug, Clone)]
pub struct MutateInfo {
    /// Its name.
    pub name: Str,
    /// Whether existing triggers count when the policy changes.
    pub on_policy_update: bool,
    /// The kinds of its triggers; `None` for any.
    pub kinds: Option<Vec<KindSelector>>,
}

impl PolicyInfo {
    /// Reads a stored policy; `None` if it has nothing to do here. `known` is what it was before, if it was there, and
    /// `now` the time, RFC 3339.
    pub fn of(
        policy: &StoredPolicy,
        discovery: &Discovery,
        known: Option<&Self>,
        now: impl Fn() -> Str,
    ) -> Option<Self> {
        let known = known.filter(|known| known.uid == policy.uid());
        let completed = with_api_versions(&policy.document, discovery);
        let original = policy.program.clone();
        let (since, since_version) = (policy.since.clone(), policy.since_version.clone());
        let with_groups =
            completed.clone().map(|document| StoredPolicy { since, since_version, ..StoredPolicy::new(document) });
        let policy = with_groups.as_ref().unwrap_or(policy);
        let mut generate = Vec::new();
        let mut mutate = Vec::new();
        let program = policy.program.as_ref().filter(|_| original.is_some());
        for rule in program.iter().flat_map(|program| &program.rules) {
            let kinds = kinds_of_triggers(rule, discovery);
            match &rule.body {
                Body::Generate(body) => {
                    let text = RuleText::of(&policy.document, rule);
                    let terms = Terms {
                        synchronize: body.synchronize,
                        orphan: body.orphan,
                        server_side_apply: body.server_side_apply,
                        existing: body.existing,
                        renewed: text.renewed,
                        references: text.references,
                    };
                    generate.push(GenerateInfo {
                        name: rule.name.clone(),
                        terms,
                        kinds,
                        traits: traits(&policy.document, rule),
                        activation: {
                            let before = known.and_then(|known| known.rule(&rule.name)).map(|rule| &rule.activation);
                            RuleActivation::of(text.selection).begun(&rule.name, policy, before, &now)
                        },
                        downstream_kinds: rule.demands.downstreams.clone(),
                        copies: body.targets().iter().any(|t| !matches!(t.what, GenerateWhat::Data(_))),
                    });
                }
                Body::Mutate(body) if body.targets.is_some() => {
                    mutate.push(MutateInfo { name: rule.name.clone(), on_policy_update: body.on_policy_update, kinds });
                }
                _ => {}
            }
        }
        let declared = rule_text::declared(policy);
        let refused = program.is_none() && rule_text::generates(policy);
        if generate.is_empty() && mutate.is_empty() && !refused {
            return None;
        }
        Some(Self {
            key: policy.key.clone(),
            uid: policy.uid().into(),
            generation: policy.generation(),
            set: Arc::new(PolicySet::new(program.into_iter().cloned().collect())),
            program: original,
            declared,
            generate,
            mutate,
            completed,
        })
    }

    /// Whether it is what `document` comes to with what is served now.
    pub fn is_up_to_date(&self, document: &Value, discovery: &Discovery) -> bool {
        let rules = self.set.programs().iter().flat_map(|program| &program.rules);
        let mut triggers = rules.filter_map(|rule| Some((rule, &self.rule(&rule.name)?.kinds)));
        with_api_versions(document, discovery) == self.completed
            && triggers.all(|(rule, kinds)| kinds_of_triggers(rule, discovery) == *kinds)
    }

    /// The generate rule of that name.
    pub fn rule(&self, name: &str) -> Option<&GenerateInfo> {
        self.generate.iter().find(|rule| rule.name == name)
    }

    /// Whether a rule of it synchronizes.
    pub fn synchronizes(&self) -> bool {
        self.generate.iter().any(|rule| rule.terms.synchronize)
    }

    /// Whether it generates, and all its generate rules synchronize.
    pub fn only_synchronizes(&self) -> bool {
        self.synchronizes() && self.generate.iter().all(|rule| rule.terms.synchronize)
    }

    /// Since when its synchronizing rules are what they are.
    pub fn activations(&self) -> impl Iterator<Item = (&Str, &RuleActivation)> {
        self.generate.iter().filter(|rule| rule.terms.synchronize).map(|rule| (&rule.name, &rule.activation))
    }

    /// Whether the policy looks at objects in `namespace`.
    pub fn sees(&self, namespace: &str) -> bool {
        self.key.namespace.as_ref().is_none_or(|own| own == namespace)
    }

    /// The rules that look at existing triggers once for each generation.
    pub fn once(&self) -> impl Iterator<Item = Once<'_>> {
        let generate = self.generate.iter().filter(|rule| rule.terms.existing && !rule.terms.synchronize);
        let mutate = self.mutate.iter().filter(|rule| rule.on_policy_update);
        let generate = generate.map(|rule| {
            let work = OnceWork::Generate { skips_own: rule.traits.skips_own };
            Once { name: &rule.name, kinds: rule.kinds.as_deref(), work }
        });
        generate.chain(mutate.map(|rule| Once {
            name: &rule.name,
            kinds: rule.kinds.as_deref(),
            work: OnceWork::Mutate,
        }))
    }

    /// Whether there are such rules.
    pub fn once_for_existing(&self) -> bool {
        self.once().next().is_some()
    }
}

/// A rule that looks at existing triggers once for each generation of its policy.
#[derive(Debug, Clone, Copy)]
pub struct Once<'r> {
    /// Its name.
    pub name: &'r Str,
    /// The kinds of its triggers; `None` for any.
    pub kinds: Option<&'r [KindSelector]>,
    /// What it does.
    pub work: OnceWork,
}

/// What such a rule does for a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceWork {
    /// It makes objects.
    Generate {
        /// What this controller made is no trigger.
        skips_own: bool,
    },
    /// It patches objects.
    Mutate,
}

/// Whether a rule with these kinds can be about an object.
pub fn may_match(kinds: Option<&[KindSelector]>, gvk: &Gvk) -> bool {
    kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind.matches(gvk, "")))
}
