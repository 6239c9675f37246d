//! On whose behalf a handle writes.

use std::sync::Arc;

use ephor_expr::Value;
use parking_lot::Mutex;

use crate::admission::User;
use crate::object;

/// Who uses a handle, and where warnings go.
#[derive(Debug, Clone, Default)]
pub(super) struct Caller {
    pub(super) user: Arc<User>,
    pub(super) warnings: Warnings,
    pub(super) ownership: Ownership,
}

/// Whether objects come with `metadata.managedFields`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Without: as large as the rest of the object, and of no use to controllers.
    #[default]
    Hidden,
    /// With, as an API server answers over HTTP.
    Shown,
}

impl Ownership {
    /// The object as the caller is to see it.
    pub(super) fn show(self, mut object: Value) -> Value {
        if self == Self::Hidden {
            object::unset(&mut object, "managedFields");
        }
        object
    }
}

/// Warnings of the calls of one handle.
#[derive(Debug, Clone, Default)]
pub(super) struct Warnings(Option<Arc<Mutex<Vec<String>>>>);

/// A handle that is never asked for its warnings keeps no more than these.
const MAX_WARNINGS: usize = 256;

impl Warnings {
    pub(super) fn kept() -> Self {
        Self(Some(Arc::default()))
    }

    pub(super) fn extend(&self, warnings: impl IntoIterator<Item = String>) {
        if let Some(kept) = &self.0 {
            let mut kept = kept.lock();
            for warning in warnings {
                if kept.len() < MAX_WARNINGS && !kept.contains(&warning) {
                    kept.push(warning);
                }
            }
        }
    }

    pub(super) fn take(&self) -> Vec<String> {
        let kept = self.0.as_ref();
        kept.map(|kept| std::mem::take(&mut *kept.lock())).unwrap_or_default()
    }
}
