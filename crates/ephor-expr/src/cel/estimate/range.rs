//! Ranges of sizes and costs: arithmetic that never overflows, rounded as the reference rounds.

/// The smallest and the largest value that a size or a cost may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    /// Nothing is known.
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    /// What unions begin with.
    pub(super) const EMPTY: Self = Self { min: u64::MAX, max: 0 };

    pub(super) const fn exactly(n: u64) -> Self {
        Self { min: n, max: n }
    }

    pub(super) const fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    #[must_use]
    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    #[must_use]
    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Both ends by `factor`, rounded up.
    #[must_use]
    pub(super) fn scaled(self, factor: f64) -> Self {
        // A float that is too large for the integer becomes the largest.
        let scale = |n: u64| (n as f64 * factor).ceil() as u64;
        Self { min: scale(self.min), max: scale(self.max) }
    }

    /// The range that holds both.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}
