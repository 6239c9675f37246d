//! `ephor serve`: the roles of Ephor in a cluster, as deployments run them. Flags are upstream's.

mod admission;
mod all;
mod background;
mod cleanup;
mod reports;
mod start;

use clap::Subcommand;

pub(super) use self::start::{Writes, connect, log, stop_on_signals};

use super::CommandResult;
use crate::ui::Ui;

/// Arguments of `ephor serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Answer the webhooks of the API server.
    Admission(Flags),
    /// Carry out generate and mutate-existing rules and keep their objects in sync.
    Background(Flags),
    /// Judge what exists and keep policy reports.
    Reports(Flags),
    /// Delete what cleanup policies select, on their schedules, and objects whose lifetime is over.
    Cleanup(Flags),
    /// Run all roles in one process, for small clusters; `--roles=admission,background` leaves some out.
    All(Flags),
}

/// Flags of a role: those of upstream, with one dash or two.
#[derive(Debug, clap::Args)]
struct Flags {
    /// Flags such as `--kubeconfig=FILE`; the guide lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAG")]
    flags: Vec<String>,
}

/// Runs a role until it is told to stop.
pub(super) fn run(args: &Args, _ui: &Ui) -> CommandResult {
    match &args.role {
        Role::Admission(flags) => admission::run(&flags.flags),
        Role::Background(flags) => background::run(&flags.flags),
        Role::Reports(flags) => reports::run(&flags.flags),
        Role::Cleanup(flags) => cleanup::run(&flags.flags),
        Role::All(flags) => all::run(&flags.flags),
    }
}
