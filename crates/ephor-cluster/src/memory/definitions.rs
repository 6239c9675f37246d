//! What the schemas of a `CustomResourceDefinition` must be like, so that objects can be held against them.

use ephor_expr::Value;
use ephor_expr::scalar::go_regex;

use crate::error::Cause;
use crate::schema::Schema;
use crate::schema::cel::{self, Place};
use crate::schema::validate::validate;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// How deep schemas are looked into.
const MAX_DEPTH: usize = 64;

/// What is wrong with the schemas of a definition, and with what it changes; `before` is what it replaces.
pub(super) fn check(definition: &Value, before: Option<&Value>, causes: &mut Vec<Cause>) {
    versions(definition, causes);
    let Some(before) = before else { return };
    for (field, keys) in [("spec.scope", ["spec", "scope"].as_slice()), ("spec.names.kind", &["spec", "names", "kind"])]
    {
        let new = definition.str_at(keys).unwrap_or_default();
        if before.str_at(keys) != Some(new) {
            causes.push(Cause::invalid(field, new, "field is immutable"));
        }
    }
}

fn versions(definition: &Value, causes: &mut Vec<Cause>) {
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let is_stored = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    if versions.iter().filter(is_stored).count() != 1 {
        let shown: Vec<&str> = versions.iter().filter(is_stored).filter_map(|v| v.str_at(&["name"])).collect();
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid_raw("spec.versions", &Value::from(shown).to_json(), why));
    }
    let schema = |version: &Value| version.at(&["schema", "openAPIV3Schema"]).cloned();
    // A schema that all versions share is looked at once, under the name that it has for the API server.
    let is_shared = versions.windows(2).all(|pair| matches!(pair, [a, b] if schema(a) == schema(b)));
    for (index, version) in versions.iter().enumerate().take(if is_shared { 1 } else { versions.len() }) {
        let path = match version.at(&["schema", "openAPIV3Schema"]) {
            Some(_) if is_shared => "spec.validation.openAPIV3Schema".to_owned(),
            _ => format!("spec.versions[{index}].schema.openAPIV3Schema"),
        };
        match version.at(&["schema", "openAPIV3Schema"]) {
            Some(schema) => {
                let place = Place { path: &path, without_before: None, is_root: true };
                cel::check(schema, place, causes);
                node(schema, place, causes, MAX_DEPTH);
            }
            None => causes.push(Cause::required(path, "")),
        }
    }
}

/// One place of a schema, and those below.
fn node(schema: &Value, place: Place<'_>, causes: &mut Vec<Cause>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let path = place.path;
    if let Some(kind) = schema.str_at(&["type"]).filter(|kind| !kind.is_empty() && !TYPES.contains(kind)) {
        causes.push(Cause::unsupported(format!("{path}.type"), &format!("{kind:?}"), &TYPES.map(Value::from)));
    }
    if let Some(pattern) = schema.str_at(&["pattern"])
        && let Err(error) = go_regex::compile(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        causes.push(Cause::invalid(format!("{path}.pattern"), pattern, &why));
    }
    if let Some(default) = schema.get("default") {
        let faults = validate(Schema::part_of_custom(schema), default);
        causes.extend(faults.into_iter().map(|fault| {
            let dot = if fault.field.is_empty() || fault.field.starts_with('[') { "" } else { "." };
            Cause { field: format!("{path}.default{dot}{}", fault.field).into(), ..fault }
        }));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_keyed = schema.str_at(&["x-kubernetes-list-type"]) == Some("map");
    for (key, property) in properties.into_iter().flat_map(ephor_expr::Map::iter) {
        let path = format!("{path}.properties[{key}]");
        let place = Place { path: &path, is_root: false, ..place };
        cel::check(property, place, causes);
        node(property, place, causes, depth);
    }
    for key in ["items", "additionalProperties", "not"] {
        if let Some(schema) = schema.get(key).filter(|schema| schema.as_object().is_some()) {
            let path = format!("{path}.{key}");
            let without_before = place.without_before.or((key == "items" && !is_keyed).then_some(place.path));
            let place = Place { path: &path, without_before, is_root: false };
            cel::check(schema, place, causes);
            node(schema, place, causes, depth);
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let alternatives = schema.get(key).and_then(Value::as_array).unwrap_or_default();
        for (index, below) in alternatives.iter().enumerate() {
            let path = format!("{path}.{key}[{index}]");
            node(below, Place { path: &path, is_root: false, ..place }, causes, depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(version: &str) -> Value {
        Value::from_json(&format!(
            r#"{{"metadata":{{"name":"boxes.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
            "names":{{"kind":"Box","plural":"boxes"}},"versions":[{{"name":"v1","served":true,{version}}}]}}}}"#
        ))
        .unwrap()
    }

    fn with_schema(schema: &str) -> Value {
        definition(&format!(r#""storage":true,"schema":{{"openAPIV3Schema":{schema}}}"#))
    }

    fn said(definition: &Value, before: Option<&Value>) -> String {
        let mut causes = Vec::new();
        check(definition, before, &mut causes);
        causes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn schemas_that_nothing_can_be_held_against_are_refused() {
        let field = |rules: &str| with_schema(&format!(r#"{{"type":"object","properties":{{"a":{rules}}}}}"#));
        let at = "spec.validation.openAPIV3Schema.properties[a]";
        for (rules, want) in [
            (r#"{"type":"string","pattern":"^a$","default":"a"}"#, String::new()),
            (r#"{"type":"string","default":null,"nullable":true}"#, String::new()),
            (
                r#"{"type":"string","pattern":"[a"}"#,
                format!(
                    "{at}.pattern: Invalid value: \"[a\": must be a valid regular expression, but isn't: error parsing \
                     regexp: missing closing ]: `[a`"
                ),
            ),
            (
                r#"{"type":"int"}"#,
                format!(
                    r#"{at}.type: Unsupported value: "int": supported values: "array", "boolean", "integer", "number", "object", "string""#
                ),
            ),
            (
                r#"{"type":"string","enum":["x","y"],"default":"z"}"#,
                format!(r#"{at}.default: Unsupported value: "z": supported values: "x", "y""#),
            ),
            (
                r#"{"type":"array","items":{"type":"object","required":["b"]},"default":[{}]}"#,
                format!("{at}.default[0].b: Required value"),
            ),
        ] {
            assert_eq!(said(&field(rules), None), want, "{rules}");
        }
        assert!(said(&definition(r#""storage":true"#), None).contains("openAPIV3Schema: Required value"));
        let unstored = definition(r#""schema":{"openAPIV3Schema":{"type":"object"}}"#);
        assert!(said(&unstored, None).contains("exactly one version marked as storage version"));
    }

    #[test]
    fn a_kind_stays_what_it_is() {
        let before = with_schema(r#"{"type":"object"}"#);
        assert_eq!(said(&before, Some(&before)), "");
        let mut after = before.clone();
        after.as_object_mut().unwrap().get_mut("spec").unwrap().as_object_mut().unwrap().insert("scope", "Cluster");
        assert_eq!(said(&after, Some(&before)), r#"spec.scope: Invalid value: "Cluster": field is immutable"#);
    }
}
