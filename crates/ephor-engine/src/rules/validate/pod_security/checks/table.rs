//! The list of all checks.

use super::super::control::Control;
use super::super::pod::Pod;
use super::super::standard::{Level, Version};
use super::super::violation::Violations;
use super::{host, privileges, profiles, user, volumes};

/// One check of the standards.
pub(crate) struct Check {
    /// Its identifier, as reports name it.
    pub(crate) id: &'static str,
    /// The name for exclusions.
    pub(crate) control: Option<Control>,
    level: Level,
    reason: &'static str,
    run: fn(&Pod<'_>, Version, &mut Violations),
}

impl Check {
    /// What the check finds in `pod`.
    pub(crate) fn run(&self, pod: &Pod<'_>, version: Version) -> Violations {
        let mut found = Violations::new(self.reason);
        (self.run)(pod, version, &mut found);
        found
    }

    /// Whether the check belongs to `level`.
    pub(crate) fn applies_at(&self, level: Level) -> bool {
        level.includes(self.level)
    }
}

/// All checks, in the order of messages: by identifier.
pub(crate) static CHECKS: [Check; 18] = [
    Check {
        id: "allowPrivilegeEscalation",
        control: Some(Control::PrivilegeEscalation),
        level: Level::Restricted,
        reason: "allowPrivilegeEscalation != false",
        run: privileges::allow_privilege_escalation,
    },
    Check {
        id: "appArmorProfile",
        control: Some(Control::AppArmor),
        level: Level::Baseline,
        reason: "forbidden AppArmor profile",
        run: profiles::app_armor,
    },
    Check {
        id: "capabilities_baseline",
        control: Some(Control::Capabilities),
        level: Level::Baseline,
        reason: "non-default capabilities",
        run: privileges::capabilities_baseline,
    },
    Check {
        id: "capabilities_restricted",
        control: Some(Control::Capabilities),
        level: Level::Restricted,
        reason: "unrestricted capabilities",
        run: privileges::capabilities_restricted,
    },
    Check {
        id: "hostNamespaces",
        control: Some(Control::HostNamespaces),
        level: Level::Baseline,
        reason: "host namespaces",
        run: host::namespaces,
    },
    Check {
        id: "hostPathVolumes",
        control: Some(Control::HostPathVolumes),
        level: Level::Baseline,
        reason: "hostPath volumes",
        run: volumes::host_paths,
    },
    Check {
        id: "hostPorts",
        control: Some(Control::HostPorts),
        level: Level::Baseline,
        reason: "hostPort",
        run: host::ports,
    },
    Check {
        id: "hostProbesAndHostLifecycle",
        control: None,
        level: Level::Baseline,
        reason: "probe or lifecycle host",
        run: host::probes,
    },
    Check {
        id: "privileged",
        control: Some(Control::PrivilegedContainers),
        level: Level::Baseline,
        reason: "privileged",
        run: privileges::privileged,
    },
    Check {
        id: "procMount",
        control: Some(Control::ProcMountType),
        level: Level::Baseline,
        reason: "procMount",
        run: privileges::proc_mount,
    },
    Check {
        id: "restrictedVolumes",
        control: Some(Control::VolumeTypes),
        level: Level::Restricted,
        reason: "restricted volume types",
        run: volumes::types,
    },
    Check {
        id: "runAsNonRoot",
        control: Some(Control::RunningAsNonRoot),
        level: Level::Restricted,
        reason: "runAsNonRoot != true",
        run: user::non_root,
    },
    Check {
        id: "runAsUser",
        control: Some(Control::RunningAsNonRootUser),
        level: Level::Restricted,
        reason: "runAsUser=0",
        run: user::not_user_zero,
    },
    Check {
        id: "seLinuxOptions",
        control: Some(Control::SeLinux),
        level: Level::Baseline,
        reason: "seLinuxOptions",
        run: profiles::se_linux,
    },
    Check {
        id: "seccompProfile_baseline",
        control: Some(Control::Seccomp),
        level: Level::Baseline,
        reason: "seccompProfile",
        run: profiles::seccomp_baseline,
    },
    Check {
        id: "seccompProfile_restricted",
        control: Some(Control::Seccomp),
        level: Level::Restricted,
        reason: "seccompProfile",
        run: profiles::seccomp_restricted,
    },
    Check {
        id: "sysctls",
        control: Some(Control::Sysctls),
        level: Level::Baseline,
        reason: "forbidden sysctls",
        run: host::sysctls,
    },
    Check {
        id: "windowsHostProcess",
        control: Some(Control::HostProcess),
        level: Level::Baseline,
        reason: "hostProcess",
        run: host::windows_process,
    },
];
