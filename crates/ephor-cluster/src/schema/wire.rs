//! Objects of built-in kinds as protocol buffers, the default encoding of typed Go clients.
//!
//! Only reading: answers are JSON, which those clients accept. The numbers of fields are in
//! `data/kubernetes-wire.json.gz` (`cargo xtask schemas`); what JSON writes differently from the wire is below.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::{Map, Str, Value};

use super::kubernetes::{definition_name, unpack};

const DATA: &[u8] = include_bytes!("../../data/kubernetes-wire.json.gz");

static TABLE: LazyLock<Value> = LazyLock::new(|| unpack(DATA));

/// What such a document begins with.
pub const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may be nested.
const MAX_DEPTH: usize = 64;

/// Bytes that are no such document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end too early, or are of a form that protocol buffers do not have.
    #[error("malformed protocol buffer")]
    Malformed,
    /// The kind is not known by its fields.
    #[error("no protocol buffer is known for {kind:?} in version {api_version:?}")]
    UnknownKind {
        /// The version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// Reads a document.
pub fn decode(bytes: &[u8]) -> Result<Value, WireError> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or(WireError::Malformed)?;
    let (mut api_version, mut kind, mut raw) = (Str::default(), Str::default(), &[][..]);
    for part in parts(envelope) {
        match part? {
            (1, Part::Bytes(meta)) => {
                for part in parts(meta) {
                    match part? {
                        (1, Part::Bytes(text)) => api_version = read_text(text)?,
                        (2, Part::Bytes(text)) => kind = read_text(text)?,
                        _ => {}
                    }
                }
            }
            (2, Part::Bytes(inner)) => raw = inner,
            _ => {}
        }
    }
    // Options belong to every group.
    let name = definition_name(&api_version, &kind)
        .map(str::to_owned)
        .or_else(|| kind.ends_with("Options").then(|| format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}")));
    let name = name
        .filter(|name| TABLE.get(name).is_some())
        .ok_or_else(|| WireError::UnknownKind { api_version: api_version.to_string(), kind: kind.to_string() })?;
    let mut object = message(&name, raw, MAX_DEPTH)?;
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion", api_version);
        members.insert("kind", kind);
    }
    Ok(object)
}

/// A field's content.
enum Part<'b> {
    Number(u64),
    Fixed(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message, one by one.
fn parts(bytes: &[u8]) -> impl Iterator<Item = Result<(u64, Part<'_>), WireError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let part = next(&mut rest);
        if part.is_none() {
            rest = &[];
        }
        Some(part.ok_or(WireError::Malformed))
    })
}

fn next<'b>(rest: &mut &'b [u8]) -> Option<(u64, Part<'b>)> {
    let key = varint(rest)?;
    let part = match key & 7 {
        0 => Part::Number(varint(rest)?),
        1 => Part::Fixed(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Part::Bytes(take(rest, length)?)
        }
        5 => Part::Fixed(u64::from(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))),
        _ => return None,
    };
    Some((key >> 3, part))
}

fn take<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?.first().copied()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn read_text(bytes: &[u8]) -> Result<Str, WireError> {
    std::str::from_utf8(bytes).map(Str::new).map_err(|_| WireError::Malformed)
}

