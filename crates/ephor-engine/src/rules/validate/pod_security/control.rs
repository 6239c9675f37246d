//! The controls: the names under which policies let checks off.

use super::checks::{APPARMOR_ANNOTATION, RESTRICTED_VOLUMES};
use super::pod::Group;

/// A control of the Pod Security Standards, by the name that `exclude` entries use. `Capabilities` and `Seccomp`
/// stand for two checks each; the check for hosts in probes has no control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Control {
    /// `HostProcess`
    HostProcess,
    /// `Host Namespaces`
    HostNamespaces,
    /// `Privileged Containers`
    PrivilegedContainers,
    /// `Capabilities`
    Capabilities,
    /// `HostPath Volumes`
    HostPathVolumes,
    /// `Host Ports`
    HostPorts,
    /// `AppArmor`
    AppArmor,
    /// `SELinux`
    SeLinux,
    /// `/proc Mount Type`
    ProcMountType,
    /// `Seccomp`
    Seccomp,
    /// `Sysctls`
    Sysctls,
    /// `Volume Types`
    VolumeTypes,
    /// `Privilege Escalation`
    PrivilegeEscalation,
    /// `Running as Non-root`
    RunningAsNonRoot,
    /// `Running as Non-root user`
    RunningAsNonRootUser,
}

/// Whether an exclusion of a control names images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRule {
    /// The control looks at containers only: it must.
    Required,
    /// The control looks at the Pod only: it must not.
    Forbidden,
    /// The control looks at both: with images the containers are let off, without them the Pod.
    Optional,
}

impl Control {
    /// All controls.
    pub const ALL: [Control; 15] = [
        Control::HostProcess,
        Control::HostNamespaces,
        Control::PrivilegedContainers,
        Control::Capabilities,
        Control::HostPathVolumes,
        Control::HostPorts,
        Control::AppArmor,
        Control::SeLinux,
        Control::ProcMountType,
        Control::Seccomp,
        Control::Sysctls,
        Control::VolumeTypes,
        Control::PrivilegeEscalation,
        Control::RunningAsNonRoot,
        Control::RunningAsNonRootUser,
    ];

    /// The control of this exact name.
    pub fn named(name: &str) -> Option<Control> {
        Control::ALL.into_iter().find(|control| control.name() == name)
    }

    /// The name policies use.
    pub fn name(self) -> &'static str {
        match self {
            Control::HostProcess => "HostProcess",
            Control::HostNamespaces => "Host Namespaces",
            Control::PrivilegedContainers => "Privileged Containers",
            Control::Capabilities => "Capabilities",
            Control::HostPathVolumes => "HostPath Volumes",
            Control::HostPorts => "Host Ports",
            Control::AppArmor => "AppArmor",
            Control::SeLinux => "SELinux",
            Control::ProcMountType => "/proc Mount Type",
            Control::Seccomp => "Seccomp",
            Control::Sysctls => "Sysctls",
            Control::VolumeTypes => "Volume Types",
            Control::PrivilegeEscalation => "Privilege Escalation",
            Control::RunningAsNonRoot => "Running as Non-root",
            Control::RunningAsNonRootUser => "Running as Non-root user",
        }
    }

    /// Whether only the restricted level knows the control.
    pub fn restricted_only(self) -> bool {
        matches!(
            self,
            Control::VolumeTypes
                | Control::PrivilegeEscalation
                | Control::RunningAsNonRoot
                | Control::RunningAsNonRootUser
        )
    }

    /// Whether exclusions of the control name images.
    pub fn images(self) -> ImageRule {
        match self {
            Control::Capabilities
            | Control::PrivilegedContainers
            | Control::HostPorts
            | Control::ProcMountType
            | Control::PrivilegeEscalation => ImageRule::Required,
            Control::HostNamespaces | Control::HostPathVolumes | Control::Sysctls | Control::VolumeTypes => {
                ImageRule::Forbidden
            }
            _ => ImageRule::Optional,
        }
    }

    /// The fields an exclusion of the control can name, `*` for each list index.
    pub fn fields(self) -> Vec<String> {
        let of_pod = self.pod_fields().iter().map(|tail| format!("spec.{tail}"));
        let types = if self == Control::VolumeTypes { &RESTRICTED_VOLUMES[..] } else { &[] };
        let of_volumes = types.iter().map(|key| format!("spec.volumes[*].{key}"));
        let of_containers = self
            .container_fields()
            .iter()
            .flat_map(|tail| Group::ALL.into_iter().map(move |group| format!("spec.{}[*].{tail}", group.key())));
        of_pod.chain(of_volumes).chain(of_containers).collect()
    }

    /// Whether an exclusion of the control that names `field` can ever let something off.
    pub fn knows_field(self, field: &str) -> bool {
        let annotation = || field.strip_prefix("metadata.annotations[")?.strip_prefix(APPARMOR_ANNOTATION);
        self.fields().iter().any(|known| known == field) || self == Control::AppArmor && annotation().is_some()
    }

    fn pod_fields(self) -> &'static [&'static str] {
        match self {
            Control::HostProcess => &["securityContext.windowsOptions.hostProcess"],
            Control::HostNamespaces => &["hostNetwork", "hostPID", "hostIPC"],
            Control::HostPathVolumes => &["volumes[*].hostPath"],
            Control::AppArmor => &["securityContext.appArmorProfile.type"],
            Control::SeLinux => &[
                "securityContext.seLinuxOptions.type",
                "securityContext.seLinuxOptions.user",
                "securityContext.seLinuxOptions.role",
            ],
            Control::Seccomp => &["securityContext.seccompProfile.type"],
            Control::Sysctls => &["securityContext.sysctls[*].name"],
            Control::RunningAsNonRoot => &["securityContext.runAsNonRoot"],
            Control::RunningAsNonRootUser => &["securityContext.runAsUser"],
            Control::VolumeTypes
            | Control::PrivilegedContainers
            | Control::Capabilities
            | Control::HostPorts
            | Control::ProcMountType
            | Control::PrivilegeEscalation => &[],
        }
    }

    fn container_fields(self) -> &'static [&'static str] {
        match self {
            Control::HostProcess => &["securityContext.windowsOptions.hostProcess"],
            Control::PrivilegedContainers => &["securityContext.privileged"],
            Control::Capabilities => &["securityContext.capabilities.add", "securityContext.capabilities.drop"],
            Control::HostPorts => &["ports[*].hostPort"],
            Control::AppArmor => &["securityContext.appArmorProfile.type"],
            Control::SeLinux => &[
                "securityContext.seLinuxOptions.type",
                "securityContext.seLinuxOptions.user",
                "securityContext.seLinuxOptions.role",
            ],
            Control::ProcMountType => &["securityContext.procMount"],
            Control::Seccomp => &["securityContext.seccompProfile.type"],
            Control::PrivilegeEscalation => &["securityContext.allowPrivilegeEscalation"],
            Control::RunningAsNonRoot => &["securityContext.runAsNonRoot"],
            Control::RunningAsNonRootUser => &["securityContext.runAsUser"],
            Control::HostNamespaces | Control::HostPathVolumes | Control::Sysctls | Control::VolumeTypes => &[],
        }
    }
}
