//! Policy files.

use std::path::Path;
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_engine::check::{check_cleanup, check_exception, check_global_context};
use ephor_engine::compile::{
    ADMISSION_GROUP, AdmissionBinding, Compiled, POLICIES_GROUP, Program, compile, compile_admission_policy,
};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::exceptions::Exception;
use ephor_engine::policy::ProgramKind;
use ephor_expr::Value;
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::value::Path as FieldPath;
use ephor_expr::yaml::{Limits, parse_documents};
use ephor_runtime::kinds::{missing_groups, misspelt_kinds, with_api_versions};

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

/// An exception that compiled.
#[derive(Debug)]
pub struct LoadedException {
    /// The compiled exception.
    pub exception: Exception,
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
    /// The files that were read.
    pub files: Vec<Arc<SourceFile>>,
    /// Kubernetes' own admission policies, as documents: they are compiled when all bindings are known.
    admission: Vec<(Value, Origin)>,
    /// Bindings of such policies, with their places.
    bindings: Vec<(AdmissionBinding, Origin)>,
    /// Global context entries, as documents.
    pub globals: Vec<(Value, Origin)>,
    /// Exceptions found beside the policies.
    pub exceptions: Vec<LoadedException>,
    /// How many documents of directories were passed over because they are about something else.
    pub passed_over: usize,
    /// Errors and warnings.
    pub findings: Vec<Located>,
    /// The kinds that are served where the policies are to be.
    served: Arc<Discovery>,
}

/// A policy that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// The first error.
    pub reason: String,
}

/// What to do with a document that is nothing for the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    /// The user named the file: it is an error.
    Refused,
    /// It lies in a directory that the user named: it is counted, unless it looks like a policy gone wrong.
    PassedOver,
}

/// The kinds of policies and of what belongs to them.
const KNOWN: [&str; 6] =
    ["ClusterPolicy", "Policy", "CleanupPolicy", "ClusterCleanupPolicy", "PolicyException", "GlobalContextEntry"];

/// Kubernetes' own policies.
const ADMISSION: [&str; 4] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// The kinds of `policies.kyverno.io` and Kubernetes that are recognised so that they are refused by name.
const NOT_BUILT: [&str; 2] = ["ImageValidatingPolicy", "NamespacedImageValidatingPolicy"];

/// Whether policies of this kind of `policies.kyverno.io` are evaluated.
fn is_cel(kind: &str) -> bool {
    ProgramKind::parse(kind).is_some_and(ProgramKind::is_of_cel)
}

/// Whether [`load_policies`] knows what to do with a kind.
pub(super) fn is_policy_kind(kind: &str) -> bool {
    KNOWN.contains(&kind) || is_cel(kind) || ADMISSION.contains(&kind) || NOT_BUILT.contains(&kind)
}

/// Loads the policies that `arguments` (files, directories, globs, `-`) hold, for where `served` is
/// served. Whatever cannot be loaded is a finding.
pub fn load_policies(arguments: &[String], served: Arc<Discovery>) -> LoadedPolicies {
    let mut loaded = LoadedPolicies::for_served(served);
    for argument in arguments {
        let foreign = if Path::new(argument).is_dir() { Foreign::PassedOver } else { Foreign::Refused };
        match expand(argument) {
            Ok(paths) => {
                if paths.is_empty() {
                    loaded.findings.push(Located::plain("no-policies", format!("no YAML files under `{argument}`")));
                }
                for path in paths {
                    match read(&path) {
                        Ok(file) => load_documents(&file, foreign, &mut loaded),
                        Err(error) => loaded.findings.push(Located::of_read(error)),
                    }
                }
            }
            Err(error) => loaded.findings.push(Located::of_read(error)),
        }
    }
    loaded.link();
    loaded.warn_of_unused_bindings();
    loaded
}

/// Adds what one file holds.
pub fn load_file(file: &Arc<SourceFile>, loaded: &mut LoadedPolicies) {
    load_documents(file, Foreign::Refused, loaded);
    loaded.link();
}

