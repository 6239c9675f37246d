//! The defaults of Kubernetes' own kinds, as far as programs come to see them.
//!
//! Policies judge objects after defaulting, so a rule about `imagePullPolicy` or `restartPolicy` depends on it. What
//! controllers and plug-ins add (service account volumes, cluster addresses) is left out: nothing runs here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::{Map, Value};

use crate::resource::{Origin, Resource};

/// A default as JSON, by the field that gets it.
type Default = (&'static str, fn() -> Value);

fn empty() -> Value {
    Value::object(Map::new())
}

fn object(members: &[(&'static str, &'static str)]) -> Value {
    Value::object(members.iter().map(|(key, text)| ((*key).into(), Value::from(*text))).collect())
}

const CONTAINER: &[Default] = &[
    ("resources", empty),
    ("terminationMessagePath", || "/dev/termination-log".into()),
    ("terminationMessagePolicy", || "File".into()),
];
const POD_SPEC: &[Default] = &[
    ("dnsPolicy", || "ClusterFirst".into()),
    ("restartPolicy", || "Always".into()),
    ("schedulerName", || "default-scheduler".into()),
    ("securityContext", empty),
    ("terminationGracePeriodSeconds", || 30.into()),
];
const PROBE: &[Default] = &[
    ("failureThreshold", || 3.into()),
    ("periodSeconds", || 10.into()),
    ("successThreshold", || 1.into()),
    ("timeoutSeconds", || 1.into()),
];
const DEPLOYMENT: &[Default] =
    &[("progressDeadlineSeconds", || 600.into()), ("replicas", || 1.into()), ("revisionHistoryLimit", || 10.into())];
const STATEFUL_SET: &[Default] = &[
    ("persistentVolumeClaimRetentionPolicy", || object(&[("whenDeleted", "Retain"), ("whenScaled", "Retain")])),
    ("podManagementPolicy", || "OrderedReady".into()),
    ("replicas", || 1.into()),
    ("revisionHistoryLimit", || 10.into()),
];
const JOB: &[Default] = &[
    ("backoffLimit", || 6.into()),
    ("completionMode", || "NonIndexed".into()),
    ("podReplacementPolicy", || "TerminatingOrFailed".into()),
    ("suspend", || false.into()),
];
const CRON_JOB: &[Default] = &[
    ("concurrencyPolicy", || "Allow".into()),
    ("failedJobsHistoryLimit", || 1.into()),
    ("successfulJobsHistoryLimit", || 3.into()),
    ("suspend", || false.into()),
];
const SERVICE: &[Default] = &[
    ("internalTrafficPolicy", || "Cluster".into()),
    ("ipFamilies", || vec!["IPv4"].into()),
    ("ipFamilyPolicy", || "SingleStack".into()),
    ("sessionAffinity", || "None".into()),
    ("type", || "ClusterIP".into()),
];
const WEBHOOK: &[Default] = &[
    ("failurePolicy", || "Fail".into()),
    ("matchPolicy", || "Equivalent".into()),
    ("namespaceSelector", empty),
    ("objectSelector", empty),
    ("timeoutSeconds", || 10.into()),
];
const MATCH_CONSTRAINTS: &[Default] =
    &[("matchPolicy", || "Equivalent".into()), ("namespaceSelector", empty), ("objectSelector", empty)];

fn set(value: &mut Value, defaults: &[Default]) {
    let Some(members) = value.as_object_mut() else { return };
    for (key, default) in defaults {
        if members.get(key).is_none_or(Value::is_null) {
            members.insert(*key, default());
        }
    }
}

fn set_one(value: &mut Value, key: &'static str, default: impl Into<Value>) {
    if let Some(members) = value.as_object_mut()
        && members.get(key).is_none_or(Value::is_null)
    {
        members.insert(key, default.into());
    }
}

/// The value at a path of members, for change.
fn at<'v>(value: &'v mut Value, path: &[&str]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, key| value.as_object_mut()?.get_mut(key))
}

/// The items of the list at a path, for change.
fn each(value: &mut Value, path: &[&str], mut change: impl FnMut(&mut Value)) {
    if let Some(items) = at(value, path).and_then(Value::as_array_mut) {
        items.iter_mut().for_each(&mut change);
    }
}

