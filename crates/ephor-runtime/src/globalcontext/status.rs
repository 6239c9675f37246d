//! Writes the status of entries.

use std::time::Duration;

use ephor_cluster::{Cluster, ClusterError, ErrorKind, WriteOptions};
use ephor_expr::{Str, Value};

use super::GlobalContext;
use crate::lease::Term;

/// How often entries are looked at.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps the status of all entries true until the term ends. For the leader.
pub fn write_statuses(cluster: &dyn Cluster, context: &GlobalContext, term: &Term) {
    while !term.token().wait(POLL_INTERVAL) {
        let entries: Vec<_> = context.read().values().cloned().collect();
        for entry in entries {
            if term.fence().is_err() {
                return;
            }
            let (health, refreshed) = entry.health();
            if let Err(error) = write(cluster, &entry.name, &health, refreshed) {
                tracing::debug!(entry = %entry.name, %error, "cannot write the status of a global context entry");
            }
        }
    }
}

/// Writes a status that differs from the stored one. The time of the last refresh alone is not worth a write, unless
/// there is none yet.
fn write(
    cluster: &dyn Cluster,
    name: &Str,
    health: &Result<(), String>,
    refreshed: Option<jiff::Timestamp>,
) -> Result<(), ClusterError> {
    let kind = cluster.resolve("kyverno.io/v2", "GlobalContextEntry")?;
    let mut document = match cluster.get(&kind, None, name) {
        Ok(document) => document,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let (status, reason, message) = match health {
        Ok(()) => ("True", "Succeeded", ""),
        Err(why) => ("False", "Failed", why.as_str()),
    };
    let conditions = document.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let is = |condition: &Value, key: &str, want: &str| condition.str_at(&[key]) == Some(want);
    let told = conditions.iter().any(|condition| {
        is(condition, "type", "Ready")
            && is(condition, "status", status)
            && condition.str_at(&["message"]).unwrap_or_default() == message
    });
    let dated = refreshed.is_none() || document.at(&["status", "lastRefreshTime"]).is_some();
    if told && dated {
        return Ok(());
    }
    let now = jiff::Timestamp::now();
    let second = |time: jiff::Timestamp| Value::from(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let condition = Value::from([
        ("lastTransitionTime", second(now)),
        ("message", Value::from(message)),
        ("reason", Value::from(reason)),
        ("status", Value::from(status)),
        ("type", Value::from("Ready")),
    ]);
    let mut members = ephor_expr::Map::new();
    members.insert("conditions", Value::array(vec![condition]));
    if let Some(refreshed) = refreshed {
        members.insert("lastRefreshTime", second(refreshed));
    }
    members.insert("ready", health.is_ok());
    if let Some(document) = document.as_object_mut() {
        document.insert("status", members);
    }
    match cluster.update_status(&kind, document, &WriteOptions::default()) {
        // Another writer was faster: the next round reads the result.
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        other => other.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;
    use ephor_expr::yaml::parse_value;

    use super::*;

    #[test]
    fn a_status_is_written_when_it_changes() {
        let cluster = MemoryCluster::default();
        let kind = cluster.resolve("kyverno.io/v2", "GlobalContextEntry").unwrap();
        let text = "{apiVersion: kyverno.io/v2, kind: GlobalContextEntry, metadata: {name: g}, spec: {}}";
        cluster.create(&kind, parse_value(text).unwrap(), &WriteOptions::default()).unwrap();
        let write = |health: Result<(), String>| {
            write(&cluster, &"g".into(), &health, None).unwrap();
            let document = cluster.get(&kind, None, "g").unwrap();
            let ready = document.at(&["status", "ready"]).and_then(Value::as_bool);
            (ready, document.str_at(&["metadata", "resourceVersion"]).unwrap().to_owned())
        };
        let (ready, first) = write(Err("no".to_owned()));
        assert_eq!(ready, Some(false));
        assert_eq!(write(Err("no".to_owned())), (Some(false), first.clone()));
        let (ready, second) = write(Ok(()));
        assert_eq!(ready, Some(true));
        assert_ne!(first, second);
    }
}
