//! Results out of report objects.

use clap::ValueEnum;
use ephor_cluster::object;
use ephor_engine::outcome::Verdict;
use ephor_expr::scalar::wildcard;
use ephor_expr::{Str, Value};
use ephor_reports::Scope;

use super::source::is_report;

/// How much a violation matters, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Hash)]
pub enum Severity {
    /// Worse than high.
    Critical,
    /// High.
    High,
    /// Medium.
    Medium,
    /// Low.
    Low,
    /// For information.
    Info,
    /// The policy gives no severity.
    None,
}

impl Severity {
    /// The word in reports; empty where they have none.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Info => "info",
            Self::None => "",
        }
    }

    fn parse(word: &str) -> Self {
        let known = [Self::Critical, Self::High, Self::Medium, Self::Low, Self::Info];
        known.into_iter().find(|severity| severity.as_str() == word).unwrap_or(Self::None)
    }
}

/// One result about one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Found {
    /// The policy: `namespace/name`, or its name.
    pub policy: Str,
    /// The rule; may be empty.
    pub rule: Str,
    /// The object that was judged. Its namespace is empty for cluster-scoped kinds.
    pub subject: Scope,
    /// The verdict.
    pub result: Verdict,
    /// The severity of the policy.
    pub severity: Severity,
    /// The category of the policy; may be empty.
    pub category: Str,
    /// What the rule says; may be empty.
    pub message: Str,
}

impl Found {
    /// The object in short: `Pod shop/till`.
    pub fn subject(&self) -> String {
        let Scope { kind, namespace, name, .. } = &self.subject;
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }

    /// Policy and rule: `require-team/team-label`.
    pub fn id(&self) -> String {
        if self.rule.is_empty() { self.policy.to_string() } else { format!("{}/{}", self.policy, self.rule) }
    }

    /// Whether the object does not satisfy the policy, or could not be judged.
    pub fn is_bad(&self) -> bool {
        matches!(self.result, Verdict::Fail | Verdict::Error)
    }
}

/// An object that cannot be read as a report.
#[derive(Debug, thiserror::Error)]
pub enum NotReport {
    /// It is something else.
    #[error("{kind} `{name}` is not a policy report")]
    Kind {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A result has no verdict, or one that reports do not have.
    #[error("{kind} `{name}`: result {index} has the verdict `{word}`: expected pass, fail, warn, error or skip")]
    Verdict {
        /// The kind of the report.
        kind: String,
        /// Its name.
        name: String,
        /// Which result.
        index: usize,
        /// What stands there.
        word: String,
    },
    /// A result names no policy.
    #[error("{kind} `{name}`: result {index} names no policy")]
    NoPolicy {
        /// The kind of the report.
        kind: String,
        /// Its name.
        name: String,
        /// Which result.
        index: usize,
    },
}

/// The results of a report. A result is about the resources that it names, or else about the scope of the report.
pub fn found(report: &Value) -> Result<Vec<Found>, NotReport> {
    let api_version = report.str_at(&["apiVersion"]).unwrap_or_default();
    let kind = report.str_at(&["kind"]).unwrap_or_default().to_owned();
    let name = object::name(report).to_owned();
    if !is_report(api_version.split('/').next().unwrap_or_default(), &kind) {
        return Err(NotReport::Kind { kind, name });
    }
    let mut all = Vec::new();
    let results = report.get("results").and_then(Value::as_array).unwrap_or_default();
    for (index, result) in results.iter().enumerate() {
        let text = |key| result.str_at(&[key]).unwrap_or_default();
        let Some(verdict) = Verdict::parse(text("result")) else {
            return Err(NotReport::Verdict { kind, name, index, word: text("result").to_owned() });
        };
        if text("policy").is_empty() {
            return Err(NotReport::NoPolicy { kind, name, index });
        }
        let resources = result.get("resources").and_then(Value::as_array).unwrap_or_default();
        let subjects = if resources.is_empty() {
            vec![Scope::of_report(report)]
        } else {
            // A reference has the members of a scope.
            let scoped = |resource: &Value| Scope::of_report(&Value::from([("scope", resource.clone())]));
            resources.iter().map(scoped).collect()
        };
        all.extend(subjects.into_iter().map(|subject| Found {
            policy: text("policy").into(),
            rule: text("rule").into(),
            subject,
            result: verdict,
            severity: Severity::parse(text("severity")),
            category: text("category").into(),
            message: result.str_at(&["message"]).or_else(|| result.str_at(&["description"])).unwrap_or_default().into(),
        }));
    }
    Ok(all)
}

/// The results of judging an object now.
pub fn of_results(object: &Value, results: Vec<Value>) -> Result<Vec<Found>, NotReport> {
    let text = |path: &[&str]| Value::from(object.str_at(path).unwrap_or_default());
    let scope = Value::from([
        ("apiVersion", text(&["apiVersion"])),
        ("kind", text(&["kind"])),
        ("namespace", text(&["metadata", "namespace"])),
        ("name", text(&["metadata", "name"])),
        ("uid", text(&["metadata", "uid"])),
    ]);
    let report = Value::from([
        ("apiVersion", Value::from("wgpolicyk8s.io/v1alpha2")),
        ("kind", "PolicyReport".into()),
        ("scope", scope),
        ("results", Value::array(results)),
    ]);
    found(&report)
}

/// Which results are shown. An empty list takes all. Names may hold the wildcards `*` and `?`.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Policies, as `name` or `namespace/name`.
    pub policies: Vec<String>,
    /// Namespaces of the objects.
    pub namespaces: Vec<String>,
    /// Verdicts.
    pub results: Vec<Verdict>,
    /// Severities.
    pub severities: Vec<Severity>,
    /// Kinds of the objects.
    pub kinds: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
}

impl Filter {
    /// Whether the result is shown.
    pub fn takes(&self, found: &Found) -> bool {
        let named = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| wildcard::matches(pattern, text))
        };
        named(&self.policies, &found.policy)
            && named(&self.namespaces, &found.subject.namespace)
            && named(&self.kinds, &found.subject.kind)
            && named(&self.categories, &found.category)
            && (self.results.is_empty() || self.results.contains(&found.result))
            && (self.severities.is_empty() || self.severities.contains(&found.severity))
    }
}
