//! The status of `ClusterPolicy` and `Policy`: what a controller found out about a policy, in upstream's form.

use ephor_expr::{Str, Value};
use serde::{Deserialize, Serialize};

/// The status of a policy. Fields that are not known here are legal and ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyStatus {
    /// Whether the policy is ready, and why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<PolicyCondition>>,
    /// The rules for Pod controllers that were made from the policy's rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autogen: Option<AutogenStatus>,
    /// How many rules of each kind the policy has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rulecount: Option<RuleCount>,
    /// The `ValidatingAdmissionPolicy` made from the policy.
    #[serde(rename = "validatingadmissionpolicy", skip_serializing_if = "Option::is_none")]
    pub validating_admission_policy: Option<ValidatingAdmissionPolicyStatus>,
    /// The generation for which rules have acted for triggers that existed before the policy (Ephor's own).
    #[serde(rename = "existingTriggersGeneration", skip_serializing_if = "Option::is_none")]
    pub existing_triggers_generation: Option<i64>,
    /// Rules that have acted for such triggers, as `GENERATION//RULE`, while there are triggers left that others, or
    /// they themselves, have to act for; the latter as `GENERATION/UID/RULE` (Ephor's own).
    #[serde(rename = "existingTriggersRules", skip_serializing_if = "Option::is_none")]
    pub existing_triggers_rules: Option<Vec<Str>>,
    /// Since when synchronizing rules look for the triggers that they look for (Ephor's own).
    #[serde(rename = "rulesSince", skip_serializing_if = "Option::is_none")]
    pub rules_since: Option<Vec<RuleSince>>,
    /// Deprecated for `conditions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
}

/// Since when a rule looks for the triggers that it looks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleSince {
    /// The rule.
    pub rule: Str,
    /// A fingerprint of what it looks for.
    pub selection: Str,
    /// The time, RFC 3339.
    pub since: Str,
    /// The policy's version then.
    pub version: Str,
}

/// One condition, in the form that all Kubernetes objects share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyCondition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub kind: Str,
    /// `True`, `False` or `Unknown`.
    pub status: Str,
    /// Why, as one word.
    #[serde(default)]
    pub reason: Str,
    /// Why, for people.
    #[serde(default)]
    pub message: Str,
    /// Since when, RFC 3339.
    #[serde(default)]
    pub last_transition_time: Str,
    /// The generation of the object that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Rules that were made from a policy's rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutogenStatus {
    /// The rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Value>>,
}

/// How many rules of each kind a policy has, those that were made not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleCount {
    /// Validate rules.
    pub validate: u32,
    /// Generate rules.
    pub generate: u32,
    /// Mutate rules.
    pub mutate: u32,
    /// Rules that verify images.
    pub verifyimages: u32,
}

/// Whether a `ValidatingAdmissionPolicy` was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValidatingAdmissionPolicyStatus {
    /// Whether there is one.
    pub generated: bool,
    /// Why there is none.
    pub message: Str,
}
