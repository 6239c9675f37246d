//! Checks of the privileges of containers.

use ephor_expr::Value;

use super::super::pod::Pod;
use super::super::standard::Version;
use super::super::violation::{BadValue, Violations};

/// Whether the Linux checks of the restricted level leave the Pod alone.
pub(super) fn is_exempt(pod: &Pod<'_>, version: Version) -> bool {
    pod.windows && version.at_least(25)
}

pub(super) fn privileged(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    for container in &pod.containers {
        if container.security.is_some_and(|security| security.privileged) {
            found.forbid_in(container, "securityContext.privileged", true);
        }
    }
}

pub(super) fn allow_privilege_escalation(pod: &Pod<'_>, version: Version, found: &mut Violations) {
    if is_exempt(pod, version) {
        return;
    }
    for container in &pod.containers {
        let field = "securityContext.allowPrivilegeEscalation";
        match container.security.map(|security| security.allow_privilege_escalation) {
            None => found.require_in(container, field),
            // Upstream: within a security context, the missing field is a forbidden value with a name.
            Some(None) => found.forbid_in(container, field, "nil"),
            Some(Some(true)) => found.forbid_in(container, field, true),
            Some(Some(false)) => {}
        }
    }
}

pub(super) fn proc_mount(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    for container in &pod.containers {
        if let Some(mount) = container.security.and_then(|security| security.proc_mount)
            && mount != "Default"
        {
            found.forbid_in(container, "securityContext.procMount", mount);
        }
    }
}

/// What a container may add to the runtime's own set: nothing that is not in there already.
static DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn capabilities_baseline(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    forbid_added(pod, found, |capability| DEFAULT_CAPABILITIES.contains(&capability));
}

pub(super) fn capabilities_restricted(pod: &Pod<'_>, version: Version, found: &mut Violations) {
    if is_exempt(pod, version) {
        return;
    }
    for container in &pod.containers {
        let dropped = container.security.map_or(&[][..], |security| security.dropped);
        let field = "securityContext.capabilities.drop";
        if dropped.is_empty() {
            found.require_in(container, field);
        } else if !texts(dropped).any(|capability| capability == "ALL") {
            found.forbid_in(container, field, BadValue::list(texts(dropped)));
        }
    }
    forbid_added(pod, found, |capability| capability == "NET_BIND_SERVICE");
}

fn forbid_added(pod: &Pod<'_>, found: &mut Violations, allowed: impl Fn(&str) -> bool) {
    for container in &pod.containers {
        let added = container.security.map_or(&[][..], |security| security.added);
        if texts(added).any(|capability| !allowed(capability)) {
            let offenders = BadValue::list(texts(added).filter(|capability| !allowed(capability)));
            found.forbid_in(container, "securityContext.capabilities.add", offenders);
        }
    }
}

fn texts(items: &[Value]) -> impl Iterator<Item = &str> {
    items.iter().map(|item| item.as_str().unwrap_or_default())
}
