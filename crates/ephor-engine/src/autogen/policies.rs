//! Auto-gen for `ValidatingPolicy` and `MutatingPolicy`: what a policy on Pods says of everything with a Pod template.
//!
//! In goes the spec of a policy, out come specs for controllers. Expressions are rewritten as texts, as upstream does:
//! `object.spec` becomes the path of the template, in messages and comments too.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;

use crate::policy::{
    LabelSelector, MatchResources, MutatingPolicySpec, Mutation, NamedRule, PodControllers, ValidatingPolicySpec,
};

/// The controllers, in the order in which statuses list them.
const CONTROLLERS: [Controller; 6] = [
    Controller { resource: "cronjobs", group: "batch", kind: "CronJob" },
    Controller { resource: "daemonsets", group: "apps", kind: "DaemonSet" },
    Controller { resource: "deployments", group: "apps", kind: "Deployment" },
    Controller { resource: "replicasets", group: "apps", kind: "ReplicaSet" },
    Controller { resource: "statefulsets", group: "apps", kind: "StatefulSet" },
    Controller { resource: "jobs", group: "batch", kind: "Job" },
];

/// A spec for some controllers.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedSpec<S> {
    /// The spec, with constraints of its own.
    pub spec: S,
    /// What statuses and conditions of webhooks call it.
    pub config: &'static str,
    /// The controllers that it is for.
    pub controllers: Vec<Controller>,
}

/// A controller of Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controller {
    /// Its resource.
    pub resource: &'static str,
    /// Its group; its version is `v1`.
    pub group: &'static str,
    /// Its kind.
    pub kind: &'static str,
}

impl<S> GeneratedSpec<S> {
    /// The kinds that it is for.
    pub fn kinds(&self) -> Vec<Str> {
        self.controllers.iter().map(|controller| Str::new_static(controller.kind)).collect()
    }
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
            if let Some(moved) = moved(text, target.template, Root::Paths) {
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
        GeneratedSpec { spec, config: target.config, controllers: target.controllers }
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
            if let Some(moved) = moved(text, target.template, Root::Paths) {
                *text = moved.into();
            }
        }
        for mutation in &mut spec.mutations {
            if let Mutation::ApplyConfiguration { apply_configuration } = mutation {
                let text = &apply_configuration.expression;
                let read = moved(text, target.template, Root::Paths).unwrap_or_else(|| text.to_string());
                let typed = moved(&read, target.template, Root::Types).unwrap_or(read);
                apply_configuration.expression = wrapped(&typed, target.template).into();
            }
        }
        GeneratedSpec { spec, config: target.config, controllers: target.controllers }
    });
    rewritten.collect()
}

/// Names of controllers that do not exist.
pub fn unknown_controllers(controllers: &PodControllers) -> Vec<UnknownController> {
    let names = || CONTROLLERS.iter().map(|controller| controller.resource);
    let named = controllers.controllers.iter().flatten().enumerate();
    let unknown = named.filter(|(_, name)| !names().any(|known| known == name.as_str()));
    unknown
        .map(|(index, name)| UnknownController { index, name: name.clone(), nearest: nearest(name, names()) })
        .collect()
}

/// Controllers whose Pod template stands at one place.
struct Target {
    constraints: MatchResources,
    config: &'static str,
    controllers: Vec<Controller>,
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
        let is_meant =
            |controller: &Controller| (controller.resource == "cronjobs") == cron_jobs && wanted(controller.resource);
        let chosen: Vec<Controller> = CONTROLLERS.into_iter().filter(is_meant).collect();
        let of_group = |group: &'static str| {
            let of_group = chosen.iter().filter(|controller| controller.group == group);
            let resources: Vec<Str> = of_group.map(|controller| Str::new_static(controller.resource)).collect();
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
            config: if cron_jobs { "cronjobs" } else { "defaults" },
            controllers: chosen.clone(),
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

/// What stands before the fields of a Pod in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    /// `object` and `oldObject`, also as the end of another name: upstream replaces texts.
    Paths,
    /// `Object`, the type of what an expression makes.
    Types,
}

impl Root {
    /// Whether a text that ends in `bject` ends in this.
    fn ends(self, before: &str) -> bool {
        match self {
            Root::Paths => before.ends_with("object") || before.ends_with("oldObject"),
            Root::Types => before.strip_suffix("Object").is_some_and(|before| {
                let last = before.chars().next_back();
                last.is_none_or(|last| !last.is_ascii_alphanumeric() && !matches!(last, '_' | '.'))
            }),
        }
    }
}

