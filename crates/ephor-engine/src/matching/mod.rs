//! Which objects and requests a rule applies to: `match` and `exclude` blocks, compiled once.
//!
//! [`Matcher::compile`] turns a block into tests on a [`MatchInput`]; [`applies`] joins `match` and `exclude` of a
//! rule. The answer is yes, no, or "cannot tell" ([`MatchError`]): a selector over namespace labels that the host has
//! not fetched is neither a match nor a miss, and the caller decides whether to fetch or to fail.
//!
//! [`RequestMatcher`] is what admission policies of Kubernetes have in their place.
//!
//! [`ResourceFilters`] and [`UserExclusions`] are the installation-wide exclusions of Kyverno's `ConfigMap`.

mod filter;
mod input;
mod kind;
mod matcher;
mod request;
mod resource_filters;
mod selector;
mod user;
mod user_exclusions;

#[cfg(test)]
mod tests;

pub use input::{MatchError, MatchInput, NamespaceLabels, UserInfo};
pub use kind::{Gvk, KindSelector};
pub use matcher::{MatchMode, Matcher, applies};
pub use request::{RequestMatcher, RequestResource};
pub use resource_filters::{HiddenOfKind, ResourceFilterError, ResourceFilters};
pub use selector::{Selector, SelectorError};
pub use user_exclusions::{ExclusionList, UserExclusions};
