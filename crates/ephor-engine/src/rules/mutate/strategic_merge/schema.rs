//! Which lists of which kinds are merged item by item, and by which key.
//!
//! The reference knows the built-in kinds of Kubernetes 1.21 and nothing else. A list that is not in this table is
//! replaced as a whole: lists of custom resources, of built-in kinds and versions that came later, and lists that got
//! their keys later (`resourceClaims`). Pod templates of other kinds are the exception: they are found by their shape
//! ([`Shape::of_member`]), because a patch for one container must not drop the others.

use ephor_expr::Value;

/// The keyed lists of one kind.
#[derive(Debug, Clone, Copy)]
pub struct MergeSchema(Shape);

/// The members of a map that hold keyed lists, directly or deeper; all others are plain.
pub(super) type Fields = &'static [(&'static str, Shape)];

/// What the table says about one value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Nothing: maps are merged, lists replaced.
    Plain,
    /// A map with keyed lists below.
    Map(Fields),
    /// A list of maps, one for each key.
    Keyed(ListKey, Fields),
    /// A list of scalars, each once.
    Set,
    /// Anything in a kind that is not in the table: as [`Shape::Plain`], but it may hold Pod templates.
    Unknown,
}

impl Shape {
    /// The shape of the member `key` of this value, which is `current` in the resource. In kinds that are not in the
    /// table each member with containers in its `spec` is a Pod template.
    pub(super) fn of_member(self, key: &str, current: Option<&Value>) -> Shape {
        match self {
            Shape::Map(fields) => {
                fields.iter().find(|(name, _)| *name == key).map_or(Shape::Plain, |(_, shape)| *shape)
            }
            Shape::Unknown if current.is_some_and(is_pod_template) => POD_TEMPLATE.1,
            Shape::Unknown => Shape::Unknown,
            Shape::Plain | Shape::Keyed(..) | Shape::Set => Shape::Plain,
        }
    }
}

fn is_pod_template(value: &Value) -> bool {
    // Some kinds name the only container themselves (Knative), and some Pods come with init containers alone.
    let is_container = |item: &Value| ["name", "image"].iter().any(|key| item.str_at(&[key]).is_some());
    ["containers", "initContainers"]
        .iter()
        .any(|list| value.at(&["spec", list]).and_then(Value::as_array).unwrap_or_default().iter().any(is_container))
}

/// The members that tell items of a list apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListKey {
    pub(super) primary: &'static str,
    pub(super) secondary: Option<&'static str>,
}

impl MergeSchema {
    /// No keyed lists but those of Pod templates: custom resources.
    pub const UNKNOWN: MergeSchema = MergeSchema(Shape::Unknown);

    /// The keyed lists of a kind; [`MergeSchema::UNKNOWN`] for kinds that Kubernetes 1.21 does not have.
    pub fn of(api_version: &str, kind: &str) -> MergeSchema {
        match fields_of(api_version, kind) {
            [] => MergeSchema::UNKNOWN,
            fields => MergeSchema(Shape::Map(fields)),
        }
    }

    /// The shape of the whole object.
    pub(super) fn root(self) -> Shape {
        self.0
    }
}

const fn by(primary: &'static str) -> ListKey {
    ListKey { primary, secondary: None }
}

const fn by_two(primary: &'static str, secondary: &'static str) -> ListKey {
    ListKey { primary, secondary: Some(secondary) }
}

const META_FIELDS: Fields = &[("finalizers", Shape::Set), ("ownerReferences", Shape::Keyed(by("uid"), &[]))];
const META: (&str, Shape) = ("metadata", Shape::Map(META_FIELDS));
const CONDITIONS: (&str, Shape) = ("conditions", Shape::Keyed(by("type"), &[]));
const STATUS: (&str, Shape) = ("status", Shape::Map(&[CONDITIONS]));

const ENV: (&str, Shape) = ("env", Shape::Keyed(by("name"), &[]));
const VOLUME_MOUNTS: (&str, Shape) = ("volumeMounts", Shape::Keyed(by("mountPath"), &[]));
const VOLUME_DEVICES: (&str, Shape) = ("volumeDevices", Shape::Keyed(by("devicePath"), &[]));
const CONTAINER_PORTS: (&str, Shape) = ("ports", Shape::Keyed(by_two("containerPort", "protocol"), &[]));
const CONTAINER: Fields = &[ENV, CONTAINER_PORTS, VOLUME_MOUNTS, VOLUME_DEVICES];
const EPHEMERAL_CONTAINER: Fields = &[ENV, VOLUME_MOUNTS, VOLUME_DEVICES];
const VOLUME: Fields = &[("ephemeral", Shape::Map(&[("volumeClaimTemplate", Shape::Map(&[META]))]))];
const POD_SPEC: Fields = &[
    ("containers", Shape::Keyed(by("name"), CONTAINER)),
    ("initContainers", Shape::Keyed(by("name"), CONTAINER)),
    ("ephemeralContainers", Shape::Keyed(by("name"), EPHEMERAL_CONTAINER)),
    ("volumes", Shape::Keyed(by("name"), VOLUME)),
    ("imagePullSecrets", Shape::Keyed(by("name"), &[])),
    ("hostAliases", Shape::Keyed(by("ip"), &[])),
    ("topologySpreadConstraints", Shape::Keyed(by_two("topologyKey", "whenUnsatisfiable"), &[])),
];

