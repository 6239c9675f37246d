//! `ephor jp`: JMESPath as policies see it, from the terminal.

mod function;
mod parse;
mod query;
pub(super) mod source;

pub(super) use query::single_document;

use clap::Subcommand;

use super::CommandResult;
use crate::ui::Ui;

/// Arguments of `ephor jp`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate expressions over a YAML or JSON document.
    Query(query::Args),
    /// Print the syntax trees of expressions.
    Parse(parse::Args),
    /// Print the functions that expressions can call.
    Function(function::Args),
}

/// Runs the sub-command.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    match &args.command {
        Command::Query(args) => query::run(args, ui),
        Command::Parse(args) => parse::run(args, ui),
        Command::Function(args) => function::run(args, ui),
    }
}
