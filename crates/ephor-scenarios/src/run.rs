//! One scenario: its steps in order, until one fails.
//!
//! What a scenario makes is not taken away here: the place it runs in is swept afterwards ([`crate::sweep`]).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ephor_expr::Value;

use crate::api::Api;
use crate::expression::{Bindings, evaluate, inside, render};
use crate::scenario::{Binding, Configured, Operation, Scenario, ScenarioError, Step, Timeouts};

/// Where a scenario runs.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// The API server.
    pub api: &'a Api,
    /// The environment of commands and scripts.
    pub environment: &'a [(String, String)],
    /// The longest time to wait for something where the scenario itself does not say how long.
    pub patience: Duration,
}

/// Why a scenario failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The step.
    pub step: String,
    /// The operation: `assert policy-assert.yaml`.
    pub operation: String,
    /// What is wrong; several lines.
    pub problem: String,
}

/// A failure of an operation, in words.
pub(crate) type Outcome = Result<(), String>;

/// Runs a scenario to its end or first failure.
pub fn run(scenario: &Scenario, place: &Place<'_>) -> Result<(), Failure> {
    let fail = |problem: String| Failure { step: String::new(), operation: "begin".to_owned(), problem };
    let mut run = Run::begin(scenario, place).map_err(fail)?;
    let mut cleanups = Vec::new();
    let mut result = Ok(());
    for (number, step) in scenario.spec.steps.iter().enumerate() {
        cleanups.push((step.cleanup.clone(), run.bindings.clone()));
        result = run.step(step, number);
        if result.is_err() {
            for operation in &scenario.spec.catch {
                // These only show things to people who watch.
                let _ = run.operation(operation);
            }
            break;
        }
    }
    for (operations, bindings) in cleanups.into_iter().rev() {
        run.bindings = bindings;
        for operation in &operations {
            let _ = run.operation(operation);
        }
    }
    result
}

/// A scenario under way.
pub(crate) struct Run<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) place: &'a Place<'a>,
    pub(crate) namespace: String,
    pub(crate) bindings: Bindings,
    /// A kubeconfig of its own: scripts write into it.
    pub(crate) kubeconfig: tempfile::NamedTempFile,
    configured: Configured,
    step_timeouts: Timeouts,
    step_templating: Option<bool>,
    /// Whether something was applied that works by a schedule.
    pub(crate) scheduled: bool,
}

/// The least patience with what works by a schedule: the shortest schedule is a minute.
const SCHEDULE: Duration = Duration::from_secs(75);

/// What a timeout is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeoutKind {
    Apply,
    Assert,
    Error,
    Delete,
    Exec,
}

impl TimeoutKind {
    fn of(self, timeouts: &Timeouts) -> Option<&str> {
        match self {
            Self::Apply => timeouts.apply.as_deref(),
            Self::Assert => timeouts.assert.as_deref(),
            Self::Error => timeouts.error.as_deref(),
            Self::Delete => timeouts.delete.as_deref(),
            Self::Exec => timeouts.exec.as_deref(),
        }
    }

    /// Upstream's defaults. Scripts get longer: upstream's five seconds only break loaded machines.
    fn usual(self) -> Duration {
        Duration::from_secs(match self {
            Self::Apply => 5,
            Self::Assert | Self::Error | Self::Exec => 30,
            Self::Delete => 15,
        })
    }
}

impl<'a> Run<'a> {
    fn begin(scenario: &'a Scenario, place: &'a Place<'a>) -> Result<Self, String> {
        let namespace = match &scenario.spec.namespace {
            Some(name) => name.clone(),
            None => format!("chainsaw-{}", fresh_name()),
        };
        let mut bindings = Bindings::default()
            .with("namespace", namespace.as_str())
            .with("test", scenario.document.clone())
            // Handles of upstream's runner; functions that take them are answered ahead.
            .with("client", Value::Null)
            .with("config", Value::Null);
        if let Ok(version) = place.api.read("/version") {
            bindings.set("x_k8s_server_version", version);
        }
        let mut run = Self {
            scenario,
            place,
            namespace,
            bindings,
            kubeconfig: own_kubeconfig(place.environment)?,
            configured: Configured::of(&scenario.directory),
            step_timeouts: Timeouts::default(),
            step_templating: None,
            scheduled: false,
        };
        run.ensure_namespace()?;
        run.bind(&scenario.spec.bindings)?;
        Ok(run)
    }

