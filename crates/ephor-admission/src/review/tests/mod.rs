//! The handlers on a cluster in memory.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, ClusterError, ListQuery, MemoryCluster, WriteOptions};
use ephor_engine::policy::FailurePolicy;
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_values};
use ephor_faults::FaultyCluster;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::decision::observe::{Decided, Dropped, Observer};
use ephor_runtime::decision::path::{Webhook, WebhookScope};
use ephor_runtime::decision::request::{AdmissionRequest, AdmissionReview};
use ephor_runtime::decision::{Answer, Sender};
use ephor_runtime::facts::{ClusterFacts, NamespaceLabels};
use ephor_runtime::policies::{ExceptionScope, PolicyId, PolicyStore, StoredKind};
use ephor_runtime::schemas::Schemas;
use ephor_runtime::update_request::{API_VERSION, KIND, UpdateRequest};
use ephor_runtime::watcher::StoreEvent;

use super::handlers::{HandlerOptions, Handlers, Parts};
use super::{Effort, WouldBlock};

mod cel;
mod deep;

/// Handlers, their cluster, and what observers saw.
pub(crate) struct Harness {
    cluster: Arc<dyn Cluster>,
    pub(crate) handlers: Handlers,
    config: ConfigStore,
    seen: Arc<Mutex<Vec<String>>>,
}

struct Notes(Arc<Mutex<Vec<String>>>);

/// Panics at decisions of the policy `panics`.
impl Observer for Notes {
    fn decided(&self, decided: &Decided<'_>) {
        assert!(decided.programs.iter().all(|program| program.key != "panics"), "as asked");
        let mut notes = self.0.lock().unwrap();
        for outcome in decided.outcomes {
            let program = &decided.programs[outcome.policy];
            let blocked = if decided.blocked { " blocked" } else { "" };
            notes.push(format!("{}/{} {}{blocked}", program.key, outcome.rule, outcome.verdict.as_str()));
        }
    }

    fn answered(&self, _: &AdmissionRequest, webhook: Webhook, answer: &Answer, _: Duration) {
        self.0.lock().unwrap().push(format!("{} {}", webhook.as_str(), answer.allowed));
    }

    fn shadowed(&self, _: &AdmissionRequest, webhook: Webhook, answer: &Answer, _: Duration) {
        self.0.lock().unwrap().push(format!("shadow {} {}", webhook.as_str(), answer.allowed));
    }

    fn dropped(&self, what: Dropped) {
        self.0.lock().unwrap().push(format!("dropped {what:?}"));
    }
}

fn yaml(text: &str) -> Value {
    parse_values(text, &Limits::default()).unwrap().remove(0)
}

impl Harness {
    pub(crate) fn new(policies: &[&str]) -> Self {
        Self::with(policies, |_| {})
    }

    fn with(policies: &[&str], change: impl FnOnce(&mut HandlerOptions)) -> Self {
        Self::over(Arc::new(MemoryCluster::default()), policies, change)
    }

    fn over(cluster: Arc<dyn Cluster>, policies: &[&str], change: impl FnOnce(&mut HandlerOptions)) -> Self {
        for name in ["kyverno", "default"] {
            let namespace = yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"));
            let kind = cluster.resolve("v1", "Namespace").unwrap();
            let _ = cluster.create(&kind, namespace, &ephor_cluster::WriteOptions::default());
        }
        let store = PolicyStore::new(ExceptionScope::Everywhere);
        for text in policies {
            let document = yaml(text);
            store.apply(StoredKind::of(&document).unwrap(), StoreEvent::Apply(document));
        }
        for policy in store.snapshot().policies.values() {
            assert!(policy.program.is_some(), "{:?}", policy.findings);
        }
        let mut options = HandlerOptions::in_process("kyverno");
        change(&mut options);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let config = ConfigStore::new("kyverno", "kyverno");
        let parts = Parts {
            cluster: Arc::clone(&cluster),
            policies: store,
            config: config.clone(),
            answers: Arc::new(
                ClusterFacts::new(Arc::clone(&cluster)).within(config.clone()).with_schemas(Schemas::built_in()),
            ),
            namespaces: NamespaceLabels::default(),
            roles: super::roles::Roles::default(),
            observer: Arc::new(Notes(Arc::clone(&seen))),
        };
        Self { cluster, handlers: Handlers::new(parts, options), config, seen }
    }

