//! The way of a policy and a review through the engine, as the tests take it.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use ephor_engine::compile::{AdmissionBinding, Compiled, compile, compile_admission_policy};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::evaluation::{Evaluation, Step};
use ephor_engine::exceptions::{Exception, ExceptionSet};
use ephor_engine::fetch::{Fact, Facts, Fetch};
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::policy::Operation;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::{Map, Value, yaml};
use std::sync::Arc;

/// All phases, in the order of an admission request; what deletes comes last.
pub(crate) const PHASES: [Phase; 5] =
    [Phase::Mutate, Phase::Validate, Phase::Generate, Phase::MutateExisting, Phase::Delete];

/// What policies are tried with.
pub(crate) struct Trial {
    pub(crate) set: PolicySet,
    pub(crate) exceptions: ExceptionSet,
    pub(crate) review: Review,
    /// What is known when it is asked for.
    pub(crate) answers: Vec<(Fetch, Fact)>,
}

/// What came of it.
pub(crate) struct Ran {
    pub(crate) outcomes: Vec<Outcome>,
    /// The object after mutation.
    pub(crate) object: Value,
    /// What was asked, in order.
    pub(crate) asked: Vec<Fetch>,
}

impl Ran {
    /// Outcomes as `rule verdict message`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.outcomes.iter().map(|o| format!("{} {} {}", o.rule, o.verdict.as_str(), o.message).trim().into()).collect()
    }
}

impl Trial {
    /// A trial of policy documents, which must compile, on a review.
    pub(crate) fn new(policies: &[Value], review: Review) -> Self {
        Self { set: set(policies), exceptions: ExceptionSet::default(), review, answers: Vec::new() }
    }

    /// The same with exceptions.
    pub(crate) fn except(mut self, exceptions: &[Value]) -> Self {
        let compiled = exceptions.iter().map(|e| Exception::compile(e).unwrap_or_else(|f| panic!("{f:?}")));
        self.exceptions = ExceptionSet::new(compiled.collect());
        self
    }

    /// Runs all phases. Facts that are asked for and not given stop it.
    pub(crate) fn run(self) -> Ran {
        let mut facts = Facts::new();
        let mut ran = Ran { outcomes: Vec::new(), object: self.review.object.clone(), asked: Vec::new() };
        for phase in PHASES {
            let review = match phase {
                Phase::Delete => self.review.stored(),
                _ => Review { object: ran.object.clone(), ..self.review.clone() },
            };
            let mut evaluation = Evaluation::new(&self.set, &self.exceptions, review, phase);
            while let Step::Need(needs) = evaluation.step(&facts) {
                for need in needs {
                    let fetch = need.into_fetch();
                    let known = self.answers.iter().find(|(question, _)| *question == fetch);
                    let (_, fact) = known.unwrap_or_else(|| panic!("asked for {fetch:?}"));
                    facts.insert(fetch.clone(), fact.clone());
                    ran.asked.push(fetch);
                }
            }
            let done = evaluation.finish();
            ran.outcomes.extend(done.outcomes);
            if phase != Phase::Delete {
                ran.object = done.object;
            }
        }
        ran
    }
}

/// A set of policies that must compile.
pub(crate) fn set(policies: &[Value]) -> PolicySet {
    let kind = |document: &Value| document.str_at(&["kind"]).unwrap_or_default().to_owned();
    let (bindings, policies): (Vec<&Value>, Vec<&Value>) =
        policies.iter().partition(|policy| kind(policy).ends_with("AdmissionPolicyBinding"));
    let binding = |document: &&Value| {
        let (binding, findings) = AdmissionBinding::of_document(document);
        binding.unwrap_or_else(|| panic!("refused: {:#?}", texts(&findings)))
    };
    let bindings: Vec<AdmissionBinding> = bindings.iter().map(binding).collect();
    let compiled = policies.into_iter().map(|document| {
        let admission = kind(document).ends_with("AdmissionPolicy");
        let Compiled { program, findings, .. } =
            if admission { compile_admission_policy(document, &bindings) } else { compile(document) };
        Arc::new(program.unwrap_or_else(|| panic!("refused: {:#?}", texts(&findings))))
    });
    PolicySet::new(compiled.collect())
}

/// Findings as `code path: message`.
pub(crate) fn texts(findings: &[Diagnostic]) -> Vec<String> {
    findings.iter().map(|f| format!("{} {}: {}", f.code, f.path.slashed(), f.message)).collect()
}

/// YAML, as a value.
pub(crate) fn value(text: &str) -> Value {
    yaml::parse_value(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The time at which all tests take place.
pub(crate) fn now() -> jiff::Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// `given` with what is missing to make it a policy: `ClusterPolicy` `p`, not in the background, rules named `r` that
/// match Pods.
pub(crate) fn policy(given: &Value) -> Value {
    let mut document = given.as_object().cloned().unwrap_or_default();
    fill(&mut document, "apiVersion", "kyverno.io/v1");
    fill(&mut document, "kind", "ClusterPolicy");
    let metadata = member(&mut document, "metadata");
    fill(metadata, "name", "p");
    if document.get("apiVersion").and_then(Value::as_str).is_some_and(|version| !version.starts_with("kyverno.io/")) {
        return Value::object(document);
    }
    let spec = member(&mut document, "spec");
    fill(spec, "background", false);
    if let Some(rules) = spec.get_mut("rules").and_then(Value::as_array_mut) {
        for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
            fill(rule, "name", "r");
            fill(rule, "match", value("any: [{resources: {kinds: [Pod]}}]"));
        }
    }
    Value::object(document)
}

/// The policy with this one rule.
pub(crate) fn policy_of_rule(rule: &Value) -> Value {
    policy(&Value::from([("spec", Value::from([("rules", Value::array(vec![rule.clone()]))]))]))
}

/// `given` with what is missing to make it an object: a Pod `p`.
pub(crate) fn object(given: &Value) -> Value {
    if given.is_null() {
        return Value::Null;
    }
    let mut document = given.as_object().cloned().unwrap_or_default();
    fill(&mut document, "apiVersion", "v1");
    fill(&mut document, "kind", "Pod");
    fill(member(&mut document, "metadata"), "name", "p");
    Value::object(document)
}

/// A review of creating `given`, completed as an object.
pub(crate) fn review(given: &Value) -> Review {
    Review::of_object(object(given), now())
}

/// A review of deleting `given`.
pub(crate) fn deletion(given: &Value) -> Review {
    let mut review = review(given);
    review.old_object = std::mem::take(&mut review.object);
    review.operation = Operation::Delete;
    review
}

/// What the rule says about the object.
pub(crate) fn run_rule(rule: &str, given: &str) -> Vec<String> {
    Trial::new(&[policy_of_rule(&value(rule))], review(&value(given))).run().lines()
}

fn fill(map: &mut Map, key: &str, default: impl Into<Value>) {
    if !map.contains_key(key) {
        map.insert(key, default);
    }
}

fn member<'m>(map: &'m mut Map, key: &str) -> &'m mut Map {
    let member = map.entry(key);
    if member.as_object().is_none() {
        *member = Value::object(Map::new());
    }
    member.as_object_mut().unwrap()
}
