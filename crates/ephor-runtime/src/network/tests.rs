//! Calls of a server on this machine.

use ephor_engine::fetch::{Fact, Fetch, ServiceAnswer};
use ephor_engine::policy::HttpMethod;
use ephor_expr::Value;
use ephor_testbed::JsonService as Server;

use super::hosts::Reach;
use super::{Limits, Network, ServiceRules};
use crate::facts::Source;

fn network(hosts: &[&str]) -> Network {
    Network::of(hosts.iter().map(|host| host.parse().unwrap()).collect())
}

fn get(url: impl AsRef<str>) -> Fetch {
    Fetch::Service {
        method: HttpMethod::Get,
        url: url.as_ref().into(),
        headers: Vec::new(),
        body: None,
        ca_bundle: None,
        answer: ServiceAnswer::Document,
    }
}

fn failure(fact: Option<Fact>) -> String {
    match fact {
        Some(Fact::Failed(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_allowed_host_is_called() {
    let server = Server::start();
    let teams = Value::from_json(r#"{"teams":["core"]}"#).unwrap();
    for host in ["127.0.0.1".to_owned(), format!("127.0.0.1:{}", server.port)] {
        let answer = network(&[&host]).answer(&get(server.url("/teams")));
        assert_eq!(answer, Some(Fact::Found(teams.clone())), "{host}");
    }
    let by_name = get(format!("http://LOCALHOST:{}/teams", server.port));
    assert_eq!(network(&["localhost"]).answer(&by_name), Some(Fact::Found(teams)));
}

#[test]
fn a_call_sends_what_the_policy_says_and_nothing_secret() {
    let server = Server::start();
    let fetch = Fetch::Service {
        method: HttpMethod::Post,
        url: server.url("/teams").into(),
        headers: vec![("X-Asked-By".into(), "ephor".into())],
        body: Some(r#"{"name":"a"}"#.into()),
        ca_bundle: None,
        answer: ServiceAnswer::Document,
    };
    assert!(matches!(network(&["127.0.0.1"]).answer(&fetch), Some(Fact::Found(_))));
    let requests = server.requests();
    let [(head, body)] = requests.as_slice() else { panic!("{requests:?}") };
    assert!(head.starts_with("post /teams http/1.1\r\n"), "{head}");
    assert!(head.contains("x-asked-by: ephor\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert!(!head.contains("authorization") && !head.contains("cookie"), "{head}");
    assert_eq!(body, r#"{"name":"a"}"#);
}

#[test]
fn other_hosts_ports_and_schemes_are_not_called() {
    let server = Server::start();
    let other_port = format!("127.0.0.1:{}", server.port ^ 1);
    for hosts in [&["example.com"], &["localhost"], &[other_port.as_str()]] {
        assert_eq!(network(hosts).answer(&get(server.url("/teams"))), None, "{hosts:?}");
    }
    let user = format!("http://example.com@127.0.0.1:{}/teams", server.port);
    assert_eq!(network(&["example.com"]).answer(&get(user)), None);
    assert_eq!(
        failure(network(&["a.test"]).answer(&get("ftp://a.test/x"))),
        "`ftp://a.test/x`: only http and https are spoken"
    );
    assert_eq!(network(&["a.test"]).answer(&get("ftp://b.test/x")), None);
    assert_eq!(server.requests(), []);
}

#[test]
fn redirects_are_not_followed() {
    let server = Server::start();
    let reason = failure(network(&["127.0.0.1"]).answer(&get(server.url("/moved"))));
    assert!(reason.ends_with("status 302: redirects are not followed"), "{reason}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn answers_end_at_two_mebibytes() {
    let server = Server::start();
    let network = network(&["127.0.0.1"]);
    assert!(matches!(network.answer(&get(server.url("/full"))), Some(Fact::Found(_))));
    let reason = failure(network.answer(&get(server.url("/long"))));
    assert!(reason.ends_with("the answer has more than 2 MiB"), "{reason}");
}

#[test]
fn failures_say_what_the_service_answered() {
    let server = Server::start();
    let network = network(&["127.0.0.1"]);
    let reason = failure(network.answer(&get(server.url("/none"))));
    assert!(reason.ends_with("/none`: status 404"), "{reason}");
    let reason = failure(network.answer(&get(server.url("/words"))));
    assert!(reason.contains("the answer is not JSON"), "{reason}");
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_called() {
    let reach = |hosts: &[&str]| Reach::Named(hosts.iter().map(|host| host.parse().unwrap()).collect());
    let addresses = ["192.0.2.1:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap()];
    let reason = reach(&["example.com"]).check("example.com", &addresses).unwrap_err().to_string();
    assert!(reason.contains("`example.com` leads to 127.0.0.1"), "{reason}");
    assert!(reason.contains("`--allow-net 127.0.0.1`"), "{reason}");
    reach(&["example.com", "127.0.0.1"]).check("example.com", &addresses).unwrap();
}

#[test]
fn an_address_is_called_in_the_form_of_the_url_if_it_is_named_in_any() {
    let server = Server::start();
    let url = format!("http://0x7f.1:{}/teams", server.port);
    assert!(matches!(network(&["2130706433"]).answer(&get(&url)), Some(Fact::Found(_))));
    assert_eq!(network(&["127.0.0.2"]).answer(&get(&url)), None);
}

#[test]
fn a_bundle_without_certificates_is_a_failure() {
    let fetch = Fetch::Service {
        method: HttpMethod::Get,
        url: "https://127.0.0.1:1/".into(),
        headers: Vec::new(),
        body: None,
        ca_bundle: Some("none".into()),
        answer: ServiceAnswer::Document,
    };
    let reason = failure(network(&["127.0.0.1"]).answer(&fetch));
    assert!(reason.ends_with("the CA bundle holds no certificate in PEM"), "{reason}");
}

#[test]
fn names_of_allowed_hosts_are_looked_up() {
    let look_up = |name: &str| network(&["localhost:80"]).answer(&Fetch::Host { name: name.into() });
    let Some(Fact::Found(Value::Array(addresses))) = look_up("localhost") else { panic!() };
    assert!(addresses.iter().any(|address| matches!(address.as_str(), Some("127.0.0.1" | "::1"))), "{addresses:?}");
    assert_eq!(look_up("example.com"), None);
}

#[test]
fn a_role_in_a_cluster_calls_services_but_not_its_own_machine() {
    let server = Server::start();
    let network = Network::of_cluster(ServiceRules::default(), Limits::default());
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let reason = failure(network.answer(&get(format!("http://{host}:{}/teams", server.port))));
        assert!(reason.contains("which policies may not call"), "{reason}");
    }
    let reason = failure(network.answer(&get("http://169.254.169.254/latest")));
    assert!(reason.contains("169.254.169.254, which policies may not call"), "{reason}");
    assert_eq!(server.requests(), []);
}

#[test]
fn what_the_settings_forbid_is_not_asked_for() {
    let rules = |blocked: &str, allowed: &str| {
        let list = |text: &str| text.split(',').filter(|text| !text.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        ServiceRules::new(&list(blocked), &list(allowed)).unwrap()
    };
    for (rules, url) in
        [(rules("teams.test", ""), "http://teams.test/a"), (rules("", "http://teams.test/b"), "http://teams.test/a")]
    {
        let fact = Network::of_cluster(rules, Limits::default()).answer(&get(url));
        assert!(matches!(&fact, Some(Fact::Unavailable(why)) if why.contains("httpBlocklist")), "{fact:?}");
    }
    let reason =
        failure(Network::of_cluster(rules("192.0.2.0/24", ""), Limits::default()).answer(&get("http://192.0.2.1/")));
    assert!(reason.contains("192.0.2.1, which policies may not call"), "{reason}");
}
