//! `cargo xtask sandbox`: what the sandbox costs, measured from outside on the release binary.
//!
//! Time is from the start of the process to the line that says "ready"; memory is its resident set a second later.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::say;

const ROUNDS: usize = 11;
const POLICIES: &str = "examples/policies";
const READY: &str = "The sandbox is ready";

pub(crate) fn measure() -> Result<()> {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let ephor = format!("{target}/release/ephor");
    ensure!(fs::exists(&ephor)?, "`cargo build --release` comes first");
    let (mut ready, mut resident, mut tours) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (time, memory) = start(&ephor)?;
        ready.push(time);
        resident.push(memory);
        let begun = Instant::now();
        let status = Command::new(&ephor).args(["sandbox", POLICIES, "--tour"]).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "the tour did not come out as promised");
        tours.push(begun.elapsed().as_secs_f64());
    }
    say(&format!("ready after     {:.3} s", median(&mut ready)));
    say(&format!("resident        {:.0} MB", median(&mut resident)));
    say(&format!("the whole tour  {:.3} s", median(&mut tours)));
    Ok(())
}

/// Starts a sandbox and ends it: seconds until it was ready, megabytes a second later.
fn start(ephor: &str) -> Result<(f64, f64)> {
    let begun = Instant::now();
    let mut child = Command::new(ephor).args(["sandbox", POLICIES]).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("it is piped")?).lines();
    let said = lines.next().context("the sandbox says nothing")??;
    let time = begun.elapsed().as_secs_f64();
    sleep(Duration::from_secs(1));
    let memory = fs::read_to_string(format!("/proc/{}/status", child.id()));
    child.kill()?;
    child.wait()?;
    ensure!(said.starts_with(READY), "{said}");
    let memory = memory?;
    let line = memory.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok((time, kilobytes / 1000.0))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
