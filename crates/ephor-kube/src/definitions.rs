//! A thread that follows `CustomResourceDefinition`s, so that the table of kinds is right without being asked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use ephor_cluster::{ClusterError, Discovery, Resource, Watch, WatchEvent, WatchQuery, object};

use crate::exchange::Exchange;
use crate::options::ManagedFields;
use crate::served::Served;
use crate::watch::KubeWatch;

/// How long a wait for events takes before the thread looks whether it is still wanted.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// How often the server is asked after a definition changed: it takes a moment until it serves a new kind.
const SETTLING: [Duration; 3] = [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5)];
/// The pause after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The thread, which ends when this is dropped.
pub(crate) struct Follower {
    _wanted: Sender<()>,
}

impl Follower {
    pub(crate) fn start(served: &Arc<Served>, exchange: &Arc<Exchange>) -> std::io::Result<Self> {
        let (wanted, end) = channel();
        let (served, exchange) = (Arc::downgrade(served), Arc::downgrade(exchange));
        thread::Builder::new().name("ephor-definitions".to_owned()).spawn(move || {
            while !ended(&end, Duration::ZERO) {
                // A thread that died here would leave a client that learns of no kinds.
                match catch_unwind(AssertUnwindSafe(|| follow(&served, &exchange, &end))) {
                    Ok(Ok(())) => continue,
                    Ok(Err(error)) => tracing::debug!(%error, "following definitions begins anew"),
                    Err(_) => tracing::error!("following definitions panicked, and begins anew"),
                }
                if ended(&end, RETRY_INTERVAL) {
                    return;
                }
            }
        })?;
        Ok(Self { _wanted: wanted })
    }
}

fn ended(end: &Receiver<()>, wait: Duration) -> bool {
    !matches!(end.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
}

/// Follows until the watch fails or the thread is no longer wanted.
fn follow(served: &Weak<Served>, exchange: &Weak<Exchange>, end: &Receiver<()>) -> Result<(), ClusterError> {
    let Some(definitions) = definition() else { return Ok(()) };
    let mut watch = {
        let Some(exchange) = exchange.upgrade() else { return Ok(()) };
        let query = WatchQuery { metadata_only: true, bookmarks: true, ..WatchQuery::default() };
        KubeWatch::start(exchange, definitions, query, ManagedFields::Dropped)?
    };
    // How far the settling after the last change is; at the beginning everything may have changed.
    let mut step = 0;
    while !ended(end, Duration::ZERO) {
        let wait = SETTLING.get(step).copied().unwrap_or(MIN_INTERVAL).min(MIN_INTERVAL);
        match watch.next(wait)? {
            Some(WatchEvent::Bookmark(_)) => {}
            Some(event) => {
                step = 0;
                if let (WatchEvent::Deleted(gone), Some(served)) = (&event, served.upgrade())
                    && let Some((plural, group)) = object::name(gone).split_once('.')
                {
                    served.forget(group, plural);
                }
            }
            None if step < SETTLING.len() => {
                let (Some(served), Some(exchange)) = (served.upgrade(), exchange.upgrade()) else { return Ok(()) };
                served.refresh(&exchange)?;
                step += 1;
            }
            None => {}
        }
    }
    Ok(())
}

fn definition() -> Option<Resource> {
    Discovery::kubernetes().find("apiextensions.k8s.io/v1", "CustomResourceDefinition").cloned()
}
