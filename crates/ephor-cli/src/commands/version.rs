//! `ephor version`.

use clap::ValueEnum;
use ephor_expr::Value;
use ephor_expr::yaml;

use super::CommandResult;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor version`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print as JSON or YAML.
    #[arg(long, short)]
    output: Option<Format>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
    Yaml,
}

/// Prints the version.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let version = env!("CARGO_PKG_VERSION");
    let document = Value::from([("version", Value::from(version))]);
    let text = match args.output {
        None => format!("Version: {version}\n"),
        Some(Format::Json) => format!("{}\n", document.to_json_pretty(2)),
        Some(Format::Yaml) => yaml::to_yaml(&document),
    };
    ui.result(&text)?;
    Ok(Exit::Clean)
}
