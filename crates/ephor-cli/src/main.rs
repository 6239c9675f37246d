//! The `ephor` binary: arguments in, exit code out.

use std::process::ExitCode;

use clap::Parser;
use ephor_cli::commands::Cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(ephor_cli::commands::run(Cli::parse()).code())
}
