//! The URL paths of the resource webhooks, and which policies each is for.
//!
//! Policies of `kyverno.io` share `/validate/fail`, `/mutate/ignore` and so on; one with conditions of its own has
//! `/validate/fail/finegrained/NAME`. Policies of `policies.kyverno.io` are named: `/vpol/NAME/NAME`, and
//! `/vpol-ignore/NAME` if errors are ignored, which those of a `GeneratingPolicy` always are (`/gpol/NAME`);
//! `/vpols/fail` stands for all of a kind, if there are too many to name.

use ephor_engine::compile::{Hook, Program};
use ephor_engine::policy::{FailurePolicy, ProgramKind};

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

    /// The webhooks whose demands it meets.
    pub fn hook(self) -> Hook {
        match self {
            Self::Mutate => Hook::Mutating,
            Self::Validate => Hook::Validating,
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
    /// All policies of a kind of `policies.kyverno.io` with this failure policy.
    OfKind(FailurePolicy, ProgramKind),
    /// These policies.
    Policies(FailurePolicy, Vec<PolicyId>),
}

/// The kinds of `policies.kyverno.io` that webhooks ask for: the word in paths and names, and which webhook.
const CEL: [(&str, ProgramKind, Webhook); 6] = [
    ("vpol", ProgramKind::ValidatingPolicy, Webhook::Validate),
    ("nvpol", ProgramKind::NamespacedValidatingPolicy, Webhook::Validate),
    ("mpol", ProgramKind::MutatingPolicy, Webhook::Mutate),
    ("nmpol", ProgramKind::NamespacedMutatingPolicy, Webhook::Mutate),
    ("gpol", ProgramKind::GeneratingPolicy, Webhook::Validate),
    ("ngpol", ProgramKind::NamespacedGeneratingPolicy, Webhook::Validate),
];

/// The word for a kind of `policies.kyverno.io` in paths and names of webhooks; `None` for other kinds.
pub fn word(kind: ProgramKind) -> Option<&'static str> {
    CEL.iter().find(|(_, known, _)| *known == kind).map(|(word, ..)| *word)
}

/// The kinds of `policies.kyverno.io` that this webhook is for.
pub fn kinds_of(webhook: Webhook) -> impl Iterator<Item = ProgramKind> {
    CEL.into_iter().filter(move |(.., of)| *of == webhook).map(|(_, kind, _)| kind)
}

/// Whether no policy of the kind fails a request: what it makes is made later.
pub fn never_fails(kind: ProgramKind) -> bool {
    matches!(kind, ProgramKind::GeneratingPolicy | ProgramKind::NamespacedGeneratingPolicy)
}

/// The longest path that names policies, in bytes. An API server sends it with each request.
const MAX_NAMES: usize = 1 << 10;

/// The path of a webhook for these policies of one kind of `policies.kyverno.io`; `None` for other kinds.
pub fn of_policies(failure: FailurePolicy, kind: ProgramKind, policies: &[&PolicyId]) -> Option<String> {
    let word = word(kind)?;
    let mut path = match failure {
        FailurePolicy::Ignore if !never_fails(kind) => format!("/{word}-ignore"),
        FailurePolicy::Fail | FailurePolicy::Ignore => format!("/{word}"),
    };
    for policy in policies {
        for part in policy.namespace.iter().chain([&policy.name]) {
            path.push('/');
            path.push_str(part);
        }
    }
    if path.len() > MAX_NAMES { of_kind(failure, kind) } else { Some(path) }
}

/// The path of a webhook for all policies of a kind of `policies.kyverno.io`; `None` for other kinds.
pub fn of_kind(failure: FailurePolicy, kind: ProgramKind) -> Option<String> {
    let failure = match failure {
        FailurePolicy::Fail => "fail",
        FailurePolicy::Ignore => "ignore",
    };
    word(kind).map(|word| format!("/{word}s/{failure}"))
}

impl WebhookScope {
    /// The failure policy for errors of Ephor itself. A webhook for both failure policies fails closed.
    pub fn failure_policy(&self) -> FailurePolicy {
        match self {
            Self::All => FailurePolicy::Fail,
            Self::ByFailurePolicy(policy) | Self::OfKind(policy, _) | Self::Policies(policy, _) => *policy,
        }
    }
}

