//! `PolicyException`s of `policies.kyverno.io`: they let requests off whole policies, or hand policies lists of what is
//! allowed.

use ephor_expr::value::{Path, decode};
use ephor_expr::{Str, Value};
use jiff::Timestamp;
use serde::Deserialize;

use crate::cel::{Body, Evaluator, Fault, Inputs, Listed, Matched, Place, Source};
use crate::compile::decode_finding;
use crate::diagnostic::Diagnostic;
use crate::outcome::Verdict;
use crate::policy::{MatchCondition, Metadata, PolicyId, ProgramKind};
use crate::rules::admission::Halt;
use crate::rules::validate::policy::Exempted;

/// The label that says which exception's result counts.
const PRIORITY: &str = "polex.kyverno.io/priority";

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Document {
    api_version: Str,
    kind: Str,
    metadata: Metadata,
    spec: PolicyExceptionSpec,
}

/// What a `PolicyException` of `policies.kyverno.io` says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyExceptionSpec {
    /// The policies.
    pub policy_refs: Vec<PolicyRef>,
    /// Which requests, by expressions.
    pub match_conditions: Vec<MatchCondition>,
    /// Images that the policies may allow.
    pub images: Vec<Str>,
    /// Values that the policies may allow.
    pub allowed_values: Vec<Str>,
    /// What reports show.
    pub report_result: ReportResult,
    /// When it ends, RFC 3339.
    pub expires_at: Option<Str>,
    /// Properties of report entries.
    pub properties: Option<Value>,
    /// What the policies judge.
    pub evaluation_mode: Option<Str>,
}

/// A policy that an exception names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PolicyRef {
    /// Its name.
    pub name: Str,
    /// Its kind.
    pub kind: Str,
}

/// What reports show of a request that an exception lets off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReportResult {
    /// A skip.
    #[default]
    Skip,
    /// A pass.
    Pass,
}

/// One exception, compiled.
#[derive(Debug)]
pub(super) struct PolicyExemption {
    key: Str,
    /// The policies, by kind and name; in whatever namespace they are.
    policies: Vec<(ProgramKind, Str)>,
    body: Body,
    images: Vec<Value>,
    values: Vec<Value>,
    result: ReportResult,
    expires: Option<Timestamp>,
    priority: i64,
    /// The only namespace whose namespaced policies it is about; `None`: all.
    namespace: Option<Str>,
    /// Whether its conditions may ask for more than the request holds.
    asks: bool,
    declared: PolicyExceptionSpec,
}

impl PolicyExemption {
    /// Compiles a document; what is wrong with it otherwise.
    pub(super) fn compile(document: &Value) -> Result<Self, Vec<Diagnostic>> {
        let Document { metadata, spec, .. } =
            decode(document).map_err(|faults| faults.into_iter().map(decode_finding).collect::<Vec<_>>())?;
        let base = Path::root().key("spec");
        let mut findings = Vec::new();
        let mut fault = |path: Path, text: &str| findings.push(Diagnostic::error("exception", path, text));
        let at = base.key("policyRefs");
        if spec.policy_refs.is_empty() {
            fault(at.clone(), "must specify at least one policy ref");
        }
        let mut policies = Vec::new();
        for (i, reference) in spec.policy_refs.iter().enumerate() {
            if reference.name.is_empty() {
                fault(at.index(i), "must specify policy name");
            }
            match reference.kind.as_str() {
                "" => fault(at.index(i), "must specify policy kind"),
                // References to kinds that are not evaluated yet say nothing about those that are.
                kind => policies.extend(ProgramKind::parse(kind).map(|kind| (kind, reference.name.clone()))),
            }
        }
        let expires = spec.expires_at.as_ref().map(|text| text.parse::<Timestamp>()).transpose();
        if expires.is_err() {
            fault(base.key("expiresAt"), "must be a time as in RFC 3339, such as 2026-01-02T15:04:05Z");
        }
        let source = Source {
            conditions: Listed { items: &spec.match_conditions, path: base.key("matchConditions") },
            ..Source::at(Place::ValidatingPolicy { namespaced: false })
        };
        // What an API server can evaluate for a webhook reads nothing but the request.
        let asks = Body::compile(&Source { place: Place::Webhook, ..source.clone() }).is_err();
        let body = match Body::compile(&source) {
            Ok(body) => body,
            Err(faults) => {
                findings.extend(faults.into_iter().map(Fault::diagnostic));
                Body::default()
            }
        };
        if findings.iter().any(Diagnostic::is_error) {
            return Err(findings);
        }
        let declared = spec.clone();
        let texts = |list: Vec<Str>| list.into_iter().map(Value::from).collect();
        let priority = metadata.labels.as_ref().and_then(|labels| labels.get(PRIORITY)?.parse().ok());
        Ok(Self {
            key: format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), metadata.name).into(),
            policies,
            body,
            images: texts(spec.images),
            values: texts(spec.allowed_values),
            result: spec.report_result,
            expires: expires.ok().flatten(),
            priority: priority.unwrap_or(0),
            namespace: None,
            asks,
            declared,
        })
    }

    /// What it says.
    pub(super) fn declared(&self) -> &PolicyExceptionSpec {
        &self.declared
    }

    /// Whether its conditions may ask for more than the request holds.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    pub(super) fn key(&self) -> &Str {
        &self.key
    }

    /// Takes away namespaced policies of other namespaces than this one. Conditions are evaluated with what a policy
    /// may read, so an exception that asks for more than the request holds does not count: its author may not read as
    /// much.
    pub(super) fn restrict_to(&mut self, namespace: &str) {
        self.namespace = Some(Str::new(namespace));
        if self.asks {
            self.policies.clear();
        }
    }

    pub(super) fn is_about(&self, policy: &PolicyId) -> bool {
        let foreign = policy.namespace.as_ref().zip(self.namespace.as_ref()).is_some_and(|(of, own)| of != own);
        !foreign && self.policies.iter().any(|(kind, name)| *kind == policy.kind && *name == policy.name)
    }
}

