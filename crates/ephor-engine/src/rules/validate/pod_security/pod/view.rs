//! The view, and where each kind keeps its Pod.

use ephor_expr::{Map, Value};

use super::reader::{Misfit, Reader};

/// Where a kind keeps its Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// The resource is a Pod.
    Pod,
    /// At `spec.template`.
    Template,
    /// At `spec.jobTemplate.spec.template`; upstream reads the metadata one template further out.
    JobTemplate,
}

impl Home {
    /// Where `kind` keeps its Pod, if it has one.
    pub(crate) fn of(kind: &str) -> Option<Self> {
        match kind {
            "Pod" => Some(Home::Pod),
            "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
                Some(Home::Template)
            }
            "CronJob" => Some(Home::JobTemplate),
            _ => None,
        }
    }

    /// A field of the Pod as a field of the resource.
    ///
    /// Upstream: metadata is named as that of a Pod template for every kind, Pods included.
    pub(crate) fn locate(self, field: String) -> String {
        match (self, field.strip_prefix("metadata")) {
            (_, Some(rest)) => format!("spec.template.metadata{rest}"),
            (Home::Pod, None) => field,
            (Home::Template, None) => format!("spec.template.{field}"),
            (Home::JobTemplate, None) => format!("spec.jobTemplate.spec.template.{field}"),
        }
    }
}

/// A Pod.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pod<'v> {
    pub(crate) annotations: Option<&'v Map>,
    /// Whether `spec.os.name` says that it is for Windows.
    pub(crate) windows: bool,
    pub(crate) shares: HostNamespaces,
    pub(crate) security: SecurityContext<'v>,
    /// Objects with a text `name`.
    pub(crate) sysctls: &'v [Value],
    /// Objects; the `path` of a `hostPath` is a text.
    pub(crate) volumes: &'v [Value],
    /// Init containers, then the regular ones, then the ephemeral ones.
    pub(crate) containers: Vec<Container<'v>>,
}

/// Which namespaces of the host a Pod uses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostNamespaces {
    pub(crate) network: bool,
    pub(crate) pid: bool,
    pub(crate) ipc: bool,
}

/// Which list a container is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Group {
    Init,
    #[default]
    Regular,
    Ephemeral,
}

impl Group {
    /// All lists, in the order in which checks go through them.
    pub(crate) const ALL: [Group; 3] = [Group::Init, Group::Regular, Group::Ephemeral];

    /// The list's key in a Pod's spec.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Group::Init => "initContainers",
            Group::Regular => "containers",
            Group::Ephemeral => "ephemeralContainers",
        }
    }
}

/// A container. The default is a bare one: the first regular container, with nothing set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Container<'v> {
    pub(crate) group: Group,
    pub(crate) index: usize,
    pub(crate) name: &'v str,
    pub(crate) image: &'v str,
    /// `None` if the whole security context is missing.
    pub(crate) security: Option<SecurityContext<'v>>,
    /// Objects whose `hostPort` is a number.
    pub(crate) ports: &'v [Value],
    /// Whether a probe or a lifecycle hook names a host.
    pub(crate) calls_host: bool,
}

/// The security context of a Pod or container; some fields exist only in one of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SecurityContext<'v> {
    pub(crate) run_as_non_root: Option<bool>,
    pub(crate) run_as_user: Option<i64>,
    /// The profile's type, if there is a profile; empty if it has none.
    pub(crate) seccomp: Option<&'v str>,
    /// As for seccomp.
    pub(crate) app_armor: Option<&'v str>,
    pub(crate) se_linux: SeLinux<'v>,
    pub(crate) host_process: bool,
    pub(crate) privileged: bool,
    pub(crate) allow_privilege_escalation: Option<bool>,
    pub(crate) proc_mount: Option<&'v str>,
    /// Texts.
    pub(crate) added: &'v [Value],
    /// Texts.
    pub(crate) dropped: &'v [Value],
}

/// `SELinux` options; empty where not set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SeLinux<'v> {
    pub(crate) kind: &'v str,
    pub(crate) user: &'v str,
    pub(crate) role: &'v str,
}

impl<'v> Pod<'v> {
    /// Reads the Pod of a resource. What is missing reads as empty: a template without a spec has no containers.
    pub(crate) fn read(resource: &'v Value, home: Home) -> Result<Self, Misfit> {
        let root = Reader::root(resource)?;
        match home {
            Home::Pod => Self::read_template(&root.object("metadata")?, &root.object("spec")?),
            Home::Template => {
                let spec = root.object("spec")?;
                let template = spec.object("template")?;
                Self::read_template(&template.object("metadata")?, &template.object("spec")?)
            }
            Home::JobTemplate => {
                let spec = root.object("spec")?;
                let job = spec.object("jobTemplate")?;
                let job_spec = job.object("spec")?;
                let template = job_spec.object("template")?;
                Self::read_template(&job.object("metadata")?, &template.object("spec")?)
            }
        }
    }

