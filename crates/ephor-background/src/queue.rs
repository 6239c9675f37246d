//! The tasks of the background controller.

use std::collections::BTreeMap;

use ephor_expr::Str;
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::{Moment, Queue};

/// A policy and a trigger: what synchronizing work is coalesced by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkKey {
    /// The policy.
    pub policy: PolicyId,
    /// The trigger's UID.
    pub trigger: Str,
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Write failures to the status of a policy.
    Report(PolicyId),
    /// Note in a policy's status since when its rules are what they are.
    Note(PolicyId),
    /// Do what an `UpdateRequest` of that name asks for.
    Request(Str),
    /// Make good what the rules of a policy want for a trigger.
    Reconcile(WorkKey),
    /// Look at the triggers that were there before a policy.
    Existing(PolicyId),
    /// Look at the triggers in a namespace whose labels changed.
    NamespaceLabels(Str),
    /// Find out which kinds have downstreams.
    Sweep,
    /// Take an `UpdateRequest` away.
    Collect(Str),
}

impl Task {
    /// Sorts of work, as metrics name them.
    pub const SORTS: [&'static str; 8] =
        ["report", "note", "request", "reconcile", "existing", "relabelled", "sweep", "collect"];

    /// Which sort this is.
    pub fn sort(&self) -> &'static str {
        match self {
            Self::Report(_) => "report",
            Self::Note(_) => "note",
            Self::Request(_) => "request",
            Self::Reconcile(_) => "reconcile",
            Self::Existing(_) => "existing",
            Self::NamespaceLabels(_) => "relabelled",
            Self::Sweep => "sweep",
            Self::Collect(_) => "collect",
        }
    }
}

/// How many triggers of a policy are looked at or to be looked at.
pub fn reconciling(queue: &Queue<Task>, policy: &PolicyId) -> usize {
    let first = Task::Reconcile(WorkKey { policy: policy.clone(), trigger: Str::default() });
    let of_policy = |task: &&Task| matches!(task, Task::Reconcile(key) if key.policy == *policy);
    queue.range(first..).map(|(task, _)| task).take_while(of_policy).count()
}

/// All work of each sort: how much there is, and how long the oldest that should be done by now has been waiting,
/// in milliseconds. Work that failed waits for its next try.
pub fn backlog(queue: &Queue<Task>, now: Moment) -> BTreeMap<&'static str, (usize, Moment)> {
    let mut backlog: BTreeMap<&'static str, (usize, Moment)> =
        Task::SORTS.into_iter().map(|sort| (sort, (0, 0))).collect();
    for (task, since) in queue.iter() {
        let (depth, age) = backlog.entry(task.sort()).or_default();
        *depth += 1;
        *age = (*age).max(now.saturating_sub(since));
    }
    backlog
}