    fn validate(&self, request: &AdmissionRequest) -> Answer {
        self.handlers.validate(request, &WebhookScope::All)
    }

    fn update_requests(&self) -> Vec<UpdateRequest> {
        let kind = self.cluster.resolve(API_VERSION, KIND).unwrap();
        let found = self.cluster.list(&kind, &ListQuery::in_namespace("kyverno")).unwrap().items;
        found.iter().map(|object| UpdateRequest::from_value(object).unwrap()).collect()
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// A request about a core object: `operation`, kind, and YAML of the object before and after.
fn request(operation: &str, kind: &str, before: &str, after: &str) -> AdmissionRequest {
    let object = |text: &str| if text.is_empty() { Value::Null } else { yaml(text) };
    let (before, after) = (object(before), object(after));
    let subject = if after.is_null() { &before } else { &after };
    let text = |key: &str| Value::from(subject.str_at(&["metadata", key]).unwrap_or_default());
    let plural = format!("{}s", kind.to_lowercase());
    let namespace = if kind == "Namespace" { text("name") } else { text("namespace") };
    let document = Value::from([
        ("uid", Value::from("uid-1")),
        ("kind", Value::from([("group", Value::from("")), ("version", "v1".into()), ("kind", kind.into())])),
        ("resource", Value::from([("group", Value::from("")), ("version", "v1".into()), ("resource", plural.into())])),
        ("name", text("name")),
        ("namespace", namespace),
        ("operation", operation.into()),
        ("userInfo", Value::from([("username", Value::from("alice"))])),
        ("object", after),
        ("oldObject", before),
    ]);
    AdmissionRequest::of_value(&document).unwrap()
}

fn pod(labels: &str) -> String {
    format!("{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: default, uid: u1, labels: {labels}}}}}")
}

/// A policy that wants the label `team`.
fn wants_team(name: &str, spec: &str, action: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{{spec} rules: [{{name: team, \
         match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, validate: {{failureAction: {action}, message: label team is \
         missing, pattern: {{metadata: {{labels: {{team: '?*'}}}}}}}}}}]}}}}"
    )
}

#[test]
fn an_exception_of_one_namespace_lets_nothing_off_the_policies_of_another() {
    let policy = wants_team("require", "", "Enforce");
    let policy = policy.replace("ClusterPolicy, metadata: {", "Policy, metadata: {namespace: default, ");
    let exception = |namespace: &str| {
        format!(
            "{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: e, namespace: {namespace}}}, spec: \
             {{exceptions: [{{policyName: default/require, ruleNames: ['*']}}], \
             match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}}}}}"
        )
    };
    for (namespace, allowed) in [("team-a", false), ("default", true)] {
        let harness = Harness::new(&[&policy, &exception(namespace)]);
        let answer = harness.validate(&request("CREATE", "Pod", "", &pod("{a: b}")));
        assert_eq!(answer.allowed, allowed, "an exception of {namespace}");
    }
}