/// What `ephor check` says of one document; nothing if the document is no policy.
pub fn check_document(document: &Value, origin: &Origin, served: Arc<Discovery>) -> Vec<Located> {
    if !is_policy_kind(document.str_at(&["kind"]).unwrap_or_default()) {
        return Vec::new();
    }
    let mut loaded = LoadedPolicies::for_served(served);
    load_document(document.clone(), origin.clone(), Foreign::PassedOver, &mut loaded);
    loaded.link();
    loaded.findings
}

fn load_documents(file: &Arc<SourceFile>, foreign: Foreign, loaded: &mut LoadedPolicies) {
    loaded.files.push(Arc::clone(file));
    let documents = match parse_documents(&file.text, &Limits::default()) {
        Ok(documents) => documents,
        Err(error) => return loaded.findings.push(Located::of_yaml(error, file)),
    };
    for document in documents {
        let origin = Origin { file: Arc::clone(file), map: Arc::new(document.source) };
        load_document(document.value, origin, foreign, loaded);
    }
}

fn load_document(document: Value, origin: Origin, foreign: Foreign, loaded: &mut LoadedPolicies) {
    let kind = document.str_at(&["kind"]).unwrap_or_default();
    let api_version = document.str_at(&["apiVersion"]).unwrap_or_default();
    let group = api_version.split('/').next().unwrap_or_default();
    match (group, kind) {
        ("kyverno.io", "ClusterPolicy" | "Policy") => load_policy(document, origin, loaded),
        ("kyverno.io", "CleanupPolicy" | "ClusterCleanupPolicy") => {
            loaded.report(check_cleanup(&document), &origin);
            loaded.report(misspelt_kinds(&document, &loaded.served), &origin);
            loaded.cleanup.push((document, origin));
        }
        ("kyverno.io", "GlobalContextEntry") => {
            loaded.report(check_global_context(&document), &origin);
            loaded.globals.push((document, origin));
        }
        (POLICIES_GROUP, kind) if is_cel(kind) => {
            loaded.add(compile(&document), document, origin);
        }
        (POLICIES_GROUP, "PolicyException") => match Exception::compile(&document) {
            Ok(exception) => loaded.exceptions.push(LoadedException { exception, document, origin }),
            Err(findings) => loaded.report(findings, &origin),
        },
        ("kyverno.io", "PolicyException") => match Exception::compile(&document) {
            Ok(exception) => {
                loaded.report(check_exception(&document), &origin);
                loaded.report(misspelt_kinds(&document, &loaded.served), &origin);
                loaded.exceptions.push(LoadedException { exception, document, origin });
            }
            Err(findings) => loaded.report(findings, &origin),
        },
        (ADMISSION_GROUP, "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy") => {
            loaded.admission.push((document, origin));
        }
        (ADMISSION_GROUP, "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding") => {
            let (binding, findings) = AdmissionBinding::of_document(&document);
            if let Some(reason) = findings.iter().find(|finding| finding.is_error()) {
                let name = document.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
                loaded.refused.push(Refused { name, reason: reason.message.clone() });
            }
            loaded.report(findings, &origin);
            loaded.bindings.extend(binding.map(|binding| (binding, origin)));
        }
        ("v1", "List") => {
            let items = FieldPath::root().key("items");
            for (i, item) in document.get("items").and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
                let map = origin.map.part(&items.index(i)).map_or_else(|| Arc::clone(&origin.map), Arc::new);
                load_document(item.clone(), Origin { file: Arc::clone(&origin.file), map }, foreign, loaded);
            }
        }
        (_, kind) if NOT_BUILT.contains(&kind) => {
            let message = format!("kind `{kind}` is not supported yet");
            let name = document.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
            loaded.refused.push(Refused { name, reason: message.clone() });
            loaded.report(vec![Diagnostic::error("not-supported", FieldPath::root().key("kind"), message)], &origin);
        }
        (group, kind) => {
            let near = nearest(kind, KNOWN);
            if foreign == Foreign::PassedOver && group != "kyverno.io" && near.is_none() {
                loaded.passed_over += 1;
                return;
            }
            let (key, message) = match (kind, near) {
                ("", _) => ("kind", "not a policy: the document has no `kind`".to_owned()),
                (kind, Some(near)) if kind == near && api_version.is_empty() => {
                    ("kind", "the document has no `apiVersion`".to_owned())
                }
                (kind, Some(near)) if kind == near => {
                    ("apiVersion", format!("`{api_version}` is not the group of kind `{kind}`"))
                }
                (kind, _) => ("kind", format!("`{api_version}` `{kind}` is not a policy")),
            };
            let mut finding = Diagnostic::error("not-a-policy", FieldPath::root().key(key), message);
            finding.help = match near {
                Some(near) if near == kind => Some("policies are of the group `kyverno.io`".to_owned()),
                Some(near) => Some(format!("did you mean `{near}`?")),
                None => None,
            };
            loaded.report(vec![finding], &origin);
        }
    }
}

