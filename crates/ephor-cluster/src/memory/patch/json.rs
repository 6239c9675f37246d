//! JSON patch (RFC 6902), strictly: what is to be removed or replaced must be there.

use ephor_expr::budget::Budget;
use ephor_expr::{Str, Value};

use super::PatchFault;

/// The most operations of one patch, as API servers have it.
const MAX_OPERATIONS: usize = 10_000;

/// The most bytes that the copies of one patch may add together, as API servers have it.
const MAX_COPIED: usize = 3 << 20;

/// `object` with all operations done.
pub(in crate::memory) fn apply(object: &Value, patch: &Value) -> Result<Value, PatchFault> {
    let malformed = |why: &str| PatchFault::Malformed(why.to_owned());
    let operations = patch.as_array().ok_or_else(|| malformed("error decoding patch: it is no list of operations"))?;
    if operations.len() > MAX_OPERATIONS {
        let why = format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}");
        return Err(PatchFault::Malformed(why));
    }
    let mut document = object.clone();
    // Copies share what they copy, so that a short patch could double an object again and again.
    let (budget, mut left_to_copy) = (Budget::default(), MAX_COPIED);
    for operation in operations {
        let text = |key: &str| operation.str_at(&[key]);
        let op = text("op").ok_or_else(|| malformed("error decoding patch: an operation has no op"))?;
        let path = pointer(text("path").unwrap_or_default())?;
        let value = || operation.get("value").cloned().ok_or_else(|| malformed("an operation lacks its value"));
        let from = || pointer(text("from").ok_or_else(|| malformed("an operation lacks its from"))?);
        match op {
            "add" => add(&mut document, &path, value()?, op)?,
            "remove" => drop(take(&mut document, &path, op)?),
            "replace" => {
                let place = find_mut(&mut document, &path).ok_or_else(|| missing(op, &path))?;
                *place = value()?;
            }
            "move" => {
                let moved = take(&mut document, &from()?, op)?;
                add(&mut document, &path, moved, op)?;
            }
            "copy" => {
                let from = from()?;
                let copied = find(&document, &from).ok_or_else(|| missing(op, &from))?.clone();
                let size = budget.charge_tree(&copied).ok();
                left_to_copy = size.and_then(|size| left_to_copy.checked_sub(size)).ok_or_else(too_much)?;
                add(&mut document, &path, copied, op)?;
            }
            "test" => {
                let wanted = operation.get("value").cloned().unwrap_or_default();
                if find(&document, &path).cloned().unwrap_or_default() != wanted {
                    return Err(PatchFault::Misfit(format!("testing path {} failed", shown(&path))));
                }
            }
            other => return Err(PatchFault::Malformed(format!("Unexpected kind: {other}"))),
        }
    }
    Ok(document)
}

fn too_much() -> PatchFault {
    PatchFault::Malformed(format!("the copy operations of the patch add more than {MAX_COPIED} bytes"))
}

fn pointer(text: &str) -> Result<Vec<Str>, PatchFault> {
    match text.strip_prefix('/') {
        Some(steps) => Ok(steps.split('/').map(|step| step.replace("~1", "/").replace("~0", "~").into()).collect()),
        None if text.is_empty() => Ok(Vec::new()),
        None => Err(PatchFault::Malformed(format!("{text:?} is no JSON pointer"))),
    }
}

fn shown(path: &[Str]) -> String {
    path.iter().fold(String::new(), |text, step| text + "/" + &step.replace('~', "~0").replace('/', "~1"))
}

fn missing(op: &str, path: &[Str]) -> PatchFault {
    PatchFault::Misfit(format!("{op} operation does not apply: doc is missing path: {:?}: missing value", shown(path)))
}

/// A place in a list; negative numbers count from the end.
fn index(step: &str, length: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    let index = if number < 0 { i64::try_from(length).ok()?.checked_add(number)? } else { number };
    usize::try_from(index).ok().filter(|index| *index < length)
}

fn find<'v>(document: &'v Value, path: &[Str]) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, step| match value {
        Value::Array(items) => items.get(index(step, items.len())?),
        other => other.get(step),
    })
}

