//! Which requests an admission policy of Kubernetes is about: `matchConstraints` and `matchResources`.
//!
//! In goes a compiled block and a request; out comes whether the API server would ask the policy. Unlike a `match`
//! block of a rule it names resources, not kinds.

use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};

use super::{Gvk, Selector, SelectorError};
use crate::policy::{MatchResources, NamedRule, Operation, RuleOperation, RuleScope};
use crate::review::Review;

/// The resource that a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestResource<'r> {
    /// Its group.
    pub group: &'r str,
    /// Its version.
    pub version: &'r str,
    /// Its plural name.
    pub resource: &'r str,
    /// The subresource; empty for the object itself.
    pub subresource: &'r str,
}

/// A compiled block.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestMatcher {
    /// Labels of the namespace; `None` for any.
    namespace: Option<Selector>,
    /// Labels of the object; `None` for any.
    object: Option<Selector>,
    rules: Vec<NamedRule>,
    excluded: Vec<NamedRule>,
}

impl RequestMatcher {
    /// Compiles a block that stands at `path`.
    pub fn compile(block: &MatchResources, path: &Path) -> Result<Self, SelectorError> {
        let selector = |selector: &Option<_>, key| {
            let compiled = selector.as_ref().map(|selector| Selector::compile(selector, &path.key(key))).transpose()?;
            Ok(compiled.filter(|selector| !selector.is_empty()))
        };
        Ok(Self {
            namespace: selector(&block.namespace_selector, "namespaceSelector")?,
            object: selector(&block.object_selector, "objectSelector")?,
            rules: block.resource_rules.clone(),
            excluded: block.exclude_resource_rules.clone(),
        })
    }

    /// Whether the block means the request, its namespace's labels apart.
    pub fn matches(&self, review: &Review, resource: &RequestResource<'_>) -> bool {
        let fits = |rule: &NamedRule| rule.matches(review, resource);
        self.selects_object(review) && !self.excluded.iter().any(fits) && self.may_match_rules(fits)
    }

    /// What the namespace's labels must fulfil, if the block asks for any.
    ///
    /// An object without a namespace is not judged by them; a Namespace is judged by its own labels.
    pub fn namespace_selector(&self) -> Option<&Selector> {
        self.namespace.as_ref()
    }

    /// Whether the object is in a namespace with the wanted labels; `None` if the labels of its namespace are not
    /// known.
    pub fn selects_namespace(&self, review: &Review) -> Option<bool> {
        let Some(selector) = &self.namespace else { return Some(true) };
        if Gvk::is_namespace(&review.gvk) {
            return Some(selector.matches(labels(review.subject())));
        }
        if review.namespace.is_empty() {
            return Some(true);
        }
        review.namespace_labels.as_ref().map(|known| selector.matches(known.as_object()))
    }

    /// What looking at the block counts for, in evaluation steps.
    pub(crate) fn steps(&self) -> u64 {
        let names = |rule: &NamedRule| {
            rule.resource_names.len() + rule.api_groups.len() + rule.api_versions.len() + rule.resources.len()
        };
        1 + self.rules.iter().chain(&self.excluded).map(names).sum::<usize>() as u64
    }

    /// Whether a rule of the block names an operation; `*` names none in particular.
    pub fn names_operation(&self, operation: Operation) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.operations.iter().any(|named| *named != RuleOperation::All && named.matches(operation)))
    }

    /// Whether some rule means an operation, by its name or by `*`.
    pub fn means_operation(&self, operation: Operation) -> bool {
        self.may_match_rules(|rule| rule.means(operation))
    }

    /// Whether the block selects among objects of a resource: by labels or by names.
    pub fn selects(&self) -> bool {
        let names = |rule: &NamedRule| !rule.resource_names.is_empty();
        self.namespace.is_some() || self.object.is_some() || self.rules.iter().chain(&self.excluded).any(names)
    }

    /// The resources that the block names, subresources apart; `None` if it may mean any.
    pub(crate) fn resources(&self) -> Option<Vec<&str>> {
        if self.rules.is_empty() {
            return None;
        }
        let named = self.rules.iter().flat_map(|rule| &rule.resources);
        let names = named.map(|named| named.split_once('/').map_or(named.as_str(), |(resource, _)| resource));
        names.map(|name| (name != "*").then_some(name)).collect()
    }

    /// Whether the block may mean objects of a resource.
    pub fn may_match(&self, resource: &RequestResource<'_>) -> bool {
        self.may_match_rules(|rule| rule.names(resource))
    }

    fn may_match_rules(&self, fits: impl Fn(&NamedRule) -> bool) -> bool {
        self.rules.is_empty() || self.rules.iter().any(fits)
    }

    /// Either state of the object may have the labels.
    fn selects_object(&self, review: &Review) -> bool {
        let Some(selector) = &self.object else { return true };
        let has = |object: &Value| !object.is_null() && selector.matches(labels(object));
        has(&review.object) || has(&review.old_object)
    }
}

