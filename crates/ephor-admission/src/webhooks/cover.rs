//! Merges many wanted resources into few webhook rules.

use std::collections::BTreeMap;

use ephor_engine::policy::Operations;
use ephor_expr::{Str, Value};

use super::kinds::{Scope, Target};

/// Wanted resources with their operations. What several policies want is wanted once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted(BTreeMap<Target, Operations>);

impl Wanted {
    pub(super) fn add(&mut self, target: Target, operations: Operations) {
        let known = self.0.entry(target).or_default();
        *known = known.or(operations);
    }

    pub(super) fn extend(&mut self, other: Self) {
        for (target, operations) in other.0 {
            self.add(target, operations);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules, sorted: what a wider one sees anyway is left out, and resources that differ in nothing but their name
    /// share a rule.
    pub(super) fn rules(&self) -> Value {
        let wide: Vec<_> = self.0.iter().filter(|(target, _)| is_wide(target)).collect();
        let mut grouped: BTreeMap<(&Str, &Str, Scope, Operations), Vec<Value>> = BTreeMap::new();
        for (target, operations) in &self.0 {
            let covering = wide.iter().filter(|(wide, _)| covers(wide, target));
            let rest = covering.fold(*operations, |rest, (_, covered)| rest.without(**covered));
            if !rest.is_empty() {
                let key = (&target.group, &target.version, target.scope, rest);
                grouped.entry(key).or_default().push(target.resource.clone().into());
            }
        }
        let rules = grouped.into_iter().map(|((group, version, scope, operations), resources)| {
            Value::from([
                ("apiGroups", Value::array(vec![group.clone().into()])),
                ("apiVersions", Value::array(vec![version.clone().into()])),
                ("operations", operations.words()),
                ("resources", Value::array(resources)),
                ("scope", scope.as_str().into()),
            ])
        });
        Value::array(rules.collect())
    }
}

fn is_wide(target: &Target) -> bool {
    target.group == "*" || target.version == "*" || target.scope == Scope::Any || target.resource.contains('*')
}

/// Whether a webhook for `wide` is also called for all of `narrow`.
fn covers(wide: &Target, narrow: &Target) -> bool {
    let part = |wide: &str, narrow: &str| wide == narrow || wide == "*";
    wide != narrow
        && part(&wide.group, &narrow.group)
        && part(&wide.version, &narrow.version)
        && (wide.scope == narrow.scope || wide.scope == Scope::Any)
        && match (wide.resource.split_once('/'), narrow.resource.split_once('/')) {
            (Some(("*", "*")), _) => true,
            (Some((resource, sub)), Some((own, own_sub))) => part(resource, own) && part(sub, own_sub),
            (None, None) => part(&wide.resource, &narrow.resource),
            _ => false,
        }
}
