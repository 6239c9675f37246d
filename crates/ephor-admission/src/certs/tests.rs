//! Certificates through their life, and through deaths of those who make them.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::{Cluster, DeleteOptions, MemoryCluster, WriteOptions};
use ephor_expr::Value;
use ephor_faults::{Death, FaultyCluster};
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::decision::proof::{self, PathToken};
use ephor_runtime::lease::Term;
use ephor_runtime::settings::KeyAlgorithm;
use jiff::Timestamp;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

use super::inspect::{Certificate, certified, verify};
use super::secrets::TlsSecret;
use super::{CertKeeper, CertSettings, CertStore, KeepError, Step};
use crate::registration::{Registration, RegistrationBoard};

fn settings(algorithm: KeyAlgorithm) -> CertSettings {
    CertSettings {
        namespace: "default".into(),
        service: "kyverno-svc".into(),
        ca_secret: "ca".into(),
        pair_secret: "pair".into(),
        algorithm,
        renew_before: Duration::from_hours(15 * 24),
        outside_host: None,
        makes_them: true,
    }
}

fn days(from: Timestamp, days: i64) -> Timestamp {
    from.checked_add(Duration::from_hours(24 * u64::try_from(days).unwrap())).unwrap()
}

/// A cluster, and what the webhook configurations in it carry.
struct World {
    cluster: Arc<dyn Cluster>,
    board: RegistrationBoard,
    settings: CertSettings,
    term: Term,
    now: Timestamp,
}

impl World {
    fn new(settings: CertSettings) -> Self {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let term = Term::unlimited(&CancellationToken::new());
        Self { cluster, board: RegistrationBoard::default(), settings, term, now: Timestamp::now() }
    }

    fn keeper(&self, cluster: Arc<dyn Cluster>) -> CertKeeper {
        let store = CertStore::new(self.settings.clone());
        CertKeeper::new(cluster, self.settings.clone(), &store, self.board.clone())
    }

    fn once(&self) -> Result<Step, KeepError> {
        self.keeper(Arc::clone(&self.cluster)).once(&self.term, self.now)
    }

    /// Steps until there is nothing to do but wait; what was done.
    fn settle(&self) -> Vec<Step> {
        let mut done = Vec::new();
        for _ in 0..5 {
            let step = self.once().unwrap();
            let rests = !matches!(step, Step::RenewCa(_) | Step::RenewPair(_));
            done.push(step);
            if rests {
                return done;
            }
        }
        panic!("it never rests: {done:?}");
    }

    fn secret(&self, name: &str) -> Option<TlsSecret> {
        let secrets = self.cluster.resolve("v1", "Secret").unwrap();
        self.cluster.get(&secrets, Some("default"), name).ok().map(|secret| TlsSecret::of(&secret))
    }

    fn chain(&self, name: &str) -> Vec<Certificate> {
        Certificate::all(&self.secret(name).unwrap().certificates).unwrap()
    }

    /// What the webhook controller does.
    fn announce(&self) {
        let ca_bundle = self.secret("ca").map_or_else(Vec::new, |secret| secret.certificates).into();
        self.board.publish(Registration { ca_bundle, ..Registration::default() });
    }

    /// Whether the API server, by the configurations as they are, takes what would be served.
    fn works(&self) -> Result<(), String> {
        let bundle = Certificate::all(&self.board.get().ca_bundle)?;
        let pair = self.secret("pair").ok_or("nothing is served")?;
        let chain = Certificate::all(&pair.certificates)?;
        certified(&chain, &pair.key)?;
        verify(&chain, &bundle, &self.settings.called_name(), self.now)
    }
}

