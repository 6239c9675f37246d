//! Checks of volumes.

use ephor_expr::Value;

use super::super::pod::Pod;
use super::super::standard::Version;
use super::super::violation::{BadValue, Violations};

pub(super) fn host_paths(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    for (i, volume) in pod.volumes.iter().enumerate() {
        if let Some(source) = source(volume, "hostPath") {
            found.forbid(format!("spec.volumes[{i}].hostPath"), source.str_at(&["path"]).unwrap_or_default());
        }
    }
}

static ALLOWED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Volume types that the restricted level forbids, in the order in which they are looked for.
pub(crate) static RESTRICTED_VOLUMES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
    UNKNOWN_VOLUME,
];

/// What a volume counts as that has none of the types above.
const UNKNOWN_VOLUME: &str = "unknown";

pub(super) fn types(pod: &Pod<'_>, _: Version, found: &mut Violations) {
    for (i, volume) in pod.volumes.iter().enumerate() {
        if ALLOWED_VOLUMES.iter().any(|kind| source(volume, kind).is_some()) {
            continue;
        }
        let restricted = RESTRICTED_VOLUMES.iter().find(|kind| source(volume, kind).is_some());
        let kind = restricted.copied().unwrap_or(UNKNOWN_VOLUME);
        found.forbid(format!("spec.volumes[{i}].{kind}"), BadValue::None);
    }
}

fn source<'v>(volume: &'v Value, kind: &str) -> Option<&'v Value> {
    volume.get(kind).filter(|source| !source.is_null())
}
