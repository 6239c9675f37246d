//! What reports consist of, for their definitions.
//!
//! Other engines write reports too, with fields that Ephor does not use: unknown fields are kept.

use std::collections::BTreeMap;

use ephor_expr::{Map, Str, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::structural::{UnknownFields, schema_of};

/// An object that a report is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Its API version.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// Its namespace; absent for cluster-scoped kinds.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// Its UID.
    pub uid: Str,
}

/// What a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResultWord {
    /// The object is as the policy wants it.
    Pass,
    /// It is not.
    Fail,
    /// It is not, and the policy is not scored.
    Warn,
    /// That could not be found out.
    Error,
    /// The policy does not apply.
    Skip,
}

/// How bad a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The worst.
    Critical,
    /// Bad.
    High,
    /// Neither.
    Medium,
    /// Not bad.
    Low,
    /// No failure at all.
    Info,
}

/// A moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds after that.
    pub nanos: i32,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportResult {
    /// The engine that says so.
    #[serde(default)]
    pub source: Str,
    /// The policy, `namespace/name` if it is namespaced.
    pub policy: Str,
    /// The rule of the policy.
    #[serde(default)]
    pub rule: Str,
    /// What it says.
    pub result: Option<ResultWord>,
    /// Why.
    #[serde(default)]
    pub message: Str,
    /// The category of the policy.
    #[serde(default)]
    pub category: Str,
    /// The severity of the policy.
    pub severity: Option<Severity>,
    /// Whether the result counts.
    #[serde(default)]
    pub scored: bool,
    /// Further properties.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// Since when it says so.
    pub timestamp: Option<Timestamp>,
}

/// How many results of each sort there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Satisfied.
    pub pass: i64,
    /// Violated.
    pub fail: i64,
    /// Violated, but not scored.
    pub warn: i64,
    /// Could not be judged.
    pub error: i64,
    /// Did not apply.
    pub skip: i64,
}

/// What a report says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Report {
    /// The object.
    pub scope: Option<ObjectReference>,
    /// The results.
    pub results: Vec<ReportResult>,
    /// Their number.
    pub summary: Summary,
    /// The engine, if all results are of one.
    pub source: Str,
}

/// Results that a role leaves for the one that writes reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ephemeral {
    /// The object, if it is known.
    pub owner: Option<ObjectReference>,
    /// The results.
    pub results: Vec<ReportResult>,
    /// Their number.
    pub summary: Summary,
}

/// The members of a report beside its metadata. Reports have no spec.
pub(super) fn report() -> Map {
    let schema = schema_of::<Report>(UnknownFields::Kept);
    schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
}
