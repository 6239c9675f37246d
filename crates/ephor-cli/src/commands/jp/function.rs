//! `ephor jp function`.

use std::fmt::Write as _;

use ephor_expr::jmespath::functions::{self, Function};
use ephor_expr::scalar::nearest::nearest;

use crate::commands::CommandResult;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor jp function`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor jp function
  ephor jp function truncate time_add")]
pub(super) struct Args {
    /// Functions to print; all if left out.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Prints the functions, sorted by name.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let mut wanted: Vec<&Function> = Vec::new();
    let mut exit = Exit::Clean;
    for name in &args.names {
        if let Some(function) = functions::find(name) {
            wanted.push(function);
            continue;
        }
        let near = nearest(name, functions::all().map(|function| function.name));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        ui.say(&format!("error: there is no function `{name}`{hint}"));
        exit = Exit::CouldNot;
    }
    if args.names.is_empty() {
        wanted.extend(functions::all());
    }
    wanted.sort_by_key(|function| function.name);
    wanted.dedup_by_key(|function| function.name);
    let blocks: Vec<String> = wanted.into_iter().map(block).collect();
    ui.result(&blocks.join("\n"))?;
    Ok(exit)
}

fn block(function: &Function) -> String {
    let mut text =
        format!("Name: {}\n  Signature: {}\n  Note:      {}\n", function.name, function.signature(), function.doc);
    for (expression, result) in function.examples {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  Example:   {expression} = {result}");
    }
    text
}
