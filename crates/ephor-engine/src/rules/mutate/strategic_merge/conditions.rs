//! temp
use ephor_expr::Value;
fn wild(p: &[u8], t: &[u8]) -> bool {
    match (p.first(), t.first()) {
        (None, None) => true,
        (Some(b'*'), _) => wild(&p[1..], t) || (!t.is_empty() && wild(p, &t[1..])),
        (Some(b'?'), Some(_)) => wild(&p[1..], &t[1..]),
        (Some(a), Some(b)) if a == b => wild(&p[1..], &t[1..]),
        _ => false,
    }
}
fn text(v: &Value) -> String {
    match v {
        Value::String(s) => s.to_string(),
        o => o.to_json(),
    }
}
pub(super) fn hold(wanted: &Value, actual: &Value) -> bool {
    match (wanted, actual) {
        (Value::Object(w), Value::Object(a)) => w.iter().all(|(k, v)| {
            let (k, c) = match super::preprocess::condition_key(k) {
                Some(k) => (k, true),
                None => (k.as_str(), false),
            };
            let _ = c;
            a.get(k).is_some_and(|x| hold(v, x))
        }),
        (Value::Array(w), Value::Array(a)) => !w.is_empty() && a.iter().all(|x| hold(&w[0], x)),
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_)) => false,
        (w, Value::Array(a)) => a.iter().all(|x| hold(w, x)),
        (w, a) => wild(text(w).as_bytes(), text(a).as_bytes()),
    }
}
