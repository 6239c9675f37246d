//! Functions of text: of the language, of its extension, of Kubernetes.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::super::error::EvalError;
use super::super::value::Val;
use super::{Call, Overload, cost, format, global, member};
use crate::scalar::go_regex::GoRegexError;

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

pub(super) const STANDARD: &[Overload] = &[
    member("contains", "contains_string", "string, string", "bool", |c| Ok(Val::Bool(c.str(0).contains(c.str(1)))))
        .cost(cost::contains)
        .bare(),
    member("endsWith", "ends_with_string", "string, string", "bool", |c| Ok(Val::Bool(c.str(0).ends_with(c.str(1)))))
        .cost(cost::traverse)
        .cost_of_head(cost::traverse_second)
        .bare(),
    member("startsWith", "starts_with_string", "string, string", "bool", |c| {
        Ok(Val::Bool(c.str(0).starts_with(c.str(1))))
    })
    .cost(cost::traverse)
    .cost_of_head(cost::traverse_second)
    .bare(),
    global("matches", "matches", "string, string", "bool", matches).cost(cost::regex).regex(1).bare(),
    member("matches", "matches_string", "string, string", "bool", matches).cost(cost::regex).regex(1).bare(),
];

pub(super) const EXTENSION: &[Overload] = &[
    member("charAt", "string_char_at_int", "string, int", "string", char_at),
    member("format", "string_format", "string, list(dyn)", "string", format::call).cost(cost::traverse),
    member("indexOf", "string_index_of_string", "string, string", "int", index_of).cost_by_name(cost::traverse_deep),
    member("indexOf", "string_index_of_string_int", "string, string, int", "int", index_of)
        .cost_by_name(cost::traverse_deep),
    member("join", "list_join", "list(string)", "string", join).cost_by_name(cost::result_twice),
    member("join", "list_join_string", "list(string), string", "string", join).cost_by_name(cost::result_twice),
    member("lastIndexOf", "string_last_index_of_string", "string, string", "int", last_index_of)
        .cost_by_name(cost::traverse_deep),
    member("lastIndexOf", "string_last_index_of_string_int", "string, string, int", "int", last_index_of)
        .cost_by_name(cost::traverse_deep),
    member("lowerAscii", "string_lower_ascii", "string", "string", |c| built(c, str::to_ascii_lowercase))
        .cost_by_name(cost::traverse),
    member("replace", "string_replace_string_string", "string, string, string", "string", replace)
        .cost_by_name(cost::traverse_twice),
    member("replace", "string_replace_string_string_int", "string, string, string, int", "string", replace)
        .cost_by_name(cost::traverse_twice),
    member("split", "string_split_string", "string, string", "list(string)", split).cost_by_name(cost::traverse_twice),
    member("split", "string_split_string_int", "string, string, int", "list(string)", split)
        .cost_by_name(cost::traverse_twice),
    member("substring", "string_substring_int", "string, int", "string", substring).cost_by_name(cost::traverse),
    member("substring", "string_substring_int_int", "string, int, int", "string", substring)
        .cost_by_name(cost::traverse),
    member("trim", "string_trim", "string", "string", |c| built(c, |text| text.trim().to_owned()))
        .cost_by_name(cost::traverse),
    member("upperAscii", "string_upper_ascii", "string", "string", |c| built(c, str::to_ascii_uppercase))
        .cost_by_name(cost::traverse),
    global("strings.quote", "strings_quote", "string", "string", |c| built(c, quote)).cost(cost::traverse),
];

pub(super) const REVERSE: &[Overload] =
    &[member("reverse", "string_reverse", "string", "string", |c| built(c, |text| text.chars().rev().collect()))];

pub(super) const ENCODERS: &[Overload] = &[
    global("base64.decode", "base64_decode_string", "string", "bytes", base64_decode)
        .cost_of_head(cost::one_and_traverse),
    global("base64.encode", "base64_encode_bytes", "bytes", "string", base64_encode)
        .cost_of_head(cost::one_and_traverse),
];

/// `json.encode`. Where costs are limited it costs more than any limit, as in the reference.
pub(super) const JSON_ENCODER: &[Overload] =
    &[global("json.encode", "json_encode_dyn", "dyn", "string", json_encode).cost(|_, _| u64::MAX)];

pub(super) const KUBERNETES_REGEX: &[Overload] = &[
    member("find", "string_find_string", "string, string", "string", find).cost_by_name(cost::regex).regex(1).bare(),
    member("findAll", "string_find_all_string", "string, string", "list(string)", find_all)
        .cost_by_name(cost::regex)
        .regex(1)
        .bare(),
    member("findAll", "string_find_all_string_int", "string, string, int", "list(string)", find_all)
        .cost_by_name(cost::regex)
        .regex(1)
        .bare(),
];

pub(super) const JSON_PATCH: &[Overload] =
    &[global("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", "string", "string", |c| {
        built(c, |text| text.replace('~', "~0").replace('/', "~1"))
    })
    .cost_by_name(cost::traverse)];

/// A text made of the first argument, about as long.
fn built<'v>(call: &Call<'_, 'v>, make: fn(&str) -> String) -> Result<'v> {
    call.charge(call.str(0).len() * 2)?;
    Ok(Val::text(make(call.str(0))))
}

fn matches<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let found = call.search(|regex, text| regex.is_match(text), |error| EvalError::other(error.to_string()))?;
    Ok(Val::Bool(found))
}

fn illegal(error: &GoRegexError) -> EvalError {
    EvalError::Other(format!("Illegal regex: {error}"))
}

fn find<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.search(|regex, text| Val::text(regex.find(text).map_or("", |found| found.as_str())), illegal)
}

