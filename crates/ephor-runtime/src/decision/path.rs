//! The URL paths of the resource webhooks, and which policies each is for.

use ephor_engine::compile::Program;
use ephor_engine::policy::FailurePolicy;

use crate::policies::PolicyKey;

/// What a webhook is asked for.
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

/// Which policies a webhook is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lane {
    /// All without match conditions of their own.
    All,
    /// Those of them with this failure policy.
    Failing(FailurePolicy),
    /// This one.
    Own(FailurePolicy, PolicyKey),
}

impl Lane {
    /// What an error of Ephor itself means here. Where both kinds of policy are judged, the safe side counts.
    pub fn failure_policy(&self) -> FailurePolicy {
        match self {
            Self::All => FailurePolicy::Fail,
            Self::Failing(policy) | Self::Own(policy, _) => *policy,
        }
    }
}

/// Reads a path such as `/validate/fail` or `/mutate/ignore/finegrained/ns/name`; `None` if it is none of these.
pub fn parse(path: &str) -> Option<(Webhook, Lane)> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let webhook = match parts.next()? {
        "mutate" => Webhook::Mutate,
        "validate" => Webhook::Validate,
        _ => return None,
    };
    let failure = match parts.next() {
        None => return Some((webhook, Lane::All)),
        Some("fail") => FailurePolicy::Fail,
        Some("ignore") => FailurePolicy::Ignore,
        Some(_) => return None,
    };
    let lane = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (None, ..) => Lane::Failing(failure),
        (Some("finegrained"), Some(name), None, _) if !name.is_empty() => {
            Lane::Own(failure, PolicyKey { namespace: None, name: name.into() })
        }
        (Some("finegrained"), Some(namespace), Some(name), None) if !namespace.is_empty() && !name.is_empty() => {
            Lane::Own(failure, PolicyKey { namespace: Some(namespace.into()), name: name.into() })
        }
        _ => return None,
    };
    Some((webhook, lane))
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
            ("/validate", Some((Webhook::Validate, Lane::All))),
            ("/mutate/fail", Some((Webhook::Mutate, Lane::Failing(Fail)))),
            ("/validate/ignore", Some((Webhook::Validate, Lane::Failing(Ignore)))),
            ("/validate/fail/finegrained/p", Some((Webhook::Validate, Lane::Own(Fail, PolicyKey::parse("p"))))),
            ("/mutate/ignore/finegrained/n/p", Some((Webhook::Mutate, Lane::Own(Ignore, PolicyKey::parse("n/p"))))),
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
