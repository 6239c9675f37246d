//! All writes of the role.
//!
//! An object is deleted in the version that was judged and under the UID that it had then, within the scope of the
//! policy that wants it, and only while the fence says that this replica leads.

use std::fmt;
use std::sync::Arc;

use ephor_cluster::write::Propagation;
use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, Resource, WriteOptions, object};
use ephor_engine::policy::DeletionPropagation;
use ephor_expr::{Str, Value};
use ephor_runtime::lease::LostLease;

use crate::policy::Key;

/// Asked before each write.
pub type Fence = Arc<dyn Fn() -> Result<(), LostLease> + Send + Sync>;

/// An object as it was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its namespace; empty for none.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// Its identity.
    pub uid: Str,
    /// Its version.
    pub version: Str,
}

impl Target {
    /// The target that an object is; `None` if it does not say its identity and version, so that another one could be
    /// deleted in its place.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |key| Some(Str::new(object::text(object, key))).filter(|text| !text.is_empty());
        Some(Self {
            namespace: text("namespace").unwrap_or_default(),
            name: text("name")?,
            uid: text("uid")?,
            version: text("resourceVersion")?,
        })
    }
}

/// `namespace/name`, or the name of what has no namespace.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// What became of a deletion.
#[derive(Debug)]
pub enum Deleted {
    /// The object is gone, or marked as deleted.
    Done,
    /// It was gone before.
    Gone,
    /// It is not the one, or not as it was, when it was judged.
    Changed,
    /// It stays: why.
    Refused(ClusterError),
}

/// What writes.
pub struct Writer {
    cluster: Arc<dyn Cluster>,
    fence: Fence,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

/// How often a status is written anew when others write meanwhile.
const STATUS_TRIES: u32 = 5;

impl Writer {
    /// A writer behind a fence.
    pub fn new(cluster: Arc<dyn Cluster>, fence: Fence) -> Self {
        Self { cluster, fence }
    }

    /// Deletes an object. `home` is the namespace of the policy that wants it, if it is bound to one.
    pub fn delete(
        &self,
        home: Option<&str>,
        resource: &Resource,
        target: &Target,
        propagation: Option<DeletionPropagation>,
    ) -> Result<Deleted, LostLease> {
        if home.is_some_and(|home| !resource.namespaced || target.namespace != home) {
            let why = "the object is not in the policy's namespace";
            return Ok(Deleted::Refused(ClusterError::forbidden(resource, &target.name, why)));
        }
        let options = DeleteOptions {
            uid: target.uid.clone(),
            resource_version: target.version.clone(),
            propagation: propagation.map(|propagation| match propagation {
                DeletionPropagation::Foreground => Propagation::Foreground,
                DeletionPropagation::Background => Propagation::Background,
                DeletionPropagation::Orphan => Propagation::Orphan,
            }),
            ..DeleteOptions::default()
        };
        let namespace = resource.namespaced.then_some(&*target.namespace);
        (self.fence)()?;
        Ok(match self.cluster.delete(resource, namespace, &target.name, &options) {
            Ok(_) => Deleted::Done,
            Err(error) => match error.kind() {
                ErrorKind::NotFound => Deleted::Gone,
                ErrorKind::Conflict => Deleted::Changed,
                _ => Deleted::Refused(error),
            },
        })
    }

    /// Writes the status of a policy that still has that UID: `change` makes it of the one before.
    pub fn status(
        &self,
        key: &Key,
        uid: &str,
        change: impl Fn(&Value) -> Value,
    ) -> Result<Result<(), ClusterError>, LostLease> {
        let mut last = None;
        for _ in 0..STATUS_TRIES {
            match self.try_status(key, uid, &change)? {
                Err(error) if error.kind() == ErrorKind::Conflict => last = Some(error),
                done => return Ok(done),
            }
        }
        Ok(last.map_or(Ok(()), Err))
    }

    fn try_status(
        &self,
        key: &Key,
        uid: &str,
        change: &impl Fn(&Value) -> Value,
    ) -> Result<Result<(), ClusterError>, LostLease> {
        let read = || -> Result<_, ClusterError> {
            let resource = self.cluster.resolve(key.kind.api_version(), key.kind.as_str())?;
            let policy = self.cluster.get(&resource, key.namespace.as_deref(), &key.name)?;
            Ok((resource, policy))
        };
        let (resource, mut policy) = match read() {
            Ok(found) => found,
            // There is nobody to tell.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        };
        if object::text(&policy, "uid") != uid {
            return Ok(Ok(()));
        }
        let before = policy.get("status").cloned().unwrap_or_default();
        let after = change(&before);
        if after == before {
            return Ok(Ok(()));
        }
        if let Some(members) = policy.as_object_mut() {
            members.insert("status", after);
        }
        (self.fence)()?;
        Ok(self.cluster.update_status(&resource, policy, &WriteOptions::default()).map(|_| ()))
    }
}
