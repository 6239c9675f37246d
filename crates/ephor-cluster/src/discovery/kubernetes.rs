//! The kinds of Kubernetes 1.34, in every version that release serves (also those that are off by default).
//!
//! Of a group's versions the preferred one stands first.

use super::table::{Group, Kind, cluster, namespaced};
use crate::resource::Origin;

const fn group(name: &'static str, version: &'static str, kinds: &'static [Kind]) -> Group {
    Group { name, version, origin: Origin::BuiltIn, kinds }
}

const SCALED: &[&str] = &["scale", "status"];

pub(super) const GROUPS: &[Group] = &[
    group(
        "",
        "v1",
        &[
            namespaced("Binding", "bindings").posted(),
            cluster("ComponentStatus", "componentstatuses").short(&["cs"]),
            namespaced("ConfigMap", "configmaps").short(&["cm"]),
            namespaced("Endpoints", "endpoints").short(&["ep"]),
            namespaced("Event", "events").short(&["ev"]),
            namespaced("LimitRange", "limitranges").short(&["limits"]),
            cluster("Namespace", "namespaces").short(&["ns"]).with(&["finalize", "status"]),
            cluster("Node", "nodes").short(&["no"]).with(&["proxy", "status"]),
            namespaced("PersistentVolumeClaim", "persistentvolumeclaims").short(&["pvc"]).status(),
            cluster("PersistentVolume", "persistentvolumes").short(&["pv"]).status(),
            namespaced("Pod", "pods").short(&["po"]).with(&[
                "attach",
                "binding",
                "ephemeralcontainers",
                "eviction",
                "exec",
                "log",
                "portforward",
                "proxy",
                "resize",
                "status",
            ]),
            namespaced("PodTemplate", "podtemplates"),
            namespaced("ReplicationController", "replicationcontrollers").short(&["rc"]).with(SCALED),
            namespaced("ResourceQuota", "resourcequotas").short(&["quota"]).status(),
            namespaced("Secret", "secrets"),
            namespaced("ServiceAccount", "serviceaccounts").short(&["sa"]).with(&["token"]),
            namespaced("Service", "services").short(&["svc"]).with(&["proxy", "status"]),
        ],
    ),
    group(
        "apps",
        "v1",
        &[
            namespaced("ControllerRevision", "controllerrevisions"),
            namespaced("DaemonSet", "daemonsets").short(&["ds"]).status(),
            namespaced("Deployment", "deployments").short(&["deploy"]).with(SCALED),
            namespaced("ReplicaSet", "replicasets").short(&["rs"]).with(SCALED),
            namespaced("StatefulSet", "statefulsets").short(&["sts"]).with(SCALED),
        ],
    ),
    group(
        "batch",
        "v1",
        &[namespaced("CronJob", "cronjobs").short(&["cj"]).status(), namespaced("Job", "jobs").status()],
    ),
    group("autoscaling", "v2", HORIZONTAL_AUTOSCALER),
    group("autoscaling", "v1", HORIZONTAL_AUTOSCALER),
    group(
        "networking.k8s.io",
        "v1",
        &[
            cluster("IngressClass", "ingressclasses"),
            namespaced("Ingress", "ingresses").short(&["ing"]).status(),
            cluster("IPAddress", "ipaddresses").short(&["ip"]),
            namespaced("NetworkPolicy", "networkpolicies").short(&["netpol"]),
            cluster("ServiceCIDR", "servicecidrs").status(),
        ],
    ),
    group(
        "networking.k8s.io",
        "v1beta1",
        &[cluster("IPAddress", "ipaddresses").short(&["ip"]), cluster("ServiceCIDR", "servicecidrs").status()],
    ),
    group("policy", "v1", &[namespaced("PodDisruptionBudget", "poddisruptionbudgets").short(&["pdb"]).status()]),
    group(
        "rbac.authorization.k8s.io",
        "v1",
        &[
            cluster("ClusterRoleBinding", "clusterrolebindings"),
            cluster("ClusterRole", "clusterroles"),
            namespaced("RoleBinding", "rolebindings"),
            namespaced("Role", "roles"),
        ],
    ),
    group(
        "storage.k8s.io",
        "v1",
        &[
            cluster("CSIDriver", "csidrivers"),
            cluster("CSINode", "csinodes"),
            namespaced("CSIStorageCapacity", "csistoragecapacities"),
            cluster("StorageClass", "storageclasses").short(&["sc"]),
            cluster("VolumeAttachment", "volumeattachments").status(),
            cluster("VolumeAttributesClass", "volumeattributesclasses").short(&["vac"]),
        ],
    ),
    group("storage.k8s.io", "v1beta1", VOLUME_ATTRIBUTES_CLASS),
    group("storage.k8s.io", "v1alpha1", VOLUME_ATTRIBUTES_CLASS),
    group(
        "admissionregistration.k8s.io",
        "v1",
        &[
            cluster("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies").status(),
            cluster("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
            cluster("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ],
    ),
    group("admissionregistration.k8s.io", "v1beta1", MUTATING_ADMISSION_POLICY),
    group("admissionregistration.k8s.io", "v1alpha1", MUTATING_ADMISSION_POLICY),
    group(
        "apiextensions.k8s.io",
        "v1",
        &[cluster("CustomResourceDefinition", "customresourcedefinitions").short(&["crd", "crds"]).status()],
    ),
    group("apiregistration.k8s.io", "v1", &[cluster("APIService", "apiservices").status()]),
    group(
        "authentication.k8s.io",
        "v1",
        &[cluster("SelfSubjectReview", "selfsubjectreviews").posted(), cluster("TokenReview", "tokenreviews").posted()],
    ),
    group(
        "authorization.k8s.io",
        "v1",
        &[
            namespaced("LocalSubjectAccessReview", "localsubjectaccessreviews").posted(),
            cluster("SelfSubjectAccessReview", "selfsubjectaccessreviews").posted(),
            cluster("SelfSubjectRulesReview", "selfsubjectrulesreviews").posted(),
            cluster("SubjectAccessReview", "subjectaccessreviews").posted(),
        ],
    ),
    group(
        "certificates.k8s.io",
        "v1",
        &[cluster("CertificateSigningRequest", "certificatesigningrequests")
            .short(&["csr"])
            .with(&["approval", "status"])],
    ),
    group("certificates.k8s.io", "v1beta1", &[cluster("ClusterTrustBundle", "clustertrustbundles")]),
    group(
        "certificates.k8s.io",
        "v1alpha1",
        &[
            cluster("ClusterTrustBundle", "clustertrustbundles"),
            namespaced("PodCertificateRequest", "podcertificaterequests").status(),
        ],
    ),
    group("coordination.k8s.io", "v1", &[namespaced("Lease", "leases")]),
    group("coordination.k8s.io", "v1beta1", &[namespaced("LeaseCandidate", "leasecandidates")]),
    group("coordination.k8s.io", "v1alpha2", &[namespaced("LeaseCandidate", "leasecandidates")]),
    group("discovery.k8s.io", "v1", &[namespaced("EndpointSlice", "endpointslices")]),
    group("events.k8s.io", "v1", &[namespaced("Event", "events").short(&["ev"])]),
    group(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        &[
            cluster("FlowSchema", "flowschemas").status(),
            cluster("PriorityLevelConfiguration", "prioritylevelconfigurations").status(),
        ],
    ),
    group("internal.apiserver.k8s.io", "v1alpha1", &[cluster("StorageVersion", "storageversions").status()]),
    group("node.k8s.io", "v1", &[cluster("RuntimeClass", "runtimeclasses")]),
    group("resource.k8s.io", "v1", DYNAMIC_RESOURCES),
    group("resource.k8s.io", "v1beta2", DYNAMIC_RESOURCES),
    group("resource.k8s.io", "v1beta1", DYNAMIC_RESOURCES),
    group("resource.k8s.io", "v1alpha3", &[cluster("DeviceTaintRule", "devicetaintrules")]),
    group("scheduling.k8s.io", "v1", &[cluster("PriorityClass", "priorityclasses").short(&["pc"])]),
    group(
        "storagemigration.k8s.io",
        "v1alpha1",
        &[cluster("StorageVersionMigration", "storageversionmigrations").status()],
    ),
];

const HORIZONTAL_AUTOSCALER: &[Kind] =
    &[namespaced("HorizontalPodAutoscaler", "horizontalpodautoscalers").short(&["hpa"]).status()];

const VOLUME_ATTRIBUTES_CLASS: &[Kind] = &[cluster("VolumeAttributesClass", "volumeattributesclasses").short(&["vac"])];

const MUTATING_ADMISSION_POLICY: &[Kind] = &[
    cluster("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    cluster("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
];

const DYNAMIC_RESOURCES: &[Kind] = &[
    cluster("DeviceClass", "deviceclasses"),
    namespaced("ResourceClaim", "resourceclaims").status(),
    namespaced("ResourceClaimTemplate", "resourceclaimtemplates"),
    cluster("ResourceSlice", "resourceslices"),
];
