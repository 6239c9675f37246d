//! What is said of policies, and when it is written.

use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::{Cluster, MemoryCluster, WriteOptions};
use ephor_expr::Value;
use ephor_expr::yaml::{parse_value, to_yaml};
use ephor_faults::FaultyCluster;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::lease::Term;
use ephor_runtime::policies::{ExceptionScope, PolicyId, PolicyStore, StoredPolicy};
use jiff::Timestamp;

use super::controller::{Memory, RoundResult};
use super::{Description, Readiness, StatusController, describe};
use crate::generated::GeneratedBoard;
use crate::registration::{Registered, Registration, RegistrationBoard};
use crate::webhooks::{RegisteredFrom, WebhookSettings};

const SOUND: &str =
    "{match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, pattern: {spec: {a: b}}}, name: r}";

fn policy(name: &str, rules: &str) -> Value {
    parse_value(&format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{rules: [{rules}]}}}}"
    ))
    .unwrap()
}

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

#[test]
fn a_status_holds_the_generated_rules_whole() {
    let rule = "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: '{{ request.object.spec.x }}', pattern: {spec: {a: b}}}}";
    let mutate = "{name: m, match: {any: [{resources: {kinds: [Secret]}}]}, mutate: {patchStrategicMerge: {a: b}}}";
    let description = Description::of(&StoredPolicy::new(policy("p", &format!("{rule}, {mutate}"))));
    let status = describe(&description, &Readiness::Ready { failing: None }, None, None, now()).unwrap();
    insta::assert_snapshot!(to_yaml(&status));
}

#[test]
fn generated_rules_that_the_api_server_would_not_store_are_left_out() {
    let long = SOUND.replace("message: m", &format!("message: '{}'", "m".repeat(400 << 10)));
    let description = Description::of(&StoredPolicy::new(policy("p", &long)));
    let status = describe(&description, &Readiness::Ready { failing: None }, None, None, now()).unwrap();
    assert!(status.to_json().len() < 10_000, "{} bytes", status.to_json().len());
    assert!(status.get("conditions").is_some());
}

#[test]
fn the_time_of_a_condition_is_that_of_its_last_change() {
    let description = Description::of(&StoredPolicy::new(policy("p", SOUND)));
    let later: Timestamp = "2026-11-21T13:00:00Z".parse().unwrap();
    let first = describe(&description, &Readiness::Ready { failing: None }, None, None, now()).unwrap();
    assert_eq!(describe(&description, &Readiness::Ready { failing: None }, None, Some(&first), later).unwrap(), first);
    let failed = describe(&description, &Readiness::Failed("why".into()), None, Some(&first), later).unwrap();
    let condition = &failed.get("conditions").and_then(Value::as_array).unwrap()[0];
    let text = |key| condition.str_at(&[key]).unwrap();
    assert_eq!(
        (text("status"), text("reason"), text("message"), text("lastTransitionTime")),
        ("False", "Failed", "why", "2026-11-21T13:00:00Z")
    );
    assert_eq!(describe(&description, &Readiness::Unknown, None, Some(&first), later), None);
}

/// Policies in a cluster, and the controller of their statuses.
struct World {
    cluster: Arc<dyn Cluster>,
    policies: PolicyStore,
    board: RegistrationBoard,
    settings: WebhookSettings,
    stop: CancellationToken,
    term: Term,
}

impl World {
    fn new(documents: impl IntoIterator<Item = Value>) -> Self {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let kind = cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
        for document in documents {
            cluster.create(&kind, document, &WriteOptions::default()).unwrap();
        }
        let stop = CancellationToken::new();
        let policies = PolicyStore::new(ExceptionScope::Disabled);
        assert!(policies.follow(&cluster, &stop).wait_synced(Duration::from_secs(30)));
        let term = Term::unlimited(&stop);
        let settings = WebhookSettings::default();
        Self { cluster, policies, board: RegistrationBoard::default(), settings, stop, term }
    }

    /// What the webhook controller does after its writes.
    fn register(&self) {
        let snapshot = self.policies.snapshot();
        let registered = snapshot.policies.iter().filter_map(|(key, policy)| {
            Some((key.clone(), Registered { program: policy.program.clone()?, refusal: None }))
        });
        self.board.publish(Registration { policies: registered.collect(), ..Registration::default() });
    }

    fn controller(&self, cluster: Arc<dyn Cluster>) -> StatusController {
        let generated = GeneratedBoard::default();
        StatusController::new(
            cluster,
            self.policies.clone(),
            self.board.clone(),
            generated,
            self.settings.clone(),
            None,
        )
    }

    fn look(&self) -> RoundResult {
        self.controller(Arc::clone(&self.cluster)).look(&self.term, &mut Memory::default(), now())
    }

    fn ready(&self, name: &str) -> Option<(String, String)> {
        let kind = self.cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
        let stored = self.cluster.get(&kind, None, name).unwrap();
        let condition = stored.at(&["status", "conditions"]).and_then(Value::as_array)?.first()?.clone();
        let text = |key| condition.str_at(&[key]).unwrap().to_owned();
        Some((text("status"), text("message")))
    }

