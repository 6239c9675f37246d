//! Functions of templates: those of Go and Helm that the chart needs.

use ephor_expr::Value;
use ephor_expr::yaml::{parse_value, to_yaml};

/// Whether Go's templates take the value for true.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Int(n) => *n != 0,
        Value::Float(n) => *n != 0.0,
        Value::String(s) => !s.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// The value as it is printed.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(s) => s.to_string(),
        other => other.to_json(),
    }
}

fn indented(spaces: &Value, text: &str) -> Result<String, String> {
    let width = spaces.as_i64().and_then(|n| usize::try_from(n).ok()).ok_or("the indentation is no number")?;
    let pad = " ".repeat(width);
    Ok(format!("{pad}{}", text.replace('\n', &format!("\n{pad}"))))
}

pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let wrong = || Err(format!("`{name}` is called with {} arguments", arguments.len()));
    Ok(match (name, arguments) {
        ("and", [first, rest @ ..]) => {
            rest.iter().fold(first, |so_far, next| if is_true(so_far) { next } else { so_far }).clone()
        }
        ("or", [first, rest @ ..]) => {
            rest.iter().fold(first, |so_far, next| if is_true(so_far) { so_far } else { next }).clone()
        }
        ("not" | "empty", [value]) => (!is_true(value)).into(),
        ("eq", [value, others @ ..]) => others.iter().any(|other| other == value).into(),
        ("ne", [value, other]) => (value != other).into(),
        ("gt", [left, right]) => (left.as_f64() > right.as_f64()).into(),
        ("lt", [left, right]) => (left.as_f64() < right.as_f64()).into(),
        ("dict", pairs) if pairs.len() % 2 == 0 => Value::object(
            pairs
                .chunks_exact(2)
                .filter_map(|pair| match pair {
                    [key, value] => Some((text(key).into(), value.clone())),
                    _ => None,
                })
                .collect(),
        ),
        ("contains", [part, value]) => text(value).contains(&text(part)).into(),
        // Values are never changed in place.
        ("deepCopy", [value]) => value.clone(),
        ("fromJson" | "fromYaml", [value]) => {
            parse_value(&text(value)).map_err(|error| format!("`{name}`: {error}"))?
        }
        ("has", [item, Value::Array(items)]) => items.contains(item).into(),
        ("has", [_, Value::Null]) => false.into(),
        ("merge", [first, others @ ..]) => others.iter().fold(first.clone(), |merged, other| other.overlaid(&merged)),
        ("default", [fallback, value]) => if is_true(value) { value } else { fallback }.clone(),
        ("fail", [message]) => return Err(text(message)),
        ("hasSuffix", [suffix, value]) => text(value).ends_with(&text(suffix)).into(),
        ("hasKey", [map, key]) => map.get(key.as_str().unwrap_or_default()).is_some().into(),
        ("index", [value, keys @ ..]) => index(value, keys)?,
        ("indent", [spaces, value]) => indented(spaces, &text(value))?.into(),
        ("nindent", [spaces, value]) => format!("\n{}", indented(spaces, &text(value))?).into(),
        ("int", [Value::String(text)]) => text.parse::<i64>().unwrap_or_default().into(),
        ("int", [value]) => value.as_i64().unwrap_or_default().into(),
        ("kindIs", [kind, value]) => (text(kind) == kind_of(value)).into(),
        ("mergeOverwrite", [first, others @ ..]) => {
            others.iter().fold(first.clone(), |merged, other| merged.overlaid(other))
        }
        ("join", [separator, Value::Array(items)]) => {
            items.iter().map(text).collect::<Vec<_>>().join(&text(separator)).into()
        }
        ("concat", lists) => {
            Value::array(lists.iter().flat_map(|list| list.as_array().unwrap_or_default()).cloned().collect())
        }
        ("list", items) => Value::array(items.to_vec()),
        ("printf", [format, arguments @ ..]) => formatted(&text(format), arguments)?.into(),
        ("quote", [value]) => quoted(&text(value)).into(),
        ("replace", [from, to, value]) => text(value).replace(&text(from), &text(to)).into(),
        ("splitList", [separator, value]) => {
            Value::array(text(value).split(&text(separator)).map(Value::from).collect())
        }
        ("toJson", [value]) => value.to_json().into(),
        ("toString", [value]) => text(value).into(),
        ("toYaml", [value]) => to_yaml(value).trim_end_matches('\n').into(),
        ("trim", [value]) => text(value).trim().into(),
        (
            "and" | "contains" | "deepCopy" | "default" | "dict" | "empty" | "eq" | "fail" | "fromJson" | "fromYaml"
            | "gt" | "has" | "hasKey" | "hasSuffix" | "indent" | "index" | "int" | "join" | "kindIs" | "lt" | "merge"
            | "mergeOverwrite" | "ne" | "nindent" | "not" | "or" | "printf" | "quote" | "replace" | "splitList"
            | "toJson" | "toString" | "toYaml" | "trim",
            _,
        ) => return wrong(),
        _ => return Err(format!("unknown function `{name}`")),
    })
}

/// The name that Go has for the kind of a value.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// The text in quotes; YAML reads the escapes of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn index(value: &Value, keys: &[Value]) -> Result<Value, String> {
    keys.iter().try_fold(value.clone(), |value, key| match (&value, key) {
        (Value::Object(map), Value::String(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
        (Value::Array(items), key) => {
            let item = key.as_i64().and_then(|i| usize::try_from(i).ok()).and_then(|i| items.get(i));
            item.cloned().ok_or_else(|| format!("there is no item {key}"))
        }
        _ => Err(format!("there is no {key} in {}", value.type_name())),
    })
}

/// `%s`, `%v`, `%d` and `%%`.
fn formatted(format: &str, arguments: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut characters = format.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match characters.next() {
            Some('%') => out.push('%'),
            Some('s' | 'v' | 'd') => out.push_str(&text(arguments.next().ok_or("`printf` lacks an argument")?)),
            other => return Err(format!("unknown verb `%{}`", other.map(String::from).unwrap_or_default())),
        }
    }
    Ok(out)
}