    fn ensure_namespace(&self) -> Outcome {
        let api = self.place.api;
        let kind = api.kind("v1", "Namespace").map_err(|error| error.to_string())?;
        if api.get(&kind, None, &self.namespace).is_ok() {
            return Ok(());
        }
        let object = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}}"#, self.namespace);
        let object = Value::from_json(&object).map_err(|error| error.to_string())?;
        until(Duration::from_secs(20), || {
            api.create(&kind, None, &object).map(drop).map_err(|error| format!("namespace: {error}"))
        })
    }

    fn step(&mut self, step: &Step, number: usize) -> Result<(), Failure> {
        let name = if step.name.is_empty() { format!("step {}", number + 1) } else { step.name.clone() };
        let fail = |operation: String, problem| Failure { step: name.clone(), operation, problem };
        let filled = self.scenario.template(step);
        let filled = filled.map_err(|error: ScenarioError| fail("use".to_owned(), error.to_string()))?;
        let outside = self.bindings.clone();
        self.bind(&filled.bindings).map_err(|problem| fail("bindings".to_owned(), problem))?;
        self.step_timeouts = filled.timeouts.clone();
        self.step_templating = filled.templating;
        let mut result = Ok(());
        for operation in &filled.operations {
            if let Err(problem) = self.operation(operation) {
                result = Err(fail(self.describe(operation), problem));
                for operation in &filled.catch {
                    let _ = self.operation(operation);
                }
                break;
            }
        }
        for operation in &filled.finally {
            let _ = self.operation(operation);
        }
        if step.template.is_some() {
            self.bindings = outside;
        }
        result
    }

    fn operation(&mut self, operation: &Operation) -> Outcome {
        let outside = self.bindings.clone();
        let outputs = self.dispatch(operation);
        self.bindings = outside;
        for (name, value) in outputs? {
            self.bindings.set(&name, value);
        }
        Ok(())
    }

    fn dispatch(&mut self, operation: &Operation) -> Result<Vec<(String, Value)>, String> {
        use crate::write::Verb;
        let Operation { apply, create, update, patch, assert, error, delete, command, script, sleep, wait, .. } =
            operation;
        for (write, verb) in
            [(apply, Verb::Apply), (create, Verb::Create), (update, Verb::Update), (patch, Verb::Patch)]
        {
            if let Some(write) = write {
                return self.write(verb, write);
            }
        }
        let nothing = |()| Vec::new();
        if let Some(check) = assert {
            return self.assert(check).map(nothing);
        }
        if let Some(check) = error {
            return self.assert_absent(check).map(nothing);
        }
        if let Some(delete) = delete {
            return self.delete(delete).map(nothing);
        }
        if let Some(command) = command {
            return self.command(command);
        }
        if let Some(script) = script {
            return self.script(script);
        }
        if let Some(sleep) = sleep {
            std::thread::sleep(parse_duration(&sleep.duration)?);
            return Ok(Vec::new());
        }
        if let Some(wait) = wait {
            return self.wait(wait).map(nothing);
        }
        if [&operation.describe, &operation.events, &operation.get, &operation.pod_logs]
            .iter()
            .any(|shown| shown.is_some())
        {
            return Ok(Vec::new());
        }
        Err("this operation is not known".to_owned())
    }

    /// An operation in a few words.
    fn describe(&self, operation: &Operation) -> String {
        let Operation { apply, create, update, patch, assert, error, delete, command, script, sleep, wait, .. } =
            operation;
        let name = |verb: &str, file: &Option<String>, resource: &Option<Value>| {
            let file = file.as_ref().map(|file| render(&Value::from(file.as_str()), &self.bindings));
            let file = file.as_ref().and_then(Value::as_str).map(str::to_owned);
            format!("{verb} {}", file.or_else(|| resource.as_ref().map(title)).unwrap_or_default())
        };
        for (write, verb) in [(apply, "apply"), (create, "create"), (update, "update"), (patch, "patch")] {
            if let Some(write) = write {
                return name(verb, &write.file, &write.resource);
            }
        }
        for (check, verb) in [(assert, "assert"), (error, "error")] {
            if let Some(check) = check {
                return name(verb, &check.file, &check.resource);
            }
        }
        if let Some(delete) = delete {
            let reference = delete.reference.as_ref();
            let shown = reference.map(|it| format!("{} {}", it.kind, it.name.clone().unwrap_or_default()));
            return format!("delete {}", delete.file.clone().or(shown).unwrap_or_default());
        }
        if let Some(command) = command {
            return format!("command {} {}", command.entrypoint, command.args.join(" "));
        }
        if let Some(script) = script {
            return format!("script {}", script.content.trim().replace('\n', "\n         "));
        }
        if let Some(wait) = wait {
            return format!("wait for {} {}", wait.kind, wait.name.clone().unwrap_or_default());
        }
        if sleep.is_some() { "sleep".to_owned() } else { "operation".to_owned() }
    }

    /// Adds bindings; later ones see earlier ones.
    pub(crate) fn bind(&mut self, bindings: &[Binding]) -> Outcome {
        for binding in bindings {
            let value = self.value(&binding.value)?;
            self.bindings.set(&binding.name, value);
        }
        Ok(())
    }

    /// The value of a binding or variable: an expression that cannot be evaluated is an error here.
    pub(crate) fn value(&self, value: &Value) -> Result<Value, String> {
        match value.as_str().and_then(inside) {
            Some(expression) => {
                // The one function with a handle that needs no arguments otherwise.
                let expression = expression.replace("x_k8s_server_version($config)", "$x_k8s_server_version");
                evaluate(&expression, &Value::Null, &self.bindings).map_err(|error| error.to_string())
            }
            None => Ok(render(value, &self.bindings)),
        }
    }

    /// A text in which expressions are allowed.
    pub(crate) fn text(&self, text: &str) -> Result<String, String> {
        let value = self.value(&Value::from(text))?;
        Ok(value.as_str().map_or_else(|| value.to_json(), str::to_owned))
    }

    /// Whether documents hold expressions.
    pub(crate) fn templating(&self, operation: Option<bool>) -> bool {
        let own = operation.or(self.step_templating).or(self.scenario.spec.template);
        own.or(self.configured.templating).unwrap_or(true)
    }

    /// The documents that an operation is about: of a file, which may be a pattern, or its own.
    pub(crate) fn documents(&self, file: Option<&str>, resource: Option<&Value>) -> Result<Vec<Value>, String> {
        let Some(file) = file else { return Ok(resource.cloned().into_iter().collect()) };
        let file = self.text(file)?;
        let mut documents = Vec::new();
        for path in matching_files(&self.scenario.directory.join(&file)) {
            documents.extend(crate::scenario::read_objects(&path).map_err(|error| error.to_string())?);
        }
        if documents.is_empty() {
            return Err(format!("there is no object in {file}"));
        }
        Ok(documents)
    }

    /// How long an operation may take.
    pub(crate) fn timeout(&self, patience: TimeoutKind, own: Option<&str>) -> Result<Duration, String> {
        let said = own.or(patience.of(&self.step_timeouts)).or(patience.of(&self.scenario.spec.timeouts));
        if let Some(said) = said {
            return parse_duration(said);
        }
        let usual = match patience.of(&self.configured.timeouts) {
            Some(configured) => parse_duration(configured)?.max(if matches!(patience, TimeoutKind::Exec) {
                patience.usual()
            } else {
                Duration::ZERO
            }),
            None => patience.usual(),
        };
        let most = if self.scheduled { self.place.patience.max(SCHEDULE) } else { self.place.patience };
        Ok(usual.min(most))
    }
}

