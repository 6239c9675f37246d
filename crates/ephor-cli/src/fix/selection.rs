//! Old forms of `match` and `exclude`.

use ephor_expr::Value;
use ephor_expr::value::Path;

use super::Fix;
use super::document::Document;

/// `name` of a filter, which is a list of one `names`.
pub(super) fn names(document: &Document<'_>) -> Vec<Fix> {
    let fix = |resources: Path| {
        let path = resources.key("name");
        let name = document.str(&path)?;
        if name.is_empty() || document.get(&resources.key("names")).is_some() {
            return None;
        }
        let mut edits = document.bracket(&path)?;
        edits.push(document.rename(&path, "names")?);
        Some(Fix { message: "`name` in a filter is deprecated: use `names`".to_owned(), path, edits })
    };
    blocks(document).into_iter().flat_map(|block| filters(document, &block)).filter_map(fix).collect()
}

/// Attributes directly in `match` and `exclude`, which are a list of one filter.
pub(super) fn direct_filters(document: &Document<'_>) -> Vec<Fix> {
    let fix = |path: Path| {
        let block = document.get(&path)?.as_object()?;
        let direct = block.keys().all(|k| matches!(k.as_str(), "resources" | "roles" | "clusterRoles" | "subjects"));
        let says_something = |value: &Value| match value {
            Value::Object(map) => !map.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => false,
        };
        if block.is_empty() || !direct || !block.values().all(says_something) {
            return None;
        }
        let edits = document.wrap(&path, "any")?;
        Some(Fix { message: "filters outside of `any` and `all` are deprecated".to_owned(), path, edits })
    };
    blocks(document).into_iter().filter_map(fix).collect()
}

fn blocks(document: &Document<'_>) -> Vec<Path> {
    if !document.is_policy() {
        return Vec::new();
    }
    document.rules().iter().flat_map(|rule| [rule.key("match"), rule.key("exclude")]).collect()
}

/// The `resources` of all filters of a block.
fn filters(document: &Document<'_>, block: &Path) -> Vec<Path> {
    let mut found = vec![block.key("resources")];
    for list in ["any", "all"] {
        let list = block.key(list);
        let count = document.get(&list).and_then(Value::as_array).map_or(0, <[Value]>::len);
        found.extend((0..count).map(|i| list.index(i).key("resources")));
    }
    found
}
