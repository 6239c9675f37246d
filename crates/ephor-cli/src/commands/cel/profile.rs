//! Where an expression stands: that decides which variables, functions and limits it has.

use std::sync::Arc;

use ephor_expr::cel::profile::{Kubernetes, Kyverno, Version, kyverno_image_reference};
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

/// A version of Kyverno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum KyvernoVersion {
    /// Kyverno 1.18.
    #[value(name = "1.18")]
    V1_18,
    /// What comes after it, which Ephor follows.
    Head,
}

/// Where expressions stand.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Place {
    /// Where the expressions stand.
    #[arg(long, short, value_enum, default_value_t = Profile::Vap)]
    pub(super) profile: Profile,
    /// The version of Kyverno whose expressions are meant, for kinds of policies.kyverno.io.
    #[arg(long, value_enum, default_value_t = KyvernoVersion::Head, value_name = "VERSION")]
    kyverno: KyvernoVersion,
}

impl Place {
    /// What expressions there can use.
    pub(super) fn environment(self) -> Environment {
        let version = match self.kyverno {
            KyvernoVersion::V1_18 => Version::V1_18,
            KyvernoVersion::Head => Version::Head,
        };
        let kyverno = match self.profile {
            Profile::Vap => return Kubernetes::Policy.environment(),
            Profile::VapMessage => return Kubernetes::Message.environment(),
            Profile::Webhook => return Kubernetes::Webhook.environment(),
            Profile::Map => return Kubernetes::Mutation.environment(),
            Profile::Vpol => Kyverno::Validating,
            Profile::Nvpol => Kyverno::NamespacedValidating,
            Profile::Mpol => Kyverno::Mutating,
            Profile::Gpol => Kyverno::Generating,
            Profile::Dpol => Kyverno::Deleting,
            Profile::Ivpol => Kyverno::ImageValidating,
            Profile::MatchImage => return kyverno_image_reference(),
        };
        kyverno.environment_of(version)
    }
}

/// Compiles an expression; a file's last line may end in a line feed.
pub(super) fn compile(file: &Arc<SourceFile>, environment: &Environment) -> Result<Program, Vec<Located>> {
    Program::compile(file.text.trim_end(), environment).map_err(|error| Located::of_cel(&error, file))
}
