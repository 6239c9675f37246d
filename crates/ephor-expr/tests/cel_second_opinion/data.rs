//! Literals, variables and values that expressions are made of. The edges of types are among them.

use super::generate::Choices;

/// The value of a variable.
#[derive(Debug, Clone)]
pub(crate) enum Datum {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(&'static str),
    Bytes(&'static [u8]),
    List(Vec<Datum>),
    Map(Vec<(Datum, Datum)>),
    /// Nanoseconds.
    Span(i64),
    /// Seconds since 1970.
    Time(i64),
    /// JSON, which Ephor reads where it is.
    Json(&'static str),
}

/// A variable.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) name: &'static str,
    pub(crate) value: Datum,
}

/// The variables with their types as CEL writes them.
pub(crate) const VARIABLES: [(&str, &str); 15] = [
    ("b", "bool"),
    ("i", "int"),
    ("j", "int"),
    ("u", "uint"),
    ("d", "double"),
    ("s", "string"),
    ("t", "string"),
    ("y", "bytes"),
    ("ints", "list(int)"),
    ("texts", "list(string)"),
    ("counts", "map(string, int)"),
    ("names", "map(int, string)"),
    ("span", "duration"),
    ("time", "timestamp"),
    ("x", "dyn"),
];

const INTS: [i64; 12] = [0, 1, 2, -1, 3, 7, 12, -40, 1000, 1 << 53, i64::MAX, i64::MIN];
const UINTS: [u64; 6] = [0, 1, 2, 7, 1 << 63, u64::MAX];
const DOUBLES: [f64; 11] =
    [0.0, 1.0, -1.5, 2.5, 1e-7, 1e21, 123_456_789.125, 9.3e18, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
const SPANS: [i64; 8] =
    [0, 1_000_000_000, 60_000_000_000, 1, -1_500_000_000, 3_723_004_005_006, 86_400_000_000_000, i64::MAX];
const TIMES: [i64; 5] = [0, 1_732_564_800, 951_782_399, -62_135_596_800, 253_402_300_799];
const TEXTS: [&str; 10] = ["", "a", "ab", "7", "-7", "1.5", "true", "été", "a-b.c", "日本"];
const BYTES: [&[u8]; 4] = [b"", b"a", b"ab\x00", b"\xff\xfe"];
const OBJECTS: [&str; 3] = [
    r#"{"a":{"b":[1,2.5,"x",null,true],"c":"ab"},"items":[{"k":"v","n":3},{"k":"w","n":-1}],"n":7}"#,
    r#"{"a":{"b":[],"c":null},"items":[],"n":2.5,"missing":1}"#,
    r#"{"a":"text","items":[{"n":0}]}"#,
];

fn ints(items: &[i64]) -> Datum {
    Datum::List(items.iter().copied().map(Datum::Int).collect())
}

fn texts(items: &[&'static str]) -> Datum {
    Datum::List(items.iter().copied().map(Datum::Text).collect())
}

fn counts(items: &[(&'static str, i64)]) -> Datum {
    Datum::Map(items.iter().map(|(key, value)| (Datum::Text(key), Datum::Int(*value))).collect())
}

fn names(items: &[(i64, &'static str)]) -> Datum {
    Datum::Map(items.iter().map(|(key, value)| (Datum::Int(*key), Datum::Text(value))).collect())
}

/// Values of all variables.
pub(crate) fn bindings(choices: &mut Choices<'_>) -> Vec<Binding> {
    let values = [
        ("b", Datum::Bool(choices.below(2) == 1)),
        ("i", Datum::Int(choices.pick(&INTS))),
        ("j", Datum::Int(choices.pick(&INTS))),
        ("u", Datum::Uint(choices.pick(&UINTS))),
        ("d", Datum::Double(choices.pick(&DOUBLES))),
        ("s", Datum::Text(choices.pick(&TEXTS))),
        ("t", Datum::Text(choices.pick(&TEXTS))),
        ("y", Datum::Bytes(choices.pick(&BYTES))),
        ("ints", choices.pick(&[ints(&[1, 2, 3]), ints(&[]), ints(&[7]), ints(&[0, -1, i64::MAX, 0])])),
        ("texts", choices.pick(&[texts(&["a", "ab"]), texts(&[]), texts(&["7", "", "été", "a"])])),
        ("counts", choices.pick(&[counts(&[("a", 1), ("b", -2)]), counts(&[]), counts(&[("", 0), ("7", i64::MIN)])])),
        ("names", choices.pick(&[names(&[(1, "a"), (0, "ab")]), names(&[]), names(&[(7, "7"), (-1, "true")])])),
        ("span", Datum::Span(choices.pick(&SPANS))),
        ("time", Datum::Time(choices.pick(&TIMES))),
        ("x", dynamic(choices)),
        ("object", Datum::Json(choices.pick(&OBJECTS))),
    ];
    values.map(|(name, value)| Binding { name, value }).into()
}

fn dynamic(choices: &mut Choices<'_>) -> Datum {
    match choices.below(10) {
        0 => Datum::Int(choices.pick(&INTS)),
        1 => Datum::Null,
        2 => Datum::Bool(true),
        3 => Datum::Uint(choices.pick(&UINTS)),
        4 => Datum::Double(choices.pick(&DOUBLES)),
        5 => Datum::Text(choices.pick(&TEXTS)),
        6 => Datum::Bytes(choices.pick(&BYTES)),
        7 => Datum::List(vec![Datum::Int(1), Datum::Double(2.0), Datum::Text("a"), Datum::Null]),
        8 => Datum::Map(vec![(Datum::Text("a"), Datum::Uint(1)), (Datum::Int(1), Datum::Text("b"))]),
        _ => ints(&[1, 2]),
    }
}

/// Literals of the type that the variable `like` has. The first are the simplest.
pub(crate) fn literals(like: &str) -> &'static [&'static str] {
    match like {
        "b" => &["true", "false"],
        "i" => {
            &["0", "1", "-1", "2", "7", "3", "10", "-40", "9223372036854775807", "-9223372036854775808", "0x1F", "-0xa"]
        }
        "u" => &["0u", "1u", "2u", "7U", "18446744073709551615u", "0x1Fu"],
        "d" => &["0.0", "1.0", "-1.5", "2.5", "1e3", "1e-7", "1.7976931348623157e308", ".5", "-0.0", "9.3e18"],
        "s" => &[
            "''",
            "'a'",
            "\"ab\"",
            "'7'",
            "'-7'",
            "'1.5'",
            "'true'",
            "'été'",
            r"'a\n\t\\\''",
            r"r'\d'",
            "'''a'b'''",
            r"'\u00e9\x41\101'",
            r"'\U0001F600'",
            "'1e3'",
            "'+1'",
            "' 1'",
            "'NaN'",
            "'T'",
        ],
        "y" => &["b''", "b'a'", r"b'\xff'", "b'é'", r"b'\303\251'", r#"br"\n""#],
        "span" => &["duration('1s')", "duration('-1.5h')", "duration('1h2m3s4ms5us6ns')", "duration('36h')"],
        "time" => &[
            "timestamp('2024-02-29T12:30:59Z')",
            "timestamp('1969-12-31T23:59:59.5Z')",
            "timestamp(0)",
            "timestamp('2026-11-25T20:00:00+05:30')",
            "timestamp('9999-12-31T23:59:59.999999999Z')",
        ],
        "ints" => &["[1]", "[7, 7]", "[1, 2, 3]", "[-1, 0]"],
        "texts" => &["['a']", "['']", "['a', 'ab', '']"],
        "counts" => &["{'a': 1}", "{'a': 1, 'b': 2}"],
        "names" => &["{1: 'a'}", "{0: 'b', -1: 'a'}"],
        _ => &["null", "dyn(1)", "dyn('a')", "dyn(1.0)", "dyn(1u)", "dyn([1, 2])", "dyn({'a': 1})", "dyn(true)"],
    }
}

/// Patterns that Go and Rust read alike.
pub(crate) const PATTERNS: &[&str] =
    &["'a'", "'^a'", "'b$'", "'^[a-z]+$'", "'[0-9]'", "'a.?b'", "''", "'(a|b)+'", r"'\\w'"];

/// What `has()` is asked.
pub(crate) const FIELDS: &[&str] = &[
    "counts.a",
    "counts.missing",
    "object.a",
    "object.a.b",
    "object.missing",
    "object.missing.b",
    "x.a",
    "{'a': 1}.a",
];

/// Parts of the dynamic values. Elements are wrapped: see the known disagreement about their types.
pub(crate) const PATHS: &[&str] = &[
    "object.a",
    "object.n",
    "dyn(object.a.b[0])",
    "object.a.c",
    "dyn(object.items[0]).k",
    "dyn(object.items[1]).n",
    "dyn(dyn(dyn(object['items'])[0])['k'])",
    "object.missing",
    "object.a.b",
    "x.a",
    "dyn(x[1])",
    "dyn(x['a'])",
];

/// Parts of a timestamp or of a duration.
pub(crate) fn getters(span: bool) -> &'static [&'static str] {
    if span {
        &["getHours", "getMinutes", "getSeconds", "getMilliseconds"]
    } else {
        &[
            "getFullYear",
            "getMonth",
            "getDate",
            "getDayOfMonth",
            "getDayOfWeek",
            "getDayOfYear",
            "getHours",
            "getMinutes",
            "getSeconds",
            "getMilliseconds",
        ]
    }
}

/// Names of types.
pub(crate) const TYPES: &[&str] =
    &["int", "uint", "double", "string", "bytes", "bool", "list", "map", "null_type", "type"];

/// Texts that a conversion reads, most of them.
pub(crate) fn readable(function: &str) -> &'static [&'static str] {
    match function {
        "int" => &["'0'", "'7'", "'-7'", "'9223372036854775807'", "'-0'", "'+1'", "string(i)"],
        "uint" => &["'0'", "'7'", "'18446744073709551615'", "'007'", "string(u)"],
        "double" => &["'0'", "'-7'", "'1.5'", "'1e3'", "'.5'", "'NaN'", "'-Infinity'", "string(d)"],
        "bool" => &["'true'", "'false'", "'True'", "'FALSE'", "'1'", "'0'", "string(b)"],
        "duration" => &["'1s'", "'-1.5h'", "'0s'", "'0'", "'1m30s'", "'.5ms'", "'1us'", "string(span)"],
        "timestamp" => {
            &["'2024-02-29T00:00:00Z'", "'2026-11-25T20:00:00.5-08:00'", "'0001-01-01T00:00:00Z'", "string(time)"]
        }
        _ => &[],
    }
}