/// Gives an object of a built-in kind its defaults.
pub(super) fn complete(resource: &Resource, object: &mut Value) {
    if resource.origin != Origin::BuiltIn {
        return;
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            if let Some(spec) = at(object, &["spec"]) {
                pod_spec(spec);
                set_one(spec, "enableServiceLinks", true);
                requests(spec);
            }
        }
        ("", "Service") => service(object),
        ("", "Secret") => secret(object),
        ("", "PodTemplate") => template(object, &["template", "spec"]),
        ("", "ReplicationController") => workload(object, &[("replicas", || 1.into())]),
        ("", "PersistentVolumeClaim") => {
            if let Some(spec) = at(object, &["spec"]) {
                set_one(spec, "volumeMode", "Filesystem");
            }
        }
        ("", "PersistentVolume") => {
            if let Some(spec) = at(object, &["spec"]) {
                set_one(spec, "persistentVolumeReclaimPolicy", "Retain");
                set_one(spec, "volumeMode", "Filesystem");
            }
        }
        ("apps", "Deployment") => {
            workload(object, DEPLOYMENT);
            update_strategy(object, "strategy", &[("maxSurge", || "25%".into()), ("maxUnavailable", || "25%".into())]);
        }
        ("apps", "StatefulSet") => {
            workload(object, STATEFUL_SET);
            update_strategy(object, "updateStrategy", &[("partition", || 0.into())]);
        }
        ("apps", "DaemonSet") => {
            workload(object, &[("revisionHistoryLimit", || 10.into())]);
            update_strategy(object, "updateStrategy", &[("maxSurge", || 0.into()), ("maxUnavailable", || 1.into())]);
        }
        ("apps", "ReplicaSet") => workload(object, &[("replicas", || 1.into())]),
        ("batch", "Job") => {
            if let Some(spec) = at(object, &["spec"]) {
                job_spec(spec);
            }
        }
        ("batch", "CronJob") => {
            if let Some(spec) = at(object, &["spec"]) {
                set(spec, CRON_JOB);
                if let Some(job) = at(spec, &["jobTemplate", "spec"]) {
                    job_spec(job);
                }
            }
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            if let Some(spec) = at(object, &["spec"]) {
                set_one(spec, "minReplicas", 1);
            }
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("storage.k8s.io", "StorageClass") => {
            set_one(object, "reclaimPolicy", "Delete");
            set_one(object, "volumeBindingMode", "Immediate");
        }
        ("admissionregistration.k8s.io", kind) => admission(kind, object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ => {}
    }
}

fn template(object: &mut Value, path: &[&str]) {
    if let Some(spec) = at(object, path) {
        pod_spec(spec);
    }
}

fn workload(object: &mut Value, defaults: &[Default]) {
    if let Some(spec) = at(object, &["spec"]) {
        set(spec, defaults);
    }
    template(object, &["spec", "template", "spec"]);
}

fn update_strategy(object: &mut Value, field: &'static str, rolling: &[Default]) {
    let Some(spec) = at(object, &["spec"]) else { return };
    set_one(spec, field, empty());
    let Some(strategy) = at(spec, &[field]) else { return };
    set_one(strategy, "type", "RollingUpdate");
    if strategy.str_at(&["type"]) == Some("RollingUpdate") {
        set_one(strategy, "rollingUpdate", empty());
        if let Some(update) = at(strategy, &["rollingUpdate"]) {
            set(update, rolling);
        }
    }
}

fn job_spec(spec: &mut Value) {
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        set_one(spec, "completions", 1);
    }
    set_one(spec, "parallelism", 1);
    set(spec, JOB);
    template(spec, &["template", "spec"]);
}

fn pod_spec(spec: &mut Value) {
    set(spec, POD_SPEC);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, &[list], container);
    }
    each(spec, &["volumes"], volume);
}

