//! The signed message: base64 of gzip of what is signed, which is YAML, or gzip of a tar archive of YAML files.
//!
//! The author of the object controls the annotation, so every step is bounded: text, each decompression, and
//! the YAML. Public for the fuzz targets.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_values};
use flate2::bufread::MultiGzDecoder;

/// The API server allows an object 256 KiB of annotations in all.
const MAX_TEXT: usize = 256 << 10;

/// What a message may unpack to at each step; the API server takes no request above 3 MiB.
const MAX_BYTES: usize = 4 << 20;

/// Values in all documents of a message.
const MAX_NODES: usize = 200_000;

/// Why a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The annotation is longer than the API server allows, or it unpacks to more than an object can be.
    #[error("it is too large")]
    TooLarge,
    /// No base64.
    #[error("it is no base64")]
    Base64,
    /// A broken gzip stream.
    #[error("its gzip stream is broken")]
    Gzip,
    /// A broken tar archive.
    #[error("its tar archive is broken")]
    Tar,
    /// No YAML.
    #[error("it is no YAML")]
    Yaml,
}

/// The bytes that the signatures are over: `text` without base64 and one layer of gzip, if there is one.
pub fn signed_bytes(text: &str) -> Result<Vec<u8>, MessageError> {
    if text.len() > MAX_TEXT {
        return Err(MessageError::TooLarge);
    }
    unpacked(decode_base64(text)?)
}

/// The manifests in what is signed.
pub fn manifests(signed: Vec<u8>) -> Result<Vec<Value>, MessageError> {
    let bytes = unpacked(signed)?;
    if !is_tar(&bytes) {
        return documents(&bytes).ok_or(MessageError::Yaml);
    }
    let files = tar_files(&bytes)?;
    // An archive may hold other files too: what is no YAML is no manifest.
    let found: Vec<Value> = files.into_iter().filter_map(documents).flatten().collect();
    if found.is_empty() { Err(MessageError::Yaml) } else { Ok(found) }
}

/// Standard base64, broken into lines or not.
pub(super) fn decode_base64(text: &str) -> Result<Vec<u8>, MessageError> {
    let packed: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(packed).map_err(|_| MessageError::Base64)
}

fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>, MessageError> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let mut bounded = MultiGzDecoder::new(bytes.as_slice()).take(MAX_BYTES as u64 + 1);
    bounded.read_to_end(&mut out).map_err(|_| MessageError::Gzip)?;
    if out.len() > MAX_BYTES { Err(MessageError::TooLarge) } else { Ok(out) }
}

fn documents(bytes: &[u8]) -> Option<Vec<Value>> {
    let limits = Limits { max_bytes: MAX_BYTES, max_nodes: MAX_NODES, ..Limits::default() };
    parse_values(std::str::from_utf8(bytes).ok()?, &limits).ok()
}

const BLOCK: usize = 512;

fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// The contents of the regular files of a tar archive. Names, and with them all the ways to write long ones, do not
/// matter here.
fn tar_files(bytes: &[u8]) -> Result<Vec<&[u8]>, MessageError> {
    let mut files = Vec::new();
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + BLOCK) {
        if header.iter().all(|b| *b == 0) {
            break;
        }
        let size = header.get(124..136).and_then(octal).ok_or(MessageError::Tar)?;
        let start = at + BLOCK;
        let end = start.checked_add(size).ok_or(MessageError::Tar)?;
        let content = bytes.get(start..end).ok_or(MessageError::Tar)?;
        if matches!(header.get(156), Some(b'0' | 0)) {
            files.push(content);
        }
        // No overflow: `end` is at most the length of `bytes`.
        at = end.next_multiple_of(BLOCK);
    }
    Ok(files)
}

/// Octal digits, with spaces before and a space or zero byte behind.
fn octal(field: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    usize::from_str_radix(text, 8).ok()
}
