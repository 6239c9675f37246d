//! `ephor plan`: what generate and mutate-existing rules would create, change and delete.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use ephor_cluster::memory::Options;
use ephor_cluster::{Cluster, MemoryCluster};
use ephor_expr::{Map, Value};
use ephor_server::background::preview::{Planned, Preview, preview};
use ephor_server::facts::{Answers, ClusterFacts};
use ephor_server::feed::Change;
use ephor_server::plan::diff;
use ephor_server::policies::{ExceptionScope, PolicyStore};

use super::CommandResult;
use super::cluster::ClusterArgs;
use crate::exit::Exit;
use crate::load::{load_policies, read_objects};
use crate::locate::Located;
use crate::ui::Ui;

/// Arguments of `ephor plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor plan policies/ --resource namespace.yaml --resource source.yaml
  ephor plan policy.yaml --cluster --resource namespace.yaml

Prints each object that the rules would create, change or delete, as a diff. Nothing is written, and values of
Secrets are not shown. With --cluster, what exists there is read: sources, and what the policies made before.")]
pub(super) struct Args {
    /// Policy files and directories.
    #[arg(required = true, value_name = "POLICY")]
    policies: Vec<String>,
    /// Files of triggers, and of objects that the policies read.
    #[arg(long, short, value_name = "FILE")]
    resource: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Prints the plan. What would fail is a finding.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let loaded = load_policies(&args.policies);
    let mut errors: Vec<Located> = loaded.findings;
    let mut objects: Vec<Value> = Vec::new();
    for path in &args.resource {
        match read_objects(path, &|_, _| false) {
            Ok(read) => objects.extend(read.into_iter().map(|loaded| loaded.object)),
            Err(found) => errors.extend(found),
        }
    }
    errors.retain(Located::is_error);
    ui.findings(&errors);
    if !errors.is_empty() {
        return Ok(Exit::CouldNot);
    }
    for (number, object) in objects.iter_mut().enumerate() {
        identify(object, number);
    }
    let cluster: Arc<dyn Cluster> = if args.cluster.cluster {
        args.cluster.connect()?
    } else {
        let memory = MemoryCluster::new(Options::offline());
        let refused = memory.load(objects.clone());
        if !refused.is_empty() {
            return Err(anyhow::anyhow!("{} objects have no kind or no name", refused.len()).into());
        }
        Arc::new(memory)
    };
    let store = PolicyStore::new(ExceptionScope::Disabled);
    for kind in ["ClusterPolicy", "Policy"] {
        let documents = loaded.policies.iter().map(|policy| policy.document.clone());
        let documents = documents.filter(|document| document.str_at(&["kind"]) == Some(kind));
        store.apply(kind, Change::Reset(documents.collect()));
    }
    let answers: Arc<dyn Answers> = Arc::new(ClusterFacts::new(Arc::clone(&cluster)));
    let plan = preview(&cluster, &answers, &store.snapshot(), &objects, jiff::Timestamp::now())
        .context("the plan cannot be made")?;
    ui.result(&text(&plan))?;
    for (policy, why) in &plan.failures {
        ui.say(&format!("{policy}: {why}"));
    }
    Ok(if plan.failures.is_empty() { Exit::Clean } else { Exit::Findings })
}

/// Gives an object of a file a UID: triggers are told apart by it.
fn identify(object: &mut Value, number: usize) {
    if object.str_at(&["metadata", "uid"]).is_some() {
        return;
    }
    let Some(metadata) = object.as_object_mut().map(|members| members.entry("metadata")) else { return };
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("uid", format!("file-{number}"));
    }
}

fn text(plan: &Preview) -> String {
    let mut out = String::new();
    for planned in &plan.changes {
        let Planned { policy, rule, change } = planned;
        let _ = writeln!(out, "policy {policy}, rule {rule}: {}", diff::render(change));
    }
    let count = |verbs: &[&str]| plan.changes.iter().filter(|p| verbs.contains(&p.change.verb())).count();
    let (create, change, delete) = (count(&["create"]), count(&["change", "mutate"]), count(&["delete"]));
    let _ = writeln!(out, "{create} to create, {change} to change, {delete} to delete");
    out
}
