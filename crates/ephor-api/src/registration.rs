//! Registers the extension API server with the API server: one `APIService` for each group and version.
//!
//! An `APIService` that Ephor did not write is never changed. The API server itself keeps one for each group of custom
//! kinds, so a group is registered only after the definitions of its kinds are gone.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, WriteOptions, object};
use ephor_expr::{Map, Str, Value};
use ephor_reports::Dialect;
use ephor_reports::report::{MANAGED_BY, MANAGER};

/// The API version of `APIService`.
const API_VERSION: &str = "apiregistration.k8s.io/v1";

/// How the API server reaches the extension API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The namespace of the Service.
    pub namespace: Str,
    /// The Service.
    pub service: Str,
    /// Its port.
    pub port: u16,
    /// The certificates that vouch for the server, PEM.
    pub ca_bundle: Arc<[u8]>,
    /// The ClusterRole that owns the registration: the garbage collector deletes it when the role is gone.
    pub owner: Option<Str>,
}

/// Why a group is not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// Another owner has registered it.
    #[error("APIService `{0}` is not Ephor's: remove it, or the definitions of the kinds in its group, first")]
    Foreign(Str),
    /// The cluster refuses.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// The name of the `APIService` of a dialect.
pub fn name(dialect: Dialect) -> Str {
    let (group, version) = ephor_cluster::resource::split_api_version(dialect.api_version());
    format!("{version}.{group}").into()
}

/// Makes the `APIService` of a dialect lead to `endpoint`. Returns whether it wrote.
pub fn register(cluster: &dyn Cluster, dialect: Dialect, endpoint: &Endpoint) -> Result<bool, RegistrationError> {
    let kind = cluster.resolve(API_VERSION, "APIService")?;
    let name = name(dialect);
    let spec = spec(dialect, endpoint);
    let owners = Value::array(owner(cluster, endpoint)?.into_iter().collect());
    let mut wanted = Value::from([
        ("apiVersion", Value::from(API_VERSION)),
        ("kind", Value::from("APIService")),
        (
            "metadata",
            Value::from([
                ("labels", Value::from([(MANAGED_BY, Value::from(MANAGER))])),
                ("name", name.clone().into()),
                ("ownerReferences", owners.clone()),
            ]),
        ),
        ("spec", spec.clone()),
    ]);
    let present = match cluster.get(&kind, None, &name) {
        Ok(present) => present,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            cluster.create(&kind, wanted, &WriteOptions::default())?;
            return Ok(true);
        }
        Err(error) => return Err(error.into()),
    };
    if present.str_at(&["metadata", "labels", MANAGED_BY]) != Some(MANAGER) {
        return Err(RegistrationError::Foreign(name));
    }
    let own = spec.as_object().into_iter().flat_map(Map::iter);
    let owned = present.at(&["metadata", "ownerReferences"]).cloned().unwrap_or_else(|| Value::array(Vec::new()));
    if owned == owners && own.into_iter().all(|(key, value)| present.at(&["spec", key]) == Some(value)) {
        return Ok(false);
    }
    object::copy(&mut wanted, &present, "resourceVersion");
    object::copy(&mut wanted, &present, "uid");
    cluster.update(&kind, wanted, &WriteOptions::default())?;
    Ok(true)
}

