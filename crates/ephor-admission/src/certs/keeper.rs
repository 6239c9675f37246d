//! The leader's thread that creates and renews certificates.

use std::sync::Arc;
use std::time::Duration;

use ephor_cluster::{Cluster, ClusterError, ErrorKind, WriteOptions};
use ephor_expr::{Str, Value};
use ephor_runtime::lease::{LostLease, Term};
use ephor_runtime::metrics::{Metrics, Reconciled};
use ephor_runtime::notify::Notify;
use jiff::Timestamp;

use super::inspect::Certificate;
use super::issue::{IssueError, Issued, ca, leaf};
use super::secrets::{TlsSecret, written};
use super::settings::CertSettings;
use super::step::{Step, decide};
use super::store::CertStore;
use crate::registration::RegistrationBoard;

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The writer does not lead any more.
    #[error(transparent)]
    Lost(#[from] LostLease),
    /// The cluster refused.
    #[error("{0}")]
    Cluster(#[from] ClusterError),
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The stored CA cannot sign.
    #[error("Secret `{0}` holds no CA")]
    NoCa(Str),
}

/// Makes and renews certificates while it leads.
pub struct CertKeeper {
    cluster: Arc<dyn Cluster>,
    settings: CertSettings,
    board: RegistrationBoard,
    notify: Notify,
}

/// The pause after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The longest time between two looks.
const MAX_CHECK_INTERVAL: Duration = Duration::from_hours(12);

impl CertKeeper {
    /// A keeper that looks again whenever the Secrets of `store` or the registration change.
    pub fn new(cluster: Arc<dyn Cluster>, settings: CertSettings, store: &CertStore, board: RegistrationBoard) -> Self {
        let notify = Notify::new();
        store.subscribe({
            let notify = notify.clone();
            move || notify.notify()
        });
        board.subscribe({
            let notify = notify.clone();
            move || notify.notify()
        });
        Self { cluster, settings, board, notify }
    }

    /// Works until the term ends.
    pub fn run(&self, term: &Term, metrics: &Metrics) {
        if !self.settings.makes_them {
            return;
        }
        let mut failures = 0;
        loop {
            metrics.reconciled("certificates", Reconciled::Done);
            let now = Timestamp::now();
            let rest = match self.once(term, now) {
                Ok(Step::RenewCa(_) | Step::RenewPair(_)) => Duration::ZERO,
                Ok(Step::Rest(until)) => Duration::try_from(until.duration_since(now)).unwrap_or_default(),
                Ok(Step::Announce) => RETRY_INTERVAL,
                Ok(Step::Blocked(why)) => {
                    tracing::error!("certificates cannot be renewed: {why}");
                    MAX_CHECK_INTERVAL
                }
                Err(KeepError::Lost(_)) => return,
                // Another replica came before; what it wrote is looked at.
                Err(KeepError::Cluster(error))
                    if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) =>
                {
                    Duration::ZERO
                }
                Err(error) => {
                    tracing::error!(%error, "certificates cannot be renewed");
                    failures += 1;
                    metrics.reconciled("certificates", Reconciled::Again { failures });
                    RETRY_INTERVAL
                }
            };
            if !rest.is_zero() && !self.notify.wait(rest.min(MAX_CHECK_INTERVAL), term.token()) {
                return;
            }
        }
    }

    /// Looks at what is stored and does the next step, which is at most one write; gives back what it was.
    pub fn once(&self, term: &Term, now: Timestamp) -> Result<Step, KeepError> {
        let ca_object = self.get(&self.settings.ca_secret)?;
        let pair_object = self.get(&self.settings.pair_secret)?;
        let ca_secret = ca_object.as_ref().map(TlsSecret::of);
        let pair_secret = pair_object.as_ref().map(TlsSecret::of);
        let announced = &self.board.get().ca_bundle;
        let step = decide(&self.settings, ca_secret.as_ref(), pair_secret.as_ref(), announced, now);
        match step {
            Step::RenewCa(why) => {
                let mut issued = ca(self.settings.algorithm, now)?;
                // Certificates that were issued before stay trusted.
                let before = ca_secret.and_then(|secret| Certificate::all(&secret.certificates).ok());
                for old in before.iter().flatten().filter(|old| old.holds(now, Duration::ZERO)) {
                    issued.certificate.push_str(&old.pem());
                }
                self.write(term, &self.settings.ca_secret, &issued, ca_object.as_ref())?;
                tracing::info!(why, "created a new CA");
            }
            Step::RenewPair(why) => {
                let no_ca = || KeepError::NoCa(self.settings.ca_secret.clone());
                let secret = ca_secret.ok_or_else(no_ca)?;
                let bundle = Certificate::all(&secret.certificates).map_err(|_| no_ca())?;
                let present = bundle.first().ok_or_else(no_ca)?;
                let key = String::from_utf8(secret.key).map_err(|_| no_ca())?;
                let by = Issued { certificate: present.pem(), key };
                let names = self.settings.names();
                let issued = leaf(self.settings.algorithm, &names, &self.settings.service, &by, present.ends, now)?;
                self.write(term, &self.settings.pair_secret, &issued, pair_object.as_ref())?;
                tracing::info!(why, "created a new serving certificate");
            }
            Step::Rest(_) | Step::Announce | Step::Blocked(_) => {}
        }
        Ok(step)
    }

    fn get(&self, name: &Str) -> Result<Option<Value>, KeepError> {
        let resource = self.cluster.resolve("v1", "Secret")?;
        match self.cluster.get(&resource, Some(&self.settings.namespace), name) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// One write: a create, or an update of exactly what was read.
    fn write(&self, term: &Term, name: &Str, issued: &Issued, before: Option<&Value>) -> Result<(), KeepError> {
        let resource = self.cluster.resolve("v1", "Secret")?;
        let secret = written(&self.settings.namespace, name, issued, before);
        let options = WriteOptions::default();
        term.fence()?;
        match before {
            None => self.cluster.create(&resource, secret, &options)?,
            Some(_) => self.cluster.update(&resource, secret, &options)?,
        };
        Ok(())
    }
}
