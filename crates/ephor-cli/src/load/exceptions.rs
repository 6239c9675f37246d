//! Files of exceptions.

use std::sync::Arc;

use ephor_engine::compile::POLICIES_GROUP;
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::exceptions::Exception;
use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_expr::yaml::{Limits, parse_documents};

use super::files::{expand, read};
use super::lists::expand_lists;
use super::policies::LoadedException;
use crate::locate::{Located, Origin, SourceFile};

/// Exceptions that compiled, in file order, and what is wrong with the others.
#[derive(Debug, Default)]
pub struct LoadedExceptions {
    /// The exceptions.
    pub exceptions: Vec<LoadedException>,
    /// Errors.
    pub findings: Vec<Located>,
}

impl LoadedExceptions {
    /// Adds what `other` holds.
    pub fn merge(&mut self, other: Self) {
        self.exceptions.extend(other.exceptions);
        self.findings.extend(other.findings);
    }
}

/// Loads the exceptions that `arguments` (files, directories, globs) hold. A document of any other kind is an error.
pub fn load_exceptions(arguments: &[String]) -> LoadedExceptions {
    collect(arguments, false)
}

/// Picks the exceptions out of files that hold other objects too.
pub fn pick_exceptions(arguments: &[String]) -> LoadedExceptions {
    collect(arguments, true)
}

/// Picks the exceptions out of a text that holds other objects too. Invalid YAML holds none.
pub fn pick_exceptions_in(file: &Arc<SourceFile>) -> LoadedExceptions {
    let mut loaded = LoadedExceptions::default();
    load_text(file, true, &mut loaded);
    loaded
}

fn collect(arguments: &[String], others: bool) -> LoadedExceptions {
    let mut loaded = LoadedExceptions::default();
    for argument in arguments {
        let paths = match expand(argument) {
            Ok(paths) => paths,
            Err(error) => {
                loaded.findings.push(Located::plain("unreadable", error.to_string()));
                continue;
            }
        };
        for path in paths {
            match read(&path) {
                Ok(file) => load_text(&file, others, &mut loaded),
                Err(error) => loaded.findings.push(Located::plain("unreadable", error.to_string())),
            }
        }
    }
    loaded
}

fn load_text(file: &Arc<SourceFile>, others: bool, loaded: &mut LoadedExceptions) {
    if others && !file.text.contains("PolicyException") {
        return;
    }
    let documents = match parse_documents(&file.text, &Limits::default()) {
        Ok(documents) => documents,
        // The loader of the other objects reports the fault.
        Err(_) if others => return,
        Err(error) => return loaded.findings.push(Located::of_yaml(error, file)),
    };
    for document in documents {
        let origin = Origin { file: Arc::clone(file), map: Arc::new(document.source) };
        for object in expand_lists(document.value) {
            load_object(object, &origin, others, loaded);
        }
    }
}

fn load_object(object: Value, origin: &Origin, others: bool, loaded: &mut LoadedExceptions) {
    let kind = object.str_at(&["kind"]).unwrap_or_default();
    let api_version = object.str_at(&["apiVersion"]).unwrap_or_default();
    let at_kind = Path::root().key("kind");
    let finding = match (api_version.split('/').next().unwrap_or_default(), kind) {
        ("kyverno.io" | POLICIES_GROUP, "PolicyException") => match Exception::compile(&object) {
            Ok(exception) => {
                let origin = origin.clone();
                return loaded.exceptions.push(LoadedException { exception, document: object, origin });
            }
            Err(findings) => {
                let located = findings.into_iter().map(|finding| Located::of_diagnostic(finding, origin));
                return loaded.findings.extend(located);
            }
        },
        _ if others => return,
        (_, "") => Diagnostic::error("not-an-exception", Path::root(), "not an exception: the document has no `kind`"),
        _ => {
            let message = format!("`{api_version}` `{kind}` is not an exception");
            Diagnostic::error("not-an-exception", at_kind, message)
                .with_help("expected `kyverno.io/v2` `PolicyException`")
        }
    };
    loaded.findings.push(Located::of_diagnostic(finding, origin));
}
