//! One run of a policy: the objects of its kinds, page by page, judged one by one, and what becomes of them.
//!
//! No list is held. With a limit the objects are counted first: a run that would delete more deletes none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::{ClusterError, Discovery, ErrorKind, ListQuery, OnUnreadable, Resource, object};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::matching::{Gvk, ResourceFilters};
use ephor_engine::policy::DeletionPropagation;
use ephor_expr::{Str, Value};
use ephor_runtime::events::notes::cleaned_up;
use ephor_runtime::events::{Action, Component, Event, Reason as EventReason, Reference};
use ephor_runtime::lease::LostLease;
use ephor_runtime::metrics::{CleanedUp, Cleanup};
use jiff::Timestamp;

use crate::env::Env;
use crate::judge::{Judged, judge};
use crate::policy::{Body, Mode, Options, ScheduledPolicy};
use crate::select::select;
use crate::status::Reason;
use crate::writer::{Deleted, Target, Writer};

/// How many objects are listed at once.
const PAGE: usize = 500;
/// How often a list begins anew because the cluster no longer knows where the last page ended.
const MAX_RESTARTS: u32 = 3;
/// How often an object is judged again because it changed.
const MAX_TRIES: u32 = 3;
/// How many failures of a run are told of one by one.
const MAX_TOLD: usize = 50;
/// How many objects and failures a status names.
pub(crate) const MAX_NAMED: usize = 5;
/// How long a run of a policy of a namespace may take, so that its author keeps no worker from others.
const MAX_RUN: Duration = Duration::from_mins(5);

/// Who manages what Ephor made.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// What a run did.
#[derive(Debug, Default)]
pub struct Report {
    /// Objects that the policy selects.
    pub due: usize,
    /// Objects that were deleted.
    pub deleted: usize,
    /// Whether the limit stopped the run: the limit.
    pub limit: Option<usize>,
    /// What went wrong, the first of it.
    pub failures: Vec<String>,
    /// How much went wrong.
    pub failed: usize,
    /// Whether it may go better soon.
    pub passing: bool,
    /// The first objects that the policy selects.
    pub named: Vec<String>,
}

impl Report {
    fn fail(&mut self, why: String) {
        self.failed += 1;
        if self.failures.len() < MAX_NAMED {
            self.failures.push(why);
        }
    }

    fn name(&mut self, resource: &Resource, target: &Target, most: usize) {
        if self.named.len() < most {
            self.named.push(format!("{} {target}", resource.kind));
        }
    }

    /// How the run ended, in a word and for people.
    pub fn result(&self, mode: Mode) -> (Reason, String) {
        let named = if self.named.is_empty() { String::new() } else { format!(": {}", self.named.join(", ")) };
        let more = if self.due > self.named.len() && !named.is_empty() { ", …" } else { "" };
        let failures = match self.failures.as_slice() {
            [] => String::new(),
            failures => format!("; {} failed: {}", self.failed, failures.join("; ")),
        };
        if let Some(limit) = self.limit {
            let text = format!(
                "the run would delete more than {limit} objects{named}, …; {} were deleted{failures}",
                self.deleted
            );
            return (Reason::LimitExceeded, text);
        }
        let reason = match (self.failed, mode) {
            (1.., _) => Reason::Failed,
            (0, Mode::Audit) => Reason::Audited,
            (0, Mode::Delete) => Reason::Succeeded,
        };
        let text = match mode {
            Mode::Audit => format!("{} objects would be deleted{named}{more}{failures}", self.due),
            Mode::Delete => format!("{} objects were deleted{failures}", self.deleted),
        };
        (reason, text)
    }
}

/// What a pass over the objects does with those that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Counts them, and stops after so many.
    Count { most: usize },
    /// Tells of them.
    Tell,
    /// Deletes them, and stops before it deletes more.
    Delete { most: usize },
}

/// Whether a pass goes on.
#[derive(Debug, PartialEq, Eq)]
enum Flow {
    On,
    Enough,
}

/// A run of one policy.
pub struct Run<'r> {
    pub(crate) env: &'r Env,
    pub(crate) writer: &'r Writer,
    pub(crate) policy: &'r ScheduledPolicy,
    pub(crate) body: &'r Body,
    pub(crate) options: Options,
    pub(crate) exceptions: &'r ExceptionSet,
    pub(crate) filters: Arc<ResourceFilters>,
    pub(crate) now: Timestamp,
    pub(crate) began: Instant,
    /// How many objects the report names.
    pub(crate) most_named: usize,
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Run({})", self.policy.key)
    }
}

