//! Strategic merge patch, as the API server does it.
//!
//! Maps are merged member by member; lists with a merge key item by item, what is new at the end; other lists are
//! replaced. Directives: `$patch: replace|delete|merge`, `$retainKeys`, `$deleteFromPrimitiveList/LIST`,
//! `$setElementOrder/LIST`.

use ephor_expr::{Map, Str, Value};

use super::PatchFault;
use crate::schema::{Schema, Strategy};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// `object` changed by `patch`; `schema` says how lists are merged.
pub(in crate::memory) fn apply(object: &Value, patch: &Value, schema: Option<Schema<'_>>) -> Result<Value, PatchFault> {
    let Some(members) = patch.as_object() else {
        return Err(PatchFault::Malformed("the patch is no object".to_owned()));
    };
    let merged = merge_map(object.as_object(), members, schema, super::MAX_DEPTH)?;
    Ok(Value::object(merged.unwrap_or_default()))
}

fn malformed(why: impl Into<String>) -> PatchFault {
    PatchFault::Malformed(why.into())
}

fn member<'s>(schema: Option<Schema<'s>>, key: &str) -> Option<Schema<'s>> {
    schema.and_then(|schema| schema.member(key))
}

fn strategy(schema: Option<Schema<'_>>) -> Strategy<'_> {
    schema.map(|schema| schema.strategy()).unwrap_or_default()
}

/// `None` if the map is to go.
fn merge_map(
    old: Option<&Map>,
    patch: &Map,
    schema: Option<Schema<'_>>,
    depth: usize,
) -> Result<Option<Map>, PatchFault> {
    let depth = depth.checked_sub(1).ok_or_else(|| malformed("the patch is nested too deeply"))?;
    let empty = Map::new();
    let old = match patch.get(PATCH).map(|directive| directive.as_str()) {
        None | Some(Some("merge")) => old.unwrap_or(&empty),
        Some(Some("replace")) => &empty,
        Some(Some("delete")) => return Ok(None),
        Some(other) => {
            return Err(malformed(format!(
                "Wrong patch type supplied: {}. Choose from merge, replace, and delete",
                other.unwrap_or_default()
            )));
        }
    };
    let mut merged = old.clone();
    if let Some(kept) = patch.get(RETAIN) {
        let kept = kept.as_array().ok_or_else(|| malformed("$retainKeys must be a list"))?;
        let keeps = |key: &Str| kept.iter().any(|k| k.as_str() == Some(key));
        if patch.iter().any(|(key, value)| !key.starts_with('$') && !value.is_null() && !keeps(key)) {
            return Err(malformed("invalid patch format of retainKeys: all members of the patch must be kept"));
        }
        merged.retain(|key, _| keeps(key));
    }
    for (key, value) in patch.iter() {
        if let Some(list) = key.strip_prefix(DELETE) {
            let gone = value.as_array().ok_or_else(|| malformed(format!("{key} must be a list")))?;
            if let Some(items) = merged.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains(item));
            }
        }
    }
    for (key, value) in patch.iter().filter(|(key, _)| *key != PATCH && *key != RETAIN && !is_list_directive(key)) {
        let below = member(schema, key);
        let strategy = strategy(below);
        let result = match value {
            Value::Null => None,
            Value::Object(new) if strategy.replace => merge_map(None, new, below, depth)?.map(Value::object),
            Value::Object(new) => {
                merge_map(merged.get(key).and_then(Value::as_object), new, below, depth)?.map(Value::object)
            }
            Value::Array(new) if strategy.merge => {
                let old = merged.get(key).and_then(Value::as_array).unwrap_or_default();
                let items = below.and_then(|list| list.items());
                Some(Value::array(merge_list(old, new, strategy.key, items, depth)?))
            }
            other => Some(other.clone()),
        };
        match result {
            Some(value) => merged.insert(key.clone(), value),
            None => merged.remove(key),
        };
    }
    for (key, order) in patch.iter() {
        if let Some(list) = key.strip_prefix(ORDER) {
            let order = order.as_array().ok_or_else(|| malformed(format!("{key} must be a list")))?;
            let merge_key = strategy(member(schema, list)).key;
            let before = old.get(list).and_then(Value::as_array).unwrap_or_default();
            if let Some(items) = merged.get_mut(list).and_then(Value::as_array_mut) {
                *items = ordered(items, order, before, merge_key);
            }
        }
    }
    Ok(Some(merged))
}

fn is_list_directive(key: &str) -> bool {
    key.starts_with(DELETE) || key.starts_with(ORDER)
}

