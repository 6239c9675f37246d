//! One result of one rule, as an entry of a report.

use ephor_engine::compile::Program;
use ephor_engine::outcome::{Detail, Outcome, Verdict, bounded};
use ephor_engine::policy::{PolicyId, ProgramKind};
use ephor_engine::rules::validate::pod_security::PodSecurityFailure;
use ephor_expr::{Map, Str, Value};
use jiff::Timestamp;

/// The `source` of results of `ClusterPolicy` and `Policy`.
pub const SOURCE: &str = "kyverno";
/// The source of results of validating policies of `policies.kyverno.io`.
const VALIDATING_SOURCE: &str = "KyvernoValidatingPolicy";
/// The source of results of mutating policies of `policies.kyverno.io`.
const MUTATING_SOURCE: &str = "KyvernoMutatingPolicy";
/// The source of results of policies that generate, of `policies.kyverno.io`.
const GENERATING_SOURCE: &str = "KyvernoGeneratingPolicy";
/// The source of results of policies that delete, of `policies.kyverno.io`.
const DELETING_SOURCE: &str = "KyvernoDeletingPolicy";

/// What a report says about the policy of a result.
#[derive(Debug, Clone, Copy)]
pub struct PolicyFacts<'p> {
    /// Which kind of policy made it.
    pub source: &'static str,
    /// `namespace/name`, or the name.
    pub key: &'p Str,
    /// `policies.kyverno.io/category`.
    pub category: Option<&'p Str>,
    /// `policies.kyverno.io/severity`, whatever it is.
    pub severity: Option<&'p Str>,
    /// Whether reports count its failures.
    pub scored: bool,
    /// Whether existing objects are scanned; `None` for kinds of policies without that notion.
    pub background: Option<bool>,
}

impl<'p> PolicyFacts<'p> {
    /// The facts about a compiled policy.
    pub fn of(program: &'p Program) -> Self {
        Self {
            source: source(program.id.kind),
            key: &program.key,
            category: program.scoring.category.as_ref(),
            severity: program.scoring.severity.as_ref(),
            scored: !program.scoring.unscored,
            background: Some(program.background),
        }
    }
}

/// The source of a policy's results, as upstream calls it.
pub fn source(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::ClusterPolicy | ProgramKind::Policy => SOURCE,
        ProgramKind::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
        ProgramKind::MutatingAdmissionPolicy => "MutatingAdmissionPolicy",
        ProgramKind::ValidatingPolicy | ProgramKind::NamespacedValidatingPolicy => VALIDATING_SOURCE,
        ProgramKind::MutatingPolicy | ProgramKind::NamespacedMutatingPolicy => MUTATING_SOURCE,
        ProgramKind::GeneratingPolicy | ProgramKind::NamespacedGeneratingPolicy => GENERATING_SOURCE,
        ProgramKind::DeletingPolicy | ProgramKind::NamespacedDeletingPolicy => DELETING_SOURCE,
    }
}

/// The kind of the policies whose results have this source; `None` for kinds of other engines. Results of `Policy` and
/// `ClusterPolicy` share a source.
fn kind_of_source(source: &str, namespaced: bool) -> Option<ProgramKind> {
    match source {
        SOURCE if namespaced => Some(ProgramKind::Policy),
        SOURCE => Some(ProgramKind::ClusterPolicy),
        "ValidatingAdmissionPolicy" => Some(ProgramKind::ValidatingAdmissionPolicy),
        "MutatingAdmissionPolicy" => Some(ProgramKind::MutatingAdmissionPolicy),
        VALIDATING_SOURCE if namespaced => Some(ProgramKind::NamespacedValidatingPolicy),
        VALIDATING_SOURCE => Some(ProgramKind::ValidatingPolicy),
        MUTATING_SOURCE if namespaced => Some(ProgramKind::NamespacedMutatingPolicy),
        MUTATING_SOURCE => Some(ProgramKind::MutatingPolicy),
        GENERATING_SOURCE if namespaced => Some(ProgramKind::NamespacedGeneratingPolicy),
        GENERATING_SOURCE => Some(ProgramKind::GeneratingPolicy),
        DELETING_SOURCE if namespaced => Some(ProgramKind::NamespacedDeletingPolicy),
        DELETING_SOURCE => Some(ProgramKind::DeletingPolicy),
        _ => None,
    }
}

/// The rule that a rendered result is about, in the order of reports: by policy, then rule. The source belongs to it,
/// because policies of several kinds may have one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultRule {
    /// `namespace/name` of the policy, or its name.
    pub policy: Str,
    /// The rule; empty for policies without rules.
    pub rule: Str,
    /// Which kind of policy made the result.
    pub source: Str,
}

impl ResultRule {
    /// The rule that a result is about. A result without a source is one of `kyverno.io`.
    pub fn of(result: &Value) -> Self {
        let text = |key| result.str_at(&[key]).unwrap_or_default();
        let source = Some(text("source")).filter(|source| !source.is_empty()).unwrap_or(SOURCE);
        Self { policy: text("policy").into(), rule: text("rule").into(), source: source.into() }
    }

    /// The rule of a policy, as results of it name it.
    pub fn new(policy: &PolicyId, rule: Str) -> Self {
        Self { policy: policy.to_string().into(), rule, source: source(policy.kind).into() }
    }