fn find_all<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let limit = if call.args.len() == 3 { usize::try_from(call.int(2)).unwrap_or(usize::MAX) } else { usize::MAX };
    let found: Vec<Val<'v>> =
        call.search(|regex, text| regex.find_iter(text).take(limit).map(|m| Val::text(m.as_str())).collect(), illegal)?;
    call.charge(call.str(0).len() + found.len() * 24)?;
    Ok(Val::list(found))
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::Other(format!("index out of range: {index}"))
}

fn char_at<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let index = call.int(1);
    let length = call.str(0).chars().count() as i64;
    if index < 0 || index > length {
        return Err(out_of_range(index));
    }
    Ok(Val::text(call.str(0).chars().nth(index as usize).map(String::from).unwrap_or_default()))
}

/// The byte offset of character `index`.
fn offset_of(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

fn index_of<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let (text, part) = (call.str(0), call.str(1));
    let start = if call.args.len() == 3 { call.int(2) } else { 0 };
    let Ok(skip) = usize::try_from(start) else { return Err(out_of_range(start)) };
    if part.is_empty() {
        return Ok(Val::Int(start));
    }
    let rest = text.get(offset_of(text, skip)..).unwrap_or_default();
    let found = rest.split_once(part).map(|(before, _)| before.chars().count() + skip);
    Ok(Val::Int(found.map_or(-1, |i| i as i64)))
}

fn last_index_of<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let (text, part) = (call.str(0), call.str(1));
    let length = text.chars().count();
    let start = if call.args.len() == 3 { call.int(2) } else { length as i64 };
    let Ok(last) = usize::try_from(start) else { return Err(out_of_range(start)) };
    if part.is_empty() {
        return Ok(Val::Int(start));
    }
    if call.args.len() == 3 && last >= length {
        return Ok(Val::Int(-1));
    }
    let end = (offset_of(text, last) + part.len()).min(text.len());
    let within = (0..=end).rev().find_map(|end| text.get(..end)).unwrap_or_default();
    let found = within.rsplit_once(part).map(|(before, _)| before.chars().count());
    Ok(Val::Int(found.map_or(-1, |i| i as i64)))
}

fn join<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some(Val::List(items)) = call.args.first() else { return Err(call.no_such_overload()) };
    let separator = call.str(1);
    let mut joined = String::new();
    for (i, item) in items.iter().enumerate() {
        let Some(text) = item.as_str() else {
            if i == 0 {
                return Err(call.no_such_overload());
            }
            return Err(EvalError::Other(format!("join: invalid input: {}", super::super::evaluate::show_key(&item))));
        };
        call.charge(text.len() + separator.len())?;
        joined.push_str(if i == 0 { "" } else { separator });
        joined.push_str(text);
    }
    Ok(Val::text(joined))
}

fn replace<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let (text, old, new) = (call.str(0), call.str(1), call.str(2));
    let limit = if call.args.len() == 4 { usize::try_from(call.int(3)).unwrap_or(usize::MAX) } else { usize::MAX };
    let hits = text.matches(old).take(limit).count();
    call.charge(text.len().saturating_add(hits.saturating_mul(new.len())))?;
    Ok(Val::text(text.replacen(old, new, hits)))
}

fn split<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let (text, separator) = (call.str(0), call.str(1));
    let limit = if call.args.len() == 3 { usize::try_from(call.int(2)).unwrap_or(usize::MAX) } else { usize::MAX };
    call.charge_steps(text.len())?;
    call.charge(text.len() * 2)?;
    let parts: Vec<Val<'v>> = if limit == 0 {
        Vec::new()
    } else if separator.is_empty() {
        let mut parts: Vec<Val<'v>> = Vec::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            if parts.len() + 1 == limit {
                parts.push(Val::text(format!("{c}{}", rest.as_str())));
                break;
            }
            parts.push(Val::text(c.to_string()));
        }
        parts
    } else {
        text.splitn(limit, separator).map(Val::text).collect()
    };
    call.charge(parts.len() * 24)?;
    Ok(Val::list(parts))
}

fn substring<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let text = call.str(0);
    let length = text.chars().count() as i64;
    let start = call.int(1);
    let end = if call.args.len() == 3 { call.int(2) } else { length };
    if call.args.len() == 3 && start > end {
        return Err(EvalError::Other(format!("invalid substring range. start: {start}, end: {end}")));
    }
    for index in [start, end] {
        if index < 0 || index > length {
            return Err(out_of_range(index));
        }
    }
    let (from, to) = (offset_of(text, start as usize), offset_of(text, end as usize));
    Ok(Val::text(text.get(from..to).unwrap_or_default()))
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn base64_decode<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.charge(call.str(0).len())?;
    let text: String = call.str(0).chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    BASE64.decode(text.as_bytes()).map(|bytes| Val::Bytes(bytes.into())).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) => at,
            _ => text.len(),
        };
        EvalError::Other(format!("illegal base64 data at input byte {at}"))
    })
}

fn base64_encode<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some(Val::Bytes(bytes)) = call.args.first() else { return Err(call.no_such_overload()) };
    call.charge(bytes.len() * 2)?;
    Ok(Val::text(BASE64.encode(bytes)))
}

fn json_encode<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.charge(call.arg(0).charge(call.budget)?)?;
    let Some(value) = call.args.first().and_then(Val::to_protobuf_json) else {
        return Err(EvalError::Conversion {
            from: call.arg(0).type_name().into_owned().into(),
            to: "google.protobuf.Value".into(),
        });
    };
    Ok(Val::text(value.to_json()))
}
