//! Calls of a server on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::policy::HttpMethod;
use ephor_expr::Value;

use super::{Host, Network, Source};

/// A server that answers by path, until the test ends.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// Each request: head, then body.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away early is the client's right.
                let _ = serve(stream, &seen);
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<(String, String)>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    head.make_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().unwrap().push((head, String::from_utf8_lossy(&body).into_owned()));
    let (status, more, answer) = match path.as_str() {
        "/teams" => ("200 OK", "", r#"{"teams":["core"]}"#.to_owned()),
        "/moved" => ("302 Found", "Location: /teams\r\n", String::new()),
        "/words" => ("200 OK", "", "no JSON".to_owned()),
        "/full" => ("200 OK", "", format!("\"{}\"", "x".repeat((2 << 20) - 2))),
        "/long" => ("200 OK", "", format!("\"{}\"", "x".repeat((2 << 20) - 1))),
        _ => ("404 Not Found", "", "{}".to_owned()),
    };
    let length = answer.len();
    write!(reader.get_mut(), "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{answer}")
}

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
fn what_is_not_called_names_the_flag() {
    let unavailable = |fetch: Fetch| {
        let fetch = ephor_engine::gate::allow(fetch, None).unwrap();
        match Host::new().with(network(&["example.com"])).answer(&fetch) {
            Fact::Unavailable(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    let reason = unavailable(get("https://data.test:8443/x"));
    assert!(reason.contains("`--allow-net data.test`"), "{reason}");
    let reason = unavailable(Fetch::Host { name: "data.test".into() });
    assert!(reason.contains("`--allow-net data.test`"), "{reason}");
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
    let server = Server::start();
    // The system's look-up reads this as 127.0.0.1.
    let url = format!("http://127.1:{}/teams", server.port);
    let reason = failure(network(&["127.1"]).answer(&get(&url)));
    assert!(reason.contains("`127.1` leads to 127.0.0.1"), "{reason}");
    assert!(reason.contains("`--allow-net 127.0.0.1`"), "{reason}");
    assert_eq!(server.requests(), []);
    assert!(matches!(network(&["127.1", "127.0.0.1"]).answer(&get(&url)), Some(Fact::Found(_))));
}

#[test]
fn a_bundle_without_certificates_is_a_failure() {
    let fetch = Fetch::Service {
        method: HttpMethod::Get,
        url: "https://127.0.0.1:1/".into(),
        headers: Vec::new(),
        body: None,
        ca_bundle: Some("none".into()),
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
