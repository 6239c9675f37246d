//! `ephor apply`: policies over resources in files, or over what exists in a cluster.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use clap::ValueEnum;
use ephor_expr::scalar::nearest::nearest;

use super::CommandResult;
use super::cluster::ClusterArgs;
use crate::apply::{self, Existing, Extent, Inputs, Keep, Results, Selected};
use crate::exit::Exit;
use crate::host::{AllowedHost, ReadOnly};
use crate::output::report::Format as ReportFormat;
use crate::output::{exceptions, github, junit, markdown, report, sarif, structured, text};
use crate::ui::Ui;

/// Arguments of `ephor apply`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Args {
    /// Policies: files, directories, globs, or `-` for standard input. With `--cluster` those that are stored there, if
    /// none are given.
    #[arg(required_unless_present = "cluster", value_name = "POLICY")]
    policies: Vec<String>,
    /// Resources to evaluate: files, directories, globs, or `-` for standard input.
    #[arg(long = "resource", short, visible_alias = "resources", value_delimiter = ',', value_name = "PATH")]
    resources: Vec<String>,
    /// Objects that mutate-existing rules may change.
    #[arg(long = "target-resource", visible_alias = "target-resources", value_delimiter = ',', value_name = "PATH")]
    targets: Vec<String>,
    /// Values for variables and context data (kind `Values`).
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with = "set")]
    values_file: Option<PathBuf>,
    /// Values for variables: `request.operation=UPDATE,cm.data.key=x`.
    #[arg(long, short, value_delimiter = ',', value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Objects and images that functions in CEL find (kind `Context`).
    #[arg(long, value_name = "FILE")]
    context_file: Option<PathBuf>,
    /// The user who makes the request (kind `UserInfo`).
    #[arg(long, short, value_name = "FILE")]
    userinfo: Option<PathBuf>,
    /// Exceptions: files, directories or globs.
    #[arg(long = "exception", short, visible_alias = "exceptions", value_delimiter = ',', value_name = "PATH")]
    exceptions: Vec<String>,
    /// Take the exceptions from the resource files instead.
    #[arg(long, visible_alias = "exceptions-within-resources", conflicts_with = "exceptions")]
    exceptions_with_resources: bool,
    /// Take the exceptions of the policy files too.
    #[arg(long)]
    exceptions_within_policies: bool,
    /// CRD files. They tell which kinds are cluster-scoped.
    #[arg(long = "crd-paths", alias = "crd-path", value_delimiter = ',', value_name = "PATH")]
    crds: Vec<String>,
    /// Let policies call services of this host and look its name up: `HOST` or `HOST:PORT`; may be repeated.
    #[arg(long, value_name = "HOST")]
    allow_net: Vec<AllowedHost>,
    /// Where to write mutated and generated objects: a file (`.yaml`, `.yml`) or a directory. The name of a format
    /// means `--output-format`, unless a file or directory of that name exists; write `./json` for a directory.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// The format of the results; with `--policy-report` that of the reports, YAML unless said otherwise.
    #[arg(long, value_name = "FORMAT")]
    output_format: Option<Format>,
    /// Print reports.
    #[arg(long, short)]
    policy_report: bool,
    /// Print exceptions for what fails.
    #[arg(long, conflicts_with = "policy_report")]
    generate_exceptions: bool,
    /// How long generated exceptions are valid.
    #[arg(long, value_name = "DURATION", default_value = "720h")]
    generated_exception_ttl: String,
    /// Print a table of all results.
    #[arg(long, short, conflicts_with_all = ["policy_report", "generate_exceptions"])]
    table: bool,
    /// Print a table with messages.
    #[arg(long, conflicts_with_all = ["policy_report", "generate_exceptions"])]
    detailed_results: bool,
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
    /// Skip documents that are not resources, with a warning.
    #[arg(long)]
    continue_on_fail: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Only cluster-scoped objects.
    #[arg(long, requires = "cluster", conflicts_with = "namespace")]
    cluster_wide_resources: bool,
    #[command(flatten)]
    not_built: NotBuilt,
}

/// Formats of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// What failed, for people.
    Text,
    /// One object.
    Json,
    /// One object.
    Yaml,
    /// For pull requests.
    Markdown,
    /// For test reports.
    Junit,
    /// For code scanning.
    Sarif,
    /// Annotations of workflows.
    Github,
}

