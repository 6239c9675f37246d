//! Auto-gen for `ValidatingPolicy`: what a policy on Pods says of everything with a Pod template.
//!
//! In goes the spec of a policy, out come specs for controllers. Expressions are rewritten as texts, as upstream does:
//! `object.spec` becomes the path of the template, in messages and comments too.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;

use crate::policy::{LabelSelector, MatchResources, NamedRule, ValidatingPolicySpec};

/// The controllers: resource, group, kind.
const CONTROLLERS: [(&str, &str, &str); 6] = [
    ("cronjobs", "batch", "CronJob"),
    ("daemonsets", "apps", "DaemonSet"),
    ("deployments", "apps", "Deployment"),
    ("jobs", "batch", "Job"),
    ("replicasets", "apps", "ReplicaSet"),
    ("statefulsets", "apps", "StatefulSet"),
];

/// A spec for some controllers.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedSpec {
    /// The spec, with constraints of its own.
    pub spec: ValidatingPolicySpec,
    /// The kinds that it is for.
    pub kinds: Vec<Str>,
}

/// A name in `autogen.podControllers.controllers` that is no controller, and the nearest that is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownController {
    /// Its place in the list.
    pub index: usize,
    /// What stands there.
    pub name: Str,
    /// What may be meant.
    pub nearest: Option<&'static str>,
}

/// What a policy says of controllers; nothing if it is about anything but Pods alone.
pub fn expand_spec(spec: &ValidatingPolicySpec) -> Vec<GeneratedSpec> {
    let Some(rule) = spec.match_constraints.as_ref().and_then(of_pods) else { return Vec::new() };
    let wanted = |name: &str| match &spec.autogen.pod_controllers.controllers {
        None => true,
        Some(named) => named.iter().any(|named| named == name),
    };
    let of = |cron_jobs: bool| {
        let chosen: Vec<_> =
            CONTROLLERS.into_iter().filter(|(name, ..)| (*name == "cronjobs") == cron_jobs && wanted(name)).collect();
        let template = if cron_jobs { "spec.jobTemplate.spec.template" } else { "spec.template" };
        (!chosen.is_empty()).then(|| GeneratedSpec {
            spec: rewritten(spec, rule, &chosen, template),
            kinds: chosen.iter().map(|(_, _, kind)| Str::new_static(kind)).collect(),
        })
    };
    [of(false), of(true)].into_iter().flatten().collect()
}

/// Names of controllers that do not exist.
pub fn unknown_controllers(spec: &ValidatingPolicySpec) -> Vec<UnknownController> {
    let names = || CONTROLLERS.iter().map(|(name, ..)| *name);
    let named = spec.autogen.pod_controllers.controllers.iter().flatten().enumerate();
    let unknown = named.filter(|(_, name)| !names().any(|known| known == name.as_str()));
    unknown
        .map(|(index, name)| UnknownController { index, name: name.clone(), nearest: nearest(name, names()) })
        .collect()
}

/// The only rule of constraints that are about Pods and nothing else.
fn of_pods(constraints: &MatchResources) -> Option<&NamedRule> {
    let [rule] = constraints.resource_rules.as_slice() else { return None };
    let is = |list: &[Str], only: &str| matches!(list, [one] if one == only);
    let plain = constraints.exclude_resource_rules.is_empty()
        && constraints.object_selector.as_ref().is_none_or(|selector| *selector == LabelSelector::default())
        && rule.resource_names.is_empty();
    let pods = is(&rule.api_groups, "") && is(&rule.api_versions, "v1") && is(&rule.resources, "pods");
    (plain && pods).then_some(rule)
}

fn rewritten(
    spec: &ValidatingPolicySpec,
    rule: &NamedRule,
    chosen: &[(&'static str, &'static str, &'static str)],
    template: &str,
) -> ValidatingPolicySpec {
    let mut spec = spec.clone();
    let of_group = |group: &'static str| {
        let resources: Vec<Str> =
            chosen.iter().filter(|(_, of, _)| *of == group).map(|(name, ..)| Str::new_static(name)).collect();
        (!resources.is_empty()).then(|| NamedRule {
            operations: rule.operations.clone(),
            api_groups: vec![Str::new_static(group)],
            api_versions: vec![Str::new_static("v1")],
            resources,
            ..NamedRule::default()
        })
    };
    let namespace_selector = spec.match_constraints.and_then(|constraints| constraints.namespace_selector);
    spec.match_constraints = Some(MatchResources {
        namespace_selector,
        resource_rules: ["apps", "batch"].into_iter().filter_map(of_group).collect(),
        ..MatchResources::default()
    });
    let move_text = |text: &mut Str| {
        if let Some(moved) = moved(text, template) {
            *text = moved.into();
        }
    };
    spec.match_conditions.iter_mut().for_each(|condition| move_text(&mut condition.expression));
    spec.variables.iter_mut().for_each(|variable| move_text(&mut variable.expression));
    for validation in &mut spec.validations {
        move_text(&mut validation.expression);
        [&mut validation.message, &mut validation.message_expression].into_iter().flatten().for_each(move_text);
    }
    spec.audit_annotations.iter_mut().for_each(|annotation| move_text(&mut annotation.value_expression));
    spec
}

/// The text with the paths of a Pod below `template`; `None` if it holds none. `object.metadata.namespace` stays: a
/// controller is in the namespace of its Pods.
fn moved(text: &str, template: &str) -> Option<String> {
    const PARTS: [&str; 4] = ["object.spec", "object.metadata", "oldObject.spec", "oldObject.metadata"];
    let mut moved = String::new();
    let mut rest = text;
    let next = |rest: &str| PARTS.into_iter().filter_map(|part| Some((rest.find(part)?, part))).min();
    while let Some((start, part)) = next(rest) {
        let (before, after) = rest.split_at(start + part.len());
        let (object, field) = part.split_once('.').unwrap_or((part, ""));
        let stays = after
            .strip_prefix(".namespace")
            .is_some_and(|after| !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_'));
        if stays {
            moved.push_str(before);
        } else {
            moved.push_str(before.get(..start).unwrap_or_default());
            moved.extend([object, ".", template, ".", field]);
        }
        rest = after;
    }
    if moved.is_empty() {
        return None;
    }
    moved.push_str(rest);
    Some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_pod_move_below_the_template() {
        for (text, want) in [
            (
                "object.spec.x && object.metadata.labels.a == 'b'",
                "object.spec.template.spec.x && object.spec.template.metadata.labels.a == 'b'",
            ),
            ("oldObject.spec == object.spec", "oldObject.spec.template.spec == object.spec.template.spec"),
            ("object.metadata.namespace == 'a'", "object.metadata.namespace == 'a'"),
            ("object.metadata.namespaces == 'a'", "object.spec.template.metadata.namespaces == 'a'"),
            ("myobject.spec // object.spec", "myobject.spec.template.spec // object.spec.template.spec"),
            (
                "object.?spec && namespaceObject.metadata.name == ''",
                "object.?spec && namespaceObject.metadata.name == ''",
            ),
        ] {
            assert_eq!(moved(text, "spec.template").as_deref().unwrap_or(text), want);
        }
    }
}