fn find_mut<'v>(document: &'v mut Value, path: &[Str]) -> Option<&'v mut Value> {
    path.iter().try_fold(document, |value, step| {
        if let Some(length) = value.as_array().map(<[Value]>::len) {
            let place = index(step, length)?;
            value.as_array_mut()?.get_mut(place)
        } else {
            value.as_object_mut()?.get_mut(step)
        }
    })
}

fn add(document: &mut Value, path: &[Str], value: Value, op: &str) -> Result<(), PatchFault> {
    let Some((last, parents)) = path.split_last() else {
        *document = value;
        return Ok(());
    };
    if path.len() > super::MAX_DEPTH {
        return Err(PatchFault::Misfit("the patch is nested too deeply".to_owned()));
    }
    let parent = find_mut(document, parents).ok_or_else(|| missing(op, path))?;
    if let Some(items) = parent.as_array_mut() {
        let place = if last == "-" { Some(items.len()) } else { index(last, items.len() + 1) };
        let place = place.ok_or_else(|| {
            PatchFault::Misfit(format!("{op} operation does not apply: Unable to access invalid index: {last}"))
        })?;
        items.insert(place, value);
    } else if let Some(members) = parent.as_object_mut() {
        members.insert(last.clone(), value);
    } else {
        return Err(missing(op, path));
    }
    Ok(())
}

fn take(document: &mut Value, path: &[Str], op: &str) -> Result<Value, PatchFault> {
    let fault = || missing(op, path);
    let (last, parents) = path.split_last().ok_or_else(fault)?;
    let parent = find_mut(document, parents).ok_or_else(fault)?;
    if let Some(items) = parent.as_array_mut() {
        let place = index(last, items.len()).ok_or_else(fault)?;
        return Ok(items.remove(place));
    }
    parent.as_object_mut().and_then(|members| members.remove(last)).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_do_what_the_rfc_says() {
        for (document, patch, want) in [
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":2}]"#, Ok(r#"{"a":1,"b":2}"#)),
            (r#"{"a":[1,3]}"#, r#"[{"op":"add","path":"/a/1","value":2}]"#, Ok(r#"{"a":[1,2,3]}"#)),
            (r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/-","value":2}]"#, Ok(r#"{"a":[1,2]}"#)),
            (r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/5","value":2}]"#, Err("invalid index: 5")),
            (r#"{"a/b":1,"m~n":2}"#, r#"[{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/m~0n"}]"#, Ok("{}")),
            (r#"{"a":1}"#, r#"[{"op":"remove","path":"/b"}]"#, Err("missing path: \"/b\"")),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"/b","value":1}]"#, Err("missing path: \"/b\"")),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/b/c","value":1}]"#, Err("missing path: \"/b/c\"")),
            (r#"{"a":{"b":1}}"#, r#"[{"op":"move","from":"/a/b","path":"/c"}]"#, Ok(r#"{"a":{},"c":1}"#)),
            (r#"{"a":1}"#, r#"[{"op":"copy","from":"/a","path":"/b"}]"#, Ok(r#"{"a":1,"b":1}"#)),
            (r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":1.0}]"#, Ok(r#"{"a":1}"#)),
            (r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":2}]"#, Err("testing path /a failed")),
            (r#"{"a":1}"#, r#"[{"op":"test","path":"/b","value":null}]"#, Ok(r#"{"a":1}"#)),
            (r#"{"a":1}"#, r#"{"op":"test"}"#, Err("no list of operations")),
        ] {
            let [document, patch] = [document, patch].map(|text| Value::from_json(text).unwrap());
            match (apply(&document, &patch), want) {
                (Ok(got), Ok(want)) => assert_eq!(got.to_json(), want, "{patch}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{patch}: {error}"),
                (got, want) => panic!("{patch}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn copies_do_not_double_an_object_without_end() {
        let operation = |i: usize| format!(r#"{{"op":"copy","from":"","path":"/m{i}"}}"#);
        let patch = format!("[{}]", (0..64).map(operation).collect::<Vec<_>>().join(","));
        let patch = Value::from_json(&patch).unwrap();
        assert_eq!(apply(&Value::from_json(r#"{"a":1}"#).unwrap(), &patch), Err(too_much()));
    }
}
