//! What a Service is to its Pods: one address before several ports, of which some are alive.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Forwards connections to whichever of its ports answers, in turn.
pub(crate) struct Balancer {
    pub(crate) port: u16,
    behind: Arc<Mutex<Vec<u16>>>,
}

impl Balancer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let behind: Arc<Mutex<Vec<u16>>> = Arc::default();
        let ports = Arc::clone(&behind);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let ports = Arc::clone(&ports);
                std::thread::spawn(move || forward(&stream, &ports));
            }
        });
        Self { port, behind }
    }

    pub(crate) fn set(&self, ports: Vec<u16>) {
        *self.behind.lock().unwrap() = ports;
    }
}

fn forward(stream: &TcpStream, ports: &Mutex<Vec<u16>>) {
    let candidates = {
        let mut ports = ports.lock().unwrap();
        if !ports.is_empty() {
            ports.rotate_left(1);
        }
        ports.clone()
    };
    let Some(other) = candidates.iter().find_map(|port| TcpStream::connect(("127.0.0.1", *port)).ok()) else {
        return;
    };
    let (mut from, mut to) = (stream.try_clone().unwrap(), other.try_clone().unwrap());
    let back = std::thread::spawn(move || {
        // Either side may hang up whenever it likes.
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (other, stream.try_clone().unwrap());
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = back.join();
}
