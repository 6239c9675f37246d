//! Regular expressions that stand in a program.
//!
//! A policy may hold thousands of them, each of a few bytes and, once compiled, of a hundred kilobytes. So one is
//! compiled when it is first needed, and kept only if it is small and all that are kept in the process have room. What
//! is not kept is compiled once in each evaluation that needs it, and charged to it. Results are the same either way.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{GoRegex, GoRegexError, RegexCache, compile_small};
use crate::budget::{Budget, BudgetError};

/// The largest compiled expression that is kept, in bytes.
pub(super) const MAX_KEPT: usize = 8 << 10;
/// What searches with one that is kept may hold on to, in bytes.
pub(super) const MAX_SEARCH: usize = 32 << 10;
/// What one that is kept counts for, in bytes.
const EACH: usize = 16 << 10;
/// How many bytes those that are kept count for together.
const MOST: usize = 48 << 20;

/// The room of the process. Memory belongs to the process, so its bound does too.
static ROOM: Room = Room(AtomicUsize::new(0));

/// What the expressions that are kept count for.
#[derive(Debug)]
struct Room(AtomicUsize);

/// An expression that stands in a program.
#[derive(Debug, Default)]
pub struct ConstantRegex(OnceLock<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    compiled: Result<GoRegex, GoRegexError>,
    room: &'static Room,
}

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
        match self.kept(pattern, &ROOM) {
            Some(compiled) => Ok(then(compiled.as_ref())),
            None => Ok(then(cache.get(pattern, budget)?.as_ref().as_ref())),
        }
    }

    /// What is kept, or can be kept from now on.
    fn kept(&self, pattern: &str, room: &'static Room) -> Option<&Result<GoRegex, GoRegexError>> {
        let keep = || {
            let compiled = compile_small(pattern, MAX_KEPT).transpose()?;
            room.take().then(|| Kept { compiled, room })
        };
        self.0.get_or_init(keep).as_ref().map(|kept| &kept.compiled)
    }
}

impl Room {
    fn take(&self) -> bool {
        let more = |kept: usize| kept.checked_add(EACH).filter(|kept| *kept <= MOST);
        self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.room.0.fetch_sub(EACH, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_kept_and_large_ones_are_compiled_again() {
        static OWN: Room = Room(AtomicUsize::new(0));
        let kept = |pattern: &str| {
            ConstantRegex::default().kept(pattern, &OWN).map(|regex| assert!(regex.is_ok(), "{pattern}")).is_some()
        };
        for pattern in
            ["a", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "^(a|b|c).*:v[0-9]{1,3}$"]
        {
            assert!(kept(pattern), "{pattern}");
        }
        assert!(!kept("(a{900})(b{900})"));
        assert_eq!(OWN.0.load(Ordering::Relaxed), 0, "what is dropped gives its room back");
    }

    #[test]
    fn what_is_kept_has_a_bound_for_all_programs() {
        // The room of the process is that of the tests beside this one, too.
        static OWN: Room = Room(AtomicUsize::new(0));
        let constants: Vec<ConstantRegex> = (0..MOST / EACH + 10).map(|_| ConstantRegex::default()).collect();
        let kept = |constant: &ConstantRegex| constant.kept("^a+$", &OWN).is_some();
        assert_eq!(constants.iter().filter(|constant| kept(constant)).count(), MOST / EACH);
        assert!(!constants.last().is_some_and(kept));
    }

    #[test]
    fn one_that_is_not_kept_finds_the_same() {
        let (cache, budget) = (RegexCache::default(), Budget::new(u64::MAX, 0));
        for (pattern, text, found) in [("^a+$", "aa", true), ("^(a{900})(b{900})$", "aa", false)] {
            let constant = ConstantRegex::default();
            for _ in 0..2 {
                let is_match = |regex: Result<&GoRegex, &GoRegexError>| regex.unwrap().is_match(text);
                assert_eq!(constant.with(pattern, &cache, &budget, is_match).unwrap(), found);
            }
        }
    }

    #[test]
    fn the_work_for_large_ones_is_charged() {
        let (constant, cache) = (ConstantRegex::default(), RegexCache::default());
        let poor = Budget::new(1_000, 0);
        assert!(constant.with("(a{900})(b{900})", &cache, &poor, |_| ()).is_err());
    }
}
