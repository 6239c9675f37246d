//! The handlers of the resource webhooks, without HTTP: for the server, and in process for the sandbox.
//!
//! The way of a request: the kind behind a subresource, the user's roles, protection of Ephor's own
//! objects, filters; then mutation or validation. What `Effort::Immediate` cannot answer is asked again with
//! `Effort::Blocking`.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::Cluster;
use ephor_engine::matching::{Gvk, UserInfo};
use ephor_engine::policy::{FailurePolicy, Operation};
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_expr::Str;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::{Config, ConfigStore};
use ephor_runtime::deadline::LargeEvaluations;
use ephor_runtime::decision::answer::Answer;
use ephor_runtime::decision::observe::Observer;
use ephor_runtime::decision::path::{Webhook, WebhookScope};
use ephor_runtime::decision::request::AdmissionRequest;
use ephor_runtime::facts::{Answers, NamespaceLabels};
use ephor_runtime::policies::PolicyStore;
use ephor_runtime::redact::{self, Learning};
use ephor_runtime::settings::AdmissionSettings;
use rustc_hash::FxHasher;

use super::audit::Audit;
use super::filter;
use super::judge::{Effort, Judge, WouldBlock};
use super::kinds::Kinds;
use super::policy_sets::{WebhookPolicySets, WebhookPolicyStore};
use super::roles::Roles;
use super::update_requests::{UpdateRequests, Waiting};

/// The dependencies of the handlers.
#[derive(Clone)]
pub struct Parts {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The policies.
    pub policies: PolicyStore,
    /// What can change.
    pub config: ConfigStore,
    /// Who answers the questions of policies.
    pub answers: Arc<dyn Answers>,
    /// The labels of namespaces.
    pub namespaces: NamespaceLabels,
    /// The roles of users.
    pub roles: Roles,
    /// Who wants to know what was decided.
    pub observer: Arc<dyn Observer>,
}

/// How handlers behave.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of upstream by that name")]
pub struct HandlerOptions {
    /// Where Ephor's own objects are.
    pub namespace: Str,
    /// The user name of the background role.
    pub background_account: Str,
    /// Whether all policies fail open.
    pub force_failure_policy_ignore: bool,
    /// Whether objects that Ephor made can be changed by Ephor only.
    pub protect_managed_resources: bool,
    /// Whether to decide for the record only: everything is allowed, nothing is written.
    pub shadow: bool,
    /// Whether requests are logged.
    pub dump_payload: bool,
    /// Whether patches are logged.
    pub dump_patches: bool,
    /// Whether observers are told each rule's way to its verdict.
    pub explained: bool,
    /// How many threads judge audit policies after the reply; 0 judges them before it.
    pub audit_workers: usize,
    /// How many requests wait for audit at most.
    pub audit_capacity: usize,
    /// Fails when a thread of the handlers does.
    pub stop: CancellationToken,
}

impl HandlerOptions {
    /// Options of handlers in process: without threads, so that everything is done when the answer is there.
    pub fn in_process(namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            background_account: format!("system:serviceaccount:{namespace}:kyverno-background-controller").into(),
            force_failure_policy_ignore: false,
            protect_managed_resources: false,
            shadow: false,
            dump_payload: false,
            dump_patches: false,
            explained: false,
            audit_workers: 0,
            audit_capacity: 0,
            stop: CancellationToken::new(),
        }
    }

    /// The options that a role was started with.
    pub fn of(settings: &AdmissionSettings, stop: &CancellationToken) -> Self {
        let common = &settings.common;
        let mut options = Self::in_process(&common.namespace);
        if !settings.background_account.is_empty() {
            options.background_account = settings.background_account.clone();
        }
        options.force_failure_policy_ignore = settings.force_failure_policy_ignore;
        options.protect_managed_resources = common.protect_managed_resources;
        options.shadow = settings.shadow;
        options.dump_payload = settings.dump_payload;
        options.dump_patches = settings.dump_patches;
        options.audit_workers = settings.audit_workers.max(1);
        options.audit_capacity = settings.audit_capacity;
        options.stop = stop.clone();
        options
    }
}

