//! A small HTTP service, for policies that call one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;

/// A server that answers by path with JSON, until the test ends.
#[derive(Debug)]
pub struct JsonService {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// Each request: head, then body.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl JsonService {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// If no port is free.
    #[expect(clippy::unwrap_used, reason = "a test cannot go on without")]
    pub fn start() -> Self {
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

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What was asked: of each request its head in lower case, and its body.
    pub fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().clone()
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
    seen.lock().push((head, String::from_utf8_lossy(&body).into_owned()));
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
