//! Go's regular expressions (RE2 syntax with Perl classes) on top of `regex`.
//!
//! - `translate`: the parser of Go's syntax; it writes what it understood in the syntax of `regex`.
//! - `group` and `class`: its parts for `(...)`, and for `[...]`, `\d` and `\p{...}`.
//! - `error`: Go's error texts.
//! - `expand`: replacement templates.
//! - `constant`: expressions that stand in a program, and how much memory all of them may keep.
//!
//! Both engines are linear-time and leftmost-first, so only the syntax differs: Go takes `\Q..\E`, `[[a]`, bare `{`,
//! `x{,3}` and `[\w-.]`, has ASCII `\d \w \s \b`, and refuses `a**`, `{1001}` and look-around.

mod class;
mod constant;
mod error;
mod expand;
mod group;
#[cfg(test)]
mod tests;
mod translate;

pub use constant::ConstantRegex;
pub use error::{GoRegexError, GoRegexErrorKind};
pub use expand::expand_replacement;

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::Str;
use crate::budget::{Budget, BudgetError};

/// The most memory that compiled expressions are tried with, in bytes, one after the other. The first that suffices
/// tells how heavy an expression is; one that needs more than the last is refused.
const SIZE_LIMITS: [usize; 7] = [2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 10 << 20];

/// The deepest nesting handed to `regex`; deeper expressions are refused (Go stops at 1000).
const NEST_LIMIT: u32 = 250;

/// The longest expression that is compiled, in bytes.
const MAX_PATTERN: usize = 64 << 10;

/// How many expressions a [`RegexCache`] keeps.
const KEPT: usize = 16;

/// How many bytes they take together, unless one alone takes more.
const KEPT_BYTES: usize = 4 << 20;

/// A compiled expression, and how large it is.
#[derive(Debug, Clone)]
pub struct GoRegex {
    regex: Regex,
    /// The first of [`SIZE_LIMITS`] that sufficed.
    size: usize,
}

impl GoRegex {
    /// What a search through `length` bytes counts for, in evaluation steps: in the worst case it looks at all of the
    /// expression for every character.
    pub fn cost(&self, length: usize) -> u64 {
        let weight = self.size / SIZE_LIMITS[0];
        1 + (length as u64).saturating_mul(weight as u64) / 4
    }
}

impl Deref for GoRegex {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.regex
    }
}

/// Compiles a Go regular expression.
///
/// The error prints as Go's, for example ``error parsing regexp: missing closing ]: `[a` ``. A group name that
/// starts with a digit, which only Go allows, is dropped: the group still counts.
pub fn compile(pattern: &str) -> Result<GoRegex, GoRegexError> {
    let unbounded = Budget::new(u64::MAX, 0);
    compile_within(pattern, &unbounded).unwrap_or_else(|_| Err(GoRegexError::new(GoRegexErrorKind::Large, pattern)))
}

/// [`compile()`] of an expression that anybody may have written: the work is charged before it is done.
pub fn compile_within(pattern: &str, budget: &Budget) -> Result<Result<GoRegex, GoRegexError>, BudgetError> {
    let large = || GoRegexError::new(GoRegexErrorKind::Large, pattern);
    Ok(compile_up_to(usize::MAX, pattern, budget)?.and_then(|regex| regex.ok_or_else(large)))
}

/// Whether an expression is one, without the work of compiling one that takes much memory.
pub fn check(pattern: &str) -> Result<(), GoRegexError> {
    compile_small(pattern, SIZE_LIMITS[0]).map(drop)
}

/// Compiles an expression into at most `size` bytes, uncharged; `None` if it takes more.
fn compile_small(pattern: &str, size: usize) -> Result<Option<GoRegex>, GoRegexError> {
    let unbounded = Budget::new(u64::MAX, 0);
    compile_up_to(size, pattern, &unbounded).unwrap_or(Ok(None))
}

/// Compiles an expression into at most `most` bytes; `None` if it takes more.
fn compile_up_to(
    most: usize,
    pattern: &str,
    budget: &Budget,
) -> Result<Result<Option<GoRegex>, GoRegexError>, BudgetError> {
    let refused = |kind| Ok(Err(GoRegexError::new(kind, pattern)));
    if pattern.len() > MAX_PATTERN {
        return refused(GoRegexErrorKind::Large);
    }
    budget.charge_steps(pattern.len() as u64)?;
    let translated = match translate::translate(pattern) {
        Ok(translated) => translated,
        Err(error) => return Ok(Err(error)),
    };
    for size in SIZE_LIMITS.into_iter().take_while(|size| *size <= most) {
        budget.charge_steps(size as u64 / 64)?;
        let mut builder = RegexBuilder::new(&translated);
        builder.size_limit(size).nest_limit(NEST_LIMIT);
        if size <= constant::MAX_KEPT {
            builder.dfa_size_limit(constant::MAX_SEARCH);
        }
        match builder.build() {
            Ok(regex) => return Ok(Ok(Some(GoRegex { regex, size }))),
            Err(regex::Error::CompiledTooBig(_)) => {}
            // Everything else was checked by the translation.
            Err(_) => return refused(GoRegexErrorKind::NestingDepth),
        }
    }
    Ok(Ok(None))
}

/// The expressions that one evaluation has compiled from data, so that a loop does not compile one again and again.
#[derive(Debug, Default)]
pub struct RegexCache(RefCell<Vec<(Str, CompiledRegex)>>);

/// A compiled expression, or what is wrong with it; clones are the same.
type CompiledRegex = Arc<Result<GoRegex, GoRegexError>>;

impl RegexCache {
    /// The compiled `pattern`; compiling it is charged.
    pub fn get(&self, pattern: &str, budget: &Budget) -> Result<CompiledRegex, BudgetError> {
        budget.charge_reading(pattern.len())?;
        let known = self.0.borrow().iter().find(|(known, _)| known == pattern).map(|(_, regex)| Arc::clone(regex));
        if let Some(regex) = known {
            return Ok(regex);
        }
        let regex = Arc::new(compile_within(pattern, budget)?);
        let mut kept = self.0.borrow_mut();
        while kept.len() >= KEPT
            || !kept.is_empty() && kept.iter().map(|(_, kept)| bytes(kept)).sum::<usize>() + bytes(&regex) > KEPT_BYTES
        {
            kept.remove(0);
        }
        kept.push((Str::new(pattern), Arc::clone(&regex)));
        Ok(regex)
    }
}

/// The most that a compiled expression takes.
fn bytes(regex: &CompiledRegex) -> usize {
    regex.as_ref().as_ref().map_or(0, |regex| regex.size)
}
