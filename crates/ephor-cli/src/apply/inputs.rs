//! What the user names, loaded.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ephor_cluster::{Cluster, Discovery};
use ephor_engine::cleanup::CleanupProgram;
use ephor_engine::diagnostic::Severity;
use ephor_engine::exceptions::{Exception, ExceptionSet};
use ephor_engine::outcome::Phase;
use ephor_expr::yaml::{Limits, parse_values};
use ephor_expr::{Map, Str, Value};

use super::at_hand::AtHand;
use super::existing::Existing;
use super::judge::of_cluster;
use super::pipeline::Input;
use super::plan::{Keep, Plan, PolicyBatch, PolicySummary};
use crate::host::{AllowedHost, Host, Live, Network};
use crate::load::{
    LoadedExceptions, LoadedPolicies, Refused, STDIN, Values, expand, expand_lists, load_exceptions, load_policies,
    misspelt, normalise, pick_exceptions, pick_exceptions_in, read, read_context, read_objects, read_user, read_values,
    strays, unknown_names,
};
use crate::locate::{Located, SourceFile};

/// What the user names.
#[derive(Debug, Clone, Copy)]
pub struct Selected<'a> {
    /// Policies; of a cluster those that it has stored if there are none.
    pub policies: &'a [String],
    /// A cluster that is read from: it answers the questions of policies, and its objects are judged if there are no
    /// others.
    pub cluster: Option<&'a Existing>,
    /// Resources to judge.
    pub resources: &'a [String],
    /// Objects that mutate-existing rules may change.
    pub targets: &'a [String],
    /// A `Values` file.
    pub values: Option<&'a Path>,
    /// Single values, `name=value`.
    pub set: &'a [String],
    /// A `Context` file.
    pub context: Option<&'a Path>,
    /// A `UserInfo` file.
    pub user: Option<&'a Path>,
    /// Exceptions.
    pub exceptions: &'a [String],
    /// Whether the exceptions are those of the resource files.
    pub exceptions_with_resources: bool,
    /// Whether exceptions of the policy files count too.
    pub exceptions_within_policies: bool,
    /// CRDs.
    pub crds: &'a [String],
    /// Hosts that policies may call.
    pub allow_net: &'a [AllowedHost],
}

/// What was loaded.
#[derive(Debug)]
pub struct Inputs {
    /// All that is needed to judge.
    pub plan: Plan,
    /// Where resources are read.
    pub resources: Vec<Input>,
    /// Policies that were refused.
    pub refused: Vec<Refused>,
    /// How many exceptions there are.
    pub exception_count: usize,
    /// Errors and warnings.
    pub findings: Vec<Located>,
}

impl Inputs {
    /// Loads everything but the resources themselves.
    pub fn load(selected: &Selected<'_>) -> Self {
        let mut policies = match selected.cluster {
            Some(existing) if selected.policies.is_empty() => existing.policies(),
            existing => {
                let served = existing.and_then(|existing| existing.cluster.discovery().ok());
                load_policies(selected.policies, served.unwrap_or_else(Discovery::kubernetes))
            }
        };
        let mut findings = std::mem::take(&mut policies.findings);
        let (mut resources, resource_findings) = open(selected, &policies);
        findings.extend(resource_findings);
        let exceptions = exceptions(selected, &mut policies, &resources, &mut findings);
        let exception_count = exceptions.len();
        let mut cluster_scoped = cluster_scoped(selected.crds, &mut findings);
        let mut plan = plan(&policies, exceptions, selected, &mut findings);
        let mut others: Vec<Value> = policies.globals.into_iter().map(|(document, _)| document).collect();
        for target in selected.targets {
            let known = |version: &str, kind: &str| of_cluster(&cluster_scoped, version, kind);
            match read_objects(Path::new(target), &known) {
                Ok(objects) => others.extend(objects.into_iter().map(|loaded| loaded.object)),
                Err(faults) => findings.extend(faults),
            }
        }
        others.extend(plan.values.iter().flat_map(|values| values.namespaces.iter().flatten().cloned()));
        let context = selected.context.map(read_context).transpose().unwrap_or_else(|faults| {
            findings.extend(faults);
            None
        });
        let context = context.unwrap_or_default();
        let known = |version: &str, kind: &str| of_cluster(&cluster_scoped, version, kind);
        others.extend(context.resources.into_iter().map(|object| normalise(object, known)));
        plan.host = match selected.cluster {
            None => Host::new().with(AtHand::new(resources.clone(), others, cluster_scoped.clone())),
            Some(existing) => {
                let read = existing.cluster_scoped().and_then(|kinds| {
                    cluster_scoped.extend(kinds);
                    if selected.resources.is_empty() { existing.kinds(&plan) } else { Ok(Vec::new()) }
                });
                match read {
                    Ok(kinds) => resources.extend(kinds.into_iter().map(Input::Existing)),
                    Err(error) => findings.push(Located::plain("cluster", format!("cannot read the cluster: {error}"))),
                }
                Host::new().with(Live::new(Arc::clone(&existing.cluster), others))
            }
        };
        if !selected.allow_net.is_empty() {
            plan.host = plan.host.with(Network::of(selected.allow_net.to_vec()));
        }
        plan.host = plan.host.with(context.images);
        plan.cluster_scoped = cluster_scoped;
        Self { plan, resources, refused: policies.refused, exception_count, findings }
    }
}

