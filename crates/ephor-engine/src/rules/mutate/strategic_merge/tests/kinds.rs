//! Which lists of which kinds have keys.

use ephor_expr::Value;
use ephor_expr::budget::Budget;

use super::value;
use crate::rules::mutate::strategic_merge::apply_strategic_merge;

/// What becomes of the list `[a, b]` at `path` under the patch `[b, c]`: `keyed` or `replaced`.
fn treatment(api_version: &str, kind: &str, path: &str, key: &str) -> &'static str {
    let list = |names: &[&str]| {
        let item = |name: &&str| if key.is_empty() { Value::from(*name) } else { item_with(key, name) };
        let list = Value::array(names.iter().map(item).collect());
        path.rsplit('.').fold(list, |inner, step| match step.strip_suffix("[]") {
            Some(outer) => {
                let Value::Object(map) = inner else { return Value::Null };
                let mut map = (*map).clone();
                map.insert("name", "same");
                Value::from([(outer, Value::from(vec![Value::object(map)]))])
            }
            None => Value::from([(step, inner)]),
        })
    };
    let mut resource = list(&["a", "b"]);
    let map = resource.as_object_mut().unwrap();
    map.insert("apiVersion", api_version);
    map.insert("kind", kind);
    let patched = apply_strategic_merge(&list(&["b", "c"]), &resource, &Budget::default()).unwrap().unwrap().to_json();
    if patched.contains(&list(&["b", "c", "a"]).to_json()[..]) || patched.contains(r#""a""#) {
        "keyed"
    } else {
        "replaced"
    }
}

fn item_with(keys: &str, name: &str) -> Value {
    Value::object(
        keys.split('+').enumerate().map(|(i, key)| (key.into(), if i == 0 { name } else { "x" }.into())).collect(),
    )
}

#[test]
fn lists_of_built_in_kinds_have_the_keys_of_kubernetes_1_21() {
    for (api_version, kind, path, key) in [
        ("v1", "Pod", "spec.containers", "name"),
        ("v1", "Pod", "spec.initContainers", "name"),
        ("v1", "Pod", "spec.ephemeralContainers", "name"),
        ("v1", "Pod", "spec.volumes", "name"),
        ("v1", "Pod", "spec.imagePullSecrets", "name"),
        ("v1", "Pod", "spec.hostAliases", "ip"),
        ("v1", "Pod", "spec.topologySpreadConstraints", "topologyKey+whenUnsatisfiable"),
        ("v1", "Pod", "spec.containers[].env", "name"),
        ("v1", "Pod", "spec.containers[].ports", "containerPort+protocol"),
        ("v1", "Pod", "spec.initContainers[].volumeMounts", "mountPath"),
        ("v1", "Pod", "spec.ephemeralContainers[].volumeDevices", "devicePath"),
        ("v1", "Pod", "status.podIPs", "ip"),
        ("v1", "Pod", "status.conditions", "type"),
        ("v1", "Pod", "metadata.finalizers", ""),
        ("v1", "Pod", "metadata.ownerReferences", "uid"),
        ("v1", "PodTemplate", "template.spec.containers", "name"),
        ("apps/v1", "Deployment", "spec.template.spec.containers", "name"),
        ("apps/v1", "StatefulSet", "spec.template.spec.containers[].env", "name"),
        ("apps/v1", "DaemonSet", "spec.template.metadata.finalizers", ""),
        ("apps/v1", "ReplicaSet", "status.conditions", "type"),
        ("batch/v1", "Job", "spec.template.spec.volumes", "name"),
        ("v1", "ReplicationController", "spec.template.spec.hostAliases", "ip"),
        ("batch/v1", "CronJob", "spec.jobTemplate.spec.template.spec.containers", "name"),
        ("batch/v1beta1", "CronJob", "spec.jobTemplate.metadata.finalizers", ""),
        ("v1", "Service", "spec.ports", "port+protocol"),
        ("v1", "ServiceAccount", "secrets", "name"),
        ("v1", "Node", "spec.podCIDRs", ""),
        ("v1", "Node", "status.addresses", "type"),
        ("storage.k8s.io/v1", "CSINode", "spec.drivers", "name"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "webhooks", "name"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "webhooks", "name"),
        ("policy/v1", "PodDisruptionBudget", "status.conditions", "type"),
        ("v1", "ConfigMap", "metadata.finalizers", ""),
        ("networking.k8s.io/v1", "Ingress", "metadata.ownerReferences", "uid"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "metadata.finalizers", ""),
    ] {
        assert_eq!(treatment(api_version, kind, path, key), "keyed", "{api_version} {kind} {path}");
    }
}

