//! Decides which `UpdateRequest`s a request needs.

use ephor_engine::compile::{Body, CompiledRule, Program};
use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::policy::Operation;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::content::normalized_content;
use ephor_runtime::decision::path;
use ephor_runtime::decision::request::AdmissionRequest;
use ephor_runtime::kinds::is_for_any;
use ephor_runtime::redact;
use ephor_runtime::traits::{Traits, request_traits};
use ephor_runtime::update_request::{
    self, ANNOTATION_POLICY_VERSION, ANNOTATION_UNCHANGED, AdmissionRequestInfo, LABEL_TRIGGER_NAMESPACE,
    RequestContext, RequestMetadata, RequestType, RequestUser, ResourceSpec, RuleContext, UpdateRequest,
    UpdateRequestSpec,
};
use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};

use super::Work;
use crate::review::handlers::{HandlerOptions, Prepared};
use crate::review::judge::{Judge, WouldBlock};

/// The work of letting go of what was made.
const DELETE: &str = "delete";
/// How many bytes of an object travel with a request.
const MAX_PAYLOAD: usize = 256 << 10;

/// How deep what travels with a request may be nested: it is encoded, and read by others.
const MAX_DEPTH: usize = 100;

/// The work that follows from a request that goes on.
pub(in crate::review) fn plan(
    prepared: &Prepared<'_>,
    set: &PolicySet,
    judge: &Judge<'_>,
    options: &HandlerOptions,
) -> Result<Vec<Work>, WouldBlock> {
    let planner = Planner { prepared, set, options, trigger: trigger(prepared) };
    let mut work = planner.generate(judge)?;
    work.extend(planner.mutate_existing(judge)?);
    Ok(work)
}

/// The object that the request is about.
fn trigger(prepared: &Prepared<'_>) -> ResourceSpec {
    let (request, gvk) = (prepared.request, &prepared.gvk);
    let own = request.sub_resource.is_empty();
    let uid = if own { request.subject().str_at(&["metadata", "uid"]).unwrap_or_default() } else { "" };
    ResourceSpec {
        api_version: ephor_cluster::resource::join_api_version(&gvk.group, &gvk.version),
        kind: gvk.kind.clone(),
        namespace: request.object_namespace().clone(),
        name: request.object_name().into(),
        uid: uid.into(),
    }
}

/// What a rule should generate or release.
struct Make {
    policy: usize,
    /// Whether nothing but the request tells of it, although the rule synchronizes.
    unique: bool,
    /// Whether what watches see tells the same.
    followed: bool,
    context: RuleContext,
}

struct Planner<'p> {
    prepared: &'p Prepared<'p>,
    set: &'p PolicySet,
    options: &'p HandlerOptions,
    trigger: ResourceSpec,
}