/// The files and texts that hold the resources. Standard input is read at once if it has to be read twice.
fn open(selected: &Selected<'_>, policies: &LoadedPolicies) -> (Vec<Input>, Vec<Located>) {
    let twice = selected.exceptions_with_resources || policies.policies.iter().any(|p| may_ask(&p.origin.file));
    let mut inputs = Vec::new();
    let mut findings = Vec::new();
    for argument in selected.resources {
        if argument == STDIN && twice {
            match read(Path::new(STDIN)) {
                Ok(file) => inputs.push(Input::Text(file)),
                Err(error) => findings.push(Located::plain("unreadable", error.to_string())),
            }
            continue;
        }
        match expand(argument) {
            Ok(paths) if paths.is_empty() => {
                findings.push(Located::plain("no-resources", format!("no YAML files under `{argument}`")));
            }
            Ok(paths) => inputs.extend(paths.into_iter().map(Input::File)),
            Err(error) => findings.push(Located::plain("unreadable", error.to_string())),
        }
    }
    (inputs, findings)
}

/// Whether a policy file speaks of objects beside the one that is judged.
fn may_ask(file: &SourceFile) -> bool {
    ["apiCall", "globalReference", "configMap", "clone", "targets", "namespaceSelector"]
        .iter()
        .any(|word| file.text.contains(word))
}

fn exceptions(
    selected: &Selected<'_>,
    policies: &mut LoadedPolicies,
    resources: &[Input],
    findings: &mut Vec<Located>,
) -> Vec<Exception> {
    let mut loaded = if selected.exceptions_with_resources {
        let mut picked = LoadedExceptions::default();
        if let Some(existing) = selected.cluster.filter(|_| selected.resources.is_empty()) {
            let mut stored = existing.policies();
            picked.findings.append(&mut stored.findings);
            picked.exceptions.append(&mut stored.exceptions);
        }
        for input in resources {
            picked.merge(match input {
                Input::File(path) => pick_exceptions(&[path.display().to_string()]),
                Input::Text(file) => pick_exceptions_in(file),
                Input::Existing(_) => continue,
            });
        }
        picked
    } else {
        load_exceptions(selected.exceptions)
    };
    findings.append(&mut loaded.findings);
    let mut applied = loaded.exceptions;
    let mut within = std::mem::take(&mut policies.exceptions);
    if selected.exceptions_within_policies {
        applied.append(&mut within);
    } else if !within.is_empty() {
        let message = format!(
            "{} exception(s) beside the policies are left out: `--exceptions-within-policies` applies them",
            within.len()
        );
        let mut finding = Located::plain("exceptions-left-out", message);
        finding.severity = Severity::Warning;
        findings.push(finding);
    }
    findings.extend(strays(&applied, &policies.policies));
    applied.into_iter().map(|loaded| loaded.exception).collect()
}

