//! `ephor apply`: policies over resources in files.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::CommandResult;
use crate::apply::pipeline::{self, Input};
use crate::apply::{Inputs, Judged, Plan, Selected, Sink};
use crate::exit::Exit;
use crate::locate::Located;
use crate::output::text;
use crate::ui::Ui;

/// Arguments of `ephor apply`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Policies: files, directories, globs, or `-` for standard input.
    #[arg(required = true, value_name = "POLICY")]
    policies: Vec<String>,
    /// Resources to judge: files, directories, globs, or `-` for standard input.
    #[arg(long = "resource", short, visible_alias = "resources", value_delimiter = ',', value_name = "PATH")]
    resources: Vec<String>,
    /// Objects that mutate-existing rules may change.
    #[arg(long = "target-resource", visible_alias = "target-resources", value_delimiter = ',', value_name = "PATH")]
    targets: Vec<String>,
    /// Exceptions: files, directories or globs.
    #[arg(long = "exception", short, visible_alias = "exceptions", value_delimiter = ',', value_name = "PATH")]
    exceptions: Vec<String>,
    /// Take the exceptions from the resource files instead.
    #[arg(long, alias = "exceptions-within-resources", conflicts_with = "exceptions")]
    exceptions_with_resources: bool,
    /// Take the exceptions of the policy files too.
    #[arg(long)]
    exceptions_within_policies: bool,
    /// Files of CRDs: they tell which kinds have no namespace.
    #[arg(long = "crd-paths", alias = "crd-path", value_delimiter = ',', value_name = "PATH")]
    crds: Vec<String>,
    /// Where mutated and generated objects are written: a file (`.yaml`, `.yml`) or a directory.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Count violations under Audit as warnings.
    #[arg(long)]
    audit_warn: bool,
    /// Exit with this code when there are warnings and nothing worse.
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    warn_exit_code: u8,
    /// Exit with the code of `--warn-exit-code` when nothing passed.
    #[arg(long)]
    warn_no_pass: bool,
    /// Leave out the line that says what is applied.
    #[arg(long, short = 'i')]
    stdin: bool,
    /// Skip documents that are no resources: they are warnings then.
    #[arg(long)]
    continue_on_fail: bool,
}

/// Applies policies to resources.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let selected = Selected {
        policies: &args.policies,
        resources: &args.resources,
        targets: &args.targets,
        exceptions: &args.exceptions,
        exceptions_with_resources: args.exceptions_with_resources,
        exceptions_within_policies: args.exceptions_within_policies,
        crds: &args.crds,
    };
    if selected.resources.is_empty() {
        bail_with("no resources: give some with `--resource`")?;
    }
    let loaded = Inputs::load(&selected);
    ui.findings(&loaded.findings);
    let mut could_not = loaded.findings.iter().any(Located::is_error);
    let mut plan = loaded.plan;
    plan.audit_warn = args.audit_warn;
    plan.print_changes = args.output.is_none();
    plan.write_changes = args.output.is_some();
    let sink = args.output.as_deref().map(|path| {
        Sink::open(path).with_context(|| format!("cannot write to `{}`", path.display())).map(|sink| (sink, path))
    });
    let total = judge(&plan, &loaded.resources, sink.transpose()?, args.continue_on_fail, ui)?;
    could_not |= total.could_not;
    let mut judged = total.judged;
    judged.tally.error += loaded.refused.len() as u64;
    let mut out = String::new();
    if !args.stdin {
        out.push_str(&text::header(plan.rule_count(), judged.resources, loaded.exception_count));
    }
    out.push_str(&judged.changes);
    out.push_str(&text::rows(&plan, &judged.rows));
    out.push_str(&text::refused(&loaded.refused));
    out.push_str(&text::summary(&judged.tally));
    ui.result(&out)?;
    Ok(exit(args, &judged, could_not, ui))
}

struct Total {
    judged: Judged,
    could_not: bool,
}

fn judge(
    plan: &Plan,
    inputs: &[Input],
    mut sink: Option<(Sink, &std::path::Path)>,
    lenient: bool,
    ui: &Ui,
) -> anyhow::Result<Total> {
    let bar = ui.progress(None, "resources");
    let mut total = Total { judged: Judged::default(), could_not: false };
    pipeline::run(plan, inputs, |judged| {
        bar.inc(judged.resources);
        for fault in judged.faults {
            total.could_not |= !lenient;
            bar.suspend(|| ui.findings(std::slice::from_ref(&fault)));
        }
        if let Some((sink, path)) = &mut sink {
            for write in &judged.writes {
                sink.write(write).with_context(|| format!("cannot write to `{}`", path.display()))?;
            }
        }
        total.judged.resources += judged.resources;
        total.judged.tally.merge(&judged.tally);
        total.judged.rows.extend(judged.rows);
        total.judged.changes.push_str(&judged.changes);
        anyhow::Ok(())
    })?;
    if let Some((sink, path)) = sink {
        sink.close().with_context(|| format!("cannot write to `{}`", path.display()))?;
    }
    bar.finish_and_clear();
    Ok(total)
}

fn bail_with(message: &str) -> anyhow::Result<()> {
    bail!("{message}")
}

/// What the run comes to (cli 1.1): what could not be done is worst, then failures, then warnings.
fn exit(args: &Args, judged: &Judged, could_not: bool, ui: &Ui) -> Exit {
    let tally = &judged.tally;
    if could_not {
        Exit::CouldNot
    } else if tally.fail > 0 || tally.error > 0 {
        Exit::Findings
    } else if tally.warn > 0 && args.warn_exit_code != 0 {
        ui.say(&format!("exit as warnExitCode is {}", args.warn_exit_code));
        Exit::Chosen(args.warn_exit_code)
    } else if args.warn_no_pass && tally.pass == 0 {
        ui.say("exit as no objects satisfied policy");
        Exit::Chosen(args.warn_exit_code)
    } else {
        Exit::Clean
    }
}