impl Planner<'_> {
    fn rule(&self, outcome: &Outcome) -> Option<(&Program, &CompiledRule)> {
        let program = self.set.programs().get(outcome.policy)?;
        let rule = program.rules.get(outcome.index)?;
        // Requests of the background role would trigger it in a loop.
        let background = self.prepared.request.user.username == self.options.background_account;
        (!(background && rule.skip_background_requests)).then_some((program, rule))
    }

    /// The rules that apply to a review, as indexes of policy and rule.
    fn applying(&self, judge: &Judge<'_>, review: Review, phase: Phase) -> Result<Vec<Outcome>, WouldBlock> {
        let mut outcomes = judge.applying(self.set, review, phase)?;
        for unclear in outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Error) {
            // Nothing is made or deleted on a guess.
            tracing::warn!(
                policy = self.set.programs().get(unclear.policy).map_or("", |program| program.key.as_str()),
                rule = %unclear.rule,
                uid = %self.prepared.request.uid,
                why = %unclear.message,
                "cannot tell whether a rule applies"
            );
        }
        outcomes.retain(|outcome| outcome.verdict != Verdict::Skip || self.is_reported_exception(outcome));
        Ok(outcomes)
    }

    /// Whether an exception let off a policy of `policies.kyverno.io`, whose reports say so: the background role writes
    /// them.
    fn is_reported_exception(&self, outcome: &Outcome) -> bool {
        let of_cel = self.set.programs().get(outcome.policy).is_some_and(|program| program.id.kind.is_of_cel());
        of_cel && outcome.detail.as_deref().is_some_and(|detail| !detail.exceptions.is_empty())
    }

    fn generate(&self, judge: &Judge<'_>) -> Result<Vec<Work>, WouldBlock> {
        let request = self.prepared.request;
        let deleted = request.operation == Operation::Delete;
        let mut makes: Vec<Make> = Vec::new();
        // Rules that apply now, or about which nothing is known.
        let mut settled = FxHashSet::default();
        for outcome in self.applying(judge, self.prepared.review.clone(), Phase::Generate)? {
            let Some((program, rule)) = self.rule(&outcome) else { continue };
            if deleted && !rule.names_operation(Operation::Delete) {
                continue;
            }
            settled.insert((outcome.policy, outcome.index));
            if outcome.verdict == Verdict::Pass || self.is_reported_exception(&outcome) {
                makes.push(self.make(outcome.policy, program, rule, false));
            }
        }
        if !request.old_object.is_null() {
            let before = Review {
                object: request.old_object.clone(),
                old_object: Value::Null,
                // What is deleted was there once.
                operation: if deleted { Operation::Create } else { request.operation },
                ..self.prepared.review.clone()
            };
            for outcome in self.applying(judge, before, Phase::Generate)? {
                let Some((program, rule)) = self.rule(&outcome) else { continue };
                let applied = outcome.verdict == Verdict::Pass && !self.is_reported_exception(&outcome);
                let gone = applied && !settled.contains(&(outcome.policy, outcome.index));
                if gone && synchronizes(rule) {
                    makes.push(self.make(outcome.policy, program, rule, true));
                }
            }
        }
        Ok(self.generate_requests(makes))
    }

    fn make(&self, policy: usize, program: &Program, rule: &CompiledRule, delete_downstream: bool) -> Make {
        let context = RuleContext {
            rule: rule.name.clone(),
            delete_downstream,
            synchronize: synchronizes(rule),
            cache_restore: false,
            trigger: self.trigger.clone(),
        };
        let unique = context.synchronize && self.traits(program, rule).remembers(self.prepared.request.operation);
        let followed = context.synchronize && !unique && !is_for_any(rule);
        Make { policy, unique, followed, context }
    }

    /// What a rule depends on.
    fn traits(&self, program: &Program, rule: &CompiledRule) -> Traits {
        let policy = self.prepared.sets.snapshot.policies.get(&program.id);
        policy.map(|policy| request_traits(&policy.document, rule)).unwrap_or_default()
    }

    /// The rules of one policy share a request, those that synchronize apart from the others: they are remembered in
    /// different ways.
    fn generate_requests(&self, mut makes: Vec<Make>) -> Vec<Work> {
        let sort = |make: &Make| {
            (make.policy, make.context.synchronize, make.context.delete_downstream, make.unique, make.followed)
        };
        makes.sort_by_key(sort);
        makes
            .chunk_by(|a, b| sort(a) == sort(b))
            .filter_map(|chunk| {
                let first = chunk.first()?;
                let program = self.set.programs().get(first.policy)?;
                let work = if first.context.delete_downstream { DELETE } else { "generate" };
                let spec = UpdateRequestSpec {
                    request_type: Some(RequestType::generate(program.id.kind)),
                    policy: program.key.clone(),
                    // `kubectl get ur` shows it; the rules' contexts are what counts.
                    resource: self.trigger.clone(),
                    rule_context: chunk.iter().map(|make| make.context.clone()).collect(),
                    context: self.request_context(),
                    ..UpdateRequestSpec::default()
                };
                let labels = update_request::generate_labels(&program.id.name);
                let coalesces = first.context.synchronize && !first.unique;
                Some(self.work(program, spec, labels, work, (coalesces, first.followed)))
            })
            .collect()
    }

    fn mutate_existing(&self, judge: &Judge<'_>) -> Result<Vec<Work>, WouldBlock> {
        let request = self.prepared.request;
        let mut work = Vec::new();
        for outcome in self.applying(judge, self.prepared.review.clone(), Phase::MutateExisting)? {
            let Some((program, rule)) = self.rule(&outcome).filter(|_| outcome.verdict == Verdict::Pass) else {
                continue;
            };
            if request.operation == Operation::Delete && !rule.names_operation(Operation::Delete) {
                continue;
            }
            let spec = UpdateRequestSpec {
                request_type: Some(RequestType::Mutate),
                policy: program.key.clone(),
                rule: rule.name.clone(),
                resource: self.trigger.clone(),
                context: self.request_context(),
                ..UpdateRequestSpec::default()
            };
            let labels = update_request::mutate_labels(&program.id.name, &self.trigger);
            work.push(self.work(program, spec, labels, &format!("mutate {}", rule.name), (false, false)));
        }
        Ok(work)
    }

    fn work(
        &self,
        program: &Program,
        spec: UpdateRequestSpec,
        mut labels: std::collections::BTreeMap<Str, Str>,
        work: &str,
        (coalesces, followed): (bool, bool),
    ) -> Work {
        let request = self.prepared.request;
        let trigger = &self.trigger;
        let plain = matches!(request.operation, Operation::Create | Operation::Update);
        let object = if trigger.uid.is_empty() {
            format!("{}/{}/{}/{}", trigger.api_version, trigger.kind, trigger.namespace, trigger.name)
        } else {
            trigger.uid.to_string()
        };
        if !trigger.namespace.is_empty() {
            labels.insert(Str::new_static(LABEL_TRIGGER_NAMESPACE), trigger.namespace.clone());
        }
        // What comes with the request alone is another work each time.
        let live = work == DELETE || plain && request.sub_resource.is_empty();
        // Policies of several kinds may have one name.
        let policy = match program.id.kind {
            kind if kind.is_of_cel() => format!("{} {}", kind.as_str(), program.key),
            _ => program.key.to_string(),
        };
        let name = if coalesces && live {
            hashed(&[&policy, &object])
        } else {
            hashed(&[&policy, &object, work, &request.uid])
        };
        Work {
            urgent: !(followed && plain && request.sub_resource.is_empty()),
            failure_policy: path::failure_policy(program, self.options.force_failure_policy_ignore),
            request: UpdateRequest {
                metadata: RequestMetadata {
                    name,
                    namespace: self.options.namespace.clone(),
                    labels,
                    annotations: self.policy_version(program).into_iter().chain(unchanged(request)).collect(),
                    ..RequestMetadata::default()
                },
                spec,
                status: None,
            },
        }
    }

    fn policy_version(&self, program: &Program) -> Option<(Str, Str)> {
        let policy = self.prepared.sets.snapshot.policies.get(&program.id)?;
        let version = format!("{}/{}", policy.uid(), policy.generation());
        Some((Str::new_static(ANNOTATION_POLICY_VERSION), version.into()))
    }

    fn request_context(&self) -> RequestContext {
        let user_info = self.prepared.review.user.as_ref().map(RequestUser::from).unwrap_or_default();
        RequestContext {
            user_info,
            admission_request_info: AdmissionRequestInfo {
                admission_request: payload(self.prepared.request),
                operation: Some(self.prepared.request.operation),
            },
        }
    }
}