/// How long API servers wait for a webhook that does not say how long.
pub(super) const USUAL_TIME: Duration = Duration::from_secs(10);

/// The handlers. Clones are the same.
#[derive(Clone)]
pub struct Handlers(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) parts: Parts,
    pub(super) options: HandlerOptions,
    pub(super) sets: WebhookPolicyStore,
    pub(super) kinds: Kinds,
    pub(super) audit: Audit,
    pub(super) update_requests: UpdateRequests,
    /// The requests whose rules build much, also those that are audited.
    pub(super) large: Arc<LargeEvaluations>,
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Handlers({:?})", self.0.options)
    }
}

/// A request on its way, after everything that has nothing to do with policies.
pub(super) struct Prepared<'r> {
    pub(super) request: &'r AdmissionRequest,
    pub(super) gvk: Gvk,
    pub(super) review: Review,
    pub(super) sets: Arc<WebhookPolicySets>,
    pub(super) begun: Instant,
}

/// Either an answer without policies, or a request for them.
enum Admitted<'r> {
    Answered(Answer),
    Judge(Box<Prepared<'r>>),
}

impl Handlers {
    /// Handlers over these parts.
    pub fn new(parts: Parts, options: HandlerOptions) -> Self {
        let large = Arc::default();
        let audit = Audit::start(&options, &parts, &large);
        let update_requests = UpdateRequests::start(&options, &parts);
        // All webhooks of a shadow ignore failures, so that what they ask about is asked under that name.
        let ignored = options.force_failure_policy_ignore || options.shadow;
        let sets = WebhookPolicyStore::new(parts.policies.clone(), ignored);
        Self(Arc::new(Inner { parts, options, sets, kinds: Kinds::default(), audit, update_requests, large }))
    }

    /// Has waiting `UpdateRequest`s counted: from `updateRequestThreshold` on no more are made.
    pub fn count_update_requests(&self, waiting: Waiting) {
        // The first caller initializes it.
        let _ = self.0.update_requests.waiting.set(waiting);
    }

    /// The answer to a question for changes. May block, for as long as API servers wait unless they are told otherwise.
    pub fn mutate(&self, request: &AdmissionRequest, scope: &WebhookScope) -> Answer {
        self.answer_until(Webhook::Mutate, scope, request, Instant::now() + USUAL_TIME)
    }

    /// The answer to a question for a verdict. May block, as [`Handlers::mutate`].
    pub fn validate(&self, request: &AdmissionRequest, scope: &WebhookScope) -> Answer {
        self.answer_until(Webhook::Validate, scope, request, Instant::now() + USUAL_TIME)
    }

    /// The answer. May block, but not much longer than `until`: then it is by failure policy.
    pub fn answer_until(
        &self,
        webhook: Webhook,
        scope: &WebhookScope,
        request: &AdmissionRequest,
        until: Instant,
    ) -> Answer {
        // With that effort no attempt is given up.
        let answer = self.answer(webhook, scope, request, Effort::Blocking(until));
        answer.unwrap_or_else(|error| verdict(scope, &error.to_string()))
    }

    /// The answer, if it can be had with that effort. A panic is a verdict by failure policy.
    pub fn answer(
        &self,
        webhook: Webhook,
        scope: &WebhookScope,
        request: &AdmissionRequest,
        effort: Effort,
    ) -> Result<Answer, WouldBlock> {
        let begun = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| self.0.answer(webhook, scope, request, effort, begun)));
        let answer = answer.unwrap_or_else(|_| {
            tracing::error!(uid = %request.uid, resource = %request.resource.resource, "a handler panicked");
            Ok(verdict(scope, "internal error"))
        })?;
        let observer = &self.0.parts.observer;
        if self.0.options.shadow {
            observer.shadowed(request, webhook, &answer, begun.elapsed());
            if let Some(message) = answer.message.as_deref().filter(|_| !answer.allowed) {
                let (resource, namespace, name) = (&request.resource.resource, &request.namespace, &request.name);
                tracing::info!(%resource, %namespace, %name, message, "this request would have been denied");
            }
            return Ok(Answer::allow());
        }
        observer.answered(request, webhook, &answer, begun.elapsed());
        Ok(answer)
    }
}