    /// The policy; `None` if another engine has such policies.
    pub fn policy_id(&self) -> Option<PolicyId> {
        let (namespace, name) = match self.policy.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, self.policy.as_str()),
        };
        let kind = kind_of_source(&self.source, namespace.is_some())?;
        Some(PolicyId::new(kind, namespace, name.into()))
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Which kind of policy made it.
    pub source: &'static str,
    /// `namespace/name` of the policy, or its name.
    pub policy: Str,
    /// The rule; `None` for policies without rules.
    pub rule: Option<Str>,
    /// The verdict.
    pub result: Verdict,
    /// The text for the user; may be empty.
    pub message: Str,
    /// The policy's category.
    pub category: Option<Str>,
    /// The policy's severity, if it is one that reports know.
    pub severity: Option<Str>,
    /// Whether the result counts.
    pub scored: bool,
    /// Further properties; all are texts.
    pub properties: Map,
}

/// The severities that reports know.
const SEVERITIES: [&str; 5] = ["critical", "high", "medium", "low", "info"];

impl Entry {
    /// The entry for an outcome of a rule of `program`.
    pub fn of(program: &Program, outcome: &Outcome) -> Self {
        let rule = if program.id.kind.is_of_cel() {
            rule_of_cel(outcome).map(Str::new_static)
        } else {
            Some(outcome.rule.clone())
        };
        Self::new(PolicyFacts::of(program), rule, outcome.verdict, &outcome.message, outcome.detail.as_deref())
    }

    /// The entry for a verdict. A property called `message`, or `passMessage` and so on for one verdict, replaces the
    /// message.
    pub fn new(
        policy: PolicyFacts<'_>,
        rule: Option<Str>,
        result: Verdict,
        message: &Str,
        detail: Option<&Detail>,
    ) -> Self {
        let properties = properties(policy, detail);
        Self {
            source: policy.source,
            policy: policy.key.clone(),
            rule,
            result,
            message: replaced_message(result, &properties).unwrap_or_else(|| message.clone()),
            category: policy.category.filter(|category| !category.is_empty()).cloned().map(bounded),
            severity: policy.severity.filter(|severity| SEVERITIES.contains(&severity.as_str())).cloned(),
            scored: policy.scored,
            properties,
        }
    }

    /// The members of the entry but `timestamp`. Absent ones are left out, `scored` if it is false.
    pub fn members(&self) -> Map {
        let mut map = Map::new();
        map.insert("source", self.source);
        map.insert("policy", self.policy.clone());
        map.insert("result", self.result.as_str());
        for (key, text) in [("rule", &self.rule), ("category", &self.category), ("severity", &self.severity)] {
            if let Some(text) = text {
                map.insert(key, text.clone());
            }
        }
        if self.scored {
            map.insert("scored", true);
        }
        if !self.message.is_empty() {
            map.insert("message", self.message.clone());
        }
        if !self.properties.is_empty() {
            map.insert("properties", self.properties.clone());
        }
        map
    }
}

/// What reports call the rule of a policy of `policies.kyverno.io`, which has none: upstream's words for what decided,
/// where it was not an expression of the policy.
fn rule_of_cel(outcome: &Outcome) -> Option<&'static str> {
    if outcome.detail.as_ref().is_some_and(|detail| !detail.exceptions.is_empty()) {
        return Some("exception");
    }
    let begins = |words: &str| outcome.verdict == Verdict::Error && outcome.message.starts_with(words);
    if begins("failed to execute matching: ") {
        Some("match")
    } else if begins("failed to evaluate policy: ") {
        Some("evaluation")
    } else {
        None
    }
}

/// The `timestamp` member of an entry.
pub fn timestamp(at: Timestamp) -> Value {
    Value::from([("nanos", i64::from(at.subsec_nanosecond()).into()), ("seconds", at.as_second().into())])
}

/// The property that says how a policy is applied.
pub const PROCESS: &str = "process";

/// Its value: it depends on whether the policy judges existing objects, not on what made the result.
pub fn process(background: bool) -> &'static str {
    if background { "background scan" } else { "admission review" }
}

fn properties(policy: PolicyFacts<'_>, detail: Option<&Detail>) -> Map {
    let mut map = Map::new();
    if let Some(background) = policy.background {
        map.insert(PROCESS, process(background));
    }
    let Some(detail) = detail else { return map };
    for (key, value) in detail.properties.iter() {
        let text = value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        map.insert(key.clone(), text);
    }
    if !detail.exceptions.is_empty() {
        // By their names alone, as upstream has it.
        let names = detail.exceptions.iter().map(|key| key.rsplit('/').next().unwrap_or(key));
        map.insert("exceptions", names.collect::<Vec<_>>().join(","));
    }
    if let Some(failure) = &detail.pod_security {
        pod_security(failure, &mut map);
    }
    map
}

fn pod_security(failure: &PodSecurityFailure, map: &mut Map) {
    map.insert("standard", failure.level.clone());
    map.insert("version", failure.version.clone());
    let ids: Vec<&str> = failure.checks.iter().map(|check| check.id).collect();
    map.insert("controls", ids.join(","));
    // Upstream's order of members, which a sorted map does not have.
    let text = |text: &str| Value::from(text).to_json();
    let controls = failure.checks.iter().map(|check| {
        let images: Vec<String> = check.images.iter().map(|image| text(image)).collect();
        format!(r#"{{"ID":{},"Name":{},"Images":[{}]}}"#, text(check.id), text(check.control), images.join(","))
    });
    map.insert("controlsJSON", format!("[{}]", controls.collect::<Vec<_>>().join(",")));
}

fn replaced_message(result: Verdict, properties: &Map) -> Option<Str> {
    let own = format!("{}Message", result.as_str());
    let text = properties.get(&own).or_else(|| properties.get("message"))?;
    text.as_str().filter(|text| !text.is_empty()).map(Str::new)
}