/// Removes the `APIService` of a dialect if Ephor wrote it for a Service in that namespace. Returns whether it did.
pub fn unregister(cluster: &dyn Cluster, dialect: Dialect, namespace: &str) -> Result<bool, RegistrationError> {
    let kind = cluster.resolve(API_VERSION, "APIService")?;
    let name = name(dialect);
    let present = match cluster.get(&kind, None, &name) {
        Ok(present) => present,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let is_own = present.str_at(&["metadata", "labels", MANAGED_BY]) == Some(MANAGER)
        && present.str_at(&["spec", "service", "namespace"]) == Some(namespace);
    if !is_own {
        return Ok(false);
    }
    let options = DeleteOptions {
        uid: object::text(&present, "uid").into(),
        resource_version: object::text(&present, "resourceVersion").into(),
        ..DeleteOptions::default()
    };
    match cluster.delete(&kind, None, &name, &options) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A reference to the owner, if there is one and it exists.
fn owner(cluster: &dyn Cluster, endpoint: &Endpoint) -> Result<Option<Value>, ClusterError> {
    const ROLES: &str = "rbac.authorization.k8s.io/v1";
    let Some(name) = &endpoint.owner else { return Ok(None) };
    match cluster.get(&cluster.resolve(ROLES, "ClusterRole")?, None, name) {
        Ok(role) => Ok(Some(Value::from([
            ("apiVersion", Value::from(ROLES)),
            ("kind", Value::from("ClusterRole")),
            ("name", Value::from(name.clone())),
            ("uid", Value::from(object::text(&role, "uid"))),
        ]))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn spec(dialect: Dialect, endpoint: &Endpoint) -> Value {
    let (group, version) = ephor_cluster::resource::split_api_version(dialect.api_version());
    let service = Value::from([
        ("name", Value::from(endpoint.service.clone())),
        ("namespace", Value::from(endpoint.namespace.clone())),
        ("port", Value::Int(endpoint.port.into())),
    ]);
    Value::from([
        ("caBundle", Value::from(STANDARD.encode(&endpoint.ca_bundle))),
        ("group", Value::from(group)),
        ("groupPriorityMinimum", Value::Int(1000)),
        ("service", service),
        ("version", Value::from(version)),
        ("versionPriority", Value::Int(10)),
    ])
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;
    use ephor_cluster::memory::Options;

    use super::*;

    fn endpoint(ca: &str) -> Endpoint {
        Endpoint {
            namespace: "kyverno".into(),
            service: "reports".into(),
            port: 443,
            ca_bundle: ca.as_bytes().into(),
            owner: Some("role".into()),
        }
    }

    fn register(cluster: &MemoryCluster, ca: &str) -> Result<bool, RegistrationError> {
        super::register(cluster, Dialect::WgPolicy, &endpoint(ca))
    }

    fn stored(cluster: &MemoryCluster) -> Value {
        let kind = cluster.resolve(API_VERSION, "APIService").unwrap();
        cluster.get(&kind, None, "v1alpha2.wgpolicyk8s.io").unwrap()
    }

    #[test]
    fn a_group_is_registered_once_and_follows_the_ca() {
        let cluster = MemoryCluster::new(Options::server());
        assert!(register(&cluster, "first").unwrap());
        assert_eq!(stored(&cluster).str_at(&["spec", "service", "name"]), Some("reports"));
        assert!(!register(&cluster, "first").unwrap());
        assert!(register(&cluster, "second").unwrap());
        assert_eq!(stored(&cluster).str_at(&["spec", "caBundle"]), Some("c2Vjb25k"));
    }

    #[test]
    fn a_registration_goes_with_its_cluster_role() {
        let cluster = MemoryCluster::new(Options::server());
        assert!(register(&cluster, "first").unwrap());
        assert!(stored(&cluster).at(&["metadata", "ownerReferences", "0"]).is_none());
        let kind = cluster.resolve("rbac.authorization.k8s.io/v1", "ClusterRole").unwrap();
        let role = Value::from([("metadata", Value::from([("name", Value::from("role"))]))]);
        let role = cluster.create(&kind, role, &WriteOptions::default()).unwrap();
        assert!(register(&cluster, "first").unwrap());
        assert!(!register(&cluster, "first").unwrap());
        let owners = stored(&cluster).at(&["metadata", "ownerReferences"]).cloned().unwrap();
        assert_eq!(owners.as_array().unwrap()[0].str_at(&["uid"]), Some(object::text(&role, "uid")));
        cluster.delete(&kind, None, "role", &DeleteOptions::default()).unwrap();
        cluster.collect_garbage();
        let registrations = cluster.resolve(API_VERSION, "APIService").unwrap();
        assert!(cluster.get(&registrations, None, "v1alpha2.wgpolicyk8s.io").is_err());
    }

    #[test]
    fn a_registration_of_another_owner_is_not_changed() {
        let cluster = MemoryCluster::new(Options::server());
        let kind = cluster.resolve(API_VERSION, "APIService").unwrap();
        let metadata = Value::from([("name", Value::from("v1alpha2.wgpolicyk8s.io"))]);
        let foreign = Value::from([("metadata", metadata), ("spec", spec(Dialect::WgPolicy, &endpoint("other")))]);
        cluster.create(&kind, foreign, &WriteOptions::default()).unwrap();
        assert!(matches!(register(&cluster, "first"), Err(RegistrationError::Foreign(_))));
        assert!(!unregister(&cluster, Dialect::WgPolicy, "kyverno").unwrap());
        assert_eq!(stored(&cluster).str_at(&["spec", "caBundle"]), Some("b3RoZXI="));
    }

    #[test]
    fn an_own_registration_is_removed_and_that_of_another_installation_is_not() {
        let cluster = MemoryCluster::new(Options::server());
        register(&cluster, "first").unwrap();
        assert!(!unregister(&cluster, Dialect::WgPolicy, "other").unwrap());
        assert!(unregister(&cluster, Dialect::WgPolicy, "kyverno").unwrap());
        assert!(!unregister(&cluster, Dialect::WgPolicy, "kyverno").unwrap());
    }
}
