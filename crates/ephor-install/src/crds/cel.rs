//! The `CustomResourceDefinition`s of `policies.kyverno.io`.
//!
//! Kinds that Ephor does not evaluate yet are defined as well, so that the policy webhook refuses them by name and what
//! is stored of them stays. Nothing of their specs is typed here.

use std::collections::BTreeMap;

use ephor_engine::exceptions::PolicyExceptionSpec;
use ephor_engine::policy::{
    GeneratingPolicySpec, MutatingPolicySpec, PolicyCondition, RuleSince, ValidatingPolicySpec,
};
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Column, Content, Definition, Version, column, kept, pruned, served, stored};

pub(super) const GROUP: &str = "policies.kyverno.io";
const VERSIONS: &[Version] = &[served("v1"), stored("v1beta1"), served("v1alpha1")];
const NAMESPACED_VERSIONS: &[Version] = &[served("v1"), stored("v1beta1")];
const READY: &[Column] =
    &[column("AGE", "date", ".metadata.creationTimestamp"), column("READY", "string", ".status.conditionStatus.ready")];
const AGE: &[Column] = &[column("AGE", "date", ".metadata.creationTimestamp")];

/// The status of a policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct PolicyStatus {
    /// Whether the policy serves, and why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition_status: Option<ConditionStatus>,
    /// What auto-gen made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    autogen: Option<BTreeMap<String, BTreeMap<String, serde_json::Value>>>,
    /// Whether an admission policy of Kubernetes stands in for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    generated: Option<bool>,
    /// When it last ran, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_execution_time: Option<Str>,
}

/// The status of a policy that makes objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct GeneratingPolicyStatus {
    /// Whether the policy serves, and why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition_status: Option<ConditionStatus>,
    /// What auto-gen made of it: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    autogen: Option<BTreeMap<String, BTreeMap<String, serde_json::Value>>>,
    /// Whether an admission policy of Kubernetes stands in for it: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    generated: Option<bool>,
    /// What the background role says of its work (Ephor's own).
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<Vec<PolicyCondition>>,
    /// The generation for which objects were made for triggers that existed before the policy (Ephor's own).
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_triggers_generation: Option<i64>,
    /// The same while some are left, as `GENERATION//RULE` and `GENERATION/UID/RULE` (Ephor's own).
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_triggers_rules: Option<Vec<Str>>,
    /// Since when it looks for the triggers that it looks for (Ephor's own).
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_since: Option<Vec<RuleSince>>,
}

/// Whether a policy serves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct ConditionStatus {
    /// Whether all conditions hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<bool>,
    /// What is wrong.
    message: Str,
    /// What is known about the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<Vec<PolicyCondition>>,
}

const fn policy(
    (kind, plural, short_name): (&'static str, &'static str, &'static str),
    namespaced: bool,
    description: &'static str,
    spec: fn() -> Value,
) -> Definition {
    Definition {
        group: GROUP,
        kind,
        plural,
        short_name,
        namespaced,
        description,
        versions: if namespaced { NAMESPACED_VERSIONS } else { VERSIONS },
        columns: READY,
        content: Content::Spec { spec, required: true, status: Some(pruned::<PolicyStatus>) },
    }
}

const fn generating(
    (kind, plural, short_name): (&'static str, &'static str, &'static str),
    namespaced: bool,
) -> Definition {
    Definition {
        columns: AGE,
        content: Content::Spec {
            spec: generating_spec,
            required: true,
            status: Some(pruned::<GeneratingPolicyStatus>),
        },
        ..policy((kind, plural, short_name), namespaced, GENERATES, generating_spec)
    }
}

/// A policy that makes nothing is refused by the API server already, as upstream's is.
fn generating_spec() -> Value {
    let mut spec = kept::<GeneratingPolicySpec>();
    if let Some(members) = spec.as_object_mut() {
        members.insert("required", vec!["generate"]);
    }
    let entries = Path::root().keys(&["properties", "generate"]);
    if let Some(entries) = entries.lookup_mut(&mut spec).and_then(Value::as_object_mut) {
        entries.insert("minItems", 1);
    }
    spec
}

/// The schema of a spec that has no types here.
fn untyped() -> Value {
    kept::<BTreeMap<String, serde_json::Value>>()
}

const VALIDATES: &str = "Validates objects by expressions in CEL.";
const MUTATES: &str = "Changes objects by expressions in CEL.";
const GENERATES: &str = "Creates objects by expressions in CEL.";
const DELETES: &str = "Deletes objects that expressions in CEL select, on a schedule.";
const VERIFIES: &str = "Verifies images by expressions in CEL.";

pub(super) static DEFINITIONS: [Definition; 11] = [
    policy(("DeletingPolicy", "deletingpolicies", "dpol"), false, DELETES, untyped),
    generating(("GeneratingPolicy", "generatingpolicies", "gpol"), false),
    policy(("ImageValidatingPolicy", "imagevalidatingpolicies", "ivpol"), false, VERIFIES, untyped),
    policy(("MutatingPolicy", "mutatingpolicies", "mpol"), false, MUTATES, kept::<MutatingPolicySpec>),
    policy(("NamespacedDeletingPolicy", "namespaceddeletingpolicies", "ndpol"), true, DELETES, untyped),
    generating(("NamespacedGeneratingPolicy", "namespacedgeneratingpolicies", "ngpol"), true),
    policy(("NamespacedImageValidatingPolicy", "namespacedimagevalidatingpolicies", "nivpol"), true, VERIFIES, untyped),
    policy(
        ("NamespacedMutatingPolicy", "namespacedmutatingpolicies", "nmpol"),
        true,
        MUTATES,
        kept::<MutatingPolicySpec>,
    ),
    policy(
        ("NamespacedValidatingPolicy", "namespacedvalidatingpolicies", "nvpol"),
        true,
        VALIDATES,
        kept::<ValidatingPolicySpec>,
    ),
    Definition {
        versions: VERSIONS,
        columns: &[],
        content: Content::Spec { spec: kept::<PolicyExceptionSpec>, required: true, status: None },
        ..policy(
            ("PolicyException", "policyexceptions", ""),
            true,
            "Excepts objects from policies in CEL.",
            kept::<PolicyExceptionSpec>,
        )
    },
    policy(("ValidatingPolicy", "validatingpolicies", "vpol"), false, VALIDATES, kept::<ValidatingPolicySpec>),
];
