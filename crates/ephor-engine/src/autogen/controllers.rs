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
    for name in names.filter(|name| !name.is_empty() && *name != NONE) {
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

/// The words of the annotation, if there is one; an empty text has none.
fn annotated(policy: &Policy) -> Option<impl Iterator<Item = &str>> {
    let text = policy.metadata.annotation(ANNOTATION)?;
    let words = Some(text).filter(|text| !text.trim().is_empty()).map(|text| text.split(',').map(str::trim));
    Some(words.into_iter().flatten())
}

/// Whether `kind` is the name of one of Kubernetes' own controller kinds.
pub(super) fn is_standard(kind: &str) -> bool {
    kind == CRON_JOB || STANDARD.iter().any(|(known, _)| *known == kind)
}

/// A word of the annotation that does not do what its author may expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misnamed<'p> {
    /// The word.
    pub name: &'p str,
    /// What is wrong with it.
    pub fault: Fault,
    /// The nearest word that means something.
    pub nearest: Option<&'static str>,
}

/// What is wrong with a word of the annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be the name of a kind with a Pod template.
    NoKind,
    /// It could be a custom kind, and looks like a misspelt kind of Kubernetes.
    Custom,
    /// It is a kind of Kubernetes that has no Pod template.
    NoTemplate,
    /// Nothing stands between two commas.
    Empty,
    /// `none` beside other words.
    NoneBesideOthers,
}

/// The words of a policy's annotation that name no kind, or look like a misspelt one. A custom kind can have any name
/// that a kind can have. `is_native` says which kinds Kubernetes has.
pub fn misnamed(policy: &Policy, is_native: impl Fn(&str) -> bool) -> Vec<Misnamed<'_>> {
    let words: Vec<&str> = annotated(policy).into_iter().flatten().collect();
    let judge = |name: &&'_ str| {
        let nearest = nearest(name, STANDARD.iter().map(|(kind, _)| *kind).chain([CRON_JOB, NONE]));
        let is_kind = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|b| b.is_ascii_alphanumeric())
            && *name != "Pod"
            && ![NONE, "all"].iter().any(|word| name.eq_ignore_ascii_case(word));
        match *name {
            "" => Some(Fault::Empty),
            NONE => (words.len() > 1).then_some(Fault::NoneBesideOthers),
            "all" => None,
            name if is_standard(name) => None,
            _ if !is_kind => Some(Fault::NoKind),
            name if is_native(name) => Some(Fault::NoTemplate),
            _ => nearest.is_some().then_some(Fault::Custom),
        }
        .map(|fault| (fault, nearest))
    };
    words.iter().filter_map(|name| judge(name).map(|(fault, nearest)| Misnamed { name, fault, nearest })).collect()
}

/// The selector of a kind in generated rules.
pub(super) fn selector(kind: &Str) -> Str {
    STANDARD.iter().find(|(known, _)| known == kind).map_or_else(|| kind.clone(), |(_, s)| Str::new_static(s))
}