#[test]
fn every_algorithm_gives_certificates_that_callers_take() {
    for algorithm in [KeyAlgorithm::Rsa, KeyAlgorithm::Ecdsa, KeyAlgorithm::Ed25519] {
        let world = World::new(CertSettings { outside_host: Some("127.0.0.1".into()), ..settings(algorithm) });
        let done = world.settle();
        assert!(
            matches!(&done[..], [Step::RenewCa("there is none"), Step::RenewPair("there is none"), Step::Rest(_)]),
            "{done:?}"
        );
        for secret in ["ca", "pair"] {
            let stored = world.secret(secret).unwrap();
            assert!(stored.managed);
            assert!(stored.key.starts_with(b"-----BEGIN PRIVATE KEY-----"), "PKCS #8");
            assert_eq!(world.chain(secret)[0].algorithm, Some(algorithm));
        }
        world.announce();
        let (bundle, chain) = (world.chain("ca"), world.chain("pair"));
        for name in ["kyverno-svc.default.svc", "kyverno-svc.default", "kyverno-svc", "127.0.0.1"] {
            verify(&chain, &bundle, name, world.now).unwrap_or_else(|why| panic!("{algorithm:?} {name}: {why}"));
        }
        assert!(verify(&chain, &bundle, "other", world.now).is_err());
        assert!(chain[0].holds(world.now, Duration::from_hours(149 * 24)));
        assert!(!chain[0].holds(world.now, Duration::from_hours(151 * 24)));
        assert!(bundle[0].holds(world.now, Duration::from_hours(364 * 24)));
        assert_eq!(world.settle().len(), 1, "nothing more to do");
    }
}

#[test]
fn certificates_are_renewed_before_they_end_without_a_moment_of_distrust() {
    let mut world = World::new(settings(KeyAlgorithm::Ecdsa));
    let begun = world.now;
    world.settle();
    world.announce();
    let (mut renewed_cas, mut renewed_pairs) = (0, 0);
    // Two years, day by day: the keeper does one step a day, the configurations follow a day later.
    for day in 1..730 {
        world.now = days(begun, day);
        match world.once().unwrap() {
            Step::RenewCa(why) => {
                assert_eq!(why, "it ends soon");
                renewed_cas += 1;
            }
            Step::RenewPair(_) => renewed_pairs += 1,
            Step::Rest(_) | Step::Announce => {}
            Step::Blocked(why) => panic!("{why}"),
        }
        world.works().unwrap_or_else(|why| panic!("day {day}: {why}"));
        if day % 2 == 0 {
            world.announce();
            world.works().unwrap_or_else(|why| panic!("day {day}, announced: {why}"));
        }
    }
    assert_eq!(renewed_cas, 2, "a year each, fifteen days before the end");
    assert!(renewed_pairs >= 4, "{renewed_pairs}");
    assert!(world.chain("ca").len() <= 2, "what has ended is let go");
}

#[test]
fn a_pair_by_a_new_ca_waits_until_that_ca_is_announced() {
    let mut world = World::new(settings(KeyAlgorithm::Ecdsa));
    world.settle();
    world.announce();
    let before = world.chain("pair");
    world.settings.algorithm = KeyAlgorithm::Ed25519;
    assert_eq!(world.once().unwrap(), Step::RenewCa("another algorithm is asked for"));
    assert_eq!(world.once().unwrap(), Step::Announce);
    assert_eq!(world.chain("pair"), before);
    world.works().unwrap();
    world.announce();
    world.works().unwrap();
    assert_eq!(world.once().unwrap(), Step::RenewPair("another algorithm is asked for"));
    world.works().unwrap();
}

#[test]
fn a_leader_that_does_not_know_yet_what_is_announced_waits() {
    let mut world = World::new(settings(KeyAlgorithm::Ecdsa));
    world.settle();
    world.announce();
    // The leader dies between the new CA and its announcement; the next one starts with an empty board.
    world.settings.algorithm = KeyAlgorithm::Ed25519;
    assert!(matches!(world.once().unwrap(), Step::RenewCa(_)));
    world.board.publish(Registration::default());
    assert_eq!(world.once().unwrap(), Step::Announce);
}

#[test]
fn after_the_ca_has_ended_everything_is_made_anew_at_once() {
    let mut world = World::new(settings(KeyAlgorithm::Ecdsa));
    world.settle();
    world.announce();
    world.now = days(world.now, 400);
    world.works().unwrap_err();
    let done = world.settle();
    assert!(matches!(&done[..], [Step::RenewCa("it has ended"), Step::RenewPair(_), Step::Rest(_)]), "{done:?}");
    assert_eq!(world.chain("ca").len(), 1, "what has ended is not carried on");
    world.announce();
    world.works().unwrap();
}

