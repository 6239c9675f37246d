//! Values as the reference prints them in the message about a wrong type: `<nil>`, `[a 1]`, `map[k:v]`.

use crate::scalar::number::format_g;
use crate::value::Value;

/// The text of `value`.
pub(super) fn go_text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

/// Deeper parts print as `…`.
const MAX_DEPTH: usize = 256;

fn write(out: &mut String, value: &Value, depth: usize) {
    match value {
        _ if depth > MAX_DEPTH => out.push('…'),
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        // The reference has floats only.
        Value::Int(n) => out.push_str(&format_g(*n as f64)),
        Value::Float(n) => out.push_str(&format_g(*n)),
        Value::String(s) => out.push_str(s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write(out, item, depth + 1);
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
                write(out, item, depth + 1);
            }
            out.push(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_the_reference_prints_them() {
        for (json, want) in [
            ("null", "<nil>"),
            ("1000000", "1e+06"),
            ("12345678.5", "1.23456785e+07"),
            (r#"["a",1.5,true,null,"",{"z":1,"a":[]}]"#, "[a 1.5 true <nil>  map[a:[] z:1]]"),
        ] {
            assert_eq!(go_text(&Value::from_json(json).unwrap()), want);
        }
    }
}
