//! Evaluates audit policies after the reply.
//!
//! A few threads take requests from a queue that is bounded in number and in bytes; what does not fit is dropped and
//! told to the observer, for a queue without end would kill the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ephor_engine::matching::Gvk;
use ephor_engine::outcome::Phase;
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_runtime::deadline::LargeEvaluations;
use ephor_runtime::decision::observe::{Decided, Dropped};
use ephor_runtime::decision::request::AdmissionRequest;
use ephor_runtime::redact::Learning;
use ephor_runtime::threads;
use parking_lot::Mutex;

use super::handlers::{HandlerOptions, Parts};
use super::judge::{Effort, Judge};
use super::policy_sets::{WebhookPolicies, WebhookPolicySets};

/// How many bytes of requests may wait. A parsed object takes a few times the bytes of its text.
const MAX_WAITING_BYTES: usize = 8 << 20;

/// A request to audit.
pub(super) struct Job {
    pub(super) request: AdmissionRequest,
    pub(super) gvk: Gvk,
    pub(super) review: Review,
    pub(super) sets: Arc<WebhookPolicySets>,
    pub(super) policies: Arc<WebhookPolicies>,
    /// Whether observers are told why.
    pub(super) explained: bool,
}

/// The queue; threads end when it is dropped.
pub(super) struct Audit {
    queue: Option<SyncSender<Job>>,
    waiting_bytes: Arc<AtomicUsize>,
    large: Arc<LargeEvaluations>,
}

impl Audit {
    pub(super) fn start(options: &HandlerOptions, parts: &Parts, large: &Arc<LargeEvaluations>) -> Self {
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        if options.audit_workers == 0 {
            return Self { queue: None, waiting_bytes, large: Arc::clone(large) };
        }
        let (sender, receiver) = sync_channel(options.audit_capacity);
        let receiver = Arc::new(Mutex::new(receiver));
        for i in 0..options.audit_workers {
            let (receiver, parts, bytes) = (Arc::clone(&receiver), parts.clone(), Arc::clone(&waiting_bytes));
            let large = Arc::clone(large);
            threads::spawn(format!("audit {i}"), threads::LARGE, &options.stop, move || {
                work(&receiver, &parts, &bytes, &large);
            });
        }
        Self { queue: Some(sender), waiting_bytes, large: Arc::clone(large) }
    }

    /// Takes a request that goes on.
    pub(super) fn take(&self, job: Job, parts: &Parts) {
        if job.policies.deferred.programs().is_empty() {
            return;
        }
        let Some(queue) = &self.queue else { return judge(&job, parts, &self.large) };
        let weight = job.request.weight;
        let waiting = self.waiting_bytes.fetch_add(weight, Ordering::Relaxed);
        if waiting + weight > MAX_WAITING_BYTES && waiting > 0 || queue.try_send(job).is_err() {
            self.waiting_bytes.fetch_sub(weight, Ordering::Relaxed);
            parts.observer.dropped(Dropped::Audit);
        }
    }
}

fn work(receiver: &Mutex<Receiver<Job>>, parts: &Parts, waiting_bytes: &AtomicUsize, large: &Arc<LargeEvaluations>) {
    loop {
        let job = receiver.lock().recv();
        let Ok(job) = job else { return };
        waiting_bytes.fetch_sub(job.request.weight, Ordering::Relaxed);
        let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judge(&job, parts, large)));
        if judged.is_err() {
            tracing::error!(uid = %job.request.uid, "audit of a request panicked");
            parts.observer.dropped(Dropped::Audit);
        }
    }
}

/// How long judging one request may take, so that none keeps a thread from the others.
const MAX_DURATION: Duration = Duration::from_secs(30);

fn judge(job: &Job, parts: &Parts, large: &Arc<LargeEvaluations>) {
    let begun = Instant::now();
    let mut secrets = Redactor::default();
    if job.gvk.kind == "Secret" && job.gvk.group.is_empty() {
        secrets.learn(&job.request.object);
        secrets.learn(&job.request.old_object);
    }
    let answers = Learning::new(&*parts.answers, secrets);
    let judge = Judge::new(
        &job.sets.snapshot.exceptions,
        answers,
        Effort::Blocking(begun + MAX_DURATION),
        job.explained,
        large,
    );
    let Ok(mut done) = judge.evaluate(&job.policies.deferred, job.review.clone(), Phase::Validate) else { return };
    if done.outcomes.is_empty() {
        return;
    }
    judge.redact(&mut done.outcomes);
    parts.observer.decided(&Decided {
        phase: Phase::Validate,
        request: &job.request,
        gvk: &job.gvk,
        object: job.request.subject(),
        snapshot: &job.sets.snapshot,
        programs: job.policies.deferred.programs(),
        outcomes: &done.outcomes,
        explained: &judge.explain(&job.policies.deferred, &done),
        blocked: false,
        took: begun.elapsed(),
    });
}
