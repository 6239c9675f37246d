//! Kyverno's functions of data: hashes, JSON and YAML, rounding, times, service accounts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::super::super::error::EvalError;
use super::super::super::value::{Key, MAX_WALK, Object, Val};
use super::super::conversions::{double_text, timestamp_text};
use super::super::{Call, Overload, global, member};
use crate::jmespath::functions::decode_x509;
use crate::scalar::duration::Duration;
use crate::value::{Str, Value};
use crate::yaml;

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

pub(in super::super) const OVERLOADS: &[Overload] = &[
    global("hash.md5", "md5_string_prefixed", "string", "string", hashed::<Md5>),
    global("hash.sha1", "sha1_string_prefixed", "string", "string", hashed::<Sha1>),
    global("hash.sha256", "sha256_string_prefixed", "string", "string", hashed::<Sha256>),
    global("md5", "md5_string_non_prefixed", "string", "string", hashed::<Md5>),
    global("sha1", "sha1_string_non_prefixed", "string", "string", hashed::<Sha1>),
    global("sha256", "sha256_string_non_prefixed", "string", "string", hashed::<Sha256>),
    global("math.round", "math_round_float_int", "double, int", "double", round),
    global("time.truncate", "time_truncate", "timestamp, duration", "timestamp", truncate),
    global("time.toCron", "time_to_cron", "timestamp", "string", to_cron),
    global(
        "listObjToMap",
        "list_of_object_to_map_non_prefixed",
        "list(dyn), list(dyn), string, string",
        "map(dyn, dyn)",
        list_to_map,
    ),
    global(
        "transform.listObjToMap",
        "list_of_object_to_map_prefixed",
        "list(dyn), list(dyn), string, string",
        "map(dyn, dyn)",
        list_to_map,
    ),
    member("marshal", "marshal_dyn_string", "json.Json, dyn", "string", marshal),
    member("unmarshal", "unmarshal_string_dyn", "json.Json, dyn", "dyn", unmarshal),
    member("parse", "parse_string_dyn", "yaml.Yaml, string", "dyn", parse),
];

pub(in super::super) const SERVICE_ACCOUNTS: &[Overload] = &[
    global(
        "parseServiceAccount",
        "parse_service_account_string_non_prefixed",
        "string",
        "user.ServiceAccount",
        service_account,
    ),
    global(
        "user.parseServiceAccount",
        "parse_service_account_string_prefixed",
        "string",
        "user.ServiceAccount",
        service_account,
    ),
];

/// Compression.
pub(in super::super) const ARCHIVES: &[Overload] = &[
    global("gzip.compress", "compress_any_bytes", "dyn", "bytes", compress),
    global("gzip.decompress", "decompress_bytes_string", "bytes", "string", decompress),
];

fn compress<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let data: &[u8] = match call.args.first() {
        Some(Val::String(text)) => text.as_str().as_bytes(),
        Some(Val::Bytes(bytes)) => bytes,
        _ => return Err(call.no_such_overload()),
    };
    // Compressing reads every byte several times; what does not get smaller grows a little.
    call.charge_steps(data.len())?;
    call.charge(data.len().saturating_add(64))?;
    let mut compressed = Vec::new();
    let mut encoder = GzBuilder::new().operating_system(255).read(data, Compression::default());
    encoder.read_to_end(&mut compressed).map_err(|error| EvalError::other(error.to_string()))?;
    Ok(Val::Bytes(compressed.into()))
}

fn decompress<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some(Val::Bytes(data)) = call.args.first() else { return Err(call.no_such_overload()) };
    let mut decoder = MultiGzDecoder::new(data.as_ref());
    let (mut text, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = decoder.read(&mut part).map_err(|error| EvalError::Other(format!("gzip: {error}")))?;
        if read == 0 {
            break;
        }
        // A few bytes can stand for very many: they are charged as they appear.
        call.charge_steps(read)?;
        call.charge(read)?;
        text.extend_from_slice(part.get(..read).unwrap_or_default());
    }
    let text = String::from_utf8(text).map_err(|_| EvalError::other("gzip: the content is no text"))?;
    Ok(Val::text(text))
}

/// Certificates.
pub(in super::super) const CERTIFICATES: &[Overload] =
    &[global("x509.decode", "x509_decode_string", "string", "dyn", certificate)];

fn certificate<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let text = call.str(0);
    // The raw parts come out in base64 three times over.
    call.charge(text.len().saturating_mul(4))?;
    let fields = decode_x509(text).map_err(|fault| EvalError::other(fault.to_string()))?;
    Ok(doubles(&fields))
}

fn hashed<'v, D: Digest>(call: &Call<'_, 'v>) -> Result<'v> {
    call.charge_steps(call.str(0).len())?;
    let digest = D::digest(call.str(0).as_bytes());
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Ok(Val::text(hex))
}

