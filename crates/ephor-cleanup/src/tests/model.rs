//! A model of what is due, against the controllers: random objects, schedules, restarts, clocks, rights and late news.
//!
//! The model knows no queue and no schedule but "every so many minutes": exactly what it says is deleted, once, and
//! nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::harness::{BEGIN, Harness, uid};

#[derive(Debug, Clone)]
enum Op {
    /// Time passes, in seconds.
    Pass(u16),
    /// The clock goes back.
    Back(u16),
    /// An object is created, if its name is free: whether the policy selects it, and its lifetime in seconds.
    Create(u8, bool, Option<u16>),
    /// An object changes: whether the policy selects it from now on.
    Relabel(u8, bool),
    /// Somebody deletes an object.
    Remove(u8),
    /// The process dies and another one takes over.
    Restart,
    /// The account may delete from now on, or not.
    Rights(bool),
    /// News arrive.
    News,
    /// The policy gets another schedule: every so many minutes.
    Schedule(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (1_u16..2_000).prop_map(Op::Pass),
        1 => (1_u16..5_000).prop_map(Op::Back),
        5 => (0_u8..6, any::<bool>(), prop::option::of(1_u16..3_000)).prop_map(|(name, due, ttl)| Op::Create(name, due, ttl)),
        2 => (0_u8..6, any::<bool>()).prop_map(|(name, due)| Op::Relabel(name, due)),
        1 => (0_u8..6).prop_map(Op::Remove),
        1 => Just(Op::Restart),
        1 => any::<bool>().prop_map(Op::Rights),
        3 => Just(Op::News),
        1 => prop_oneof![Just(5_u8), Just(10), Just(20)].prop_map(Op::Schedule),
    ]
}

#[derive(Debug, Clone)]
struct Object {
    uid: String,
    due: bool,
    /// When its lifetime ends, in seconds.
    ends: Option<u64>,
}

struct Model {
    objects: BTreeMap<u8, Object>,
    minutes: u64,
    /// From when on the next time of the policy counts, in seconds.
    base: u64,
    /// When it ran last, as its status says, or was created.
    written: u64,
}

fn place(name: u8) -> (&'static str, String) {
    // The policy is one of namespace `a`.
    (if name.is_multiple_of(2) { "a" } else { "b" }, format!("o{name}"))
}

const KIND: (&str, &str) = ("kyverno.io/v2", "CleanupPolicy");
const MAPS: (&str, &str) = ("v1", "ConfigMap");

fn policy(minutes: u64) -> String {
    format!(
        "{{apiVersion: kyverno.io/v2, kind: CleanupPolicy, metadata: {{name: p, namespace: a}}, spec: \
         {{schedule: '*/{minutes} * * * *', match: {{any: [{{resources: {{kinds: [ConfigMap], selector: \
         {{matchLabels: {{due: 'yes'}}}}}}}}]}}}}}}"
    )
}

impl Model {
    /// What is gone after everything that is due by `now` was done.
    fn settle(&mut self, now: u64, allowed: bool) {
        let period = self.minutes * 60;
        // A clock that went back.
        self.base = self.base.min(now);
        let runs = (self.base / period + 1) * period <= now;
        if runs {
            (self.base, self.written) = (now, now);
        }
        if !allowed {
            return;
        }
        self.objects.retain(|name, object| {
            let selected = runs && object.due && place(*name).0 == "a";
            !selected && object.ends.is_none_or(|ends| ends > now)
        });
    }
}

fn check(harness: &Harness, model: &Model, op: &Op) -> Result<(), TestCaseError> {
    for name in 0..6 {
        let (namespace, text) = place(name);
        let found = harness.get(MAPS, (namespace, &text)).map(|object| uid(&object));
        let wanted = model.objects.get(&name).map(|object| object.uid.clone());
        prop_assert_eq!(found, wanted, "{} after {:?}", text, op);
    }
    Ok(())
}

fn run(ops: &[Op]) -> Result<(), TestCaseError> {
    let mut harness = Harness::new();
    harness.create(&policy(10));
    harness.observe();
    let mut model = Model { objects: BTreeMap::new(), minutes: 10, base: BEGIN / 1000, written: BEGIN / 1000 };
    let mut allowed = true;
    for op in ops {
        match *op {
            Op::Pass(seconds) => harness.now += u64::from(seconds) * 1000,
            Op::Back(seconds) => harness.now = (harness.now - u64::from(seconds) * 1000).max(BEGIN),
            Op::Create(name, due, ttl) if !model.objects.contains_key(&name) => {
                let (namespace, text) = place(name);
                let mut labels = vec![format!("due: '{}'", if due { "yes" } else { "no" })];
                labels.extend(ttl.map(|seconds| format!("cleanup.kyverno.io/ttl: {seconds}s")));
                let made = harness.config_map(namespace, &text, &format!("labels: {{{}}}", labels.join(", ")));
                let ends = ttl.map(|ttl| harness.now / 1000 + u64::from(ttl));
                model.objects.insert(name, Object { uid: uid(&made), due, ends });
            }
            Op::Relabel(name, due) => {
                if let Some(object) = model.objects.get_mut(&name) {
                    object.due = due;
                    let (namespace, text) = place(name);
                    let patch = format!("{{metadata: {{labels: {{due: '{}'}}}}}}", if due { "yes" } else { "no" });
                    harness.patch(MAPS, (namespace, &text), &patch);
                }
            }
            Op::Remove(name) => {
                if model.objects.remove(&name).is_some() {
                    let (namespace, text) = place(name);
                    super::harness::remove(&harness.inner, namespace, &text);
                }
            }
            Op::Restart => {
                harness.inner.set_now(crate::env::timestamp(harness.now).to_string());
                harness.restart();
                model.base = model.written.min(harness.now / 1000);
            }
            Op::Rights(may) => {
                allowed = may;
                harness.allowed.store(may, Ordering::SeqCst);
            }
            Op::Schedule(minutes) => {
                model.minutes = u64::from(minutes);
                harness.patch(KIND, ("a", "p"), &format!("{{spec: {{schedule: '*/{minutes} * * * *'}}}}"));
            }
            Op::Create(..) | Op::News => {}
        }
        // News are late while only time passes.
        if !matches!(op, Op::Pass(_) | Op::Back(_)) {
            harness.inner.set_now(crate::env::timestamp(harness.now).to_string());
            harness.observe();
        }
        harness.to(harness.now);
        model.settle(harness.now / 1000, allowed);
        if allowed {
            // What could not be deleted, or was behind, is made good after the longest pause; the news of it before.
            harness.observe();
            let late: Vec<u8> = (0..6)
                .filter(|name| {
                    let (namespace, text) = place(*name);
                    !model.objects.contains_key(name) && harness.has(namespace, &text)
                })
                .collect();
            if !late.is_empty() {
                harness.restart();
                model.base = model.written.min(harness.now / 1000);
                harness.settle();
            }
        }
        check(&harness, &model, op)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn exactly_what_is_due_goes(ops in prop::collection::vec(op(), 1..40)) {
        run(&ops)?;
    }
}
