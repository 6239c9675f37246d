//! The thread that registers: what it writes, what it repairs, and what a death between two writes leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::error::Cause;
use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, MemoryCluster, Resource, WriteOptions};
use ephor_expr::{Map, Value};
use ephor_faults::{Death, FaultyCluster};
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::decision::PathToken;
use ephor_runtime::lease::Term;
use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind, StoredPolicy};
use ephor_runtime::settings::KeyAlgorithm;
use ephor_runtime::watcher::StoreEvent;
use jiff::Timestamp;

use super::super::controller::{Memory, ReconcileError};
use super::super::write::PutError;
use super::super::{RegisteredFrom, WebhookController, WebhookSettings, WebhookSources, break_glass};
use super::{policy, rules, validates};
use crate::certs::{CertKeeper, CertSettings, CertStore};
use crate::generated::GeneratedBoard;
use crate::registration::RegistrationBoard;

const VALIDATING: &str = "kyverno-resource-validating-webhook-cfg";
const MUTATING: &str = "kyverno-resource-mutating-webhook-cfg";

/// A cluster with certificates, and everything that a controller follows.
struct World {
    cluster: Arc<dyn Cluster>,
    policies: PolicyStore,
    config: ConfigStore,
    certs: CertStore,
    board: RegistrationBoard,
    term: Term,
    stop: CancellationToken,
}

fn cert_settings() -> CertSettings {
    CertSettings {
        namespace: "default".into(),
        service: "kyverno-svc".into(),
        ca_secret: "ca".into(),
        pair_secret: "pair".into(),
        algorithm: KeyAlgorithm::Ed25519,
        renew_before: Duration::from_hours(1),
        outside_host: None,
        makes_them: true,
    }
}

impl World {
    fn new(documents: &[Value]) -> Self {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let stop = CancellationToken::new();
        let term = Term::unlimited(&stop);
        let settings = cert_settings();
        let certs = CertStore::new(settings.clone());
        let board = RegistrationBoard::default();
        let keeper = CertKeeper::new(Arc::clone(&cluster), settings, &certs, board.clone());
        keeper.once(&term, Timestamp::now()).unwrap();
        keeper.once(&term, Timestamp::now()).unwrap();
        assert!(certs.follow(&cluster, &stop).wait_synced(Duration::from_secs(30)));
        let policies = PolicyStore::new(ExceptionScope::Disabled);
        let world =
            Self { cluster, policies, config: ConfigStore::new("kyverno", "kyverno"), certs, board, term, stop };
        for document in documents {
            world.set(document);
        }
        world
    }

    fn set(&self, document: &Value) {
        self.policies.apply(StoredKind::of(document).unwrap(), StoreEvent::Apply(document.clone()));
    }

    fn controller(&self, cluster: Arc<dyn Cluster>) -> WebhookController {
        let sources = WebhookSources {
            cluster,
            policies: self.policies.clone(),
            config: self.config.clone(),
            certs: self.certs.clone(),
        };
        WebhookController::new(sources, WebhookSettings::default(), self.board.clone())
    }

    fn reconcile(&self, cluster: Arc<dyn Cluster>) -> Result<Duration, ReconcileError> {
        self.controller(cluster).reconcile(&self.term, &mut Memory::default(), Timestamp::now())
    }

    fn settle(&self) {
        self.reconcile(Arc::clone(&self.cluster)).unwrap();
    }

    fn resource(&self, name: &str) -> Resource {
        let kind =
            if name.contains("mutating") { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
        self.cluster.resolve("admissionregistration.k8s.io/v1", kind).unwrap()
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.cluster.get(&self.resource(name), None, name).ok()
    }

    fn webhooks(&self, name: &str) -> Vec<Value> {
        self.get(name).unwrap().get("webhooks").and_then(Value::as_array).unwrap().to_vec()
    }

    /// All configurations, without what the cluster adds.
    fn stored(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            let resource = self.cluster.resolve("admissionregistration.k8s.io/v1", kind).unwrap();
            for mut object in self.cluster.list(&resource, &ephor_cluster::ListQuery::all()).unwrap().items {
                let metadata = object.as_object_mut().unwrap().get_mut("metadata").unwrap().as_object_mut().unwrap();
                metadata.retain(|key, _| matches!(key.as_str(), "name" | "labels" | "annotations"));
                found.push(object);
            }
        }
        found
    }

