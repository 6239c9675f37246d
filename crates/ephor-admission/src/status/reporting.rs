//! Whether the reports role may read what a policy of `policies.kyverno.io` is about.
//!
//! The API server is asked about each resource that the policy names. Answers are kept for a while, because statuses
//! are looked at with every change of any policy.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, ClusterError};
use ephor_engine::compile::{Program, Requested};
use ephor_expr::{Str, Value};
use ephor_runtime::access::{is_allowed, question};
use parking_lot::Mutex;

/// What scans do with objects.
const VERBS: [&str; 3] = ["get", "list", "watch"];
/// How long an answer counts.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Policies that name more resources are looked at in part.
const MAX_RESOURCES: usize = 64;
/// How many answers are kept at most.
const MAX_ANSWERS: usize = 10_000;

/// Whether scans can read what a policy is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reporting {
    /// They can, or need not: the policy is not for scans.
    Ready,
    /// They cannot, and what they lack.
    Lacks(Vec<String>),
}

/// The resource of a question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Resource {
    group: Str,
    version: Str,
    /// With its subresource.
    name: Str,
}

/// Asks for an account, and remembers the answers.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    /// The reports role, as the API server calls it; `None` if that is not known.
    account: Option<Str>,
    answers: Mutex<BTreeMap<(Resource, &'static str), Answer>>,
}

/// Whether something is allowed, and when that was said.
type Answer = (bool, Instant);

impl Permissions {
    pub(super) fn new(account: Option<Str>) -> Self {
        Self { account, answers: Mutex::default() }
    }

    /// Whether scans can read what a policy is about; `None` if the account of the reports role is not known.
    pub(super) fn of(&self, program: &Program, cluster: &dyn Cluster) -> Result<Option<Reporting>, ClusterError> {
        let Some(account) = &self.account else { return Ok(None) };
        if !program.background {
            return Ok(Some(Reporting::Ready));
        }
        let mut lacking = Vec::new();
        for resource in resources(program) {
            for verb in VERBS {
                if !self.may(account, verb, &resource, cluster)? {
                    let Resource { group, version, name } = &resource;
                    lacking.push(format!("{verb} {group}/{version}, Resource={name}: "));
                }
            }
        }
        Ok(Some(if lacking.is_empty() { Reporting::Ready } else { Reporting::Lacks(lacking) }))
    }

    fn may(
        &self,
        account: &str,
        verb: &'static str,
        resource: &Resource,
        cluster: &dyn Cluster,
    ) -> Result<bool, ClusterError> {
        // There is no list of what stands below objects.
        if resource.name.contains('/') {
            return Ok(false);
        }
        let key = (resource.clone(), verb);
        if let Some((allowed, asked)) = self.answers.lock().get(&key)
            && asked.elapsed() < MAX_AGE
        {
            return Ok(*allowed);
        }
        let attributes = [
            ("group", resource.group.clone()),
            ("resource", resource.name.clone()),
            ("verb", Str::new_static(verb)),
            ("version", resource.version.clone()),
        ];
        let attributes = attributes.into_iter().filter(|(_, text)| !text.is_empty());
        let attributes = attributes.map(|(key, text)| (key.into(), Value::from(text))).collect();
        let allowed = is_allowed(cluster, question(account, attributes))?;
        let mut answers = self.answers.lock();
        if answers.len() >= MAX_ANSWERS {
            answers.clear();
        }
        answers.insert(key, (allowed, Instant::now()));
        Ok(allowed)
    }
}

/// The resources that the declared form of a policy names.
fn resources(program: &Program) -> Vec<Resource> {
    let declared = program.rules.iter().filter(|rule| rule.autogen.is_none());
    let mut found = Vec::new();
    for demand in declared.flat_map(|rule| &rule.demands.requests) {
        let Requested::Resources { groups, versions, resources, .. } = &demand.requested else { continue };
        for (group, version) in groups.iter().flat_map(|group| versions.iter().map(move |version| (group, version))) {
            for name in resources {
                if found.len() >= MAX_RESOURCES {
                    return found;
                }
                found.push(Resource { group: group.clone(), version: version.clone(), name: name.clone() });
            }
        }
    }
    found
}
