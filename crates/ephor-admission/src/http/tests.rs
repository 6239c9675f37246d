use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ephor_expr::Value;
use ephor_runtime::decision::path;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::*;
use crate::review::tests::Harness;
use crate::review::{Effort, Handlers};

/// Answers by the name of the object: `slow` waits, `panic` panics, everything else is let in. The path `/panic` panics
/// before anything is read.
#[derive(Default)]
struct ByName {
    at_once: AtomicUsize,
    answered: AtomicUsize,
    /// The path that each review was judged by, and who sent it.
    senders: Mutex<Vec<(String, Sender)>>,
    /// The paths in metrics.
    counted: Mutex<Vec<String>>,
}

/// The token that [`ByName`] accepts.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

impl Reviews for ByName {
    fn serves(&self, path: &str) -> bool {
        assert_ne!(path, "/panic", "as asked");
        path.starts_with("/validate")
    }

    fn proves(&self, token: &str) -> bool {
        token == TOKEN
    }

    fn at_once(&self, path: &str, request: &AdmissionRequest) -> Option<Answer> {
        self.senders.lock().unwrap().push((path.to_owned(), request.sender));
        match request.name.as_str() {
            "panic" => panic!("as asked"),
            "slow" => None,
            "long" => Some(Answer::deny("x".repeat(100_000))),
            _ => {
                self.at_once.fetch_add(1, Ordering::Relaxed);
                Some(Answer::allow())
            }
        }
    }

    fn answer(&self, _: &str, _: &AdmissionRequest, _: Instant) -> Answer {
        std::thread::sleep(Duration::from_millis(50));
        Answer::deny("slowly")
    }

    fn unreadable(&self, _: &str, why: &str) -> Answer {
        Answer::deny(why)
    }

    fn is_ready(&self) -> bool {
        false
    }

    fn answered(&self, _: &str, path: &str, _: Duration) {
        self.counted.lock().unwrap().push(path.to_owned());
        self.answered.fetch_add(1, Ordering::Relaxed);
    }
}

fn limits() -> Limits {
    Limits {
        body: 4096,
        values: 512,
        in_work: 3 * 8192,
        peer: 2 * 8192,
        reading: Duration::from_millis(300),
        idle: Duration::from_secs(1),
        ..Limits::default()
    }
}

fn body(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"CREATE","name":"{name}"}}}}"#
    )
}

async fn post(path: &str, kind: &str, body: impl Into<Body>) -> (StatusCode, String) {
    let request = Request::post(path).header(header::CONTENT_TYPE, kind).body(body.into()).unwrap();
    let response = router(Arc::new(ByName::default()), limits(), Callers::All).oneshot(request).await.unwrap();
    let status = response.status();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&text).into_owned())
}

fn answer(text: &str) -> (bool, String) {
    let review = Value::from_json(text).unwrap();
    let message = review.str_at(&["response", "status", "message"]).unwrap_or_default().to_owned();
    (review.at(&["response", "allowed"]) == Some(&Value::Bool(true)), message)
}

#[tokio::test]
async fn what_is_no_review_has_a_status_of_its_own() {
    let json = "application/json";
    for (path, kind, body, want) in [
        ("/validate/fail", "text/json", body("a"), 415),
        ("/validate/fail", "application/json; charset=utf-8", body("a"), 415),
        ("/validate/fail", json, "no".to_owned(), 417),
        ("/validate/fail", json, "[]".to_owned(), 417),
        ("/validate/fail", json, "{}".to_owned(), 400),
        ("/validate/fail", json, " ".repeat(5000), 413),
        ("/elsewhere", json, body("a"), 404),
        ("/validate/fail", json, body("a"), 200),
    ] {
        assert_eq!(post(path, kind, body.clone()).await.0.as_u16(), want, "{path} {kind} {body:.20}");
    }
}

#[tokio::test]
async fn what_must_wait_is_answered_too() {
    let (status, text) = post("/validate/fail", "application/json", body("slow")).await;
    assert_eq!((status, answer(&text)), (StatusCode::OK, (false, "slowly".to_owned())));
}