impl Run<'_> {
    /// Takes the run to its end. An error means that another replica leads now.
    pub fn carry_out(&self, discovery: &Discovery) -> Result<Report, LostLease> {
        let mut report = Report::default();
        let selected = select(self.body, self.policy.key.namespace.is_some(), discovery);
        for unknown in selected.unknown {
            report.fail(unknown);
        }
        let limit = self.options.limit.or(self.env.options.limit);
        if self.options.mode == Mode::Audit {
            self.pass(Pass::Tell, &selected.resources, &mut report)?;
        } else {
            if let Some(limit) = limit {
                let mut counted = Report::default();
                self.pass(Pass::Count { most: limit }, &selected.resources, &mut counted)?;
                if counted.due > limit {
                    return Ok(Report { limit: Some(limit), ..counted });
                }
            }
            let most = limit.unwrap_or(usize::MAX);
            self.pass(Pass::Delete { most }, &selected.resources, &mut report)?;
        }
        Ok(report)
    }

    fn pass(&self, pass: Pass, resources: &[(Resource, Str)], report: &mut Report) -> Result<Flow, LostLease> {
        for (resource, called) in resources {
            if self.kind(pass, resource, called, report)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    /// All objects of a kind.
    fn kind(&self, pass: Pass, resource: &Resource, called: &Str, report: &mut Report) -> Result<Flow, LostLease> {
        let mut query = ListQuery { limit: PAGE, on_unreadable: OnUnreadable::Report, ..ListQuery::default() };
        query.filter.namespace.clone_from(&self.policy.key.namespace);
        let mut restarts = 0;
        loop {
            if self.env.stop.is_cancelled() {
                return Err(LostLease);
            }
            let page = match self.env.cluster.list(resource, &query) {
                Ok(page) => page,
                Err(error) if error.kind() == ErrorKind::Gone && restarts < MAX_RESTARTS && pass_may_restart(pass) => {
                    restarts += 1;
                    query.continue_token = None;
                    continue;
                }
                Err(error) => {
                    report.passing |= is_passing(&error);
                    report.fail(format!("{} cannot be listed: {error}", resource.qualified_plural()));
                    return Ok(Flow::On);
                }
            };
            for unreadable in &page.unreadable {
                report.fail(unreadable.to_string());
            }
            for object in page.items {
                if self.env.stop.is_cancelled() {
                    return Err(LostLease);
                }
                if self.policy.key.namespace.is_some() && self.began.elapsed() > MAX_RUN {
                    report.fail(format!("the run took more than {} minutes and was ended", MAX_RUN.as_secs() / 60));
                    return Ok(Flow::Enough);
                }
                if self.object(pass, resource, called, object, report)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
            match page.continue_token.filter(|token| !token.is_empty()) {
                Some(token) => query.continue_token = Some(token),
                None => return Ok(Flow::On),
            }
        }
    }

    /// One object: judged, and again if it changes meanwhile.
    fn object(
        &self,
        pass: Pass,
        resource: &Resource,
        called: &Str,
        mut object: Value,
        report: &mut Report,
    ) -> Result<Flow, LostLease> {
        let Some(mut target) = Target::of(&object) else { return Ok(Flow::On) };
        for _ in 0..MAX_TRIES {
            if !self.is_within(resource, &object) {
                return Ok(Flow::On);
            }
            match judge(self.body, self.exceptions, resource, &object, &*self.env.answers, self.now) {
                Judged::Keep => return Ok(Flow::On),
                Judged::Unclear(why) => {
                    self.failed(resource, called, &target, &why, report);
                    return Ok(Flow::On);
                }
                Judged::Delete => {}
            }
            match pass {
                Pass::Count { most } => {
                    report.due += 1;
                    report.name(resource, &target, self.most_named);
                    return Ok(if report.due > most { Flow::Enough } else { Flow::On });
                }
                Pass::Tell => {
                    report.due += 1;
                    report.name(resource, &target, self.most_named);
                    self.count(called, &target, Cleanup::Audited);
                    return Ok(Flow::On);
                }
                // Objects may have come since they were counted.
                Pass::Delete { most } if report.deleted >= most => {
                    report.limit = Some(most);
                    return Ok(Flow::Enough);
                }
                Pass::Delete { .. } => {}
            }
            let home = self.policy.key.namespace.as_deref();
            match self.writer.delete(home, resource, &target, self.body.propagation())? {
                Deleted::Done => {
                    report.due += 1;
                    report.deleted += 1;
                    self.count(called, &target, Cleanup::Deleted);
                    let of = reference_of(resource, &target);
                    self.env.events.record([cleaned_up(&self.policy.reference, &of, Ok(()))]);
                    return Ok(Flow::On);
                }
                Deleted::Gone => return Ok(Flow::On),
                Deleted::Refused(error) => {
                    report.due += 1;
                    report.passing |= is_passing(&error);
                    self.failed(resource, called, &target, &error.to_string(), report);
                    return Ok(Flow::On);
                }
                Deleted::Changed => {
                    let namespace = resource.namespaced.then_some(&*target.namespace);
                    let live = match self.env.cluster.get(resource, namespace, &target.name) {
                        Ok(live) => live,
                        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Flow::On),
                        Err(error) => {
                            report.passing |= is_passing(&error);
                            self.failed(resource, called, &target, &error.to_string(), report);
                            return Ok(Flow::On);
                        }
                    };
                    // Another object of that name is one of the next run.
                    match Target::of(&live) {
                        Some(same) if same.uid == target.uid => (object, target) = (live, same),
                        _ => return Ok(Flow::On),
                    }
                }
            }
        }
        report.passing = true;
        self.failed(resource, called, &target, "it changes all the time", report);
        Ok(Flow::On)
    }

    /// Whether a policy may look at an object at all.
    fn is_within(&self, resource: &Resource, object: &Value) -> bool {
        let (namespace, name) = (object::namespace(object), object::name(object));
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        let at_home = self.policy.key.namespace.as_ref().is_none_or(|home| resource.namespaced && home == namespace);
        let managed = object.str_at(&["metadata", "labels", MANAGED_BY]) == Some("kyverno");
        let hidden = self.env.options.protect_managed && managed || self.filters.drops(&gvk, "", namespace, name);
        at_home && !object::is_deleting(object) && !hidden
    }

    fn failed(&self, resource: &Resource, called: &Str, target: &Target, why: &str, report: &mut Report) {
        report.fail(format!("{} {target}: {why}", resource.kind));
        self.count(called, target, Cleanup::Failed);
        if report.failed <= MAX_TOLD {
            let of = reference_of(resource, target);
            self.env.events.record([cleaned_up(&self.policy.reference, &of, Err(why))]);
        }
    }

    fn count(&self, called: &Str, target: &Target, what: Cleanup) {
        let key = &self.policy.key;
        self.env.metrics.cleaned_up(
            &CleanedUp {
                policy_kind: key.kind.as_str(),
                policy_namespace: key.namespace.as_deref().unwrap_or_default(),
                policy_name: &key.name,
                resource: called,
                namespace: &target.namespace,
                propagation: self.body.propagation().map(DeletionPropagation::as_str),
            },
            what,
        );
    }

    /// Tells of a run that did not simply delete what was due.
    pub fn tell(&self, report: &Report) {
        let (reason, message) = report.result(self.options.mode);
        let event = |reason, note: String| Event {
            regarding: self.policy.reference.clone(),
            related: None,
            reason,
            action: Action::None,
            component: Component::Cleanup,
            note: note.into(),
        };
        let events = match reason {
            Reason::Audited if report.due > 0 => Some(event(EventReason::Violation, message)),
            Reason::LimitExceeded => Some(event(EventReason::Error, message)),
            Reason::Failed if report.failed > 0 => Some(event(EventReason::Error, message)),
            _ => None,
        };
        self.env.events.record(events);
    }
}

/// Counting twice would count objects twice.
fn pass_may_restart(pass: Pass) -> bool {
    matches!(pass, Pass::Delete { .. })
}

fn is_passing(error: &ClusterError) -> bool {
    matches!(error.kind(), ErrorKind::Transient | ErrorKind::Gone)
}

fn reference_of(resource: &Resource, target: &Target) -> Reference {
    Reference {
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        namespace: target.namespace.clone(),
        name: target.name.clone(),
        uid: target.uid.clone(),
    }
}
