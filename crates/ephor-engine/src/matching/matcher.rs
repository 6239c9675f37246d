//! Whole match blocks, and the decision of a rule.

use ephor_expr::value::Path;

use super::filter::{Filter, UserTest};
use super::{KindSelector, MatchError, MatchInput, SelectorError};
use crate::policy::{Match, Operation, ResourceFilter};
use crate::trace::FilterNote;

/// What a block belongs to; the three read some attributes differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    /// A rule: everything counts.
    Rule,
    /// An exception: `operations` are ignored, and so is a `namespaceSelector` for Namespace objects.
    Exception,
    /// A clean-up policy: as an exception, and `ephemeralcontainers` is a subresource like any other.
    Cleanup,
}

/// A compiled `match` or `exclude` block.
#[derive(Debug, Clone, PartialEq)]
pub struct Matcher {
    mode: MatchMode,
    join: Join,
    /// The member in which the filters stand; `None` for direct attributes.
    key: Option<&'static str>,
    filters: Vec<Filter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    Any,
    All,
}

impl Matcher {
    /// A block that selects every request, for policies that select by themselves.
    pub(crate) fn everything() -> Self {
        // All of no filters hold.
        Self { mode: MatchMode::Rule, join: Join::All, key: None, filters: Vec::new() }
    }

    /// Compiles a block. Of `any`, `all` and direct attributes only the first that is not empty counts; that a policy
    /// has just one of them is checked elsewhere. Errors carry their place within the block.
    pub fn compile(block: &Match, mode: MatchMode) -> Result<Self, SelectorError> {
        let given = |filters: &Option<Vec<ResourceFilter>>| filters.clone().filter(|f| !f.is_empty());
        let (join, key, filters) = if let Some(any) = given(&block.any) {
            (Join::Any, Some("any"), any)
        } else if let Some(all) = given(&block.all) {
            (Join::All, Some("all"), all)
        } else {
            let direct = ResourceFilter {
                resources: block.resources.clone(),
                roles: block.roles.clone(),
                cluster_roles: block.cluster_roles.clone(),
                subjects: block.subjects.clone(),
            };
            (Join::Any, None, vec![direct])
        };
        let place = |i| key.map_or_else(Path::root, |key| Path::root().key(key).index(i));
        let filters = filters.iter().enumerate().map(|(i, filter)| Filter::compile(filter, mode, &place(i)));
        Ok(Self { mode, join, key, filters: filters.collect::<Result<_, _>>()? })
    }

    /// Whether the block selects `input`. An empty block selects nothing.
    ///
    /// Without user information a rule's block is read as if it asked for none, so that scans judge objects by what
    /// they are; a filter that asks for nothing else selects nothing then. Exceptions, which take away protection,
    /// are tested against an empty user instead.
    pub fn matches(&self, input: &MatchInput) -> Result<bool, MatchError> {
        self.test(input, self.user_test(input))
    }

    fn user_test(&self, input: &MatchInput) -> UserTest {
        let blind = self.mode == MatchMode::Rule && input.user.is_none();
        if blind { UserTest::Ignored } else { UserTest::Strict }
    }

    /// How each filter judges `input` as a `match` block that stands at `base`.
    pub fn explain_match(&self, input: &MatchInput, base: &Path) -> Vec<FilterNote> {
        self.explain(input, self.user_test(input), base)
    }

    /// How each filter judges `input` as an `exclude` block that stands at `base`.
    pub fn explain_exclude(&self, input: &MatchInput, base: &Path) -> Vec<FilterNote> {
        self.explain(input, UserTest::Strict, base)
    }

    fn explain(&self, input: &MatchInput, user: UserTest, base: &Path) -> Vec<FilterNote> {
        let note = |(i, filter): (usize, &Filter)| FilterNote {
            path: self.key.map_or_else(|| base.clone(), |key| base.key(key).index(i)),
            unmet: filter.unmet(input, user).unwrap_or(Some("namespaceSelector")),
        };
        self.filters.iter().enumerate().map(note).collect()
    }

    /// Whether the block, as an `exclude`, takes `input` out. An empty block takes out nothing; user attributes
    /// always count, against an empty user if there is none.
    pub fn excludes(&self, input: &MatchInput) -> Result<bool, MatchError> {
        self.test(input, UserTest::Strict)
    }

    /// The kinds outside which the block selects nothing; `None` if it selects objects of any kind.
    pub fn kinds(&self) -> Option<Vec<&KindSelector>> {
        match self.join {
            Join::Any if self.filters.iter().any(|f| f.kinds.is_empty()) => None,
            Join::Any => Some(self.filters.iter().flat_map(|f| &f.kinds).collect()),
            // Every filter must hold, so those of one are enough to look at.
            Join::All => self.filters.iter().find(|f| !f.kinds.is_empty()).map(|f| f.kinds.iter().collect()),
        }
    }

    /// Whether some filter names the operation.
    pub fn names_operation(&self, operation: Operation) -> bool {
        self.filters.iter().any(|filter| filter.operations.contains(&operation))
    }

    /// Whether the block selects nothing for an operation, whatever the object.
    pub fn never_for(&self, operation: Operation) -> bool {
        let mut never = self.filters.iter().map(|f| !f.operations.is_empty() && !f.operations.contains(&operation));
        match self.join {
            Join::Any => !self.filters.is_empty() && never.all(|never| never),
            Join::All => never.any(|never| never),
        }
    }

    /// A filter that cannot be judged matters only if no other one decides.
    fn test(&self, input: &MatchInput, user: UserTest) -> Result<bool, MatchError> {
        let decisive = self.join == Join::Any;
        let mut unclear = None;
        for filter in &self.filters {
            match filter.unmet(input, user).map(|unmet| unmet.is_none()) {
                Ok(holds) if holds == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(error) => unclear = Some(error),
            }
        }
        unclear.map_or(Ok(!decisive), Err)
    }
}

/// Whether a rule with these blocks applies to `input`: it is matched and not excluded.
///
/// That a namespaced `Policy` sees only objects of its own namespace is a matter of the policy, not of its rules, and
/// comes before this.
pub fn applies(matched: &Matcher, excluded: Option<&Matcher>, input: &MatchInput) -> Result<bool, MatchError> {
    let matched = matched.matches(input);
    if matched == Ok(false) {
        return matched;
    }
    match excluded.map_or(Ok(false), |block| block.excludes(input)) {
        Ok(true) => Ok(false),
        Ok(false) => matched,
        Err(error) => Err(error),
    }
}