/// The text with `spec` and `metadata` of these roots below `template`; `None` if it holds none.
/// `object.metadata.namespace` stays: a controller is in the namespace of its Pods.
fn moved(text: &str, template: &str, root: Root) -> Option<String> {
    const END: &str = "bject.";
    let mut moved = String::new();
    // How much of the text is in `moved`.
    let mut taken = 0;
    for (start, _) in text.match_indices(END) {
        let place = start + END.len();
        let (before, after) = text.split_at(place);
        let Some(field) = ["spec", "metadata"].into_iter().find(|field| after.starts_with(field)) else { continue };
        let goes_on = |next: char| next.is_ascii_alphanumeric() || next == '_';
        let rest = after.get(field.len()..).and_then(|after| after.strip_prefix(".namespace"));
        let stays = rest.is_some_and(|rest| !rest.starts_with(goes_on));
        if stays || !root.ends(before.strip_suffix('.').unwrap_or(before)) {
            continue;
        }
        moved.push_str(text.get(taken..place).unwrap_or_default());
        moved.extend([template, "."]);
        taken = place;
    }
    if taken == 0 {
        return None;
    }
    moved.push_str(text.get(taken..).unwrap_or_default());
    Some(moved)
}

/// The text in which each `Object{ … }` is what the Pod template says: `Object{spec: Object.spec{template: …}}`. Texts
/// in quotes stay.
fn wrapped(text: &str, template: &str) -> String {
    const ROOT: &str = "Object{";
    let mut out = String::new();
    let mut rest = text;
    loop {
        let root = rest.find(ROOT).unwrap_or(rest.len());
        let quote = rest.find(['"', '\'']).unwrap_or(rest.len());
        if root == rest.len() && quote == rest.len() {
            out.push_str(rest);
            return out;
        }
        if quote < root {
            let open = rest.get(quote..).and_then(|text| text.chars().next()).unwrap_or('"');
            let (quoted, after) =
                rest.split_at(quote + 1 + end_of_quote(rest.get(quote + 1..).unwrap_or_default(), open));
            out.push_str(quoted);
            rest = after;
            continue;
        }
        let last = rest.get(..root).unwrap_or_default().chars().next_back().or_else(|| out.chars().next_back());
        let (before, after) = rest.split_at(root + ROOT.len());
        out.push_str(before);
        rest = after;
        if last.is_some_and(|last| last.is_ascii_alphanumeric() || matches!(last, '_' | '.')) {
            continue;
        }
        let (inner, after) = rest.split_at(closing(rest));
        if !inner.trim().is_empty() {
            let mut name = String::from("Object");
            for part in template.split('.') {
                name = format!("{name}.{part}");
                out.extend([part, ": ", name.as_str(), "{"]);
            }
            out.push_str(inner);
            out.extend(template.split('.').map(|_| '}'));
        }
        rest = after;
    }
}

/// Where the brace that was opened before `text` closes, else its end; texts in quotes do not count.
fn closing(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match next {
            '"' | '\'' => at += end_of_quote(text.get(at + 1..).unwrap_or_default(), next),
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
        at += next.len_utf8();
    }
    text.len()
}

/// How long the text is up to its closing quote, which counts, or up to its end.
fn end_of_quote(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    text.len()
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
            ("oldObject.metadata.namespace + object.meta", "oldObject.metadata.namespace + object.meta"),
            ("object.metadata.namespaces == 'a'", "object.spec.template.metadata.namespaces == 'a'"),
            ("myobject.spec // object.spec", "myobject.spec.template.spec // object.spec.template.spec"),
            (
                "object.?spec && namespaceObject.metadata.name == ''",
                "object.?spec && namespaceObject.metadata.name == ''",
            ),
        ] {
            assert_eq!(moved(text, "spec.template", Root::Paths).as_deref().unwrap_or(text), want);
        }
    }

    #[test]
    fn types_move_and_names_that_end_alike_stay() {
        let text =
            "oldObject.spec.x == namespaceObject.metadata.y ? Object.spec{a: Object.spec.b{}} : Object.metadata{}";
        assert_eq!(
            moved(text, "spec.template", Root::Types).unwrap(),
            "oldObject.spec.x == namespaceObject.metadata.y ? Object.spec.template.spec{a: Object.spec.template.spec.b{}} : \
             Object.spec.template.metadata{}"
        );
    }

    #[test]
    fn a_configuration_of_a_pod_becomes_one_of_the_template() {
        let text =
            "object.spec.x ? Object{metadata: Object.metadata{labels: Object.metadata.labels{a: '}'}}} : Object{}";
        let typed = moved(text, "spec.template", Root::Types).unwrap();
        assert_eq!(
            wrapped(&typed, "spec.template"),
            "object.spec.x ? Object{spec: Object.spec{template: Object.spec.template{metadata: \
             Object.spec.template.metadata{labels: Object.spec.template.metadata.labels{a: '}'}}}}} : Object{}"
        );
        for quoted in ["'Object{' + x", "\"a\\\"Object{b}\"", "MyObject{a}", "Object.spec{a}", "'Object{", "Object{"] {
            assert_eq!(wrapped(quoted, "spec.template"), quoted);
        }
    }
}