fn merge_list(
    old: &[Value],
    patch: &[Value],
    key: Option<&str>,
    items: Option<Schema<'_>>,
    depth: usize,
) -> Result<Vec<Value>, PatchFault> {
    let Some(key) = key.filter(|_| old.iter().chain(patch).all(|item| item.as_object().is_some())) else {
        let mut merged = old.to_vec();
        for item in patch {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(merged);
    };
    let is_replacement = |item: &Value| item.str_at(&[PATCH]) == Some("replace");
    let mut merged = if patch.iter().any(is_replacement) { Vec::new() } else { old.to_vec() };
    // An item that says so makes the whole list new, and is no item itself.
    for item in patch.iter().filter(|item| !is_replacement(item)) {
        let Some(members) = item.as_object() else { continue };
        let Some(name) = members.get(key) else {
            return Err(malformed(format!("map: {item} does not contain declared merge key: {key}")));
        };
        let place = merged.iter().position(|old| old.get(key) == Some(name));
        let old = place.and_then(|place| merged.get(place)).and_then(Value::as_object).cloned();
        match (merge_map(old.as_ref(), members, items, depth)?, place) {
            (Some(new), Some(place)) => {
                if let Some(slot) = merged.get_mut(place) {
                    *slot = Value::object(new);
                }
            }
            (Some(new), None) => merged.push(Value::object(new)),
            (None, Some(_)) => merged.retain(|old| old.get(key) != Some(name)),
            (None, None) => {}
        }
    }
    Ok(merged)
}

/// Items in the order that the client asks for. Items that it does not know stay before those that they stood before.
fn ordered(items: &[Value], order: &[Value], before: &[Value], key: Option<&str>) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| {
        list.iter().position(|other| match key {
            Some(key) => item.get(key).is_some() && other.get(key) == item.get(key),
            None => other == item,
        })
    };
    let (mut known, strangers): (Vec<&Value>, Vec<&Value>) = items.iter().partition(|i| place(order, i).is_some());
    known.sort_by_key(|item| place(order, item));
    let mut merged = Vec::with_capacity(items.len());
    let (mut known, mut strangers) = (known.into_iter().peekable(), strangers.into_iter().peekable());
    loop {
        let next = match (strangers.peek(), known.peek()) {
            (Some(stranger), Some(named)) => match (place(before, stranger), place(before, named)) {
                (Some(a), Some(b)) if a < b => strangers.next(),
                _ => known.next(),
            },
            (Some(_), None) => strangers.next(),
            (None, _) => known.next(),
        };
        match next {
            Some(item) => merged.push(item.clone()),
            None => return merged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(kind: (&str, &str), object: &str, patch: &str) -> Result<String, String> {
        let [object, patch] = [object, patch].map(|text| Value::from_json(text).unwrap());
        let schema = Schema::built_in(kind.0, kind.1);
        assert!(schema.is_some());
        apply(&object, &patch, schema).map(|v| v.to_json()).map_err(|e| e.to_string())
    }

    #[test]
    fn lists_with_a_key_merge_and_grow_at_the_end() {
        let pod = |containers: &str| format!(r#"{{"spec":{{"containers":{containers}}}}}"#);
        for (old, patch, want) in [
            (
                r#"[{"name":"a","image":"1"},{"name":"b"}]"#,
                r#"[{"name":"c"},{"name":"a","image":"2"}]"#,
                r#"[{"image":"2","name":"a"},{"name":"b"},{"name":"c"}]"#,
            ),
            (r#"[{"name":"a"},{"name":"b"}]"#, r#"[{"name":"a","$patch":"delete"}]"#, r#"[{"name":"b"}]"#),
            (r#"[{"name":"a"},{"name":"b"}]"#, r#"[{"name":"c"},{"$patch":"replace"}]"#, r#"[{"name":"c"}]"#),
            (r#"[{"name":"a","image":"1","tty":true}]"#, r#"[{"name":"a","image":"2","$patch":"replace"}]"#, "[]"),
            (
                r#"[{"name":"a","ports":[{"containerPort":80}]}]"#,
                r#"[{"name":"a","ports":[{"containerPort":81},{"containerPort":80,"name":"web"}],"command":["x"]}]"#,
                r#"[{"command":["x"],"name":"a","ports":[{"containerPort":80,"name":"web"},{"containerPort":81}]}]"#,
            ),
        ] {
            let got = patched(("v1", "Pod"), &pod(old), &pod(patch)).unwrap();
            assert_eq!(got, pod(want), "{old} + {patch}");
        }
        assert!(patched(("v1", "Pod"), &pod("[]"), &pod(r#"[{"image":"x"}]"#)).unwrap_err().contains("merge key"));
    }

    #[test]
    fn directives_of_maps_and_primitive_lists() {
        for (old, patch, want) in [
            (
                r#"{"metadata":{"labels":{"a":"1","b":"2"}}}"#,
                r#"{"metadata":{"labels":{"a":null}}}"#,
                r#"{"metadata":{"labels":{"b":"2"}}}"#,
            ),
            (
                r#"{"metadata":{"labels":{"a":"1"}}}"#,
                r#"{"metadata":{"labels":{"$patch":"replace","b":"2"}}}"#,
                r#"{"metadata":{"labels":{"b":"2"}}}"#,
            ),
            (
                r#"{"metadata":{"labels":{"a":"1"}}}"#,
                r#"{"metadata":{"labels":{"$patch":"delete"}}}"#,
                r#"{"metadata":{}}"#,
            ),
            (
                r#"{"metadata":{"finalizers":["x","y"]}}"#,
                r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["x"],"finalizers":["z"]}}"#,
                r#"{"metadata":{"finalizers":["y","z"]}}"#,
            ),
            (
                r#"{"metadata":{"finalizers":["x","y","s"]}}"#,
                r#"{"metadata":{"$setElementOrder/finalizers":["z","y","x"],"finalizers":["z"]}}"#,
                r#"{"metadata":{"finalizers":["z","y","x","s"]}}"#,
            ),
            (
                r#"{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}"#,
                r#"{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}"#,
                r#"{"spec":{"strategy":{"type":"Recreate"}}}"#,
            ),
        ] {
            assert_eq!(patched(("apps/v1", "Deployment"), old, patch).unwrap(), want, "{old} + {patch}");
        }
    }
}
