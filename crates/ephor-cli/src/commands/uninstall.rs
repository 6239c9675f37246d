//! `ephor uninstall`: takes Ephor out of a cluster, webhooks first.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context as _, bail};
use ephor_install::uninstall::{Removal, Uninstall};

use super::CommandResult;
use super::access::AccessArgs;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor uninstall`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The namespace of the installation.
    #[arg(long, short, default_value = "kyverno")]
    namespace: String,
    /// What names of its objects begin with (the chart's `fullnameOverride`).
    #[arg(long, default_value = "kyverno")]
    name: String,
    /// Remove the kinds too, and with them every policy.
    #[arg(long)]
    crds: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Only print what would be removed.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// How long pods have to end.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

/// Removes the installation.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let cluster = args.access.connect()?;
    let uninstall = Uninstall {
        namespace: args.namespace.as_str().into(),
        name: args.name.as_str().into(),
        definitions: args.crds,
        deletion_timeout: DELETION_TIMEOUT,
    };
    let removals = uninstall.plan(&cluster).context("cannot see what is installed")?;
    if removals.is_empty() {
        ui.result("nothing is installed\n")?;
        return Ok(Exit::Clean);
    }
    if args.dry_run {
        ui.result(&listed(&removals))?;
        return Ok(Exit::Clean);
    }
    if !args.yes && !confirmed(&removals, cluster.server())? {
        ui.result("nothing was removed\n")?;
        return Ok(Exit::CouldNot);
    }
    let mut lines = Vec::new();
    let outcome = uninstall.carry_out(&cluster, &removals, |removal| lines.push(format!("removed {removal}\n")));
    ui.result(&lines.concat())?;
    outcome.context("not everything was removed")?;
    Ok(Exit::Clean)
}

fn listed(removals: &[Removal]) -> String {
    removals.iter().flat_map(|removal| [removal.to_string(), "\n".to_owned()]).collect()
}

fn confirmed(removals: &[Removal], server: &str) -> anyhow::Result<bool> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        bail!(
            "cannot ask for confirmation without a terminal: pass `--yes`, or `--dry-run` to see what would be removed"
        );
    }
    let mut output = std::io::stderr();
    write!(output, "{}Remove these {} objects from {server}? [y/N] ", listed(removals), removals.len())?;
    output.flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
