//! For which kinds rules are made.

use ephor_expr::Str;

use crate::policy::Policy;

/// The annotation that names the kinds.
pub const ANNOTATION: &str = "pod-policies.kyverno.io/autogen-controllers";

/// Kinds whose Pod template stands at `spec.template`, sorted, with the selectors that generated rules use.
const STANDARD: [(&str, &str); 6] = [
    ("DaemonSet", "apps/v1/DaemonSet"),
    ("Deployment", "apps/v1/Deployment"),
    ("Job", "batch/v1/Job"),
    ("ReplicaSet", "apps/v1/ReplicaSet"),
    ("ReplicationController", "v1/ReplicationController"),
    ("StatefulSet", "apps/v1/StatefulSet"),
];

/// The kinds that rules are made for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Controllers {
    /// Kinds with a template at `spec.template`: standard ones, then custom ones as the annotation names them.
    pub templated: Vec<Str>,
    /// Whether `CronJobs` are among them.
    pub cron_jobs: bool,
    /// Whether the annotation has the old value `all`.
    pub says_all: bool,
}

impl Controllers {
    fn standard() -> Self {
        let templated = STANDARD.iter().map(|(kind, _)| Str::new_static(kind)).collect();
        Self { templated, cron_jobs: true, says_all: false }
    }

    /// Whether there is no kind.
    pub fn is_empty(&self) -> bool {
        self.templated.is_empty() && !self.cron_jobs
    }
}

/// The kinds that a policy's annotation asks for; all seven standard ones without it.
///
/// Names are trimmed (upstream compares them with their spaces, so that `Deployment, Job` silently loses `Job`), and
/// custom kinds stand beside standard ones (upstream then drops them from registration and mutation).
pub fn controllers(policy: &Policy) -> Controllers {
    let Some(text) = policy.metadata.annotation(ANNOTATION) else { return Controllers::standard() };
    let mut found = Controllers::default();
    let mut custom = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none") {
        match name {
            "all" => return Controllers { says_all: true, ..Controllers::standard() },
            "CronJob" => found.cron_jobs = true,
            _ if STANDARD.iter().any(|(kind, _)| *kind == name) => found.templated.push(Str::new(name)),
            _ => custom.push(Str::new(name)),
        }
    }
    found.templated.sort();
    found.templated.dedup();
    custom.retain(|kind| !found.templated.contains(kind));
    found.templated.extend(custom);
    found
}

/// The selector of a kind in generated rules.
pub(super) fn selector(kind: &Str) -> Str {
    STANDARD.iter().find(|(known, _)| known == kind).map_or_else(|| kind.clone(), |(_, s)| Str::new_static(s))
}