/// Exceptions from a policy that hold for a request.
struct Holding<'x> {
    exceptions: Vec<&'x PolicyExemption>,
    /// Why it cannot be told of one whether it holds.
    unclear: Option<String>,
}

/// Those of `exceptions` that name `policy` and whose conditions the request meets.
fn holding<'x>(
    exceptions: impl Iterator<Item = &'x PolicyExemption>,
    policy: &PolicyId,
    inputs: &Inputs<'_>,
) -> Result<Holding<'x>, Halt> {
    let now = inputs.now();
    let mut holding = Holding { exceptions: Vec::new(), unclear: None };
    let valid = |exception: &&PolicyExemption| exception.expires.is_none_or(|expires| now < expires);
    for exception in exceptions.filter(|exception| exception.is_about(policy)).filter(valid) {
        match Evaluator::new(&exception.body, inputs, &Value::Null).matches()? {
            Matched::No(_) => {}
            Matched::Failed(text) => {
                holding.unclear.get_or_insert_with(|| format!("exception {}: {text}", exception.key));
            }
            Matched::Yes => holding.exceptions.push(exception),
        }
    }
    Ok(holding)
}

/// The keys of those that name `policy` and whose conditions the request meets; or why that cannot be told.
pub(super) fn applying<'x>(
    exceptions: impl Iterator<Item = &'x PolicyExemption>,
    policy: &PolicyId,
    inputs: &Inputs<'_>,
) -> Result<Result<Vec<Str>, String>, Halt> {
    let holding = holding(exceptions, policy, inputs)?;
    let keys: Vec<Str> = holding.exceptions.iter().map(|exception| exception.key.clone()).collect();
    Ok(match holding.unclear {
        Some(text) if keys.is_empty() => Err(text),
        _ => Ok(keys),
    })
}

/// What those of `exceptions` say that name `policy` and whose conditions the request meets.
pub(super) fn exempted<'x>(
    exceptions: impl Iterator<Item = &'x PolicyExemption>,
    policy: &PolicyId,
    inputs: &Inputs<'_>,
) -> Result<Exempted, Halt> {
    let Holding { exceptions, unclear } = holding(exceptions, policy, inputs)?;
    let (mut images, mut values) = (Vec::new(), Vec::new());
    let mut whole: Vec<&PolicyExemption> = Vec::new();
    for exception in exceptions {
        if exception.images.is_empty() && exception.values.is_empty() {
            whole.push(exception);
        }
        images.extend_from_slice(&exception.images);
        values.extend_from_slice(&exception.values);
    }
    // That of the highest priority decides, and of those the first.
    let decisive =
        whole.iter().copied().reduce(|first, next| if next.priority > first.priority { next } else { first });
    if let Some(decisive) = decisive {
        let keys: Vec<Str> = whole.iter().map(|exception| exception.key.clone()).collect();
        let (verdict, word) = match decisive.result {
            ReportResult::Skip => (Verdict::Skip, "skipped"),
            ReportResult::Pass => (Verdict::Pass, "passed"),
        };
        let message = format!("rule is {word} due to policy exception: {}", keys.join(", "));
        return Ok(Exempted::Whole { verdict, message, keys });
    }
    if let Some(text) = unclear {
        return Ok(Exempted::Unclear(text));
    }
    let lists = [("allowedImages", Value::array(images)), ("allowedValues", Value::array(values))];
    Ok(Exempted::Allowing(Value::from(lists)))
}
