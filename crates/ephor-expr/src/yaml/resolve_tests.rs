//! Scalars: tables of what sigs.k8s.io/yaml 1.6 was seen to make of them.

use super::options::Dialect;
use super::resolve::*;
use crate::Value;

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
