//! Label selectors.
//!
//! Both forms of Kubernetes: the text of URLs and commands (`app=web,tier in (a,b),!legacy`) and the object of
//! specifications (`matchLabels`, `matchExpressions`). Wildcards, which policies allow, are none of a cluster's
//! business.

use std::fmt;

use ephor_expr::{Map, Str, Value};

use super::SelectorError;

/// A conjunction of requirements on labels; without any it selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// What must hold, all of it.
    pub requirements: Vec<Requirement>,
}

/// What one label must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: Str,
    /// The test of its value.
    pub test: Test,
}

/// A test of a label's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The label is there, with one of these values.
    In(Vec<Str>),
    /// The label is missing, or has none of these values.
    NotIn(Vec<Str>),
    /// The label is there.
    Exists,
    /// The label is missing.
    Missing,
    /// The label is an integer above this.
    Above(i64),
    /// The label is an integer below this.
    Below(i64),
}

impl LabelSelector {
    /// Reads the text form. Empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for term in split_terms(text) {
            let fail = |problem: String| SelectorError { text: text.to_owned(), problem };
            requirements.push(parse_term(term.trim()).map_err(fail)?);
        }
        Ok(Self { requirements })
    }

    /// Selects objects whose label has one of these values.
    pub fn one_of(key: impl Into<Str>, values: impl IntoIterator<Item = impl Into<Str>>) -> Self {
        let test = Test::In(values.into_iter().map(Into::into).collect());
        Self { requirements: vec![Requirement { key: key.into(), test }] }
    }

    /// Selects objects that have the label.
    pub fn has(key: impl Into<Str>) -> Self {
        Self { requirements: vec![Requirement { key: key.into(), test: Test::Exists }] }
    }

    /// Selects what both select.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.requirements.extend(other.requirements);
        self
    }

    /// Reads the object form, for example a Service's or a policy's selector. Null and an empty object select
    /// everything.
    pub fn from_object(selector: &Value) -> Result<Self, SelectorError> {
        let fail = |problem: &str| SelectorError { text: selector.to_json(), problem: problem.to_owned() };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            let value = value.as_str().ok_or_else(|| fail("label values are strings"))?;
            requirements.push(Requirement { key: key.clone(), test: Test::In(vec![value.into()]) });
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default() {
            let key = expression.str_at(&["key"]).ok_or_else(|| fail("an expression has no `key`"))?;
            let values: Vec<Str> = expression
                .get("values")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .iter()
                .filter_map(|v| v.as_str().map(Str::new))
                .collect();
            let test = match (expression.str_at(&["operator"]), values.is_empty()) {
                (Some("In"), false) => Test::In(values),
                (Some("NotIn"), false) => Test::NotIn(values),
                (Some("Exists"), true) => Test::Exists,
                (Some("DoesNotExist"), true) => Test::Missing,
                (Some("In" | "NotIn"), true) => {
                    return Err(fail("for 'in', 'notin' operators, values set can't be empty"));
                }
                (Some("Exists" | "DoesNotExist"), false) => {
                    return Err(fail("values set must be empty for exists and does not exist"));
                }
                (operator, _) => {
                    return Err(fail(&format!(
                        "{:?} is not a valid label selector operator",
                        operator.unwrap_or_default()
                    )));
                }
            };
            requirements.push(Requirement { key: key.into(), test });
        }
        Ok(Self { requirements })
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: Option<&Map>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.and_then(|l| l.get(&requirement.key)).and_then(Value::as_str);
            let number = || value.and_then(|v| v.parse::<i64>().ok());
            match &requirement.test {
                Test::In(values) => value.is_some_and(|v| values.iter().any(|want| want == v)),
                Test::NotIn(values) => value.is_none_or(|v| values.iter().all(|bad| bad != v)),
                Test::Exists => value.is_some(),
                Test::Missing => value.is_none(),
                Test::Above(bound) => number().is_some_and(|n| n > *bound),
                Test::Below(bound) => number().is_some_and(|n| n < *bound),
            }
        })
    }
}

impl fmt::Display for LabelSelector {
    /// The text form, which [`LabelSelector::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Requirement { key, test }) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match test {
                Test::In(values) if values.len() == 1 => write!(f, "{key}={}", values.concat())?,
                Test::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values.concat())?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Exists => write!(f, "{key}")?,
                Test::Missing => write!(f, "!{key}")?,
                Test::Above(bound) => write!(f, "{key}>{bound}")?,
                Test::Below(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

/// The terms between the commas that stand outside parentheses.
fn split_terms(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let whole = if text.trim().is_empty() { None } else { Some(text) };
    whole.into_iter().flat_map(move |text| {
        text.split(move |c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        })
    })
}

