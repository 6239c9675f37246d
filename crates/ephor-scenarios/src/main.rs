//! `cargo xtask scenarios`: runs chainsaw scenarios on several control planes and reports the results.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use ephor_scenarios::cases::{Area, Case, find};
use ephor_scenarios::engine::{Flavour, Role, Subject};
use ephor_scenarios::known::{self, Known};
use ephor_scenarios::run::{Failure, Place, run};
use ephor_scenarios::scenario::Scenario;
use ephor_scenarios::stage::{Folders, Stage};
use ephor_scenarios::traces::traces;
use parking_lot::Mutex;

/// Runs chainsaw scenarios against a control plane and Ephor.
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct Arguments {
    /// Only scenarios whose name contains one of these; a `!` before it means those that do not.
    filter: Vec<String>,
    /// How many control planes work side by side.
    #[arg(long, default_value_t = 2)]
    parallel: usize,
    /// The binary to test.
    #[arg(long, default_value = "target/debug/ephor", env = "EPHOR")]
    ephor: PathBuf,
    /// Which roles of it to start, or `none`, or `sandbox`: a sandbox of its own for each scenario instead of a
    /// control plane. Without, all roles that it has.
    #[arg(long, value_delimiter = ',')]
    roles: Vec<String>,
    /// Only scenarios of this area: `admission`, `generate`, `mutate-existing`.
    #[arg(long)]
    area: Option<String>,
    /// The longest wait for a condition, in seconds, if the scenario sets none.
    #[arg(long, default_value_t = 15)]
    patience: u64,
    /// Lists the scenarios with the reasons of those that are not run.
    #[arg(long)]
    list: bool,
    /// Runs also what is out of scope.
    #[arg(long)]
    all: bool,
    /// Fails unless exactly the scenarios of `tests/conformance/scenarios.tsv` fail; in sandboxes, those with the
    /// differences of `tests/conformance/sandbox.tsv`.
    #[arg(long)]
    ratchet: bool,
    /// How often what failed is tried again, one by one, when all the others are done: scenarios wait for seconds, and
    /// a machine can be busy for longer. What passes late passes, and is named.
    #[arg(long, default_value_t = 0)]
    retries: usize,
    /// Stops at the first failure and keeps everything running until Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// Writes the results to this file.
    #[arg(long)]
    results: Option<PathBuf>,
    /// The conformance data.
    #[arg(long, default_value = "../shared/conformance")]
    conformance: PathBuf,
}

/// The result of one scenario.
struct Verdict {
    case: Case,
    time: Duration,
    result: Result<(), Failure>,
}

