//! A server that answers what a test tells it to, over plain HTTP on a loopback port.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use ephor_expr::Value;
use ephor_kube::{Access, ConnectOptions, KubeCluster};

/// What a client sent.
#[derive(Debug, Clone)]
pub struct Received {
    /// `GET /api/v1/pods?limit=1`
    pub line: String,
    /// Lower case names.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What the server says.
pub enum Reply {
    /// A document with that code.
    Document(u16, String),
    /// Text that the server does not call JSON.
    Text(String),
    /// The same as a document, with a header.
    With(u16, &'static str, String),
    /// A stream, which ends, or stays open.
    Stream { chunks: Vec<String>, open: bool },
    /// Nothing: the connection is closed.
    HangUp,
}

pub fn ok(text: &str) -> Reply {
    Reply::Document(200, text.to_owned())
}

/// A server; its thread ends with the process.
pub struct Server {
    pub address: String,
    received: Arc<Mutex<Vec<Received>>>,
    _directory: tempfile::TempDir,
    options: ConnectOptions,
}

impl Server {
    /// Starts a server that answers by `answer`, which gets the request and how many came before it.
    pub fn start(answer: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (received.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (log.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        std::fs::write(&path, kubeconfig(&address)).unwrap();
        let options =
            ConnectOptions { access: Access::Kubeconfig { path, context: None }, ..ConnectOptions::default() };
        Self { address, received, _directory: directory, options }
    }

    pub fn options(&self) -> ConnectOptions {
        self.options.clone()
    }

    pub fn cluster(&self) -> KubeCluster {
        KubeCluster::connect(&self.options).unwrap()
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The request lines.
    pub fn lines(&self) -> Vec<String> {
        self.received().into_iter().map(|r| r.line).collect()
    }
}

pub fn kubeconfig(address: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\nclusters:\n- {{name: c, cluster: {{server: \
         'http://{address}'}}}}\nusers:\n- {{name: u, user: {{token: secret}}}}\ncontexts:\n- {{name: here, context: \
         {{cluster: c, user: u, namespace: home}}}}\n- {{name: there, context: {{cluster: c, user: u, namespace: \
         away}}}}\n"
    )
}

fn serve(stream: TcpStream, log: &Mutex<Vec<Received>>, answer: &(dyn Fn(&Received, usize) -> Reply + Sync)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(received) = receive(&mut reader) {
        let before = {
            let mut log = log.lock().unwrap();
            log.push(received.clone());
            log.len() - 1
        };
        let sent = match answer(&received, before) {
            Reply::Document(code, text) => document(&mut stream, code, JSON, &text),
            Reply::Text(text) => document(&mut stream, 200, "content-type: text/plain\r\n", &text),
            Reply::With(code, header, text) => document(&mut stream, code, &format!("{JSON}{header}\r\n"), &text),
            Reply::Stream { chunks, open } => {
                let mut text =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
                        .to_owned();
                for chunk in chunks {
                    let _ = write!(text, "{:x}\r\n{chunk}\r\n", chunk.len());
                }
                if open {
                    let _ = stream.write_all(text.as_bytes());
                    // Until the client goes.
                    let _ = reader.read(&mut [0]);
                    return;
                }
                stream.write_all((text + "0\r\n\r\n").as_bytes())
            }
            Reply::HangUp => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

const JSON: &str = "content-type: application/json\r\n";

fn document(stream: &mut TcpStream, code: u16, headers: &str, text: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {code} X\r\n{headers}content-length: {}\r\n\r\n{text}", text.len())
}

fn receive(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((key, value)) = header.trim().split_once(": ") else { break };
        headers.push((key.to_ascii_lowercase(), value.to_owned()));
    }
    let mut received =
        Received { line: line.trim().trim_end_matches(" HTTP/1.1").to_owned(), headers, body: String::new() };
    let length = received.header("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    received.body = String::from_utf8(body).unwrap();
    Some(received)
}

pub fn json(text: &str) -> Value {
    Value::from_json(text).unwrap()
}

pub fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{code},"reason":"{reason}","message":"{message}"}}"#
    )
}
