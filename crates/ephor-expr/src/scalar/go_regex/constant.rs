//! Regular expressions that stand in a program.
//!
//! A policy may hold thousands of them, each of a few bytes and, once compiled, of a hundred kilobytes. So one is
//! compiled when it is first needed, and kept only if it is small and all that are kept in the process have room. What
//! is not kept is compiled once in each evaluation that needs it, and charged to it. Results are the same either way.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{GoRegex, GoRegexError, GoRegexErrorKind, MAX_PATTERN, RegexCache, SIZE_LIMITS, build, translate};
use crate::budget::{Budget, BudgetError};

/// The largest compiled expression that is kept, in bytes.
pub(super) const MAX_KEPT: usize = 8 << 10;
/// What searches with one that is kept may hold on to, in bytes.
pub(super) const MAX_SEARCH: usize = 32 << 10;
/// What one that is kept counts for, in bytes.
const EACH: usize = 16 << 10;
/// How many bytes those that are kept count for together.
const MOST: usize = 48 << 20;

/// What those that are kept count for now. Memory belongs to the process, so its bound does too.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// An expression that stands in a program.
#[derive(Debug, Default)]
pub struct ConstantRegex(OnceLock<Option<Kept>>);

#[derive(Debug)]
struct Kept(Result<GoRegex, GoRegexError>);

impl ConstantRegex {
    /// Calls `then` with the compiled `pattern`, or with what is wrong with it. The pattern must be the same each time.
    /// The error is that of the budget, if compiling is charged.
    pub fn with<T>(
        &self,
        pattern: &str,
        cache: &RegexCache,
        budget: &Budget,
        then: impl FnOnce(Result<&GoRegex, &GoRegexError>) -> T,
    ) -> Result<T, BudgetError> {
        if let Some(kept) = self.0.get_or_init(|| Kept::of(pattern)) {
            return Ok(then(kept.0.as_ref()));
        }
        Ok(then(cache.get(pattern, budget)?.as_ref().as_ref()))
    }
}

impl Kept {
    fn of(pattern: &str) -> Option<Self> {
        if pattern.len() > MAX_PATTERN {
            return Self::counted(Err(GoRegexError::new(GoRegexErrorKind::Large, pattern)));
        }
        let translated = match translate::translate(pattern) {
            Ok(translated) => translated,
            Err(error) => return Self::counted(Err(error)),
        };
        for size in SIZE_LIMITS.into_iter().take_while(|size| *size <= MAX_KEPT) {
            match build(&translated, size) {
                Ok(Some(regex)) => return Self::counted(Ok(regex)),
                Ok(None) => {}
                Err(kind) => return Self::counted(Err(GoRegexError::new(kind, pattern))),
            }
        }
        None
    }

    fn counted(compiled: Result<GoRegex, GoRegexError>) -> Option<Self> {
        let room = KEPT.try_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
            kept.checked_add(EACH).filter(|kept| *kept <= MOST)
        });
        room.is_ok().then(|| Self(compiled))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(EACH, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pattern: &str) -> bool {
        let (constant, cache) = (ConstantRegex::default(), RegexCache::default());
        let budget = Budget::new(u64::MAX, 0);
        assert!(constant.with(pattern, &cache, &budget, |regex| regex.is_ok()).unwrap(), "{pattern}");
        constant.0.get().unwrap().is_some()
    }

    #[test]
    fn small_ones_are_kept_and_large_ones_are_compiled_again() {
        for pattern in
            ["a", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "^(a|b|c).*:v[0-9]{1,3}$"]
        {
            assert!(kept(pattern), "{pattern}");
        }
        assert!(!kept("(a{900})(b{900})"));
    }

    #[test]
    fn what_is_kept_has_a_bound_for_all_programs() {
        let constants: Vec<ConstantRegex> = (0..MOST / EACH + 10).map(|_| ConstantRegex::default()).collect();
        let (cache, budget) = (RegexCache::default(), Budget::new(u64::MAX, 0));
        for constant in &constants {
            assert!(constant.with("^a+$", &cache, &budget, |regex| regex.unwrap().is_match("aa")).unwrap());
        }
        let is_kept = |constant: &&ConstantRegex| constant.0.get().unwrap().is_some();
        assert!(constants.iter().filter(is_kept).count() <= MOST / EACH);
        assert!(constants.iter().rev().take(5).all(|constant| !is_kept(&constant)));
    }

    #[test]
    fn the_work_for_large_ones_is_charged() {
        let (constant, cache) = (ConstantRegex::default(), RegexCache::default());
        let poor = Budget::new(1_000, 0);
        assert!(constant.with("(a{900})(b{900})", &cache, &poor, |_| ()).is_err());
    }
}
