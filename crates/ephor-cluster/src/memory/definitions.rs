//! What the schemas of a `CustomResourceDefinition` must be like, so that objects can be held against them.

use ephor_expr::Value;
use ephor_expr::scalar::go_regex;

use crate::error::Cause;
use crate::schema::Schema;
use crate::schema::cel::{self, Place, RuleCheck};
use crate::schema::validate::validate;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// How deep schemas are looked into.
const MAX_DEPTH: usize = 64;

/// What is wrong with the schemas of a definition, and with what it changes; `before` is what it replaces.
pub(super) fn check(definition: &Value, before: Option<&Value>, causes: &mut Vec<Cause>) {
    versions(definition, before, causes);
    let Some(before) = before else { return };
    for (field, keys) in [("spec.scope", ["spec", "scope"].as_slice()), ("spec.names.kind", &["spec", "names", "kind"])]
    {
        let new = definition.str_at(keys).unwrap_or_default();
        if before.str_at(keys) != Some(new) {
            causes.push(Cause::invalid(field, new, "field is immutable"));
        }
    }
}

fn versions(definition: &Value, before: Option<&Value>, causes: &mut Vec<Cause>) {
    let versions = versions_of(definition);
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
        let Some(root) = version.at(&["schema", "openAPIV3Schema"]) else {
            causes.push(Cause::required(path, ""));
            continue;
        };
        let same_version = |other: &&Value| other.str_at(&["name"]) == version.str_at(&["name"]);
        let replaced = before.and_then(|before| versions_of(before).iter().find(same_version));
        let is_unchanged = replaced.is_some_and(|replaced| schema(replaced) == schema(version));
        let mut check = Check { faults: Vec::new(), rules: RuleCheck::new(is_unchanged) };
        let place = Place { path: &path, without_before: None, is_root: true, most: Some(1) };
        check.node(root, &path, Some(place), MAX_DEPTH);
        causes.append(&mut check.faults);
        causes.append(&mut check.rules.finish(&path));
    }
}

fn versions_of(definition: &Value) -> &[Value] {
    definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default()
}

/// What is wrong with one schema, so far.
struct Check {
    faults: Vec<Cause>,
    rules: RuleCheck,
}

impl Check {
    /// One place of a schema, and those below. Without a `place` the schema only restricts another: it has no rules.
    fn node(&mut self, schema: &Value, path: &str, place: Option<Place<'_>>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let faults = self.faults.len();
        self.keywords(schema, path);
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, property) in properties.into_iter().flat_map(ephor_expr::Map::iter) {
            let path = format!("{path}.properties[{key}]");
            self.node(property, &path, place.map(|place| place.below(schema, &path)), depth);
        }
        let is_keyed = schema.str_at(&["x-kubernetes-list-type"]) == Some("map");
        for key in ["items", "additionalProperties"] {
            if let Some(below) = schema.get(key).filter(|below| below.as_object().is_some()) {
                let path_below = format!("{path}.{key}");
                let place = place.map(|place| {
                    let without_before = place.without_before.or((key == "items" && !is_keyed).then_some(path));
                    Place { without_before, ..place.below(schema, &path_below) }
                });
                self.node(below, &path_below, place, depth);
            }
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            let alternatives = schema.get(key).and_then(Value::as_array).unwrap_or_default();
            for (index, below) in alternatives.iter().enumerate() {
                self.node(below, &format!("{path}.{key}[{index}]"), None, depth);
            }
        }
        if let Some(below) = schema.get("not") {
            self.node(below, &format!("{path}.not"), None, depth);
        }
        let Some(place) = place else { return };
        cel::texts(schema, path, &mut self.faults);
        // Rules are compiled by the types that the schema says, so these must be right.
        if self.faults.len() == faults {
            self.rules.node(schema, place);
        }
    }

    fn keywords(&mut self, schema: &Value, path: &str) {
        if let Some(kind) = schema.str_at(&["type"]).filter(|kind| !kind.is_empty() && !TYPES.contains(kind)) {
            let supported = TYPES.map(Value::from);
            self.faults.push(Cause::unsupported(format!("{path}.type"), &format!("{kind:?}"), &supported));
        }
        if let Some(pattern) = schema.str_at(&["pattern"])
            && let Err(error) = go_regex::compile(pattern)
        {
            let why = format!("must be a valid regular expression, but isn't: {error}");
            self.faults.push(Cause::invalid(format!("{path}.pattern"), pattern, &why));
        }
        if let Some(default) = schema.get("default") {
            let faults = validate(Schema::part_of_custom(schema), default);
            self.faults.extend(faults.into_iter().map(|fault| {
                let dot = if fault.field.is_empty() || fault.field.starts_with('[') { "" } else { "." };
                Cause { field: format!("{path}.default{dot}{}", fault.field).into(), ..fault }
            }));
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
