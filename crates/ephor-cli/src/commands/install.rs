//! `ephor install`: the manifests of an installation.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use ephor_expr::yaml::parse_value;
use ephor_install::manifests::{Release, render, to_text};

use super::CommandResult;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor install`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the manifests, for `kubectl apply --server-side -f -`.
    #[arg(long, required = true)]
    print: bool,
    /// The namespace that everything goes to.
    #[arg(long, short, default_value = "kyverno")]
    namespace: String,
    /// A value of the chart, as Helm takes it (repeatable).
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A file with values of the chart (repeatable; later files count more, `--set` counts most).
    #[arg(long, short = 'f', value_name = "FILE")]
    values: Vec<PathBuf>,
    /// Run all roles in one process: for small clusters. The same as `--set allInOne.enabled=true`.
    #[arg(long)]
    all_in_one: bool,
    /// Leave the Namespace itself out.
    #[arg(long)]
    no_namespace: bool,
}

/// Prints the manifests.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let values: Vec<_> = args.values.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let mut settings = args.set.clone();
    if args.all_in_one {
        settings.push("allInOne.enabled=true".to_owned());
    }
    let release = Release { namespace: args.namespace.as_str().into(), values, settings, ..Release::default() };
    let mut rendered = render(&release).map_err(|error| anyhow!(error))?;
    for ignored in &rendered.ignored {
        ui.say(&format!("note: {ignored}"));
    }
    if !args.no_namespace {
        rendered.objects.insert(0, rendered.namespace_object());
    }
    ui.result(&to_text(&rendered.objects))?;
    Ok(Exit::Clean)
}

fn read(file: &Path) -> anyhow::Result<ephor_expr::Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse_value(&text).map_err(|error| anyhow!("{}: {error}", file.display()))
}
