//! Values as the reference prints them in the message about a wrong type: `<nil>`, `[a 1]`, `map[k:v]`.

use std::fmt::Write as _;

use crate::value::Value;

/// The text of `value`.
pub(super) fn go_text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        // The reference has floats only.
        Value::Int(n) => write_number(out, *n as f64),
        Value::Float(n) => write_number(out, *n),
        Value::String(s) => out.push_str(s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write(out, item);
            }
            out.push(']');
        }
    }
}

/// The shortest digits, with an exponent of at least two digits below 1e-4 and from 1e6 on.
fn write_number(out: &mut String, n: f64) {
    let text = format!("{n:e}");
    let parts = text.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?)));
    let _ = match parts {
        Some((_, -4..6)) => write!(out, "{n}"),
        Some((digits, e)) => write!(out, "{digits}e{}{:02}", if e < 0 { '-' } else { '+' }, e.unsigned_abs()),
        None if n.is_nan() => write!(out, "NaN"),
        None => write!(out, "{}Inf", if n > 0.0 { '+' } else { '-' }),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_the_reference_prints_them() {
        for (json, want) in [
            ("null", "<nil>"),
            ("1000000", "1e+06"),
            ("999999", "999999"),
            ("-1234567", "-1.234567e+06"),
            ("123456.789", "123456.789"),
            ("12345678.5", "1.23456785e+07"),
            ("0.0001", "0.0001"),
            ("0.000012", "1.2e-05"),
            ("1e100", "1e+100"),
            ("-0.0", "-0"),
            (r#"["a",1.5,true,null,"",{"z":1,"a":[]}]"#, "[a 1.5 true <nil>  map[a:[] z:1]]"),
        ] {
            assert_eq!(go_text(&Value::from_json(json).unwrap()), want);
        }
        assert_eq!(go_text(&Value::Float(f64::INFINITY)), "+Inf");
        assert_eq!(go_text(&Value::Float(f64::NAN)), "NaN");
    }
}
