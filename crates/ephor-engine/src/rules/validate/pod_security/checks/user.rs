//! Checks of the user that containers run as.

use super::super::pod::Pod;
use super::super::standard::Version;
use super::super::violation::Violations;

pub(super) fn non_root(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    let field = "securityContext.runAsNonRoot";
    let setting = |container: &super::super::pod::Container<'_>| container.security.and_then(|s| s.run_as_non_root);
    if pod.security.run_as_non_root == Some(false) {
        found.forbid(format!("spec.{field}"), false);
    }
    for container in pod.containers.iter().filter(|container| setting(container) == Some(false)) {
        found.forbid_in(container, field, false);
    }
    // Upstream: `cornercases/psa-run-as-non-root` wants both kinds of violation in one message.
    if pod.security.run_as_non_root != Some(true) {
        for container in pod.containers.iter().filter(|container| setting(container).is_none()) {
            found.require_in(container, field);
        }
    }
}

pub(super) fn not_user_zero(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    let field = "securityContext.runAsUser";
    if pod.security.run_as_user == Some(0) {
        found.forbid(format!("spec.{field}"), 0_i64);
    }
    for container in &pod.containers {
        if container.security.is_some_and(|security| security.run_as_user == Some(0)) {
            found.forbid_in(container, field, 0_i64);
        }
    }
}