fn round<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some(Val::Double(n)) = call.args.first() else { return Err(call.no_such_overload()) };
    let factor = 10_f64.powi(call.int(1).clamp(-400, 400) as i32);
    Ok(Val::Double((n * factor).round() / factor))
}

fn truncate<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.args {
        [Val::Timestamp(time), Val::Duration(unit)] => Ok(Val::Timestamp(time.truncate(Duration(*unit)))),
        _ => Err(call.no_such_overload()),
    }
}

fn to_cron<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some(Val::Timestamp(time)) = call.args.first() else { return Err(call.no_such_overload()) };
    let t = time.civil();
    Ok(Val::text(format!("{} {} {} {} {}", t.minute, t.hour, t.day, t.month, t.weekday)))
}

fn list_to_map<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let [Val::List(keys), Val::List(values), key_name, value_name] = call.args else {
        return Err(call.no_such_overload());
    };
    if keys.len() != values.len() {
        return Err(EvalError::Other(format!(
            "listObjToMap must take lists of equal length. list1: {}, list2: {}",
            keys.len(),
            values.len()
        )));
    }
    let field = |item: &Val<'v>, name: &Val<'v>| match item {
        Val::Map(map) => map.get(name),
        _ => None,
    };
    let mut map = BTreeMap::new();
    for (key, value) in keys.iter().zip(values.iter()) {
        call.charge(32)?;
        let (Some(key), Some(value)) = (field(&key, key_name), field(&value, value_name)) else {
            return Err(EvalError::Other(format!(
                "objects have no {} or {}",
                key_name.as_str().unwrap_or_default(),
                value_name.as_str().unwrap_or_default()
            )));
        };
        map.insert(Key::of(&key)?, value);
    }
    Ok(Val::map(map))
}

const TOO_DEEP: &str = "json: exceeded max depth";

/// A value as JSON: bytes as base64, spans as nanoseconds, moments as RFC 3339, types by name.
fn json_of(value: &Val<'_>, depth: usize) -> std::result::Result<Value, EvalError> {
    let depth = depth.checked_sub(1).ok_or_else(|| EvalError::other(TOO_DEEP))?;
    Ok(match value {
        Val::Bytes(bytes) => Value::String(STANDARD.encode(bytes).into()),
        Val::Duration(nanos) => Value::Int(*nanos),
        Val::Timestamp(time) => Value::String(timestamp_text(time).into()),
        Val::Type(kind) => Value::String(kind.runtime_name().into()),
        Val::Double(n) if !n.is_finite() => {
            return Err(EvalError::Other(format!("json: unsupported value: {}", double_text(*n))));
        }
        Val::List(list) => {
            Value::array(list.iter().map(|item| json_of(&item, depth)).collect::<std::result::Result<_, _>>()?)
        }
        Val::Map(map) => {
            let entry = |(key, item): (Val<'_>, Val<'_>)| match key.as_str() {
                Some(name) => Ok((Str::from(name), json_of(&item, depth)?)),
                None => {
                    Err(EvalError::Other(format!("unsupported type conversion from '{}' to string", key.type_name())))
                }
            };
            Value::object(map.entries().map(entry).collect::<std::result::Result<_, EvalError>>()?)
        }
        other => other.to_json().ok_or_else(|| EvalError::other("json: unsupported type"))?,
    })
}

fn marshal<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.charge(call.arg(1).charge(call.budget)?)?;
    let value = json_of(&call.arg(1), MAX_WALK)?;
    Ok(Val::text(value.to_json()))
}

/// Numbers of texts are doubles.
fn doubles(value: &Value) -> Val<'static> {
    match value {
        Value::Int(n) => Val::Double(*n as f64),
        Value::Array(items) => Val::list(items.iter().map(doubles).collect()),
        Value::Object(map) => {
            Val::map(map.iter().map(|(key, item)| (Key::String(key.clone()), doubles(item))).collect())
        }
        other => Val::owned_json(other),
    }
}

fn unmarshal<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some(text) = call.args.get(1).and_then(Val::as_str) else { return Err(call.no_such_overload()) };
    call.charge(text.len() * 8)?;
    Value::from_json(text).map(|value| doubles(&value)).map_err(|error| EvalError::other(error.to_string()))
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let text = call.str(1);
    call.charge(text.len() * 8)?;
    let documents = yaml::parse_values(text, &yaml::Limits::default());
    match documents {
        Ok(values) => Ok(values.first().map_or(Val::Null, doubles)),
        Err(error) => Err(EvalError::Other(format!("error converting YAML to JSON: {error}"))),
    }
}

/// The parts of `system:serviceaccount:NAMESPACE:NAME`; empty if the text is none.
fn service_account<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let parts = call.str(0).strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let (namespace, name) = parts.unwrap_or_default();
    let field = |name: &str, value: &str| (name.into(), Val::text(value));
    let fields = [field("Name", name), field("Namespace", namespace)].into();
    Ok(Val::Object(Arc::new(Object { name: "user.ServiceAccount".into(), fields })))
}