    /// Waits until the store has seen what was written.
    fn catch_up(&self) {
        let kind = self.cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
        eventually(|| {
            self.policies.snapshot().policies.iter().all(|(key, policy)| {
                let stored = self.cluster.get(&kind, None, &key.name).unwrap();
                stored.str_at(&["metadata", "resourceVersion"]) == Some(policy.resource_version())
            })
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn eventually(what: impl Fn() -> bool) {
    for _ in 0..4000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it never came");
}

fn is_ready(said: Option<(String, String)>) -> bool {
    said.is_some_and(|(status, message)| (status.as_str(), message.as_str()) == ("True", "Ready"))
}

#[test]
fn a_policy_is_ready_when_the_api_server_asks_for_it_and_not_before() {
    let world = World::new([policy("p", SOUND)]);
    assert_eq!(world.look(), RoundResult { written: 0, failed: 0 });
    assert_eq!(world.ready("p"), None);
    world.register();
    assert_eq!(world.look(), RoundResult { written: 1, failed: 0 });
    assert!(is_ready(world.ready("p")));
    world.catch_up();
    assert_eq!(world.look(), RoundResult { written: 0, failed: 0 }, "nothing has changed");
}

#[test]
fn a_registration_that_fails_makes_new_policies_fail_and_leaves_the_others() {
    let world = World::new([policy("old", SOUND)]);
    world.register();
    world.look();
    world.catch_up();
    let kind = world.cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
    world.cluster.create(&kind, policy("new", SOUND), &WriteOptions::default()).unwrap();
    eventually(|| world.policies.snapshot().policies.len() == 2);
    world.board.publish(Registration { failure: Some("no answer".into()), ..(*world.board.get()).clone() });
    world.look();
    assert!(is_ready(world.ready("old")));
    let (status, message) = world.ready("new").unwrap();
    assert_eq!(status, "False");
    assert!(message.contains("no answer"), "{message}");
    world.catch_up();
    world.register();
    world.look();
    assert!(is_ready(world.ready("new")));
}

#[test]
fn a_refused_policy_says_why_and_where() {
    let faulty = "{name: a, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {patern: {}}}";
    let world = World::new([policy("p", &format!("{faulty}, {SOUND}"))]);
    world.register();
    world.look();
    let (status, message) = world.ready("p").unwrap();
    assert_eq!(status, "False");
    assert!(message.contains("spec.rules[0].validate") && message.contains("`patern`"), "{message}");
    assert!(world.policies.snapshot().policies.values().all(|policy| policy.program.is_some()), "the rest works");
}

#[test]
fn a_policy_whose_background_work_fails_stays_ready_and_says_so_until_that_is_over() {
    let world = World::new([policy("p", SOUND)]);
    world.register();
    world.look();
    world.catch_up();
    let kind = world.cluster.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
    let says = |status: &str, generation: i64| {
        let mut stored = world.cluster.get(&kind, None, "p").unwrap();
        let condition = Value::from([
            ("type", Value::from("BackgroundConverged")),
            ("status", status.into()),
            ("message", "3 background tasks fail".into()),
            ("observedGeneration", generation.into()),
        ]);
        let status = stored.as_object_mut().unwrap().get_mut("status").and_then(Value::as_object_mut).unwrap();
        let ready = status.get("conditions").and_then(Value::as_array).unwrap()[0].clone();
        status.insert("conditions", Value::array(vec![ready, condition]));
        status.insert("rulesSince", Value::array(vec![Value::from("noted by another controller")]));
        world.cluster.update_status(&kind, stored, &WriteOptions::default()).unwrap();
        world.catch_up();
        world.look();
        world.catch_up();
    };
    let generation = world.cluster.get(&kind, None, "p").unwrap().at(&["metadata", "generation"]).cloned().unwrap();
    let generation = generation.as_i64().unwrap();
    says("False", generation);
    assert_eq!(world.ready("p"), Some(("True".to_owned(), "Ready, but 3 background tasks fail".to_owned())));
    let stored = world.cluster.get(&kind, None, "p").unwrap();
    assert!(stored.at(&["status", "rulesSince"]).is_some(), "what others note stays");
    says("True", generation);
    assert!(is_ready(world.ready("p")));
    says("False", generation - 1);
    assert!(is_ready(world.ready("p")), "it was said of an earlier generation");
}

#[test]
fn policies_that_are_not_asked_are_ready_without_registration() {
    let mut document = policy("p", SOUND);
    let spec = document.as_object_mut().unwrap().get_mut("spec").and_then(Value::as_object_mut).unwrap();
    spec.insert("admission", false);
    let world = World::new([document]);
    world.look();
    assert!(is_ready(world.ready("p")));

    let mut world = World::new([policy("p", SOUND)]);
    world.settings.registered_from = RegisteredFrom::Static;
    world.look();
    assert!(is_ready(world.ready("p")));
}

#[test]
fn a_thousand_statuses_are_written_once_each_by_the_running_controller() {
    let world = World::new((0..1000).map(|i| policy(&format!("p{i}"), SOUND)));
    let view = Arc::new(FaultyCluster::new(Arc::clone(&world.cluster)));
    let controller = Arc::new(world.controller(Arc::clone(&view) as Arc<dyn Cluster>));
    let running = std::thread::spawn({
        let (controller, term) = (Arc::clone(&controller), world.term.clone());
        move || controller.run(&term, &ephor_runtime::metrics::Metrics::default())
    });
    world.register();
    eventually(|| (0..1000).step_by(111).all(|i| is_ready(world.ready(&format!("p{i}")))));
    eventually(|| view.writes().len() >= 1000);
    world.catch_up();
    world.register();
    world.stop.cancel();
    running.join().unwrap();
    assert_eq!(view.writes().len(), 1000);
}

#[test]
fn who_leads_no_more_writes_nothing() {
    let world = World::new([policy("p", SOUND)]);
    world.register();
    world.stop.cancel();
    assert_eq!(world.look().written, 0);
    assert_eq!(world.ready("p"), None);
    assert!(world.policies.snapshot().policies.contains_key(&PolicyId::parse("p")));
}
