//! Tests of strategic merge patches.
//!
//! Rows are written as the `spec` of a patch, the `spec` of a resource, and the `spec` that comes of it (`skip` if
//! nothing changes, `error: ` and a text if the patch fails). Those marked 6.5 are observations listed in
//! validate-mutate-autogen.md; the others were observed on the reference, too, unless they say otherwise.

mod anchors;
mod conditions;
mod expansion;
mod kinds;
mod merging;
mod properties;

use ephor_expr::budget::Budget;
use ephor_expr::{Value, yaml};

use super::apply_strategic_merge;

fn value(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

/// A resource of a kind with keyed lists.
fn pod(spec: &str) -> Value {
    object("v1", "Pod", spec)
}

/// A resource of a kind without keyed lists.
fn custom(spec: &str) -> Value {
    object("example.com/v1", "Thing", spec)
}

fn object(api_version: &str, kind: &str, spec: &str) -> Value {
    Value::from([("apiVersion", Value::from(api_version)), ("kind", Value::from(kind)), ("spec", value(spec))])
}

/// The patched resource as JSON, `skip` or `error: …`.
fn outcome(patch: &Value, resource: &Value) -> String {
    match apply_strategic_merge(patch, resource, &Budget::default()) {
        Ok(Some(patched)) => patched.to_json(),
        Ok(None) => "skip".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

/// Checks rows of patch, resource and result on resources that `make` makes of a `spec`.
fn check(make: impl Fn(&str) -> Value, rows: &[(&str, &str, &str)]) {
    for (patch, resource, want) in rows {
        let want =
            if *want == "skip" || want.starts_with("error: ") { (*want).to_owned() } else { make(want).to_json() };
        let patch = Value::from([("spec", value(patch))]);
        assert_eq!(outcome(&patch, &make(resource)), want, "{patch} on {resource}");
    }
}

/// [`check`] for the `containers` of a Pod.
fn check_containers(rows: &[(&str, &str, &str)]) {
    let spec = |text: &str| if text.starts_with('[') { format!("{{containers: {text}}}") } else { text.to_owned() };
    for (patch, resource, want) in rows {
        check(pod, &[(&spec(patch), &spec(resource), &spec(want))]);
    }
}
