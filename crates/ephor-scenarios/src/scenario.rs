//! `chainsaw-test.yaml` files as data.
//!
//! Everything that is not known here is refused: a scenario of which a part is left out would pass for nothing.

use std::path::{Path, PathBuf};

use ephor_expr::value::decode;
use ephor_expr::{Value, yaml};
use serde::Deserialize;

/// A scenario and where it is.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The directory that its files are relative to.
    pub directory: PathBuf,
    /// The document itself, as `$test`.
    pub document: Value,
    /// What to do.
    pub spec: Spec,
}

/// Why a file is no scenario.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ScenarioError {
    path: PathBuf,
    problem: String,
}

/// `spec` of a test.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Spec {
    description: Option<String>,
    concurrent: Option<bool>,
    force_termination_grace_period: Option<String>,
    delay_before_cleanup: Option<String>,
    skip_delete: Option<bool>,
    /// Upstream leaves it out too.
    pub skip: bool,
    /// Where objects without namespace go; without it, a new one.
    pub namespace: Option<String>,
    /// Whether documents hold expressions.
    pub template: Option<bool>,
    /// Values for expressions.
    pub bindings: Vec<Binding>,
    /// How long operations may take.
    pub timeouts: Timeouts,
    /// What to do, in order.
    pub steps: Vec<Step>,
    /// What to do after a failure.
    pub catch: Vec<Operation>,
}

/// A named value.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// The name, without `$`.
    pub name: String,
    /// The value, or an expression.
    pub value: Value,
}

/// How long operations may take, as durations of Go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Timeouts {
    /// Apply, create, update, patch.
    pub apply: Option<String>,
    /// Assert.
    pub assert: Option<String>,
    /// Clean up.
    pub cleanup: Option<String>,
    /// Delete.
    pub delete: Option<String>,
    /// Error.
    pub error: Option<String>,
    /// Commands, scripts and waiting.
    pub exec: Option<String>,
}

/// One step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Step {
    description: Option<String>,
    skip_delete: Option<bool>,
    /// Its name.
    pub name: String,
    /// A template instead of operations.
    #[serde(rename = "use")]
    pub template: Option<Use>,
    /// Whether documents hold expressions.
    #[serde(rename = "template")]
    pub templating: Option<bool>,
    /// Values for expressions.
    pub bindings: Vec<Binding>,
    /// How long operations may take.
    pub timeouts: Timeouts,
    /// What to do, in order; the first failure ends the scenario.
    #[serde(rename = "try")]
    pub operations: Vec<Operation>,
    /// What to do after a failure.
    pub catch: Vec<Operation>,
    /// What to do after that, failure or not.
    pub finally: Vec<Operation>,
    /// What to do at the end of the scenario.
    pub cleanup: Vec<Operation>,
}

/// A step template and its values.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Use {
    /// The file, relative to the scenario.
    pub template: String,
    /// Values for its expressions.
    #[serde(default)]
    pub with: With,
}

/// Values for a step template.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct With {
    /// The values.
    pub bindings: Vec<Binding>,
}

/// One operation; exactly one of the members that are verbs is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Operation {
    description: Option<String>,
    /// Creates or merges objects.
    pub apply: Option<Write>,
    /// Creates objects.
    pub create: Option<Write>,
    /// Replaces objects.
    pub update: Option<Write>,
    /// Merges into objects that exist.
    pub patch: Option<Write>,
    /// Waits until an object is as described.
    pub assert: Option<Check>,
    /// Waits until no object is as described.
    pub error: Option<Check>,
    /// Deletes objects and waits until they are gone.
    pub delete: Option<Delete>,
    /// Runs a program.
    pub command: Option<Command>,
    /// Runs a shell script.
    pub script: Option<Script>,
    /// Waits for a time.
    pub sleep: Option<Sleep>,
    /// Waits for a condition of objects.
    pub wait: Option<Wait>,
    /// Shows objects, for people.
    pub describe: Option<Value>,
    /// Shows Events, for people.
    pub events: Option<Value>,
    /// Shows objects, for people.
    pub get: Option<Value>,
    /// Shows logs, for people.
    pub pod_logs: Option<Value>,
}

/// Objects to write.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Write {
    /// A file with objects.
    pub file: Option<String>,
    /// An object.
    pub resource: Option<Value>,
    /// The expected result; success by default.
    pub expect: Vec<Expectation>,
    /// How long to try.
    pub timeout: Option<String>,
    /// Whether the objects hold expressions.
    pub template: Option<bool>,
    /// Values for them.
    pub bindings: Vec<Binding>,
    /// Values to keep.
    pub outputs: Vec<Binding>,
    /// Write nothing.
    pub dry_run: Option<bool>,
}

/// The expected result of a write.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// Which objects are meant; all without it.
    #[serde(rename = "match")]
    pub objects: Option<Value>,
    /// An assertion tree over the object; `$error` is bound.
    pub check: Value,
}

/// Objects to look for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Check {
    /// A file with assertion trees.
    pub file: Option<String>,
    /// An assertion tree.
    pub resource: Option<Value>,
    /// How long to wait.
    pub timeout: Option<String>,
    /// Whether the names in it are expressions.
    pub template: Option<bool>,
    /// Values for expressions.
    pub bindings: Vec<Binding>,
}

/// Objects to delete.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Delete {
    /// A file with objects.
    pub file: Option<String>,
    /// Which ones.
    #[serde(rename = "ref")]
    pub reference: Option<Reference>,
    /// The expected result; success by default.
    pub expect: Vec<Expectation>,
    /// How long to wait.
    pub timeout: Option<String>,
    /// Whether the names in it are expressions.
    pub template: Option<bool>,
    /// Values for expressions.
    pub bindings: Vec<Binding>,
    /// What happens to owned objects.
    pub deletion_propagation_policy: Option<String>,
}

