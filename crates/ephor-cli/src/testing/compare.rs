//! Objects against expected ones.

use ephor_background::plan::diff::hidden;
use ephor_expr::{Map, Value, yaml};
use similar::TextDiff;

/// The result of a comparison.
#[derive(Debug, PartialEq)]
pub(super) enum Compared {
    /// The objects say the same.
    Same,
    /// They do not; a unified diff from expected to actual.
    Different(String),
    /// The object is not among the expected ones.
    Absent,
}

/// Compares `actual` with the expected object of the same API version, kind, namespace and name.
pub(super) fn compare(actual: &Value, expected: &[&Value]) -> Compared {
    let namesakes = expected.iter().filter(|e| same_object(e, actual));
    let mut diff = None;
    for namesake in namesakes {
        let (want, got) = (tidy(namesake), tidy(actual));
        if want == got {
            return Compared::Same;
        }
        diff.get_or_insert_with(|| difference(&want, &got));
    }
    diff.map_or(Compared::Absent, Compared::Different)
}

/// Whether two objects have the same API version, kind, namespace and name; no namespace is `default`.
pub(super) fn same_object(a: &Value, b: &Value) -> bool {
    let text = |o: &Value, keys: &[&str]| o.str_at(keys).unwrap_or_default().to_owned();
    let namespace = |o: &Value| match text(o, &["metadata", "namespace"]) {
        empty if empty.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    [&["apiVersion"][..], &["kind"], &["metadata", "name"]].iter().all(|keys| text(a, keys) == text(b, keys))
        && namespace(a) == namespace(b)
}

/// Labels that generation adds, which a test need not repeat.
fn is_own_label(key: &str) -> bool {
    key == "app.kubernetes.io/managed-by" || key.starts_with("generate.kyverno.io/")
}

/// The object without what does not count: the labels of generated objects, nulls, and empty lists and maps, a
/// namespace that is the default.
fn tidy(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.as_object_mut().and_then(|o| o.get_mut("metadata")).and_then(Value::as_object_mut) {
        if metadata.get("namespace").and_then(Value::as_str) == Some("default") {
            metadata.remove("namespace");
        }
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.retain(|key, _| !is_own_label(key));
        }
    }
    pruned(&object, MAX_DEPTH).unwrap_or_default()
}

/// Deeper objects than any schema allows are compared as they are.
const MAX_DEPTH: usize = 200;

fn pruned(value: &Value, depth: usize) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(map) if depth > 0 => {
            let kept: Map =
                map.iter().filter_map(|(key, value)| Some((key.clone(), pruned(value, depth - 1)?))).collect();
            (!kept.is_empty()).then(|| Value::object(kept))
        }
        Value::Array(items) if depth > 0 => {
            let kept: Vec<Value> = items.iter().filter_map(|item| pruned(item, depth - 1)).collect();
            (!kept.is_empty()).then(|| Value::array(kept))
        }
        other => Some(other.clone()),
    }
}

/// A diff that shows no values of Secrets, only which of them differ.
fn difference(want: &Value, got: &Value) -> String {
    let (want, got) = (hidden(want, got, "expected"), hidden(got, want, "actual"));
    let (want, got) = (yaml::to_yaml(&want), yaml::to_yaml(&got));
    TextDiff::from_lines(&want, &got).unified_diff().header("expected", "actual").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_no_values_of_secrets() {
        let secret =
            |k: &str| value(&format!(r#"{{"apiVersion":"v1","kind":"Secret","data":{{"k":"{k}","j":"eA=="}}}}"#));
        let Compared::Different(diff) = compare(&secret("aHVudGVyMg=="), &[&secret("c2VjcmV0")]) else { panic!() };
        assert!(diff.contains("-  k: (hidden, expected)\n+  k: (hidden, actual)\n"), "{diff}");
    }

    fn value(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    #[test]
    fn nulls_empties_and_own_labels_do_not_count() {
        let actual = value(
            r#"{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"default","labels":{
                "app.kubernetes.io/managed-by":"kyverno","generate.kyverno.io/rule-name":"x","own":"1"}},
                "n":1.0,"e":{"f":[{}]},"z":null}"#,
        );
        let expected = value(r#"{"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"own":"1"}},"n":1}"#);
        assert_eq!(compare(&actual, &[&expected]), Compared::Same);
    }

    #[test]
    fn objects_are_compared_with_their_namesakes_only() {
        let object = |name: &str, n: i64| {
            value(&format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{{"name":"{name}"}},"size":{n}}}"#))
        };
        assert_eq!(compare(&object("a", 1), &[&object("b", 1)]), Compared::Absent);
        assert_eq!(compare(&object("a", 1), &[&object("a", 2), &object("a", 1)]), Compared::Same);
        let Compared::Different(diff) = compare(&object("a", 1), &[&object("a", 2)]) else { panic!("not different") };
        assert!(diff.contains("-size: 2\n") && diff.contains("+size: 1\n"), "{diff}");
    }
}