#[test]
fn a_violation_of_an_enforced_rule_is_denied() {
    let harness = Harness::new(&[&wants_team("require", "", "Enforce")]);
    let answer = harness.validate(&request("CREATE", "Pod", "", &pod("{a: b}")));
    assert!(!answer.allowed);
    insta::assert_snapshot!(answer.message.unwrap(), @r"

    resource Pod/default/p was blocked due to the following policies 

    require:
      team: 'validation error: label team is missing. rule team failed at path /metadata/labels/team/'
    ");
    assert_eq!(harness.seen(), ["require/team fail blocked", "validate false"]);
    assert_eq!(harness.validate(&request("CREATE", "Pod", "", &pod("{team: x}"))), Answer::allow());
    assert_eq!(harness.seen(), ["require/team pass", "validate true"]);
}

#[test]
fn audit_rules_are_judged_and_let_pass() {
    let harness =
        Harness::new(&[&wants_team("audit", "", "Audit"), &wants_team("warn", "emitWarning: true,", "Audit")]);
    let answer = harness.validate(&request("CREATE", "Pod", "", &pod("{a: b}")));
    let message =
        "policy warn.team: validation error: label team is missing. rule team failed at path /metadata/labels/team/";
    assert_eq!(answer, Answer::allow().with_warnings([message.to_owned()]));
    assert_eq!(harness.seen(), ["warn/team fail", "audit/team fail", "validate true"]);
}

#[test]
fn a_review_that_panics_is_answered_by_the_failure_policy_and_counted() {
    for (failure, allowed) in [("Fail", false), ("Ignore", true)] {
        let harness = Harness::new(&[&wants_team("panics", &format!("failurePolicy: {failure},"), "Enforce")]);
        let scope = WebhookScope::ByFailurePolicy(if allowed { FailurePolicy::Ignore } else { FailurePolicy::Fail });
        let answer = harness.handlers.validate(&request("CREATE", "Pod", "", &pod("{a: b}")), &scope);
        assert_eq!((answer.allowed, answer.code), (allowed, (!allowed).then_some(500)), "{failure}: {answer:?}");
        assert_eq!(harness.seen(), [format!("validate {allowed}")], "{failure}");
    }
}

#[test]
fn an_audit_that_panics_is_counted_as_dropped_and_the_next_one_is_judged() {
    let harness = Harness::with(&[&wants_team("panics", "", "Audit")], |options| options.audit_workers = 1);
    let pod = request("CREATE", "Pod", "", &pod("{a: b}"));
    for _ in 0..2 {
        assert!(harness.validate(&pod).allowed);
        let mut seen = Vec::new();
        while seen.len() < 2 {
            seen.extend(harness.seen());
            std::thread::yield_now();
        }
        seen.sort();
        assert_eq!(seen, ["dropped Audit", "validate true"]);
    }
}

#[test]
fn each_policy_answers_for_its_own_errors() {
    // The variable cannot be had, so the rule is an error.
    let broken = |name: &str, spec: &str, action: &str| {
        format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{{spec} rules: [{{name: r, \
             match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, validate: {{failureAction: {action}, deny: {{conditions: \
             {{any: [{{key: '{{{{ request.object.spec.nothing }}}}', operator: Equals, value: x}}]}}}}}}}}]}}}}"
        )
    };
    let create = request("CREATE", "Pod", "", &pod("{}"));
    for (spec, action, allowed) in [
        ("", "Enforce", false),
        ("failurePolicy: Ignore,", "Enforce", true),
        ("", "Audit", true),
        ("emitWarning: true,", "Audit", true),
    ] {
        // The neighbour fails closed and has nothing to complain about.
        let harness = Harness::new(&[&broken("broken", spec, action), &wants_team("neighbour", "", "Audit")]);
        assert_eq!(harness.validate(&create).allowed, allowed, "{spec} {action}");
        let forced = Harness::with(&[&broken("broken", spec, action)], |o| o.force_failure_policy_ignore = true);
        assert!(forced.validate(&create).allowed);
    }
}

#[test]
fn lanes_split_policies_by_failure_policy() {
    let ignore = wants_team("ignore", "failurePolicy: Ignore,", "Enforce");
    let harness = Harness::new(&[&wants_team("fail", "", "Enforce"), &ignore]);
    let create = request("CREATE", "Pod", "", &pod("{}"));
    for (scope, verdicts) in [
        (WebhookScope::All, &["fail/team fail blocked", "ignore/team fail blocked", "validate false"][..]),
        (WebhookScope::ByFailurePolicy(FailurePolicy::Fail), &["fail/team fail blocked", "validate false"]),
        (WebhookScope::ByFailurePolicy(FailurePolicy::Ignore), &["ignore/team fail blocked", "validate false"]),
        (
            WebhookScope::Policies(FailurePolicy::Fail, vec![PolicyId::parse("fail")]),
            &["fail/team fail blocked", "validate false"],
        ),
        (WebhookScope::Policies(FailurePolicy::Fail, vec![PolicyId::parse("gone")]), &["validate false"]),
        (WebhookScope::Policies(FailurePolicy::Ignore, vec![PolicyId::parse("gone")]), &["validate true"]),
    ] {
        harness.handlers.validate(&create, &scope);
        assert_eq!(harness.seen(), verdicts, "{scope:?}");
    }
}

const LABELS: &str = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: label}, spec: {emitWarning: true, \
     rules: [{name: team, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: \
     {+(team): none}}}}}]}}";