    fn read_template(metadata: &Reader<'_, 'v>, spec: &Reader<'_, 'v>) -> Result<Self, Misfit> {
        let annotations = metadata.object("annotations")?;
        annotations.check_texts()?;
        let security = spec.object("securityContext")?;
        let sysctls = security.list("sysctls", |sysctl| sysctl.text("name").map(drop))?;
        let volumes = spec.list("volumes", |volume| volume.object("hostPath")?.text("path").map(drop))?;
        let mut containers = Vec::with_capacity(Group::ALL.iter().map(|group| spec.length(group.key())).sum());
        for group in Group::ALL {
            spec.list(group.key(), |container| {
                containers.push(Container::read(container, group)?);
                Ok(())
            })?;
        }
        Ok(Pod {
            annotations: annotations.map(),
            windows: spec.object("os")?.text("name")? == Some("windows"),
            shares: HostNamespaces {
                network: spec.flag("hostNetwork")? == Some(true),
                pid: spec.flag("hostPID")? == Some(true),
                ipc: spec.flag("hostIPC")? == Some(true),
            },
            security: SecurityContext::read_shared(&security)?,
            sysctls,
            volumes,
            containers,
        })
    }
}

impl<'v> Container<'v> {
    fn read(container: &Reader<'_, 'v>, group: Group) -> Result<Self, Misfit> {
        let security = container.object("securityContext")?;
        let ports = container.list("ports", |port| port.number("hostPort").map(drop))?;
        Ok(Container {
            group,
            index: container.index(),
            name: container.text("name")?.unwrap_or_default(),
            image: container.text("image")?.unwrap_or_default(),
            security: match security.map() {
                Some(_) => Some(SecurityContext::read(&security)?),
                None => None,
            },
            ports,
            calls_host: calls_host(container)?,
        })
    }
}

/// Whether a probe or a lifecycle hook of a container names a host.
fn calls_host(container: &Reader<'_, '_>) -> Result<bool, Misfit> {
    let lifecycle = container.object("lifecycle")?;
    let handlers = [
        container.object("livenessProbe")?,
        container.object("readinessProbe")?,
        container.object("startupProbe")?,
        lifecycle.object("postStart")?,
        lifecycle.object("preStop")?,
    ];
    for handler in &handlers {
        for action in ["httpGet", "tcpSocket"] {
            if handler.object(action)?.text("host")?.is_some_and(|host| !host.is_empty()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

impl<'v> SecurityContext<'v> {
    /// Reads the fields that Pods and containers share.
    fn read_shared(context: &Reader<'_, 'v>) -> Result<Self, Misfit> {
        if context.map().is_none() {
            return Ok(Self::default());
        }
        let se_linux = context.object("seLinuxOptions")?;
        Ok(SecurityContext {
            run_as_non_root: context.flag("runAsNonRoot")?,
            run_as_user: context.number("runAsUser")?,
            seccomp: profile_type(&context.object("seccompProfile")?)?,
            app_armor: profile_type(&context.object("appArmorProfile")?)?,
            se_linux: SeLinux {
                kind: se_linux.text("type")?.unwrap_or_default(),
                user: se_linux.text("user")?.unwrap_or_default(),
                role: se_linux.text("role")?.unwrap_or_default(),
            },
            host_process: context.object("windowsOptions")?.flag("hostProcess")? == Some(true),
            ..Self::default()
        })
    }

    /// Reads all fields of a container.
    fn read(context: &Reader<'_, 'v>) -> Result<Self, Misfit> {
        let capabilities = context.object("capabilities")?;
        Ok(SecurityContext {
            privileged: context.flag("privileged")? == Some(true),
            allow_privilege_escalation: context.flag("allowPrivilegeEscalation")?,
            proc_mount: context.text("procMount")?,
            added: capabilities.texts("add")?,
            dropped: capabilities.texts("drop")?,
            ..Self::read_shared(context)?
        })
    }
}

fn profile_type<'v>(profile: &Reader<'_, 'v>) -> Result<Option<&'v str>, Misfit> {
    match profile.map() {
        Some(_) => Ok(Some(profile.text("type")?.unwrap_or_default())),
        None => Ok(None),
    }
}
