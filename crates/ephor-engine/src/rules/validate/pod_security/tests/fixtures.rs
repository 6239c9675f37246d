//! Bodies, Pods and what rules say of them, in few words.

use ephor_expr::Value;
use ephor_expr::value::decode;

use super::super::{Exclusion, FailedCheck, PodSecurityCheck, PodSecurityFailure, PodSecurityOutcome};
use crate::policy::{PodSecurity, PodSecurityExclusion};

pub(super) fn json(text: &str) -> Value {
    Value::from_json(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// A body from `level:version` (`-` for no version) and its exclusions.
pub(super) fn body(standard: &str, exclude: &str) -> PodSecurity {
    let (level, version) = standard.split_once(':').unwrap();
    PodSecurity {
        level: level.into(),
        version: (version != "-").then(|| version.into()),
        exclude: Some(exclusions(exclude)),
    }
}

pub(super) fn exclusions(list: &str) -> Vec<PodSecurityExclusion> {
    decode(&json(&format!("[{list}]"))).unwrap()
}

pub(super) fn compiled(list: &str) -> Vec<Exclusion> {
    exclusions(list).iter().map(|entry| Exclusion::compile(entry).unwrap()).collect()
}

pub(super) fn pod(spec: &str) -> Value {
    json(&format!(r#"{{"kind":"Pod","spec":{{{spec}}}}}"#))
}

/// A Pod whose only container is `c` of image `nginx`, with this security context.
pub(super) fn pod_with_context(context: &str) -> Value {
    pod(&container("c", context))
}

pub(super) fn container(name: &str, context: &str) -> String {
    format!(r#""containers":[{{"name":"{name}","image":"nginx","securityContext":{{{context}}}}}]"#)
}

pub(super) fn run(standard: &str, exclude: &str, resource: &Value) -> PodSecurityOutcome {
    PodSecurityCheck::compile(&body(standard, exclude)).unwrap().evaluate(resource, "r", &[])
}

pub(super) fn failure(outcome: PodSecurityOutcome) -> PodSecurityFailure {
    match outcome {
        PodSecurityOutcome::Fail(failure) => *failure,
        other => panic!("expected a failure, found {other:?}"),
    }
}

pub(super) fn checks(standard: &str, exclude: &str, resource: &Value) -> Vec<FailedCheck> {
    match run(standard, exclude, resource) {
        PodSecurityOutcome::Pass { message } => {
            assert_eq!(message, "Validation rule 'r' passed.");
            Vec::new()
        }
        outcome => failure(outcome).checks,
    }
}

/// The fields that fail, without those of other checks than `id`; `id` may be empty.
pub(super) fn fields(id: &str, checks: &[FailedCheck]) -> Vec<String> {
    let wanted = checks.iter().filter(|check| id.is_empty() || check.id == id);
    wanted.flat_map(|check| check.errors.iter().map(ToString::to_string)).collect()
}

pub(super) fn ids(checks: &[FailedCheck]) -> Vec<&str> {
    checks.iter().map(|check| check.id).collect()
}

/// A context that the restricted level accepts.
pub(super) const GOOD: &str = r#""allowPrivilegeEscalation":false,"runAsNonRoot":true,
    "capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"RuntimeDefault"}"#;
