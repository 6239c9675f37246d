//! URLs.

use std::any::Any;
use std::collections::BTreeMap;

use super::super::super::error::EvalError;
use super::super::super::value::{Key, Opaque, Val};
use super::super::{Call, Overload, cost, global, member};
use crate::scalar::percent::AsciiSet;
use crate::scalar::{go_url, percent};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const TYPE: &str = "kubernetes.URL";

pub(in super::super) const OVERLOADS: &[Overload] = &[
    global("url", "string_to_url", "string", TYPE, url).cost_by_name(cost::traverse),
    global("isURL", "is_url_string", "string", "bool", |call| Ok(Val::Bool(parse(call.str(0)).is_ok()))),
    member("getScheme", "url_get_scheme", TYPE, "string", |call| part(call, |url| url.scheme.clone())),
    member("getHost", "url_get_host", TYPE, "string", |call| part(call, |url| url.host.clone())),
    member("getHostname", "url_get_hostname", TYPE, "string", |call| part(call, |url| url.hostname().to_owned())),
    member("getPort", "url_get_port", TYPE, "string", |call| part(call, port)),
    member("getEscapedPath", "url_get_escaped_path", TYPE, "string", |call| part(call, escaped_path)),
    member("getQuery", "url_get_query", TYPE, "map(string, list(string))", query),
];

/// A URL and the text it was read from.
#[derive(Debug)]
struct Url {
    url: go_url::Url,
    text: String,
}

impl Opaque for Url {
    fn type_name(&self) -> &str {
        TYPE
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Url>().is_some_and(|other| other.url == self.url)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

/// Reads an absolute URL or a rooted path.
pub(super) fn parse(text: &str) -> std::result::Result<go_url::Url, String> {
    let fail = |why: &str| format!("parse {text:?}: {why}");
    let control = text.bytes().any(|b| b < b' ' || b == 0x7f);
    if text.is_empty() && !control {
        return Err(fail("empty url"));
    }
    // A fragment is not split off here.
    let url = go_url::Url::parse(text).map_err(|error| error.to_string())?;
    if url.scheme.is_empty() && !text.starts_with('/') {
        return Err(fail("invalid URI for request"));
    }
    Ok(url)
}

fn url<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.charge(call.str(0).len() * 2)?;
    match parse(call.str(0)) {
        Ok(url) => Ok(Val::opaque(Url { url, text: call.str(0).to_owned() })),
        Err(error) => Err(EvalError::Other(format!("URL parse error during conversion from string: {error}"))),
    }
}

fn part<'v>(call: &Call<'_, 'v>, part: fn(&go_url::Url) -> String) -> Result<'v> {
    let value = call.arg(0);
    let Some(url) = value.downcast::<Url>() else { return Err(call.no_such_overload()) };
    Ok(Val::text(part(&url.url)))
}

fn port(url: &go_url::Url) -> String {
    let after = url.host.rsplit_once(']').map_or(url.host.as_str(), |(_, after)| after);
    after.rsplit_once(':').map_or_else(String::new, |(_, port)| port.to_owned())
}

fn escaped_path(url: &go_url::Url) -> String {
    if !url.raw_path.is_empty() && url.raw_path.is_ascii() {
        return url.raw_path.clone();
    }
    percent::encode(&url.path, IN_PATH).to_string()
}

/// What Go encodes in a path.
const IN_PATH: &AsciiSet = &percent::RESERVED
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@')
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'[')
    .remove(b']');

/// The parameters; what cannot be decoded is left out.
fn query<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let value = call.arg(0);
    let Some(url) = value.downcast::<Url>() else { return Err(call.no_such_overload()) };
    call.charge(url.url.raw_query.len() * 32)?;
    let mut parameters: BTreeMap<String, Vec<Val<'v>>> = BTreeMap::new();
    for pair in url.url.raw_query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(name), Some(value)) = (decoded(name), decoded(value)) {
            parameters.entry(name).or_default().push(Val::text(value));
        }
    }
    let entry = |(name, values): (String, Vec<Val<'v>>)| (Key::String(name.into()), Val::list(values));
    Ok(Val::map(parameters.into_iter().map(entry).collect()))
}

fn decoded(text: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&percent::decode(text, true)?).into_owned())
}
