//! Where an expression stands: that decides which variables, functions and limits it has.

use std::sync::Arc;

use ephor_expr::cel::profile::{Kubernetes, Kyverno, kyverno_image_reference};
use ephor_expr::cel::{Environment, Program};

use crate::locate::{Located, SourceFile};

/// A place where expressions stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[expect(clippy::doc_markdown, reason = "these lines are printed as help")]
pub(super) enum Profile {
    /// ValidatingAdmissionPolicy and `validate.cel`.
    Vap,
    /// `messageExpression` of a ValidatingAdmissionPolicy.
    VapMessage,
    /// Match conditions of webhooks.
    Webhook,
    /// MutatingAdmissionPolicy.
    Map,
    /// ValidatingPolicy of policies.kyverno.io.
    Vpol,
    /// NamespacedValidatingPolicy.
    Nvpol,
    /// MutatingPolicy.
    Mpol,
    /// GeneratingPolicy.
    Gpol,
    /// DeletingPolicy.
    Dpol,
    /// ImageValidatingPolicy.
    Ivpol,
    /// Match conditions over image references.
    MatchImage,
}

impl Profile {
    /// What expressions there can use.
    pub(super) fn environment(self) -> Environment {
        match self {
            Profile::Vap => Kubernetes::Policy.environment(),
            Profile::VapMessage => Kubernetes::Message.environment(),
            Profile::Webhook => Kubernetes::Webhook.environment(),
            Profile::Map => Kubernetes::Mutation.environment(),
            Profile::Vpol => Kyverno::Validating.environment(),
            Profile::Nvpol => Kyverno::NamespacedValidating.environment(),
            Profile::Mpol => Kyverno::Mutating.environment(),
            Profile::Gpol => Kyverno::Generating.environment(),
            Profile::Dpol => Kyverno::Deleting.environment(),
            Profile::Ivpol => Kyverno::ImageValidating.environment(),
            Profile::MatchImage => kyverno_image_reference(),
        }
    }
}

/// Compiles an expression; a file's last line may end in a line feed.
pub(super) fn compile(file: &Arc<SourceFile>, environment: &Environment) -> Result<Program, Vec<Located>> {
    Program::compile(file.text.trim_end(), environment).map_err(|error| Located::of_cel(&error, file))
}