#[tokio::test]
async fn a_panic_is_answered_by_the_failure_policy() {
    let (_, text) = post("/validate/fail", "application/json", body("panic")).await;
    assert!(!answer(&text).0);
    let (_, text) = post("/validate/ignore", "application/json", body("panic")).await;
    assert!(answer(&text).0 && text.contains("internal error"), "{text}");
}

#[tokio::test]
async fn a_panic_before_the_review_is_read_is_answered_500_and_counted() {
    let reviews = Arc::new(ByName::default());
    let router = router(Arc::clone(&reviews) as Arc<dyn Reviews>, limits(), Callers::All);
    for (path, status) in [("/panic", 500), ("/validate/fail", 200)] {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let response = router.clone().oneshot(request.body(Body::from(body("a"))).unwrap()).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
    }
    assert_eq!(reviews.answered.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn probes_tell_whether_requests_may_come() {
    for (path, want) in [("/health/liveness", 200), ("/health/readiness", 500)] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router(Arc::new(ByName::default()), limits(), Callers::All).oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), want, "{path}");
    }
}

#[tokio::test]
async fn what_waits_too_long_is_answered_by_the_failure_policy() {
    for (path, allowed) in [("/validate/fail?timeout=10ms", false), ("/validate/ignore?timeout=10ms", true)] {
        let (status, text) = post(path, "application/json", body("slow")).await;
        assert_eq!((status, answer(&text).0), (StatusCode::OK, allowed), "{text}");
        assert!(text.contains("time is over"), "{text}");
    }
}

#[test]
fn the_time_for_an_answer_is_in_the_url() {
    for (query, want) in
        [("timeout=10s", 9500), ("a=b&timeout=1s", 950), ("", 28500), ("timeout=2m", 28500), ("timeout=x", 28500)]
    {
        assert_eq!(deadline(query), Duration::from_millis(want), "{query}");
    }
}

