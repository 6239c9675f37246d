//! Decides the next step for the certificates from what is stored. Pure: Secrets and time in, one [`Step`] out.

use std::time::Duration;

use jiff::Timestamp;

use super::inspect::{Certificate, certified, verify};
use super::secrets::TlsSecret;
use super::settings::CertSettings;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing before that time.
    Rest(Timestamp),
    /// Nothing, until the webhook configurations carry the present CA.
    Announce,
    /// A new CA; certificates that still hold stay beside it.
    RenewCa(&'static str),
    /// A new serving certificate by the present CA.
    RenewPair(&'static str),
    /// Something is wrong with a Secret that is not Ephor's to write.
    Blocked(String),
}

/// How often certificates are checked without an event.
const CHECK: Duration = Duration::from_hours(12);

/// Decides. `announced` are the certificates that the webhook configurations carry.
pub(super) fn decide(
    settings: &CertSettings,
    ca: Option<&TlsSecret>,
    pair: Option<&TlsSecret>,
    announced: &[u8],
    now: Timestamp,
) -> Step {
    if let Some(why) = fault_of_ca(settings, ca, now) {
        let blocked = ca.is_some_and(|secret| !secret.managed);
        return if blocked { not_ours(&settings.ca_secret, why) } else { Step::RenewCa(why) };
    }
    let bundle = ca.and_then(|secret| Certificate::all(&secret.certificates).ok()).unwrap_or_default();
    let Some((present, _)) = bundle.split_first() else { return Step::RenewCa("it holds no certificate") };
    let blocked = pair.is_some_and(|secret| !secret.managed);
    let renew = |why| if blocked { not_ours(&settings.pair_secret, why) } else { Step::RenewPair(why) };
    let chain = match pair.map(|secret| (secret, Certificate::all(&secret.certificates))) {
        None => return renew("there is none"),
        Some((_, Err(_))) => return renew("it cannot be read"),
        Some((secret, Ok(chain))) if certified(&chain, &secret.key).is_err() => {
            return renew("its key is not that of its certificate");
        }
        Some((_, Ok(chain))) => chain,
    };
    let Some(leaf) = chain.first() else { return renew("there is none") };
    let missing = settings.names().iter().any(|name| !leaf.names.contains(name));
    if missing {
        return renew("it lacks a name");
    }
    let called = settings.called_name();
    if verify(&chain, &bundle, &called, now).is_err() {
        return renew("it does not hold");
    }
    let by_present = verify(&chain, std::slice::from_ref(present), &called, now).is_ok();
    let why = if !leaf.holds(now, settings.renew_before) {
        "it ends soon"
    } else if leaf.algorithm != Some(settings.algorithm) {
        "another algorithm is asked for"
    } else if !by_present {
        "it is by an earlier CA"
    } else {
        let soonest = leaf.ends.min(present.ends);
        let due = soonest.checked_sub(settings.renew_before).unwrap_or(soonest);
        let check = now.checked_add(CHECK).unwrap_or(due);
        return Step::Rest(due.clamp(now, check.max(now)));
    };
    // What is served now still works. What replaces it must be trusted by those who call.
    let known = Certificate::all(announced).unwrap_or_default();
    if known.iter().any(|certificate| certificate.der == present.der) { renew(why) } else { Step::Announce }
}

fn not_ours(secret: &str, why: &str) -> Step {
    Step::Blocked(format!("Secret `{secret}`: {why}, and its label does not say that it is renewed by us"))
}

/// Why a new CA is due.
fn fault_of_ca(settings: &CertSettings, ca: Option<&TlsSecret>, now: Timestamp) -> Option<&'static str> {
    let Some(secret) = ca else { return Some("there is none") };
    let Ok(bundle) = Certificate::all(&secret.certificates) else { return Some("it cannot be read") };
    let present = bundle.first()?;
    if certified(std::slice::from_ref(present), &secret.key).is_err() {
        Some("its key is not that of its certificate")
    } else if !present.holds(now, Duration::ZERO) {
        Some("it has ended")
    } else if !present.holds(now, settings.renew_before) {
        Some("it ends soon")
    } else if present.algorithm != Some(settings.algorithm) {
        Some("another algorithm is asked for")
    } else {
        None
    }
}