fn main() -> ExitCode {
    match go(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn go(arguments: &Arguments) -> Result<bool> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let conformance = arguments.conformance.canonicalize();
    let conformance =
        conformance.with_context(|| format!("no conformance data in {}", arguments.conformance.display()))?;
    // Scripts write beside their scenario, so all work on a copy; it is gone when this function returns.
    let copy = tempfile::Builder::new().prefix("ephor-scenarios-").tempdir()?;
    let status = std::process::Command::new("cp")
        .arg("-r")
        .args([conformance.join("chainsaw"), conformance.join("policies")])
        .arg(copy.path())
        .status()?;
    if !status.success() {
        bail!("cannot copy {}", conformance.display());
    }
    let cases = find(copy.path(), &|name| arguments.means(name))?;
    let cases: Vec<Case> = cases.into_iter().filter(|case| arguments.is_in_area(case)).collect();
    if arguments.list {
        list(&cases);
        return Ok(true);
    }
    let chosen: Vec<Case> = cases.iter().filter(|case| arguments.all || case.excluded.is_none()).cloned().collect();
    if chosen.is_empty() {
        bail!("no scenario is meant; {} are out of scope: --list says why", cases.len());
    }
    let definitions = vec![root.join("charts/ephor/files/crds"), copy.path().join("policies/.chainsaw/crds")];
    let folders = Folders { definitions };
    let known = if arguments.ratchet { arguments.known(&root.join("tests/conformance"))? } else { Vec::new() };
    let mut verdicts = run_all(arguments, chosen, &folders, arguments.parallel)?;
    for _ in 0..arguments.retries {
        retry(arguments, &mut verdicts, &known, &folders)?;
    }
    report(arguments, &verdicts, cases.len())?;
    if arguments.ratchet {
        return Ok(judge(&verdicts, &known));
    }
    Ok(verdicts.iter().all(|verdict| verdict.result.is_ok()))
}

impl Arguments {
    fn is_in_area(&self, case: &Case) -> bool {
        self.area.as_ref().is_none_or(|area| case.area.to_string() == *area)
    }

    fn means(&self, name: &str) -> bool {
        let (not, only): (Vec<_>, Vec<_>) = self.filter.iter().partition(|part| part.starts_with('!'));
        (only.is_empty() || only.iter().any(|part| name.contains(part.as_str())))
            && !not.iter().any(|part| name.contains(part.trim_start_matches('!')))
    }

    /// The scenarios that are expected to fail.
    fn known(&self, lists: &Path) -> Result<Vec<Known>> {
        let known = known::read(&lists.join("scenarios.tsv"))?;
        if !self.roles.iter().any(|role| role == "sandbox") {
            return Ok(known);
        }
        Ok(known::in_sandbox(known, known::read_differences(&lists.join("sandbox.tsv"))?)?)
    }

    fn subject(&self) -> Result<Subject> {
        let mut roles = Vec::new();
        if self.roles.is_empty() {
            let help = std::process::Command::new(&self.ephor).args(["serve", "--help"]).output();
            let help =
                help.with_context(|| format!("{}: build it, or name another with --ephor", self.ephor.display()))?;
            let help = String::from_utf8_lossy(&help.stdout).into_owned();
            roles.extend(
                [Role::Admission, Role::Background, Role::Reports, Role::Cleanup]
                    .into_iter()
                    .filter(|role| help.contains(role.name())),
            );
        }
        for role in &self.roles {
            roles.push(match role.as_str() {
                "none" => return Ok(Subject::Nothing),
                "sandbox" => return Ok(Subject::Sandbox { binary: self.binary()? }),
                "admission" => Role::Admission,
                "background" => Role::Background,
                "reports" => Role::Reports,
                "cleanup" => Role::Cleanup,
                other => bail!("`{other}` is no role: admission, background, reports, none, sandbox"),
            });
        }
        Ok(Subject::Roles { binary: self.binary()?, roles })
    }

    fn binary(&self) -> Result<PathBuf> {
        let binary = self.ephor.canonicalize();
        binary.with_context(|| format!("{}: build it, or name another with --ephor", self.ephor.display()))
    }
}

/// Runs what failed and is not known to fail once more.
fn retry(arguments: &Arguments, verdicts: &mut [Verdict], known: &[Known], folders: &Folders) -> Result<()> {
    let failed =
        |verdict: &&Verdict| verdict.result.is_err() && !known.iter().any(|known| known.scenario == verdict.case.name);
    let again: Vec<Case> = verdicts.iter().filter(failed).map(|verdict| verdict.case.clone()).collect();
    if again.is_empty() {
        return Ok(());
    }
    for second in run_all(arguments, again, folders, 1)? {
        let Some(first) = verdicts.iter_mut().find(|verdict| verdict.case.name == second.case.name) else { continue };
        if second.result.is_ok() {
            say(&format!("{} is unsteady: it passes when tried again", second.case.name));
        }
        *first = second;
    }
    Ok(())
}

/// Runs the scenarios, each on one of several stages.
fn run_all(arguments: &Arguments, mut cases: Vec<Case>, folders: &Folders, parallel: usize) -> Result<Vec<Verdict>> {
    let subject = arguments.subject()?;
    // Restarts for other flags are few if scenarios of one kind come together.
    cases.sort_by_key(|case| (Flavour::of(&case.name), case.name.clone()));
    let total = cases.len();
    let queue = Mutex::new(VecDeque::from(cases));
    let verdicts = Mutex::new(Vec::new());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..parallel.clamp(1, total))
            .map(|_| scope.spawn(|| work(arguments, &subject, folders, &queue, &verdicts, total)))
            .collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a worker panicked"),
        })
    })?;
    let mut verdicts = verdicts.into_inner();
    verdicts.sort_by(|a: &Verdict, b| a.case.name.cmp(&b.case.name));
    say(&format!("\n{} scenarios in {:.0} s", verdicts.len(), begin.elapsed().as_secs_f64()));
    Ok(verdicts)
}

fn work(
    arguments: &Arguments,
    subject: &Subject,
    folders: &Folders,
    queue: &Mutex<VecDeque<Case>>,
    verdicts: &Mutex<Vec<Verdict>>,
    total: usize,
) -> Result<()> {
    let next = || queue.lock().pop_front();
    let mut stage: Option<Stage> = None;
    while let Some(case) = next() {
        let flavour = Flavour::of(&case.name);
        let mut ready = match stage.take() {
            Some(mut stage) if stage.flavour() != flavour => {
                stage.change_flavour(flavour).map_err(anyhow::Error::msg)?;
                stage
            }
            Some(stage) => stage,
            None => Stage::start(subject, flavour, folders).map_err(anyhow::Error::msg)?,
        };
        let start = Instant::now();
        let result = play(arguments, &ready, &case);
        let time = start.elapsed();
        let failed = result.is_err();
        let mut verdicts = verdicts.lock();
        let verdict = Verdict { case, time, result };
        let number = verdicts.len() + 1;
        say(&format!("{number:4}/{total} {}", line(&verdict)));
        verdicts.push(verdict);
        drop(verdicts);
        if failed && arguments.keep {
            say(&format!(
                "kept: export KUBECONFIG={0}/kubeconfig; logs are in {0}; Ctrl-C ends it",
                ready.directory().display()
            ));
            loop {
                std::thread::park();
            }
        }
        match ready.clean() {
            Ok(true) => stage = Some(ready),
            Ok(false) => {}
            // A new stage is made for the next scenario.
            Err(problem) => say(&format!("          {problem}")),
        }
    }
    Ok(())
}

