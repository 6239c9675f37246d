//! A stored policy that deletes: which one it is, when it is due, and what its annotations ask for.

use std::fmt;
use std::sync::Arc;

use ephor_engine::cleanup::CleanupProgram;
use ephor_engine::compile::{Body as RuleBody, Program, compile};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::policy::{DeletionPropagation, ProgramKind};
use ephor_engine::rules::delete::PolicyDeletion;
use ephor_engine::schedule::{Schedule, base, time_at};
use ephor_engine::select::PolicySet;
use ephor_expr::{Str, Value};
use ephor_runtime::events::Reference;
use ephor_runtime::policies::StoredPolicy;
use jiff::Timestamp;

/// The annotation that makes a policy tell what it would delete: `audit`.
pub const MODE_ANNOTATION: &str = "ephor.dev/cleanup-mode";
/// The annotation with the most objects that a run may delete.
pub const LIMIT_ANNOTATION: &str = "ephor.dev/cleanup-limit";

/// A kind of policy that deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `CleanupPolicy`.
    Cleanup,
    /// `ClusterCleanupPolicy`.
    ClusterCleanup,
    /// `DeletingPolicy`.
    Deleting,
    /// `NamespacedDeletingPolicy`.
    NamespacedDeleting,
}

impl Kind {
    /// Those of `kyverno.io`, which no [`PolicyStore`](ephor_runtime::policies::PolicyStore) follows.
    pub const CLEANUP: [Self; 2] = [Self::Cleanup, Self::ClusterCleanup];

    /// The kind, as documents spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cleanup => "CleanupPolicy",
            Self::ClusterCleanup => "ClusterCleanupPolicy",
            Self::Deleting => ProgramKind::DeletingPolicy.as_str(),
            Self::NamespacedDeleting => ProgramKind::NamespacedDeletingPolicy.as_str(),
        }
    }

    /// The version in which its objects are read and written.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Cleanup | Self::ClusterCleanup => "kyverno.io/v2",
            Self::Deleting | Self::NamespacedDeleting => "policies.kyverno.io/v1beta1",
        }
    }

    /// Whether it is of `policies.kyverno.io`.
    pub fn is_of_cel(self) -> bool {
        matches!(self, Self::Deleting | Self::NamespacedDeleting)
    }

    fn is_namespaced(self) -> bool {
        matches!(self, Self::Cleanup | Self::NamespacedDeleting)
    }
}

/// Which policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// The namespace that bounds it; `None` for a policy of the cluster.
    pub namespace: Option<Str>,
    /// Its name.
    pub name: Str,
}

impl Key {
    /// The key of a document of that kind. A namespaced one without a namespace is in `default`.
    pub fn of(kind: Kind, document: &Value) -> Self {
        let text = |key| document.str_at(&["metadata", key]).filter(|text| !text.is_empty());
        Self {
            kind,
            namespace: kind.is_namespaced().then(|| text("namespace").unwrap_or("default").into()),
            name: text("name").unwrap_or_default().into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.as_str(), self.name),
            None => write!(f, "{} {}", self.kind.as_str(), self.name),
        }
    }
}

/// What says whether an object goes.
#[derive(Debug, Clone)]
pub enum Body {
    /// `match`, `exclude` and conditions over `target`.
    Cleanup(Arc<CleanupProgram>),
    /// Expressions in CEL.
    Deleting(DeletingBody),
}

/// A compiled `DeletingPolicy`, alone in its set.
#[derive(Debug, Clone)]
pub struct DeletingBody {
    pub(crate) set: Arc<PolicySet>,
}

impl DeletingBody {
    fn new(program: Arc<Program>) -> Option<Self> {
        deletion(&program)?;
        Some(Self { set: Arc::new(PolicySet::new(vec![program])) })
    }

    /// What the policy's one rule says.
    pub fn deletion(&self) -> Option<&PolicyDeletion> {
        deletion(self.set.programs().first()?)
    }
}

fn deletion(program: &Program) -> Option<&PolicyDeletion> {
    program.rules.iter().find_map(|rule| match &rule.body {
        RuleBody::Delete(deletion) => Some(&**deletion),
        _ => None,
    })
}

impl Body {
    /// When the policy runs.
    pub fn schedule(&self) -> Option<&Schedule> {
        match self {
            Self::Cleanup(program) => Some(&program.schedule),
            Self::Deleting(body) => body.deletion().map(|deletion| &deletion.schedule),
        }
    }

    /// How dependents of what is deleted are treated.
    pub fn propagation(&self) -> Option<DeletionPropagation> {
        match self {
            Self::Cleanup(program) => program.propagation,
            Self::Deleting(body) => body.deletion().and_then(|deletion| deletion.propagation),
        }
    }
}

