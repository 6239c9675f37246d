//! Bodies: read as they arrive, within room and time.

use std::time::Instant;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use tokio::time::timeout_at;

use super::room::Share;
use super::{Limits, Refused};

/// What a value takes in memory besides its text.
const VALUE: usize = size_of::<ephor_expr::Value>();

/// How much of a body that is too long is kept, to find in it which request it is.
const HEAD: usize = 64 << 10;

/// What came of a body.
pub(super) enum Read {
    /// All of it.
    Whole(Vec<u8>),
    /// It is more than can be judged: how it begins, and what is too much of it.
    TooMuch(Vec<u8>, &'static str),
}

/// Reads a body into `share`. It has to be there by `until`.
pub(super) async fn read(mut body: Body, share: &mut Share, limits: &Limits, until: Instant) -> Result<Read, Refused> {
    let until = until.into();
    let put_out = share.put_out();
    let mut bytes = Vec::new();
    let mut values = 0;
    loop {
        let next = async {
            tokio::select! {
                biased;
                () = put_out.notified() => Err(Refused::NoRoom),
                chunk = chunk(&mut body) => chunk,
            }
        };
        let Some(chunk) = timeout_at(until, next).await.map_err(|_| Refused::TooSlow)?? else {
            share.arrived();
            return Ok(Read::Whole(bytes));
        };
        let found = separators(&chunk);
        values += found;
        let too_much = if bytes.len() + chunk.len() > limits.body {
            Some("bytes")
        } else if values > limits.values {
            Some("values")
        } else {
            None
        };
        if let Some(what) = too_much {
            bytes.extend_from_slice(&chunk);
            bytes.truncate(HEAD);
            // The caller listens when it has sent everything.
            while let Ok(Ok(Some(_))) = timeout_at(until, self::chunk(&mut body)).await {}
            return Ok(Read::TooMuch(bytes, what));
        }
        // A review takes no more than what a peer may hold: the largest are judged one after the other.
        let cost = (chunk.len() + found * VALUE).min(limits.peer.saturating_sub(share.bytes()));
        tokio::select! {
            biased;
            () = put_out.notified() => return Err(Refused::NoRoom),
            grown = timeout_at(until, share.grow(cost)) => grown.map_err(|_| Refused::NoRoom)?,
        }
        bytes.extend_from_slice(&chunk);
    }
}

/// The next bytes of a body; `None` at its end.
async fn chunk(body: &mut Body) -> Result<Option<Bytes>, Refused> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(Refused::Broken(error.to_string())),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// No JSON text holds more values than this, and one.
fn separators(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count()
}
