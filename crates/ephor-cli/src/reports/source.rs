//! Reports of a cluster.

use ephor_cluster::query::OnUnreadable;
use ephor_cluster::{Cluster, ClusterError, Discovery, ListQuery, Resource};
use ephor_expr::Value;

/// The API groups of reports.
const GROUPS: [&str; 2] = ["wgpolicyk8s.io", "openreports.io"];
/// The kinds of reports in these groups.
const KINDS: [&str; 4] = ["PolicyReport", "ClusterPolicyReport", "Report", "ClusterReport"];

/// How many reports are read at once.
const PAGE: usize = 500;

/// Whether objects of this group and kind are reports.
pub(super) fn is_report(group: &str, kind: &str) -> bool {
    GROUPS.contains(&group) && KINDS.contains(&kind)
}

/// The kinds of reports that a cluster serves, each in one version.
pub fn kinds(served: &Discovery) -> Vec<Resource> {
    let mut kinds: Vec<Resource> = Vec::new();
    for resource in served.iter().filter(|resource| is_report(&resource.group, &resource.kind)) {
        if !kinds.iter().any(|known| known.group == resource.group && known.kind == resource.kind) {
            kinds.push(resource.clone());
        }
    }
    kinds.sort_by(|a, b| (&a.group, &a.kind).cmp(&(&b.group, &b.kind)));
    kinds
}

/// Gives each report of a kind to `take`, and returns why others cannot be read. One page is held at a time. A report
/// may stand in another namespace than the object that it is about, so all namespaces are read.
pub fn list(
    cluster: &dyn Cluster,
    resource: &Resource,
    mut take: impl FnMut(&Value),
) -> Result<Vec<String>, ClusterError> {
    let mut query = ListQuery { on_unreadable: OnUnreadable::Report, ..ListQuery::all().limit(PAGE) };
    let mut unreadable = Vec::new();
    loop {
        let page = cluster.list(resource, &query)?;
        page.items.iter().for_each(&mut take);
        unreadable.extend(page.unreadable.iter().map(ToString::to_string));
        match page.continue_token {
            Some(token) => query.continue_token = Some(token),
            None => return Ok(unreadable),
        }
    }
}
