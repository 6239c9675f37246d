//! The kinds of policies and policy reports, in the versions that Kyverno 1.18 and the report working groups define.
//!
//! They are known without their `CustomResourceDefinition`s, so that policies which look at policies work offline.

use super::table::{Group, Kind, cluster, namespaced};
use crate::resource::Origin;

const fn group(name: &'static str, version: &'static str, kinds: &'static [Kind]) -> Group {
    Group { name, version, origin: Origin::Custom, kinds }
}

pub(super) const GROUPS: &[Group] = &[
    group(
        "kyverno.io",
        "v2",
        &[
            CLEANUP_POLICY,
            CLUSTER_CLEANUP_POLICY,
            GLOBAL_CONTEXT_ENTRY,
            POLICY_EXCEPTION,
            namespaced("UpdateRequest", "updaterequests").short(&["ur"]).status(),
        ],
    ),
    group("kyverno.io", "v1", POLICIES),
    group(
        "kyverno.io",
        "v2beta1",
        &[CLUSTER_POLICY, POLICY, CLEANUP_POLICY, CLUSTER_CLEANUP_POLICY, GLOBAL_CONTEXT_ENTRY, POLICY_EXCEPTION],
    ),
    group("kyverno.io", "v2alpha1", &[GLOBAL_CONTEXT_ENTRY]),
    group("policies.kyverno.io", "v1", CEL_POLICIES),
    group("policies.kyverno.io", "v1beta1", CEL_POLICIES),
    group(
        "policies.kyverno.io",
        "v1alpha1",
        &[
            DELETING_POLICY,
            GENERATING_POLICY,
            IMAGE_VALIDATING_POLICY,
            MUTATING_POLICY,
            CEL_POLICY_EXCEPTION,
            VALIDATING_POLICY,
        ],
    ),
    group(
        "reports.kyverno.io",
        "v1",
        &[
            cluster("ClusterEphemeralReport", "clusterephemeralreports").short(&["cephr"]).status(),
            namespaced("EphemeralReport", "ephemeralreports").short(&["ephr"]).status(),
        ],
    ),
    group(
        "wgpolicyk8s.io",
        "v1alpha2",
        &[
            cluster("ClusterPolicyReport", "clusterpolicyreports").short(&["cpolr"]).status(),
            namespaced("PolicyReport", "policyreports").short(&["polr"]).status(),
        ],
    ),
    group(
        "openreports.io",
        "v1alpha1",
        &[
            cluster("ClusterReport", "clusterreports").short(&["creps"]),
            namespaced("Report", "reports").short(&["reps"]),
        ],
    ),
];

const POLICIES: &[Kind] = &[CLUSTER_POLICY, POLICY];
const CLUSTER_POLICY: Kind = cluster("ClusterPolicy", "clusterpolicies").short(&["cpol"]).status();
const POLICY: Kind = namespaced("Policy", "policies").short(&["pol"]).status();
const CLEANUP_POLICY: Kind = namespaced("CleanupPolicy", "cleanuppolicies").short(&["cleanpol"]).status();
const CLUSTER_CLEANUP_POLICY: Kind =
    cluster("ClusterCleanupPolicy", "clustercleanuppolicies").short(&["ccleanpol"]).status();
const GLOBAL_CONTEXT_ENTRY: Kind = cluster("GlobalContextEntry", "globalcontextentries").short(&["gctxentry"]).status();
const POLICY_EXCEPTION: Kind = namespaced("PolicyException", "policyexceptions").short(&["polex"]);

const DELETING_POLICY: Kind = cluster("DeletingPolicy", "deletingpolicies").short(&["dpol"]).status();
const GENERATING_POLICY: Kind = cluster("GeneratingPolicy", "generatingpolicies").short(&["gpol"]).status();
const IMAGE_VALIDATING_POLICY: Kind =
    cluster("ImageValidatingPolicy", "imagevalidatingpolicies").short(&["ivpol"]).status();
const MUTATING_POLICY: Kind = cluster("MutatingPolicy", "mutatingpolicies").short(&["mpol"]).status();
const VALIDATING_POLICY: Kind = cluster("ValidatingPolicy", "validatingpolicies").short(&["vpol"]).status();
const CEL_POLICY_EXCEPTION: Kind = namespaced("PolicyException", "policyexceptions");

const CEL_POLICIES: &[Kind] = &[
    DELETING_POLICY,
    GENERATING_POLICY,
    IMAGE_VALIDATING_POLICY,
    MUTATING_POLICY,
    namespaced("NamespacedDeletingPolicy", "namespaceddeletingpolicies").short(&["ndpol"]).status(),
    namespaced("NamespacedGeneratingPolicy", "namespacedgeneratingpolicies").short(&["ngpol"]).status(),
    namespaced("NamespacedImageValidatingPolicy", "namespacedimagevalidatingpolicies").short(&["nivpol"]).status(),
    namespaced("NamespacedMutatingPolicy", "namespacedmutatingpolicies").short(&["nmpol"]).status(),
    namespaced("NamespacedValidatingPolicy", "namespacedvalidatingpolicies").short(&["nvpol"]).status(),
    CEL_POLICY_EXCEPTION,
    VALIDATING_POLICY,
];
