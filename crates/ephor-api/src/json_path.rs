//! The paths of printer columns: `.spec.rules[0].name`, `.metadata.labels['a/b']`,
//! `.status.conditions[?(@.type == "Ready")].status`.

use ephor_expr::{Str, Value};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A member of an object.
    Member(Str),
    /// An item of an array; negative ones count from its end.
    Item(i64),
    /// All members or items.
    All,
    /// Items whose member has this text.
    Where(Vec<Str>, Str),
}

/// Reads a path; `None` for what is not understood.
pub fn parse(text: &str) -> Option<Vec<Step>> {
    let mut rest = text.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let mut name = String::new();
            let mut end = after.len();
            let mut chars = after.char_indices();
            while let Some((index, c)) = chars.next() {
                match c {
                    '\\' => name.extend(chars.next().map(|(_, c)| c)),
                    '.' | '[' => {
                        end = index;
                        break;
                    }
                    c => name.push(c),
                }
            }
            if !name.is_empty() {
                steps.push(if name == "*" { Step::All } else { Step::Member(name.into()) });
            }
            rest = after.get(end..)?;
        } else {
            let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(bracket(inner.trim())?);
            rest = after;
        }
    }
    Some(steps)
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(quoted) = inner.strip_prefix(['\'', '"']) {
        return Some(Step::Member(quoted.trim_end_matches(['\'', '"']).into()));
    }
    if let Some(filter) = inner.strip_prefix("?(") {
        let (path, value) = filter.trim_end_matches(')').split_once("==")?;
        let path = path.trim().strip_prefix("@.")?.split('.').map(Str::new).collect();
        return Some(Step::Where(path, value.trim().trim_matches(['"', '\'']).into()));
    }
    inner.parse().ok().map(Step::Item)
}

/// The values that a path leads to.
pub fn find<'v>(value: &'v Value, steps: &[Step]) -> Vec<&'v Value> {
    let mut found = vec![value];
    for step in steps {
        found = found.into_iter().flat_map(|value| below(value, step)).collect();
    }
    found
}

fn below<'v>(value: &'v Value, step: &Step) -> Vec<&'v Value> {
    let items = value.as_array().unwrap_or_default();
    match step {
        Step::Member(name) => value.get(name).into_iter().collect(),
        Step::Item(index) => {
            let index = if *index < 0 { index + i64::try_from(items.len()).unwrap_or(0) } else { *index };
            usize::try_from(index).ok().and_then(|index| items.get(index)).into_iter().collect()
        }
        Step::All => match value.as_object() {
            Some(members) => members.values().collect(),
            None => items.iter().collect(),
        },
        Step::Where(path, wanted) => {
            let path: Vec<&str> = path.iter().map(Str::as_str).collect();
            items.iter().filter(|item| item.str_at(&path) == Some(wanted)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_columns_lead_to_values() {
        let object = Value::from_json(
            r#"{"metadata":{"labels":{"a.b/c":"x"}},"status":{"conditions":[{"type":"Other","status":"no"},{"type":"Ready","status":"True"}]},"list":[1,2]}"#,
        )
        .unwrap();
        for (path, want) in [
            (".status.conditions[?(@.type == \"Ready\")].status", "\"True\""),
            (".status.conditions[?(@.type=='Ready')].status", "\"True\""),
            (".metadata.labels['a.b/c']", "\"x\""),
            (r".metadata.labels.a\.b/c", "\"x\""),
            (".list[1]", "2"),
            (".list[-1]", "2"),
            (".list[*]", "1 2"),
            (".missing.deep", ""),
        ] {
            let found: Vec<String> = find(&object, &parse(path).unwrap()).into_iter().map(Value::to_json).collect();
            assert_eq!(found.join(" "), want, "{path}");
        }
        assert_eq!(parse("nonsense"), None);
    }
}
