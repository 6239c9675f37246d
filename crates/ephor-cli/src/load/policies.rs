//! Policy files.

use std::sync::Arc;

use ephor_engine::compile::{Program, compile};
use ephor_engine::exceptions::Exception;
use ephor_expr::Value;
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::yaml::{Limits, parse_documents};

use super::files::{expand, read};
use crate::locate::{Located, Origin, SourceFile};

/// A policy that compiled.
#[derive(Debug, Clone)]
pub struct LoadedPolicy {
    /// The compiled policy.
    pub program: Arc<Program>,
    /// The document as written.
    pub document: Value,
    /// Where it stands.
    pub origin: Origin,
}

/// What policy files hold.
#[derive(Debug, Default)]
pub struct LoadedPolicies {
    /// Policies that compiled, in file order.
    pub policies: Vec<LoadedPolicy>,
    /// Policies that were refused.
    pub refused: Vec<Refused>,
    /// Cleanup policies, as documents.
    pub cleanup: Vec<(Value, Origin)>,
    /// Exceptions found beside the policies.
    pub exceptions: Vec<(Exception, Value)>,
    /// Errors and warnings.
    pub findings: Vec<Located>,
}

/// A policy that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// The first error.
    pub reason: String,
}

/// The kinds of `policies.kyverno.io` and Kubernetes that are recognised so that they are refused by name.
const NOT_BUILT: [&str; 14] = [
    "ValidatingPolicy",
    "MutatingPolicy",
    "GeneratingPolicy",
    "DeletingPolicy",
    "ImageValidatingPolicy",
    "NamespacedValidatingPolicy",
    "NamespacedMutatingPolicy",
    "NamespacedGeneratingPolicy",
    "NamespacedDeletingPolicy",
    "NamespacedImageValidatingPolicy",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

const KNOWN: [&str; 5] = ["ClusterPolicy", "Policy", "CleanupPolicy", "ClusterCleanupPolicy", "PolicyException"];

/// Loads the policies that `arguments` (files, directories, globs, `-`) hold. Whatever cannot be loaded is a finding.
pub fn load_policies(arguments: &[String]) -> LoadedPolicies {
    let mut loaded = LoadedPolicies::default();
    for argument in arguments {
        match expand(argument) {
            Ok(paths) => {
                if paths.is_empty() {
                    loaded.findings.push(Located::plain("no-policies", format!("no YAML files under `{argument}`")));
                }
                for path in paths {
                    match read(&path) {
                        Ok(file) => load_file(&file, &mut loaded),
                        Err(error) => loaded.findings.push(Located::plain("unreadable", error.to_string())),
                    }
                }
            }
            Err(error) => loaded.findings.push(Located::plain("unreadable", error.to_string())),
        }
    }
    loaded
}

/// Adds what one file holds.
pub fn load_file(file: &Arc<SourceFile>, loaded: &mut LoadedPolicies) {
    let documents = match parse_documents(&file.text, &Limits::default()) {
        Ok(documents) => documents,
        Err(error) => return loaded.findings.push(Located::of_yaml(error, file)),
    };
    for document in documents {
        let origin = Origin { file: Arc::clone(file), map: Arc::new(document.source) };
        load_document(document.value, origin, loaded);
    }
}

fn load_document(document: Value, origin: Origin, loaded: &mut LoadedPolicies) {
    let kind = document.str_at(&["kind"]).unwrap_or_default();
    let api_version = document.str_at(&["apiVersion"]).unwrap_or_default();
    let at_kind = ephor_expr::value::Path::root().key("kind");
    match (api_version.split('/').next().unwrap_or_default(), kind) {
        ("kyverno.io", "ClusterPolicy" | "Policy") => load_policy(document, origin, loaded),
        ("kyverno.io", "CleanupPolicy" | "ClusterCleanupPolicy") => loaded.cleanup.push((document, origin)),
        ("kyverno.io", "PolicyException") => match Exception::compile(&document) {
            Ok(exception) => loaded.exceptions.push((exception, document)),
            Err(findings) => {
                loaded.findings.extend(findings.into_iter().map(|f| Located::of_diagnostic(f, &origin)));
            }
        },
        ("", "List") | (_, "List") if api_version == "v1" => {
            // Items share the list's origin; their paths are those of the list.
            for item in document.get("items").and_then(Value::as_array).unwrap_or_default() {
                load_document(item.clone(), origin.clone(), loaded);
            }
        }
        (_, kind) if NOT_BUILT.contains(&kind) => {
            let message = format!("kind `{kind}` is not supported yet");
            let name = document.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
            loaded.refused.push(Refused { name, reason: message.clone() });
            let finding = ephor_engine::diagnostic::Diagnostic::error("not-supported", at_kind, message);
            loaded.findings.push(Located::of_diagnostic(finding, &origin));
        }
        (_, kind) => {
            let message = if kind.is_empty() {
                "not a policy: the document has no `kind`".to_owned()
            } else {
                format!("`{api_version}` `{kind}` is not a policy")
            };
            let mut finding = ephor_engine::diagnostic::Diagnostic::error("not-a-policy", at_kind, message);
            finding.help = nearest(kind, KNOWN).map(|near| format!("did you mean `{near}`?"));
            loaded.findings.push(Located::of_diagnostic(finding, &origin));
        }
    }
}

fn load_policy(document: Value, origin: Origin, loaded: &mut LoadedPolicies) {
    let compiled = compile(&document);
    let reason = compiled.findings.iter().find(|f| f.is_error()).map(|f| f.message.clone()).unwrap_or_default();
    loaded.findings.extend(compiled.findings.into_iter().map(|f| Located::of_diagnostic(f, &origin)));
    match compiled.program {
        Some(program) => loaded.policies.push(LoadedPolicy { program: Arc::new(program), document, origin }),
        None => {
            let name = document.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
            loaded.refused.push(Refused { name, reason });
        }
    }
}
