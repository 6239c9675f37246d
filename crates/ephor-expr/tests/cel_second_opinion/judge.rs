//! Compares both engines on a case.
//!
//! A case that both see differently is excused by its smallest part that both see differently, and only if that is a
//! known disagreement: a whole expression has many properties that explain nothing.

use super::engines::{Engines, Verdict};
use super::generate::{self, Case};
use super::known::{Difference, KNOWN, Known};

/// How many levels a text from elsewhere may have at most.
const MAX_LEVELS: usize = 80;
/// How long it may be: `in` is an operator as well.
const MAX_LENGTH: usize = 1_000;

/// What came of comparing both engines.
pub(crate) enum Judged {
    /// Both agree, on this verdict.
    Agreed(Verdict),
    /// They disagree as they are known to.
    Known(&'static Known),
    /// It was too much work to compare.
    TooMuch,
    /// They disagree otherwise.
    Unknown(String),
}

/// Compares both engines.
pub(crate) fn judge(engines: &Engines, case: &Case) -> Judged {
    let Some((ours, theirs)) = engines.verdicts(case) else { return Judged::TooMuch };
    if ours.agrees(&theirs) {
        return Judged::Agreed(ours);
    }
    let smaller = case.parts.iter().find_map(|part| {
        let part = case.with(part);
        let (ours, theirs) = engines.verdicts(&part)?;
        (!ours.agrees(&theirs)).then_some((part, ours, theirs))
    });
    let (case, ours, theirs) = smaller.unwrap_or_else(|| (case.clone(), ours, theirs));
    let difference = Difference { case: &case, ours: &ours, theirs: &theirs };
    match KNOWN.iter().find(|known| (known.applies)(&difference)) {
        Some(known) => Judged::Known(known),
        None => Judged::Unknown(format!("{}\n  Ephor:    {ours}\n  cel-core: {theirs}", case.text)),
    }
}

/// Compares both engines on a text from elsewhere. None unless both have a value: such a text may use what only one
/// engine has, or be wrong, and the second engine does not check its types.
pub(crate) fn judge_text(engines: &Engines, text: &str) -> Option<Judged> {
    // The stack of the second engine has no bound, and takes one level for each operator and parenthesis.
    if text.len() > MAX_LENGTH || text.chars().filter(char::is_ascii_punctuation).count() > MAX_LEVELS {
        return None;
    }
    let case = generate::text(text);
    match engines.verdicts(&case)? {
        (Verdict::Value(_), Verdict::Value(_)) => Some(judge(engines, &case)),
        _ => None,
    }
}
