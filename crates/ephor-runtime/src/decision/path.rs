//! The URL paths of the resource webhooks, and which policies each is for.

use ephor_engine::compile::Program;
use ephor_engine::policy::FailurePolicy;

use crate::policies::PolicyId;

/// The kind of a resource webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// Changes.
    Mutate,
    /// A verdict.
    Validate,
}

impl Webhook {
    /// The word in paths and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// The policies that a webhook serves, as its URL path says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WebhookScope {
    /// All policies without match conditions of their own.
    All,
    /// Those of [`WebhookScope::All`] with this failure policy.
    ByFailurePolicy(FailurePolicy),
    /// One policy.
    OnePolicy(FailurePolicy, PolicyId),
}

impl WebhookScope {
    /// The failure policy for errors of Ephor itself. A webhook for both failure policies fails closed.
    pub fn failure_policy(&self) -> FailurePolicy {
        match self {
            Self::All => FailurePolicy::Fail,
            Self::ByFailurePolicy(policy) | Self::OnePolicy(policy, _) => *policy,
        }
    }
}

/// Reads a path such as `/validate/fail` or `/mutate/ignore/finegrained/ns/name`; `None` if it is none of these.
pub fn parse(path: &str) -> Option<(Webhook, WebhookScope)> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let webhook = match parts.next()? {
        "mutate" => Webhook::Mutate,
        "validate" => Webhook::Validate,
        _ => return None,
    };
    let failure = match parts.next() {
        None => return Some((webhook, WebhookScope::All)),
        Some("fail") => FailurePolicy::Fail,
        Some("ignore") => FailurePolicy::Ignore,
        Some(_) => return None,
    };
    let scope = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (None, ..) => WebhookScope::ByFailurePolicy(failure),
        (Some("finegrained"), Some(name), None, _) if !name.is_empty() => {
            WebhookScope::OnePolicy(failure, PolicyId::kyverno("", name))
        }
        (Some("finegrained"), Some(namespace), Some(name), None) if !namespace.is_empty() && !name.is_empty() => {
            WebhookScope::OnePolicy(failure, PolicyId::kyverno(namespace, name))
        }
        _ => return None,
    };
    Some((webhook, scope))
}

/// What an error of a policy means, when some or all are forced to fail open.
pub fn failure_policy(program: &Program, force_ignore: bool) -> FailurePolicy {
    if force_ignore { FailurePolicy::Ignore } else { program.failure_policy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_their_policies() {
        use FailurePolicy::{Fail, Ignore};
        for (path, want) in [
            ("/validate", Some((Webhook::Validate, WebhookScope::All))),
            ("/mutate/fail", Some((Webhook::Mutate, WebhookScope::ByFailurePolicy(Fail)))),
            ("/validate/ignore", Some((Webhook::Validate, WebhookScope::ByFailurePolicy(Ignore)))),
            (
                "/validate/fail/finegrained/p",
                Some((Webhook::Validate, WebhookScope::OnePolicy(Fail, PolicyId::parse("p")))),
            ),
            (
                "/mutate/ignore/finegrained/n/p",
                Some((Webhook::Mutate, WebhookScope::OnePolicy(Ignore, PolicyId::parse("n/p")))),
            ),
            ("/validate/", None),
            ("/validate/fail/finegrained", None),
            ("/validate/fail/finegrained/", None),
            ("/validate/fail/finegrained/a/b/c", None),
            ("/validate/fail/x", None),
            ("/policyvalidate", None),
            ("", None),
        ] {
            assert_eq!(parse(path), want, "{path}");
        }
    }
}
