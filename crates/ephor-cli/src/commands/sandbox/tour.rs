//! `--tour`: what policies do, shown on `examples/policies`.
//!
//! Each step is a command of kubectl and what it must come to. The tour is an ordinary client: it goes through HTTP,
//! with the kubeconfig that users get.

use std::fmt;

use ephor_cluster::Cluster;

use super::kubectl::{Answer, Command, Kind, Named};
use crate::output::paint::{Colour, paint};

/// What a command must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// It is done.
    Done,
    /// It is done, and this is printed.
    Prints(&'static str),
    /// The policy of that name refuses it.
    RefusedBy(&'static str),
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("this to succeed"),
            Self::Prints(text) => write!(f, "{text}"),
            Self::RefusedBy(policy) => write!(f, "the policy {policy} to refuse this"),
        }
    }
}

impl Promise {
    fn is_kept_by(&self, answer: &Answer) -> bool {
        match (self, answer) {
            (Self::Done, Answer::Done(_)) => true,
            (Self::Prints(wanted), Answer::Done(text)) => text == wanted,
            (Self::RefusedBy(policy), Answer::Refused(error)) => error.to_string().contains(&format!("\n{policy}:\n")),
            _ => false,
        }
    }
}

/// A part of the tour.
struct Part {
    title: &'static str,
    steps: &'static [(Command, Promise)],
}

const WEB: Named = Named { kind: Kind::DEPLOYMENT, namespace: "default", name: "web" };
const DENY_ALL: Named = Named { kind: Kind::NETWORK_POLICY, namespace: "orders", name: "deny-all" };
const QUOTA: Named = Named { kind: Kind::QUOTA, namespace: "orders", name: "default" };

const PARTS: [Part; 4] = [
    Part {
        title: "A Pod with an image from anywhere is refused",
        steps: &[(Command::Run { name: "web", image: "nginx" }, Promise::RefusedBy("allowed-registries"))],
    },
    Part {
        title: "A Deployment gets the security context that it leaves open",
        steps: &[
            (Command::CreateDeployment { name: "web", image: "registry.example.com/shop/web:1.8.2" }, Promise::Done),
            (
                Command::Show {
                    object: WEB,
                    path: &["spec", "template", "spec", "containers", "[0]", "securityContext"],
                },
                Promise::Prints(r#"{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true}"#),
            ),
        ],
    },
    Part {
        title: "A Namespace gets what every Namespace has",
        steps: &[
            (Command::CreateNamespace { name: "orders" }, Promise::Done),
            (Command::WaitFor(DENY_ALL), Promise::Done),
            (Command::WaitFor(QUOTA), Promise::Done),
            (
                Command::List { kinds: &[Kind::NETWORK_POLICY, Kind::QUOTA], namespace: "orders" },
                Promise::Prints("networkpolicy.networking.k8s.io/deny-all\nresourcequota/default"),
            ),
        ],
    },
    Part {
        title: "What is deleted comes back",
        steps: &[(Command::Delete(DENY_ALL), Promise::Done), (Command::WaitFor(DENY_ALL), Promise::Done)],
    },
];

/// Takes the tour, telling each step; whether all came out as promised.
pub(super) fn take<E>(
    cluster: &dyn Cluster,
    colour: bool,
    tell: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<bool, E> {
    let mut broken = 0;
    for (number, part) in (1..).zip(&PARTS) {
        tell(&format!("\n{number}. {}\n\n", part.title))?;
        for (command, promise) in part.steps {
            tell(&format!("$ {}\n", paint(&command.to_string(), Colour::Yellow, colour)))?;
            let answer = command.run(cluster);
            tell(&format!("{}\n", answer.to_string().trim_end()))?;
            if !promise.is_kept_by(&answer) {
                broken += 1;
                tell(&format!("{}\n", paint(&format!("expected: {promise}"), Colour::Red, colour)))?;
                // What follows in this part takes it for granted.
                break;
            }
        }
    }
    Ok(broken == 0)
}

#[cfg(test)]
mod tests {
    use ephor_cluster::memory::Options;
    use ephor_cluster::{ClusterError, MemoryCluster};

    use super::*;

    #[test]
    fn without_policies_promises_are_broken() {
        let cluster = MemoryCluster::new(Options::server());
        let steps = PARTS[..2].iter().flat_map(|part| part.steps);
        // Everything is let in, and nothing is filled in.
        let kept: Vec<bool> = steps.map(|(command, promise)| promise.is_kept_by(&command.run(&cluster))).collect();
        assert_eq!(kept, [false, true, false]);
    }

    #[test]
    fn only_the_policy_that_is_meant_keeps_the_promise() {
        let promise = Promise::RefusedBy("allowed-registries");
        for (policy, kept) in [("allowed-registries", true), ("other", false)] {
            let text = format!("denied the request: \n\nresource Pod/default/web\n\n{policy}:\n  images: no\n");
            let answer = Answer::Refused(ClusterError::denied(400, "", text));
            assert_eq!(promise.is_kept_by(&answer), kept, "{policy}");
        }
    }
}
