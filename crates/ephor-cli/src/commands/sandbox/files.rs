//! The files of a sandbox: the objects that it starts with, each with its place, and what is wrong with them.

use std::path::PathBuf;
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_expr::yaml::{Limits, parse_documents};
use ephor_sandbox::{Added, Refused};

use crate::load::{self, ReadError};
use crate::locate::{Located, Origin};

/// An object of a file.
#[derive(Debug, Clone)]
pub(super) struct FileObject {
    /// The object.
    pub(super) object: Value,
    /// Where it stands.
    pub(super) origin: Origin,
}

impl FileObject {
    /// What makes it the same object after an edit: `apiVersion`, kind, namespace, name.
    pub(super) fn identity(&self) -> [&str; 4] {
        let text = |keys: &[&str]| self.object.str_at(keys).unwrap_or_default();
        [text(&["apiVersion"]), text(&["kind"]), text(&["metadata", "namespace"]), text(&["metadata", "name"])]
    }
}

/// The files that the arguments name.
pub(super) fn paths(arguments: &[String]) -> Result<Vec<PathBuf>, ReadError> {
    let mut found = Vec::new();
    for argument in arguments {
        found.extend(load::expand(argument)?);
    }
    Ok(found)
}

/// The objects of files: definitions first, then namespaces, so that the order of files does not matter.
pub(super) fn read(arguments: &[String]) -> Result<Vec<FileObject>, Box<Located>> {
    let mut objects = Vec::new();
    for path in paths(arguments).map_err(|error| Box::new(Located::of_read(error)))? {
        let file = load::read(&path).map_err(|error| Box::new(Located::of_read(error)))?;
        let documents = parse_documents(&file.text, &Limits::default());
        for document in documents.map_err(|error| Box::new(Located::of_yaml(error, &file)))? {
            let origin = Origin { file: Arc::clone(&file), map: Arc::new(document.source) };
            let found = load::expand_lists(document.value);
            if let Some(finding) = found.iter().find_map(incomplete) {
                return Err(Box::new(Located::of_diagnostic(finding, &origin)));
            }
            // Test suites and values stand among policies.
            let found = found.into_iter().filter(|object| {
                object.str_at(&["apiVersion"]).is_some_and(|version| !version.starts_with("cli.kyverno.io"))
                    && object.str_at(&["kind"]).is_some()
            });
            objects.extend(found.map(|object| FileObject { object, origin: origin.clone() }));
        }
    }
    objects.sort_by_key(|file| match file.object.str_at(&["kind"]) {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    });
    Ok(objects)
}

/// The finding for a document that has one of `apiVersion` and `kind`. Other documents without them are no objects.
fn incomplete(document: &Value) -> Option<Diagnostic> {
    let has = |key: &str| document.str_at(&[key]).is_some();
    let (given, missing) = match (has("apiVersion"), has("kind")) {
        (true, false) => ("apiVersion", "kind"),
        (false, true) => ("kind", "apiVersion"),
        _ => return None,
    };
    let message = format!("an object with `{given}` and without `{missing}`");
    Some(Diagnostic::error("incomplete-object", Path::root(), message))
}

/// What is wrong with the objects that were added, at file and line: for policies what `ephor check` says, for others
/// what the sandbox said.
pub(super) fn findings(files: &[FileObject], added: &Added, served: &Arc<Discovery>) -> Vec<Located> {
    let mut found = Vec::new();
    for file in files {
        let refused = added.refused.iter().find(|refused| refused.object == file.object);
        let warnings = added.warnings.iter().filter(|(object, _)| *object == file.object);
        let mut said: Vec<_> =
            warnings.map(|(_, warning)| Diagnostic::warning("warning", Path::root(), warning)).collect();
        if let Some(Refused { error, .. }) = refused {
            said.push(Diagnostic::error("refused", Path::root(), error.to_string()));
        }
        if said.is_empty() {
            continue;
        }
        let checked = load::check_document(&file.object, &file.origin, Arc::clone(served));
        // A policy may also be refused for what only the cluster knows.
        if checked.iter().any(Located::is_error) || (refused.is_none() && !checked.is_empty()) {
            found.extend(checked);
        } else {
            found.extend(said.into_iter().map(|diagnostic| Located::of_diagnostic(diagnostic, &file.origin)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use ephor_cluster::ClusterError;

    use super::*;
    use crate::output::findings::concise;

    #[test]
    fn a_document_that_is_half_an_object_is_told_and_not_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        for (text, told) in [
            ("kind: ClusterPolicy", Some("without `apiVersion`")),
            ("{apiVersion: v1, metadata: {name: a}}", Some("without `kind`")),
            ("{policies: [a.yaml]}", None),
            ("{apiVersion: cli.kyverno.io/v1alpha1, kind: Test}", None),
        ] {
            std::fs::write(&file, text).unwrap();
            let found = read(&[file.to_string_lossy().into_owned()]);
            match told {
                Some(words) => assert!(concise(&[*found.unwrap_err()]).contains(words), "{text}"),
                None => assert!(found.unwrap().is_empty(), "{text}"),
            }
        }
    }

    const OBJECTS: &str = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: limits}
spec:
  rules:
  - name: cpu
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {mesage: no, deny: {}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Bad}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: good}
";

    #[test]
    fn refused_objects_are_found_at_file_and_line() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("objects.yaml"), OBJECTS).unwrap();
        let files = read(&[directory.path().display().to_string()]).unwrap();
        let refused = |index: usize| Refused {
            object: files[index].object.clone(),
            error: ClusterError::bad_request("the name is not valid"),
        };
        let added = Added { refused: vec![refused(0), refused(1)], warnings: Vec::new() };
        let found = concise(&findings(&files, &added, &Arc::default()));
        let place = format!("{}/", directory.path().display());
        insta::assert_snapshot!(found.replace(&place, ""), @r"
objects.yaml:8:16: error[unknown-field]: unknown field `mesage` (spec.rules[0].validate.mesage); did you mean `message`?
objects.yaml:10:1: error[refused]: the name is not valid
");
    }
}
