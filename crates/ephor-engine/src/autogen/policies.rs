//! Auto-gen for `ValidatingPolicy` and `MutatingPolicy`: what a policy on Pods says of everything with a Pod template.
//!
//! In goes the spec of a policy, out come specs for controllers. Expressions are rewritten as texts, as upstream does:
//! `object.spec` becomes the path of the template, in messages and comments too.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;

use crate::policy::{
    LabelSelector, MatchResources, MutatingPolicySpec, Mutation, NamedRule, PodControllers, ValidatingPolicySpec,
};

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
pub struct GeneratedSpec<S> {
    /// The spec, with constraints of its own.
    pub spec: S,
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

/// What a `ValidatingPolicy` says of controllers; nothing if it is about anything but Pods alone.
pub fn expand_spec(spec: &ValidatingPolicySpec) -> Vec<GeneratedSpec<ValidatingPolicySpec>> {
    let targets = targets(spec.match_constraints.as_ref(), &spec.autogen.pod_controllers);
    let rewritten = targets.into_iter().map(|target| {
        let mut spec = ValidatingPolicySpec { match_constraints: Some(target.constraints), ..spec.clone() };
        let move_text = |text: &mut Str| {
            if let Some(moved) = moved(text, target.template, &PATHS) {
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
        GeneratedSpec { spec, kinds: target.kinds }
    });
    rewritten.collect()
}

/// What a `MutatingPolicy` does to controllers; nothing if it is about anything but Pods alone, or has JSON patches,
/// whose paths are those of a Pod.
pub fn expand_mutation(spec: &MutatingPolicySpec) -> Vec<GeneratedSpec<MutatingPolicySpec>> {
    if spec.mutations.iter().any(|mutation| matches!(mutation, Mutation::JSONPatch { .. })) {
        return Vec::new();
    }
    let targets = targets(spec.match_constraints.as_ref(), &spec.autogen.pod_controllers);
    let rewritten = targets.into_iter().map(|target| {
        let mut spec = MutatingPolicySpec { match_constraints: Some(target.constraints), ..spec.clone() };
        let texts = spec.match_conditions.iter_mut().map(|condition| &mut condition.expression);
        for text in texts.chain(spec.variables.iter_mut().map(|variable| &mut variable.expression)) {
            if let Some(moved) = moved(text, target.template, &PATHS) {
                *text = moved.into();
            }
        }
        for mutation in &mut spec.mutations {
            if let Mutation::ApplyConfiguration { apply_configuration } = mutation {
                let text = &apply_configuration.expression;
                let read = moved(text, target.template, &PATHS).unwrap_or_else(|| text.to_string());
                let typed = moved(&read, target.template, &TYPES).unwrap_or(read);
                apply_configuration.expression = wrapped(&typed, target.template).into();
            }
        }
        GeneratedSpec { spec, kinds: target.kinds }
    });
    rewritten.collect()
}

/// Names of controllers that do not exist.
pub fn unknown_controllers(controllers: &PodControllers) -> Vec<UnknownController> {
    let names = || CONTROLLERS.iter().map(|(name, ..)| *name);
    let named = controllers.controllers.iter().flatten().enumerate();
    let unknown = named.filter(|(_, name)| !names().any(|known| known == name.as_str()));
    unknown
        .map(|(index, name)| UnknownController { index, name: name.clone(), nearest: nearest(name, names()) })
        .collect()
}

/// Controllers whose Pod template stands at one place.
struct Target {
    constraints: MatchResources,
    kinds: Vec<Str>,
    template: &'static str,
}

fn targets(constraints: Option<&MatchResources>, controllers: &PodControllers) -> Vec<Target> {
    let Some((constraints, rule)) = constraints.and_then(|constraints| Some((constraints, of_pods(constraints)?)))
    else {
        return Vec::new();
    };
    let wanted = |name: &str| match &controllers.controllers {
        None => true,
        Some(named) => named.iter().any(|named| named == name),
    };
    let of = |cron_jobs: bool| {
        let chosen: Vec<_> =
            CONTROLLERS.into_iter().filter(|(name, ..)| (*name == "cronjobs") == cron_jobs && wanted(name)).collect();
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
        (!chosen.is_empty()).then(|| Target {
            constraints: MatchResources {
                namespace_selector: constraints.namespace_selector.clone(),
                resource_rules: ["apps", "batch"].into_iter().filter_map(of_group).collect(),
                ..MatchResources::default()
            },
            kinds: chosen.iter().map(|(_, _, kind)| Str::new_static(kind)).collect(),
            template: if cron_jobs { "spec.jobTemplate.spec.template" } else { "spec.template" },
        })
    };
    [of(false), of(true)].into_iter().flatten().collect()
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

/// Paths of a Pod that expressions read.
const PATHS: [&str; 4] = ["object.spec", "object.metadata", "oldObject.spec", "oldObject.metadata"];
/// Types of parts of a Pod that expressions make.
const TYPES: [&str; 2] = ["Object.spec", "Object.metadata"];

/// The text with these paths below `template`; `None` if it holds none. `object.metadata.namespace` stays: a controller
/// is in the namespace of its Pods.
fn moved(text: &str, template: &str, paths: &[&'static str]) -> Option<String> {
    let mut moved = String::new();
    let mut rest = text;
    let next = |rest: &str| paths.iter().filter_map(|path| Some((rest.find(path)?, *path))).min();
    while let Some((start, path)) = next(rest) {
        let (before, after) = rest.split_at(start + path.len());
        let (object, field) = path.split_once('.').unwrap_or((path, ""));
        let ends = |after: &str| !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        if after.strip_prefix(".namespace").is_some_and(ends) {
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

/// The text in which each `Object{ … }` is what the Pod template says: `Object{spec: Object.spec{template: …}}`.
fn wrapped(text: &str, template: &str) -> String {
    const ROOT: &str = "Object{";
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(ROOT) {
        let part_of_name = rest.get(..start).and_then(|before| before.chars().next_back());
        let (before, after) = rest.split_at(start + ROOT.len());
        out.push_str(before);
        rest = after;
        if part_of_name.is_some_and(|last| last.is_ascii_alphanumeric() || matches!(last, '_' | '.')) {
            continue;
        }
        let Some(end) = closing(rest) else { continue };
        let (inner, tail) = rest.split_at(end);
        if inner.trim().is_empty() {
            continue;
        }
        let mut name = String::from("Object");
        for part in template.split('.') {
            name = format!("{name}.{part}");
            out.extend([part, ": ", name.as_str(), "{"]);
        }
        out.push_str(&wrapped(inner, template));
        out.extend(template.split('.').map(|_| '}'));
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Where the brace that was opened before `text` closes; texts in quotes do not count.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    None
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
            assert_eq!(moved(text, "spec.template", &PATHS).as_deref().unwrap_or(text), want);
        }
    }

    #[test]
    fn a_configuration_of_a_pod_becomes_one_of_the_template() {
        let text =
            "object.spec.x ? Object{metadata: Object.metadata{labels: Object.metadata.labels{a: '}'}}} : Object{}";
        let typed = moved(text, "spec.template", &TYPES).unwrap();
        assert_eq!(
            wrapped(&typed, "spec.template"),
            "object.spec.x ? Object{spec: Object.spec{template: Object.spec.template{metadata: \
             Object.spec.template.metadata{labels: Object.spec.template.metadata.labels{a: '}'}}}}} : Object{}"
        );
    }
}
