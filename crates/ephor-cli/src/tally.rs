//! Counts of verdicts, as summaries print them.

use std::fmt;

use ephor_engine::outcome::Verdict;

/// How many verdicts of each sort there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Satisfied.
    pub pass: u64,
    /// Violated.
    pub fail: u64,
    /// Violated, but only a warning.
    pub warn: u64,
    /// Could not be judged.
    pub error: u64,
    /// Did not apply.
    pub skip: u64,
}

impl Tally {
    /// Counts a verdict.
    pub fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Fail => &mut self.fail,
            Verdict::Warn => &mut self.warn,
            Verdict::Error => &mut self.error,
            Verdict::Skip => &mut self.skip,
        };
        *count += 1;
    }

    /// Counts what another tally counted.
    pub fn merge(&mut self, other: &Tally) {
        self.pass += other.pass;
        self.fail += other.fail;
        self.warn += other.warn;
        self.error += other.error;
        self.skip += other.skip;
    }
}

/// The last line of the default output, as upstream words it.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { pass, fail, warn, error, skip } = self;
        write!(f, "pass: {pass}, fail: {fail}, warn: {warn}, error: {error}, skip: {skip} ")
    }
}
