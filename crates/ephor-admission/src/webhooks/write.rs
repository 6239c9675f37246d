//! Writes one webhook configuration.

use ephor_cluster::{Cluster, ClusterError, ErrorKind, WriteOptions};
use ephor_expr::{Map, Value};
use ephor_runtime::decision::proof;
use ephor_runtime::lease::{LostLease, Term};
use jiff::Timestamp;

use super::break_glass;
use super::plan::{Configuration, Ownership};

/// Why a configuration is not in place.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    /// The writer does not lead any more.
    #[error(transparent)]
    Lost(#[from] LostLease),
    /// The cluster refused.
    #[error("{0}")]
    Cluster(#[from] ClusterError),
}

/// How often a conflicting write is retried at once.
const ATTEMPTS: usize = 5;

/// Until when the glass is open, as far as was known before anything is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct BreakGlass {
    pub(super) until: Option<Timestamp>,
    pub(super) now: Timestamp,
}

impl BreakGlass {
    /// What a configuration must be. Somebody may have opened the glass since it was looked at: what the configuration
    /// that is written over carries itself counts too.
    fn document(&self, wanted: &Configuration, live: Option<&Value>) -> Value {
        let seen = live.and_then(|live| break_glass::deadline(live, self.now));
        match self.until.max(seen).filter(|_| wanted.ownership != Ownership::Own) {
            Some(until) => break_glass::opened(&wanted.document, until),
            None => wanted.document.clone(),
        }
    }
}

/// Makes the stored configuration what it must be; gives back what is stored then. Writes nothing if it is so already.
pub(super) fn put(
    cluster: &dyn Cluster,
    term: &Term,
    wanted: &Configuration,
    glass: BreakGlass,
) -> Result<Value, PutError> {
    let resource = cluster.resolve("admissionregistration.k8s.io/v1", wanted.kind.as_str())?;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let answer = match cluster.get(&resource, None, &wanted.name) {
            Ok(live) => {
                let merged = merged(&live, &glass.document(wanted, Some(&live)), wanted.ownership);
                if merged == live {
                    return Ok(live);
                }
                term.fence()?;
                cluster.update(&resource, merged, &WriteOptions::default())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                term.fence()?;
                cluster.create(&resource, glass.document(wanted, None), &WriteOptions::default())
            }
            Err(error) => return Err(error.into()),
        };
        match answer {
            Ok(stored) => {
                tracing::info!(configuration = %wanted.name, "webhooks written");
                return Ok(stored);
            }
            // The configuration was written, created or deleted in between: read it again.
            Err(error)
                if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists | ErrorKind::NotFound) =>
            {
                last = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(last.unwrap_or_else(|| ClusterError::unreachable("no attempt was made")).into())
}

/// The stored configuration with what it must have. Labels and annotations are exactly those that are wanted, as
/// upstream has it; everything else of the metadata is the cluster's.
fn merged(live: &Value, wanted: &Value, ownership: Ownership) -> Value {
    let mut merged = live.clone();
    let Some(members) = merged.as_object_mut() else { return wanted.clone() };
    let webhooks = wanted.get("webhooks").cloned().unwrap_or_default();
    match ownership {
        Ownership::Own | Ownership::Resources => {
            // A configuration without webhooks is stored without the list.
            if live.get("webhooks").is_some() || webhooks.as_array().is_some_and(|list| !list.is_empty()) {
                members.insert("webhooks", webhooks);
            }
        }
        Ownership::ResourcesOnce => follow(members, &webhooks, live.at(&GLASS).is_some()),
    }
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["labels", "annotations"] {
            match wanted.at(&["metadata", key]) {
                Some(texts) => metadata.insert(key, texts.clone()),
                None => metadata.remove(key),
            };
        }
    }
    merged
}

/// Where the deadline of break-glass stands.
const GLASS: [&str; 3] = ["metadata", "annotations", break_glass::ANNOTATION];

/// Takes over the token of the wanted path where the stored one is the same without it.
fn follow_token(client: &mut Map, wanted: &Value) {
    let take = |stored: &mut Value, wanted: Option<&Value>| {
        let (Some(old), Some(new)) = (stored.as_str(), wanted.and_then(Value::as_str)) else { return };
        if proof::split(old).0 == proof::split(new).0 {
            *stored = new.into();
        }
    };
    if let Some(url) = client.get_mut("url") {
        take(url, wanted.get("url"));
    }
    if let Some(path) = client.get_mut("service").and_then(Value::as_object_mut).and_then(|s| s.get_mut("path")) {
        take(path, wanted.at(&["service", "path"]));
    }
}

/// Gives the stored webhooks the wanted CA and token, and while the glass is or was open the wanted failure policy;
/// leaves the rest as it is.
fn follow(members: &mut Map, wanted: &Value, glass: bool) {
    let wanted = wanted.as_array().unwrap_or_default();
    let bundle = wanted.first().and_then(|webhook| webhook.at(&["clientConfig", "caBundle"]));
    for webhook in members.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = webhook.str_at(&["name"]).unwrap_or_default();
        let same = wanted.iter().find(|webhook| webhook.str_at(&["name"]) == Some(name));
        let failure = same.and_then(|webhook| webhook.get("failurePolicy")).filter(|_| glass);
        let Some(webhook) = webhook.as_object_mut() else { continue };
        if let (Some(bundle), Some(client)) = (bundle, webhook.get_mut("clientConfig").and_then(Value::as_object_mut)) {
            client.insert("caBundle", bundle.clone());
            if let Some(wanted) = same.and_then(|webhook| webhook.get("clientConfig")) {
                follow_token(client, wanted);
            }
        }
        if let Some(failure) = failure {
            webhook.insert("failurePolicy", failure.clone());
        }
    }
}
