//! `ephor sandbox`: an API server in this process, with policies, for kubectl.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use ephor_expr::yaml::{Limits, parse_documents};
use ephor_expr::{Map, Value};
use ephor_server::Stop;
use ephor_server::sandbox::kubeconfig::write_private;
use ephor_server::sandbox::{Refused, Sandbox};

use super::{CommandError, CommandResult, serve};
use crate::exit::Exit;
use crate::load;
use crate::ui::Ui;

/// Arguments of `ephor sandbox`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files, directories or globs of policies, and of whatever goes with them; `-` reads standard input.
    policies: Vec<String>,
    /// Objects that are there before the policies are.
    #[arg(long, short, value_name = "FILES", num_args = 1..)]
    resources: Vec<String>,
    /// The port on the loopback interface; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where the kubeconfig is written; default: a file of its own in the directory for temporary files.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Keeps all objects in this file when the sandbox stops, and begins with those that are in it.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

/// Runs the sandbox until it is told to stop.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let resources = documents(&args.resources)?;
    let policies = documents(&args.policies)?;
    let kept = args.state.as_deref().map(kept).transpose()?.flatten();
    let stop = serve::stop_on_signals()?;
    let sandbox = Sandbox::new(args.port, kept, &stop).context("cannot start the sandbox")?;
    let mut refused = sandbox.add(resources);
    sandbox.enforce();
    refused.extend(sandbox.add(policies));
    report(ui, &refused);
    let config = args.kubeconfig.clone().unwrap_or_else(|| temporary(std::process::id()));
    write_private(&config, &sandbox.kubeconfig()).with_context(|| format!("cannot write `{}`", config.display()))?;
    ui.result(&welcome(&sandbox, &config))?;
    let objects = sandbox.serve().context("the sandbox cannot serve");
    if args.kubeconfig.is_none() {
        // Of no use any more, and with a token in it.
        let _ = fs::remove_file(&config);
    }
    let objects = objects?;
    if let Some(path) = &args.state {
        let text = Value::from([("objects", Value::array(objects))]).to_json();
        write_private(path, &text).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    settle(&stop);
    Ok(if refused.is_empty() { Exit::Clean } else { Exit::Findings })
}

/// Gives threads that write a moment to see that it is over.
fn settle(stop: &Stop) {
    stop.stop();
    std::thread::sleep(Duration::from_millis(20));
}

fn temporary(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("ephor-sandbox-{process}.kubeconfig"))
}

fn welcome(sandbox: &Sandbox, config: &Path) -> String {
    format!(
        "The sandbox is ready: {} (stop it with Ctrl-C).\n\n  export KUBECONFIG={}\n  kubectl get clusterpolicies\n\n\
         Live view: {}\n",
        sandbox.url(),
        config.display(),
        sandbox.live_url()
    )
}

fn report(ui: &Ui, refused: &[Refused]) {
    for Refused { object, error } in refused {
        let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default().to_owned();
        ui.say(&format!("error: {} {}: {error}", text(&["kind"]), text(&["metadata", "name"])));
    }
}

/// The objects of files, definitions and namespaces first, so that the order of files does not matter.
fn documents(arguments: &[String]) -> Result<Vec<Value>, CommandError> {
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

/// The objects that were kept; `None` if there is no such file yet.
fn kept(path: &Path) -> Result<Option<Vec<Value>>, CommandError> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let state = Value::from_json(&text).with_context(|| format!("`{}` holds no state", path.display()))?;
    let objects = state.as_object().and_then(|members: &Map| members.get("objects")).and_then(Value::as_array);
    Ok(Some(objects.unwrap_or_default().to_vec()))
}
