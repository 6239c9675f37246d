//! `ephor plan --deletions`: what cleanup and deleting policies and the label for lifetimes would delete, now and at
//! the next times of their schedules.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use ephor_cleanup::forecast::Forecasts;
use ephor_cleanup::policy::{Kind, Mode, ScheduledPolicy};
use ephor_cleanup::run::Report;
use ephor_cluster::memory::Options;
use ephor_cluster::{Cluster, ErrorKind, MemoryCluster, object};
use ephor_engine::policy::ProgramKind;
use ephor_expr::Value;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::facts::{ClusterFacts, objects};
use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind};
use ephor_runtime::watcher::StoreEvent;
use jiff::Timestamp;

use super::super::CommandResult;
use super::Args;
use crate::exit::Exit;
use crate::load::read_objects;
use crate::locate::Located;
use crate::ui::Ui;

/// Prints what would be deleted. What cannot be told is a finding.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let mut findings: Vec<Located> = Vec::new();
    let mut read = |path: &std::path::Path| -> Vec<Value> {
        let read = read_objects(path, &|_, _| false).map_err(|found| findings.extend(found));
        read.into_iter().flatten().map(|loaded| loaded.object).collect()
    };
    let documents: Vec<Value> = args.policies.iter().flat_map(|path| read(path.as_ref())).collect();
    let resources: Vec<Value> = args.resources.iter().flat_map(|path| read(path)).collect();
    ui.errors(&findings);
    if findings.iter().any(Located::is_error) {
        return Ok(Exit::CouldNot);
    }
    let cluster: Arc<dyn Cluster> = if args.cluster.cluster {
        args.cluster.connect_for_dry_runs()?
    } else {
        let files = MemoryCluster::new(Options::offline());
        if let Some(refused) = files.load(resources.into_iter().enumerate().map(identified)).first() {
            return Err(anyhow!("{} cannot be taken: {}", object::name(&refused.object), refused.error).into());
        }
        Arc::new(files)
    };
    let discovery = cluster.discovery().context("cannot find out what the cluster serves")?;
    let mut policies: Vec<ScheduledPolicy> = documents.iter().filter_map(ScheduledPolicy::of_document).collect();
    if policies.is_empty() && args.cluster.cluster {
        policies = stored(&*cluster)?;
    }
    let now = Timestamp::now();
    let forecasts = Forecasts::new(
        Arc::clone(&cluster),
        Arc::new(ClusterFacts::new(Arc::clone(&cluster))),
        Arc::new(settings(&*cluster, args).get().resource_filters.clone()),
        Arc::clone(&exceptions(&*cluster, &documents)?.snapshot().exceptions),
    );
    let mut text = String::new();
    let (mut fails, mut busy) = (false, false);
    for policy in &policies {
        let mut times = vec![(now, "now".to_owned())];
        let mut at = now;
        while let Some(next) = policy.next(at).filter(|_| times.len() <= args.times) {
            times.push((next, next.to_string()));
            at = next;
        }
        let _ = writeln!(text, "{}", policy.key);
        for (at, called) in times {
            match forecasts.at(policy, &discovery, at) {
                Ok(report) => {
                    fails |= report.failed > 0;
                    busy |= report.due > 0;
                    line(&mut text, &called, &report, policy);
                }
                Err(why) => {
                    fails = true;
                    let _ = writeln!(text, "  it cannot run: {why}");
                    break;
                }
            }
        }
    }
    let (lifetimes, unseen) = forecasts.lifetimes(&discovery);
    if !lifetimes.is_empty() {
        text.push_str("label cleanup.kyverno.io/ttl\n");
    }
    for (due, object) in &lifetimes {
        let at = if *due <= now { "now".to_owned() } else { due.to_string() };
        busy |= *due <= now;
        let _ = writeln!(text, "  {at}: {object}");
    }
    for unseen in unseen {
        ui.say(&format!("warning: labels are not seen, because these may not be listed: {unseen}"));
    }
    if text.is_empty() {
        text.push_str("Nothing deletes anything.\n");
    }
    ui.result(&text)?;
    Ok(if fails || (busy && args.exit_code) { Exit::Findings } else { Exit::Clean })
}

/// What a policy would delete at one time.
fn line(text: &mut String, called: &str, report: &Report, policy: &ScheduledPolicy) {
    let options = policy.body.as_ref().map(|(_, options)| *options).unwrap_or_default();
    let note = match (options.mode, options.limit) {
        (Mode::Audit, _) => " (it only tells of them: ephor.dev/cleanup-mode)".to_owned(),
        (Mode::Delete, Some(limit)) if report.due > limit => {
            format!(" (none goes: more than {limit}, its ephor.dev/cleanup-limit)")
        }
        _ => String::new(),
    };
    let objects = if report.due == 1 { "object" } else { "objects" };
    let _ = writeln!(text, "  {called}: {} {objects}{note}", report.due);
    for name in &report.named {
        let _ = writeln!(text, "    {name}");
    }
    for failure in &report.failures {
        let _ = writeln!(text, "    error: {failure}");
    }
}

/// An object of a file as a cluster would have it: with an identity and a version.
fn identified((index, mut object): (usize, Value)) -> Value {
    for (key, value) in [("uid", format!("file-{index}")), ("resourceVersion", (index + 1).to_string())] {
        if object::text(&object, key).is_empty() {
            object::set(&mut object, key, value);
        }
    }
    object
}

/// The policies of a cluster that delete.
fn stored(cluster: &dyn Cluster) -> anyhow::Result<Vec<ScheduledPolicy>> {
    let kinds = Kind::CLEANUP.map(|kind| (kind.api_version(), kind.as_str()));
    let deleting = ProgramKind::DELETING.map(|(version, kind)| (version, kind.as_str()));
    let mut found = Vec::new();
    for (version, kind) in kinds.into_iter().chain(deleting) {
        found.extend(listed(cluster, version, kind)?.iter().filter_map(ScheduledPolicy::of_document));
    }
    Ok(found)
}

/// All objects of a kind; none of one that is not served.
fn listed(cluster: &dyn Cluster, version: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
    match objects(cluster, version, kind, "") {
        Ok(found) => Ok(found.as_array().unwrap_or_default().to_vec()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot list {kind}")),
    }
}

/// Exceptions of the cluster, and those of the files.
fn exceptions(cluster: &dyn Cluster, documents: &[Value]) -> anyhow::Result<PolicyStore> {
    let store = PolicyStore::deleting(ExceptionScope::Everywhere);
    let mut found = listed(cluster, "policies.kyverno.io/v1beta1", "PolicyException")?;
    found.extend(
        documents.iter().filter(|document| StoredKind::of(document) == Some(StoredKind::CelException)).cloned(),
    );
    store.apply(StoredKind::CelException, StoreEvent::Reset(found));
    Ok(store)
}

/// The settings of the installation; without a ConfigMap its defaults.
fn settings(cluster: &dyn Cluster, args: &Args) -> ConfigStore {
    let (namespace, name) = (&args.config_map.namespace, &args.config_map.name);
    let store = ConfigStore::new(namespace, name);
    let found = cluster.resolve("v1", "ConfigMap").and_then(|resource| cluster.get(&resource, Some(namespace), name));
    store.apply(StoreEvent::Reset(found.into_iter().collect()));
    store
}
