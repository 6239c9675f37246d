//! Whole resource files in memory: those of a test, which are small.

use std::path::Path;
use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_documents};

use super::files::{expand, read};
use super::lists::expand_lists;
use super::resources::normalise;
use crate::locate::{Located, Origin};

/// An object from a file.
#[derive(Debug, Clone)]
pub struct LoadedObject {
    /// The object, as the API server would have it.
    pub object: Value,
    /// Where it stands.
    pub origin: Origin,
}

/// Reads the objects of the files that `path` (a file, directory or glob) stands for; the items of lists one by one.
/// `cluster_scoped` knows the kinds of loaded CRDs by API version and kind.
pub fn read_objects(
    path: &Path,
    cluster_scoped: &dyn Fn(&str, &str) -> bool,
) -> Result<Vec<LoadedObject>, Vec<Located>> {
    let unreadable = |error: super::ReadError| vec![Located::plain("unreadable", error.to_string())];
    let mut objects = Vec::new();
    let mut findings = Vec::new();
    for path in expand(&path.display().to_string()).map_err(unreadable)? {
        let file = read(&path).map_err(unreadable)?;
        let documents =
            parse_documents(&file.text, &Limits::default()).map_err(|e| vec![Located::of_yaml(e, &file)])?;
        for document in documents {
            let origin = Origin { file: Arc::clone(&file), map: Arc::new(document.source) };
            for object in expand_lists(document.value) {
                push(object, &origin, cluster_scoped, &mut objects, &mut findings);
            }
        }
    }
    if findings.is_empty() { Ok(objects) } else { Err(findings) }
}

fn push(
    object: Value,
    origin: &Origin,
    cluster_scoped: &dyn Fn(&str, &str) -> bool,
    objects: &mut Vec<LoadedObject>,
    findings: &mut Vec<Located>,
) {
    for key in ["apiVersion", "kind"] {
        if object.str_at(&[key]).unwrap_or_default().is_empty() {
            let message = format!("not a Kubernetes object: it has no `{key}`");
            let at = ephor_expr::value::Path::root();
            let finding = ephor_engine::diagnostic::Diagnostic::error("not-an-object", at, message);
            findings.push(Located::of_diagnostic(finding, origin));
            return;
        }
    }
    objects.push(LoadedObject { object: normalise(object, cluster_scoped), origin: origin.clone() });
}
