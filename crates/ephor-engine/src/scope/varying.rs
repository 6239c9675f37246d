//! Expressions that give another value each time: what is rendered from them is rendered once.

use ephor_expr::Value;
use ephor_expr::jmespath::Expression;
use ephor_expr::value::{Path, Segment};

use super::scan::variables;

/// An expression that reads chance or the clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Varying {
    /// Where it stands in the document.
    pub path: Path,
    /// The function that does so.
    pub call: &'static str,
}

/// Members whose text is an expression without braces around it.
const BARE: [&str; 2] = ["jmesPath", "list"];

/// All such expressions in the context, the preconditions and the `generate` block of a rule's document.
pub fn varying(rule: &Value) -> Vec<Varying> {
    let mut found = Vec::new();
    for key in ["context", "preconditions", "generate"] {
        if let Some(part) = rule.get(key) {
            walk(part, &mut vec![Segment::Key(key.into())], &mut found);
        }
    }
    found
}

fn walk(value: &Value, at: &mut Vec<Segment>, found: &mut Vec<Varying>) {
    match value {
        Value::String(text) => {
            let bare = matches!(at.last(), Some(Segment::Key(key)) if BARE.contains(&key.as_str()));
            let places = variables(text);
            let whole = (bare && places.is_empty()).then_some(text.as_str());
            for body in places.iter().map(|place| place.body(text)).chain(whole) {
                if let Some(call) = Expression::compile(body).ok().and_then(|expression| expression.varying_call()) {
                    found.push(Varying { path: Path(at.clone()), call });
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                at.push(Segment::Index(i));
                walk(item, at, found);
                at.pop();
            }
        }
        Value::Object(map) => {
            for (key, member) in map.iter() {
                at.push(Segment::Key(key.clone()));
                walk(&Value::from(key.clone()), at, found);
                walk(member, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml;

    use super::*;

    #[test]
    fn chance_and_the_clock_are_found_wherever_expressions_stand() {
        let rule = yaml::parse_value(
            "
            name: time_now()
            context:
            - {name: a, variable: {jmesPath: \"random('[a-z]')\"}}
            - {name: b, variable: {jmesPath: \"time_since('', '2030-01-01T00:00:00Z', '2031-01-01T00:00:00Z')\"}}
            generate:
              name: \"x-{{ time_now_utc() }}\"
              foreach: [{list: \"time_since('', a, '')\", data: {\"{{ random('a') }}\": \"random('a')\"}}]
            ",
        )
        .unwrap();
        let found: Vec<(String, &str)> = varying(&rule).into_iter().map(|v| (v.path.slashed(), v.call)).collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(path, call)| (path.as_str(), *call)).collect();
        assert_eq!(
            found,
            [
                ("/context/0/variable/jmesPath", "random"),
                ("/generate/foreach/0/data/{{ random('a') }}", "random"),
                ("/generate/foreach/0/list", "time_since"),
                ("/generate/name", "time_now_utc"),
            ]
        );
    }
}
