//! A `ValidatingPolicy` as a `ValidatingAdmissionPolicy` and its binding, a `MutatingPolicy` as a
//! `MutatingAdmissionPolicy` and its binding.
//!
//! In go the stored policy, the exceptions from it and what the configuration exempts. Out come two objects, or the
//! reason why they could not say the same as the policy: a function that the API server does not have, forms for
//! controllers of Pods, or an exception that ends or hands out lists under a condition.

use std::collections::BTreeSet;

use ephor_cluster::Discovery;
use ephor_engine::compile::compile_admission_policy;
use ephor_engine::exceptions::{ExceptionSet, PolicyExceptionSpec};
use ephor_engine::matching::Gvk;
use ephor_engine::policy::{
    EvaluationMode, FailurePolicy, MutatingPolicy, ProgramKind, ReinvocationPolicy, ValidatingPolicy, ValidationAction,
};
use ephor_expr::value::decode_rest;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::policies::StoredPolicy;

use super::translate::{API_VERSION, Exempt, MANAGED_BY, Objects, Skip, Surroundings, can_stand_together};
use crate::webhooks::kinds::{Scope, resources};

/// The words for the lists of exceptions in expressions: of the policy, and of the objects.
const LISTS: [(&str, &str, &str); 2] = [
    ("exceptions.allowedImages", "variables.allowedImages", "allowedImages"),
    ("exceptions.allowedValues", "variables.allowedValues", "allowedValues"),
];

/// A policy that asks for objects.
pub(super) enum Asking {
    Validating(ValidatingPolicy),
    Mutating(MutatingPolicy),
}

/// The policy, if it is one that asks for objects.
pub(super) fn asking(stored: &StoredPolicy) -> Option<Asking> {
    let asking = match stored.key.kind {
        ProgramKind::ValidatingPolicy => Asking::Validating(decode_rest(&stored.document).0?),
        ProgramKind::MutatingPolicy => Asking::Mutating(decode_rest(&stored.document).0?),
        _ => return None,
    };
    let enabled = match &asking {
        Asking::Validating(policy) => policy.spec.autogen.validating_admission_policy.enabled,
        Asking::Mutating(policy) => policy.spec.autogen.mutating_admission_policy.enabled,
    };
    (enabled == Some(true)).then_some(asking)
}

impl Asking {
    /// The kind of the object that says what the policy says.
    pub(super) fn made(&self) -> &'static str {
        match self {
            Asking::Validating(_) => "ValidatingAdmissionPolicy",
            Asking::Mutating(_) => "MutatingAdmissionPolicy",
        }
    }

    /// Why no object could say the same.
    fn refusal(&self) -> Option<Skip> {
        let (mode, targets, existing, by_server) = match self {
            Asking::Validating(policy) => (policy.spec.evaluation.mode, false, None, None),
            Asking::Mutating(policy) => (
                policy.spec.evaluation.mode,
                policy.spec.target_match_constraints.is_some(),
                policy.spec.evaluation.mutate_existing.enabled,
                policy.spec.evaluation.use_server_side_apply,
            ),
        };
        let why = if mode.unwrap_or_default() != EvaluationMode::Kubernetes {
            "only policies on objects of Kubernetes are applicable."
        } else if targets || existing == Some(true) {
            "policies on existing objects are not applicable."
        } else if by_server == Some(true) {
            "server-side apply is enabled."
        } else {
            return None;
        };
        Some(Skip(why))
    }

    fn failure_policy(&self) -> FailurePolicy {
        match self {
            Asking::Validating(policy) => policy.spec.failure_policy,
            Asking::Mutating(policy) => policy.spec.failure_policy,
        }
        .unwrap_or_default()
    }
}