/// Objects by name or labels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Reference {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name; without, all with the labels.
    pub name: Option<String>,
    /// The namespace; without, the scenario's.
    pub namespace: Option<String>,
    /// Labels.
    pub labels: std::collections::BTreeMap<String, String>,
}

/// A program to run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Command {
    /// The program.
    pub entrypoint: String,
    /// Its arguments, which may be expressions.
    pub args: Vec<String>,
    /// How long it may take.
    pub timeout: Option<String>,
    /// The expected exit status; 0 by default.
    pub check: Option<Value>,
    /// Variables for it.
    pub env: Vec<Binding>,
    /// Values for expressions.
    pub bindings: Vec<Binding>,
    /// Values to keep.
    pub outputs: Vec<Binding>,
    skip_log_output: Option<bool>,
}

/// A shell script to run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Script {
    /// Its text.
    pub content: String,
    /// How long it may take.
    pub timeout: Option<String>,
    /// The expected exit status; 0 by default.
    pub check: Option<Value>,
    /// Variables for it.
    pub env: Vec<Binding>,
    /// Values for expressions.
    pub bindings: Vec<Binding>,
    /// Values to keep.
    pub outputs: Vec<Binding>,
    skip_log_output: Option<bool>,
}

/// A time to wait.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sleep {
    /// How long.
    pub duration: String,
}

/// A condition to wait for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wait {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name; without, all with the labels.
    pub name: Option<String>,
    /// The namespace; without, the scenario's.
    pub namespace: Option<String>,
    /// A label selector.
    pub selector: Option<String>,
    /// How long to wait.
    pub timeout: Option<String>,
    format: Option<String>,
    /// What for.
    #[serde(rename = "for")]
    pub condition: WaitFor,
}

/// What to wait for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WaitFor {
    /// A condition of the status.
    pub condition: Option<Condition>,
    /// The end of the objects.
    pub deletion: Option<Value>,
}

/// A condition of the status.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    /// Its type.
    pub name: String,
    /// Its status, `true` without.
    pub value: Option<String>,
}

impl Scenario {
    /// Reads a `chainsaw-test.yaml` file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let document = read_one(path, "Test")?;
        let spec = decode_spec(path, &document)?;
        let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self { directory, document, spec })
    }

    /// The steps, templates filled in: a template's file, and what of it to do.
    pub fn template(&self, step: &Step) -> Result<Step, ScenarioError> {
        let Some(template) = &step.template else { return Ok(step.clone()) };
        // The name may begin with a slash and is relative all the same.
        let path = self.directory.join(template.template.trim_start_matches('/'));
        let document = read_one(&path, "StepTemplate")?;
        let mut filled: Step = decode_spec(&path, &document)?;
        filled.name.clone_from(&step.name);
        filled.bindings.extend(step.bindings.iter().cloned());
        filled.bindings.extend(template.with.bindings.iter().cloned());
        filled.timeouts = step.timeouts.clone();
        Ok(filled)
    }
}

/// What the nearest `.chainsaw.yaml` at or above a directory says.
#[derive(Clone, Debug, Default)]
pub struct Configured {
    /// How long operations may take.
    pub timeouts: Timeouts,
    /// Whether documents hold expressions.
    pub templating: Option<bool>,
}

impl Configured {
    /// For the scenarios of a directory.
    pub fn of(directory: &Path) -> Self {
        let found = directory.ancestors().map(|above| above.join(".chainsaw.yaml")).find(|path| path.is_file());
        let document = found.and_then(|path| read_one(&path, "Configuration").ok()).unwrap_or_default();
        let timeouts = document.at(&["spec", "timeouts"]).and_then(|timeouts| decode(timeouts).ok());
        Self {
            timeouts: timeouts.unwrap_or_default(),
            templating: document.at(&["spec", "templating", "enabled"]).and_then(Value::as_bool),
        }
    }
}

/// The objects of a YAML file.
pub fn read_objects(path: &Path) -> Result<Vec<Value>, ScenarioError> {
    let fail = |problem: String| ScenarioError { path: path.to_owned(), problem };
    let mut text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    // Kubernetes' readers end each line with a line break, the last one too.
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let options = yaml::Options { duplicate_keys: yaml::DuplicateKeys::LastWins, ..yaml::Options::default() };
    let values = options.values(&text).map_err(|error| fail(error.to_string()))?;
    Ok(values.into_iter().filter(|value| !value.is_null()).flat_map(items_of_list).collect())
}

fn items_of_list(value: Value) -> Vec<Value> {
    // A list need not say that it is one.
    match (value.str_at(&["kind"]), value.get("items").and_then(Value::as_array)) {
        (Some("List") | None, Some(items)) => items.to_vec(),
        _ => vec![value],
    }
}

fn read_one(path: &Path, kind: &str) -> Result<Value, ScenarioError> {
    let fail = |problem: String| ScenarioError { path: path.to_owned(), problem };
    let documents = read_objects(path)?;
    match documents.as_slice() {
        [one] if one.str_at(&["kind"]) == Some(kind) => Ok(one.clone()),
        _ => Err(fail(format!("expected one document of kind {kind}"))),
    }
}

fn decode_spec<T: serde::de::DeserializeOwned>(path: &Path, document: &Value) -> Result<T, ScenarioError> {
    let spec = document.get("spec").cloned().unwrap_or_default();
    decode(&spec).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(|fault| format!("spec.{}: {fault}", fault.path)).collect();
        ScenarioError { path: path.to_owned(), problem: faults.join("; ") }
    })
}
