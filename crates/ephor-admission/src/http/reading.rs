//! Reads request bodies within memory and time limits.

use std::time::Instant;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use tokio::time::timeout_at;

use super::memory_quota::Share;
use super::meter::Meter;
use super::{Limits, Refused};

/// How much of a body that is too long is kept, to find in it which request it is.
const HEAD: usize = 64 << 10;

/// The result of reading a body.
pub(super) enum Read {
    /// All of it.
    Whole(Vec<u8>),
    /// It is more than can be judged: how it begins, and what is too much of it.
    TooMuch(Vec<u8>, &'static str),
}

/// Reads a body, whose bytes `share` pays for as they arrive, and gives both back. The body has to be there by `until`.
pub(super) async fn read(
    mut body: Body,
    mut share: Share,
    limits: &Limits,
    until: Instant,
) -> Result<(Read, Share), Refused> {
    match fill(&mut body, &mut share, limits, until).await {
        Ok(Read::Whole(bytes)) => Ok((Read::Whole(bytes), share)),
        Ok(too_much) => {
            skip(&mut body, until).await;
            Ok((too_much, share))
        }
        Err(Refused::NoRoom) => {
            // The quota goes to the body that this one gave way to.
            drop(share);
            skip(&mut body, until).await;
            Err(Refused::NoRoom)
        }
        Err(refused) => Err(refused),
    }
}

/// Reads the rest of a body and keeps none of it: the caller listens for the answer when it has sent everything.
async fn skip(body: &mut Body, until: Instant) {
    while let Ok(Ok(Some(_))) = timeout_at(until.into(), chunk(body)).await {}
}

async fn fill(body: &mut Body, share: &mut Share, limits: &Limits, until: Instant) -> Result<Read, Refused> {
    let until = until.into();
    let put_out = share.put_out();
    let mut bytes = Vec::new();
    let (mut values, mut meter) = (0, Meter::default());
    loop {
        let next = async {
            tokio::select! {
                biased;
                () = put_out.notified() => Err(Refused::NoRoom),
                chunk = chunk(body) => chunk,
            }
        };
        let Some(chunk) = timeout_at(until, next).await.map_err(|_| Refused::TooSlow)?? else {
            share.arrived();
            return Ok(Read::Whole(bytes));
        };
        values += separators(&chunk);
        // Its text is there twice while it is parsed.
        let cost = 2 * chunk.len() + meter.cost(&chunk);
        let too_much = if bytes.len() + chunk.len() > limits.body {
            Some("bytes")
        } else if values > limits.values {
            Some("values")
        } else if share.bytes() + cost > limits.peer {
            Some("values for the memory that one caller may take")
        } else {
            None
        };
        if let Some(what) = too_much {
            bytes.extend_from_slice(&chunk);
            bytes.truncate(HEAD);
            return Ok(Read::TooMuch(bytes, what));
        }
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
