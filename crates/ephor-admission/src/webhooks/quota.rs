//! Limits how much of the webhook configurations the owners of namespaces may fill.
//!
//! A policy with `matchConditions` has a webhook of its own, and all webhooks stand in two objects. An API server takes
//! objects of about 1.5 MB. Without a quota, the Policies of one namespace could make the objects too large to be
//! written, and no change of any other policy would be registered.

use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::Str;

use super::demand::Demand;
use ephor_runtime::policies::PolicyId;

/// The Policies of one namespace that may have webhooks of their own.
const POLICIES: usize = 16;
/// The bytes of webhooks that the Policies of one namespace may have.
const BYTES: usize = 64 << 10;
/// The bytes of webhooks that the Policies of all namespaces may have together.
pub(super) const TOTAL: usize = 512 << 10;

/// Why the webhooks of a Policy are not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverQuota {
    /// Too many in its namespace.
    #[error("only the {POLICIES} oldest Policies with `matchConditions` of a namespace have webhooks")]
    Policies,
    /// Too large for its namespace.
    #[error("the webhooks of the Policies with `matchConditions` of a namespace may have {BYTES} bytes")]
    Bytes,
    /// Too large beside those of all namespaces.
    #[error("the webhooks of the Policies with `matchConditions` of all namespaces may have {TOTAL} bytes together")]
    Total,
}

/// The Policies whose webhooks find no place. `bytes` says how large the webhooks of a policy are, `total_bytes` how
/// large all may be together.
///
/// In a namespace older Policies come first, so that a new one takes no other's place. Among namespaces the one that
/// has the fewest bytes comes first, so that few namespaces with large webhooks do not fill the place of all.
pub(super) fn over_quota(
    demands: &[&Demand],
    bytes: &BTreeMap<&PolicyId, usize>,
    total_bytes: usize,
) -> BTreeMap<PolicyId, OverQuota> {
    let mut queue: BTreeSet<(usize, &Str, &PolicyId)> = BTreeSet::new();
    let mut over = BTreeMap::new();
    let mut used: BTreeMap<&Str, (usize, usize)> = BTreeMap::new();
    let mut oldest: Vec<&Demand> = demands.to_vec();
    oldest.sort_by_key(|demand| (&demand.created, &demand.policy));
    let size = |policy: &PolicyId| bytes.get(policy).copied().unwrap_or_default();
    for demand in oldest {
        let Some(namespace) = &demand.policy.namespace else { continue };
        let (policies, used) = used.entry(namespace).or_default();
        if *policies >= POLICIES {
            over.insert(demand.policy.clone(), OverQuota::Policies);
        } else if *used + size(&demand.policy) > BYTES {
            over.insert(demand.policy.clone(), OverQuota::Bytes);
        } else {
            *policies += 1;
            *used += size(&demand.policy);
            queue.insert((*used, &demand.created, &demand.policy));
        }
    }
    let mut total = 0;
    for (_, _, policy) in queue {
        if total + size(policy) > total_bytes {
            over.insert(policy.clone(), OverQuota::Total);
        } else {
            total += size(policy);
        }
    }
    over
}

#[cfg(test)]
mod tests {
    use ephor_engine::compile::Demands;

    use super::*;

    fn demand(namespace: &str, name: &str, created: &str) -> Demand {
        Demand { policy: PolicyId::kyverno(namespace, name), created: created.into(), demands: Demands::default() }
    }

    fn over(demands: &[Demand], size: usize) -> Vec<(String, OverQuota)> {
        let demands: Vec<&Demand> = demands.iter().collect();
        let bytes = demands.iter().map(|demand| (&demand.policy, size)).collect();
        over_quota(&demands, &bytes, TOTAL).into_iter().map(|(key, why)| (key.to_string(), why)).collect()
    }

    #[test]
    fn a_namespace_has_a_number_of_webhooks_and_the_oldest_stay() {
        let mut demands: Vec<Demand> = (0..POLICIES).map(|i| demand("n", &format!("p{i}"), "2026-01-02")).collect();
        demands.push(demand("other", "p", "2026-01-02"));
        demands.extend((0..100).map(|i| demand("", &format!("of-the-cluster-{i}"), "2026-01-01")));
        assert_eq!(over(&demands, 10), []);
        demands.push(demand("n", "a-newer-one", "2026-01-03"));
        assert_eq!(over(&demands, 10), [("n/a-newer-one".to_owned(), OverQuota::Policies)]);
    }

    #[test]
    fn large_webhooks_are_bounded_in_a_namespace_and_together() {
        let two = [demand("n", "p", "2"), demand("n", "q", "1")];
        assert_eq!(over(&two, BYTES / 2), []);
        assert_eq!(over(&two, BYTES / 2 + 1), [("n/p".to_owned(), OverQuota::Bytes)]);
        assert_eq!(over(&[demand("", "p", "")], TOTAL), []);

        // Of four namespaces one has many: the first ones of the others have their place all the same.
        let mut many: Vec<Demand> = (0..16).map(|i| demand("a", &format!("p{i:02}"), "1")).collect();
        for namespace in 0..127 {
            many.push(demand(&format!("n{namespace:03}"), "p", "2"));
        }
        let over = over(&many, BYTES / 16);
        assert_eq!(over.len(), 15, "{over:?}");
        assert!(over.iter().all(|(key, why)| key.starts_with("a/p") && key != "a/p00" && *why == OverQuota::Total));
    }

    #[test]
    fn few_namespaces_with_large_webhooks_leave_room_for_small_ones() {
        let mut demands: Vec<Demand> = (0..9).map(|i| demand(&format!("large{i}"), "p", "1")).collect();
        demands.push(demand("small", "p", "2"));
        let size = |demand: &Demand| if demand.policy.namespace.as_deref() == Some("small") { 1 << 10 } else { BYTES };
        let bytes = demands.iter().map(|demand| (&demand.policy, size(demand))).collect();
        let over = over_quota(&demands.iter().collect::<Vec<_>>(), &bytes, TOTAL);
        assert!(over.keys().all(|key| key.namespace.as_deref() != Some("small")), "{over:?}");
        assert_eq!(over.len(), 2, "seven large ones fit beside the small one");
    }
}
