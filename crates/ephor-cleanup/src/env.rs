//! What the controllers work with, and how moments are times.

use std::fmt;
use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_engine::matching::ResourceFilters;
use ephor_runtime::CancellationToken;
use ephor_runtime::events::Recorder;
use ephor_runtime::facts::Answers;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::queue::Moment;
use jiff::Timestamp;

use crate::writer::Fence;

/// What an operator says about all policies.
#[derive(Debug, Clone, Copy, Default)]
pub struct CleanupOptions {
    /// The most objects that a run may delete where the policy does not say it; `None`: any number.
    pub limit: Option<usize>,
    /// Whether objects that Ephor made stay.
    pub protect_managed: bool,
}

/// What the controller works with.
pub struct Env {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Answers to the engine's questions.
    pub answers: Arc<dyn Answers>,
    /// Asked before each write.
    pub fence: Fence,
    /// Which objects no policy sees.
    pub filters: Box<dyn Fn() -> Arc<ResourceFilters> + Send + Sync>,
    /// What an operator says.
    pub options: CleanupOptions,
    /// Who writes Events.
    pub events: Recorder,
    /// What is counted.
    pub metrics: Metrics,
    /// Ends long runs.
    pub stop: CancellationToken,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Env({:?})", self.options)
    }
}

/// A moment as time.
pub(crate) fn timestamp(now: Moment) -> Timestamp {
    Timestamp::from_millisecond(i64::try_from(now).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX)
}

/// A time as a moment.
pub(crate) fn moment(at: Timestamp) -> Moment {
    Moment::try_from(at.as_millisecond()).unwrap_or(0)
}
