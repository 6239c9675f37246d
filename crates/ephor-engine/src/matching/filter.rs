//! One filter of a match block.

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::Wildcard;
use ephor_expr::value::Path;

use super::selector::has_pair;
use super::user::UserFilter;
use super::{KindSelector, MatchError, MatchInput, MatchMode, NamespaceLabels, Selector, SelectorError};
use crate::policy::{Operation, ResourceFilter, ResourceSelection};

/// A compiled filter: all attributes given must hold, one entry within each list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    mode: MatchMode,
    /// Whether anything but the user is asked for.
    selects_objects: bool,
    pub(super) kinds: Vec<KindSelector>,
    pub(super) operations: Vec<Operation>,
    name: Option<Wildcard>,
    names: Vec<Wildcard>,
    namespaces: Vec<Wildcard>,
    annotations: Vec<(Wildcard, Wildcard)>,
    selector: Option<Selector>,
    namespace_selector: Option<Selector>,
    user: UserFilter,
}

/// How the user attributes of a filter are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserTest {
    /// Against the user, an empty one if there is none.
    Strict,
    /// As if they were not there.
    Ignored,
}

impl Filter {
    /// Compiles the filter that stands at `path`, which only errors use.
    pub(super) fn compile(filter: &ResourceFilter, mode: MatchMode, path: &Path) -> Result<Self, SelectorError> {
        let none = ResourceSelection::default();
        let given = filter.resources.as_ref().unwrap_or(&none);
        let path = path.key("resources");
        let selector =
            |selector: &Option<_>, key| selector.as_ref().map(|s| Selector::compile(s, &path.key(key))).transpose();
        let mut compiled = Self {
            mode,
            selects_objects: false,
            kinds: given.kinds.iter().flatten().map(|kind| KindSelector::parse(kind)).collect(),
            operations: given.operations.clone().unwrap_or_default(),
            name: given.name.as_ref().filter(|name| !name.is_empty()).map(|name| Wildcard::new(name)),
            names: wildcards(given.names.as_deref()),
            namespaces: wildcards(given.namespaces.as_deref()),
            annotations: given
                .annotations
                .iter()
                .flatten()
                .map(|(key, value)| (Wildcard::new(key), Wildcard::new(value)))
                .collect(),
            selector: selector(&given.selector, "selector")?,
            namespace_selector: selector(&given.namespace_selector, "namespaceSelector")?,
            user: UserFilter::compile(filter),
        };
        compiled.selects_objects = !(compiled.kinds.is_empty()
            && compiled.operations.is_empty()
            && compiled.name.is_none()
            && compiled.names.is_empty()
            && compiled.namespaces.is_empty()
            && compiled.annotations.is_empty()
            && compiled.selector.is_none()
            && compiled.namespace_selector.is_none());
        if mode != MatchMode::Rule {
            // Exceptions and clean-ups do not look at operations; a filter of nothing else is still not empty.
            compiled.operations.clear();
        }
        Ok(compiled)
    }

    /// The first attribute that `input` does not meet; `None` if the filter holds. One that asks for nothing never
    /// does.
    pub(super) fn unmet(&self, input: &MatchInput, user: UserTest) -> Result<Option<&'static str>, MatchError> {
        let test_user = user == UserTest::Strict && !self.user.is_empty();
        if !self.selects_objects && !test_user {
            return Ok(Some("resources"));
        }
        let unmet = if !self.operations.is_empty() && !self.operations.contains(&input.operation) {
            "operations"
        } else if !self.kinds.is_empty() && !self.kinds.iter().any(|kind| self.selects(kind, input)) {
            "kinds"
        } else if !self.matches_name(input) {
            "names"
        } else if !self.matches_namespace(input) {
            "namespaces"
        } else if !self.matches_annotations(input) {
            "annotations"
        } else if self.selector.as_ref().is_some_and(|selector| !selector.matches(input.labels())) {
            "selector"
        } else if test_user && !self.user.matches(input.user) {
            "subjects"
        } else {
            // Last, so that namespace labels are fetched only if they decide.
            return Ok((!self.matches_namespace_labels(input)?).then_some("namespaceSelector"));
        };
        Ok(Some(unmet))
    }

    fn selects(&self, kind: &KindSelector, input: &MatchInput) -> bool {
        // Upstream: for `pods/ephemeralcontainers` the subresource part of a selector does not count, except in
        // clean-up policies.
        let parent = input.subresource == "ephemeralcontainers" && self.mode != MatchMode::Cleanup;
        if parent { kind.matches_kind(input.gvk) } else { kind.matches(input.gvk, input.subresource) }
    }

    fn matches_name(&self, input: &MatchInput) -> bool {
        let name = if input.name.is_empty() { input.generate_name } else { input.name };
        self.name.as_ref().is_none_or(|pattern| pattern.matches(name)) && any_or_none(&self.names, name)
    }

    fn matches_annotations(&self, input: &MatchInput) -> bool {
        self.annotations.is_empty() || {
            let annotations = input.annotations();
            self.annotations.iter().all(|(key, value)| has_pair(annotations, key, value))
        }
    }

    fn matches_namespace(&self, input: &MatchInput) -> bool {
        any_or_none(&self.namespaces, if input.gvk.is_namespace() { input.name } else { input.namespace })
    }

    fn matches_namespace_labels(&self, input: &MatchInput) -> Result<bool, MatchError> {
        let Some(selector) = &self.namespace_selector else { return Ok(true) };
        if input.gvk.is_namespace() {
            return Ok(self.mode != MatchMode::Rule);
        }
        if input.namespace.is_empty() || selector.is_empty() {
            return Ok(selector.matches(None));
        }
        match input.namespace_labels {
            NamespaceLabels::Known(labels) => Ok(selector.matches(Some(labels))),
            NamespaceLabels::Unknown => {
                Err(MatchError::NamespaceLabelsUnavailable { namespace: Str::new(input.namespace) })
            }
        }
    }
}

fn wildcards(patterns: Option<&[Str]>) -> Vec<Wildcard> {
    patterns.unwrap_or_default().iter().map(|pattern| Wildcard::new(pattern)).collect()
}

fn any_or_none(patterns: &[Wildcard], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
}
