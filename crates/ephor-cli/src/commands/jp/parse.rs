//! `ephor jp parse`.

use std::path::PathBuf;

use super::source;
use crate::commands::CommandResult;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor jp parse`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor jp parse 'request.object.metadata.name | truncate(@, `9`)'
  ephor jp parse -f expression.jmespath
  echo 'a || b' | ephor jp parse")]
pub(super) struct Args {
    /// A file that holds an expression; can be repeated.
    #[arg(long, short, value_name = "FILE", value_delimiter = ',')]
    file: Vec<PathBuf>,
    /// Expressions; read from standard input if there are none, here or in files.
    #[arg(value_name = "EXPRESSION")]
    expressions: Vec<String>,
}

/// Prints the syntax tree of each expression.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let mut exit = Exit::Clean;
    for file in source::expressions(&args.file, &args.expressions, ui).map_err(anyhow::Error::from)? {
        match source::compile(&file) {
            Ok(expression) => ui.result(&format!("{}{}\n", source::heading(&file), expression.dump().trim_end()))?,
            Err(located) => {
                ui.findings(&[*located]);
                exit = Exit::CouldNot;
            }
        }
    }
    Ok(exit)
}