/// Whether a run deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It does.
    #[default]
    Delete,
    /// It tells what it would delete.
    Audit,
}

/// What annotations of a policy ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether it deletes.
    pub mode: Mode,
    /// The most objects that a run may delete, if the policy says it.
    pub limit: Option<usize>,
}

impl Options {
    /// Reads the annotations. What cannot be read deletes nothing: the author wanted to be careful.
    pub fn of(document: &Value) -> Result<Self, String> {
        let annotation = |key| document.str_at(&["metadata", "annotations", key]);
        let mode = match annotation(MODE_ANNOTATION) {
            None => Mode::Delete,
            Some("audit") => Mode::Audit,
            Some(other) => return Err(format!("annotation {MODE_ANNOTATION} is `{other}`: expected `audit`")),
        };
        let limit = annotation(LIMIT_ANNOTATION).map(|text| {
            text.parse::<usize>()
                .map_err(|_| format!("annotation {LIMIT_ANNOTATION} is `{text}`: expected a number of objects"))
        });
        Ok(Self { mode, limit: limit.transpose()? })
    }
}

/// A stored policy.
#[derive(Debug, Clone)]
pub struct ScheduledPolicy {
    /// Which one.
    pub key: Key,
    /// The same for Events.
    pub reference: Reference,
    /// What it says, or why it cannot be carried out.
    pub body: Result<(Body, Options), String>,
    /// When it was created.
    pub created: Timestamp,
    /// When it ran last, as its status says.
    pub last: Option<Timestamp>,
    /// `metadata.generation`.
    pub generation: i64,
}

impl ScheduledPolicy {
    /// Compiles a document of `kyverno.io`.
    pub fn of_cleanup(kind: Kind, document: &Value) -> Self {
        let body = CleanupProgram::compile(document).map(|program| Body::Cleanup(Arc::new(program)));
        Self::new(kind, document, body.map_err(|found| why(&found)))
    }

    /// A policy of `policies.kyverno.io` as a store holds it; `None` if it deletes nothing.
    pub fn of_stored(stored: &StoredPolicy) -> Option<Self> {
        let kind = deleting_kind(stored.key.kind)?;
        let body = stored.program.clone().and_then(DeletingBody::new).map(Body::Deleting);
        Some(Self::new(kind, &stored.document, body.ok_or_else(|| why(&stored.findings))))
    }

    /// Any document of a policy that deletes; `None` if it is none.
    pub fn of_document(document: &Value) -> Option<Self> {
        let kind = document.str_at(&["kind"])?;
        if let Some(kind) = Kind::CLEANUP.into_iter().find(|known| known.as_str() == kind) {
            return Some(Self::of_cleanup(kind, document));
        }
        let kind = deleting_kind(ProgramKind::parse(kind)?)?;
        let compiled = compile(document);
        let body = compiled.program.map(Arc::new).and_then(DeletingBody::new).map(Body::Deleting);
        Some(Self::new(kind, document, body.ok_or_else(|| why(&compiled.findings))))
    }

    fn new(kind: Kind, document: &Value, body: Result<Body, String>) -> Self {
        Self {
            key: Key::of(kind, document),
            reference: Reference::of(document),
            body: body.and_then(|body| Ok((body, Options::of(document)?))),
            created: time_at(document, &["metadata", "creationTimestamp"]).unwrap_or_default(),
            last: time_at(document, &["status", "lastExecutionTime"]),
            generation: document.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default(),
        }
    }

    /// From when on its next time counts, if it ran at `ran` and nobody has written that yet.
    pub fn base(&self, ran: Option<Timestamp>, now: Timestamp) -> Timestamp {
        base(self.last.max(ran), self.created, now)
    }

    /// When it is due after that; `None` if it never is.
    pub fn next(&self, base: Timestamp) -> Option<Timestamp> {
        let (body, _) = self.body.as_ref().ok()?;
        body.schedule()?.next(base)
    }
}

fn deleting_kind(kind: ProgramKind) -> Option<Kind> {
    match kind {
        ProgramKind::DeletingPolicy => Some(Kind::Deleting),
        ProgramKind::NamespacedDeletingPolicy => Some(Kind::NamespacedDeleting),
        _ => None,
    }
}

fn why(found: &[Diagnostic]) -> String {
    let errors: Vec<String> = found.iter().filter(|found| found.is_error()).map(ToString::to_string).collect();
    if errors.is_empty() { "the policy has no rule that deletes".to_owned() } else { errors.join("; ") }
}