#[test]
fn other_lists_and_kinds_have_none() {
    for (api_version, kind, path, key) in [
        ("v1", "Pod", "spec.tolerations", "key"),
        ("v1", "Pod", "spec.resourceClaims", "name"),
        ("v1", "Pod", "spec.ephemeralContainers[].ports", "containerPort+protocol"),
        ("v1", "Pod", "spec.containers[].envFrom", "prefix"),
        ("v1", "Pod", "spec.containers[].args", ""),
        ("v1", "Pod", "spec.containers[].resources.claims", "name"),
        ("v1", "ServiceAccount", "imagePullSecrets", "name"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "rules", "name"),
        ("apps/v1", "StatefulSet", "spec.volumeClaimTemplates", "name"),
        ("v1", "List", "items", "name"),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "metadata.finalizers", ""),
        ("example.com/v1", "Thing", "metadata.finalizers", ""),
    ] {
        assert_eq!(treatment(api_version, kind, path, key), "replaced", "{api_version} {kind} {path}");
    }
}

#[test]
fn pod_templates_of_other_kinds_have_the_keys_of_pods() {
    // The reference replaces all lists of these kinds, so that a patch for one container drops the others.
    for (api_version, kind, path) in [
        ("apps/v1beta1", "Deployment", "spec.template.spec.containers"),
        ("apps.kruise.io/v1alpha1", "CloneSet", "spec.template.spec.containers"),
        ("apps.kruise.io/v1alpha1", "CloneSet", "spec.template.spec.containers[].env"),
        ("apps.kruise.io/v1alpha1", "AdvancedCronJob", "spec.template.jobTemplate.spec.template.spec.containers"),
        ("kubeflow.org/v1", "PyTorchJob", "spec.pytorchReplicaSpecs.Worker.template.spec.containers"),
        ("agones.dev/v1", "Fleet", "spec.podTemplate.spec.containers"),
        ("agones.dev/v1", "Fleet", "spec.podTemplate.spec.containers[].env"),
        ("apps.kruise.io/v1alpha1", "CloneSet", "spec.template.spec.initContainers"),
    ] {
        assert_eq!(treatment(api_version, kind, path, "name"), "keyed", "{kind} {path}");
    }
    for (path, key) in [
        // No containers, containers without names and images, or no template.
        ("spec.template.spec.volumes", "name"),
        ("spec.template.spec.containers", "id"),
        ("spec.template.spec.initContainers", "id"),
        ("spec.containers", "name"),
        ("spec.template.containers", "name"),
    ] {
        assert_eq!(treatment("example.com/v1", "Thing", path, key), "replaced", "{path}");
    }
}

#[test]
fn a_pod_template_whose_container_has_no_name_is_one() {
    let resource = "{apiVersion: serving.knative.dev/v1, kind: Service, \
        spec: {template: {spec: {containers: [{image: i}], volumes: [{name: a}]}}}}";
    let patch = "{spec: {template: {spec: {containers: [{name: user-container, tty: true}], volumes: [{name: b}]}}}}";
    let patched = apply_strategic_merge(&value(patch), &value(resource), &Budget::default()).unwrap().unwrap();
    assert_eq!(
        patched.at(&["spec", "template", "spec"]).unwrap().to_json(),
        r#"{"containers":[{"name":"user-container","tty":true},{"image":"i"}],"volumes":[{"name":"b"},{"name":"a"}]}"#
    );
}

#[test]
fn sets_of_scalars_keep_each_once() {
    let finalizers = |api_version: &str, patch: &str, resource: &str| {
        let resource = value(&format!("{{apiVersion: {api_version}, kind: Pod, metadata: {resource}}}"));
        let patch = value(&format!("{{metadata: {{finalizers: {patch}}}}}"));
        match apply_strategic_merge(&patch, &resource, &Budget::default()) {
            Ok(patched) => patched.unwrap_or(resource).at(&["metadata"]).unwrap().to_json(),
            Err(error) => error.to_string(),
        }
    };
    for (patch, resource, want) in [
        // 6.5
        ("[b, a]", "{finalizers: [a, c]}", r#"{"finalizers":["b","a","c"]}"#),
        ("[b, b]", "{}", r#"{"finalizers":["b"]}"#),
        ("[c]", "{finalizers: [c, c, d]}", r#"{"finalizers":["c","d"]}"#),
        ("[]", "{finalizers: [a]}", r#"{"finalizers":["a"]}"#),
        ("[]", "{}", r#"{"finalizers":[]}"#),
        ("[null]", "{finalizers: [a]}", r#"{"finalizers":["a"]}"#),
        ("[{$patch: delete}]", "{finalizers: [a]}", "{}"),
        ("[{$patch: replace}, z]", "{finalizers: [a]}", r#"{"finalizers":["z"]}"#),
        (
            "[[a]]",
            "{finalizers: [a]}",
            "wrong node kind: expected ScalarNode but got SequenceNode: node contents:\n[\"a\"]\n",
        ),
    ] {
        assert_eq!(finalizers("v1", patch, resource), want, "{patch} on {resource}");
    }
    // 6.5
    assert_eq!(finalizers("example.com/v1", "[b]", "{finalizers: [a]}"), r#"{"finalizers":["b"]}"#);
}