/// Makes the objects for a stored policy.
///
/// # Errors
///
/// If they would not say what the policy says.
pub(super) fn translate(
    policy: &Asking,
    stored: &StoredPolicy,
    exceptions: &ExceptionSet,
    around: &Surroundings<'_>,
) -> Result<Objects, Skip> {
    if let Some(refusal) = policy.refusal() {
        return Err(refusal);
    }
    if !stored.description.configs.is_empty() {
        return Err(Skip("pod controllers autogen is enabled."));
    }
    let version = match policy {
        Asking::Validating(_) => API_VERSION,
        Asking::Mutating(_) => mutating_version(around.discovery).ok_or(Skip("the API server does not serve them."))?,
    };
    let spec = stored.document.get("spec").cloned().unwrap_or_default();
    let excepted = Excepted::of(exceptions, stored)?;
    let exempt = Exempt::of(&kinds(stored, around.discovery), around)?;

    let mut conditions = exempt.conditions;
    conditions.extend(excepted.conditions);
    conditions.extend(listed(&spec, "matchConditions"));
    can_stand_together(&conditions)?;
    let mut variables = listed(&spec, "variables");
    let text = spec.to_json();
    for ((from, _, name), texts) in LISTS.iter().zip([&excepted.images, &excepted.values]) {
        if text.contains(from) || !texts.is_empty() {
            let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            variables.push(Value::from([
                ("expression", Value::from(format!("[{}]", quoted.join(", ")))),
                ("name", (*name).into()),
            ]));
        }
    }
    let failure = if around.ignore_failures { FailurePolicy::Ignore } else { policy.failure_policy() };
    let mut wanted = Map::new();
    wanted.insert("failurePolicy", if failure == FailurePolicy::Fail { "Fail" } else { "Ignore" });
    wanted.insert("matchConstraints", spec.get("matchConstraints").cloned().unwrap_or_default());
    let own: &[&str] = match policy {
        Asking::Validating(_) => &["validations", "auditAnnotations"],
        Asking::Mutating(_) => &["mutations"],
    };
    let lists = [("matchConditions", conditions), ("variables", variables)];
    for (key, list) in lists.into_iter().chain(own.iter().map(|key| (*key, listed(&spec, key)))) {
        if !list.is_empty() {
            wanted.insert(key, renamed(Value::array(list)));
        }
    }
    let mut bound = Map::new();
    bound.insert("matchResources", exempt.bound);
    match policy {
        Asking::Validating(policy) => {
            bound.insert("validationActions", actions(&policy.spec.validation_actions));
        }
        Asking::Mutating(policy) => {
            let again = policy.spec.reinvocation_policy == Some(ReinvocationPolicy::IfNeeded);
            wanted.insert("reinvocationPolicy", if again { "IfNeeded" } else { "Never" });
        }
    }
    let objects = objects((version, policy.made()), stored, wanted, bound);
    // What the API server would refuse is seen here: it has none of Kyverno's functions and variables.
    if compile_admission_policy(&objects.policy, &[])
        .findings
        .iter()
        .any(ephor_engine::diagnostic::Diagnostic::is_error)
    {
        return Err(Skip("it uses what the API server does not have."));
    }
    Ok(objects)
}

/// The newest version in which an API server has mutating admission policies.
pub(super) fn mutating_version(discovery: &Discovery) -> Option<&'static str> {
    MUTATING_VERSIONS.into_iter().find(|version| discovery.find(version, "MutatingAdmissionPolicy").is_some())
}

const MUTATING_VERSIONS: [&str; 3] = [
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1beta1",
    "admissionregistration.k8s.io/v1alpha1",
];

fn objects((version, kind): (&str, &str), stored: &StoredPolicy, spec: Map, mut bound: Map) -> Objects {
    let own = if stored.key.kind == ProgramKind::MutatingPolicy { "mpol" } else { "vpol" };
    let name = format!("{own}-{}", stored.key.name);
    let owner = Value::from([
        ("apiVersion", Value::from("policies.kyverno.io/v1beta1")),
        ("kind", stored.key.kind.as_str().into()),
        ("name", stored.key.name.clone().into()),
        ("uid", stored.uid().into()),
    ]);
    let object = |kind: &str, name: &str, spec: Map| {
        let metadata = Value::from([
            ("labels", Value::from([(MANAGED_BY.0, Value::from(MANAGED_BY.1))])),
            ("name", name.into()),
            ("ownerReferences", Value::array(vec![owner.clone()])),
        ]);
        Value::from([
            ("apiVersion", Value::from(version)),
            ("kind", kind.into()),
            ("metadata", metadata),
            ("spec", Value::object(spec)),
        ])
    };
    bound.insert("policyName", name.as_str());
    Objects {
        binding: object(&format!("{kind}Binding"), &format!("{name}-binding"), bound),
        policy: object(kind, &name, spec),
    }
}

