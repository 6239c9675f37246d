//! A page of a list, item by item where it cannot be read as a whole.
//!
//! One object that nests too deep, or that is no object, must not hide the others of its page. The text is divided at
//! the commas of `items` without regard to what stands between them, so that each item is read alone.

use ephor_cluster::object::{self, MAX_LEVELS};
use ephor_cluster::{ClusterError, OnUnreadable, UnreadableItem};
use ephor_expr::{Str, Value};

use crate::exchange::parse;

/// The document of a page without its items, the items, and those that cannot be read.
pub(crate) struct Page {
    pub(crate) document: Value,
    pub(crate) items: Vec<Value>,
    pub(crate) unreadable: Vec<UnreadableItem>,
}

/// Reads a page.
pub(crate) fn read(text: &str, on_unreadable: OnUnreadable) -> Result<Page, ClusterError> {
    let page = match parse(text) {
        Ok(document) => whole(document),
        Err(error) if on_unreadable == OnUnreadable::Fail => return Err(error),
        Err(error) => apart(text).ok_or(error)?,
    };
    match page.unreadable.first() {
        Some(item) if on_unreadable == OnUnreadable::Fail => Err(ClusterError::unreachable(item.to_string())),
        _ => Ok(page),
    }
}

fn whole(mut document: Value) -> Page {
    let listed = document.as_object_mut().and_then(|members| members.remove("items")).unwrap_or_default();
    let (mut items, mut unreadable) = (Vec::new(), Vec::new());
    for item in listed.as_array().unwrap_or_default() {
        if item.as_object().is_some() {
            items.push(item.clone());
        } else {
            unreadable.push(UnreadableItem { reason: "it is no object".to_owned(), ..UnreadableItem::default() });
        }
    }
    Page { document, items, unreadable }
}

fn apart(text: &str) -> Option<Page> {
    let place = member(text, "items")?;
    let (before, list, after) = (text.get(..place.0)?, text.get(place.0..place.1)?, text.get(place.1..)?);
    let document = Value::from_json(&format!("{before}[]{after}")).ok()?;
    let (mut items, mut unreadable) = (Vec::new(), Vec::new());
    for part in parts(list)?.into_iter().filter_map(|(from, to)| list.get(from..to)) {
        match Value::from_json_nested(part, MAX_LEVELS - 2) {
            Ok(item) if item.as_object().is_some() => items.push(item),
            Ok(_) => unreadable.push(UnreadableItem { reason: "it is no object".to_owned(), ..identity(part) }),
            Err(error) => unreadable.push(UnreadableItem { reason: error.to_string(), ..identity(part) }),
        }
    }
    Some(Page { document, items, unreadable })
}

/// What an item that cannot be read says of itself, as far as its metadata can be read.
fn identity(item: &str) -> UnreadableItem {
    let metadata = member(item, "metadata").and_then(|(from, to)| Value::from_json(item.get(from..to)?).ok());
    let item = Value::from([("metadata", metadata.unwrap_or_default())]);
    UnreadableItem {
        namespace: Str::new(object::namespace(&item)),
        name: Str::new(object::name(&item)),
        resource_version: Str::new(object::text(&item, "resourceVersion")),
        reason: String::new(),
    }
}

/// Where the value of a member of an object begins and ends.
fn member(text: &str, key: &str) -> Option<(usize, usize)> {
    parts(text)?.into_iter().find_map(|(from, to)| {
        let rest = text.get(from..to)?.trim_start().strip_prefix('"')?.strip_prefix(key)?.strip_prefix('"')?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start();
        Some((to - value.len(), to))
    })
}

/// Where the parts of a list or an object begin and end: what stands between its brackets, divided at its own commas.
/// `None` if its brackets do not match up.
fn parts(text: &str) -> Option<Vec<(usize, usize)>> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                depth += 1;
                if depth == 1 {
                    from = at + 1;
                }
            }
            b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    if text.get(from..at).is_some_and(|part| !part.trim().is_empty()) {
                        found.push((from, at));
                    }
                    return Some(found);
                }
            }
            b',' if depth == 1 => {
                found.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(page: &Page) -> Vec<&str> {
        page.items.iter().map(object::name).collect()
    }

    #[test]
    fn an_item_that_cannot_be_read_hides_no_other() {
        let deep = format!(
            r#"{{"spec":{}{},"metadata":{{"name":"deep","namespace":"n"}}}}"#,
            "[".repeat(20_000),
            "]".repeat(20_000)
        );
        for (item, name) in [
            (deep.as_str(), "deep"),
            ("null", ""),
            (r#""text""#, ""),
            (r#"{"metadata":{"name":"odd","namespace":"n"},"spec":tru}"#, "odd"),
            (r#"{"metadata":{"name":"odd","namespace":"n"},"spec":{"a":"],[\"","b":01}}"#, "odd"),
        ] {
            let text = format!(
                r#"{{"metadata":{{"continue":"t"}},"items":[{{"metadata":{{"name":"a"}}}},{item},{{"metadata":{{"name":"b, ]"}}}}]}}"#
            );
            let page = read(&text, OnUnreadable::Report).unwrap();
            assert_eq!(names(&page), ["a", "b, ]"], "{name}");
            assert_eq!(page.document.str_at(&["metadata", "continue"]), Some("t"));
            assert_eq!(page.unreadable.iter().map(|item| &*item.name).collect::<Vec<_>>(), [name]);
            assert!(!page.unreadable[0].reason.is_empty());
            assert!(read(&text, OnUnreadable::Fail).is_err(), "{name}: who asks for all objects gets all or none");
        }
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        for text in ["", "{", r#"{"items":[{]}"#, r#"{"items":[{}"#, r#"{"a":tru}"#, "]"] {
            assert!(read(text, OnUnreadable::Report).is_err(), "{text}");
        }
        assert!(read(r#"{"items":[]}"#, OnUnreadable::Report).unwrap().items.is_empty());
    }
}