const POD: Fields = &[
    META,
    ("spec", Shape::Map(POD_SPEC)),
    ("status", Shape::Map(&[CONDITIONS, ("podIPs", Shape::Keyed(by("ip"), &[]))])),
];
const POD_TEMPLATE: (&str, Shape) = ("template", Shape::Map(&[META, ("spec", Shape::Map(POD_SPEC))]));
const WORKLOAD_SPEC: (&str, Shape) = ("spec", Shape::Map(&[POD_TEMPLATE]));
const CRON_JOB_SPEC: (&str, Shape) = ("spec", Shape::Map(&[("jobTemplate", Shape::Map(&[META, WORKLOAD_SPEC]))]));
const SERVICE_SPEC: (&str, Shape) = ("spec", Shape::Map(&[("ports", Shape::Keyed(by_two("port", "protocol"), &[]))]));
const NODE_SPEC: (&str, Shape) = ("spec", Shape::Map(&[("podCIDRs", Shape::Set)]));
const NODE_STATUS: (&str, Shape) = ("status", Shape::Map(&[CONDITIONS, ("addresses", Shape::Keyed(by("type"), &[]))]));
const SECRETS: (&str, Shape) = ("secrets", Shape::Keyed(by("name"), &[]));
const WEBHOOKS: (&str, Shape) = ("webhooks", Shape::Keyed(by("name"), &[]));
const CSI_NODE_SPEC: (&str, Shape) = ("spec", Shape::Map(&[("drivers", Shape::Keyed(by("name"), &[]))]));

fn fields_of(api_version: &str, kind: &str) -> Fields {
    match (api_version, kind) {
        ("v1", "Pod") => POD,
        ("v1", "PodTemplate") => &[META, POD_TEMPLATE],
        ("apps/v1", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("batch/v1", "Job")
        | ("v1", "ReplicationController") => &[META, WORKLOAD_SPEC, STATUS],
        ("batch/v1" | "batch/v1beta1", "CronJob") => &[META, CRON_JOB_SPEC],
        ("v1", "Service") => &[META, SERVICE_SPEC, STATUS],
        ("v1", "ServiceAccount") => &[META, SECRETS],
        ("v1", "Node") => &[META, NODE_SPEC, NODE_STATUS],
        ("v1", "ComponentStatus") => &[META, CONDITIONS],
        ("storage.k8s.io/v1" | "storage.k8s.io/v1beta1", "CSINode") => &[META, CSI_NODE_SPEC],
        (
            "admissionregistration.k8s.io/v1" | "admissionregistration.k8s.io/v1beta1",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => &[META, WEBHOOKS],
        ("v1", "Namespace" | "PersistentVolumeClaim")
        | ("policy/v1" | "policy/v1beta1", "PodDisruptionBudget")
        | ("apiregistration.k8s.io/v1" | "apiregistration.k8s.io/v1beta1", "APIService") => &[META, STATUS],
        _ if has_only_metadata(api_version, kind) => &[META],
        _ => &[],
    }
}

/// The kinds of Kubernetes 1.21 whose only keyed lists are those of their metadata.
fn has_only_metadata(api_version: &str, kind: &str) -> bool {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    match (group, version) {
        ("", "v1") => matches!(
            kind,
            "Binding"
                | "ConfigMap"
                | "Endpoints"
                | "Event"
                | "LimitRange"
                | "PersistentVolume"
                | "ResourceQuota"
                | "Secret"
        ),
        ("apiextensions.k8s.io", "v1" | "v1beta1") => kind == "CustomResourceDefinition",
        ("apps", "v1") => kind == "ControllerRevision",
        ("authentication.k8s.io", "v1") => matches!(kind, "TokenRequest" | "TokenReview"),
        ("authentication.k8s.io", "v1beta1") => kind == "TokenReview",
        ("authorization.k8s.io", "v1" | "v1beta1") => matches!(
            kind,
            "LocalSubjectAccessReview" | "SelfSubjectAccessReview" | "SelfSubjectRulesReview" | "SubjectAccessReview"
        ),
        ("autoscaling", "v1") => matches!(kind, "HorizontalPodAutoscaler" | "Scale"),
        ("autoscaling", "v2beta1" | "v2beta2") => kind == "HorizontalPodAutoscaler",
        ("certificates.k8s.io", "v1" | "v1beta1") => kind == "CertificateSigningRequest",
        ("coordination.k8s.io", "v1" | "v1beta1") => kind == "Lease",
        ("discovery.k8s.io", "v1" | "v1beta1") => kind == "EndpointSlice",
        ("events.k8s.io", "v1" | "v1beta1") => kind == "Event",
        ("extensions", "v1beta1") => kind == "Ingress",
        ("flowcontrol.apiserver.k8s.io", "v1beta1") => {
            matches!(kind, "FlowSchema" | "PriorityLevelConfiguration")
        }
        ("networking.k8s.io", "v1") => matches!(kind, "Ingress" | "IngressClass" | "NetworkPolicy"),
        ("networking.k8s.io", "v1beta1") => matches!(kind, "Ingress" | "IngressClass"),
        ("node.k8s.io", "v1" | "v1beta1") => kind == "RuntimeClass",
        ("policy", "v1beta1") => matches!(kind, "Eviction" | "PodSecurityPolicy"),
        ("rbac.authorization.k8s.io", "v1" | "v1beta1") => {
            matches!(kind, "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding")
        }
        ("scheduling.k8s.io", "v1" | "v1beta1") => kind == "PriorityClass",
        ("storage.k8s.io", "v1") => matches!(kind, "CSIDriver" | "StorageClass" | "VolumeAttachment"),
        ("storage.k8s.io", "v1beta1") => {
            matches!(kind, "CSIDriver" | "CSIStorageCapacity" | "StorageClass" | "VolumeAttachment")
        }
        _ => false,
    }
}
