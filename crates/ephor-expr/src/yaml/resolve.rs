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

#[cfg(test)]
mod tests {
    use super::*;

    fn kubernetes(text: &str) -> Result<Value, String> {
        plain_scalar(text, Dialect::Kubernetes).into_value(Dialect::Kubernetes)
    }

    #[test]
    fn words_are_read_as_sigs_yaml_reads_them() {
        for word in ["yes", "Yes", "YES", "y", "Y", "on", "On", "ON", "true", "True", "TRUE"] {
            assert_eq!(kubernetes(word), Ok(Value::Bool(true)), "{word}");
        }
        for word in ["no", "No", "NO", "n", "N", "off", "Off", "OFF", "false", "False", "FALSE"] {
            assert_eq!(kubernetes(word), Ok(Value::Bool(false)), "{word}");
        }
        for word in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(kubernetes(word), Ok(Value::Null), "{word}");
        }
        for word in ["oN", "tRue", "nULL", "=", "<<", "nan", "inf", "Infinity", "yess", ".iNF", "+.nan", "falsey"] {
            assert_eq!(kubernetes(word), Ok(Value::from(word)), "{word}");
        }
    }

    #[test]
    fn integers_are_read_as_sigs_yaml_reads_them() {
        for (text, want) in [
            ("0", 0),
            ("-0", 0),
            ("00", 0),
            ("0_", 0),
            ("+12", 12),
            ("010", 8),
            ("-010", -8),
            ("0o10", 8),
            ("0O10", 8),
            ("0777", 511),
            ("02472256", 685_230),
            ("0x1F", 31),
            ("0X1f", 31),
            ("+0x1F", 31),
            ("-0x1F", -31),
            ("0x_1", 1),
            ("0x0A_74_AE", 685_230),
            ("0b11", 3),
            ("-0b11", -3),
            ("0b1010_0111", 167),
            ("1_000", 1000),
            ("1__0", 10),
            ("1_", 1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            // Not octal, but floats without fraction.
            ("089", 89),
            ("08", 8),
            ("0888", 888),
        ] {
            assert!(matches!(kubernetes(text), Ok(Value::Int(n)) if n == want), "{text}: {:?}", kubernetes(text));
        }
    }

    #[test]
    fn floats_are_read_as_sigs_yaml_reads_them() {
        for (text, want) in [
            ("1.5", 1.5),
            (".5", 0.5),
            ("-.5", -0.5),
            ("+.5", 0.5),
            ("09.5", 9.5),
            ("1_0.5", 10.5),
            ("1_000.5_0", 1000.5),
            ("6.8523015e+5", 685_230.15),
            ("5e-7", 5e-7),
            ("1e20", 1e20),
            ("1e21", 1e21),
            ("9223372036854775808", 9_223_372_036_854_775_808.0),
            ("18446744073709551615", 18_446_744_073_709_551_615.0),
            ("0xFFFFFFFFFFFFFFFF", 18_446_744_073_709_551_615.0),
            ("-9223372036854775809", -9_223_372_036_854_775_809.0),
            ("123456789012345678901234567890", 1.234_567_890_123_456_8e29),
        ] {
            assert!(matches!(kubernetes(text), Ok(Value::Float(n)) if n == want), "{text}: {:?}", kubernetes(text));
        }
        for (text, want) in
            [("1.0", 1), ("1.", 1), ("1e3", 1000), ("1E+3", 1000), ("-0.0", 0), ("1e-400", 0), (".1e3", 100)]
        {
            assert!(matches!(kubernetes(text), Ok(Value::Int(n)) if n == want), "{text}: {:?}", kubernetes(text));
        }
        for text in [".inf", "+.Inf", "-.INF", ".nan", ".NaN"] {
            assert!(kubernetes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_number_is_a_string() {
        for text in [
            "_1",
            "0x",
            "0b",
            "0o",
            "0b102",
            "0x1G",
            "00x1",
            "1e400",
            "1.2.3",
            "1:30",
            "190:20:30",
            "0x1p3",
            ".",
            "+",
            "-",
            "--1",
            "1-1",
            "1,000",
            "e3",
            "1e",
            "1e+",
            "0xFFFFFFFFFFFFFFFFFF",
            "0o17777777777777777777777",
            ".5_0",
            "0x+1",
            "2001-01-01",
            "2001-12-14t21:59:43.10-05:00",
            "10m",
            "1Gi",
            "0x-1",
            "+-1",
            "1.5.",
            "..5",
        ] {
            assert_eq!(kubernetes(text), Ok(Value::from(text)), "{text}");
        }
    }

    #[test]
    fn the_v3_dialect_keeps_boolean_words_and_floats() {
        let v3 = |text| plain_scalar(text, Dialect::V3).into_value(Dialect::V3).unwrap();
        for word in ["yes", "No", "on", "OFF", "y", "N"] {
            assert_eq!(v3(word), Value::from(word));
        }
        assert_eq!(v3("True"), Value::Bool(true));
        assert_eq!(v3("010"), Value::Int(8));
        assert!(matches!(v3("1.0"), Value::Float(_)));
    }

    #[test]
    fn keys_become_text_as_sigs_yaml_writes_them() {
        for (text, want) in [
            ("on", "true"),
            ("n", "false"),
            ("0x10", "16"),
            ("010", "8"),
            ("1.5", "1.5"),
            ("1.0", "1"),
            ("12e3", "12000"),
            ("1e6", "1e+06"),
            ("1e-4", "0.0001"),
            ("1e-5", "1e-05"),
            ("0.00001234", "1.234e-05"),
            ("1.23456789", "1.2345679"),
            ("1234567.5", "1.2345675e+06"),
            ("1e39", ".inf"),
            ("-1e300", "-.inf"),
            ("-0.0", "-0"),
            ("1e-50", "0"),
            (".inf", ".inf"),
            ("2001-01-01", "2001-01-01"),
        ] {
            assert_eq!(plain_scalar(text, Dialect::Kubernetes).into_key().unwrap(), want, "{text}");
        }
        assert!(plain_scalar("~", Dialect::Kubernetes).into_key().is_err());
    }

    #[test]
    fn tags_decide_or_refuse() {
        let tagged = |text, tag| resolve(text, true, tag, Dialect::Kubernetes);
        assert_eq!(tagged("123", Tag::Str), Ok(Scalar::Text("123".into())));
        assert_eq!(tagged("yes", Tag::Bool), Ok(Scalar::Bool(true)));
        assert_eq!(tagged("3", Tag::Float), Ok(Scalar::Float(3.0)));
        assert_eq!(resolve("3", false, Tag::Int, Dialect::Kubernetes), Ok(Scalar::Int(3)));
        assert_eq!(resolve("", false, Tag::Null, Dialect::Kubernetes), Ok(Scalar::Null));
        assert_eq!(tagged("aGk=", Tag::Binary), Ok(Scalar::Text("hi".into())));
        assert_eq!(tagged("<<", Tag::Merge), Ok(Scalar::Merge));
        for (text, tag) in [
            ("abc", Tag::Int),
            ("1.5", Tag::Int),
            ("abc", Tag::Float),
            ("1", Tag::Bool),
            ("x", Tag::Null),
            ("?", Tag::Binary),
        ] {
            assert!(tagged(text, tag).is_err(), "{text} {tag:?}");
        }
    }
}