#[test]
fn a_mutation_is_one_patch_and_perhaps_a_warning() {
    let harness = Harness::new(&[LABELS]);
    let answer = harness.handlers.mutate(&request("CREATE", "Pod", "", &pod("{a: b}")), &WebhookScope::All);
    assert_eq!(answer.patch.unwrap().to_json(), r#"[{"op":"add","path":"/metadata/labels/team","value":"none"}]"#);
    assert_eq!(answer.warnings, ["policy label.team: mutated Pod/p in namespace default"]);
    for request in [request("CREATE", "Pod", "", &pod("{team: x}")), request("DELETE", "Pod", &pod("{}"), "")] {
        assert_eq!(harness.handlers.mutate(&request, &WebhookScope::All), Answer::allow());
    }
}

#[test]
fn a_mutation_that_fails_denies_unless_its_policy_ignores_errors() {
    let broken = |name: &str, spec: &str| {
        format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{{spec} rules: [{{name: r, \
             match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, mutate: {{patchesJson6902: '[{{\"op\": \"replace\", \
             \"path\": \"/spec/x/y\", \"value\": 1}}]'}}}}]}}}}"
        )
    };
    let create = request("CREATE", "Pod", "", &pod("{a: b}"));
    let answer = Harness::new(&[&broken("b", ""), LABELS]).handlers.mutate(&create, &WebhookScope::All);
    let message = answer.message.unwrap();
    assert!(message.starts_with("mutation policy b error: failed to apply policy b rules [r: "), "{message}");
    let answer =
        Harness::new(&[&broken("b", "failurePolicy: Ignore,"), LABELS]).handlers.mutate(&create, &WebhookScope::All);
    assert_eq!(answer.patch.unwrap().as_array().unwrap().len(), 1);
}

#[test]
fn hidden_requests_are_let_pass_and_own_objects_protected() {
    let deny = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: d}, spec: {validationFailureAction: \
         Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Pod, Namespace]}}]}, validate: {deny: {}}}]}}";
    let harness = Harness::with(&[deny], |options| options.protect_managed_resources = true);
    let in_system = pod("{}").replace("namespace: default", "namespace: kube-system");
    assert!(harness.validate(&request("CREATE", "Pod", "", &in_system)).allowed);
    let namespace = |name: &str| format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
    assert!(harness.validate(&request("CREATE", "Namespace", "", &namespace("kube-system"))).allowed);
    assert!(!harness.validate(&request("CREATE", "Namespace", "", &namespace("x"))).allowed);

    let managed = pod("{app.kubernetes.io/managed-by: kyverno}").replace("default", "kube-system");
    let mut delete = request("DELETE", "Pod", &managed, "");
    assert_eq!(harness.validate(&delete).message.unwrap(), super::filter::PROTECTED);
    for user in ["system:serviceaccount:kyverno:x", "system:serviceaccount:kube-system:namespace-controller"] {
        delete.user.username = user.into();
        assert!(harness.validate(&delete).allowed, "{user}");
    }
}

#[test]
fn a_shadow_allows_everything_and_writes_nothing() {
    let harness = Harness::with(&[&wants_team("require", "", "Enforce"), GENERATE], |options| options.shadow = true);
    // The webhooks of a shadow ask so, whatever the failure policies are.
    let scope = WebhookScope::ByFailurePolicy(FailurePolicy::Ignore);
    assert_eq!(harness.handlers.validate(&request("CREATE", "Pod", "", &pod("{}")), &scope), Answer::allow());
    assert_eq!(harness.validate(&request("DELETE", "Pod", &pod("{team: x}"), "")), Answer::allow());
    assert_eq!(harness.seen()[..2], ["require/team fail blocked", "shadow validate false"]);
    assert!(harness.update_requests().is_empty());
}

#[test]
fn values_of_secrets_are_not_told() {
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: s}, spec: {validationFailureAction: \
         Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Secret]}}]}, validate: {message: \"it is {{ \
         request.object.data.k | base64_decode(@) }}\", deny: {}}}]}}";
    // "topsecret" in base64.
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, data: {k: dG9wc2VjcmV0}}";
    let answer = Harness::new(&[policy]).validate(&request("CREATE", "Secret", "", secret));
    let message = answer.message.unwrap();
    assert!(message.ends_with("r: it is <redacted>\n"), "{message}");
}