/// The actions of the binding. A refusal carries its message, so an API server takes no `Warn` beside `Deny`.
fn actions(actions: &[ValidationAction]) -> Vec<&'static str> {
    let denies = actions.is_empty() || actions.contains(&ValidationAction::Deny);
    let mut words = if denies { vec!["Deny"] } else { Vec::new() };
    if actions.contains(&ValidationAction::Audit) {
        words.push("Audit");
    }
    if actions.contains(&ValidationAction::Warn) && !denies {
        words.push("Warn");
    }
    words
}

fn listed(spec: &Value, key: &str) -> Vec<Value> {
    spec.get(key).and_then(Value::as_array).unwrap_or_default().to_vec()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The value with the words that the objects have for the lists of exceptions.
fn renamed(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let renamed = LISTS.iter().fold(text.to_string(), |text, (from, to, _)| text.replace(from, to));
            Value::from(renamed)
        }
        Value::Array(_) => Value::array(value.as_array().unwrap_or_default().iter().cloned().map(renamed).collect()),
        Value::Object(_) => {
            let members = value.as_object().into_iter().flat_map(Map::iter);
            Value::object(members.map(|(key, value)| (key.clone(), renamed(value.clone()))).collect())
        }
        other => other,
    }
}

/// What exceptions let off, as the objects say it.
#[derive(Default)]
struct Excepted {
    conditions: Vec<Value>,
    images: Vec<Str>,
    values: Vec<Str>,
}

impl Excepted {
    fn of(exceptions: &ExceptionSet, stored: &StoredPolicy) -> Result<Self, Skip> {
        let mut excepted = Self::default();
        let mut names = BTreeSet::new();
        for exception in exceptions.of_cel(&stored.key) {
            let PolicyExceptionSpec { match_conditions, images, allowed_values, expires_at, .. } = exception;
            if expires_at.is_some() {
                return Err(Skip("exceptions that end are not applicable."));
            }
            let lists = !images.is_empty() || !allowed_values.is_empty();
            if lists && !match_conditions.is_empty() {
                return Err(Skip("lists of exceptions with conditions are not applicable."));
            }
            excepted.images.extend(images.iter().cloned());
            excepted.values.extend(allowed_values.iter().cloned());
            if lists {
                continue;
            }
            // An exception holds where all of its conditions do; without any it holds everywhere.
            let all: Vec<String> = match match_conditions.as_slice() {
                [] => vec!["true".to_owned()],
                [one] => vec![one.expression.to_string()],
                several => several.iter().map(|condition| format!("({})", condition.expression)).collect(),
            };
            let first = match_conditions.first().map_or("exception", |condition| condition.name.as_str());
            let mut name = first.to_owned();
            while !names.insert(name.clone()) {
                name.push_str("-2");
            }
            let expression = format!("!({})", all.join(" && "));
            excepted.conditions.push(Value::from([("expression", Value::from(expression)), ("name", name.into())]));
        }
        Ok(excepted)
    }
}

/// The kinds that a policy matches, each with a rule about it alone.
fn kinds(stored: &StoredPolicy, discovery: &Discovery) -> Vec<(Gvk, Str, Value)> {
    let rules = stored.program.iter().flat_map(|program| &program.rules);
    let demands = rules.flat_map(|rule| &rule.demands.requests);
    let targets = demands.flat_map(|demand| resources(&demand.requested, Scope::Any, discovery));
    targets.map(|target| super::translate::kind_of(&target, discovery)).collect()
}
