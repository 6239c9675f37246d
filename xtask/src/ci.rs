//! What a commit must pass (`check`) and what CI runs (`ci`), step by step.
//!
//! Each step prints how long it took, and a table of all steps closes the run, also after a failure: it shows where the
//! time of CI goes.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::{cargo, chart, cluster, generate, image, purity, run, say, scenarios};

/// The scenarios that sandboxes are held to.
const SANDBOX_SCENARIOS: [&str; 5] =
    ["chainsaw/autogen/", "chainsaw/generate/", "chainsaw/mutate/", "chainsaw/reports/", "chainsaw/validate/"];

/// Runs the steps of `cargo xtask check`.
pub(crate) fn check() -> Result<()> {
    timed(check_steps)
}

/// Runs the steps of `cargo xtask ci`.
pub(crate) fn ci() -> Result<()> {
    timed(|steps| {
        check_steps(steps)?;
        ci_steps(steps)
    })
}

fn check_steps(steps: &mut Steps) -> Result<()> {
    steps.run("format", || cargo(&["fmt", "--all", "--check"]))?;
    steps.run("generated files", generate::check)?;
    steps.run("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    steps.run("tests", || cargo(&["test", "--workspace"]))?;
    steps.run("documentation", || {
        run(Command::new("cargo").args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))
    })
}

fn ci_steps(steps: &mut Steps) -> Result<()> {
    steps.run("purity of the engine", purity::check)?;
    // Cargo merges features across the workspace, so a package that builds only beside the others shows up only alone.
    steps.run("each package alone", || {
        ["ephor-expr", "ephor-engine", "ephor-cluster", "ephor-cli"]
            .iter()
            .try_for_each(|package| cargo(&["check", "--package", package]))
    })?;
    // The fuzz targets are a workspace of their own, which no other step compiles.
    steps.run("fuzz targets", || cargo(&["check", "--manifest-path", "fuzz/Cargo.toml"]))?;
    steps.run("control plane", cluster::build)?;
    steps.run("chart", || chart::lint().map(drop))?;
    steps.run("release build", || cargo(&["build", "--release"]))?;
    // The tests under load use the release binary, as a cluster does.
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let path = std::path::absolute(format!("{target}/release/ephor"))?;
    let ephor = path.to_str().context("the target directory is not valid UTF-8")?;
    steps.run("tests on a control plane", || {
        run(Command::new("cargo").args(["test", "--workspace", "--", "--ignored"]).env("EPHOR", ephor))
    })?;
    steps.run("scenarios on control planes", || {
        scenarios(&["--ephor", ephor, "--ratchet", "--retries", "2", "--parallel", "4"])
    })?;
    steps.run("scenarios in sandboxes", || {
        let roles = ["--ephor", ephor, "--roles", "sandbox", "--ratchet", "--retries", "2", "--parallel", "8"];
        scenarios(&[&roles[..], &SANDBOX_SCENARIOS[..]].concat())
    })?;
    steps.run("dependency policy", || {
        let deny = Command::new("cargo").args(["deny", "--version"]).output();
        if !deny.is_ok_and(|output| output.status.success()) {
            cargo(&["install", "--locked", "cargo-deny"])?;
        }
        cargo(&["deny", "check", "bans", "licenses", "sources"])
    })?;
    steps.run("image", || image::build(&[]))
}

/// The steps that ran, with their times.
#[derive(Default)]
struct Steps {
    done: Vec<(&'static str, Duration)>,
}

impl Steps {
    fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let start = Instant::now();
        let result = step();
        let time = start.elapsed();
        let verdict = if result.is_ok() { "passed" } else { "FAILED" };
        say(&format!("--- {name}: {verdict} after {} s", time.as_secs()));
        self.done.push((name, time));
        result.with_context(|| format!("step `{name}`"))
    }
}

fn timed(steps: impl FnOnce(&mut Steps) -> Result<()>) -> Result<()> {
    let mut ran = Steps::default();
    let result = steps(&mut ran);
    say("time of each step:");
    for (name, time) in &ran.done {
        say(&format!("{:>6} s  {name}", time.as_secs()));
    }
    let total: Duration = ran.done.iter().map(|(_, time)| *time).sum();
    say(&format!("{:>6} s  in all", total.as_secs()));
    result
}