    fn edit(&self, name: &str, change: impl Fn(&mut Map)) {
        let mut object = self.get(name).unwrap();
        change(object.as_object_mut().unwrap());
        self.cluster.update(&self.resource(name), object, &WriteOptions::default()).unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn secrets() -> Value {
    policy("cpol:p", "", &[&validates("[Secret]")])
}

fn eventually(what: impl Fn() -> bool) {
    for _ in 0..2000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it never came");
}

#[test]
fn what_is_as_it_must_be_is_not_written_again() {
    let world = World::new(&[secrets()]);
    let view = Arc::new(FaultyCluster::new(Arc::clone(&world.cluster)));
    world.reconcile(Arc::clone(&view) as Arc<dyn Cluster>).unwrap();
    let first = view.writes().len();
    assert_eq!(first, world.stored().len());
    world.reconcile(Arc::clone(&view) as Arc<dyn Cluster>).unwrap();
    assert_eq!(view.writes().len(), first);
    let registration = world.board.get();
    assert_eq!(registration.ca_bundle, world.certs.ca_bundle());
    let snapshot = world.policies.snapshot();
    let stored = snapshot.policies.values().next().unwrap();
    assert!(registration.of(stored).is_some_and(|registered| registered.refusal.is_none()));
    // The same policy after a change is not yet registered.
    assert!(registration.of(&StoredPolicy::new(secrets())).is_none());
}

#[test]
fn the_running_controller_follows_policies_kinds_and_foreign_hands() {
    let world = World::new(&[]);
    let controller = Arc::new(world.controller(Arc::clone(&world.cluster)));
    let running = std::thread::spawn({
        let (controller, term) = (Arc::clone(&controller), world.term.clone());
        move || controller.run(&term, &ephor_runtime::metrics::Metrics::default())
    });
    eventually(|| world.get(VALIDATING).is_some() && world.get(MUTATING).is_some());
    assert!(world.webhooks(VALIDATING).is_empty(), "the configurations are there without policies too");

    world.set(&policy("cpol:p", "", &[&validates("[Secret, Widget]")]));
    let registered = || world.webhooks(VALIDATING).iter().flat_map(rules).collect::<Vec<_>>();
    eventually(|| registered() == ["/v1 Namespaced: secrets: CONNECT,CREATE,DELETE,UPDATE"]);

    // A kind that comes later is registered when it comes.
    let crds = world.cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let crd = r#"{"metadata":{"name":"widgets.x.io"},"spec":{"group":"x.io","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},"versions":[{"name":"v1","served":true,"storage":true}]}}"#;
    world.cluster.create(&crds, Value::from_json(crd).unwrap(), &WriteOptions::default()).unwrap();
    eventually(|| registered().iter().any(|rule| rule.starts_with("x.io/v1 Namespaced: widgets")));

    // Deleted configurations come back, edited ones become what they were.
    let before = world.stored();
    world.cluster.delete(&world.resource(VALIDATING), None, VALIDATING, &DeleteOptions::default()).unwrap();
    eventually(|| world.stored() == before);
    world.edit(MUTATING, |object| {
        object.insert("webhooks", Value::array(Vec::new()));
        object.get_mut("metadata").and_then(Value::as_object_mut).unwrap().insert("labels", Value::object(Map::new()));
    });
    eventually(|| world.stored() == before);

    world.policies.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Reset(Vec::new()));
    eventually(|| world.webhooks(VALIDATING).is_empty());
    world.stop.cancel();
    running.join().unwrap();
}

#[test]
fn death_at_any_write_leaves_what_the_next_leader_completes() {
    let whole = World::new(&[secrets()]);
    whole.settle();
    let count = whole.stored().len();
    for write in 0..count {
        for death in [Death::Before(write), Death::After(write)] {
            let world = World::new(&[secrets()]);
            let mortal = Arc::new(FaultyCluster::dying(Arc::clone(&world.cluster), death));
            world.reconcile(Arc::clone(&mortal) as Arc<dyn Cluster>).unwrap_err();
            assert!(mortal.is_dead());
            assert!(world.board.get().policies.is_empty(), "{death:?}: nothing counts as registered");
            let bundle = base64_of(&world.certs.ca_bundle());
            for configuration in world.stored() {
                for webhook in configuration.get("webhooks").and_then(Value::as_array).unwrap() {
                    assert_eq!(webhook.str_at(&["clientConfig", "caBundle"]), Some(&*bundle));
                    let about_all = webhook.str_at(&["name"]).unwrap().contains("validate.kyverno.svc-");
                    let expressions = webhook.at(&["namespaceSelector", "matchExpressions"]).and_then(Value::as_array);
                    assert!(!about_all || !expressions.unwrap_or_default().is_empty(), "{death:?}: own namespace");
                }
            }
            world.settle();
            assert_eq!(world.stored().len(), count, "{death:?}");
            assert_eq!(rules(&world.webhooks(VALIDATING)[0]).len(), 1);
        }
    }
}

fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn a_writer_that_comes_between_is_written_over_not_lost() {
    let world = World::new(&[secrets()]);
    world.settle();
    world.set(&policy("cpol:q", "", &[&validates("[ConfigMap]")]));
    // Somebody touches the configuration after it was read and before it is written, once.
    let (cluster, mut left) = (Arc::clone(&world.cluster), 1);
    let resource = world.resource(VALIDATING);
    let view = FaultyCluster::new(Arc::clone(&world.cluster)).before_writes(move |write| {
        if write.name == VALIDATING && left > 0 {
            left -= 1;
            let mut live = cluster.get(&resource, None, VALIDATING).unwrap();
            let metadata = live.as_object_mut().unwrap().get_mut("metadata").and_then(Value::as_object_mut).unwrap();
            metadata.insert("annotations", Value::from([("x", Value::from("y"))]));
            cluster.update(&resource, live, &WriteOptions::default()).unwrap();
        }
        None
    });
    world.reconcile(Arc::new(view)).unwrap();
    let live = world.get(VALIDATING).unwrap();
    assert_eq!(live.at(&["metadata", "annotations", "x"]), None);
    assert_eq!(rules(&live.get("webhooks").and_then(Value::as_array).unwrap()[0]).len(), 1);
    assert!(rules(&world.webhooks(VALIDATING)[0])[0].contains("configmaps,secrets"));
}

#[test]
fn a_policy_whose_conditions_the_api_server_refuses_keeps_no_other_out() {
    let conditions = "webhookConfiguration: {matchConditions: [{name: a, expression: 'true'}]}";
    let world = World::new(&[secrets(), policy("cpol:bad", conditions, &[&validates("[Pod]")])]);
    let resource = world.resource(VALIDATING);
    // Ephor compiles the expression, and the API server, of another version, does not.
    let mut left = 1;
    let view = FaultyCluster::new(Arc::clone(&world.cluster)).before_writes(move |write| {
        if write.name != VALIDATING || left == 0 {
            return None;
        }
        left -= 1;
        let cause = Cause::invalid("webhooks[1].matchConditions[0].expression", "nonsense", "undeclared reference");
        Some(ephor_cluster::ClusterError::invalid(&resource, VALIDATING, &[cause]))
    });
    world.reconcile(Arc::new(view)).unwrap();
    assert_eq!(world.webhooks(VALIDATING).len(), 1, "the others are registered");
    let snapshot = world.policies.snapshot();
    let refusal = |name: &str| {
        let (_, stored) = snapshot.policies.iter().find(|(key, _)| key.name == name).unwrap();
        world.board.get().of(stored).unwrap().refusal.clone()
    };
    assert_eq!(refusal("p"), None);
    assert!(refusal("bad").unwrap().contains("undeclared reference"));
}

#[test]
fn one_namespace_cannot_fill_the_configurations() {
    let spec = "webhookConfiguration: {matchConditions: [{name: a, expression: 'true'}]}";
    let mut documents: Vec<Value> =
        (0..100).map(|i| policy(&format!("pol/team-a:p{i:03}"), spec, &[&validates("[Secret]")])).collect();
    documents.push(policy("pol/team-b:p", spec, &[&validates("[Secret]")]));
    documents.push(secrets());
    let world = World::new(&documents);
    world.reconcile(Arc::clone(&world.cluster)).unwrap();
    assert_eq!(world.webhooks(VALIDATING).len(), 1 + 16 + 1);
    let snapshot = world.policies.snapshot();
    let refusals: Vec<_> =
        snapshot.policies.values().filter_map(|p| world.board.get().of(p).unwrap().refusal.clone()).collect();
    assert_eq!(refusals.len(), 100 - 16);
    assert_eq!(refusals[0], "only the 16 oldest Policies with `matchConditions` of a namespace have webhooks");
}

#[test]
fn break_glass_opens_the_resource_webhooks_and_closes_by_itself() {
    let world = World::new(&[secrets()]);
    world.settle();
    let closed = world.stored();
    let now = Timestamp::now();
    let until = now.checked_add(Duration::from_mins(30)).unwrap();
    assert_eq!(break_glass::open(&*world.cluster, until).unwrap(), 2);
    let failure = |name: &str| world.webhooks(name)[0].str_at(&["failurePolicy"]).unwrap().to_owned();
    assert_eq!(failure(VALIDATING), "Ignore");
    assert_eq!(failure("kyverno-policy-validating-webhook-cfg"), "Fail");
    // The leader leaves it so, also when policies change or a configuration is deleted meanwhile.
    world.set(&policy("cpol:q", "", &[&validates("[ConfigMap]")]));
    world.cluster.delete(&world.resource(MUTATING), None, MUTATING, &DeleteOptions::default()).unwrap();
    let controller = world.controller(Arc::clone(&world.cluster));
    let rest = controller.reconcile(&world.term, &mut Memory::default(), now).unwrap();
    assert!(rest <= Duration::from_mins(30));
    assert_eq!(failure(VALIDATING), "Ignore");
    assert!(world.get(MUTATING).unwrap().at(&["metadata", "annotations", break_glass::ANNOTATION]).is_some());
    world
        .policies
        .apply(StoredKind::CLUSTER_POLICY, StoreEvent::Delete(policy("cpol:q", "", &[&validates("[ConfigMap]")])));
    let later = until.checked_add(Duration::from_secs(1)).unwrap();
    controller.reconcile(&world.term, &mut Memory::default(), later).unwrap();
    assert_eq!(world.stored(), closed);
}

#[test]
fn glass_that_is_broken_while_the_leader_writes_stays_open() {
    let world = World::new(&[secrets()]);
    world.settle();
    world.set(&policy("cpol:q", "", &[&validates("[ConfigMap]")]));
    let until = Timestamp::now().checked_add(Duration::from_mins(30)).unwrap();
    let inner = Arc::clone(&world.cluster);
    let mut opened = false;
    let view = FaultyCluster::new(Arc::clone(&world.cluster)).before_writes(move |_| {
        if !std::mem::replace(&mut opened, true) {
            assert_eq!(break_glass::open(&*inner, until).unwrap(), 2);
        }
        None
    });
    world.reconcile(Arc::new(view)).unwrap();
    for name in [VALIDATING, MUTATING] {
        assert_eq!(break_glass::deadline(&world.get(name).unwrap(), Timestamp::now()), Some(until), "{name}");
        assert!(world.webhooks(name).iter().all(|hook| hook.str_at(&["failurePolicy"]) == Some("Ignore")), "{name}");
    }
}

#[test]
fn static_configurations_keep_what_users_made_of_them_and_still_follow_the_ca_and_the_glass() {
    let world = World::new(&[]);
    let settings = WebhookSettings { registered_from: RegisteredFrom::Static, ..WebhookSettings::default() };
    let sources = WebhookSources {
        cluster: Arc::clone(&world.cluster),
        policies: world.policies.clone(),
        config: world.config.clone(),
        certs: world.certs.clone(),
    };
    let controller = WebhookController::new(sources, settings, world.board.clone());
    let now = Timestamp::now();
    let reconcile =
        |now: Timestamp| controller.reconcile(&world.term, &mut Memory::default(), now).map(|_| ()).unwrap();
    reconcile(now);
    // One for each failure policy: of `kyverno.io`, and of each kind of `policies.kyverno.io` that validates. Those
    // that generate have one: they fail nothing.
    assert_eq!(world.webhooks(VALIDATING).len(), 8);
    // A user narrows one by hand; somebody else spoils the CA.
    world.edit(VALIDATING, |object| {
        let webhook = object.get_mut("webhooks").and_then(Value::as_array_mut).unwrap()[0].as_object_mut().unwrap();
        webhook.insert("rules", Value::array(Vec::new()));
        let client = webhook.get_mut("clientConfig").and_then(Value::as_object_mut).unwrap();
        client.insert("caBundle", "bm8=");
        let service = client.get_mut("service").and_then(Value::as_object_mut).unwrap();
        service.insert("path", PathToken::of_key(b"before").end("/validate/fail"));
    });
    reconcile(now);
    let path = world.certs.path_tokens().present().unwrap().end("/validate/fail");
    assert_eq!(world.webhooks(VALIDATING)[0].str_at(&["clientConfig", "service", "path"]), Some(&*path));
    let first = || world.webhooks(VALIDATING)[0].clone();
    assert_eq!(first().get("rules"), Some(&Value::array(Vec::new())));
    assert_eq!(first().str_at(&["clientConfig", "caBundle"]), Some(&*base64_of(&world.certs.ca_bundle())));

    let until = now.checked_add(Duration::from_mins(1)).unwrap();
    break_glass::open(&*world.cluster, until).unwrap();
    reconcile(now);
    assert_eq!(first().str_at(&["failurePolicy"]), Some("Ignore"));
    reconcile(until.checked_add(Duration::from_secs(1)).unwrap());
    assert_eq!(first().str_at(&["failurePolicy"]), Some("Fail"));
    assert_eq!(first().get("rules"), Some(&Value::array(Vec::new())));
}

#[test]
fn deadlines_that_nobody_should_set_do_not_count() {
    let now = Timestamp::now();
    let carrying = |text: String| {
        Value::from([(
            "metadata",
            Value::from([("annotations", Value::from([(break_glass::ANNOTATION, Value::from(text))]))]),
        )])
    };
    let after = |hours: u64| now.checked_add(Duration::from_hours(hours)).unwrap().to_string();
    assert!(break_glass::deadline(&carrying(after(1)), now).is_some());
    for text in [after(25), "soon".to_owned(), now.to_string()] {
        assert_eq!(break_glass::deadline(&carrying(text), now), None);
    }
}

#[test]
fn who_leads_no_more_writes_nothing() {
    let world = World::new(&[secrets()]);
    world.stop.cancel();
    let error = world.reconcile(Arc::clone(&world.cluster)).unwrap_err();
    assert!(matches!(error, ReconcileError::Put { error: PutError::Lost(_), .. }));
    assert!(world.stored().is_empty());
}

#[test]
fn two_leaders_that_contend_agree() {
    let world = World::new(&[secrets()]);
    let other = Arc::new(world.controller(Arc::clone(&world.cluster)));
    let term = world.term.clone();
    let view = FaultyCluster::new(Arc::clone(&world.cluster)).before_writes(move |_| {
        other.reconcile(&term, &mut Memory::default(), Timestamp::now()).unwrap();
        None
    });
    world.reconcile(Arc::new(view)).unwrap();
    let both = world.stored();
    world.settle();
    assert_eq!(world.stored(), both);
}

#[test]
fn without_a_serving_key_nothing_is_registered() {
    let mut world = World::new(&[secrets()]);
    let secret = world.cluster.resolve("v1", "Secret").unwrap();
    world.cluster.delete(&secret, Some("default"), "pair", &DeleteOptions::default()).unwrap();
    world.certs = CertStore::new(cert_settings());
    assert!(world.certs.follow(&world.cluster, &world.stop).wait_synced(Duration::from_secs(30)));
    assert!(!world.certs.ca_bundle().is_empty());
    assert!(matches!(world.reconcile(Arc::clone(&world.cluster)), Err(ReconcileError::NoCertificate)));
    assert!(world.stored().is_empty());
}

#[test]
fn without_a_ca_nothing_is_registered() {
    let world = World::new(&[secrets()]);
    let secret = world.cluster.resolve("v1", "Secret").unwrap();
    world.cluster.delete(&secret, Some("default"), "ca", &DeleteOptions::default()).unwrap();
    eventually(|| world.certs.ca_bundle().is_empty());
    assert!(matches!(world.reconcile(Arc::clone(&world.cluster)), Err(ReconcileError::NoCertificate)));
    assert_eq!(world.cluster.get(&secret, Some("default"), "ca").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn nothing_is_registered_before_it_is_known_what_the_api_server_carries_out() {
    let world = World::new(&[secrets()]);
    let generated = GeneratedBoard::default();
    let reconcile = || {
        let controller = world.controller(Arc::clone(&world.cluster)).without(generated.clone());
        controller.reconcile(&world.term, &mut Memory::default(), Timestamp::now())
    };
    generated.forget();
    assert!(matches!(reconcile(), Err(ReconcileError::GeneratedUnknown)));
    assert!(world.stored().is_empty());
    generated.publish(BTreeMap::new());
    reconcile().unwrap();
    assert!(!world.stored().is_empty());
}

#[test]
fn another_key_gives_the_webhooks_another_path() {
    let world = World::new(&[secrets()]);
    let path = || world.webhooks(VALIDATING)[0].str_at(&["clientConfig", "service", "path"]).unwrap().to_owned();
    let wanted = || world.certs.path_tokens().present().unwrap().end("/validate/fail");
    world.settle();
    let before = wanted();
    assert_eq!(path(), before);
    let kind = world.cluster.resolve("v1", "Secret").unwrap();
    world.cluster.delete(&kind, Some("default"), "pair", &DeleteOptions::default()).unwrap();
    let settings = cert_settings();
    let keeper = CertKeeper::new(Arc::clone(&world.cluster), settings, &world.certs, world.board.clone());
    keeper.once(&world.term, Timestamp::now()).unwrap();
    eventually(|| wanted() != before);
    world.settle();
    assert_eq!(path(), wanted());
}

#[test]
fn no_status_shows_a_path_that_the_api_server_repeats() {
    let world = World::new(&[policy("cpol:p", "", &[&validates("[Secret]")])]);
    let token = world.certs.path_tokens().present().unwrap();
    let refused = token.end("https://x/validate/fail");
    let view = FaultyCluster::new(Arc::clone(&world.cluster)).before_writes(move |write| {
        write.name.contains("resource-validating").then(|| ClusterError::denied(500, "InternalError", refused.clone()))
    });
    let controller = world.controller(Arc::new(view));
    let error = controller.reconcile(&world.term, &mut Memory::default(), Timestamp::now()).unwrap_err().to_string();
    assert!(error != token.hide(&error), "{error}");
    assert!(controller.told(&error).contains("/validate/fail/proven/…"), "{error}");
}
