//! The sub-commands, a file each: its arguments and what it does.

mod apply;
#[cfg(test)]
mod apply_tests;
mod check;
mod completion;
mod create;
mod expand;
mod jp;
mod test;
mod version;

use std::io;

use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::ui::Ui;

/// A policy engine for Kubernetes: runs the policies you have, fast, and explains itself.
#[derive(Debug, Parser)]
#[command(name = "ephor", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// Print without colour (so does the environment variable `NO_COLOR`).
    #[arg(long, alias = "remove-color", global = true)]
    no_color: bool,
    /// Print results only: no progress, no warnings.
    #[arg(long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Judge resources by policies; mutate and generate.
    Apply(Box<apply::Args>),
    /// Look for faults and old spellings in policies.
    Check(check::Args),
    /// Print a script that completes `ephor` commands in a shell.
    Completion(completion::Args),
    /// Print a skeleton of an exception, test, values or other file.
    Create(create::Args),
    /// Print policies with the rules that auto-gen adds for Pod controllers.
    Expand(expand::Args),
    /// Evaluate, parse and look up JMESPath.
    Jp(jp::Args),
    /// Run tests of policies.
    Test(test::Args),
    /// Print the version.
    Version(version::Args),
}

/// Why a command could not do its job.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Output could not be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// Anything else, with its story.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

/// What a command comes to.
pub type CommandResult = Result<Exit, CommandError>;

/// Runs a command; errors are shown and become an exit code.
pub fn run(cli: Cli) -> Exit {
    let ui = Ui::new(cli.no_color, cli.quiet);
    let result = match cli.command {
        Command::Apply(args) => apply::run(&args, &ui),
        Command::Check(args) => check::run(&args, &ui),
        Command::Completion(args) => completion::run(&args, &ui),
        Command::Create(args) => create::run(&args, &ui),
        Command::Expand(args) => expand::run(&args, &ui),
        Command::Jp(args) => jp::run(&args, &ui),
        Command::Test(args) => test::run(&args, &ui),
        Command::Version(args) => version::run(&args, &ui),
    };
    match result {
        Ok(exit) => exit,
        // Whoever read the output has seen enough.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Clean,
        Err(error) => {
            ui.say(&format!("error: {error}"));
            Exit::CouldNot
        }
    }
}