#[tokio::test]
async fn strangers_get_no_answers_and_probes_need_no_name() {
    let router = router(Arc::new(ByName::default()), limits(), Callers::Named(Arc::new([])));
    let request =
        Request::post("/validate/fail").header(header::CONTENT_TYPE, "application/json").body(Body::from(body("a")));
    assert_eq!(router.clone().oneshot(request.unwrap()).await.unwrap().status(), StatusCode::FORBIDDEN);
    let request = Request::get("/health/liveness").body(Body::empty()).unwrap();
    assert_eq!(router.oneshot(request).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_token_in_the_path_or_a_certificate_proves_the_sender() {
    let reviews = Arc::new(ByName::default());
    let named = Caller::named("apiserver");
    let wrong = TOKEN.replace('0', "1");
    for (callers, caller, path, want) in [
        (Callers::All, Caller::default(), "/validate/fail".to_owned(), Sender::Unproven),
        (Callers::All, Caller::default(), format!("/validate/fail/proven/{wrong}"), Sender::Unproven),
        (Callers::All, Caller::default(), format!("/validate/fail/proven/{TOKEN}?timeout=5s"), Sender::ApiServer),
        // A certificate that nothing verifies proves nothing.
        (Callers::All, named.clone(), "/validate/fail".to_owned(), Sender::Unproven),
        (Callers::Named(Arc::new([])), named, "/validate/fail".to_owned(), Sender::ApiServer),
    ] {
        for name in ["quick", "slow"] {
            let router = router(Arc::clone(&reviews) as Arc<dyn Reviews>, limits(), callers.clone());
            let request = Request::post(&path).header(header::CONTENT_TYPE, "application/json");
            let request = request.extension(caller.clone()).body(Body::from(body(name))).unwrap();
            assert_eq!(router.oneshot(request).await.unwrap().status(), StatusCode::OK);
            let seen = reviews.senders.lock().unwrap().pop();
            assert_eq!(seen, Some(("/validate/fail".to_owned(), want)), "{path} {name}");
        }
    }
    let counted = reviews.counted.lock().unwrap();
    assert!(counted.len() == 10 && counted.iter().all(|path| path == "/validate/fail"), "{counted:?}");
}

/// A body that begins like this and does not end.
fn endless(beginning: &str) -> Body {
    let beginning = futures::stream::iter([Ok::<_, io::Error>(beginning.as_bytes().to_vec())]);
    Body::from_stream(futures::StreamExt::chain(beginning, futures::stream::pending()))
}

/// A review by a peer of that address, with the length it declares.
fn from_peer(last: u8, length: Option<usize>, body: Body) -> Request<Body> {
    let request = Request::post("/validate/fail").header(header::CONTENT_TYPE, "application/json");
    let request = request.extension(Caller::at([10, 0, 0, last].into()));
    let request = match length {
        Some(length) => request.header(header::CONTENT_LENGTH, length),
        None => request,
    };
    request.body(body).unwrap()
}

#[tokio::test]
async fn bodies_that_do_not_come_take_no_room_and_end() {
    let router = router(Arc::new(ByName::default()), limits(), Callers::All);
    let idle: Vec<_> =
        (0..100).map(|_| tokio::spawn(router.clone().oneshot(from_peer(1, Some(4096), endless(""))))).collect();
    tokio::task::yield_now().await;
    for peer in [1, 2] {
        let answer = router.clone().oneshot(from_peer(peer, None, body("a").into())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "peer {peer}");
    }
    for answer in idle {
        assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    }
}

#[tokio::test]
async fn half_a_body_gives_way_to_a_peer_that_holds_less() {
    let router = router(Arc::new(ByName::default()), limits(), Callers::All);
    let half = "x".repeat(4080);
    let greedy: Vec<_> =
        (0..12).map(|i| tokio::spawn(router.clone().oneshot(from_peer(1 + i % 2, None, endless(&half))))).collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let answer = router.clone().oneshot(from_peer(3, None, body("a").into())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let mut put_out = 0;
    for answer in greedy {
        put_out += usize::from(answer.await.unwrap().unwrap().status() == StatusCode::SERVICE_UNAVAILABLE);
    }
    assert!(put_out > 0);
}

#[tokio::test]
async fn unfinished_bodies_from_the_address_of_the_api_server_delay_none_of_its_reviews() {
    let limits = Limits { in_work: 64 << 10, peer: 16 << 10, reading: Duration::from_mins(1), ..limits() };
    let router = router(Arc::new(ByName::default()), limits, Callers::All);
    let half = "x".repeat(4080);
    let greedy: Vec<_> =
        (0..12).map(|_| tokio::spawn(router.clone().oneshot(from_peer(1, None, endless(&half))))).collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let ask = |path: &str| {
        let mut request = from_peer(1, None, body("a").into());
        *request.uri_mut() = format!("{path}?timeout=1s").parse().unwrap();
        router.clone().oneshot(request)
    };
    assert_ne!(ask("/validate/fail").await.unwrap().status(), StatusCode::OK, "the address holds all that it may");
    assert_eq!(ask(&format!("/validate/fail/proven/{TOKEN}")).await.unwrap().status(), StatusCode::OK);
    greedy.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn several_of_the_longest_bodies_are_read_at_once() {
    let router = router(Arc::new(ByName::default()), limits(), Callers::All);
    let long = || {
        let text = body("a");
        text.clone() + &" ".repeat(4096 - text.len())
    };
    let asked = futures::future::join_all((0..2).map(|_| router.clone().oneshot(from_peer(1, None, long().into()))));
    for answer in asked.await {
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_read_is_cut_off() {
    let limits = Limits { reading: Duration::from_millis(20), ..limits() };
    let router = router(Arc::new(ByName::default()), limits, Callers::All);
    let unread = router.oneshot(from_peer(1, None, body("long").into())).await.unwrap();
    let declared: usize = unread.headers()[header::CONTENT_LENGTH].to_str().unwrap().parse().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let came = unread.into_body().collect().await.unwrap().to_bytes().len();
    assert!(came < declared && declared > 60_000, "{came} of {declared}");
}

#[tokio::test]
async fn a_review_with_a_long_uid_is_not_repeated() {
    let text = body("a").replace(r#""uid":"u""#, &format!(r#""uid":"{}""#, "u".repeat(2000)));
    let (status, text) = post("/validate/fail", "application/json", text).await;
    assert!(status == StatusCode::EXPECTATION_FAILED && text.len() < 200, "{status} {text:.300}");
}

#[tokio::test]
async fn reading_counts_into_the_time_of_a_request() {
    let begun = Instant::now();
    let (status, _) = post("/validate/fail?timeout=50ms", "application/json", endless("{")).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert!(begun.elapsed() < limits().reading);
}

#[tokio::test]
async fn what_cannot_be_read_is_denied_where_failures_are_ignored_too() {
    let review = |object: &str| body("a").replace(r#""name":"a""#, &format!(r#""object":{object}"#));
    for (object, why) in [
        (format!("{{\"a\":\"{}\"}}", "x".repeat(5000)), "bytes"),
        (format!("{{\"a\":[0{}]}}", ",0".repeat(1000)), "values"),
        (format!("{{\"a\":[[]{}]}}", ",[]".repeat(200)), "memory"),
        ("{".to_owned(), "not JSON"),
        ("[]".to_owned(), "expected an object"),
    ] {
        for path in ["/validate/fail", "/validate/ignore"] {
            let (status, text) = post(path, "application/json", review(&object)).await;
            let review = Value::from_json(&text).unwrap();
            assert_eq!((status, review.str_at(&["response", "uid"])), (StatusCode::OK, Some("u")), "{path} {why}");
            let (allowed, message) = answer(&text);
            assert!(!allowed && message.contains(why), "{path} {message}");
        }
    }
}

#[tokio::test]
async fn objects_are_judged_at_any_depth_that_an_api_server_reads() {
    let nested = |levels: usize| {
        let object = r#"{"a":"#.repeat(levels) + "0" + &"}".repeat(levels);
        body("a").replace(r#""name":"a""#, &format!(r#""name":"a","object":{object}"#))
    };
    let reviews = Arc::new(ByName::default());
    let router = router(Arc::clone(&reviews) as _, Limits::default(), Callers::All);
    for (levels, judged) in [(126, true), (10_000, true), (10_001, false), (100_000, false)] {
        let before = reviews.at_once.load(Ordering::Relaxed);
        let answer = router.clone().oneshot(from_peer(1, None, nested(levels).into())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(reviews.at_once.load(Ordering::Relaxed) > before, judged, "{levels}");
    }
}

/// A server on a port of its own.
struct Running {
    address: std::net::SocketAddr,
    client: Arc<rustls::ClientConfig>,
    handle: Handle<std::net::SocketAddr>,
    serving: tokio::task::JoinHandle<io::Result<()>>,
}

type Client = rustls::StreamOwned<rustls::ClientConnection, std::net::TcpStream>;

impl Running {
    fn start(limits: Limits) -> Self {
        Self::answering(Arc::new(ByName::default()), limits)
    }

    fn answering(reviews: Arc<dyn Reviews>, limits: Limits) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let tls = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let handle = Handle::new();
        let router = router(reviews, limits, Callers::All);
        let serving = tokio::spawn(serve(listener, Arc::new(tls), router, limits, handle.clone()));
        Self { address, client: Arc::new(client), handle, serving }
    }

    /// A connection on which something is written after the handshake.
    async fn connected(&self, text: impl Into<Vec<u8>>) -> Client {
        let (address, client, text) = (self.address, Arc::clone(&self.client), text.into());
        let connecting = tokio::task::spawn_blocking(move || {
            let connection = rustls::ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, std::net::TcpStream::connect(address).unwrap());
            stream.conn.complete_io(&mut stream.sock).unwrap();
            io::Write::write_all(&mut stream, &text).unwrap();
            stream
        });
        connecting.await.unwrap()
    }

    /// All that comes until the server closes the connection, which it may do without a farewell.
    async fn heard(mut stream: Client) -> String {
        let hearing = tokio::task::spawn_blocking(move || {
            let mut answer = Vec::new();
            let _ = io::Read::read_to_end(&mut stream, &mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        });
        timeout(Duration::from_secs(30), hearing).await.expect("the connection does not end").unwrap()
    }

    async fn ask(&self) -> String {
        Self::heard(self.connected(head(body("a").len(), "Connection: close\r\n") + &body("a")).await).await
    }

    async fn end(self) {
        self.handle.shutdown();
        self.serving.await.unwrap().unwrap();
    }
}

fn head(length: usize, more: &str) -> String {
    format!(
        "POST /validate/fail HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n"
    )
}

#[tokio::test]
async fn a_half_open_client_is_cut_off_and_delays_no_other() {
    let server = Running::start(limits());
    // Connected, without a word.
    let mut silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
    // Half a handshake.
    let mut half = tokio::net::TcpStream::connect(server.address).await.unwrap();
    half.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
    assert!(server.ask().await.starts_with("HTTP/1.1 200"));
    // The handshake's own limit ends both.
    for stream in [&mut silent, &mut half] {
        let mut byte = [0; 1];
        let ended = timeout(Duration::from_secs(30), stream.read(&mut byte)).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))) || byte[0] == 0x15, "{ended:?}");
    }
    server.end().await;
}

#[tokio::test]
async fn bodies_that_were_declared_and_do_not_come_delay_no_other() {
    let server = Running::start(limits());
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(server.connected(head(4096, "")).await);
    }
    assert!(server.ask().await.starts_with("HTTP/1.1 200"));
    for stream in idle {
        assert!(Running::heard(stream).await.starts_with("HTTP/1.1 408"));
    }
    server.end().await;
}

#[tokio::test]
async fn heads_without_bodies_take_no_more_than_the_part_of_their_peer() {
    let limits = Limits { peer_heads: 64 << 10, ..limits() };
    let server = Running::start(limits);
    let padding = format!("X-Padding: {}\r\n", "a".repeat(4 << 10));
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(server.connected(head(4096, &padding)).await);
    }
    // Each takes 8 KiB and three times its headers: four of them are more than the part of one peer, so one is refused
    // at once. Room is there again when the others have ended.
    let mut refused = 0;
    for stream in idle {
        refused += usize::from(Running::heard(stream).await.starts_with("HTTP/1.1 503"));
    }
    assert_eq!(refused, 1);
    assert!(server.ask().await.starts_with("HTTP/1.1 200"));
    server.end().await;
}

#[tokio::test]
async fn connections_without_a_request_end() {
    let server = Running::start(limits());
    let http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";
    for text in ["", "POST /validate/fail HTTP/1.1\r\nHost: l", http2] {
        let stream = server.connected(text).await;
        // An answer, or none: that it ends is what counts.
        Running::heard(stream).await;
    }
    // One that was used may be used again.
    let kept = server.connected(head(body("a").len(), "") + &body("a")).await;
    assert!(Running::heard(kept).await.starts_with("HTTP/1.1 200"));
    server.end().await;
}

#[tokio::test]
async fn a_peer_with_too_many_connections_is_still_answered() {
    let server = Running::start(Limits { peer_connections: 4, idle: Duration::from_mins(10), ..limits() });
    let mut idle = Vec::new();
    for _ in 0..10 {
        idle.push(server.connected("").await);
    }
    assert!(server.ask().await.starts_with("HTTP/1.1 200"));
    // The first had to make place.
    assert_eq!(Running::heard(idle.remove(0)).await, "");
    server.end().await;
}

/// An HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, stream];
    frame.extend(payload);
    frame
}

/// What a client says over HTTP/2 whose window takes so many bytes of an answer: its settings, and one review.
fn over_http2(window: u8) -> Vec<u8> {
    let mut headers = vec![0x83, 0x87];
    for (name, value) in [(&[0x04][..], "/validate/fail"), (&[0x01], "localhost"), (&[0x0f, 0x10], "application/json")]
    {
        headers.extend(name);
        headers.push(u8::try_from(value.len()).unwrap());
        headers.extend(value.bytes());
    }
    let mut text = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    text.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, window]));
    text.extend(frame(1, 4, 1, &headers));
    text.extend(frame(0, 1, 1, body("a").as_bytes()));
    text
}

