//! What users say: policies, triggers, sources and namespaces, and how each is written down.

use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::Value;

use crate::tests::harness::document;

/// Where the content of what a rule makes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `data`, for a Secret beside the trigger.
    Data,
    /// `data`, for a cluster-wide object.
    Wide,
    /// `data`, for a Secret that every rule of this shape calls the same.
    Shared,
    /// `foreach` with `data`, for each name that the trigger lists.
    Each,
    /// `clone` of one source.
    Clone,
    /// `cloneList` of the sources with a label.
    List,
}

/// A generate rule.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the rule")]
pub(super) struct Rule {
    pub(super) shape: Shape,
    pub(super) synchronize: bool,
    pub(super) orphan: bool,
    pub(super) existing: bool,
    /// Whether triggers must be ready.
    pub(super) when: bool,
    /// Whether the trigger's namespace must be golden.
    pub(super) golden: bool,
    /// Whether it is about the ends of triggers.
    pub(super) on_end: bool,
    pub(super) value: u64,
    pub(super) moved: u64,
}

/// A mutate-existing rule: it writes what triggers say on a board.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Marking {
    pub(super) on_policy_update: bool,
    pub(super) value: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trigger {
    pub(super) on: bool,
    pub(super) ready: bool,
    pub(super) value: u64,
    pub(super) to: u64,
    pub(super) list: Vec<&'static str>,
}

/// Namespace and name of a trigger.
pub(super) type Place = (&'static str, &'static str);

/// Kind, namespace and name of what is made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(pub(super) &'static str, pub(super) String, pub(super) String);

/// A policy and one of its rules.
pub(super) type RuleKey = (&'static str, &'static str);

/// What there is, apart from what is made.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) policies: BTreeMap<&'static str, BTreeMap<&'static str, Rule>>,
    pub(super) marking: Option<Marking>,
    pub(super) triggers: BTreeMap<Place, Trigger>,
    /// Sources by namespace and name: the rule that they are for, and what they say.
    pub(super) sources: BTreeMap<(String, String), (RuleKey, u64)>,
    /// Exceptions by name: a rule, and a trigger that it lets off.
    pub(super) exceptions: BTreeMap<&'static str, (RuleKey, Place)>,
    /// What an exception went for since everything was quiet: rules that act once act by the exceptions they know.
    pub(super) lifted: BTreeSet<(RuleKey, Place)>,
    /// Policies whose objects are applied on the server's side.
    pub(super) server_side: BTreeSet<&'static str>,
    /// Namespaces of triggers, and whether they are golden.
    pub(super) spaces: BTreeMap<&'static str, bool>,
    /// Rules that have acted, or are bound to, for a trigger as it is.
    pub(super) due: BTreeSet<(RuleKey, Place)>,
}

pub(super) const POLICIES: [&str; 3] = ["red", "green", "blue"];
pub(super) const RULES: [&str; 2] = ["first", "second"];
/// The rule that writes on boards.
pub(super) const MARK: RuleKey = ("brown", "mark");
pub(super) const EXCEPTIONS: [&str; 3] = ["early", "late", "never"];
pub(super) const SPACES: [&str; 2] = ["one", "two"];
pub(super) const TRIGGERS: [&str; 2] = ["dog", "cat"];
/// Where the sources of cluster-wide policies are.
pub(super) const SOURCES: &str = "sources";
/// Where the exceptions are: one that is about a Policy counts only in its namespace, which is that of `blue`.
const EXEMPTING: &str = "one";
/// Where the boards are.
pub(super) const BOARDS: &str = "boards";

/// The namespace of a policy; `blue` alone has one.
pub(super) fn namespace_of(policy: &str) -> Option<&'static str> {
    (policy == "blue").then_some("one")
}

pub(super) fn policy_reference(policy: &str) -> String {
    match namespace_of(policy) {
        Some(space) => {
            format!("{{apiVersion: kyverno.io/v1, kind: Policy, metadata: {{name: {policy}, namespace: {space}}}}}")
        }
        None => format!("{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {policy}}}}}"),
    }
}

const SPACE: &str = "{{ request.object.metadata.namespace }}";
const NAME: &str = "{{ request.object.metadata.name }}";