fn parse_term(term: &str) -> Result<Requirement, String> {
    if let Some(key) = term.strip_prefix('!') {
        return Ok(Requirement { key: parse_key(key)?, test: Test::Missing });
    }
    let operator = term.find(|c: char| c.is_whitespace() || "=!<>(".contains(c));
    let (key, rest) = term.split_at(operator.unwrap_or(term.len()));
    let key = parse_key(key)?;
    let rest = rest.trim_start();
    let test = if rest.is_empty() {
        Test::Exists
    } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        Test::In(vec![parse_value(value)?])
    } else if let Some(value) = rest.strip_prefix("!=") {
        Test::NotIn(vec![parse_value(value)?])
    } else if let Some(bound) = rest.strip_prefix('>') {
        Test::Above(parse_bound(bound)?)
    } else if let Some(bound) = rest.strip_prefix('<') {
        Test::Below(parse_bound(bound)?)
    } else if let Some(set) = rest.strip_prefix("notin") {
        Test::NotIn(parse_set(set)?)
    } else if let Some(set) = rest.strip_prefix("in") {
        Test::In(parse_set(set)?)
    } else {
        return Err(format!("found '{rest}', expected: in, notin, =, ==, !=, gt, lt"));
    };
    Ok(Requirement { key, test })
}

fn parse_key(key: &str) -> Result<Str, String> {
    let key = key.trim();
    if key.is_empty() {
        return Err("found '', expected: identifier".to_owned());
    }
    if key.contains(|c: char| c.is_whitespace() || "=!<>(),".contains(c)) {
        return Err(format!("found '{key}', expected: identifier"));
    }
    Ok(key.into())
}

fn parse_value(value: &str) -> Result<Str, String> {
    let value = value.trim();
    if value.contains(|c: char| c.is_whitespace() || "=!<>(),".contains(c)) {
        return Err(format!("found '{value}', expected: ',' or 'end of string'"));
    }
    Ok(value.into())
}

fn parse_bound(bound: &str) -> Result<i64, String> {
    bound.trim().parse().map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())
}

fn parse_set(set: &str) -> Result<Vec<Str>, String> {
    let inner = set
        .trim()
        .strip_prefix('(')
        .ok_or_else(|| format!("found '{}' expected: '('", set.trim()))?
        .strip_suffix(')')
        .ok_or_else(|| format!("found '{}', expected: ',' or ')'", set.trim()))?;
    inner.split(',').map(parse_value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    #[test]
    fn text_selectors_select_as_kubernetes_says() {
        let with = labels(r#"{"app":"web","tier":"b","n":"7","a.b/c":""}"#);
        let without = labels("{}");
        for (text, present, absent) in [
            ("", true, true),
            (" ", true, true),
            ("app=web", true, false),
            ("app==web", true, false),
            ("app = web , tier=b", true, false),
            ("app=other", false, false),
            ("app!=web", false, true),
            ("app!=other", true, true),
            ("app", true, false),
            ("!app", false, true),
            ("! app", false, true),
            ("tier in (a,b)", true, false),
            ("tier in(a, b),app=web", true, false),
            ("tier in (a)", false, false),
            ("tier notin (a,c)", true, true),
            ("tier notin (b)", false, true),
            ("n>6", true, false),
            ("n>7", false, false),
            ("n < 8", true, false),
            ("app>1", false, false),
            ("a.b/c=", true, false),
            ("app=", false, false),
            ("a.b/c in (,x)", true, false),
            ("notin=x", false, false),
            ("in", false, false),
        ] {
            let selector = LabelSelector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(selector.matches(with.as_object()), present, "{text} with labels");
            assert_eq!(selector.matches(without.as_object()), absent, "{text} with empty labels");
            assert_eq!(selector.matches(None), absent, "{text} without labels");
            assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector, "{text} printed as {selector}");
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in
            ["=a", "a,", ",", "a b", "a in", "a in (b", "a in b)", "a=b=c", "a=b c", "!", "a>x", "a notin", "!a=b"]
        {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn object_selectors_read_as_their_text_form() {
        for (object, text) in [
            ("null", ""),
            ("{}", ""),
            (r#"{"matchLabels":{"a":"b","c":"d"}}"#, "a=b,c=d"),
            (
                r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"In","values":["x","y"]},{"key":"d","operator":"NotIn","values":["z"]},{"key":"e","operator":"Exists"},{"key":"f","operator":"DoesNotExist","values":[]}]}"#,
                "a=b,c in (x,y),d!=z,e,!f",
            ),
        ] {
            assert_eq!(LabelSelector::from_object(&labels(object)).unwrap().to_string(), text, "{object}");
        }
        for object in [
            r#"{"matchLabels":{"a":1}}"#,
            r#"{"matchExpressions":[{"operator":"Exists"}]}"#,
            r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#,
            r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}"#,
            r#"{"matchExpressions":[{"key":"a","operator":"Like","values":["b"]}]}"#,
        ] {
            assert!(LabelSelector::from_object(&labels(object)).is_err(), "{object}");
        }
    }
}
