//! The files of a sandbox: the objects that it starts with.

use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_documents};

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
