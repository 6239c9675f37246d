//! What would be deleted at a time, for `ephor plan`: the same runs, in an environment in which nothing is written.
//!
//! A forecast judges the objects that exist now as if it were that time. What is created or changed until then is not
//! known.

use std::sync::Arc;
use std::time::Instant;

use ephor_cluster::query::{Filter, LabelSelector};
use ephor_cluster::{Cluster, Discovery, ListQuery};
use ephor_engine::cleanup::ttl::{self, TTL_LABEL};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::matching::ResourceFilters;
use ephor_runtime::CancellationToken;
use ephor_runtime::events::Recorder;
use ephor_runtime::facts::Answers;
use ephor_runtime::lease::LostLease;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::watcher::pages;
use jiff::Timestamp;

use crate::env::{CleanupOptions, Env};
use crate::policy::{Mode, Options, ScheduledPolicy};
use crate::run::{Report, Run};
use crate::writer::{Target, Writer};

/// What forecasts are made with.
#[derive(Debug)]
pub struct Forecasts {
    env: Env,
    writer: Writer,
    exceptions: Arc<ExceptionSet>,
}

impl Forecasts {
    /// Looks at a cluster, with these filters and exceptions.
    pub fn new(
        cluster: Arc<dyn Cluster>,
        answers: Arc<dyn Answers>,
        filters: Arc<ResourceFilters>,
        exceptions: Arc<ExceptionSet>,
    ) -> Self {
        let writer = Writer::new(Arc::clone(&cluster), Arc::new(|| Err(LostLease)));
        let env = Env {
            cluster,
            answers,
            fence: Arc::new(|| Err(LostLease)),
            filters: Box::new(move || Arc::clone(&filters)),
            options: CleanupOptions::default(),
            events: Recorder::silent(),
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
        };
        Self { env, writer, exceptions }
    }

    /// What a run of a policy would delete at a time, or why it cannot run.
    pub fn at(&self, policy: &ScheduledPolicy, discovery: &Discovery, at: Timestamp) -> Result<Report, String> {
        let (body, _) = policy.body.as_ref().map_err(Clone::clone)?;
        let run = Run {
            env: &self.env,
            writer: &self.writer,
            policy,
            body,
            options: Options { mode: Mode::Audit, limit: None },
            exceptions: &self.exceptions,
            filters: (self.env.filters)(),
            now: at,
            began: Instant::now(),
            most_named: usize::MAX,
        };
        run.carry_out(discovery).map_err(|lost| lost.to_string())
    }

    /// Which objects the label for lifetimes deletes, each with its time, the next first; and what cannot be listed.
    pub fn lifetimes(&self, discovery: &Discovery) -> (Vec<(Timestamp, String)>, Vec<String>) {
        let (mut found, mut unseen) = (Vec::new(), Vec::new());
        let resources = discovery.iter().filter(|resource| resource.stored);
        for resource in crate::ttl::kinds::best(resources).into_values() {
            let filter = Filter { labels: LabelSelector::has(TTL_LABEL), ..Filter::default() };
            let query = ListQuery { filter, metadata_only: true, ..ListQuery::default() };
            let listed = pages(&*self.env.cluster, &resource, query, &self.env.stop, |page| {
                for object in page {
                    if let (Some(due), Some(target)) = (ttl::due(&object), Target::of(&object)) {
                        found.push((due, format!("{} {target}", resource.kind)));
                    }
                }
            });
            if let Err(error) = listed {
                unseen.push(format!("{}: {error}", resource.qualified_plural()));
            }
        }
        found.sort();
        (found, unseen)
    }
}