#[test]
fn death_at_any_write_leaves_what_the_next_leader_goes_on_from() {
    for write in 0..3 {
        for death in [Death::Before(write), Death::After(write)] {
            let mut world = World::new(settings(KeyAlgorithm::Ecdsa));
            world.settle();
            world.announce();
            // The CA is due, and so is the pair.
            world.now = days(world.now, 360);
            let mortal = Arc::new(FaultyCluster::dying(Arc::clone(&world.cluster), death));
            let keeper = world.keeper(Arc::clone(&mortal) as Arc<dyn Cluster>);
            let mut announced_after = 0;
            while keeper.once(&world.term, world.now).is_ok_and(|step| !matches!(step, Step::Rest(_))) {
                announced_after += 1;
                if announced_after % 2 == 0 {
                    world.announce();
                }
            }
            let done = world.settle();
            assert!(!matches!(done.last(), Some(Step::Blocked(_))), "{death:?}: {done:?}");
            world.announce();
            world.settle();
            world.works().unwrap_or_else(|why| panic!("{death:?}: {why}"));
            let (bundle, chain) = (world.chain("ca"), world.chain("pair"));
            verify(&chain, &bundle[..1], &world.settings.called_name(), world.now)
                .unwrap_or_else(|why| panic!("{death:?}: not by the present CA: {why}"));
        }
    }
}