#[test]
fn context_data_have_a_limit() {
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: c}, spec: {validationFailureAction: \
         Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, context: [{name: teams, configMap: \
         {name: teams, namespace: default}}], validate: {message: nay, deny: {conditions: {all: [{key: '{{ \
         teams.data.a }}', operator: Equals, value: z}]}}}}]}}";
    let harness = Harness::new(&[policy]);
    let teams = "{apiVersion: v1, kind: ConfigMap, metadata: {name: teams, namespace: default}, data: {a: b}}";
    let kind = harness.cluster.resolve("v1", "ConfigMap").unwrap();
    harness.cluster.create(&kind, yaml(teams), &WriteOptions::default()).unwrap();
    let create = request("CREATE", "Pod", "", &pod("{}"));
    assert!(harness.validate(&create).allowed);
    harness.config.apply(StoreEvent::Apply(yaml(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: kyverno, namespace: kyverno}, data: {maxContextSize: '20'}}",
    )));
    let message = harness.validate(&create).message.unwrap();
    assert!(message.contains("context data exceed 20 bytes (maxContextSize)"), "{message}");
}

const GENERATE: &str = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: g}, spec: {rules: [{name: sync, \
     match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {team: x}}}}]}, generate: {synchronize: true, \
     apiVersion: v1, kind: ConfigMap, name: c, namespace: default, data: {data: {a: b}}}}, {name: once, match: {any: \
     [{resources: {kinds: [Pod], operations: [CREATE, DELETE]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: d, \
     namespace: default, data: {data: {a: b}}}}]}}";

