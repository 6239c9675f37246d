//! A compiled policy.

use ephor_expr::Str;

use super::rule::CompiledRule;
use super::webhook::WebhookTerms;
use crate::cel::Body;
use crate::policy::{ApplyRules, FailurePolicy, Metadata, PolicyId};

/// A policy, compiled: immutable, shared by all evaluations.
#[derive(Debug)]
pub struct Program {
    /// Which policy it is. The namespace of a `Policy` bounds what the policy matches and reads.
    pub id: PolicyId,
    /// [`Program::id`] as text: how reports and exceptions call it.
    pub key: Str,
    /// Whether admission requests are evaluated.
    pub admission: bool,
    /// Whether existing objects are scanned.
    pub background: bool,
    /// Whether the first rule that decides ends the policy.
    pub apply_rules: ApplyRules,
    /// What an error means for an admission request.
    pub failure_policy: FailurePolicy,
    /// How its webhook is registered.
    pub webhook: WebhookTerms,
    /// The conditions of its webhook, compiled: for reviews that no API server has sent.
    pub requests: Body,
    /// Whether audit results come back as warnings.
    pub emit_warning: bool,
    /// How reports rate it.
    pub scoring: Scoring,
    /// Declared rules in order, then auto-generated ones.
    pub rules: Vec<CompiledRule>,
}

/// How reports rate a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scoring {
    /// Violations of an unscored policy are warnings.
    pub unscored: bool,
    /// `policies.kyverno.io/category`.
    pub category: Option<Str>,
    /// `policies.kyverno.io/severity`.
    pub severity: Option<Str>,
}

impl Scoring {
    /// What the annotations of a policy say.
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            unscored: metadata.annotation("policies.kyverno.io/scored") == Some("false"),
            category: metadata.annotation("policies.kyverno.io/category").map(Str::new),
            severity: metadata.annotation("policies.kyverno.io/severity").map(Str::new),
        }
    }
}