/// That an update changes nothing.
fn unchanged(request: &AdmissionRequest) -> Option<(Str, Str)> {
    let says = |object: &Value| (normalized_content(object), object.get("status").cloned());
    let same = request.operation == Operation::Update
        && request.sub_resource.is_empty()
        && says(&request.object) == says(&request.old_object);
    same.then(|| (Str::new_static(ANNOTATION_UNCHANGED), "true".into()))
}

fn synchronizes(rule: &CompiledRule) -> bool {
    matches!(&rule.body, Body::Generate(body) if body.synchronize)
}

/// What of the admission request travels along: the objects only where they cannot be read later.
fn payload(request: &AdmissionRequest) -> Value {
    let needed =
        matches!(request.operation, Operation::Delete | Operation::Connect) || !request.sub_resource.is_empty();
    // The old object of an update cannot be read later; its version also tells when the update is stored.
    let updated = request.operation == Operation::Update;
    let members = request.document.as_object().into_iter().flat_map(Map::iter);
    let mut kept: Map = members
        .filter(|(key, value)| {
            !matches!(key.as_str(), "object" | "oldObject" | "userInfo") && !value.is_deeper_than(MAX_DEPTH)
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if needed || updated {
        for (key, object) in [("object", &request.object), ("oldObject", &request.old_object)] {
            if !object.is_null() && (needed || key == "oldObject") {
                let object = trimmed(object);
                let bytes = object.to_json().len();
                if bytes <= MAX_PAYLOAD && !object.is_deeper_than(MAX_DEPTH) {
                    kept.insert(key, object);
                } else {
                    tracing::warn!(
                        uid = %request.uid, kind = %request.kind.kind, namespace = %request.namespace,
                        name = %request.object_name(), operation = request.operation.as_str(), bytes,
                        "`{key}` is too large or nested too deep to travel with an UpdateRequest: rules that read it fail, or see none"
                    );
                }
            }
        }
    }
    kept.into()
}

/// An object without the fields that no rule reads.
fn trimmed(object: &Value) -> Value {
    let mut object = redact::without_values(object);
    if let Some(metadata) =
        object.as_object_mut().and_then(|members| members.get_mut("metadata")).and_then(Value::as_object_mut)
    {
        metadata.remove("managedFields");
    }
    object
}

fn hashed(parts: &[&str]) -> Str {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    digest.iter().take(10).fold(Str::new_static("ur-"), |name, byte| format!("{name}{byte:02x}").into())
}
