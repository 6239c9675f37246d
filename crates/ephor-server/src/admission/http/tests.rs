use std::sync::atomic::{AtomicUsize, Ordering};

use ephor_expr::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower::ServiceExt as _;

use super::*;

/// Answers by the name of the object: `slow` waits, `panic` panics, everything else is let in.
#[derive(Default)]
struct ByName {
    at_once: AtomicUsize,
}

impl Reviews for ByName {
    fn serves(&self, path: &str) -> bool {
        path.starts_with("/validate")
    }

    fn at_once(&self, _: &str, request: &AdmissionRequest) -> Option<Answer> {
        match request.name.as_str() {
            "panic" => panic!("as asked"),
            "slow" => None,
            _ => {
                self.at_once.fetch_add(1, Ordering::Relaxed);
                Some(Answer::allow())
            }
        }
    }

    fn answer(&self, _: &str, _: &AdmissionRequest) -> Answer {
        std::thread::sleep(Duration::from_millis(50));
        Answer::deny("slowly")
    }

    fn is_ready(&self) -> bool {
        false
    }

    fn answered(&self, _: &str, _: &str, _: Duration) {}
}

fn limits() -> Limits {
    Limits { body: 4096, in_work: 4096, patience: Duration::from_millis(100), reading: Duration::from_millis(300) }
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

/// A body that says nothing and does not end.
fn endless() -> Body {
    Body::from_stream(futures::stream::pending::<Result<Vec<u8>, io::Error>>())
}

#[tokio::test]
async fn slow_bodies_give_up_their_room() {
    let router = router(Arc::new(ByName::default()), limits(), Callers::All);
    let ask = |body: Body| {
        let request = Request::post("/validate/fail").header(header::CONTENT_TYPE, "application/json").body(body);
        router.clone().oneshot(request.unwrap())
    };
    // It takes all the room, as it does not say how long it is.
    let slow = tokio::spawn(ask(endless()));
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(ask(body("a").into()).await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(slow.await.unwrap().unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    assert_eq!(ask(body("a").into()).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_half_open_client_is_cut_off_and_holds_up_nobody() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Handle::new();
    let serving = tokio::spawn(serve(
        listener,
        Arc::new(tls),
        router(Arc::new(ByName::default()), limits(), Callers::All),
        limits(),
        handle.clone(),
    ));
    // Connected, without a word.
    let mut silent = tokio::net::TcpStream::connect(address).await.unwrap();
    // Half a handshake.
    let mut half = tokio::net::TcpStream::connect(address).await.unwrap();
    half.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let answered = tokio::task::spawn_blocking(move || {
        let connector = rustls::ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
        let mut stream = rustls::StreamOwned::new(connector, std::net::TcpStream::connect(address).unwrap());
        let body = body("a");
        let head = format!(
            "POST /validate/fail HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        io::Write::write_all(&mut stream, (head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        // The server closes without a farewell.
        let _ = io::Read::read_to_string(&mut stream, &mut answer);
        answer
    });
    assert!(answered.await.unwrap().starts_with("HTTP/1.1 200"));
    // The handshake's own limit ends both.
    for stream in [&mut silent, &mut half] {
        let mut byte = [0; 1];
        let ended = timeout(Duration::from_secs(30), stream.read(&mut byte)).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))) || byte[0] == 0x15, "{ended:?}");
    }
    handle.shutdown();
    serving.await.unwrap().unwrap();
}
