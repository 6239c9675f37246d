//! The limits of the admission server: bytes, time and connections.
//!
//! Anybody who reaches the port can send anything, so each of these bounds holds before a byte is judged.

use std::time::Duration;

/// What callers may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest body, in bytes.
    pub body: usize,
    /// The most values in one body: its commas and opening brackets are counted, also those inside of strings.
    pub values: usize,
    /// The memory of all requests in work at once, in bytes.
    pub in_work: usize,
    /// The part of `in_work` that one peer may hold. A review that would take more is denied.
    pub peer: usize,
    /// The memory of a request besides its body and long headers: its stream, and the task that serves it.
    pub request: usize,
    /// The memory of all requests before their bodies, in bytes.
    pub heads: usize,
    /// The part of `heads` that one peer may hold.
    pub peer_heads: usize,
    /// The longest body that is parsed and judged on a thread that serves other callers too, in bytes.
    pub at_once: usize,
    /// How many reviews are parsed and judged at once on threads of their own; the others wait for their turn.
    pub workers: usize,
    /// How long a TLS handshake, the headers and a body may take, each.
    pub reading: Duration,
    /// How long a connection may be without a request in work.
    pub idle: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Connections of one peer at once.
    pub peer_connections: usize,
}

/// The longest object that an API server reads from a client.
const OBJECT: usize = 3 << 20;

/// What a byte of an object can become in a review: Go writes `<` as `\u003c`, and invalid UTF-8 as `\ufffd`.
const ESCAPED: usize = 6;

/// What of a review is not an object: the user with groups and extra attributes, options.
const ENVELOPE: usize = 1 << 20;

impl Default for Limits {
    /// A review holds two objects (`object` and `oldObject`), each as long as an API server takes it and with every
    /// byte escaped: 37 MiB. Of values, the shortest take two bytes (`0,`), so that 4 Mi cover both objects. Of what
    /// such values take once they are parsed, `peer` is the bound: it holds two objects of that length whose text is
    /// mostly strings, and the largest that etcd stores, whatever their shape in practice.
    fn default() -> Self {
        Self {
            body: 2 * OBJECT * ESCAPED + ENVELOPE,
            values: 4 << 20,
            in_work: 128 << 20,
            peer: 80 << 20,
            request: 8 << 10,
            heads: 64 << 20,
            peer_heads: 32 << 20,
            at_once: 64 << 10,
            workers: 64,
            reading: Duration::from_secs(5),
            idle: Duration::from_mins(2),
            connections: 2048,
            peer_connections: 1024,
        }
    }
}