/// Tries until it works or the time is over; the last problem is told.
pub(crate) fn until(patience: Duration, mut attempt: impl FnMut() -> Outcome) -> Outcome {
    let start = Instant::now();
    let mut pause = Duration::from_millis(40);
    loop {
        let Err(problem) = attempt() else { return Ok(()) };
        if start.elapsed() + pause > patience {
            return Err(problem);
        }
        std::thread::sleep(pause);
        pause = (pause * 4 / 3).min(Duration::from_millis(500));
    }
}

/// Kind and name of a document.
pub(crate) fn title(document: &Value) -> String {
    let kind = document.str_at(&["kind"]).unwrap_or("document");
    let name = document.str_at(&["metadata", "name"]).unwrap_or("(any)");
    match document.str_at(&["metadata", "namespace"]) {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// A duration of Go: `1m30s`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = ephor_expr::scalar::duration::Duration::parse(text).map_err(|error| format!("`{text}`: {error}"))?;
    Ok(Duration::from_secs_f64(duration.as_secs_f64().max(0.0)))
}

fn matching_files(path: &std::path::Path) -> Vec<PathBuf> {
    let pattern = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !ephor_expr::scalar::wildcard::has_wildcard(&pattern) {
        return vec![path.to_owned()];
    }
    let entries = path.parent().and_then(|directory| directory.read_dir().ok());
    let paths = entries.into_iter().flatten().filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let fits = |path: &PathBuf| {
        path.file_name().is_some_and(|name| ephor_expr::scalar::wildcard::matches(&pattern, &name.to_string_lossy()))
    };
    let mut found: Vec<PathBuf> = paths.filter(fits).collect();
    found.sort();
    found
}

/// A copy of the kubeconfig in the environment, with the names that upstream's runner gives.
fn own_kubeconfig(environment: &[(String, String)]) -> Result<tempfile::NamedTempFile, String> {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    if let Some((_, path)) = environment.iter().find(|(name, _)| name == "KUBECONFIG") {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let keys = ["name: ", "cluster: ", "user: ", "current-context: "];
        let renamed = keys.iter().fold(text, |text, key| {
            let upstream = format!("{key}chainsaw\n");
            text.replace(&format!("{key}ephor\n"), &upstream).replace(&format!("{key}sandbox\n"), &upstream)
        });
        std::fs::write(file.path(), renamed).map_err(|error| error.to_string())?;
    }
    Ok(file)
}

/// A name that no other run has.
fn fresh_name() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{}", time.as_millis() & 0xff_ffff, NEXT.fetch_add(1, Ordering::Relaxed))
}