/// Upstream's options that Ephor does not have: refused with a reason, never ignored.
#[derive(Debug, clap::Args)]
struct NotBuilt {
    #[arg(long, hide = true)]
    registry: bool,
    #[arg(long, hide = true, value_name = "PATH")]
    parameter_resource: Vec<String>,
    #[arg(long, hide = true, value_name = "PATH")]
    json: Vec<String>,
    #[arg(long, hide = true, value_name = "PATH")]
    http_payload: Vec<String>,
    #[arg(long, hide = true, value_name = "PATH")]
    envoy_payload: Vec<String>,
    #[arg(long, short = 'b', hide = true, value_name = "BRANCH")]
    git_branch: Option<String>,
}

impl NotBuilt {
    /// The first of them that is given, and what to do instead.
    fn refusal(&self) -> Option<String> {
        let cel_only = "it serves policies of `policies.kyverno.io` in modes that are not supported yet";
        let no_registry = "image registries are not used yet: give the data in a values file (`--values-file`)";
        let asked = [
            ("--registry", self.registry, no_registry),
            ("--parameter-resource", !self.parameter_resource.is_empty(), cel_only),
            ("--json", !self.json.is_empty(), cel_only),
            ("--http-payload", !self.http_payload.is_empty(), cel_only),
            ("--envoy-payload", !self.envoy_payload.is_empty(), cel_only),
            ("--git-branch", self.git_branch.is_some(), "clone the repository and give its directory"),
        ];
        asked.into_iter().find(|(_, given, _)| *given).map(|(flag, _, reason)| format!("`{flag}`: {reason}"))
    }
}

/// Applies policies to resources.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let ran = ran(args, ui, ClusterArgs::connect)?;
    ui.errors(&ran.results.findings);
    ui.result(&ran.text)?;
    Ok(ran.exit)
}

/// What other tools call a table.
const TABLES: [&str; 2] = ["table", "wide"];

/// What `--output` and `--output-format` ask for.
struct Output<'a> {
    /// Where changed objects go.
    changes: Option<&'a Path>,
    /// How results are printed.
    format: Option<Format>,
}

impl<'a> Output<'a> {
    /// `-o json` means the format, as with other commands, and `-o jsn` is an error. A path that exists, `./json` and
    /// `-o json` beside `--output-format` keep upstream's meaning.
    fn of(args: &'a Args) -> anyhow::Result<Self> {
        let changes = args.output.as_deref();
        let named = changes.filter(|path| args.output_format.is_none() && !path.exists()).and_then(Path::to_str);
        let Some(name) = named else { return Ok(Self { changes, format: args.output_format }) };
        if let Ok(format) = Format::from_str(name, true) {
            return Ok(Self { changes: None, format: Some(format) });
        }
        if TABLES.contains(&name) {
            bail!(
                "`-o {name}` is no format here: for a table use `--table`, for a directory of that name `-o ./{name}`"
            );
        }
        let formats: Vec<_> = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
        let near = nearest(name, formats.iter().map(clap::builder::PossibleValue::get_name));
        if let Some(near) = near.filter(|_| !name.contains(['/', '\\', '.'])) {
            bail!("`-o {name}` is no format: did you mean `{near}`? For a directory of that name use `-o ./{name}`");
        }
        Ok(Self { changes, format: None })
    }
}

/// What a run came to, and how it is shown.
pub(super) struct Ran {
    pub(super) results: Results,
    pub(super) text: String,
    pub(super) exit: Exit,
}