/// Reads a path such as `/validate/fail` or `/mutate/ignore/finegrained/ns/name`; `None` if it is none of these.
pub fn parse(path: &str) -> Option<(Webhook, WebhookScope)> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let webhook = match parts.next()? {
        "mutate" => Webhook::Mutate,
        "validate" => Webhook::Validate,
        word => return parse_cel(word, &parts.collect::<Vec<_>>()),
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
            WebhookScope::Policies(failure, vec![PolicyId::kyverno("", name)])
        }
        (Some("finegrained"), Some(namespace), Some(name), None) if !namespace.is_empty() && !name.is_empty() => {
            WebhookScope::Policies(failure, vec![PolicyId::kyverno(namespace, name)])
        }
        _ => return None,
    };
    Some((webhook, scope))
}

/// Reads a path such as `/vpol/NAME` whose first segment is `word`.
fn parse_cel(word: &str, rest: &[&str]) -> Option<(Webhook, WebhookScope)> {
    let known = |word: &str| CEL.into_iter().find(|(known, ..)| *known == word);
    if let (Some((_, kind, webhook)), [failure]) = (word.strip_suffix('s').and_then(known), rest) {
        let failure = match *failure {
            "fail" => FailurePolicy::Fail,
            "ignore" => FailurePolicy::Ignore,
            _ => return None,
        };
        return Some((webhook, WebhookScope::OfKind(failure, kind)));
    }
    let (failure, word) = match word.strip_suffix("-ignore") {
        Some(word) => (FailurePolicy::Ignore, word),
        None => (FailurePolicy::Fail, word),
    };
    let (_, kind, webhook) = known(word)?;
    let failure = if never_fails(kind) { FailurePolicy::Ignore } else { failure };
    let size = if kind.is_namespaced() { 2 } else { 1 };
    if rest.is_empty() || !rest.len().is_multiple_of(size) || rest.iter().any(|part| part.is_empty()) {
        return None;
    }
    let policy = |parts: &[&str]| match parts {
        [namespace, name] => Some(PolicyId::new(kind, Some(namespace), (*name).into())),
        [name] => Some(PolicyId::new(kind, None, (*name).into())),
        _ => None,
    };
    let policies = rest.chunks(size).map(policy).collect::<Option<Vec<_>>>()?;
    Some((webhook, WebhookScope::Policies(failure, policies)))
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
                Some((Webhook::Validate, WebhookScope::Policies(Fail, vec![PolicyId::parse("p")]))),
            ),
            (
                "/mutate/ignore/finegrained/n/p",
                Some((Webhook::Mutate, WebhookScope::Policies(Ignore, vec![PolicyId::parse("n/p")]))),
            ),
            ("/validate/", None),
            ("/validate/fail/finegrained", None),
            ("/validate/fail/finegrained/", None),
            ("/validate/fail/finegrained/a/b/c", None),
            ("/validate/fail/x", None),
            ("/policyvalidate", None),
            ("/vpols/ignore", Some((Webhook::Validate, WebhookScope::OfKind(Ignore, ProgramKind::ValidatingPolicy)))),
            ("/vpols/x", None),
            ("/vpols", None),
            ("/vpol", None),
            ("/vpol/", None),
            ("/nvpol/n", None),
            ("/xpol/n", None),
            ("", None),
        ] {
            assert_eq!(parse(path), want, "{path}");
        }
    }
    #[test]
    fn paths_name_policies_of_cel_as_they_are_made() {
        use FailurePolicy::{Fail, Ignore};
        for (failure, kind, names, want) in [
            (Fail, ProgramKind::ValidatingPolicy, &["a", "b"][..], "/vpol/a/b"),
            (Ignore, ProgramKind::NamespacedMutatingPolicy, &["n/a", "m/b"], "/nmpol-ignore/n/a/m/b"),
            (Ignore, ProgramKind::GeneratingPolicy, &["a"], "/gpol/a"),
        ] {
            let policies: Vec<PolicyId> = names
                .iter()
                .map(|name| name.split_once('/').unwrap_or(("", name)))
                .map(|(namespace, name)| PolicyId::new(kind, Some(namespace), name.into()))
                .collect();
            let path = of_policies(failure, kind, &policies.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(path, want);
            assert_eq!(parse(&path).unwrap().1, WebhookScope::Policies(failure, policies));
        }
        let many: Vec<PolicyId> = (0..100)
            .map(|i| PolicyId::new(ProgramKind::MutatingPolicy, None, format!("policy-{i:04}").into()))
            .collect();
        let path = of_policies(Fail, ProgramKind::MutatingPolicy, &many.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(parse(&path), Some((Webhook::Mutate, WebhookScope::OfKind(Fail, ProgramKind::MutatingPolicy))));
        assert_eq!(of_policies(Fail, ProgramKind::Policy, &[]), None);
    }
}