#[tokio::test]
async fn a_peer_that_takes_no_answer_loses_its_connection() {
    let server = Running::start(Limits { idle: Duration::from_mins(10), ..limits() });
    for window in [0, 1] {
        let stream = server.connected(over_http2(window)).await;
        // The answer waits for the window to open; the connection and what it holds end.
        assert!(!Running::heard(stream).await.contains("allowed"));
    }
    server.end().await;
}

#[tokio::test]
async fn long_bodies_are_parsed_by_workers_alone() {
    // There are none, so that time passes before anybody looks at the body.
    let limits = Limits { workers: 0, at_once: 10, ..limits() };
    let router = router(Arc::new(ByName::default()), limits, Callers::All);
    for (path, allowed) in [("/validate/fail?timeout=50ms", false), ("/validate/ignore?timeout=50ms", true)] {
        let broken = body("a") + "broken";
        let request =
            Request::post(path).header(header::CONTENT_TYPE, "application/json").body(Body::from(broken)).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&text);
        assert!(answer(&text).0 == allowed && text.contains("time is over"), "{text}");
    }
}

/// Reviews that compute until their time is over, on whatever thread they are asked.
struct Computing;

impl Reviews for Computing {
    fn serves(&self, _: &str) -> bool {
        true
    }

    fn proves(&self, _: &str) -> bool {
        false
    }

