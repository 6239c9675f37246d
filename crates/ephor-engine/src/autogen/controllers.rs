//! For which kinds rules are made.

use ephor_expr::Str;
use ephor_expr::scalar::nearest::nearest;

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

/// The kind whose Pod template stands at `spec.jobTemplate.spec.template`.
const CRON_JOB: &str = "CronJob";

/// The word for no kinds at all.
const NONE: &str = "none";

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
    let Some(names) = annotated(policy) else { return Controllers::standard() };
    let mut found = Controllers::default();
    let mut custom = Vec::new();
    for name in names.filter(|name| *name != NONE) {
        match name {
            "all" => return Controllers { says_all: true, ..Controllers::standard() },
            CRON_JOB => found.cron_jobs = true,
            _ if is_standard(name) => found.templated.push(Str::new(name)),
            _ => custom.push(Str::new(name)),
        }
    }
    found.templated.sort();
    found.templated.dedup();
    custom.retain(|kind| !found.templated.contains(kind));
    found.templated.extend(custom);
    found
}

/// The words of the annotation, if there is one.
fn annotated(policy: &Policy) -> Option<impl Iterator<Item = &str>> {
    let text = policy.metadata.annotation(ANNOTATION)?;
    Some(text.split(',').map(str::trim).filter(|name| !name.is_empty()))
}

/// Whether `kind` is the name of one of Kubernetes' own controller kinds.
pub(super) fn is_standard(kind: &str) -> bool {
    kind == CRON_JOB || STANDARD.iter().any(|(known, _)| *known == kind)
}

/// A word of the annotation that is no kind with a Pod template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misnamed<'p> {
    /// The word.
    pub name: &'p str,
    /// The nearest word that means something.
    pub nearest: Option<&'static str>,
    /// Whether it could still be a custom kind.
    pub may_be_custom: bool,
}

/// The words of a policy's annotation that name no kind, or look like a misspelt one. A custom kind can have any name
/// that a kind can have.
pub fn misnamed(policy: &Policy) -> Vec<Misnamed<'_>> {
    let judge = |name| {
        let known = || STANDARD.iter().map(|(kind, _)| *kind).chain([CRON_JOB, NONE]);
        let nearest = nearest(name, known());
        let is_kind = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|b| b.is_ascii_alphanumeric())
            && name != "Pod"
            && ![NONE, "all"].iter().any(|word| name.eq_ignore_ascii_case(word));
        let fine = name == NONE || name == "all" || is_standard(name) || (is_kind && nearest.is_none());
        (!fine).then_some(Misnamed { name, nearest, may_be_custom: is_kind })
    };
    annotated(policy).into_iter().flatten().filter_map(judge).collect()
}

/// The selector of a kind in generated rules.
pub(super) fn selector(kind: &Str) -> Str {
    STANDARD.iter().find(|(known, _)| known == kind).map_or_else(|| kind.clone(), |(_, s)| Str::new_static(s))
}
