//! `ephor report`: policy reports of a cluster or of files, summed up.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use ephor_cluster::Cluster;
use ephor_engine::outcome::Verdict;
use ephor_scan::existing::judge_all;

use super::CommandResult;
use super::cluster::ClusterArgs;
use crate::exit::Exit;
use crate::load::{STDIN, read_objects};
use crate::output::{diagnostics, reports as output};
use crate::policy_change;
use crate::reports::{self, Filter, Found, Overview, Severity};
use crate::ui::Ui;

/// Arguments of `ephor report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor report --cluster                                what fails where, the worst first
  ephor report --cluster -n shop --result fail,error -o wide
  ephor report --cluster --compute                      judges now, whatever reports are stored
  ephor report --cluster -o html > reports.html         one page that opens by itself
  ephor report --compare monday.yaml friday.yaml        what failed on Monday and does not now
  ephor apply policies/ --resource app/ --policy-report | ephor report -

Reads PolicyReport and ClusterPolicyReport of wgpolicyk8s.io, and the reports of openreports.io.
With --compute it needs none: it judges what exists.
Filters on names take the wildcards * and ?. Nothing is written.

Exit codes: 0 if the reports could be read, 1 if a result is one of --fail-on, 2 if they could not
be read.")]
pub(super) struct Args {
    /// Files with reports: files, directories, globs, or `-` for standard input.
    #[arg(required_unless_present = "cluster", conflicts_with = "cluster", value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// Older reports to compare with: files, directories or globs.
    #[arg(long, value_name = "REPORT")]
    compare: Vec<PathBuf>,
    /// The format of the output.
    #[arg(long, short, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// Exit with 1 if there are such results.
    #[arg(long, value_name = "RESULT", value_delimiter = ',', value_parser = verdict)]
    fail_on: Vec<Verdict>,
    /// Only results of this policy: `NAME` or `NAMESPACE/NAME`.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    policy: Vec<String>,
    /// Only objects of this namespace.
    #[arg(long, short = 'n', value_name = "NAME", value_delimiter = ',')]
    namespace: Vec<String>,
    /// Only these results: pass, fail, warn, error, skip.
    #[arg(long, value_name = "RESULT", value_delimiter = ',', value_parser = verdict)]
    result: Vec<Verdict>,
    /// Only results of this severity.
    #[arg(long, value_delimiter = ',')]
    severity: Vec<Severity>,
    /// Only objects of this kind.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<String>,
    /// Only policies of this category.
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
    /// Read the reports of a cluster: the one that kubectl would use.
    #[arg(long, short = 'c')]
    cluster: bool,
    /// Judge the objects of the cluster by its policies now, as the reports controller does, instead of reading
    /// reports.
    #[arg(long, requires = "cluster")]
    compute: bool,
    /// The kubeconfig of the cluster.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    context: Option<String>,
}

/// Formats of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Counts by policy and namespace.
    Table,
    /// The counts, and what does not pass with messages.
    Wide,
    /// One object.
    Json,
    /// One document.
    Yaml,
    /// For pull requests.
    Markdown,
    /// For code scanning.
    Sarif,
    /// One page for a browser.
    Html,
}

fn verdict(word: &str) -> Result<Verdict, String> {
    Verdict::parse(word).ok_or_else(|| "expected pass, fail, warn, error or skip".to_owned())
}

/// Prints the reports.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let cluster = args.cluster.then(|| connect(args)).transpose()?;
    let shown = ran(args, cluster.as_ref(), ui.colour())?;
    for warning in &shown.warnings {
        ui.say(&format!("warning: {warning}; it is left out"));
    }
    ui.result(&shown.text)?;
    Ok(shown.exit)
}

fn connect(args: &Args) -> anyhow::Result<Arc<crate::host::ReadOnly>> {
    let (kubeconfig, context) = (args.kubeconfig.clone(), args.context.clone());
    ClusterArgs { cluster: true, kubeconfig, context, namespace: None }.connect()
}

/// What a run shows.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) exit: Exit,
    /// Reports of the cluster that cannot be read. Who may write in a namespace may write reports there, and must not
    /// hide those of others.
    pub(super) warnings: Vec<String>,
}

