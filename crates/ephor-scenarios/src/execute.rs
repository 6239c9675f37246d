//! Commands and scripts.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ephor_expr::Value;

use crate::assertion::mismatches;
use crate::expression::{evaluate, inside};
use crate::run::{Run, TimeoutKind};
use crate::scenario::{self, Binding};

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The status; none if a signal ended it.
    pub(crate) status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// The error as Go words it.
    fn error(&self) -> Value {
        match self.status {
            Some(0) => Value::Null,
            Some(status) => Value::from(format!("exit status {status}")),
            None => Value::from("signal: killed"),
        }
    }

    /// What to show of a failure.
    pub(crate) fn told(&self) -> String {
        let error = self.error();
        let mut text = error.as_str().unwrap_or("exit status 0").to_owned();
        for (name, output) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            for line in output.lines().take(30) {
                text.extend(["\n  ", name, ": ", line]);
            }
        }
        text
    }
}

/// What a command or script is checked for.
struct Wanted<'a> {
    check: Option<&'a Value>,
    outputs: &'a [Binding],
}

impl Run<'_> {
    pub(crate) fn command(&mut self, command: &scenario::Command) -> Result<Vec<(String, Value)>, String> {
        self.bind(&command.bindings)?;
        let patience = self.timeout(TimeoutKind::Exec, command.timeout.as_deref())?;
        let arguments: Result<Vec<String>, String> = command.args.iter().map(|argument| self.text(argument)).collect();
        let ended = self.execute(&command.entrypoint, &arguments?, &self.variables(&command.env)?, patience)?;
        self.conclude(&ended, &Wanted { check: command.check.as_ref(), outputs: &command.outputs })
    }

    pub(crate) fn script(&mut self, script: &scenario::Script) -> Result<Vec<(String, Value)>, String> {
        self.bind(&script.bindings)?;
        let patience = self.timeout(TimeoutKind::Exec, script.timeout.as_deref())?;
        let arguments = ["-c".to_owned(), script.content.clone()];
        let ended = self.execute("sh", &arguments, &self.variables(&script.env)?, patience)?;
        self.conclude(&ended, &Wanted { check: script.check.as_ref(), outputs: &script.outputs })
    }

    fn variables(&self, variables: &[Binding]) -> Result<Vec<(String, String)>, String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        variables.iter().map(|it| Ok((it.name.clone(), text(&self.value(&it.value)?)))).collect()
    }

    fn conclude(&self, ended: &Ended, wanted: &Wanted<'_>) -> Result<Vec<(String, Value)>, String> {
        let bindings = self
            .bindings
            .clone()
            .with("error", ended.error())
            .with("stdout", ended.stdout.as_str())
            .with("stderr", ended.stderr.as_str());
        match wanted.check {
            None if ended.status == Some(0) => {}
            None => return Err(ended.told()),
            Some(check) => {
                let found = mismatches(check, &Value::Null, &bindings);
                if !found.is_empty() {
                    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                    return Err(format!("{}\n  {}", found.join("\n  "), ended.told()));
                }
            }
        }
        let mut outputs = Vec::new();
        for output in wanted.outputs {
            let value = match output.value.as_str().and_then(inside) {
                Some(text) => evaluate(text, &Value::Null, &bindings).map_err(|error| error.to_string())?,
                None => output.value.clone(),
            };
            outputs.push((output.name.clone(), value));
        }
        Ok(outputs)
    }

    /// Runs a program in the scenario's directory. Outputs go to files: what a script leaves running in the background
    /// would keep a pipe open.
    pub(crate) fn execute(
        &self,
        program: &str,
        arguments: &[String],
        variables: &[(String, String)],
        patience: Duration,
    ) -> Result<Ended, String> {
        let room = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (stdout, stderr) = (room.path().join("stdout"), room.path().join("stderr"));
        let create = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
        let status = Command::new("timeout")
            .arg("--kill-after=2")
            .arg(patience.as_secs().max(1).to_string())
            .arg(program)
            .args(arguments)
            .current_dir(&self.scenario.directory)
            .envs(self.place.environment.iter().map(|(name, value)| (name, value)))
            .env("KUBECONFIG", self.kubeconfig.path())
            .env("NAMESPACE", &self.namespace)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(create(&stdout)?)
            .stderr(create(&stderr)?)
            .status()
            .map_err(|error| format!("cannot run `{program}`: {error}"))?;
        let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        Ok(Ended { status: status.code(), stdout: read(&stdout), stderr: read(&stderr) })
    }
}
