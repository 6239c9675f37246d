//! How to write to a cluster.

use ephor_expr::{Str, Value};

/// How to create, update or patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Do everything but the writing: the answer is what would have been stored.
    pub dry_run: bool,
    /// On whose behalf; empty for the client's default. An API server notes it in `metadata.managedFields`.
    pub field_manager: Str,
    /// What is written.
    pub part: Part,
    /// Whether an apply patch takes fields away from other managers instead of being refused with a conflict.
    pub force: bool,
    /// What happens to fields that the kind does not have.
    pub field_validation: FieldValidation,
}

/// What happens to fields that a kind does not have. They are never stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// The client is warned.
    #[default]
    Warn,
    /// Nothing is said.
    Ignore,
    /// The write is refused.
    Strict,
}

impl WriteOptions {
    /// As [`WriteOptions::default`], without storing anything.
    pub fn dry_run() -> Self {
        Self { dry_run: true, ..Self::default() }
    }
}

/// The part of an object that a write is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status, where the kind keeps that apart.
    #[default]
    Object,
    /// Nothing but the status.
    Status,
}

/// A change to an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The language of the document.
    pub kind: PatchKind,
    /// The patch.
    pub document: Value,
}

/// The languages of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchKind {
    /// JSON patch (RFC 6902): a list of operations.
    Json,
    /// JSON merge patch (RFC 7386): members replace members, null removes.
    Merge,
    /// Strategic merge patch of Kubernetes: lists of objects merge by key.
    Strategic,
    /// Server-side apply: what the manager that applies it wants the object to be, with `apiVersion` and `kind`.
    /// Needs [`WriteOptions::field_manager`]; creates the object if there is none.
    Apply,
}

impl PatchKind {
    /// The media type of such a patch in a request.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            // JSON is YAML.
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

impl Patch {
    /// A JSON merge patch.
    pub fn merge(document: Value) -> Self {
        Self { kind: PatchKind::Merge, document }
    }

    /// A strategic merge patch.
    pub fn strategic(document: Value) -> Self {
        Self { kind: PatchKind::Strategic, document }
    }

    /// A server-side apply.
    pub fn apply(document: Value) -> Self {
        Self { kind: PatchKind::Apply, document }
    }

    /// A JSON patch.
    pub fn json(document: Value) -> Self {
        Self { kind: PatchKind::Json, document }
    }
}

/// How to delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Do everything but the deleting.
    pub dry_run: bool,
    /// Only if the object has this UID; empty for any.
    pub uid: Str,
    /// Only if the object is in this version; empty for any.
    pub resource_version: Str,
    /// What happens to the objects that the deleted one owns; `None` for what the object's finalizers say, and
    /// else [`Propagation::Background`].
    pub propagation: Option<Propagation>,
}

/// What happens to owned objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// They are deleted later.
    Background,
    /// They are deleted first; the owner stays until those that block it are gone.
    Foreground,
    /// They stay, without the owner.
    Orphan,
}

/// How far a deletion got.
#[derive(Debug, Clone, PartialEq)]
pub enum Deletion {
    /// The object is gone; this is its last state.
    Done(Value),
    /// The object is marked as deleted and goes when its finalizers are removed, or when what it contains is gone.
    Pending(Value),
}

impl Deletion {
    /// The object's state after the call.
    pub fn into_object(self) -> Value {
        match self {
            Self::Done(object) | Self::Pending(object) => object,
        }
    }

    /// Whether the object is gone.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}
