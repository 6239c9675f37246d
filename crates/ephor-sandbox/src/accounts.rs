//! What an API server's `ServiceAccount` admission does to new Pods, before webhooks see them: a service account, and a
//! volume with its token in every container. Policies judge Pods with both.
//!
//! A Pod of an account that is not there is let in: nothing runs here that would need it.

use ephor_cluster::admission::{Attributes, Operation};
use ephor_cluster::{Cluster as _, MemoryCluster};
use ephor_expr::{Map, Str, Value};

const DEFAULT: &str = "default";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The letters of generated names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The Pod with its account, if the write creates one.
pub(super) fn admitted(cluster: &MemoryCluster, write: &Attributes) -> Option<Value> {
    let is_pod = write.resource.group.is_empty() && write.resource.plural == "pods" && write.subresource.is_empty();
    if !is_pod || write.operation != Operation::Create {
        return None;
    }
    let name = write.object.str_at(&["spec", "serviceAccountName"]).filter(|name| !name.is_empty());
    let name = name.unwrap_or(DEFAULT);
    let resource = cluster.resolve("v1", "ServiceAccount").ok()?;
    let account = cluster.get(&resource, Some(&write.namespace), name).unwrap_or_default();
    with_account(&write.object, name, &account, write.serial)
}

fn with_account(pod: &Value, name: &str, account: &Value, serial: u64) -> Option<Value> {
    let mut pod = pod.clone();
    let spec = pod.as_object_mut()?.get_mut("spec")?.as_object_mut()?;
    spec.insert("serviceAccountName", name);
    spec.insert("serviceAccount", name);
    if spec.get("imagePullSecrets").is_none()
        && let Some(secrets) = account.get("imagePullSecrets")
    {
        spec.insert("imagePullSecrets", secrets.clone());
    }
    let mounts = |holder: Option<&Value>| holder.and_then(Value::as_bool);
    let automount = mounts(spec.get("automountServiceAccountToken"))
        .or(mounts(account.get("automountServiceAccountToken")))
        .unwrap_or(true);
    if automount && mount(spec, &volume_name(serial)) {
        let mut volumes = spec.get("volumes").and_then(Value::as_array).unwrap_or_default().to_vec();
        volumes.push(volume(&volume_name(serial)));
        spec.insert("volumes", volumes);
    }
    Some(pod)
}

/// Mounts the volume where nothing else is mounted in its place; whether it was mounted anywhere.
fn mount(spec: &mut Map, volume: &str) -> bool {
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let Some(Value::Array(containers)) = spec.get(list).cloned() else { continue };
        let containers: Vec<Value> = containers
            .iter()
            .map(|container| {
                let mut mounts = container.get("volumeMounts").and_then(Value::as_array).unwrap_or_default().to_vec();
                let Some(mut members) = container.as_object().cloned() else { return container.clone() };
                if mounts.iter().any(|mount| mount.str_at(&["mountPath"]) == Some(MOUNT_PATH)) {
                    return container.clone();
                }
                mounts.push(Value::from([
                    ("mountPath", Value::from(MOUNT_PATH)),
                    ("name", Value::from(volume)),
                    ("readOnly", Value::Bool(true)),
                ]));
                members.insert("volumeMounts", mounts);
                mounted = true;
                Value::object(members)
            })
            .collect();
        spec.insert(list, containers);
    }
    mounted
}

fn volume_name(serial: u64) -> Str {
    // Numbers in a row should not look like it.
    let mut rest = serial.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let mut name = String::from("kube-api-access-");
    for _ in 0..5 {
        let letter = LETTERS.get(usize::try_from(rest % LETTERS.len() as u64).unwrap_or_default());
        name.push(letter.copied().map_or('b', char::from));
        rest /= LETTERS.len() as u64;
    }
    name.into()
}

fn volume(name: &str) -> Value {
    let item = |key: &'static str, value: Value| Value::from([(key, value)]);
    let list = |value: Value| Value::array(vec![value]);
    let token = Value::from([("expirationSeconds", Value::Int(3607)), ("path", Value::from("token"))]);
    let certificate = Value::from([("key", Value::from("ca.crt")), ("path", Value::from("ca.crt"))]);
    let bundle = Value::from([("items", list(certificate)), ("name", Value::from("kube-root-ca.crt"))]);
    let field = Value::from([("apiVersion", Value::from("v1")), ("fieldPath", Value::from("metadata.namespace"))]);
    let namespace = Value::from([("fieldRef", field), ("path", Value::from("namespace"))]);
    let sources = vec![
        item("serviceAccountToken", token),
        item("configMap", bundle),
        item("downwardAPI", item("items", list(namespace))),
    ];
    let projected = Value::from([("defaultMode", Value::Int(420)), ("sources", Value::array(sources))]);
    Value::from([("name", Value::from(name)), ("projected", projected)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::from_json(text).unwrap()
    }

    #[test]
    fn every_container_gets_the_token() {
        let pod = json(
            r#"{"spec":{"containers":[{"name":"a"},{"name":"b","volumeMounts":[{"name":"own","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],
            "volumes":[{"name":"own","emptyDir":{}}]}}"#,
        );
        let account = json(r#"{"imagePullSecrets":[{"name":"registry"}]}"#);
        let made = with_account(&pod, DEFAULT, &account, 1).unwrap();
        let spec = made.get("spec").unwrap();
        assert_eq!(spec.str_at(&["serviceAccountName"]), Some("default"));
        assert_eq!(spec.get("imagePullSecrets").unwrap().to_json(), r#"[{"name":"registry"}]"#);
        let volumes = spec.get("volumes").and_then(Value::as_array).unwrap();
        let name = volumes[1].str_at(&["name"]).unwrap();
        assert!(volumes.len() == 2 && name.starts_with("kube-api-access-") && name.len() == 21, "{name}");
        let containers = spec.get("containers").and_then(Value::as_array).unwrap();
        let mounts = |index: usize| containers[index].get("volumeMounts").and_then(Value::as_array).unwrap();
        assert_eq!((mounts(0).len(), mounts(0)[0].str_at(&["name"])), (1, Some(name)));
        assert_eq!((mounts(1).len(), mounts(1)[0].str_at(&["name"])), (1, Some("own")));
    }

    #[test]
    fn accounts_and_pods_may_do_without() {
        let pod = r#"{"spec":{"containers":[{"name":"a"}]}}"#;
        let without = r#"{"automountServiceAccountToken":false}"#;
        let asks = r#"{"spec":{"automountServiceAccountToken":true,"containers":[{"name":"a"}]}}"#;
        for (pod, account, mounted) in [(pod, without, false), (asks, without, true), (pod, "{}", true)] {
            let made = with_account(&json(pod), DEFAULT, &json(account), 1).unwrap();
            assert_eq!(made.at(&["spec", "volumes"]).is_some(), mounted, "{pod} {account}");
        }
    }
}
