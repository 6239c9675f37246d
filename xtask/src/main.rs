//! The project's own commands.
//!
//! `cargo xtask check` is what a commit must pass, `cargo xtask ci` what CI runs, `cargo xtask fuzz` a short run of
//! every fuzz target, `cargo xtask cluster up` a real control plane.

mod arrows;
mod cel;
mod chart;
mod ci;
mod cluster;
mod generate;
mod image;
mod load;
mod purity;
mod sandbox;
mod schemas;
mod wire;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  check            format, lints, tests, documentation
  ci               check, each package alone, dependency policy, purity of the engine, release build packed as an
                   image; on real control planes the tests that need one, and the scenarios; some again in sandboxes
  generate         writes what is derived from code: the CustomResourceDefinitions of the chart
  generate --check fails if what is written is not what the code says
  image [BINARY]   a container image in target/image, an OCI layout: the binary (built for release unless named) and
                   the libraries it needs; --ca-certificates FILE adds roots that service calls trust
  purity           the engine's dependency tree stays fit for wasm32; crates depend on each other only as allowed,
                   and modules form no new circles
  chart            the chart under Helm, which is built once (needs Go); its tests need `cluster build` too
  cluster up       a real control plane until Ctrl-C: etcd, kube-apiserver, kube-controller-manager
  cluster build    only builds the executables: needs Go, takes minutes once; KUBEBUILDER_ASSETS or
                   EPHOR_CONTROL_PLANE_DIR says where they are
  load             what admission costs: the release binary before a real API server; needs wrk and an idle machine
  sandbox          what the sandbox costs: the release binary on the examples
  load policies    how soon a thousand policies hold
  load reports [N [FLAG…]]
                   how soon N Pods (10,000) have their reports, and what that takes; flags are for the role
  load background  what generated objects cost, and whether a crash in the midst of 10,000 triggers loses any; `load
                   background namespaces N` and `load background crash N` measure one of both
  load cleanup [N] how soon N objects (10,000) go whose time comes at once, and what admission takes beside
  load all [N [FLAG…]]
                   what all roles take in one process, with N Pods (1,000); flags are for the process
  scenarios [...]  chainsaw scenarios against Ephor on real control planes; --help says more
  schemas FILE DIR the tables of Kubernetes' types, from its api/openapi-spec/swagger.json and the directory with
                   its Go modules (api@… and so on)
  cel-vectors [...] expressions of CEL beside what the Go implementations make of them: counts by group and each
                   difference; `--bindings FILE`, `--group NAME` and vector files choose, else the visible ones
  fuzz [SECONDS]   every fuzz target for SECONDS (default 30); needs cargo-fuzz and a nightly toolchain
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["check"] => ci::check(),
        ["ci"] => ci::ci(),
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["image", rest @ ..] => image::build(rest),
        ["purity"] => purity::check(),
        ["chart"] => chart::check(),
        ["cluster", "build"] => cluster::build(),
        ["cluster", "up"] => cluster::up().map(|never| match never {}),
        ["sandbox"] => sandbox::measure(),
        ["load", rest @ ..] => load::load(rest),
        ["scenarios", rest @ ..] => scenarios(rest),
        ["schemas", file, modules] => schemas::write(Path::new(file), Path::new(modules)),
        ["cel-vectors", rest @ ..] => cel::vectors(rest),
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

fn scenarios(arguments: &[&str]) -> Result<()> {
    cluster::build()?;
    let named = arguments.iter().any(|argument| argument.starts_with("--ephor")) || std::env::var_os("EPHOR").is_some();
    if !named {
        cargo(&["build", "--package", "ephor-cli"])?;
    }
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "ephor-scenarios", "--"]).args(arguments);
    if !named {
        command.env("EPHOR", format!("{target}/debug/ephor"));
    }
    run(&mut command)
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
    let root = root()?;
    let shown = format!("{command:?}").replace('"', "");
    say(&format!("$ {shown}"));
    let status = command.current_dir(root).status().with_context(|| format!("cannot run {shown}"))?;
    if status.success() { Ok(()) } else { bail!("failed: {shown}") }
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")
}

#[expect(clippy::print_stderr, reason = "progress of a developer's tool")]
fn say(text: &str) {
    eprintln!("{text}");
}