fn container(container: &mut Value) {
    set(container, CONTAINER);
    let image = container.str_at(&["image"]).unwrap_or_default();
    // A colon before the last slash belongs to a port.
    let name = image.rsplit('/').next().unwrap_or_default();
    let tag = if image.contains('@') { "digest" } else { name.split_once(':').map_or("latest", |(_, tag)| tag) };
    let policy = if tag == "latest" { "Always" } else { "IfNotPresent" };
    set_one(container, "imagePullPolicy", policy);
    each(container, &["ports"], |port| set_one(port, "protocol", "TCP"));
    each(container, &["env"], |variable| {
        if let Some(reference) = at(variable, &["valueFrom", "fieldRef"]) {
            set_one(reference, "apiVersion", "v1");
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = at(container, &[probe]) {
            set(probe, PROBE);
            if let Some(get) = at(probe, &["httpGet"]) {
                set_one(get, "path", "/");
                set_one(get, "scheme", "HTTP");
            }
            if let Some(call) = at(probe, &["grpc"]) {
                set_one(call, "service", "");
            }
        }
    }
}

/// What a Pod may have at most is what it asks for, where it does not say.
fn requests(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        each(spec, &[list], |container| {
            let Some(limits) = container.at(&["resources", "limits"]).and_then(Value::as_object).cloned() else {
                return;
            };
            let Some(resources) = at(container, &["resources"]) else { return };
            set_one(resources, "requests", empty());
            if let Some(requests) = at(resources, &["requests"]).and_then(Value::as_object_mut) {
                for (key, limit) in limits.iter() {
                    if requests.get(key).is_none() {
                        requests.insert(key.clone(), limit.clone());
                    }
                }
            }
        });
    }
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|members| members.len() == 1) {
        set_one(volume, "emptyDir", empty());
    }
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = at(volume, &[source]) {
            set_one(source, "defaultMode", 420);
        }
    }
    if let Some(path) = at(volume, &["hostPath"]) {
        set_one(path, "type", "");
    }
}

fn service(service: &mut Value) {
    let Some(spec) = at(service, &["spec"]) else { return };
    if spec.str_at(&["type"]) == Some("ExternalName") {
        set_one(spec, "sessionAffinity", "None");
    } else {
        set(spec, SERVICE);
    }
    if matches!(spec.str_at(&["type"]), Some("NodePort" | "LoadBalancer")) {
        set_one(spec, "externalTrafficPolicy", "Cluster");
    }
    each(spec, &["ports"], |port| {
        set_one(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            set_one(port, "targetPort", number);
        }
    });
}

/// What is written in the clear is kept encoded.
fn secret(secret: &mut Value) {
    set_one(secret, "type", "Opaque");
    let Some(members) = secret.as_object_mut() else { return };
    let Some(clear) = members.remove("stringData") else { return };
    let encoded = clear.as_object().into_iter().flat_map(Map::iter);
    let encoded: Vec<_> =
        encoded.filter_map(|(key, text)| Some((key.clone(), STANDARD.encode(text.as_str()?)))).collect();
    if encoded.is_empty() {
        return;
    }
    let data = members.entry("data");
    if data.as_object().is_none() {
        *data = empty();
    }
    if let Some(data) = data.as_object_mut() {
        for (key, text) in encoded {
            data.insert(key, text);
        }
    }
}

fn network_policy(policy: &mut Value) {
    let Some(spec) = at(policy, &["spec"]) else { return };
    let mut types = vec!["Ingress"];
    if spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty()) {
        types.push("Egress");
    }
    set_one(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        each(spec, &[direction], |rule| each(rule, &["ports"], |port| set_one(port, "protocol", "TCP")));
    }
}

fn binding(binding: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    if let Some(role) = at(binding, &["roleRef"]) {
        set_one(role, "apiGroup", GROUP);
    }
    each(binding, &["subjects"], |subject| {
        if matches!(subject.str_at(&["kind"]), Some("User" | "Group")) {
            set_one(subject, "apiGroup", GROUP);
        }
    });
}

fn admission(kind: &str, object: &mut Value) {
    let scope = |rule: &mut Value| set_one(rule, "scope", "*");
    match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => each(object, &["webhooks"], |webhook| {
            set(webhook, WEBHOOK);
            if kind == "MutatingWebhookConfiguration" {
                set_one(webhook, "reinvocationPolicy", "Never");
            }
            if let Some(service) = at(webhook, &["clientConfig", "service"]) {
                set_one(service, "port", 443);
            }
            each(webhook, &["rules"], scope);
        }),
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            let Some(spec) = at(object, &["spec"]) else { return };
            set_one(spec, "failurePolicy", "Fail");
            if let Some(constraints) = at(spec, &["matchConstraints"]) {
                set(constraints, MATCH_CONSTRAINTS);
                each(constraints, &["resourceRules"], scope);
                each(constraints, &["excludeResourceRules"], scope);
            }
        }
        _ => {}
    }
}

fn definition(definition: &mut Value) {
    let Some(spec) = at(definition, &["spec"]) else { return };
    set_one(spec, "conversion", object(&[("strategy", "None")]));
    let kind = spec.str_at(&["names", "kind"]).unwrap_or_default().to_owned();
    if let Some(names) = at(spec, &["names"]).filter(|_| !kind.is_empty()) {
        set_one(names, "listKind", format!("{kind}List"));
        set_one(names, "singular", kind.to_lowercase());
    }
}