fn rule_document(policy: &str, name: &str, rule: &Rule) -> String {
    let Rule { shape, synchronize, orphan, existing, when, golden, on_end, value, moved } = rule;
    let own = format!("{policy}-{name}-{NAME}-{moved}");
    let sources = namespace_of(policy).unwrap_or(SOURCES);
    let data = format!("data: {{k: 'v{value}-{{{{ request.object.data.v }}}}'}}");
    let space = namespace_of(policy).unwrap_or(SPACE);
    let secret = |name: &str| format!("apiVersion: v1, kind: Secret, namespace: '{space}', name: '{name}'");
    let (to, end) = if *on_end {
        ("end-{{ request.object.data.v }}", "-end-{{ request.object.data.v }}")
    } else {
        ("{{ request.object.data.to }}", "")
    };
    let body = match shape {
        Shape::Data => format!("{}, data: {{{data}}}", secret(&format!("{own}-{to}"))),
        Shape::Shared => format!("{}, data: {{{data}}}", secret(&format!("shared-{NAME}"))),
        Shape::Wide => format!(
            "apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: '{SPACE}-{own}{end}',
             data: {{metadata: {{annotations: {{k: 'v{value}-{{{{ request.object.data.v }}}}'}}}}}}"
        ),
        Shape::Each => format!(
            "foreach: [{{list: \"request.object.data.list | split(@, ',')\", {}, data: {{{data}}}}}]",
            secret(&format!("{own}-{{{{ element }}}}"))
        ),
        Shape::Clone => {
            format!("{}, clone: {{namespace: {sources}, name: source-{policy}-{name}}}", secret(&own))
        }
        Shape::List => format!(
            "namespace: '{SPACE}', cloneList: {{namespace: {sources}, kinds: [v1/Secret],
             selector: {{matchLabels: {{for: {policy}-{name}}}}}}}"
        ),
    };
    let golden = if *golden { ", namespaceSelector: {matchLabels: {tier: gold}}" } else { "" };
    let operations = if *on_end { ", operations: [DELETE]" } else { "" };
    let when = if *when {
        "preconditions: {all: [{key: '{{ request.object.data.ready }}', operator: Equals, value: 'yes'}]},"
    } else {
        ""
    };
    let document = format!(
        "{{name: {name}, match: {{any: [{{resources: {{kinds: [ConfigMap],
          selector: {{matchLabels: {{'on': 'yes'}}}}{golden}{operations}}}}}]}}, {when}
          generate: {{generateExisting: {existing}, synchronize: {synchronize},
            orphanDownstreamOnPolicyDelete: {orphan}, {body}}}}}"
    );
    if *on_end { document.replace("request.object", "request.oldObject") } else { document }
}

pub(super) fn policy_document(policy: &str, rules: &BTreeMap<&'static str, Rule>, server_side: bool) -> Value {
    let rules: Vec<String> = rules.iter().map(|(name, rule)| rule_document(policy, name, rule)).collect();
    let reference = policy_reference(policy);
    let head = reference.strip_suffix('}').unwrap_or_default();
    let server_side = if server_side { "useServerSideApply: true, " } else { "" };
    document(&format!("{head}, spec: {{{server_side}rules: [{}]}}}}", rules.join(", ")))
}

pub(super) fn exception_reference(name: &str) -> String {
    format!("{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: {name}, namespace: {EXEMPTING}}}}}")
}

pub(super) fn exception_document(name: &str, (policy, rule): RuleKey, (space, trigger): Place) -> Value {
    let reference = exception_reference(name);
    let head = reference.strip_suffix('}').unwrap_or_default();
    let own = namespace_of(policy).map_or_else(String::new, |space| format!("{space}/"));
    document(&format!(
        "{head}, spec: {{exceptions: [{{policyName: {own}{policy}, ruleNames: [{rule}]}}],
          match: {{any: [{{resources: {{kinds: [ConfigMap], namespaces: [{space}], names: [{trigger}]}}}}]}}}}}}"
    ))
}

pub(super) fn marking_document(marking: &Marking) -> Value {
    let Marking { on_policy_update, value } = marking;
    document(&format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: brown}}, spec: {{rules: [{{name: mark,
          match: {{any: [{{resources: {{kinds: [ConfigMap], selector: {{matchLabels: {{'on': 'yes'}}}}}}}}]}},
          mutate: {{mutateExistingOnPolicyUpdate: {on_policy_update},
            targets: [{{apiVersion: v1, kind: ConfigMap, namespace: {BOARDS}, name: 'board-{SPACE}'}}],
            patchStrategicMerge: {{data: {{'{NAME}': 'm{value}-{{{{ request.object.data.v }}}}'}}}}}}}}]}}}}"
    ))
}

/// A policy that changes Secrets in flight.
pub(super) fn in_flight_document() -> Value {
    document(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: grey}, spec: {rules: [{name: check,
          match: {any: [{resources: {kinds: [Secret]}}]},
          mutate: {patchStrategicMerge: {metadata: {labels: {checked: 'yes'}}}}}]}}",
    )
}

pub(super) fn trigger_document((space, name): Place, trigger: &Trigger) -> Value {
    let word = |yes| if yes { "yes" } else { "no" };
    document(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {space}, labels: {{'on': '{}'}}}},
          data: {{v: 't{}', ready: '{}', to: 'to{}', list: '{}'}}}}",
        word(trigger.on),
        trigger.value,
        word(trigger.ready),
        trigger.to,
        trigger.list.join(",")
    ))
}

pub(super) fn trigger_reference((space, name): Place) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {space}}}}}")
}

pub(super) fn source_document((namespace, name): &(String, String), (policy, rule): RuleKey, value: u64) -> Value {
    document(&format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: {namespace},
          labels: {{for: {policy}-{rule}}}}}, data: {{k: s{value}}}}}"
    ))
}

pub(super) fn space_document(space: &str, golden: bool) -> Value {
    let tier = if golden { "gold" } else { "none" };
    document(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {space}, labels: {{tier: {tier}}}}}}}"))
}