/// Runs, on the cluster that `connect` gives if one is asked for.
pub(super) fn ran(
    args: &Args,
    ui: &Ui,
    connect: impl FnOnce(&ClusterArgs) -> anyhow::Result<Arc<ReadOnly>>,
) -> anyhow::Result<Ran> {
    if let Some(refusal) = args.not_built.refusal() {
        bail!(refusal);
    }
    if args.resources.is_empty() && !args.cluster.cluster {
        bail!("no resources: give some with `--resource`, or `--cluster`");
    }
    if args.cluster.cluster && !args.targets.is_empty() {
        bail!("`--target-resource`: with `--cluster` the targets are those of the cluster");
    }
    let dashes = [&args.policies, &args.resources, &args.targets, &args.exceptions];
    if dashes.into_iter().flatten().filter(|argument| *argument == "-").count() > 1 {
        bail!("`-` stands for standard input, which can be read only once");
    }
    let table = args.table || args.detailed_results;
    let Output { changes, format: asked } = Output::of(args)?;
    let format = match asked {
        Some(format) if table && format != Format::Text => bail!("a table is text: `--output-format` does not apply"),
        Some(format) => format,
        None => Format::Text,
    };
    let cluster = args.cluster.cluster.then(|| connect(&args.cluster)).transpose()?;
    let existing = cluster.map(|cluster| Existing { cluster, extent: extent(args) });
    let mut inputs = Inputs::load(&selected(args, existing.as_ref()));
    let listing = args.policy_report || args.generate_exceptions;
    let text_only = format == Format::Text && !listing;
    let plan = &mut inputs.plan;
    plan.audit_warn = args.audit_warn;
    plan.write_changes = changes.is_some();
    // What is not text stays clean for programs.
    plan.print_changes = changes.is_none() && text_only;
    plan.keep = match format {
        _ if args.policy_report || table => Keep::All,
        Format::Json | Format::Yaml | Format::Junit | Format::Markdown => Keep::All,
        Format::Text | Format::Sarif | Format::Github => Keep::Findings,
    };
    let results = apply::run(inputs, changes, args.continue_on_fail, ui)?;
    let exit = exit(args, &results);
    let mut text = if args.policy_report {
        let format = match asked {
            None | Some(Format::Yaml) => ReportFormat::Yaml,
            Some(Format::Json) => ReportFormat::Json,
            Some(_) => bail!("reports are YAML or JSON: `--output-format yaml` or `json`"),
        };
        report::render(&results, format)
    } else if args.generate_exceptions {
        exceptions::render(&results, &args.generated_exception_ttl)
    } else {
        let style = text::Style { colour: ui.colour(), bare: args.stdin, table, detailed: args.detailed_results };
        match format {
            Format::Text => text::render(&results, style),
            Format::Json => structured::json(&results),
            Format::Yaml => structured::yaml(&results),
            Format::Markdown => markdown::render(&results),
            Format::Junit => junit::render(&results),
            Format::Sarif => sarif::render(&results),
            Format::Github => github::render(&results),
        }
    };
    if text_only && nothing_done(&results) {
        // Counts of nothing would look like a clean run.
        text.clear();
    }
    if text_only && let Exit::Chosen(code) = exit {
        let _ = match results.tally.warn {
            0 => writeln!(text, "exit as no objects satisfied policy"),
            _ => writeln!(text, "exit as warnExitCode is {code}"),
        };
    }
    Ok(Ran { results, text, exit })
}

/// Whether there was nothing to apply, or nothing to apply it to, because something could not be loaded.
fn nothing_done(results: &Results) -> bool {
    let policies = results.plan.policies.len() + results.refused.len();
    results.could_not && (results.resources == 0 || policies == 0)
}

/// Which objects of a cluster are judged.
fn extent(args: &Args) -> Extent {
    match &args.cluster.namespace {
        Some(namespace) => Extent::Namespace(namespace.into()),
        None if args.cluster_wide_resources => Extent::ClusterWide,
        None => Extent::Everything,
    }
}

fn selected<'a>(args: &'a Args, cluster: Option<&'a Existing>) -> Selected<'a> {
    Selected {
        policies: &args.policies,
        cluster,
        resources: &args.resources,
        targets: &args.targets,
        values: args.values_file.as_deref(),
        set: &args.set,
        context: args.context_file.as_deref(),
        user: args.userinfo.as_deref(),
        exceptions: &args.exceptions,
        exceptions_with_resources: args.exceptions_with_resources,
        exceptions_within_policies: args.exceptions_within_policies,
        crds: &args.crds,
        allow_net: &args.allow_net,
    }
}

/// What the run comes to: what could not be done is worst, then failures, then warnings.
fn exit(args: &Args, results: &Results) -> Exit {
    let tally = &results.tally;
    if results.could_not {
        Exit::CouldNot
    } else if tally.fail > 0 || tally.error > 0 {
        Exit::Findings
    } else if (tally.warn > 0 && args.warn_exit_code != 0) || (args.warn_no_pass && tally.pass == 0) {
        Exit::Chosen(args.warn_exit_code)
    } else {
        Exit::Clean
    }
}
