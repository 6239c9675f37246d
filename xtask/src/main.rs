//! The project's own commands.
//!
//! `cargo xtask check` is what a commit must pass, `cargo xtask ci` what CI runs, `cargo xtask fuzz` a short run of
//! every fuzz target.

mod purity;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  check            format, lints, tests, documentation
  ci               check, each package alone, dependency policy, purity of the engine, release build
  purity           the engine's dependency tree stays fit for wasm32
  fuzz [SECONDS]   every fuzz target for SECONDS (default 30); needs cargo-fuzz and a nightly toolchain
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["check"] => check(),
        ["ci"] => ci(),
        ["purity"] => purity::check(),
        ["fuzz"] => fuzz("30"),
        ["fuzz", seconds] => fuzz(seconds),
        _ => Err(anyhow::anyhow!("{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    cargo(&["test", "--workspace"])?;
    run(Command::new("cargo").args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn ci() -> Result<()> {
    check()?;
    purity::check()?;
    // Features merge across a workspace: a package that builds only beside the others is found alone.
    for package in ["ephor-expr", "ephor-engine", "ephor-cluster", "ephor-cli"] {
        cargo(&["check", "--package", package])?;
    }
    if !Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|output| output.status.success()) {
        cargo(&["install", "--locked", "cargo-deny"])?;
    }
    cargo(&["deny", "check", "bans", "licenses", "sources"])?;
    cargo(&["build", "--release"])
}

fn fuzz(seconds: &str) -> Result<()> {
    let list = Command::new("cargo").args(["+nightly", "fuzz", "list"]).output().context("cannot run cargo-fuzz")?;
    if !list.status.success() {
        bail!("cargo-fuzz is needed: cargo install --locked cargo-fuzz");
    }
    let limit = format!("-max_total_time={seconds}");
    for target in String::from_utf8_lossy(&list.stdout).lines() {
        // What a run finds goes to the first directory; the seeds stay as they are.
        let (corpus, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
        std::fs::create_dir_all(&corpus)?;
        // There is no unsafe code for a sanitizer to watch: it is panics, hangs and memory that are looked for.
        let run = ["+nightly", "fuzz", "run", "--sanitizer=none", target, &corpus, &seeds];
        cargo(&[&run[..], &["--", &limit, "-timeout=5", "-rss_limit_mb=512"]].concat())?;
    }
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    run(Command::new("cargo").args(arguments))
}

/// Runs a command in the project's root; its failure is ours.
fn run(command: &mut Command) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")?;
    let shown = format!("{command:?}").replace('"', "");
    say(&format!("$ {shown}"));
    let status = command.current_dir(root).status().with_context(|| format!("cannot run {shown}"))?;
    if status.success() { Ok(()) } else { bail!("failed: {shown}") }
}

#[expect(clippy::print_stderr, reason = "progress of a developer's tool")]
fn say(text: &str) {
    eprintln!("{text}");
}
