//! Printed text: what Go's libraries print for the same values, and that it reads back.

use proptest::prelude::*;

use super::*;
use crate::Value;

fn printed(json: &str) -> String {
    to_yaml(&Value::from_json(json).unwrap())
}

#[test]
fn strings_are_quoted_as_go_quotes_them() {
    for (text, want) in [
        ("x", "x"),
        ("", r#""""#),
        ("yes", r#""yes""#),
        ("y", r#""y""#),
        ("010", r#""010""#),
        ("0o7", r#""0o7""#),
        ("1_000", r#""1_000""#),
        (".5", r#"".5""#),
        ("1e3", r#""1e3""#),
        ("1e400", "1e400"),
        (".inf", r#"".inf""#),
        ("null", r#""null""#),
        ("~", r#""~""#),
        ("1:30", r#""1:30""#),
        ("2001-1-1", r#""2001-1-1""#),
        ("2001-13-01", "2001-13-01"),
        ("2001-02-29", "2001-02-29"),
        ("2001-01-01 10:00:00", r#""2001-01-01 10:00:00""#),
        ("2001-01-01T10:00:00Z", r#""2001-01-01T10:00:00Z""#),
        ("2001-01-01t1:0:0.5+01:00", r#""2001-01-01t1:0:0.5+01:00""#),
        ("2001-01-01T10:00:00", "2001-01-01T10:00:00"),
        ("2001-01-1x", "2001-01-1x"),
        ("=", "="),
        ("<<", "<<"),
        ("--- a", "'--- a'"),
        ("...", "'...'"),
        ("-", "'-'"),
        ("- ", "'- '"),
        ("- x", "'- x'"),
        ("-x", "-x"),
        ("--", "--"),
        ("?", "'?'"),
        ("?x", "?x"),
        (":", "':'"),
        (":x", ":x"),
        ("a:", "'a:'"),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("@x", "'@x'"),
        ("%x", "'%x'"),
        ("`x", "'`x'"),
        ("!x", "'!x'"),
        ("*x", "'*x'"),
        ("[a", "'[a'"),
        ("a]", "a]"),
        ("a,b", "a,b"),
        (",a", "',a'"),
        ("it's", "it's"),
        ("'a", "'''a'"),
        (" a", "' a'"),
        ("a b ", "'a b '"),
        ("a\tb", r#""a\tb""#),
        ("x\r\ny", r#""x\r\ny""#),
        ("\u{1}\u{7}\u{1b}\u{7f}", r#""\x01\a\e\x7F""#),
        ("é中", "é中"),
        ("a\u{a0}b", "a\u{a0}b"),
        ("\u{feff}", r#""\uFEFF""#),
        ("😀", r#""\U0001F600""#),
        ("http://x:80/#y", "http://x:80/#y"),
        ("{{ x }}", "'{{ x }}'"),
    ] {
        assert_eq!(to_yaml(&Value::from(text)), format!("{want}\n"));
    }
}

#[test]
fn texts_of_several_lines_are_literal_blocks() {
    for (json, want) in [
        (r#"{"a":"x\ny"}"#, "a: |-\n  x\n  y\n"),
        (r#"{"a":"x\n"}"#, "a: |\n  x\n"),
        (r#"{"a":"x\n\n"}"#, "a: |+\n  x\n\n"),
        (r#"{"a":"\n"}"#, "a: |2+\n\n"),
        (r#"{"a":" x\ny"}"#, "a: |2-\n   x\n  y\n"),
        (r#"{"a":"x \ny"}"#, "a: \"x \\ny\"\n"),
        (r#"{"a":"x\ny "}"#, "a: \"x\\ny \"\n"),
        (r#"["x\ny",["  x\n y\n"]]"#, "- |-\n  x\n  y\n- - |2\n      x\n     y\n"),
        (r#""x\ny""#, "|-\n  x\n  y\n"),
    ] {
        assert_eq!(printed(json), want, "{json}");
    }
}

#[test]
fn collections_are_laid_out_as_go_lays_them_out() {
    let json = r#"{"a":[{"b":{},"c":[1],"d":{"e":"x\ny"}},[2,[3]],[],null,"x\ny"],"d":{"e":{"f":true}},"g":1.5}"#;
    let kubernetes = "a:\n- b: {}\n  c:\n  - 1\n  d:\n    e: |-\n      x\n      y\n- - 2\n  - - 3\n- []\n- null\n- |-\n  x\n  y\nd:\n  e:\n    f: true\ng: 1.5\n";
    assert_eq!(printed(json), kubernetes);
    let v3 = "a:\n    - b: {}\n      c:\n        - 1\n      d:\n        e: |-\n            x\n            y\n    - - 2\n      - - 3\n    - []\n    - null\n    - |-\n      x\n      y\nd:\n    e:\n        f: true\ng: 1.5\n";
    assert_eq!(PrintStyle::V3.print(&Value::from_json(json).unwrap()), v3);
    let long = "k".repeat(129);
    assert_eq!(printed(&format!(r#"{{"{long}":{{"a":[1],"b":2}}}}"#)), format!("? {long}\n: a:\n  - 1\n  b: 2\n"));
}

#[test]
fn numbers_print_as_go_prints_them() {
    for (number, want) in [
        (Value::Int(1_000_000), "1000000"),
        (Value::Float(1e6), "1e+06"),
        (Value::Float(2.0), "2"),
        (Value::Float(123_456_789.5), "1.234567895e+08"),
        (Value::Float(1e-5), "1e-05"),
        (Value::Float(0.1), "0.1"),
        (Value::Float(1e21), "1e+21"),
    ] {
        assert_eq!(to_yaml(&number), format!("{want}\n"));
    }
}

#[test]
fn keys_are_sorted_with_numbers_in_order() {
    let keys =
        ["", "_", "~", "19", "100", "A", "Z", "a-b", "a.b", "a_b", "a1", "a01", "a001", "aB", "port2", "port10", "é"];
    let value = Value::object(keys.iter().rev().map(|k| ((*k).into(), Value::Int(1))).collect());
    let got: Vec<String> =
        to_yaml(&value).lines().map(|line| line.trim_end_matches(": 1").trim_matches('"').to_owned()).collect();
    assert_eq!(got, keys);
}

#[test]
fn long_text_folds_at_the_width() {
    let style = PrintStyle { width: Some(20), ..PrintStyle::KUBERNETES };
    let value = Value::from_json(r#"{"a":"aaaa bbbbbbb cccccccc dddddd  eeeeee ffffff","b":"x: aaaaaaaaaaaaaaaaaaa bb it's","c":"\taaaaaaaaaaaaaaaaaaaaaaa bbb"}"#).unwrap();
    let want = "a: aaaa bbbbbbb cccccccc\n  dddddd  eeeeee ffffff\nb: 'x: aaaaaaaaaaaaaaaaaaa\n  bb it''s'\nc: \"\\taaaaaaaaaaaaaaaaaaaaaaa\n  bbb\"\n";
    assert_eq!(style.print(&value), want);
    assert_eq!(parse_value(want).unwrap(), value);
    let spaces = Value::from("\taaaaaaaaaaaaaaaaaaaaaaa   bbb");
    assert_eq!(style.print(&spaces), "\"\\taaaaaaaaaaaaaaaaaaaaaaa\n  \\  bbb\"\n");
    assert_eq!(parse_value(&style.print(&spaces)).unwrap(), spaces);
}

/// Strings made of what readers trip over.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "\r",
        "\r\n",
        ":",
        ": ",
        " #",
        "#",
        "-",
        "- ",
        "? ",
        "|",
        ">",
        "'",
        "\"",
        "\\",
        ",",
        "[",
        "]",
        "{",
        "}",
        "&",
        "*",
        "!",
        "%",
        "@",
        "`",
        "---",
        "...",
        "yes",
        "null",
        "~",
        "010",
        "1e3",
        "0x1",
        ".inf",
        "1_0",
        "<<",
        "=",
        "a",
        "b c",
        "\u{85}",
        "\u{a0}",
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\u{0}",
        "\u{7f}",
        "\u{9f}",
        "é",
        "😀",
        "\u{fffe}",
        "\u{ffff}",
        "1:30",
        "2001-01-01",
        "\u{1b}",
        "{{",
        "}}",
    ]);
    prop_oneof![
        prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat()),
        any::<String>(),
        "[a-z]{0,12}( [a-z]{1,30}){0,8}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::Float),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::array),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::object(members.into_iter().map(|(k, v)| (k.into(), v)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn printed_values_read_back(value in value(), width in prop::option::of(1_usize..60), v3 in any::<bool>()) {
        let base = if v3 { PrintStyle::V3 } else { PrintStyle::KUBERNETES };
        let text = PrintStyle { width, ..base }.print(&value);
        let back = parse_value(&text);
        prop_assert_eq!(back.as_ref(), Ok(&value), "{}", text);
    }

    #[test]
    fn printed_json_reads_back(value in value()) {
        // YAML wants escapes for a few characters that JSON takes as they are.
        prop_assume!(!value.to_json().contains(|c: char| matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}') || c.is_control()));
        prop_assert_eq!(parse_value(&value.to_json()), Ok(value.clone()));
        prop_assert_eq!(parse_value(&value.to_json_pretty(2)), Ok(value));
    }
}
