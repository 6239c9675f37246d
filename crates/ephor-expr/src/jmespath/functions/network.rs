//! Names and addresses.

use std::net::IpAddr;

use super::{Call, Function, Param};
use crate::jmespath::EvalError;
use crate::scalar::go_url::Url;
use crate::scalar::networks::{Purpose, numeric_v4, purpose};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "is_external_url",
    params: &[Param::STRING],
    returns: "boolean",
    doc: "Whether the host of a URL is outside: neither its address nor any that its name has is loopback, link-local, private or reserved. \
          A URL without a host, or a host that cannot be looked up, is an error.",
    examples: &[
        ("is_external_url('http://10.0.0.1')", "false"),
        ("is_external_url('https://8.8.8.8/x')", "true"),
        ("is_external_url('http://[::1]:80')", "false"),
        ("is_external_url('8.8.8.8')", "error: lookup : no such host"),
        ("is_external_url(':foo')", "error: parse \":foo\": missing protocol scheme"),
    ],
    call: is_external_url,
}];

fn is_external_url(call: &Call<'_>) -> Result<Value, EvalError> {
    let url = Url::parse(call.str(0)).map_err(|e| EvalError::Other(e.to_string()))?;
    let host = url.hostname();
    // The zone of an IPv6 address says nothing about who owns it.
    let address = host.split_once('%').map_or(host, |(address, _)| address).parse::<IpAddr>();
    let external = match address {
        Ok(address) => !is_internal(address),
        Err(_) if !is_domain_name(host) => return Err(EvalError::Other(format!("lookup {host}: no such host"))),
        Err(_) => !call.runtime.resolve(host)?.into_iter().any(is_internal),
    };
    Ok(external.into())
}

/// Whether a resolver may be asked about `host`. Numbers alone would be read as an address by some.
fn is_domain_name(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        (1..64).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    let numbers = numeric_v4(name).is_some() || name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    host.len() <= 254 && name.split('.').all(is_label) && !numbers
}

/// Whether an address is of this machine, its cloud or a network of the owner's own.
fn is_internal(address: IpAddr) -> bool {
    purpose(address) != Purpose::Global
}
