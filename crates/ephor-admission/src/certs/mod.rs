//! Certificates of the webhooks: a CA and a serving certificate in Secrets.
//!
//! The leader makes and renews them ([`CertKeeper`]); every replica follows the Secrets and serves what they hold from
//! the next handshake on ([`CertStore`]). What is to be done follows from what is stored ([`Step`]), one
//! write after the other, so that a death between any two leaves something that works and that the next leader goes on
//! from: a serving certificate by a new CA comes only after the webhook configurations carry that CA.

mod inspect;
mod issue;
mod keeper;
mod secrets;
mod settings;
mod step;
mod store;
#[cfg(test)]
mod tests;

pub use inspect::CertFault;
pub use issue::IssueError;
pub use keeper::{CertKeeper, KeepError};
pub use settings::CertSettings;
pub use step::Step;
pub use store::{CertStore, CertWatchers};
