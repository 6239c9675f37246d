//! `ephor break-glass`: for a while, requests pass when policies cannot be asked.

use anyhow::{Context as _, anyhow, bail};
use ephor_admission::webhooks::break_glass::{MAX_DURATION, announce, close, open};
use ephor_cluster::Cluster;
use ephor_expr::scalar::duration::Duration;
use jiff::{SignedDuration, Timestamp};

use super::CommandResult;
use super::access::AccessArgs;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor break-glass`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How long to fail open, such as 30m; at most 24h.
    #[arg(long = "for", value_name = "DURATION", required_unless_present = "end", conflicts_with = "end")]
    duration: Option<String>,
    /// Stop failing open now.
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Opens or closes the glass.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let period = args.duration.as_deref().map(period).transpose()?;
    let cluster = args.access.connect()?;
    let text = match period {
        Some(period) => opened(&cluster, Timestamp::now(), period, ui)?,
        None => ended(&cluster)?,
    };
    ui.result(&text)?;
    Ok(Exit::Clean)
}

fn period(text: &str) -> anyhow::Result<SignedDuration> {
    let duration = Duration::parse(text).map_err(|error| anyhow!("`--for {text}`: {error}"))?;
    let longest = i64::try_from(MAX_DURATION.as_nanos()).unwrap_or(i64::MAX);
    if !(1..=longest).contains(&duration.0) {
        bail!("`--for {text}`: expected more than nothing and at most 24h");
    }
    Ok(SignedDuration::from_nanos(duration.0))
}

fn opened(cluster: &dyn Cluster, now: Timestamp, period: SignedDuration, ui: &Ui) -> anyhow::Result<String> {
    let until = now.checked_add(period).context("the deadline is out of range")?;
    let changed = open(cluster, until)?;
    if changed == 0 {
        bail!("there are no resource webhooks in this cluster");
    }
    // Break-glass is active. A failed Event is a warning, not an error.
    if let Err(error) = announce(cluster, now, until) {
        ui.say(&format!("warning: no Event tells of it: {error}"));
    }
    let what = if changed == 1 { "configuration lets" } else { "configurations let" };
    Ok(format!(
        "{changed} webhook {what} requests through until {until} when policies cannot be asked.\n\
         The leader of the admission controller reverts that by itself; `ephor break-glass --end` reverts it sooner.\n"
    ))
}

fn ended(cluster: &dyn Cluster) -> anyhow::Result<String> {
    Ok(match close(cluster)? {
        0 => "break-glass was not active\n".to_owned(),
        _ => "the leader of the admission controller now restores the failure policies\n".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use ephor_cluster::{ListQuery, MemoryCluster, WriteOptions};
    use ephor_expr::Value;

    use super::*;

    fn cluster() -> MemoryCluster {
        let cluster = MemoryCluster::default();
        let document = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, \
                        metadata: {name: kyverno-resource-validating-webhook-cfg}, \
                        webhooks: [{name: a, failurePolicy: Fail}]}";
        let resource = cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration").unwrap();
        let document = ephor_expr::yaml::parse_value(document).unwrap();
        cluster.create(&resource, document, &WriteOptions::default()).unwrap();
        cluster
    }

    fn webhook(cluster: &MemoryCluster) -> Value {
        let resource = cluster.resolve("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration").unwrap();
        cluster.get(&resource, None, "kyverno-resource-validating-webhook-cfg").unwrap()
    }

    #[test]
    fn the_glass_opens_with_a_deadline_and_an_event() {
        let cluster = cluster();
        let ui = Ui::new(true, true);
        let text = opened(&cluster, Timestamp::UNIX_EPOCH, period("30m").unwrap(), &ui).unwrap();
        assert!(text.starts_with("1 webhook configuration lets requests through until 1970-01-01T00:30:00Z"), "{text}");
        let live = webhook(&cluster);
        assert_eq!(live.get("webhooks").unwrap().as_array().unwrap()[0].str_at(&["failurePolicy"]), Some("Ignore"));
        let events = cluster.resolve("events.k8s.io/v1", "Event").unwrap();
        let events = cluster.list(&events, &ListQuery::all()).unwrap().items;
        let [event] = events.as_slice() else { panic!("{events:?}") };
        let note = event.str_at(&["note"]).unwrap();
        assert!(
            note.ends_with("lets requests through until 1970-01-01T00:30:00Z when policies cannot be asked"),
            "{note}"
        );

        assert!(ended(&cluster).unwrap().contains("restores"));
        assert!(webhook(&cluster).at(&["metadata", "annotations", "ephor.dev/break-glass-until"]).is_none());
        assert_eq!(ended(&cluster).unwrap(), "break-glass was not active\n");
    }

    #[test]
    fn without_webhooks_there_is_no_glass() {
        let ui = Ui::new(true, true);
        let error = opened(&MemoryCluster::default(), Timestamp::UNIX_EPOCH, period("1h").unwrap(), &ui).unwrap_err();
        assert_eq!(error.to_string(), "there are no resource webhooks in this cluster");
    }

    #[test]
    fn periods_are_bounded() {
        for bad in ["0s", "-1m", "25h", "x"] {
            assert!(period(bad).is_err(), "{bad}");
        }
        assert_eq!(period("24h").unwrap(), SignedDuration::from_hours(24));
    }
}