/// Whether a value is what Go leaves out of JSON.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, WireError> {
    let depth = depth.checked_sub(1).ok_or(WireError::Malformed)?;
    if let Some(special) = special(name, bytes, depth)? {
        return Ok(special);
    }
    // What is no type of its own is a text with a name.
    let Some(fields) = TABLE.get(name).and_then(Value::as_array) else { return Ok(Value::from(read_text(bytes)?)) };
    let mut members = Map::new();
    for part in parts(bytes) {
        let (number, part) = part?;
        let field = fields
            .iter()
            .filter_map(Value::as_array)
            .find(|field| field.first().and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok()) == Some(number));
        let Some([_, json, kind, flags]) = field else { continue };
        let (json, kind, flags) =
            (json.as_str().unwrap_or_default(), kind.as_str().unwrap_or_default(), flags.as_str().unwrap_or_default());
        if flags.contains('p') {
            let Part::Bytes(entry) = part else { return Err(WireError::Malformed) };
            let (key, value) = map_entry(kind, entry, depth)?;
            let map = members.entry(json);
            if map.as_object().is_none() {
                *map = Value::object(Map::new());
            }
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
            continue;
        }
        let value = scalar(kind, part, depth)?;
        if flags.contains('l') {
            let list = members.entry(json);
            if list.as_array().is_none() {
                *list = Value::array(Vec::new());
            }
            if let Some(list) = list.as_array_mut() {
                list.push(value);
            }
        } else if json.is_empty() {
            // The members of an embedded type are members of this one.
            for (key, value) in value.as_object().into_iter().flat_map(Map::iter) {
                members.insert(key.clone(), value.clone());
            }
        } else if flags.contains('*') || !is_empty(&value) {
            members.insert(json, value);
        }
    }
    // A list with a name is the list.
    if let [only] = fields
        && only.as_array().and_then(|field| field.get(1)).and_then(Value::as_str) == Some("")
        && let Some(list) = members.remove("")
    {
        return Ok(list);
    }
    Ok(Value::object(members))
}

fn map_entry(kind: &str, entry: &[u8], depth: usize) -> Result<(Str, Value), WireError> {
    let (mut key, mut value) = (Str::default(), None);
    for part in parts(entry) {
        match part? {
            (1, Part::Bytes(text)) => key = read_text(text)?,
            (2, part) => value = Some(scalar(kind, part, depth)?),
            _ => {}
        }
    }
    Ok((key, value.unwrap_or_else(|| Value::from(""))))
}

fn scalar(kind: &str, part: Part<'_>, depth: usize) -> Result<Value, WireError> {
    match (kind, part) {
        ("b", Part::Number(number)) => Ok(Value::Bool(number != 0)),
        // Numbers below zero travel as their two's complement.
        ("v", Part::Number(number)) => Ok(Value::Int(number.cast_signed())),
        ("d", Part::Fixed(bits)) => Ok(Value::number(f64::from_bits(bits))),
        ("s", Part::Bytes(bytes)) => Ok(Value::from(read_text(bytes)?)),
        ("y", Part::Bytes(bytes)) => Ok(Value::from(STANDARD.encode(bytes))),
        (name, Part::Bytes(bytes)) => message(name, bytes, depth),
        _ => Err(WireError::Malformed),
    }
}

/// Types that JSON writes in a way of their own.
fn special(name: &str, bytes: &[u8], depth: usize) -> Result<Option<Value>, WireError> {
    let short = name.rsplit('.').next().unwrap_or_default();
    let is_meta = name.starts_with("io.k8s.apimachinery.");
    let is_extension = name.starts_with("io.k8s.apiextensions-apiserver.");
    let field = |wanted: u64| -> Result<Option<Part<'_>>, WireError> {
        let mut found = None;
        for part in parts(bytes) {
            let (number, part) = part?;
            if number == wanted {
                found = Some(part);
            }
        }
        Ok(found)
    };
    let number = |wanted| -> Result<i64, WireError> {
        Ok(match field(wanted)? {
            Some(Part::Number(number)) => number.cast_signed(),
            _ => 0,
        })
    };
    let text = |wanted| match field(wanted)? {
        Some(Part::Bytes(bytes)) => read_text(bytes),
        _ => Ok(Str::default()),
    };
    Ok(Some(match short {
        "Time" | "MicroTime" if is_meta => {
            if bytes.is_empty() {
                Value::Null
            } else {
                Value::from(timestamp(number(1)?, number(2)?, short == "MicroTime"))
            }
        }
        "Quantity" if is_meta => Value::from(text(1)?),
        "IntOrString" if is_meta => {
            if number(1)? == 0 {
                Value::Int(number(2)?)
            } else {
                Value::from(text(3)?)
            }
        }
        "FieldsV1" | "RawExtension" if is_meta || name.contains(".runtime.") => raw_json(&text(1)?)?,
        "JSON" if is_extension => raw_json(&text(1)?)?,
        "JSONSchemaPropsOrBool" if is_extension => match field(2)? {
            Some(Part::Bytes(schema)) => message(&sibling(name, "JSONSchemaProps"), schema, depth)?,
            _ => Value::Bool(number(1)? != 0),
        },
        "JSONSchemaPropsOrArray" if is_extension => match field(1)? {
            Some(Part::Bytes(schema)) => message(&sibling(name, "JSONSchemaProps"), schema, depth)?,
            _ => Value::array(Vec::new()),
        },
        _ => return Ok(None),
    }))
}