fn contexts(requests: &[UpdateRequest]) -> Vec<(&str, bool, bool)> {
    let mut all: Vec<_> = requests
        .iter()
        .flat_map(|request| &request.spec.rule_context)
        .map(|context| (context.rule.as_str(), context.delete_downstream, context.synchronize))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn work_for_the_background_is_handed_over() {
    for (request, want) in [
        (request("CREATE", "Pod", "", &pod("{team: x}")), &[("once", false, false), ("sync", false, true)][..]),
        (request("CREATE", "Pod", "", &pod("{team: y}")), &[("once", false, false)]),
        // A trigger that no longer matches takes its downstream along.
        (request("UPDATE", "Pod", &pod("{team: x}"), &pod("{team: y}")), &[("sync", true, true)]),
        (request("UPDATE", "Pod", &pod("{team: x}"), &pod("{team: x, a: b}")), &[("sync", false, true)]),
        (request("UPDATE", "Pod", &pod("{team: y}"), &pod("{team: z}")), &[]),
        // A deletion is an event for rules that name it, and the end of the trigger for those that synchronize.
        (request("DELETE", "Pod", &pod("{team: x}"), ""), &[("once", false, false), ("sync", true, true)]),
    ] {
        let harness = Harness::new(&[GENERATE]);
        assert!(harness.validate(&request).allowed);
        assert_eq!(contexts(&harness.update_requests()), want, "{:?}", request.operation);
    }
}

#[test]
fn nothing_is_handed_over_for_dry_runs_denials_and_the_background_itself() {
    let denied = Harness::new(&[GENERATE, &wants_team("require", "", "Enforce")]);
    assert!(!denied.validate(&request("CREATE", "Pod", "", &pod("{a: b}"))).allowed);
    assert!(denied.update_requests().is_empty());

    let harness = Harness::new(&[GENERATE]);
    let mut dry = request("CREATE", "Pod", "", &pod("{team: x}"));
    dry.dry_run = true;
    harness.validate(&dry);
    let mut own = request("CREATE", "Pod", "", &pod("{team: x}"));
    own.user.username = "system:serviceaccount:kyverno:kyverno-background-controller".into();
    harness.validate(&own);
    assert!(harness.update_requests().is_empty());
}

#[test]
fn work_that_others_write_at_each_try_counts_as_not_recorded() {
    let memory: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let requests = memory.resolve(API_VERSION, KIND).unwrap();
    let contended = FaultyCluster::new(memory).before_writes(move |write| {
        let taken = write.kind == KIND && write.verb == "create";
        taken.then(|| ClusterError::already_exists(&requests, &write.name))
    });
    let harness = Harness::over(Arc::new(contended), &[GENERATE], |_| {});
    let answer = harness.validate(&request("CREATE", "Pod", "", &pod("{team: x}")));
    assert_eq!((answer.allowed, answer.code), (false, Some(500)), "{answer:?}");
    assert!(answer.message.unwrap().contains("could not be recorded"));
}

#[test]
fn synchronizing_work_coalesces_and_events_stay_apart() {
    let harness = Harness::new(&[GENERATE]);
    let mut create = request("CREATE", "Pod", "", &pod("{team: x}"));
    harness.validate(&create);
    harness.validate(&create);
    assert_eq!(harness.update_requests().len(), 2);
    create.uid = "uid-2".into();
    harness.validate(&create);
    let requests = harness.update_requests();
    assert_eq!(contexts(&requests), [("once", false, false), ("once", false, false), ("sync", false, true)]);
    let trigger = &requests[0].spec.rule_context[0].trigger;
    assert_eq!((trigger.api_version.as_str(), trigger.kind.as_str(), trigger.uid.as_str()), ("v1", "Pod", "u1"));
    assert_eq!(requests[0].metadata.labels["generate.kyverno.io/policy-name"], "g");
}

#[test]
fn beyond_the_threshold_nothing_is_handed_over_and_the_client_is_told() {
    let harness = Harness::new(&[GENERATE]);
    let (stop, create) = (ephor_runtime::CancellationToken::new(), request("CREATE", "Pod", "", &pod("{team: x}")));
    let full = yaml("{data: {updateRequestThreshold: '0'}}");
    harness.config.apply(StoreEvent::Apply(full));
    assert_eq!(harness.validate(&create), Answer::allow(), "nobody counts");
    let (waiting, watcher) = super::Waiting::follow(&harness.cluster, "kyverno", |_| (), &stop);
    assert!(watcher.wait_synced(Duration::from_mins(1)));
    harness.handlers.count_update_requests(waiting);
    let before = harness.update_requests().len();
    let warning = "the work of policy g was not recorded: too many UpdateRequests wait already".to_owned();
    assert_eq!(harness.validate(&create), Answer::allow().with_warnings([warning]));
    assert_eq!(harness.update_requests().len(), before);
    stop.cancel();
}

#[test]
fn a_request_whose_work_cannot_be_handed_over_is_told_as_blocked_and_not_audited() {
    let harness = Harness::new(&[GENERATE, &wants_team("require", "", "Enforce"), &wants_team("audited", "", "Audit")]);
    let namespaces = harness.cluster.resolve("v1", "Namespace").unwrap();
    harness.cluster.delete(&namespaces, None, "kyverno", &ephor_cluster::DeleteOptions::default()).unwrap();
    assert!(!harness.validate(&request("CREATE", "Pod", "", &pod("{team: x}"))).allowed);
    assert_eq!(harness.seen(), ["require/team pass blocked", "validate false"]);
}

/// Whether a policy's work for a request is lost, and the client told, where too much waits already.
fn is_urgent(policy: &str, request: &AdmissionRequest) -> bool {
    let harness = Harness::new(&[policy]);
    harness.config.apply(StoreEvent::Apply(yaml("{data: {updateRequestThreshold: '0'}}")));
    let stop = ephor_runtime::CancellationToken::new();
    let (waiting, watcher) = super::Waiting::follow(&harness.cluster, "kyverno", |_| (), &stop);
    assert!(watcher.wait_synced(Duration::from_mins(1)));
    harness.handlers.count_update_requests(waiting);
    let answer = harness.validate(request);
    stop.cancel();
    !answer.warnings.is_empty()
}

#[test]
fn synchronizing_work_that_only_the_request_tells_of_is_urgent() {
    let create = request("CREATE", "Pod", "", &pod("{team: x}"));
    let mut update = request("UPDATE", "Pod", &pod("{team: x}"), &pod("{team: x, a: b}"));
    update.uid = "uid-2".into();
    let (sync, _) = GENERATE.split_once(", {name: once").unwrap();
    let sync = format!("{sync}]}}}}");
    let by_user =
        sync.replace("a: b", "a: '{{ request.userInfo.username }}'").replace("{rules", "{background: false, rules");
    let on_update = sync.replace("kinds: [Pod],", "kinds: [Pod], operations: [UPDATE],");
    let any_kind = sync.replace("kinds: [Pod],", "kinds: ['v1/*'],");
    let urgent = [&sync, &by_user, &on_update, &any_kind]
        .map(|policy| [&create, &update].map(|request| is_urgent(policy, request)));
    assert_eq!(urgent, [[false, false], [true, true], [false, true], [true, true]]);

    let harness = Harness::new(&[&by_user]);
    harness.validate(&create);
    harness.validate(&update);
    assert_eq!(harness.update_requests().len(), 2, "one must not take the other's place before it has come true");
}

#[test]
fn objects_travel_only_where_they_cannot_be_read_later() {
    let payload = |request: &AdmissionRequest| {
        let harness =
            Harness::new(&[&GENERATE.replace("[Pod]", "[Secret]").replace("kinds: [Pod],", "kinds: [Secret],")]);
        harness.validate(request);
        harness.update_requests()[0].spec.context.admission_request_info.admission_request.clone()
    };
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, data: {k: dG9wc2VjcmV0}}";
    assert!(payload(&request("CREATE", "Secret", "", secret)).get("object").is_none());
    let deleted = payload(&request("DELETE", "Secret", secret, ""));
    assert_eq!(deleted.str_at(&["oldObject", "metadata", "name"]), Some("s"));
    assert!(!deleted.to_json().contains("dG9wc2VjcmV0"));
    let large = secret.replace("data: {k: dG9wc2VjcmV0}", &format!("x: {}", "y".repeat(300 << 10)));
    assert!(payload(&request("DELETE", "Secret", &large, "")).get("oldObject").is_none());
}

