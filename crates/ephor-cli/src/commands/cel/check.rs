//! `ephor cel check`.

use std::path::PathBuf;

use super::profile::{Place, compile};
use crate::commands::CommandResult;
use crate::commands::jp::source;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor cel check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor cel check 'object.spec.replicas <= 3'
  ephor cel check -p mpol -q patch.cel")]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// A file that holds an expression; can be repeated.
    #[arg(long, short, value_name = "FILE", value_delimiter = ',')]
    query: Vec<PathBuf>,
    /// Expressions; read from standard input if there are none, here or in files.
    #[arg(value_name = "EXPRESSION")]
    expressions: Vec<String>,
}

/// Prints the static type of each expression.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let environment = args.place.environment();
    let mut exit = Exit::Clean;
    for file in source::expressions(&args.query, &args.expressions, ui).map_err(anyhow::Error::from)? {
        match compile(&file, &environment) {
            Ok(program) => {
                let heading = if ui.to_terminal() { source::heading(&file) } else { String::new() };
                ui.result(&format!("{heading}{}\n", program.kind()))?;
            }
            Err(located) => {
                ui.findings(&located);
                exit = Exit::CouldNot;
            }
        }
    }
    Ok(exit)
}