impl LoadedPolicies {
    /// Nothing yet, for where `served` is served.
    pub fn for_served(served: Arc<Discovery>) -> Self {
        Self { served, ..Self::default() }
    }

    fn report(&mut self, found: Vec<Diagnostic>, origin: &Origin) {
        self.findings.extend(found.into_iter().map(|finding| Located::of_diagnostic(finding, origin)));
    }

    /// Compiles the admission policies read so far with the bindings read so far.
    fn link(&mut self) {
        let bindings: Vec<AdmissionBinding> = self.bindings.iter().map(|(binding, _)| binding.clone()).collect();
        for (document, origin) in std::mem::take(&mut self.admission) {
            self.add(compile_admission_policy(&document, &bindings), document, origin);
        }
    }

    /// A binding without its policy does nothing.
    fn warn_of_unused_bindings(&mut self) {
        let mut found = Vec::new();
        for (binding, origin) in &self.bindings {
            let of_kind = || self.policies.iter().filter(|policy| policy.program.id.kind == binding.kind);
            let known = || of_kind().map(|policy| policy.program.id.name.as_str());
            let refused = self.refused.iter().any(|refused| binding.policy == refused.name.as_str());
            if !refused && !known().any(|name| binding.policy == name) {
                let message = format!("the policy `{}` is not among those loaded", binding.policy);
                let path = FieldPath::root().keys(&["spec", "policyName"]);
                let mut finding = Diagnostic::warning("unused-binding", path, message);
                finding.help = nearest(&binding.policy, known()).map(|near| format!("did you mean `{near}`?"));
                found.push(Located::of_diagnostic(finding, origin));
            }
        }
        self.findings.extend(found);
    }

    /// Adds a policy that compiled, or notes that it is refused.
    fn add(&mut self, compiled: Compiled, document: Value, origin: Origin) {
        let reason = compiled.findings.iter().find(|f| f.is_error()).map(|f| f.message.clone());
        self.report(compiled.findings, &origin);
        if let (Some(program), None) = (compiled.program, &reason) {
            self.policies.push(LoadedPolicy { program: Arc::new(program), document, origin });
        } else {
            let name = document.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
            self.refused.push(Refused { name, reason: reason.unwrap_or_default() });
        }
    }
}

fn load_policy(document: Value, origin: Origin, loaded: &mut LoadedPolicies) {
    // A target that leaves its group to discovery gets it as in a cluster.
    let completed = with_api_versions(&document, &loaded.served);
    let mut compiled = compile(completed.as_ref().unwrap_or(&document));
    let findings = &mut compiled.findings;
    for finding in missing_groups(&document, &loaded.served) {
        findings.retain(|general| general.code != finding.code || general.path != finding.path);
        findings.push(finding);
    }
    findings.extend(misspelt_kinds(&document, &loaded.served));
    loaded.add(compiled, document, origin);
}
