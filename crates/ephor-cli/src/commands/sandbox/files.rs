//! The files of a sandbox: objects to begin with, and the state that is kept.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use ephor_expr::yaml::{Limits, parse_documents};
use ephor_expr::{Map, Value};

use crate::commands::CommandError;
use crate::load;

/// The objects of files, definitions and namespaces first, so that the order of files does not matter.
pub(super) fn documents(arguments: &[String]) -> Result<Vec<Value>, CommandError> {
    let mut objects = Vec::new();
    for argument in arguments {
        for path in load::expand(argument).map_err(anyhow::Error::from)? {
            let file = load::read(&path).map_err(anyhow::Error::from)?;
            let read = parse_documents(&file.text, &Limits::default());
            let read = read.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            let found = read.into_iter().flat_map(|document| load::expand_lists(document.value));
            // Test suites and values stand among policies.
            objects.extend(found.filter(|object| {
                object.str_at(&["apiVersion"]).is_some_and(|version| !version.starts_with("cli.kyverno.io"))
                    && object.str_at(&["kind"]).is_some()
            }));
        }
    }
    objects.sort_by_key(|object| match object.str_at(&["kind"]) {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    });
    Ok(objects)
}

/// The objects that were kept; `None` if there is no such file yet.
pub(super) fn kept(path: &Path) -> Result<Option<Vec<Value>>, CommandError> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let state = Value::from_json(&text).with_context(|| format!("`{}` holds no state", path.display()))?;
    let objects = state.as_object().and_then(|members: &Map| members.get("objects")).and_then(Value::as_array);
    Ok(Some(objects.unwrap_or_default().to_vec()))
}
