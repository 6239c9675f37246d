//! Whatever happens, and however late the controller hears of it: after quiet, reports say what judging everything
//! from nothing says, and another pass writes nothing.

use proptest::prelude::*;

use super::harness::{Harness, config_map, wants};

#[derive(Debug, Clone)]
enum Op {
    Object { namespace: usize, name: usize, value: usize },
    DeleteObject { namespace: usize, name: usize },
    Policy { name: usize, value: usize, namespaced: bool, background: bool },
    DeletePolicy { name: usize, namespaced: bool },
    Exception { policy: usize },
    DeleteException { policy: usize },
    DeleteReport(usize),
    EditReport(usize),
    Pump,
    Step,
    LoseWatches,
    Crash,
    Wait,
}

const NAMES: [&str; 3] = ["one", "two", "three"];
const SPACES: [&str; 2] = ["a", "b"];

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..2usize, 0..3usize, 0..3usize).prop_map(|(namespace, name, value)| Op::Object { namespace, name, value }),
        3 => (0..2usize, 0..3usize).prop_map(|(namespace, name)| Op::DeleteObject { namespace, name }),
        4 => (0..3usize, 0..3usize, any::<bool>(), prop::bool::weighted(0.8))
            .prop_map(|(name, value, namespaced, background)| Op::Policy { name, value, namespaced, background }),
        2 => (0..3usize, any::<bool>()).prop_map(|(name, namespaced)| Op::DeletePolicy { name, namespaced }),
        1 => (0..3usize).prop_map(|policy| Op::Exception { policy }),
        1 => (0..3usize).prop_map(|policy| Op::DeleteException { policy }),
        1 => (0..6usize).prop_map(Op::DeleteReport),
        1 => (0..6usize).prop_map(Op::EditReport),
        5 => Just(Op::Pump),
        10 => Just(Op::Step),
        1 => Just(Op::LoseWatches),
        1 => Just(Op::Crash),
        1 => Just(Op::Wait),
    ]
}

fn apply(harness: &mut Harness, op: &Op) {
    match op {
        Op::Object { namespace, name, value } => {
            harness.apply(&config_map(SPACES[*namespace], NAMES[*name], NAMES[*value]));
        }
        Op::DeleteObject { namespace, name } => harness.delete("v1", "ConfigMap", SPACES[*namespace], NAMES[*name]),
        Op::Policy { name, value, namespaced, background } => {
            let kind = if *namespaced { "Policy" } else { "ClusterPolicy" };
            harness.apply(&wants(kind, NAMES[*name], NAMES[*value], *background));
        }
        Op::DeletePolicy { name, namespaced: true } => harness.delete("kyverno.io/v1", "Policy", "a", NAMES[*name]),
        Op::DeletePolicy { name, namespaced: false } => {
            harness.delete("kyverno.io/v1", "ClusterPolicy", "", NAMES[*name]);
        }
        Op::Exception { policy } => {
            let policy = NAMES[*policy];
            harness.apply(&format!(
                "{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: {policy}, namespace: a}}, spec: {{exceptions: \
                 [{{policyName: {policy}, ruleNames: [r]}}], match: {{any: [{{resources: {{kinds: [ConfigMap], names: [one]}}}}]}}}}}}"
            ));
        }
        Op::DeleteException { policy } => harness.delete("kyverno.io/v2", "PolicyException", "a", NAMES[*policy]),
        Op::DeleteReport(index) => {
            if let Some(report) = harness.reports().get(*index) {
                let (namespace, name) = (ephor_cluster::object::namespace(report), ephor_cluster::object::name(report));
                harness.delete("wgpolicyk8s.io/v1alpha2", "PolicyReport", namespace, name);
            }
        }
        Op::EditReport(index) => {
            if let Some(report) = harness.reports().get(*index) {
                harness.edit_report(report.clone());
            }
        }
        Op::Pump => harness.pump(),
        Op::Step => {
            harness.step();
        }
        Op::LoseWatches => harness.lose_watches(),
        Op::Crash => harness.crash(),
        Op::Wait => harness.now += 31_000,
    }
}

proptest! {
    #[test]
    fn reports_say_what_judging_everything_from_nothing_says(ops in prop::collection::vec(op(), 1..60)) {
        let mut harness = Harness::new();
        for op in &ops {
            apply(&mut harness, op);
        }
        harness.settle();
        prop_assert_eq!(harness.stored(), harness.expected());
        let versions = harness.versions();
        harness.resync();
        harness.crash();
        harness.settle();
        prop_assert_eq!(harness.versions(), versions);
    }

    #[test]
    fn reports_in_memory_say_the_same_and_a_second_pass_changes_none(ops in prop::collection::vec(op(), 1..60)) {
        let mut harness = Harness::in_memory();
        for op in &ops {
            apply(&mut harness, op);
        }
        harness.settle();
        prop_assert_eq!(harness.stored(), harness.expected());
        let versions = harness.versions();
        harness.resync();
        prop_assert_eq!(harness.versions(), versions);
        harness.crash();
        harness.settle();
        prop_assert_eq!(harness.stored(), harness.expected());
    }
}
