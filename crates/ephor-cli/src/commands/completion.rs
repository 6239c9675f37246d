//! `ephor completion`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, CommandResult};
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor completion`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor completion bash > /etc/bash_completion.d/ephor
  ephor completion zsh > ~/.zfunc/_ephor
  ephor completion fish > ~/.config/fish/completions/ephor.fish")]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ephor", &mut script);
    ui.result(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Clean)
}
