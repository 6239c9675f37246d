//! Lists of objects in one document.

use ephor_expr::{Str, Value};

/// The objects that a document holds: those of a list (`List`, or a typed one such as `PodList`, whose items may lack
/// their kind), else the document itself. Lists in lists are not looked into.
pub fn expand_lists(document: Value) -> Vec<Value> {
    let kind = document.str_at(&["kind"]).unwrap_or_default();
    let Some(item_kind) = kind.strip_suffix("List") else { return vec![document] };
    let Some(items) = document.get("items").and_then(Value::as_array) else { return vec![document] };
    if item_kind.is_empty() {
        return items.to_vec();
    }
    let api_version = Str::new(document.str_at(&["apiVersion"]).unwrap_or_default());
    let item_kind = Str::new(item_kind);
    let typed = |item: &Value| {
        let mut item = item.clone();
        if let Some(object) = item.as_object_mut() {
            for (key, text) in [("apiVersion", &api_version), ("kind", &item_kind)] {
                if !object.contains_key(key) {
                    object.insert(key, text.clone());
                }
            }
        }
        item
    };
    items.iter().map(typed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(json: &str) -> Vec<String> {
        expand_lists(Value::from_json(json).unwrap()).iter().map(Value::to_json).collect()
    }

    #[test]
    fn lists_become_their_items() {
        let list = r#"{"apiVersion":"v1","kind":"List","items":[{"kind":"Pod"},{"kind":"Node"}]}"#;
        assert_eq!(expanded(list), [r#"{"kind":"Pod"}"#, r#"{"kind":"Node"}"#]);
        let typed = r#"{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{}}]}"#;
        assert_eq!(expanded(typed), [r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#]);
    }

    #[test]
    fn other_documents_stay() {
        for document in [r#"{"kind":"Pod"}"#, r#"{"kind":"AllowList","spec":{}}"#, "[1]"] {
            assert_eq!(expanded(document), [document]);
        }
    }
}
