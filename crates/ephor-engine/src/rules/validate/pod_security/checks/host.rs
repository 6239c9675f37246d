//! Checks against reaching into the host.

use super::super::pod::Pod;
use super::super::standard::Version;
use super::super::violation::Violations;

pub(super) fn namespaces(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    let shares = pod.shares;
    for (field, shared) in
        [("spec.hostNetwork", shares.network), ("spec.hostPID", shares.pid), ("spec.hostIPC", shares.ipc)]
    {
        if shared {
            found.forbid(field, true);
        }
    }
}

pub(super) fn ports(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    for container in &pod.containers {
        for (i, port) in container.ports.iter().enumerate() {
            match port.get("hostPort").and_then(ephor_expr::Value::as_i64) {
                None | Some(0) => {}
                Some(number) => found.forbid_in(container, &format!("ports[{i}].hostPort"), number),
            }
        }
    }
}

/// Upstream: this check never names fields, so that its list is always empty.
pub(super) fn probes(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    for container in pod.containers.iter().filter(|container| container.calls_host) {
        found.blame(container);
    }
}

pub(super) fn windows_process(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    if pod.security.host_process {
        found.forbid("spec.securityContext.windowsOptions.hostProcess", true);
    }
    for container in &pod.containers {
        if container.security.is_some_and(|security| security.host_process) {
            found.forbid_in(container, "securityContext.windowsOptions.hostProcess", true);
        }
    }
}

/// Sysctls that the kernel keeps per Pod, with the minor version from which on they are allowed.
static SAFE_SYSCTLS: [(&str, u8); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

pub(super) fn sysctls(pod: &Pod<'_>, version: Version, found: &mut Violations) {
    for (i, sysctl) in pod.sysctls.iter().enumerate() {
        let name = sysctl.str_at(&["name"]).unwrap_or_default();
        if !SAFE_SYSCTLS.iter().any(|(safe, since)| *safe == name && version.at_least(*since)) {
            found.forbid(format!("spec.securityContext.sysctls[{i}].name"), name);
        }
    }
}
