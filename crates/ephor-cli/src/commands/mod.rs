//! The sub-commands, a file each: its arguments and what it does.

mod access;
#[cfg(test)]
mod admission_tests;
mod apply;
#[cfg(test)]
mod apply_tests;
mod break_glass;
mod cel;
mod check;
mod cluster;
#[cfg(test)]
mod cluster_tests;
mod completion;
mod create;
mod dev;
mod expand;
mod explain;
mod install;
mod jp;
mod plan;
mod report;
#[cfg(test)]
mod report_tests;
mod sandbox;
mod serve;
mod test;
mod uninstall;
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
    /// Apply policies to resources.
    Apply(Box<apply::Args>),
    /// Temporarily fail open when the webhook is unreachable.
    BreakGlass(break_glass::Args),
    /// Evaluate, check and look up CEL expressions.
    Cel(cel::Args),
    /// Lint policies and find deprecated syntax.
    Check(check::Args),
    /// Generate a shell completion script.
    Completion(completion::Args),
    /// Generate an exception, test, values or other file.
    Create(create::Args),
    /// Run Ephor on this machine against a test cluster.
    Dev(dev::Args),
    /// Show the rules that auto-gen adds for Pod controllers.
    Expand(expand::Args),
    /// Explain the verdict of each rule for a resource.
    Explain(explain::Args),
    /// Print the manifests that install Ephor.
    Install(install::Args),
    /// Evaluate, parse and look up JMESPath expressions.
    Jp(jp::Args),
    /// Run a local Kubernetes API that enforces policies, without a cluster.
    Sandbox(sandbox::Args),
    /// Preview what generate and mutate-existing rules would create, change and delete.
    Plan(plan::Args),
    /// Sum up policy reports of a cluster or of files, the worst first.
    Report(report::Args),
    /// Run a role in a cluster: admission, background, reports, cleanup, or all.
    Serve(serve::Args),
    /// Run policy tests.
    Test(test::Args),
    /// Remove Ephor from a cluster, webhooks first.
    Uninstall(uninstall::Args),
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
        Command::BreakGlass(args) => break_glass::run(&args, &ui),
        Command::Cel(args) => cel::run(&args, &ui),
        Command::Check(args) => check::run(&args, &ui),
        Command::Completion(args) => completion::run(&args, &ui),
        Command::Create(args) => create::run(&args, &ui),
        Command::Dev(args) => dev::run(&args, &ui),
        Command::Expand(args) => expand::run(&args, &ui),
        Command::Explain(args) => explain::run(&args, &ui),
        Command::Install(args) => install::run(&args, &ui),
        Command::Jp(args) => jp::run(&args, &ui),
        Command::Sandbox(args) => sandbox::run(&args, &ui),
        Command::Plan(args) => plan::run(&args, &ui),
        Command::Report(args) => report::run(&args, &ui),
        Command::Serve(args) => serve::run(&args, &ui),
        Command::Test(args) => test::run(&args, &ui),
        Command::Uninstall(args) => uninstall::run(&args, &ui),
        Command::Version(args) => version::run(&args, &ui),
    };
    match result {
        Ok(exit) => exit,
        // The reader of the output closed the pipe.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Clean,
        Err(error) => {
            ui.say(&format!("error: {error}"));
            Exit::CouldNot
        }
    }
}