    fn at_once(&self, _: &str, _: &AdmissionRequest) -> Option<Answer> {
        None
    }

    fn answer(&self, _: &str, _: &AdmissionRequest, until: Instant) -> Answer {
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        Answer::deny("computed")
    }

    fn unreadable(&self, _: &str, why: &str) -> Answer {
        Answer::deny(why)
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn answered(&self, _: &str, _: &str, _: Duration) {}
}

/// On one thread, so that a review which stayed on it would keep the probe waiting until it is done.
#[tokio::test]
async fn reviews_that_compute_leave_the_thread_of_probes_alone() {
    let limits = Limits { workers: 2, ..limits() };
    let router = router(Arc::new(Computing), limits, Callers::All);
    let reviews: Vec<_> = (0..4)
        .map(|_| {
            let request = Request::post("/validate/fail?timeout=2s").header(header::CONTENT_TYPE, "application/json");
            tokio::spawn(router.clone().oneshot(request.body(Body::from(body("a"))).unwrap()))
        })
        .collect();
    for _ in 0..10 {
        tokio::task::yield_now().await;
        let probe = Request::get("/health/liveness").body(Body::empty()).unwrap();
        assert_eq!(router.clone().oneshot(probe).await.unwrap().status(), StatusCode::OK);
    }
    assert!(reviews.iter().all(|review| !review.is_finished()), "the probes were answered while reviews compute");
    // Two are judged within their time, the others get no turn: both are denied by the failure policy's webhook.
    for review in reviews {
        let response = review.await.unwrap().unwrap();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert!(!answer(&String::from_utf8_lossy(&text)).0);
    }
}

/// Reviews judged by policies.
struct Judging(Handlers);

impl Reviews for Judging {
    fn serves(&self, path: &str) -> bool {
        path::parse(path).is_some()
    }

