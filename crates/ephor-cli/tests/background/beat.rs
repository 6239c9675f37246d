//! A proof that the controller has seen all that was done before: something goes the whole way behind it.
//!
//! Each beat changes two policies, a trigger and a source, and waits for what is generated from them. The controller
//! follows each kind in one watch, in order, so that what happened before a beat has been seen when it is over.

use parking_lot::{Condvar, Mutex};

use ephor_expr::{Value, yaml};

use crate::remote::{Remote, TIMEOUT, within};

/// Beats, one after the other, as long as somebody waits for one.
pub(crate) struct Heart {
    remote: Remote,
    beats: Mutex<Beats>,
    over: Condvar,
}

#[derive(Default)]
struct Beats {
    done: u64,
    beating: bool,
    /// Why there will be no more.
    failed: Option<String>,
}

const KINDS: [&str; 2] = ["ClusterPolicy", "Policy"];

fn parse(text: &str) -> Value {
    yaml::parse_value(text).expect("a document")
}

fn policy(kind: &str, beat: u64) -> Value {
    let place = if kind == "Policy" { ", namespace: heart" } else { "" };
    let head = "match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {heart: beats}}}}]}";
    let common = "synchronize: true, generateExisting: true, apiVersion: v1, kind: Secret, namespace: heart";
    let suffix = kind.to_lowercase();
    parse(&format!(
        "apiVersion: kyverno.io/v1
kind: {kind}
metadata: {{name: heart{place}}}
spec:
  rules:
  - name: data
    {head}
    generate: {{{common}, name: data-{suffix}, data: {{data: {{policy: '{beat:08}', trigger: '{{{{ request.object.data.beat }}}}'}}}}}}
  - name: copy
    {head}
    generate: {{{common}, name: copy-{suffix}, clone: {{namespace: heart, name: source}}}}
"
    ))
}

// Eight digits are base64, too.

fn trigger(beat: u64) -> Value {
    parse(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: trigger, namespace: heart, labels: {{heart: beats}}}},
          data: {{beat: '{beat:08}'}}}}"
    ))
}

fn secret(name: &str, beat: u64) -> Value {
    parse(&format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: heart}}, data: {{beat: '{beat:08}'}}}}"
    ))
}

impl Heart {
    /// Returns when the first beat is over: Ephor is at work then.
    pub(crate) fn start(remote: &Remote) -> Self {
        let namespace = parse("{apiVersion: v1, kind: Namespace, metadata: {name: heart}}");
        for object in [namespace, secret("source", 0), trigger(0)] {
            remote.apply(&object).unwrap();
        }
        for kind in KINDS {
            // Webhooks are registered before the API server has heard of them, and for a moment nobody may answer them.
            let mut last = None;
            let created = within(TIMEOUT, || match remote.apply(&policy(kind, 0)) {
                Ok(_) => remote.is_ready(&policy(kind, 0)),
                Err(error) => {
                    last = Some(error);
                    false
                }
            });
            assert!(created, "the first {kind} is not ready: {last:?}");
        }
        let heart = Self { remote: remote.clone(), beats: Mutex::default(), over: Condvar::new() };
        heart.wait();
        heart
    }

    /// Returns when a beat is over that has begun since.
    pub(crate) fn wait(&self) {
        let mut beats = self.beats.lock();
        // One that is under way may have passed by already.
        let wanted = beats.done + 1 + u64::from(beats.beating);
        while beats.done < wanted {
            if let Some(why) = &beats.failed {
                panic!("{why}");
            }
            if beats.beating {
                self.over.wait(&mut beats);
                continue;
            }
            beats.beating = true;
            let number = beats.done + 1;
            drop(beats);
            let beat = self.beat(number);
            beats = self.beats.lock();
            beats.beating = false;
            match beat {
                Ok(()) => beats.done = number,
                Err(why) => beats.failed = Some(why),
            }
            self.over.notify_all();
        }
    }

    fn beat(&self, number: u64) -> Result<(), String> {
        let changes = [policy(KINDS[0], number), policy(KINDS[1], number), secret("source", number), trigger(number)];
        for change in &changes {
            self.remote.merge(change).map_err(|error| error.to_string())?;
        }
        let beat = number;
        let number = format!("{beat:08}");
        let has = |name: String, key: &str| {
            let live = self.remote.read(&secret(&name, 0));
            live.is_some_and(|live| live.str_at(&["data", key]) == Some(&number))
        };
        let over = within(TIMEOUT, || {
            KINDS.iter().all(|kind| {
                let suffix = kind.to_lowercase();
                has(format!("data-{suffix}"), "policy")
                    && has(format!("data-{suffix}"), "trigger")
                    && has(format!("copy-{suffix}"), "beat")
            })
        });
        if over { Ok(()) } else { Err(format!("the controller does not keep up: beat {beat} is not over")) }
    }
}
