//! Certificates and certificate requests, with the field names of Go's `crypto/x509`: the reference hands out that
//! package's structures as JSON.
//!
//! - `decode`: the function, certificates, requests and keys.
//! - `names`: subjects, issuers and alternative names.
//! - `extensions`: the fields that come from extensions.

mod decode;
mod extensions;
mod names;

pub(super) use decode::FUNCTIONS;
pub(crate) use decode::decode;

#[cfg(test)]
mod tests;
