//! The names of webhook configurations and webhooks, and their paths.
//!
//! All names are upstream's, so that what it left behind is taken over and not doubled. In shadow
//! mode Ephor stands beside the engine that decides, under names of its own.

use ephor_engine::policy::FailurePolicy;
use ephor_expr::Str;
use ephor_runtime::policies::PolicyId;

use super::settings::Serving;

/// The paths of the admission server.
pub mod paths {
    /// Resources: `/validate/{fail,ignore}[/finegrained/[NAMESPACE/]NAME][/proven/TOKEN]`.
    pub const VALIDATE: &str = "/validate";
    /// Resources: `/mutate/{fail,ignore}[/finegrained/[NAMESPACE/]NAME][/proven/TOKEN]`.
    pub const MUTATE: &str = "/mutate";
    /// Policies.
    pub const POLICY_VALIDATE: &str = "/policyvalidate";
    /// Policies; everything is allowed.
    pub const POLICY_MUTATE: &str = "/policymutate";
    /// Policy exceptions.
    pub const EXCEPTION_VALIDATE: &str = "/exceptionvalidate";
    /// Global context entries.
    pub const GLOBAL_CONTEXT_VALIDATE: &str = "/globalcontextvalidate";
    /// Cleanup policies. Upstream serves them under `/validate` of a service of their own.
    pub const CLEANUP_VALIDATE: &str = "/cleanupvalidate";
    /// TTL labels.
    pub const VERIFY_TTL: &str = "/verifyttl";
    /// Proof that the API server reaches the webhooks; everything is allowed.
    pub const VERIFY_MUTATE: &str = "/verifymutate";
}

/// The segment of a path and of a name that stands for a failure policy.
pub(crate) fn failure_segment(failure: FailurePolicy) -> &'static str {
    match failure {
        FailurePolicy::Fail => "fail",
        FailurePolicy::Ignore => "ignore",
    }
}

/// The name and the path of one policy's own webhook: a part to append to those of all policies.
pub(crate) fn fine_grained(policy: &PolicyId) -> (String, String) {
    match &policy.namespace {
        None => (format!("-finegrained-{}", policy.name), format!("/finegrained/{}", policy.name)),
        Some(ns) => (format!("-finegrained-{ns}-{}", policy.name), format!("/finegrained/{ns}/{}", policy.name)),
    }
}

/// Names that depend on how Ephor serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    prefix: &'static str,
    domain: &'static str,
    label: (&'static str, &'static str),
}

impl Names {
    /// The names for a way of serving.
    pub fn of(serving: Serving) -> Self {
        match serving {
            Serving::Enforcing => {
                Self { prefix: "kyverno", domain: "kyverno.svc", label: ("webhook.kyverno.io/managed-by", "kyverno") }
            }
            Serving::Shadow => Self {
                prefix: "ephor-shadow",
                domain: "ephor-shadow.svc",
                label: ("ephor.dev/managed-by", "ephor-shadow"),
            },
        }
    }

    /// The label that marks the configurations as ours.
    pub fn label(&self) -> (&'static str, &'static str) {
        self.label
    }

    /// The name of a configuration, for example `kyverno-resource-validating-webhook-cfg`.
    pub fn configuration(&self, what: &str) -> Str {
        format!("{}-{what}-webhook-cfg", self.prefix).into()
    }

    /// Whether a configuration of that name is, or may be, one of ours.
    pub(super) fn are_of(&self, name: &str) -> bool {
        name.strip_prefix(self.prefix).is_some_and(|rest| rest.starts_with('-')) && name.ends_with("-webhook-cfg")
    }

    /// The name of a webhook, for example `validate.kyverno.svc-fail`.
    pub fn webhook(&self, what: &str, rest: &str) -> String {
        format!("{what}.{}{rest}", self.domain)
    }
}
