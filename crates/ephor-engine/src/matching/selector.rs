//! Label selectors.

use ephor_expr::scalar::wildcard::{Wildcard, has_wildcard};
use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};

use crate::policy::{LabelSelector, Requirement, SelectorOperator};

/// A compiled label selector. As in Kubernetes, one without requirements selects everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    pairs: Vec<Pair>,
    expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq)]
enum Pair {
    /// The label has exactly this value.
    Exact(Str, Str),
    /// Some label fits both patterns; only the wildcards of `matchLabels` allow that.
    Wild(Wildcard, Wildcard),
}

/// A selector that Kubernetes would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// `In` or `NotIn` without values.
    #[error("operator `{operator:?}` of a label selector needs `values`")]
    NoValues {
        /// Where in the block.
        path: Path,
        /// Which of the two.
        operator: SelectorOperator,
    },
    /// `Exists` or `DoesNotExist` with values.
    #[error("operator `{operator:?}` of a label selector takes no `values`")]
    Values {
        /// Where in the block.
        path: Path,
        /// Which of the two.
        operator: SelectorOperator,
    },
}

impl SelectorError {
    /// Where in the compiled block the faulty requirement stands.
    pub fn path(&self) -> &Path {
        match self {
            Self::NoValues { path, .. } | Self::Values { path, .. } => path,
        }
    }
}

impl Selector {
    /// Compiles a selector that stands at `path`, which only errors use.
    pub fn compile(selector: &LabelSelector, path: &Path) -> Result<Self, SelectorError> {
        let expressions = selector.match_expressions.clone().unwrap_or_default();
        for (i, Requirement { operator, values, .. }) in expressions.iter().enumerate() {
            let empty = values.as_ref().is_none_or(Vec::is_empty);
            let wants_values = matches!(operator, SelectorOperator::In | SelectorOperator::NotIn);
            if empty == wants_values {
                let path = path.key("matchExpressions").index(i);
                let operator = *operator;
                return Err(if empty {
                    SelectorError::NoValues { path, operator }
                } else {
                    SelectorError::Values { path, operator }
                });
            }
        }
        let pairs = selector.match_labels.iter().flatten().map(|(key, value)| {
            if has_wildcard(key) || has_wildcard(value) {
                Pair::Wild(Wildcard::new(key), Wildcard::new(value))
            } else {
                Pair::Exact(key.clone(), value.clone())
            }
        });
        Ok(Self { pairs: pairs.collect(), expressions })
    }

    /// Whether there is no requirement, so that every label set is selected.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.expressions.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: Option<&Map>) -> bool {
        let label = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
        let pair = |pair: &Pair| match pair {
            Pair::Exact(key, value) => label(key) == Some(value),
            Pair::Wild(key, value) => has_pair(labels, key, value),
        };
        let expression = |r: &Requirement| {
            let value = label(&r.key);
            let listed = || value.is_some_and(|v| r.values.iter().flatten().any(|want| want == v));
            match r.operator {
                SelectorOperator::In => listed(),
                SelectorOperator::NotIn => !listed(),
                SelectorOperator::Exists => value.is_some(),
                SelectorOperator::DoesNotExist => value.is_none(),
            }
        };
        self.pairs.iter().all(pair) && self.expressions.iter().all(expression)
    }
}

/// Whether some entry of a label or annotation map fits both patterns.
pub(super) fn has_pair(map: Option<&Map>, key: &Wildcard, value: &Wildcard) -> bool {
    let Some(map) = map else { return false };
    let fits = |found: &Value| found.as_str().is_some_and(|found| value.matches(found));
    if key.is_exact() {
        return map.get(key.as_str()).is_some_and(fits);
    }
    map.iter().any(|(k, v)| key.matches(k) && fits(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(json: &str) -> Result<Selector, SelectorError> {
        let selector = ephor_expr::value::decode(&Value::from_json(json).unwrap()).unwrap();
        Selector::compile(&selector, &Path::root().key("selector"))
    }

    fn labels(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    #[test]
    fn expressions_follow_kubernetes() {
        let with = labels(r#"{"app":"web"}"#);
        let without = labels("{}");
        for (expression, present, absent) in [
            (r#"{"key":"app","operator":"In","values":["a","web"]}"#, true, false),
            (r#"{"key":"app","operator":"In","values":["a"]}"#, false, false),
            (r#"{"key":"app","operator":"In","values":["w*"]}"#, false, false),
            (r#"{"key":"app","operator":"NotIn","values":["web"]}"#, false, true),
            (r#"{"key":"app","operator":"NotIn","values":["a"]}"#, true, true),
            (r#"{"key":"app","operator":"Exists"}"#, true, false),
            (r#"{"key":"app","operator":"DoesNotExist"}"#, false, true),
        ] {
            let selector = selector(&format!(r#"{{"matchExpressions":[{expression}]}}"#)).unwrap();
            assert_eq!(selector.matches(with.as_object()), present, "{expression} with the label");
            assert_eq!(selector.matches(without.as_object()), absent, "{expression} without the label");
            assert_eq!(selector.matches(None), absent, "{expression} without labels");
        }
    }

    #[test]
    fn a_selector_without_requirements_selects_everything() {
        let selector = selector("{}").unwrap();
        assert!(selector.is_empty() && selector.matches(None));
    }

    #[test]
    fn a_requirement_that_kubernetes_refuses_is_an_error_with_its_place() {
        let error = selector(
            r#"{"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"b","operator":"NotIn","values":[]}]}"#,
        )
        .unwrap_err();
        assert_eq!(error.path().to_string(), "selector.matchExpressions[1]");
        assert_eq!(error.to_string(), "operator `NotIn` of a label selector needs `values`");
        let error = selector(r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}"#).unwrap_err();
        assert_eq!(error.to_string(), "operator `Exists` of a label selector takes no `values`");
    }
}