fn sibling(name: &str, other: &str) -> String {
    format!("{}.{other}", name.rsplit_once('.').map_or("", |(package, _)| package))
}

fn raw_json(text: &str) -> Result<Value, WireError> {
    if text.is_empty() { Ok(Value::Null) } else { Value::from_json(text).map_err(|_| WireError::Malformed) }
}

/// Seconds since 1970 as RFC 3339.
fn timestamp(seconds: i64, nanos: i64, micro: bool) -> String {
    let days = seconds.div_euclid(86_400);
    let time = seconds.rem_euclid(86_400);
    // The calendar repeats every 400 years; a year here begins in March, so that the leap day is its last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let fraction = if micro { format!(".{:06}", nanos / 1_000) } else { String::new() };
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{fraction}Z", time / 3_600, time / 60 % 60, time % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        bytes.extend(content);
        bytes
    }

    fn document(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn an_object_is_read_as_json_has_it() {
        let port = [vec![0x18, 80], field(4, b"TCP")].concat();
        let limit = [field(1, b"cpu"), field(2, &field(1, b"500m"))].concat();
        let container = [field(1, b"c"), field(2, b"x:1"), field(6, &port), field(8, &field(1, &limit))].concat();
        let metadata = [field(1, b"p"), field(3, b""), field(8, &[0x08, 0x80, 0xa3, 0x05])].concat();
        let volume = [field(1, b"v"), field(2, &field(2, b""))].concat();
        let spec = [field(1, &volume), field(2, &container), vec![0x58, 0]].concat();
        let pod = [field(1, &metadata), field(2, &spec)].concat();
        assert_eq!(
            decode(&document("v1", "Pod", &pod)).unwrap().to_json(),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"1970-01-02T00:00:00Z","name":"p"},"spec":{"containers":[{"image":"x:1","name":"c","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"500m"}}}],"volumes":[{"emptyDir":{},"name":"v"}]}}"#
        );
        // A pointer to zero is there, a plain zero is not.
        let deployment = field(2, &[0x08, 0, 0x28, 0]);
        let read = decode(&document("apps/v1", "Deployment", &deployment)).unwrap();
        assert_eq!(read.get("spec").unwrap().to_json(), r#"{"replicas":0}"#);
    }

    #[test]
    fn every_number_of_a_message_is_one_field() {
        let job = field(2, &field(9, b"NonIndexed"));
        let read = decode(&document("batch/v1", "Job", &job)).unwrap();
        assert_eq!(read.get("spec").unwrap().to_json(), r#"{"completionMode":"NonIndexed"}"#);
        for (name, fields) in TABLE.as_object().unwrap().iter() {
            let numbers = fields.as_array().unwrap().iter().filter_map(|field| field.as_array()?.first()?.as_i64());
            let mut numbers: Vec<i64> = numbers.collect();
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all, "{name}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        assert_eq!(decode(b"{}"), Err(WireError::Malformed));
        assert_eq!(decode(b"k8s\0\x12\xff"), Err(WireError::Malformed));
        assert!(matches!(decode(&document("x/v1", "Odd", b"")), Err(WireError::UnknownKind { .. })));
        let endless = [0xff_u8; 32];
        assert_eq!(decode(&[MAGIC, &endless].concat()), Err(WireError::Malformed));
    }
}
