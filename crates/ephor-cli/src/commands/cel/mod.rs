//! `ephor cel`: CEL as policies see it, from the terminal.

mod check;
mod evaluate;
mod functions;
mod profile;

use clap::Subcommand;

use super::CommandResult;
use crate::ui::Ui;

/// Arguments of `ephor cel`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate expressions over an object.
    Eval(evaluate::Args),
    /// Print the types of expressions, or what is wrong with them.
    Check(check::Args),
    /// Print what evaluating expressions costs, as Kubernetes counts it.
    Cost(evaluate::Args),
    /// Print the functions that expressions can call.
    Functions(functions::Args),
}

/// Runs the sub-command.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    match &args.command {
        Command::Eval(args) => evaluate::run(args, evaluate::Wanted::Value, ui),
        Command::Check(args) => check::run(args, ui),
        Command::Cost(args) => evaluate::run(args, evaluate::Wanted::Cost, ui),
        Command::Functions(args) => functions::run(args, ui),
    }
}