    fn proves(&self, _: &str) -> bool {
        false
    }

    fn at_once(&self, path: &str, request: &AdmissionRequest) -> Option<Answer> {
        let (webhook, scope) = path::parse(path)?;
        self.0.answer(webhook, &scope, request, Effort::Immediate).ok()
    }

    fn answer(&self, path: &str, request: &AdmissionRequest, until: Instant) -> Answer {
        let (webhook, scope) = path::parse(path).unwrap();
        self.0.answer_until(webhook, &scope, request, until)
    }

    fn unreadable(&self, _: &str, why: &str) -> Answer {
        Answer::deny(why)
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn answered(&self, _: &str, _: &str, _: Duration) {}
}

/// A policy with that rule, for objects whose `data.kind` is its name.
fn hostile(name: &str, rule: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{background: false, \
         validationFailureAction: Enforce, rules: [{{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, \
         preconditions: {{all: [{{key: '{{{{ request.object.data.kind }}}}', operator: Equals, value: {name}}}]}}, \
         validate: {{message: m, {rule}}}}}]}}}}"
    )
}

/// Objects that fit their policies badly: each review ends, by the failure policy where its budget or its time does,
/// and others are answered beside them.
#[tokio::test]
async fn hostile_objects_end_by_the_failure_policy_and_delay_no_other() {
    let deny = |key: &str, operator: &str, value: &str| {
        format!("deny: {{conditions: {{any: [{{key: \"{{{{ {key} }}}}\", operator: {operator}, value: {value}}}]}}}}")
    };
    let (text, list) = ("request.object.data.text", "request.object.data.list");
    let policies = [
        hostile("regex", &deny(&format!("regex_match('{{{{request.object.data.re}}}}', {text})"), "Equals", "true")),
        hostile("wild", &deny(text, "Equals", "\"{{ request.object.data.re }}\"")),
        hostile(
            "loop",
            &format!("foreach: [{{list: {list}, {}}}]", deny("element", "AnyIn", &format!("\"{{{{ {list} }}}}\""))),
        ),
        hostile("fold", &deny(&format!("{list}[].[@,@,@][].[@,@,@][].[@,@,@][].[@,@,@][] | length(@)"), "Equals", "1")),
    ];
    let harness = Harness::new(&policies.iter().map(String::as_str).collect::<Vec<_>>());
    let server = Running::answering(Arc::new(Judging(harness.handlers.clone())), Limits::default());
    let object = |data: &str| {
        let kind = r#""name":"a","namespace":"default","kind":{"group":"","version":"v1","kind":"ConfigMap"},
            "resource":{"group":"","version":"v1","resource":"configmaps"}"#;
        let object = format!(
            r#","object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{{data}}}}}"#
        );
        body("a").replace(r#""name":"a""#, &(kind.to_owned() + &object))
    };
    let items = |count: usize| (0..count).map(|i| format!("\"*{i}*\"")).collect::<Vec<_>>().join(",");
    let mut hostile = Vec::new();
    for data in [
        r#""kind":"regex","re":"((((a{0,99}){0,99}){0,99}){0,99})","text":"a""#.to_owned(),
        format!(r#""kind":"wild","re":"{}b","text":"{}""#, "?*".repeat(200_000), "a".repeat(1_000_000)),
        format!(r#""kind":"loop","list":[{}]"#, items(100_000)),
        format!(r#""kind":"fold","list":[0{}]"#, ",0".repeat(100_000)),
    ] {
        let review = object(&data);
        hostile.push(server.connected(head(review.len(), "Connection: close\r\n") + &review).await);
    }
    let plain = object(r#""kind":"none""#);
    let beside = server.connected(head(plain.len(), "Connection: close\r\n") + &plain).await;
    let told = Running::heard(beside).await;
    assert!(told.contains(r#""allowed":true"#), "{told}");
    for stream in hostile {
        let told = Running::heard(stream).await;
        assert!(told.contains(r#""allowed":false"#), "{told}");
    }
    server.end().await;
}

#[tokio::test]
async fn long_bodies_are_not_judged_on_the_thread_that_read_them() {
    let reviews = Arc::new(ByName::default());
    let router = router(Arc::clone(&reviews) as Arc<dyn Reviews>, Limits { at_once: 64, ..limits() }, Callers::All);
    let request = Request::post("/validate/fail").header(header::CONTENT_TYPE, "application/json");
    let response = router.oneshot(request.body(Body::from(body("a"))).unwrap()).await.unwrap();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(answer(&String::from_utf8_lossy(&text)).1, "slowly");
    assert_eq!(reviews.at_once.load(Ordering::Relaxed), 0);
}
