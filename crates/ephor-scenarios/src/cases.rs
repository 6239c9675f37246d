//! The scenarios that there are, and which of them can be run.
//!
//! What a scenario needs is read from its files; what is not built yet, and what no test machine has (running
//! containers, registries), puts it out of scope with that as the reason. Nothing is left out in silence.

use std::fmt;
use std::path::{Path, PathBuf};

use ephor_expr::Value;

use crate::scenario::read_objects;

/// A scenario to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its directory below the conformance folder: `chainsaw/generate/…`.
    pub name: String,
    /// The `chainsaw-test.yaml`.
    pub file: PathBuf,
    /// Which part of an engine it is about.
    pub area: Area,
    /// Why it is not run, if so.
    pub excluded: Option<Reason>,
}

/// Which part of an engine a scenario is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// What happens while a request waits, and what is needed for that.
    Admission,
    /// Objects made and kept in sync.
    Generate,
    /// Existing objects changed.
    MutateExisting,
}

/// Why a scenario is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Policies of `policies.kyverno.io` that are not carried out yet.
    CelPolicies,
    /// `verifyImages` and signed manifests.
    Signatures,
    /// Data of images from their registries.
    Registries,
    /// Events of scans.
    ScanEvents,
    /// Admission policies of Kubernetes, generated.
    NativePolicies,
    /// Containers that run, or the engine's own Pods.
    Containers,
    /// The command line against a cluster.
    CommandLine,
    /// Other software in the cluster.
    OtherSoftware,
    /// Scripts that did not come with the scenario.
    MissingFiles,
    /// Upstream skips it.
    SkippedUpstream,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admission => "admission",
            Self::Generate => "generate",
            Self::MutateExisting => "mutate-existing",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CelPolicies => "policies of policies.kyverno.io that generate, verify images or change what exists",
            Self::Signatures => "signatures of images and manifests",
            Self::Registries => "image registries",
            Self::ScanEvents => "Events of scans",
            Self::NativePolicies => "reports about admission policies of Kubernetes, and mutating ones of `v1`",
            Self::Containers => "running containers",
            Self::CommandLine => "the command line against a cluster",
            Self::OtherSoftware => "other software in the cluster",
            Self::MissingFiles => "scripts that are not available offline",
            Self::SkippedUpstream => "skipped upstream",
        })
    }
}

/// Folders whose every scenario needs the same.
const FOLDERS: [(&str, Reason); 13] = [
    ("chainsaw/cli/", Reason::CommandLine),
    ("chainsaw/lease/", Reason::Containers),
    ("chainsaw/validating-admission-policy-reports/", Reason::NativePolicies),
    ("chainsaw/mutating-admission-policy-reports", Reason::NativePolicies),
    ("chainsaw/reports/background/validating-admission-policy-exclude", Reason::NativePolicies),
    ("chainsaw/verify-manifests/", Reason::Signatures),
    ("chainsaw/flags/", Reason::Containers),
    // A service that a container answers.
    ("chainsaw/deleting-policies/cel-lib/http-lib", Reason::Containers),
    // A container that fails, a Pod that is bound to a Node.
    ("policies/other/get-debug-information/", Reason::Containers),
    ("policies/other/scale-deployment-zero/", Reason::Containers),
    ("policies/other/mutate-pod-binding/", Reason::Containers),
    ("policies/other/require-image-checksum/", Reason::Containers),
    ("chainsaw/validate/clusterpolicy/cornercases/external-metrics", Reason::OtherSoftware),
];

/// The scenarios below a conformance folder whose names are meant, by name.
pub fn find(conformance: &Path, meant: &dyn Fn(&str) -> bool) -> std::io::Result<Vec<Case>> {
    let mut files = Vec::new();
    for part in ["chainsaw", "policies"] {
        collect(&conformance.join(part), &mut files)?;
    }
    files.sort();
    Ok(files.into_iter().filter_map(|file| case(conformance, file, meant)).collect())
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.file_name().is_some_and(|name| name == "chainsaw-test.yaml") {
            found.push(path);
        }
    }
    Ok(())
}

fn case(conformance: &Path, file: PathBuf, meant: &dyn Fn(&str) -> bool) -> Option<Case> {
    let directory = file.parent()?;
    let name = directory.strip_prefix(conformance).ok()?.to_str()?.to_owned();
    if !meant(&name) {
        return None;
    }
    let mut needs = Needs::default();
    needs.read(directory);
    // Scenarios of the policy library lie beside their policy.
    if name.rsplit('/').next().is_some_and(|last| last.starts_with(".chainsaw-test")) {
        needs.read(directory.parent()?);
    }
    let folder = FOLDERS.iter().find(|(folder, _)| name.starts_with(folder)).map(|(_, reason)| *reason);
    let excluded = folder.or_else(|| needs.reasons.iter().min().copied());
    let area = if needs.generate {
        Area::Generate
    } else if needs.mutate_existing {
        Area::MutateExisting
    } else {
        Area::Admission
    };
    Some(Case { name, file, area, excluded })
}

/// What the documents of a scenario use.
#[derive(Debug, Default)]
struct Needs {
    reasons: Vec<Reason>,
    generate: bool,
    mutate_existing: bool,
}