#[test]
fn what_has_to_be_fetched_is_not_answered_at_once() {
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: c}, spec: {validationFailureAction: \
         Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, context: [{name: cm, configMap: {name: c, \
         namespace: default}}], validate: {message: m, deny: {conditions: {any: [{key: '{{ cm.data.on }}', operator: \
         Equals, value: 'yes'}]}}}}]}}";
    let harness = Harness::new(&[policy]);
    let create = request("CREATE", "Pod", "", &pod("{}"));
    assert_eq!(
        harness.handlers.answer(Webhook::Validate, &WebhookScope::All, &create, Effort::Immediate),
        Err(WouldBlock)
    );
    assert!(harness.seen().is_empty(), "observers see only answers that count");
    let config_map =
        yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {'on': 'yes'}}");
    let kind = harness.cluster.resolve("v1", "ConfigMap").unwrap();
    harness.cluster.create(&kind, config_map, &ephor_cluster::WriteOptions::default()).unwrap();
    assert!(!harness.validate(&create).allowed);
}

/// A policy whose work grows with the product of two lists of a Pod.
fn compares_lists(name: &str, failure: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{background: false, \
         failurePolicy: {failure}, validationFailureAction: Enforce, rules: [{{name: r, match: {{any: [{{resources: \
         {{kinds: [Pod]}}}}]}}, validate: {{message: m, deny: {{conditions: {{any: [{{key: '{{{{ \
         request.object.spec.a }}}}', operator: AnyIn, value: '{{{{ request.object.spec.b }}}}'}}]}}}}}}}}]}}}}"
    )
}

/// A Pod with two long lists that have nothing in common.
fn lists() -> AdmissionRequest {
    let list = |prefix: &str| (0..1000).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(",");
    let pod = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: default}}, spec: {{a: [{}], b: [{}]}}}}",
        list("a"),
        list("b")
    );
    request("CREATE", "Pod", "", &pod)
}

#[test]
fn what_takes_more_than_a_moment_is_not_answered_at_once() {
    let harness = Harness::new(&[&compares_lists("slow", "Fail")]);
    let answer = harness.handlers.answer(Webhook::Validate, &WebhookScope::All, &lists(), Effort::Immediate);
    assert_eq!(answer, Err(WouldBlock));
    assert!(harness.seen().is_empty(), "observers see only answers that count");
    assert!(harness.validate(&lists()).allowed);
}