#[test]
fn of_two_leaders_that_contend_one_wins_each_write_and_both_agree() {
    let world = World::new(settings(KeyAlgorithm::Ecdsa));
    // Whenever the first writes, the second has just done the same.
    let second = Arc::new(world.keeper(Arc::clone(&world.cluster)));
    let (term, now) = (world.term.clone(), world.now);
    let first = FaultyCluster::new(Arc::clone(&world.cluster)).before_writes(move |_| {
        second.once(&term, now).unwrap();
        None
    });
    let first = world.keeper(Arc::new(first));
    let mut refused = 0;
    for _ in 0..10 {
        match first.once(&world.term, world.now) {
            Ok(Step::Rest(_)) => break,
            Ok(step) => panic!("a write got through over another: {step:?}"),
            Err(KeepError::Cluster(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(refused, 2, "the CA and the pair");
    world.announce();
    world.works().unwrap();
}

#[test]
fn who_leads_no_more_writes_nothing() {
    let world = World::new(settings(KeyAlgorithm::Ecdsa));
    world.term.token().cancel();
    assert!(matches!(world.once(), Err(KeepError::Lost(_))));
    assert_eq!(world.secret("ca"), None);
}

#[test]
fn secrets_of_others_are_left_alone() {
    let world = World::new(settings(KeyAlgorithm::Ecdsa));
    let secrets = world.cluster.resolve("v1", "Secret").unwrap();
    let text = r#"{"metadata":{"name":"ca","namespace":"default"},"data":{"tls.crt":"bm9uZQ==","tls.key":""}}"#;
    world.cluster.create(&secrets, Value::from_json(text).unwrap(), &WriteOptions::default()).unwrap();
    assert!(matches!(world.once().unwrap(), Step::Blocked(why) if why.contains("`ca`")));
    assert_eq!(world.secret("ca").unwrap().certificates, b"none");
}

#[test]
fn a_replica_serves_what_is_stored_from_the_next_handshake_on() {
    let mut world = World::new(settings(KeyAlgorithm::Ecdsa));
    let stop = CancellationToken::new();
    let store = CertStore::new(world.settings.clone());
    assert!(store.ready(world.now).is_err());
    assert!(store.ca_bundle().is_empty());
    assert!(store.follow(&world.cluster, &stop).wait_synced(Duration::from_secs(30)));
    world.settle();
    eventually(|| store.ready(world.now).is_ok());
    let first = handshake(&store).unwrap();

    world.announce();
    world.settings.algorithm = KeyAlgorithm::Ed25519;
    world.once().unwrap();
    world.announce();
    world.settle();
    eventually(|| handshake(&store).is_ok_and(|served| served != first));
    stop.cancel();
}

#[test]
fn a_secret_that_turned_bad_does_not_take_away_what_worked() {
    let world = World::new(settings(KeyAlgorithm::Ecdsa));
    let stop = CancellationToken::new();
    let store = CertStore::new(world.settings.clone());
    store.follow(&world.cluster, &stop).wait_synced(Duration::from_secs(30));
    world.settle();
    eventually(|| store.ready(world.now).is_ok());
    let first = handshake(&store).unwrap();
    let secrets = world.cluster.resolve("v1", "Secret").unwrap();
    let mut secret = world.cluster.get(&secrets, Some("default"), "pair").unwrap();
    secret.as_object_mut().unwrap().insert("data", Value::from([("tls.crt", Value::from("eA=="))]));
    world.cluster.update(&secrets, secret, &WriteOptions::default()).unwrap();
    eventually(|| store.ready(world.now).is_err());
    // Certificates that still verify for callers go on being served.
    let bundle = store.ca_bundle();
    assert_eq!(connect(&store, &bundle).unwrap(), first);
    stop.cancel();
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

/// The certificate that a caller is shown who trusts what the store says.
fn handshake(store: &CertStore) -> Result<Vec<u8>, String> {
    connect(store, &store.ca_bundle())
}

fn connect(store: &CertStore, bundle: &[u8]) -> Result<Vec<u8>, String> {
    let mut roots = RootCertStore::empty();
    for ca in Certificate::all(bundle)? {
        roots.add(ca.der).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("kyverno-svc.default.svc").map_err(|error| error.to_string())?;
    let mut client = ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    let config = store.server_config(None).map_err(|error| error.to_string())?;
    let mut server = ServerConnection::new(Arc::new(config)).map_err(|error| error.to_string())?;
    for _ in 0..10 {
        for to_server in [true, false] {
            let mut wire = Vec::new();
            if to_server {
                client.write_tls(&mut wire).map_err(|error| error.to_string())?;
                server.read_tls(&mut wire.as_slice()).map_err(|error| error.to_string())?;
                server.process_new_packets().map_err(|error| error.to_string())?;
            } else {
                server.write_tls(&mut wire).map_err(|error| error.to_string())?;
                client.read_tls(&mut wire.as_slice()).map_err(|error| error.to_string())?;
                client.process_new_packets().map_err(|error| error.to_string())?;
            }
        }
        if !client.is_handshaking() && !server.is_handshaking() {
            client.writer().write_all(b"x").map_err(|error| error.to_string())?;
            let mut wire = Vec::new();
            client.write_tls(&mut wire).map_err(|error| error.to_string())?;
            server.read_tls(&mut wire.as_slice()).map_err(|error| error.to_string())?;
            server.process_new_packets().map_err(|error| error.to_string())?;
            let mut read = [0];
            server.reader().read_exact(&mut read).map_err(|error| error.to_string())?;
            let shown = client.peer_certificates().and_then(<[_]>::first).ok_or("no certificate")?;
            return Ok(shown.to_vec());
        }
    }
    Err("no handshake".to_owned())
}

#[test]
fn another_key_makes_another_token_present_and_the_one_before_it_still_proves() {
    let world = World::new(settings(KeyAlgorithm::Ecdsa));
    let store = CertStore::new(world.settings.clone());
    let stop = CancellationToken::new();
    assert!(store.follow(&world.cluster, &stop).wait_synced(Duration::from_secs(30)));
    assert_eq!(store.path_tokens().present(), None, "nothing can be served");
    let secrets = world.cluster.resolve("v1", "Secret").unwrap();
    let mut tokens: Vec<PathToken> = Vec::new();
    for round in 0..2 {
        if round > 0 {
            world.cluster.delete(&secrets, Some("default"), "pair", &DeleteOptions::default()).unwrap();
        }
        world.settle();
        world.announce();
        let token = PathToken::of_key(&world.secret("pair").unwrap().key);
        while store.path_tokens().present().as_ref() != Some(&token) {
            std::thread::sleep(Duration::from_millis(5));
        }
        tokens.push(token);
    }
    stop.cancel();
    assert_ne!(tokens[0], tokens[1]);
    for token in &tokens {
        assert!(store.path_tokens().prove(proof::split(&token.end("/validate")).1.unwrap()));
    }
}