/// The labels of an object.
fn labels(object: &Value) -> Option<&Map> {
    object.at(&["metadata", "labels"])?.as_object()
}

impl NamedRule {
    /// Whether it means an operation; without any it means all.
    pub(crate) fn means(&self, operation: Operation) -> bool {
        self.operations.is_empty() || self.operations.iter().any(|named| named.matches(operation))
    }

    fn matches(&self, review: &Review, resource: &RequestResource<'_>) -> bool {
        self.means(review.operation)
            && self.names(resource)
            && (self.resource_names.is_empty() || self.resource_names.contains(&review.name))
            && match self.scope {
                None | Some(RuleScope::All) => true,
                Some(RuleScope::Namespaced) => !review.namespace.is_empty(),
                Some(RuleScope::Cluster) => review.namespace.is_empty(),
            }
    }

    fn names(&self, wanted: &RequestResource<'_>) -> bool {
        let fits = |named: &str, text: &str| named == "*" || named == text;
        let listed = |names: &[Str], text: &str| names.iter().any(|named| fits(named, text));
        let resource = |named: &Str| {
            let (resource, subresource) = named.split_once('/').unwrap_or((named, ""));
            fits(resource, wanted.resource) && fits(subresource, wanted.subresource)
        };
        listed(&self.api_groups, wanted.group)
            && listed(&self.api_versions, wanted.version)
            && self.resources.iter().any(resource)
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::value::decode;

    use super::*;

    fn deployments(subresource: &str) -> RequestResource<'_> {
        RequestResource { group: "apps", version: "v1", resource: "deployments", subresource }
    }

    fn review(object: &str) -> Review {
        Review::of_object(Value::from_json(object).unwrap(), jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn rules_name_resources_operations_names_and_scopes() {
        let web =
            review(r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}"#);
        for (resources, more, subresource, want) in [
            (r#"["deployments"]"#, "", "", true),
            (r#"["deployments"]"#, "", "scale", false),
            (r#"["*"]"#, "", "", true),
            (r#"["*"]"#, "", "scale", false),
            (r#"["*/*"]"#, "", "scale", true),
            (r#"["*/scale"]"#, "", "scale", true),
            (r#"["deployments/*"]"#, "", "scale", true),
            (r#"["pods","deployments/status"]"#, "", "", false),
            (r#"["deployments"]"#, r#""operations":["DELETE"]"#, "", false),
            (r#"["deployments"]"#, r#""operations":["*"]"#, "", true),
            (r#"["deployments"]"#, r#""apiGroups":["","batch"]"#, "", false),
            (r#"["deployments"]"#, r#""apiVersions":["v2"]"#, "", false),
            (r#"["deployments"]"#, r#""scope":"Cluster""#, "", false),
            (r#"["deployments"]"#, r#""scope":"Namespaced""#, "", true),
            (r#"["deployments"]"#, r#""resourceNames":["api"]"#, "", false),
            (r#"["deployments"]"#, r#""resourceNames":["web"]"#, "", true),
        ] {
            let rule = r#"{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":RESOURCES}"#;
            let mut rule = Value::from_json(&rule.replace("RESOURCES", resources)).unwrap();
            for (key, value) in Value::from_json(&format!("{{{more}}}")).unwrap().as_object().unwrap().iter() {
                rule.as_object_mut().unwrap().insert(key.clone(), value.clone());
            }
            let rule: NamedRule = decode(&rule).unwrap();
            assert_eq!(rule.matches(&web, &deployments(subresource)), want, "{resources} {more} {subresource}");
        }
    }

    #[test]
    fn either_state_of_an_object_may_have_the_labels_and_exclusions_win() {
        let block = |more: &str| {
            let rule = r#"{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}"#;
            let text = format!(r#"{{"resourceRules":[{rule}]{}}}"#, more.replace("RULE", rule));
            RequestMatcher::compile(&decode(&Value::from_json(&text).unwrap()).unwrap(), &Path::root()).unwrap()
        };
        let mut web = review(r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}"#);
        let labelled = block(r#","objectSelector":{"matchLabels":{"a":"b"}}"#);
        assert!(!labelled.matches(&web, &deployments("")));
        web.old_object = Value::from_json(r#"{"metadata":{"labels":{"a":"b"}}}"#).unwrap();
        assert!(labelled.matches(&web, &deployments("")));
        assert!(block("").matches(&web, &deployments("")));
        assert!(!block(r#","excludeResourceRules":[RULE]"#).matches(&web, &deployments("")));
    }
}
