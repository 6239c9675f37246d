//! Creates the default objects of namespaces: a service account and the certificate of the API server, as the
//! controllers of Kubernetes do.

use ephor_cluster::admission::User;
use ephor_cluster::{Cluster as _, ClusterError, ErrorKind, ListQuery, MemoryCluster, Patch, WriteOptions, object};
use ephor_expr::Value;

const ACCOUNT: &str = "default";
const CERTIFICATE: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
     endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
     distributions of Kubernetes clusters.";

/// Creates the missing default objects in all namespaces that are not being deleted. The next call repeats what
/// admission refuses.
pub(super) fn create_namespace_defaults(cluster: &MemoryCluster, certificate: &str) {
    let Ok(list) = cluster.resolve("v1", "Namespace").and_then(|kind| cluster.list(&kind, &ListQuery::all())) else {
        return;
    };
    for namespace in list.items.iter().filter(|namespace| !object::is_deleting(namespace)) {
        let namespace = object::name(namespace);
        for (kind, controller, wanted) in [
            ("ServiceAccount", "service-account-controller", account(namespace)),
            ("ConfigMap", "root-ca-cert-publisher", bundle(namespace, certificate)),
        ] {
            let controller = cluster.acting_as(User::service_account("kube-system", controller));
            if let Err(error) = ensure(&controller, kind, wanted) {
                tracing::debug!(%error, namespace, kind, "a namespace stays without one of its first objects");
            }
        }
    }
}

fn ensure(controller: &MemoryCluster, kind: &str, wanted: Value) -> Result<(), ClusterError> {
    let resource = controller.resolve("v1", kind)?;
    let (namespace, name) = (object::namespace(&wanted).to_owned(), object::name(&wanted).to_owned());
    if let Ok(present) = controller.get(&resource, Some(&namespace), &name) {
        if wanted.get("data").is_none_or(|data| present.get("data") == Some(data)) {
            return Ok(());
        }
        // The certificate is another one after each start.
        let options = WriteOptions::default();
        return controller.patch(&resource, Some(&namespace), &name, &Patch::merge(wanted), &options).map(drop);
    }
    match controller.create(&resource, wanted, &WriteOptions::default()) {
        // It was created in between, or the namespace is gone.
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Ok(()),
        made => made.map(drop),
    }
}

fn account(namespace: &str) -> Value {
    let metadata = [("name", Value::from(ACCOUNT)), ("namespace", Value::from(namespace))];
    Value::from([("metadata", Value::from(metadata))])
}

fn bundle(namespace: &str, certificate: &str) -> Value {
    let annotations = Value::from([("kubernetes.io/description", Value::from(DESCRIPTION))]);
    let metadata =
        [("annotations", annotations), ("name", Value::from(CERTIFICATE)), ("namespace", Value::from(namespace))];
    let data = Value::from([("ca.crt", Value::from(certificate))]);
    Value::from([("data", data), ("metadata", Value::from(metadata))])
}

#[cfg(test)]
mod tests {
    use ephor_cluster::memory::Options;

    use super::*;

    #[test]
    fn every_namespace_gets_its_account_and_its_certificate() {
        let cluster = MemoryCluster::new(Options::server());
        create_namespace_defaults(&cluster, "pem");
        create_namespace_defaults(&cluster, "pem");
        for (kind, name) in [("ServiceAccount", ACCOUNT), ("ConfigMap", CERTIFICATE)] {
            let resource = cluster.resolve("v1", kind).unwrap();
            let found = cluster.list(&resource, &ListQuery::all()).unwrap().items;
            assert_eq!(found.len(), 4);
            assert!(found.iter().all(|object| object::name(object) == name));
        }
        create_namespace_defaults(&cluster, "other");
        let resource = cluster.resolve("v1", "ConfigMap").unwrap();
        let bundle = cluster.get(&resource, Some("default"), CERTIFICATE).unwrap();
        assert_eq!(bundle.str_at(&["data", "ca.crt"]), Some("other"));
    }
}