/// The kinds of CRDs without namespaces, as group and kind.
fn cluster_scoped(crds: &[String], findings: &mut Vec<Located>) -> BTreeSet<(Str, Str)> {
    let mut kinds = BTreeSet::new();
    for path in crds.iter().map(|argument| expand(argument)) {
        let texts = path.map(|paths| paths.iter().map(|path| read(path)).collect::<Vec<_>>());
        let texts = texts.unwrap_or_else(|error| vec![Err(error)]);
        for text in texts {
            match text {
                Err(error) => findings.push(Located::plain("unreadable", error.to_string())),
                Ok(file) => match parse_values(&file.text, &Limits::default()) {
                    Err(error) => findings.push(Located::of_yaml(error, &file)),
                    Ok(documents) => kinds.extend(documents.into_iter().flat_map(expand_lists).filter_map(|crd| {
                        let cluster = crd.str_at(&["spec", "scope"]) == Some("Cluster");
                        let part = |keys: &[&str]| crd.str_at(keys).map(Str::new);
                        let kind = (part(&["spec", "group"])?, part(&["spec", "names", "kind"])?);
                        cluster.then_some(kind)
                    })),
                },
            }
        }
    }
    kinds
}

fn plan(
    loaded: &LoadedPolicies,
    exceptions: Vec<Exception>,
    selected: &Selected<'_>,
    findings: &mut Vec<Located>,
) -> Plan {
    let mut policies: Vec<PolicySummary> = loaded.policies.iter().map(PolicySummary::of).collect();
    let mut cleanups = Vec::new();
    for (document, origin) in &loaded.cleanup {
        // What is wrong with one was found when it was loaded.
        if let Ok(program) = CleanupProgram::compile(document) {
            cleanups.push((policies.len(), program));
            policies.push(PolicySummary::of_document(document, origin));
        }
    }
    let set = set(selected.set, findings);
    findings.extend(set.iter().filter_map(|(name, _)| misspelt(name)));
    let mut values = None;
    match selected.values.map(read_values).transpose() {
        Ok(read) => {
            findings.extend(read.iter().flat_map(|values| unknown_names(values, &loaded.policies)));
            findings.extend(read.iter().flat_map(Values::names).filter_map(|name| misspelt(name)));
            values = read.or_else(|| (!set.is_empty()).then(Values::default));
        }
        Err(faults) => findings.extend(faults),
    }
    let mut user = None;
    match selected.user.map(read_user).transpose() {
        Ok(read) => user = read,
        Err(faults) => findings.extend(faults),
    }
    let apart = values.as_ref().is_some_and(|values| values.policies.is_some());
    let programs: Vec<_> = loaded.policies.iter().map(|policy| Arc::clone(&policy.program)).collect();
    Plan {
        policies,
        mutations: PolicyBatch::of(&programs, &[Phase::Mutate], true),
        validations: PolicyBatch::of(&programs, &[Phase::Validate], apart),
        creations: PolicyBatch::of(&programs, &[Phase::Generate, Phase::MutateExisting], apart),
        deletions: PolicyBatch::of(&programs, &[Phase::Delete], false),
        cleanups,
        exceptions: ExceptionSet::new(exceptions),
        host: Host::new(),
        values,
        set,
        user,
        now: jiff::Timestamp::now(),
        keep: Keep::Findings,
        audit_warn: false,
        print_changes: true,
        write_changes: false,
        cluster_scoped: BTreeSet::new(),
    }
}

/// `--set`: what upstream would ignore is an error.
fn set(given: &[String], findings: &mut Vec<Located>) -> Map {
    let mut set = Map::new();
    for entry in given {
        let mut refuse = |why: &str| findings.push(Located::plain("invalid-set", format!("`--set {entry}`: {why}")));
        match entry.split_once('=') {
            None => refuse("expected `name=value`"),
            Some(("", _)) => refuse("the name is empty"),
            Some((name, _)) if name.contains("request.object.") => {
                refuse("the object itself cannot be set: change the resource");
            }
            Some((name, _)) if set.contains_key(name) => refuse("the name is set twice"),
            Some((name, value)) => {
                set.insert(name, value);
            }
        }
    }
    set
}