/// The answer when Ephor itself failed: by the failure policy of the webhook, and never in silence.
pub fn verdict(scope: &WebhookScope, why: &str) -> Answer {
    match scope.failure_policy() {
        FailurePolicy::Fail => {
            Answer { code: Some(500), ..Answer::deny(format!("policies could not be evaluated: {why}")) }
        }
        FailurePolicy::Ignore => {
            Answer::allow().with_warnings([format!("policies were not evaluated (failurePolicy Ignore): {why}")])
        }
    }
}

impl Inner {
    fn answer(
        &self,
        webhook: Webhook,
        scope: &WebhookScope,
        request: &AdmissionRequest,
        effort: Effort,
        begun: Instant,
    ) -> Result<Answer, WouldBlock> {
        if webhook == Webhook::Mutate && request.operation == Operation::Delete {
            return Ok(Answer::allow());
        }
        let prepared = match self.prepare(request, effort, begun)? {
            Admitted::Answered(answer) => return Ok(answer),
            Admitted::Judge(prepared) => prepared,
        };
        let Some(policies) = prepared.sets.of(scope) else {
            let WebhookScope::Policies(_, policies) = scope else { return Ok(Answer::allow()) };
            let keys: Vec<String> = policies.iter().map(ToString::to_string).collect();
            return Ok(verdict(scope, &format!("failed to fetch policy with key: {}", keys.join(", "))));
        };
        let mut secrets = Redactor::default();
        if prepared.gvk.kind == "Secret" && prepared.gvk.group.is_empty() {
            secrets.learn(&request.object);
            secrets.learn(&request.old_object);
        }
        let answers = Learning::new(&*self.parts.answers, secrets);
        let judge =
            Judge::new(&prepared.sets.snapshot.exceptions, answers, effort, self.options.explained, &self.large);
        let answer = match webhook {
            Webhook::Mutate => self.mutate(&prepared, &policies, &judge)?,
            Webhook::Validate => self.validate(&prepared, &policies, &judge)?,
        };
        // What is denied for another reason stays denied.
        Ok(if answer.allowed && judge.is_over() { verdict(scope, "judging takes too long") } else { answer })
    }

    fn prepare<'r>(
        &self,
        request: &'r AdmissionRequest,
        effort: Effort,
        begun: Instant,
    ) -> Result<Admitted<'r>, WouldBlock> {
        let gvk = self.kinds.of(request, &self.parts.cluster, effort)?;
        let mut user = request.user.clone();
        let namespace = request.object_namespace();
        self.parts.roles.fill(&mut user, namespace);
        if self.options.dump_payload {
            dump(request, &user);
        }
        if self.options.protect_managed_resources && filter::is_protected(request, &self.options.namespace) {
            return Ok(Admitted::Answered(Answer::deny(filter::PROTECTED)));
        }
        let config: Arc<Config> = self.parts.config.get();
        if filter::is_hidden(request, &gvk, &user, &config) {
            return Ok(Admitted::Answered(Answer::allow()));
        }
        let mut review = request.review(gvk.clone(), user, jiff::Timestamp::now(), seed(&request.uid));
        review.namespace_labels = self.parts.namespaces.get(namespace);
        let sets = self.sets.get();
        Ok(Admitted::Judge(Box::new(Prepared { request, gvk, review, sets, begun })))
    }
}

/// The same request draws the same random numbers, on whichever replica and however often it is tried.
pub(super) fn seed(uid: &str) -> u64 {
    let mut hasher = FxHasher::default();
    uid.hash(&mut hasher);
    hasher.finish()
}

fn dump(request: &AdmissionRequest, user: &UserInfo) {
    let object = redact::without_values(&request.object);
    let old_object = redact::without_values(&request.old_object);
    tracing::info!(
        uid = %request.uid,
        operation = request.operation.as_str(),
        resource = %request.resource.resource,
        sub_resource = %request.sub_resource,
        namespace = %request.namespace,
        name = %request.name,
        user = %user.username,
        groups = ?user.groups,
        roles = ?user.roles,
        cluster_roles = ?user.cluster_roles,
        dry_run = request.dry_run,
        %object,
        %old_object,
        "admission request"
    );
}