impl Needs {
    fn read(&mut self, directory: &Path) {
        let Ok(entries) = directory.read_dir() else { return };
        for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            if path.extension().is_some_and(|extension| extension == "yaml") {
                // What is no YAML makes the scenario fail, not this.
                for document in read_objects(&path).unwrap_or_default() {
                    self.document(&document, directory);
                }
            }
        }
    }

    fn document(&mut self, document: &Value, directory: &Path) {
        let text = |key: &str| document.str_at(&[key]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        match (api_version.split('/').next().unwrap_or_default(), kind) {
            ("policies.kyverno.io", kind) => self.cel_policy(kind, document),
            // The API server has them in versions before `v1`.
            ("admissionregistration.k8s.io", kind)
                if kind.starts_with("MutatingAdmissionPolicy") && api_version.ends_with("/v1") =>
            {
                self.reasons.push(Reason::NativePolicies);
            }
            ("kyverno.io", "ClusterPolicy" | "Policy") => self.policy(document),
            (_, "Event") if is_of_scan(document) => self.reasons.push(Reason::ScanEvents),
            ("v1", "Pod") if shows_running(document) => self.reasons.push(Reason::Containers),
            ("apps", "Deployment") if document.at(&["status", "readyReplicas"]).is_some() => {
                self.reasons.push(Reason::Containers);
            }
            ("chainsaw.kyverno.io", "Test") => self.test(document, directory),
            _ => {}
        }
    }

    fn policy(&mut self, policy: &Value) {
        for rule in policy.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default() {
            if rule.get("verifyImages").is_some() || rule.at(&["validate", "manifests"]).is_some() {
                self.reasons.push(Reason::Signatures);
            }
            if mentions(rule, "imageRegistry") {
                self.reasons.push(Reason::Registries);
            }
            self.generate |= rule.get("generate").is_some();
            self.mutate_existing |= rule.at(&["mutate", "targets"]).is_some();
        }
    }

    fn cel_policy(&mut self, kind: &str, policy: &Value) {
        match kind.strip_prefix("Namespaced").unwrap_or(kind) {
            "ValidatingPolicy" | "DeletingPolicy" | "PolicyException" => {}
            "GeneratingPolicy" => self.generate = true,
            "MutatingPolicy" => {
                let existing = policy.at(&["spec", "evaluation", "mutateExisting", "enabled"]);
                if existing.and_then(Value::as_bool) == Some(true)
                    || policy.at(&["spec", "targetMatchConstraints"]).is_some()
                {
                    self.reasons.push(Reason::CelPolicies);
                }
            }
            _ => self.reasons.push(Reason::CelPolicies),
        }
        let text = policy.to_json();
        if text.contains("image.GetMetadata") || text.contains("image.get_metadata") {
            self.reasons.push(Reason::Registries);
        }
    }

    fn test(&mut self, test: &Value, directory: &Path) {
        if test.at(&["spec", "skip"]).and_then(Value::as_bool) == Some(true) {
            self.reasons.push(Reason::SkippedUpstream);
        }
        let steps = test.at(&["spec", "steps"]).and_then(Value::as_array).unwrap_or_default();
        let operations = steps.iter().filter_map(|step| step.get("try").and_then(Value::as_array)).flatten();
        for operation in operations {
            let script = operation.str_at(&["script", "content"]).unwrap_or_default();
            let arguments = operation.at(&["command", "args"]).and_then(Value::as_array).unwrap_or_default();
            let checked = ["command", "script"].iter().any(|kind| operation.at(&[kind, "check"]).is_some());
            let waits = operation.str_at(&["wait", "for", "condition", "name"]) == Some("Ready");
            let needs_pods =
                ["rollout status", "kubectl logs", "kubectl cp", "--for=condition=ready", "--for=condition=Ready"];
            // A script that is checked may be about a refusal, which comes before there is anything to run.
            let enters = script.trim_start().starts_with("kubectl exec")
                || arguments.first().and_then(Value::as_str) == Some("exec");
            if waits || (enters && !checked) || needs_pods.iter().any(|part| script.contains(part)) {
                self.reasons.push(Reason::Containers);
            }
            if script.split_whitespace().any(|word| is_missing_script(word, directory)) {
                self.reasons.push(Reason::MissingFiles);
            }
            for check in ["assert", "error"] {
                if let Some(resource) = operation.at(&[check, "resource"]) {
                    self.document(resource, directory);
                }
            }
        }
    }
}

/// Whether a word of a script calls one that lies beside the scenario, and does not.
fn is_missing_script(word: &str, directory: &Path) -> bool {
    let path = Path::new(word.trim_end_matches(';'));
    path.starts_with("./")
        && path.extension().is_some_and(|extension| extension == "sh")
        && !directory.join(path).is_file()
}

/// Whether an Event comes from a scan of what exists.
fn is_of_scan(event: &Value) -> bool {
    let component = event.str_at(&["source", "component"]).or(event.str_at(&["reportingComponent"]));
    component == Some("kyverno-scan")
}

/// Whether a Pod is described as one that runs.
fn shows_running(pod: &Value) -> bool {
    pod.str_at(&["status", "phase"]).is_some_and(|phase| phase == "Running" || phase == "Succeeded")
        || pod.get("status").is_some_and(|status| mentions(status, "containerStatuses"))
}

/// Whether a member of that name is anywhere in a document.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| key.contains(name) || mentions(value, name)),
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        _ => false,
    }
}
