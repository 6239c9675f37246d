//! `--test-case-selector`: which results of a test count.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::scalar::wildcard::Wildcard;

use super::suite::Expectation;

/// Which results to check, by policy, rule and resource; wildcards are allowed.
#[derive(Debug, Clone)]
pub struct Selection {
    policy: Wildcard,
    rule: Wildcard,
    resource: Wildcard,
}

/// A selector that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A part without `=`.
    #[error("`{0}` is not of the form key=value")]
    NoValue(String),
    /// Another key.
    #[error("`{0}` is not one of `policy`, `rule`, `resource`{hint}", hint = hint(.0))]
    UnknownKey(String),
}

fn hint(key: &str) -> String {
    nearest(key, ["policy", "rule", "resource"]).map_or_else(String::new, |near| format!(": did you mean `{near}`?"))
}

impl Default for Selection {
    fn default() -> Self {
        let all = || Wildcard::new("*");
        Self { policy: all(), rule: all(), resource: all() }
    }
}

impl std::str::FromStr for Selection {
    type Err = SelectionError;

    /// Reads `policy=a,rule=b*,resource=c`; keys left out select everything.
    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let mut selection = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| SelectionError::NoValue(part.to_owned()))?;
            let pattern = Wildcard::new(value.trim());
            match key.trim() {
                "policy" => selection.policy = pattern,
                "rule" => selection.rule = pattern,
                "resource" => selection.resource = pattern,
                other => return Err(SelectionError::UnknownKey(other.to_owned())),
            }
        }
        Ok(selection)
    }
}

impl Selection {
    /// The result with the resources that are selected; `None` if it is not selected at all.
    pub fn narrow(&self, mut result: Expectation) -> Option<Expectation> {
        if !self.policy.matches(&result.policy) || result.rule().is_some_and(|rule| !self.rule.matches(rule)) {
            return None;
        }
        let selected = |name: &Str| {
            self.resource.matches(name) || name.split_once('/').is_some_and(|(_, bare)| self.resource.matches(bare))
        };
        if let Some(resources) = result.resources.as_mut().filter(|resources| !resources.is_empty()) {
            resources.retain(selected);
            if resources.is_empty() {
                return None;
            }
        }
        Some(result)
    }
}

impl Selection {
    /// For a selector that selects none of `results`: the first name in it that none has, with the nearest that one
    /// has.
    pub fn unknown_name<'r>(&'r self, results: &'r [Expectation]) -> Option<(&'r str, &'r str)> {
        let of = |pattern: &'r Wildcard, names: Vec<&'r str>| {
            let word = pattern.as_str();
            let known = !pattern.is_exact() || names.contains(&word);
            (!known).then(|| nearest(word, names)).flatten().map(|near| (word, near))
        };
        let resources = || results.iter().flat_map(|result| result.resources.iter().flatten());
        of(&self.policy, results.iter().map(|result| result.policy.as_str()).collect())
            .or_else(|| of(&self.rule, results.iter().filter_map(Expectation::rule).collect()))
            .or_else(|| of(&self.resource, resources().map(Str::as_str).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> Expectation {
        Expectation {
            policy: "ns/p".into(),
            rule: Some("r".into()),
            resources: Some(vec!["a".into(), "x/b".into()]),
            ..Expectation::default()
        }
    }

    #[test]
    fn a_selector_keeps_the_named_resources() {
        let narrowed = |text: &str| {
            let selection: Selection = text.parse().unwrap();
            selection.narrow(result()).map(|r| r.resources.unwrap_or_default().join(" "))
        };
        assert_eq!(narrowed("policy=*,rule=*,resource=*").as_deref(), Some("a x/b"));
        assert_eq!(narrowed("resource=b").as_deref(), Some("x/b"));
        assert_eq!(narrowed(" policy=ns/* , resource=a ").as_deref(), Some("a"));
        assert_eq!(narrowed("policy=p"), None);
        assert_eq!(narrowed("rule=q*"), None);
        assert_eq!(narrowed("resource=c"), None);
    }

    #[test]
    fn a_name_that_no_result_has_comes_with_the_nearest() {
        let results = [Expectation { policy: "limits".into(), rule: Some("cpu".into()), ..result() }];
        for (text, hint) in [
            ("policy=limit", Some(("limit", "limits"))),
            ("policy=limits,rule=cpus", Some(("cpus", "cpu"))),
            ("policy=lim*", None),
            ("policy=other", None),
        ] {
            let selection: Selection = text.parse().unwrap();
            assert_eq!(selection.unknown_name(&results), hint, "{text}");
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert_eq!("name=x".parse::<Selection>().unwrap_err(), SelectionError::UnknownKey("name".into()));
        assert_eq!("policy".parse::<Selection>().unwrap_err(), SelectionError::NoValue("policy".into()));
    }
}
