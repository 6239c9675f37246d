//! `ephor plan`: what generate and mutate-existing rules would create, change and delete, and which verdicts about
//! existing objects would change.

mod deletions;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use ephor_background::preview::{Namespaces, Preview, Proposal, Scope, Settings, preview};
use ephor_cluster::memory::Options;
use ephor_cluster::{Cluster, MemoryCluster};
use ephor_engine::compile::{Body, Program};
use ephor_expr::Value;
use ephor_scan::existing::{Documents, Unjudged};
use ephor_scan::verdicts::{Turn, Verdicts};

use super::CommandResult;
use super::cluster::ClusterArgs;
use crate::exit::Exit;
use crate::load::{LoadedException, LoadedPolicy, load_policies, read_objects};
use crate::locate::Located;
use crate::output::plan;
use crate::policy_change::{PolicyChange, is_policy, stored};
use crate::ui::Ui;

/// Arguments of `ephor plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor plan policies/ --resource namespace.yaml --resource source.yaml
  ephor plan policy.yaml --cluster                     what applying the policy would do
  ephor plan --cluster --resource namespace.yaml       what creating the namespace would do
  ephor plan --cluster --delete policy.yaml            what deleting the policy would do
  ephor plan --cluster                                 what is still to be done
  ephor plan new/ --base old/ --resource app/          what new policies say that old ones did not
  ephor plan --deletions --cluster                     what cleanup policies and lifetimes delete now and next

Each object that the rules would create, change or delete is printed as a diff, with the policy,
the rule and the object that it is for; the labels by which Ephor knows what it made are left out.
For policies that are new, changed or deleted, the objects that would begin or cease to fail are
printed by rule and namespace, judged as the reports controller judges them. Nothing is written,
and values of Secrets are not shown. The plan is made by the controller of
`ephor serve background` itself, on a copy in memory. With --cluster the API server is asked what
it would make of each object, as a dry run, where that is allowed.

Exit codes: 0 if the plan could be made, 1 if a write would fail or an object would begin to fail,
2 if there is no plan.
With --exit-code also 1 if there is something to do.")]
pub(super) struct Args {
    /// Policies, exceptions and global context entries that are applied: files, directories, globs, or `-` for
    /// standard input. With `--cluster` they come
    /// beside those that are stored, or in place of those of the same name.
    #[arg(required_unless_present = "cluster", value_name = "POLICY")]
    policies: Vec<String>,
    /// Objects that are applied: triggers, and without `--cluster` all that the policies read.
    #[arg(long = "resource", short, visible_alias = "resources", value_name = "FILE")]
    resources: Vec<PathBuf>,
    /// Objects and policies that are deleted.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    delete: Vec<PathBuf>,
    /// Policies and exceptions as they are now: files, directories or globs. A cluster has its own.
    #[arg(long, value_name = "POLICY", conflicts_with = "cluster")]
    base: Vec<String>,
    /// Show instead what cleanup and deleting policies would delete, now and at the next times of their schedules, and
    /// what the label for lifetimes will. Objects count as they are now.
    #[arg(long, conflicts_with_all = ["delete", "base"])]
    deletions: bool,
    /// How many times of each schedule are shown, besides now.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "deletions")]
    times: usize,
    /// Exit with 1 if there is something to do.
    #[arg(long)]
    exit_code: bool,
    /// The ConfigMap with the settings of the installation, in the cluster or among the resources; it says what no
    /// policy sees.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "kyverno/kyverno", value_parser = settings)]
    config_map: Settings,
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn settings(text: &str) -> Result<Settings, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Settings { namespace: namespace.into(), name: name.into() })
        }
        _ => Err("expected NAMESPACE/NAME".to_owned()),
    }
}

