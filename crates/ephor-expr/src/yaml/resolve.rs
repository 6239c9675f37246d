//! What a scalar means: the rules of Go's YAML libraries, observed on sigs.k8s.io/yaml 1.6 and yaml.v3 3.0.
//!
//! Both read numbers alike: C-style prefixes in any case, a leading `0` as octal, `_` anywhere after the first
//! character. A number that does not fit (`1e400`, hexadecimal beyond 64 bits) is a string.

use std::borrow::Cow;

use base64::Engine as _;

use super::options::Dialect;
use crate::{Str, Value};

/// A tag as far as it changes the meaning of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// No tag: plain scalars are resolved, all others are strings.
    None,
    /// `!!str` and every tag that is not listed here.
    Str,
    Int,
    Float,
    Bool,
    Null,
    Binary,
    Merge,
}

impl Tag {
    /// The tag with the given name in the namespace `tag:yaml.org,2002:`.
    pub(super) fn core(name: &str) -> Self {
        match name {
            "int" => Tag::Int,
            "float" => Tag::Float,
            "bool" => Tag::Bool,
            "null" => Tag::Null,
            "binary" => Tag::Binary,
            "merge" => Tag::Merge,
            _ => Tag::Str,
        }
    }
}

/// A resolved scalar.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// `.inf`, `-.inf` or `.nan`, which JSON does not have.
    NonFinite(&'static str),
    Text(Cow<'t, str>),
    /// The key `<<`.
    Merge,
}

/// Resolves a scalar with its tag; the error says why the tag does not fit.
pub(super) fn resolve(text: &str, plain: bool, tag: Tag, dialect: Dialect) -> Result<Scalar<'_>, String> {
    match tag {
        Tag::None if plain => return Ok(plain_scalar(text, dialect)),
        Tag::Merge if text == "<<" => return Ok(Scalar::Merge),
        Tag::None | Tag::Str | Tag::Merge => return Ok(Scalar::Text(text.into())),
        Tag::Binary => return binary(text),
        Tag::Int | Tag::Float | Tag::Bool | Tag::Null => {}
    }
    let (scalar, wanted) = (plain_scalar(text, dialect), tag);
    match (wanted, scalar) {
        (Tag::Float, Scalar::Int(n)) => Ok(Scalar::Float(n as f64)),
        (Tag::Int, s @ Scalar::Int(_))
        | (Tag::Float, s @ (Scalar::Float(_) | Scalar::NonFinite(_)))
        | (Tag::Bool, s @ Scalar::Bool(_))
        | (Tag::Null, s @ Scalar::Null) => Ok(s),
        (Tag::Int, _) => Err(format!("expected an integer after `!!int`, found `{text}`")),
        (Tag::Float, _) => Err(format!("expected a number after `!!float`, found `{text}`")),
        (Tag::Bool, _) => Err(format!("expected a boolean after `!!bool`, found `{text}`")),
        (_, _) => Err(format!("expected `null` after `!!null`, found `{text}`")),
    }
}

fn binary(text: &str) -> Result<Scalar<'_>, String> {
    let text: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .map_err(|error| format!("expected base64 after `!!binary`: {error}"))?;
    Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned().into()))
}

/// What a text is as a scalar without quotes in a Kubernetes manifest: a number, a boolean, null, or the text itself.
pub fn plain_value(text: &str) -> Value {
    let scalar = plain_scalar(text, Dialect::Kubernetes);
    scalar.into_value(Dialect::Kubernetes).unwrap_or_else(|_| Value::from(text))
}

/// Resolves an untagged plain scalar.
pub(super) fn plain_scalar(text: &str, dialect: Dialect) -> Scalar<'_> {
    let Some(first) = text.bytes().next() else { return Scalar::Null };
    // The longest word below has five letters; anything longer can only be a number.
    let word = match first {
        b'0'..=b'9' | b'+' | b'-' | b'.' => number(text),
        b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'y' | b'Y' | b'o' | b'O' | b'<' if text.len() <= 5 => {
            keyword(text, dialect)
        }
        _ => None,
    };
    word.unwrap_or(Scalar::Text(Cow::Borrowed(text)))
}

