//! Runs vectors of CEL: expressions with what the Go implementations make of them.
//!
//! `cargo test` holds the visible vectors to `tests/conformance/cel.tsv`, which lists the groups with differences, how
//! many and why. `cargo xtask cel-vectors [--bindings FILE] [FILE…]` prints counts by group and each difference.

#![expect(clippy::disallowed_methods, reason = "vectors are files")]
#![expect(clippy::print_stdout, reason = "the report")]

mod compare;
mod mock;
mod scope;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ephor_expr::Value;

use self::compare::{Difference, Judged};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn vectors() -> PathBuf {
    root().join("../shared/conformance/cel")
}

/// Counts of one group.
#[derive(Default)]
struct Count {
    all: usize,
    /// By kind of difference.
    differences: BTreeMap<Difference, usize>,
    costs: usize,
    texts: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let report = arguments.iter().any(|argument| argument == "--report");
    let result = if report { print_report(&arguments) } else { ratchet() };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("cel vectors: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs `files`; `visit` sees each vector with its differences.
fn run(bindings: &Path, files: &[PathBuf], mut visit: impl FnMut(&Value, &Judged)) -> Result<BTreeMap<String, Count>> {
    let text = std::fs::read_to_string(bindings)?;
    let bindings = Value::from_json(&text)?;
    let mut runner = scope::Runner::new(&bindings);
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for file in files {
        for line in std::fs::read_to_string(file)?.lines().filter(|line| !line.trim().is_empty()) {
            let vector = Value::from_json(line)?;
            let judged = compare::judge(&mut runner, &vector);
            let group = format!(
                "{}/{}",
                vector.str_at(&["env"]).unwrap_or_default(),
                vector.str_at(&["group"]).or(vector.str_at(&["profile"])).unwrap_or_default()
            );
            let count = counts.entry(group).or_default();
            count.all += 1;
            count.costs += usize::from(judged.has_cost);
            count.texts += usize::from(judged.has_text);
            for difference in &judged.differences {
                *count.differences.entry(difference.0).or_default() += 1;
            }
            visit(&vector, &judged);
        }
    }
    Ok(counts)
}

fn print_report(arguments: &[String]) -> Result<bool> {
    let mut bindings = vectors().join("bindings.json");
    let (mut files, mut only) = (Vec::new(), None);
    let mut rest = arguments.iter().filter(|argument| *argument != "--report");
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--bindings" => bindings = PathBuf::from(rest.next().ok_or("--bindings needs a file")?),
            "--group" => only = rest.next().cloned(),
            file => files.push(PathBuf::from(file)),
        }
    }
    if files.is_empty() {
        files = vec![vectors().join("vectors.jsonl"), vectors().join("head.jsonl")];
    }
    let counts = run(&bindings, &files, |vector, judged| {
        let group = format!(
            "{}/{}",
            vector.str_at(&["env"]).unwrap_or_default(),
            vector.str_at(&["group"]).unwrap_or_default()
        );
        if only.as_ref().is_some_and(|only| !group.contains(only.as_str())) {
            return;
        }
        for (kind, text) in &judged.differences {
            let id = vector.str_at(&["id"]).unwrap_or_default();
            let expression: String = vector.str_at(&["expr"]).unwrap_or_default().chars().take(200).collect();
            println!("{kind:?} {group} {id} {expression:?}\n    {text}");
        }
    })?;
    summary(&counts);
    Ok(true)
}

fn summary(counts: &BTreeMap<String, Count>) {
    println!("{:40} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6}", "group", "all", "refused", "verdict", "type", "text", "cost");
    let mut totals: BTreeMap<&str, Count> = BTreeMap::new();
    for (group, count) in counts {
        line(group, count);
        for name in [group.split('/').next().unwrap_or_default(), "all"] {
            let total = totals.entry(name).or_default();
            total.all += count.all;
            total.costs += count.costs;
            total.texts += count.texts;
            for (kind, n) in &count.differences {
                *total.differences.entry(*kind).or_default() += n;
            }
        }
    }
    for (name, total) in &totals {
        line(name, total);
        let n = |kind: Difference| total.differences.get(&kind).copied().unwrap_or(0);
        let share = |good: usize, all: usize| if all == 0 { 100.0 } else { 100.0 * good as f64 / all as f64 };
        let refused = n(Difference::Refused);
        println!(
            "  {name}: verdict and value {:.2} %, texts {:.2} %, cost {:.2} %",
            share(total.all - refused - n(Difference::Verdict), total.all),
            share(total.texts.saturating_sub(n(Difference::Text)), total.texts),
            share(total.costs.saturating_sub(n(Difference::Cost)), total.costs),
        );
    }
}

fn line(group: &str, count: &Count) {
    let n = |kind: Difference| count.differences.get(&kind).copied().unwrap_or(0);
    println!(
        "{group:40} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6}",
        count.all,
        n(Difference::Refused),
        n(Difference::Verdict),
        n(Difference::Type),
        n(Difference::Text),
        n(Difference::Cost)
    );
}

/// Holds the visible vectors to the list of known differences: exactly as many in each group.
fn ratchet() -> Result<bool> {
    if !vectors().exists() {
        println!("no vectors beside the checkout; nothing to hold");
        return Ok(true);
    }
    let files = [vectors().join("vectors.jsonl"), vectors().join("head.jsonl")];
    let counts = run(&vectors().join("bindings.json"), &files, |_, _| {})?;
    let path = root().join("tests/conformance/cel.tsv");
    let known = std::fs::read_to_string(&path)?;
    let mut expected: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in known.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let mut columns = line.split('\t');
        let (Some(group), Some(kind), Some(n)) = (columns.next(), columns.next(), columns.next()) else {
            return Err(format!("not a row: {line}").into());
        };
        expected.insert((group.into(), kind.into()), n.parse()?);
    }
    let mut exact = true;
    for (group, count) in &counts {
        for kind in Difference::ALL {
            let found = count.differences.get(&kind).copied().unwrap_or(0);
            let name = format!("{kind:?}").to_lowercase();
            let known = expected.remove(&(group.clone(), name.clone())).unwrap_or(0);
            if found != known {
                exact = false;
                println!("{group}\t{name}\t{found}\t(listed: {known})");
            }
        }
    }
    for (group, kind) in expected.keys() {
        exact = false;
        println!("{group}\t{kind}: listed, but there is no such group");
    }
    if !exact {
        println!("differences are not those of {}", path.display());
    }
    Ok(exact)
}
