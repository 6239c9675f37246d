//! The reference: what must be there and what may be, from what users say alone.

use std::collections::{BTreeMap, BTreeSet};

use super::world::{Id, Place, Rule, RuleKey, SOURCES, Shape, Trigger, World, namespace_of};

/// What synchronizing rules want.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// What an object may say: what one of the rules that want it says.
    pub(super) allowed: BTreeMap<Id, BTreeSet<String>>,
    /// Objects that must be there.
    pub(super) required: BTreeSet<Id>,
    /// The rules that want an object.
    pub(super) wanted_by: BTreeMap<Id, BTreeSet<RuleKey>>,
}

impl World {
    /// Whether a rule is about a trigger as it is, exceptions aside.
    pub(super) fn matches(&self, policy: &str, rule: &Rule, place: Place) -> bool {
        let Some(trigger) = self.triggers.get(&place) else { return false };
        let seen = namespace_of(policy).is_none_or(|own| own == place.0);
        seen && trigger.on
            && (!rule.when || trigger.ready)
            && (!rule.golden || self.spaces.get(place.0).copied().unwrap_or(false))
    }

    /// Whether an exception lets a trigger off.
    pub(super) fn exempt(&self, key: RuleKey, place: Place) -> bool {
        self.exceptions.values().any(|exception| *exception == (key, place))
    }

    /// Whether a rule that is asked about a trigger is sure to act.
    pub(super) fn counts(&self, key: RuleKey, place: Place) -> bool {
        !self.exempt(key, place) && !self.lifted.contains(&(key, place))
    }

    /// Whether an exception keeps what a rule made for a trigger as it is.
    pub(super) fn keeps(&self, key: RuleKey, place: Place) -> bool {
        let rule = self.policies.get(key.0).and_then(|rules| rules.get(key.1));
        rule.is_some_and(|rule| rule.synchronize && self.matches(key.0, rule, place)) && self.exempt(key, place)
    }

    /// What a rule renders for a trigger: identity and content.
    pub(super) fn rendered(
        &self,
        key: RuleKey,
        rule: &Rule,
        (space, name): Place,
        trigger: &Trigger,
    ) -> Vec<(Id, String)> {
        let (policy, rule_name) = key;
        let own = format!("{policy}-{rule_name}-{name}-{}", rule.moved);
        let said = format!("v{}-t{}", rule.value, trigger.value);
        let secret = |name: String| Id("Secret", space.to_owned(), name);
        let sources = namespace_of(policy).unwrap_or(SOURCES);
        match rule.shape {
            Shape::Data if rule.on_end => vec![(secret(format!("{own}-end-t{}", trigger.value)), said)],
            Shape::Data => vec![(secret(format!("{own}-to{}", trigger.to)), said)],
            Shape::Shared => vec![(secret(format!("shared-{name}")), said)],
            Shape::Wide => {
                let end = if rule.on_end { format!("-end-t{}", trigger.value) } else { String::new() };
                vec![(Id("ClusterRole", String::new(), format!("{space}-{own}{end}")), said)]
            }
            Shape::Each => {
                trigger.list.iter().map(|element| (secret(format!("{own}-{element}")), said.clone())).collect()
            }
            Shape::Clone => {
                let source = (sources.to_owned(), format!("source-{policy}-{rule_name}"));
                let source = self.sources.get(&source);
                source.map(|(_, value)| (secret(own), format!("s{value}"))).into_iter().collect()
            }
            Shape::List => {
                let all = self.sources.iter().filter(|((namespace, _), (of, _))| *of == key && namespace == sources);
                all.map(|((_, source), (_, value))| (secret(source.clone()), format!("s{value}"))).collect()
            }
        }
    }

    /// All rules, with the triggers that they are about; those about ends, with the triggers whose end they await.
    fn concerned(&self, on_end: bool) -> impl Iterator<Item = (RuleKey, &Rule, Place, &Trigger)> {
        self.policies.iter().flat_map(move |(policy, rules)| {
            rules.iter().filter(move |(_, rule)| rule.on_end == on_end).flat_map(move |(name, rule)| {
                let key = (*policy, *name);
                let about = move |place| self.matches(policy, rule, place) && !self.exempt(key, place);
                let triggers = self.triggers.iter().filter(move |(place, _)| about(**place));
                triggers.map(move |(place, trigger)| (key, rule, *place, trigger))
            })
        })
    }

    /// All rules, with the triggers that they are about.
    pub(super) fn applying(&self) -> impl Iterator<Item = (RuleKey, &Rule, Place, &Trigger)> {
        self.concerned(false)
    }

    /// What rules are to make when a trigger ends now.
    pub(super) fn at_end(&self, of: Place) -> Vec<(RuleKey, &Rule, Id, String)> {
        let awaiting = self.concerned(true).filter(|(_, _, place, _)| *place == of);
        let rendered = awaiting.flat_map(|(key, rule, place, trigger)| {
            self.rendered(key, rule, place, trigger).into_iter().map(move |(id, said)| (key, rule, id, said))
        });
        rendered.collect()
    }

    pub(super) fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for (key, rule, place, trigger) in self.applying() {
            for (id, value) in self.rendered(key, rule, place, trigger) {
                // What several triggers render changes hands in ways that only those who look on all the time follow.
                let one_of_a_kind = !matches!(rule.shape, Shape::Shared | Shape::List);
                let due = one_of_a_kind && self.due.contains(&(key, place));
                if rule.synchronize {
                    expected.allowed.entry(id.clone()).or_default().insert(value);
                    expected.wanted_by.entry(id.clone()).or_default().insert(key);
                }
                if due || (rule.synchronize && rule.existing) {
                    expected.required.insert(id);
                }
            }
        }
        expected
    }

    /// A rule's word about a trigger counts from now on: it has been asked, and will answer.
    pub(super) fn ask(&mut self, place: Place) {
        self.due.retain(|(_, of)| *of != place);
        let asked = self.applying().filter(|(_, _, of, _)| *of == place).map(|(key, ..)| (key, place));
        let asked: Vec<_> = asked.filter(|(key, place)| self.counts(*key, *place)).collect();
        self.due.extend(asked);
    }

    /// A policy was changed from these rules: what a rule was asked before is over, unless it goes on with looking
    /// after its triggers; existing triggers count once.
    pub(super) fn ask_existing(&mut self, policy: &str, before: &BTreeMap<&'static str, Rule>) {
        let policies = &self.policies;
        let synchronizes = |rules: Option<&BTreeMap<&'static str, Rule>>, name: &str| {
            rules.and_then(|rules| rules.get(name)).is_some_and(|rule| rule.synchronize)
        };
        self.due.retain(|((of, name), _)| {
            *of != policy || synchronizes(Some(before), name) && synchronizes(policies.get(of), name)
        });
        let existing = |key: &RuleKey, rule: &Rule| key.0 == policy && rule.existing && !rule.synchronize;
        let asked: Vec<_> = self
            .applying()
            .filter(|(key, rule, ..)| existing(key, rule))
            .map(|(key, _, place, _)| (key, place))
            .filter(|(key, place)| self.counts(*key, *place))
            .collect();
        self.due.extend(asked);
    }

    /// Rules whose answer may be another than the one they were asked for.
    pub(super) fn forget_asked(&mut self, about: impl Fn(RuleKey, &Rule, Place) -> bool) {
        let policies = &self.policies;
        self.due.retain(|(key, place)| {
            policies.get(key.0).and_then(|rules| rules.get(key.1)).is_some_and(|rule| !about(*key, rule, *place))
        });
    }
}
