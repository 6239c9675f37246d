//! Bounds on patches: strangers write them, and small ones can describe much.

/// The deepest nesting that patches are followed into and may produce. Documents read from text are bounded more
/// tightly ([`ephor_expr::yaml::Limits`]).
pub(super) const MAX_DEPTH: usize = 256;

/// What one patch may still build beyond what its own text and the resource hold.
#[derive(Debug)]
pub(super) struct Allowance(usize);

impl Allowance {
    /// `parts` values.
    pub(super) fn of(parts: usize) -> Self {
        Self(parts)
    }

    /// Takes `parts`; `None` if that is more than is left.
    pub(super) fn take(&mut self, parts: usize) -> Option<()> {
        self.0 = self.0.checked_sub(parts)?;
        Some(())
    }
}