/// The text and the exit code. `cluster` is the one of `--cluster`.
pub(super) fn ran<C: Cluster + 'static>(args: &Args, cluster: Option<&Arc<C>>, colour: bool) -> anyhow::Result<Shown> {
    if args.compare.iter().chain(&args.reports).filter(|path| *path == Path::new(STDIN)).count() > 1 {
        bail!("`-` stands for standard input, which can be read only once");
    }
    let filter = Filter {
        policies: args.policy.clone(),
        namespaces: args.namespace.clone(),
        results: args.result.clone(),
        severities: args.severity.clone(),
        kinds: args.kind.clone(),
        categories: args.category.clone(),
    };
    let (results, warnings) = match cluster {
        Some(cluster) if args.compute => computed(&(Arc::clone(cluster) as Arc<dyn Cluster>), &filter)?,
        Some(cluster) => stored(&**cluster, &filter)?,
        None => (read(&args.reports, &filter)?, Vec::new()),
    };
    let older = if args.compare.is_empty() { None } else { Some(read(&args.compare, &filter)?) };
    let overview = Overview::new(results, older.as_deref());
    let text = match args.output {
        Format::Table => output::table(&overview, colour),
        Format::Wide => output::wide(&overview, colour),
        Format::Json => output::json(&overview),
        Format::Yaml => output::yaml(&overview),
        Format::Markdown => output::markdown(&overview),
        Format::Sarif => output::sarif(&overview),
        Format::Html => output::html(&overview),
    };
    let fails = overview.results.iter().any(|found| args.fail_on.contains(&found.result));
    Ok(Shown { text, exit: if fails { Exit::Findings } else { Exit::Clean }, warnings })
}

/// The results of files.
fn read(paths: &[PathBuf], filter: &Filter) -> anyhow::Result<Vec<Found>> {
    let cluster_scoped = |_: &str, kind: &str| kind.starts_with("Cluster");
    let mut all = Vec::new();
    for path in paths {
        let objects = read_objects(path, &cluster_scoped).map_err(|findings| {
            let lines: Vec<String> = findings.iter().map(diagnostics::concise).collect();
            anyhow!(lines.join("\n"))
        })?;
        for loaded in objects {
            let file = &loaded.origin.file.name;
            let found = reports::found(&loaded.object).with_context(|| format!("cannot use `{file}`"))?;
            all.extend(found.into_iter().filter(|found| filter.takes(found)));
        }
    }
    Ok(all)
}

/// The results of judging a cluster now, and what cannot be judged.
fn computed(cluster: &Arc<dyn Cluster>, filter: &Filter) -> anyhow::Result<(Vec<Found>, Vec<String>)> {
    let documents = policy_change::stored(&**cluster)?;
    let answers = policy_change::answers(cluster)?;
    let only = match filter.namespaces.as_slice() {
        [one] if !one.contains(['*', '?']) => Some(one.as_str()),
        _ => None,
    };
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    let unjudged = judge_all(&**cluster, &documents, only, &answers, jiff::Timestamp::now(), |object, results| {
        match reports::of_results(object, results) {
            Ok(found) => all.extend(found.into_iter().filter(|found| filter.takes(found))),
            Err(error) => warnings.push(error.to_string()),
        }
    });
    let unjudged = unjudged.context("existing objects cannot be judged")?;
    warnings.extend(unjudged.unseen);
    let of_requests = unjudged.of_requests.iter();
    warnings.extend(of_requests.map(|policy| format!("policy {policy} judges requests only (`background: false`)")));
    let of_operations = unjudged.of_operations.iter();
    warnings.extend(of_operations.map(|(policy, rule)| format!("policy {policy}, rule {rule} judges no creations")));
    Ok((all, warnings))
}

/// The results of a cluster, and what of it cannot be read.
fn stored(cluster: &dyn Cluster, filter: &Filter) -> anyhow::Result<(Vec<Found>, Vec<String>)> {
    let served = cluster.discovery().context("cannot find out what the cluster serves")?;
    let kinds = reports::kinds(&served);
    if kinds.is_empty() {
        bail!("the cluster serves no policy reports: neither wgpolicyk8s.io nor openreports.io");
    }
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    // While an installation changes from one group of reports to the other, results are stored in both.
    let mut known: HashSet<Found> = HashSet::new();
    for kind in &kinds {
        let take = |report: &_| match reports::found(report) {
            Ok(found) => all.extend(found.into_iter().filter(|f| filter.takes(f) && known.insert(f.clone()))),
            Err(error) => warnings.push(error.to_string()),
        };
        let unreadable = reports::list(cluster, kind, take)
            .with_context(|| format!("cannot read the reports of kind {}", kind.kind))?;
        warnings.extend(unreadable.into_iter().map(|why| format!("a {} cannot be read: {why}", kind.kind)));
    }
    Ok((all, warnings))
}