/// Prints the plan. What would fail is a finding.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    if args.deletions {
        return deletions::run(args, ui);
    }
    let with_cluster = args.cluster.cluster;
    let mut findings: Vec<Located> = Vec::new();
    let mut read = |paths: &[PathBuf]| -> Vec<Value> {
        let read = paths.iter().map(|path| read_objects(path, &|_, _| false));
        let objects = read.filter_map(|read| read.map_err(|found| findings.extend(found)).ok()).flatten();
        objects.map(|loaded| loaded.object).collect()
    };
    let (resources, deleted) = (read(&args.resources), read(&args.delete));
    let cluster: Arc<dyn Cluster> = if with_cluster {
        args.cluster.connect_for_dry_runs()?
    } else {
        let files = MemoryCluster::new(Options::offline());
        files.serve_kinds_of(&resources);
        Arc::new(files)
    };
    let served = cluster.discovery().context("cannot find out what the cluster serves")?;
    let base = load_policies(&args.base, Arc::clone(&served));
    let loaded = load_policies(&args.policies, served);
    let findings: Vec<Located> = loaded.findings.into_iter().chain(base.findings).chain(findings).collect();
    ui.errors(&findings);
    if findings.iter().any(Located::is_error) {
        return Ok(Exit::CouldNot);
    }
    if let Some(policy) =
        loaded.policies.iter().chain(&base.policies).find(|policy| !policy.program.id.kind.is_stored())
    {
        let id = &policy.program.id;
        return Err(anyhow!("{} {id} cannot be planned yet; `ephor apply` shows what it does", id.kind.as_str()).into());
    }
    if let Some(object) = resources.iter().find(|object| object.str_at(&["metadata", "name"]).is_none()) {
        let kind = object.str_at(&["kind"]).unwrap_or_default();
        return Err(anyhow!("a {kind} of the resources has no name").into());
    }
    let documents = |policies: &[LoadedPolicy], exceptions: &[LoadedException]| Documents {
        policies: policies.iter().map(|policy| policy.document.clone()).collect(),
        exceptions: exceptions.iter().map(|exception| exception.document.clone()).collect(),
    };
    let proposed = documents(&loaded.policies, &loaded.exceptions);
    let globals = loaded.globals.iter().map(|(document, _)| document.clone());
    let own = proposed.policies.iter().chain(&proposed.exceptions).cloned();
    let applied: Vec<Value> = own.chain(globals).chain(resources).collect();
    let names_policies = !args.policies.is_empty() || deleted.iter().any(is_policy);
    let proposal = Proposal {
        applied,
        deleted,
        scope: if names_policies { Scope::Proposed } else { Scope::All },
        namespaces: if with_cluster { Namespaces::Stored } else { Namespaces::Assumed },
        settings: args.config_map.clone(),
    };
    let now = jiff::Timestamp::now();
    let (mut found, planned) = preview(&cluster, &proposal, now).context("the plan cannot be made")?;
    let stored = if with_cluster { stored(&*cluster)? } else { documents(&base.policies, &base.exceptions) };
    let change = PolicyChange::new(&stored, &proposed, &proposal.deleted);
    let verdicts =
        change.verdicts(&planned, proposal.namespaces, args.cluster.namespace.as_deref(), &found.filters, now)?;
    if let Some(namespace) = &args.cluster.namespace {
        found.changes.retain(|planned| planned.change.id.namespace == *namespace);
    }
    ui.result(&plan::verdicts(&verdicts, ui.colour()))?;
    if verdicts.judged == 0 || !found.changes.is_empty() || !found.failures.is_empty() {
        ui.result(&plan::text(&found, ui.colour()))?;
    }
    tell(&found, ui);
    tell_verdicts(&verdicts, ui);
    if !loaded.policies.is_empty() && !loaded.policies.iter().any(|policy| acts(&policy.program)) {
        ui.say("hint: no rule of these policies judges or mutates existing objects or generates some");
    } else if !with_cluster && args.resources.is_empty() {
        ui.say("hint: there are no triggers: `--resource FILE` brings some, `--cluster` finds those that exist");
    }
    let busy = args.exit_code && !(found.changes.is_empty() && verdicts.changed.is_empty());
    let fails = !found.failures.is_empty() || verdicts.changed.iter().any(|changed| changed.turn != Turn::CeasesToFail);
    Ok(if fails || busy { Exit::Findings } else { Exit::Clean })
}

/// Whether a policy has rules that concern what exists.
fn acts(program: &Program) -> bool {
    program.rules.iter().any(|rule| match &rule.body {
        Body::Generate(_) | Body::Validate(_) => true,
        Body::Mutate(body) => body.targets.is_some(),
        Body::Admission(_) | Body::Policy(_) | Body::Delete(_) => false,
    })
}

fn tell_verdicts(found: &Verdicts, ui: &Ui) {
    let Unjudged { unseen, of_requests, of_operations, hidden } = &found.unjudged;
    for unseen in unseen {
        ui.say(&format!("warning: not judged: {unseen}"));
    }
    for policy in of_requests {
        ui.say(&format!("note: policy {policy} is not judged: with `background: false` its rules judge requests only"));
    }
    for (policy, rule) in of_operations {
        ui.say(&format!(
            "note: policy {policy}, rule {rule} judges no existing object: these count as being created, and the rule is \
             about other operations"
        ));
    }
    if *hidden > 0 {
        let objects = if *hidden == 1 { "1 object is".to_owned() } else { format!("{hidden} objects are") };
        ui.say(&format!(
            "note: {objects} not judged: the `resourceFilters` of the settings hide them from all policies"
        ));
    }
}

fn tell(found: &Preview, ui: &Ui) {
    for unseen in &found.unseen {
        ui.say(&format!("warning: not planned for, because it may not be read: {unseen}"));
    }
    for hidden in &found.hidden {
        ui.say(&format!("note: no policy sees {hidden}: the `resourceFilters` of the settings hide it"));
    }
    for failed in &found.failures {
        ui.say(&format!("error: policy {}, {}: {}", failed.policy, failed.what, failed.why));
    }
}