fn play(arguments: &Arguments, stage: &Stage, case: &Case) -> Result<(), Failure> {
    let scenario = Scenario::read(&case.file).map_err(|error| Failure {
        step: String::new(),
        operation: "read".to_owned(),
        problem: error.to_string(),
    })?;
    let patience = Duration::from_secs(arguments.patience);
    let result = run(&scenario, &Place { api: stage.api(), environment: stage.environment(), patience });
    result.map_err(|failure| {
        let said = traces(stage.api());
        let problem = [vec![failure.problem], said].concat().join("\n");
        Failure { problem, ..failure }
    })
}

/// A verdict as it comes: of a failure, what happened.
fn line(verdict: &Verdict) -> String {
    let seconds = verdict.time.as_secs_f64();
    let name = &verdict.case.name;
    match &verdict.result {
        Ok(()) => format!("pass {seconds:5.1} s  {name}"),
        Err(failure) => format!("FAIL {seconds:5.1} s  {name}\n{}", story(failure)),
    }
}

fn story(failure: &Failure) -> String {
    let Failure { step, operation, problem } = failure;
    let operation = shorten(operation, 6).replace('\n', "\n      ");
    let problem = shorten(problem, 60).replace('\n', "\n      ");
    format!("    {step} / {operation}\n      {problem}\n")
}

/// The first lines of a text.
fn shorten(text: &str, lines: usize) -> String {
    let mut kept: Vec<&str> = text.lines().take(lines).collect();
    if text.lines().count() > lines {
        kept.push("…");
    }
    kept.join("\n")
}

/// The folder that a scenario is counted under.
fn folder(case: &Case) -> String {
    let mut parts = case.name.split('/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let area = match case.area {
        Area::Admission => String::new(),
        area => format!(" ({area})"),
    };
    if first == "policies" { format!("policies{area}") } else { format!("{first}/{second}{area}") }
}

fn report(arguments: &Arguments, verdicts: &[Verdict], considered: usize) -> Result<()> {
    let mut text = String::new();
    for verdict in verdicts {
        if let Err(Failure { operation, problem, .. }) = &verdict.result {
            let first: Vec<&str> = problem.lines().take(2).map(str::trim).collect();
            let operation = operation.lines().next().unwrap_or_default();
            let _ = writeln!(text, "FAIL {}\t{operation}: {}", verdict.case.name, first.join(" "));
        }
    }
    let mut folders: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for verdict in verdicts {
        let (passed, all) = folders.entry(folder(&verdict.case)).or_default();
        *passed += usize::from(verdict.result.is_ok());
        *all += 1;
    }
    text.push('\n');
    for (folder, (passed, all)) in &folders {
        let _ = writeln!(text, "{passed:4} of {all:4}  {:5.1} %  {folder}", percent(*passed, *all));
    }
    let passed = verdicts.iter().filter(|verdict| verdict.result.is_ok()).count();
    let all = verdicts.len();
    let share = percent(passed, all);
    let outside = considered.saturating_sub(all);
    let _ = writeln!(text, "{passed:4} of {all:4}  {share:5.1} %  all; {outside} more are out of scope");
    say(&text);
    if let Some(path) = &arguments.results {
        text.push_str("\n\n");
        verdicts
            .iter()
            .filter(|verdict| verdict.result.is_err())
            .for_each(|it| text.extend([line(it), "\n".to_owned()]));
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn percent(part: usize, all: usize) -> f64 {
    if all == 0 { 100.0 } else { part as f64 * 100.0 / all as f64 }
}

/// Whether exactly the listed ones fail.
fn judge(verdicts: &[Verdict], known: &[Known]) -> bool {
    let mut right = true;
    for verdict in verdicts {
        let listed = known.iter().find(|known| known.scenario == verdict.case.name);
        match (&verdict.result, listed) {
            (_, Some(known)) if known.is_unsteady() => continue,
            (Ok(()), Some(_)) => say(&format!("{} passes: take it off the list", verdict.case.name)),
            (Err(_), None) => say(&format!("{} fails and is not listed", verdict.case.name)),
            _ => continue,
        }
        right = false;
    }
    right
}

fn list(cases: &[Case]) {
    for case in cases {
        let reason = case.excluded.map(|reason| format!("  out of scope: {reason}")).unwrap_or_default();
        say(&format!("{} ({}){reason}", case.name, case.area));
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        let key = case
            .excluded
            .map_or_else(|| format!("in scope: {}", folder(case)), |reason| format!("out of scope: {reason}"));
        *counts.entry(key).or_default() += 1;
    }
    for (key, count) in counts {
        say(&format!("{count:5}  {key}"));
    }
}

#[expect(clippy::print_stdout, reason = "the output of a developer's tool")]
fn say(text: &str) {
    println!("{text}");
}