#[test]
fn when_the_time_is_over_the_failure_policy_decides() {
    let over = Instant::now();
    let harness = Harness::new(&[&compares_lists("fail", "Fail"), &compares_lists("ignore", "Ignore")]);
    let until = |harness: &Harness, failure| {
        harness.handlers.answer_until(Webhook::Validate, &WebhookScope::ByFailurePolicy(failure), &lists(), over)
    };
    let denied = until(&harness, FailurePolicy::Fail);
    assert!(!denied.allowed && denied.message.unwrap().contains("takes too long"));
    let allowed = until(&harness, FailurePolicy::Ignore);
    assert!(allowed.allowed && allowed.warnings[0].contains("takes too long"), "{:?}", allowed.warnings);
    // What one policy has found out before is not undone by another that takes all the time.
    let harness =
        Harness::new(&[&wants_team("a", "failurePolicy: Ignore,", "Enforce"), &compares_lists("b", "Ignore")]);
    assert!(!until(&harness, FailurePolicy::Ignore).allowed);
}

#[test]
fn a_subresource_is_judged_as_part_of_its_object() {
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: e}, spec: {validationFailureAction: \
         Enforce, background: false, rules: [{name: r, match: {any: [{resources: {kinds: [Pod/exec]}}]}, validate: {message: no exec, deny: \
         {}}}]}}";
    let review = r#"{"request":{"uid":"u","kind":{"group":"","version":"v1","kind":"PodExecOptions"},
        "resource":{"group":"","version":"v1","resource":"pods"},"subResource":"exec","name":"p","namespace":"default",
        "operation":"CONNECT","userInfo":{"username":"alice"},"object":{"kind":"PodExecOptions","apiVersion":"v1"}}}"#;
    let request = AdmissionReview::parse(review.as_bytes()).unwrap().request;
    let answer = Harness::new(&[policy]).validate(&request);
    let message = answer.message.unwrap();
    assert!(message.contains("resource PodExecOptions/default/p was blocked"), "{message}");
}

/// A text of JSON that is nested so deep.
fn nested(levels: usize) -> String {
    r#"[{"a":"#.repeat(levels / 2) + "0" + &"}]".repeat(levels / 2)
}

#[test]
fn objects_as_deep_as_an_api_server_reads_are_judged_changed_and_handed_over() {
    let mutate = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: m}, spec: {rules: [{name: m, match: \
                  {any: [{resources: {kinds: [Pod, Secret]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: \
                  {team: x}}}}}]}}";
    let harness =
        Harness::new(&[GENERATE, mutate, &wants_team("require", "", "Enforce"), &wants_team("audited", "", "Audit")]);
    let deep = nested(9_990);
    for (kind, operation) in [("Pod", "CREATE"), ("Pod", "UPDATE"), ("Pod", "DELETE"), ("Secret", "UPDATE")] {
        let object = |labels: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"p","namespace":"default","uid":"u1","labels":{labels},
                    "managedFields":{deep}}},"spec":{deep},"data":{{"k":{deep}}}}}"#
            )
        };
        let (before, after) = (object(r#"{"a":"b"}"#), object(r#"{"team":"y"}"#));
        let before = if operation == "CREATE" { "null" } else { &before };
        let after = if operation == "DELETE" { "null" } else { &after };
        let review = format!(
            r#"{{"request":{{"uid":"u-{operation}","operation":"{operation}","name":"p","namespace":"default",
                "kind":{{"group":"","version":"v1","kind":"{kind}"}},"requestKind":{{"group":"","version":"v1","kind":"{kind}"}},
                "resource":{{"group":"","version":"v1","resource":"{}s"}},"userInfo":{{"username":"ann"}},
                "object":{after},"oldObject":{before}}}}}"#,
            kind.to_lowercase()
        );
        let request = AdmissionReview::parse(review.as_bytes()).unwrap().request;
        let request = AdmissionRequest { sender: Sender::ApiServer, ..request };
        let mutated = harness.handlers.mutate(&request, &WebhookScope::All);
        assert!(mutated.allowed, "{mutated:?}");
        let answer = harness.validate(&request);
        assert!(answer.allowed && answer.warnings.is_empty(), "{answer:?}");
        mutated.review("", "", "u").to_json();
    }
    assert!(!harness.update_requests().is_empty());
}