fn keyword(text: &str, dialect: Dialect) -> Option<Scalar<'static>> {
    Some(match text {
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        "<<" => Scalar::Merge,
        _ if dialect == Dialect::V3 => return None,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        _ => return None,
    })
}

fn number(text: &str) -> Option<Scalar<'static>> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(Scalar::NonFinite(".inf")),
        "-.inf" | "-.Inf" | "-.INF" => return Some(Scalar::NonFinite("-.inf")),
        ".nan" | ".NaN" | ".NAN" => return Some(Scalar::NonFinite(".nan")),
        _ => {}
    }
    // Upstream: a number that starts with its dot takes no underscores.
    if text.starts_with('.') {
        return float(text);
    }
    if text.contains('_') {
        let digits: String = text.chars().filter(|c| *c != '_').collect();
        return integer(&digits).or_else(|| float(&digits));
    }
    integer(text).or_else(|| float(text))
}

fn integer(text: &str) -> Option<Scalar<'static>> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if !digits.as_bytes().first()?.is_ascii_hexdigit() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    // Upstream: up to 64 unsigned bits are an integer, which JSON decoding then turns into a float.
    Some(i64::try_from(magnitude).map_or(Scalar::Float(magnitude as f64), Scalar::Int))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, finite.
fn float(text: &str) -> Option<Scalar<'static>> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let shaped = all_digits(whole)
        && all_digits(fraction)
        && (!whole.is_empty() || !fraction.is_empty())
        && exponent.is_none_or(|e| !e.is_empty() && all_digits(e));
    if !shaped {
        return None;
    }
    text.parse().ok().filter(|f: &f64| f.is_finite()).map(Scalar::Float)
}

impl Scalar<'_> {
    /// The value; the error says why there is none.
    pub(super) fn into_value(self, dialect: Dialect) -> Result<Value, String> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(n) => Value::Int(n),
            Scalar::Float(f) if dialect == Dialect::Kubernetes => through_json(f),
            Scalar::Float(f) => Value::Float(f),
            Scalar::NonFinite(word) => return Err(format!("expected a finite number, found `{word}`")),
            Scalar::Text(text) => Value::String(Str::new(text)),
            Scalar::Merge => Value::String(Str::new_static("<<")),
        })
    }

    /// The text of the scalar as an object's key.
    pub(super) fn into_key(self) -> Result<Str, String> {
        Ok(match self {
            Scalar::Text(text) => Str::new(text),
            Scalar::Null => return Err("expected a string as key, found null".to_owned()),
            Scalar::Bool(b) => Str::new_static(if b { "true" } else { "false" }),
            Scalar::Int(n) => smol_str::format_smolstr!("{n}"),
            Scalar::Float(f) => float_key(f),
            Scalar::NonFinite(word) => Str::new_static(word),
            Scalar::Merge => Str::new_static("<<"),
        })
    }
}

/// A float after a trip through JSON text, where those without fraction look like integers.
fn through_json(f: f64) -> Value {
    // 2^63, the first float beyond the integers.
    if f.fract() == 0.0 && f.abs() < 9_223_372_036_854_775_808.0 { Value::Int(f as i64) } else { Value::Float(f) }
}

/// Upstream writes a float key with the shortest digits that tell 32-bit floats apart.
fn float_key(f: f64) -> Str {
    let single = f as f32;
    if single.is_infinite() {
        return Str::new_static(if f > 0.0 { ".inf" } else { "-.inf" });
    }
    Str::new(go_general(&format!("{single:e}"), || single.to_string()))
}

/// Go's `%g` with the shortest digits: an exponent of at least two digits below 1e-4 and from 1e6 on. Takes the
/// number in scientific notation, and how to write it without exponent.
pub(super) fn go_general(scientific: &str, decimal: impl FnOnce() -> String) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return decimal();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
