//! A second opinion on CEL: expressions that both Ephor's CEL and the crate `cel-core` can evaluate have to be the same
//! value, fail, or be rejected in both, but for disagreements that are listed with their reasons.
//!
//! Vectors say what Kubernetes' Go implementation makes of chosen expressions. Expressions here are made at random, so
//! they combine parts in ways that no author of a vector chose. The two engines were written independently, so both are
//! unlikely to have the same fault.
//!
//! `cargo test` compares the same cases each time. With `PROPTEST_CASES=100000` set, as many others are compared.

#![expect(clippy::disallowed_methods, reason = "the number of cases is an environment variable")]

mod data;
mod engines;
mod generate;
mod judge;
mod known;
mod terms;

use std::cell::RefCell;
use std::collections::BTreeMap;

use ephor_expr::Value;
use proptest::collection::vec;
use proptest::num::u8::ANY;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use self::engines::{Engines, Verdict};
use self::judge::{Judged, judge, judge_text};
use self::known::KNOWN;

/// Cases of a run without settings: a few seconds without optimization.
const CASES: u32 = 4_000;

/// What came of the cases.
#[derive(Debug, Default)]
struct Counts {
    all: usize,
    values: usize,
    failures: usize,
    rejections: usize,
    too_much: usize,
    known: BTreeMap<&'static str, usize>,
}

impl Counts {
    fn add(&mut self, judged: &Judged) {
        self.all += 1;
        match judged {
            Judged::Agreed(Verdict::Value(_)) => self.values += 1,
            Judged::Agreed(Verdict::Fails(_)) => self.failures += 1,
            Judged::Agreed(Verdict::Rejected(_)) => self.rejections += 1,
            Judged::Known(known) => *self.known.entry(known.name).or_default() += 1,
            Judged::TooMuch => self.too_much += 1,
            Judged::Unknown(_) => {}
        }
    }
}

#[test]
fn both_engines_agree_on_generated_expressions() {
    let config = Config { failure_persistence: None, ..Config::default() };
    let config = match std::env::var("PROPTEST_CASES") {
        Ok(_) => config,
        Err(_) => Config { cases: CASES, rng_seed: RngSeed::Fixed(15), ..config },
    };
    let (engines, counts) = (Engines::new(), RefCell::new(Counts::default()));
    let result = TestRunner::new(config).run(&vec(ANY, 40..320), |bytes| {
        let judged = judge(&engines, &generate::case(&bytes));
        counts.borrow_mut().add(&judged);
        match judged {
            Judged::Unknown(text) => Err(TestCaseError::fail(text)),
            _ => Ok(()),
        }
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, bytes)) => panic!("{reason}\nin {:#?}", generate::case(&bytes)),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
    let counts = counts.into_inner();
    let percent = |part: usize| part * 100 / counts.all;
    // Cases that are excused compare nothing, and where both only fail or reject there is little to compare.
    assert!(percent(counts.values + counts.failures + counts.rejections) >= 85, "{counts:?}");
    assert!(percent(counts.values) >= 45, "{counts:?}");
    assert!(percent(counts.too_much) == 0, "{counts:?}");
}

/// An entry that no longer disagrees has to go, and one that another hides as well.
#[test]
fn every_known_disagreement_still_disagrees() {
    let engines = Engines::new();
    for known in KNOWN {
        let (text, ours, theirs) = known.example;
        let case = generate::Case {
            strict: known.name == "constants are judged while compiling",
            ..generate::case(&[]).with(text)
        };
        let (our_verdict, their_verdict) = engines.verdicts(&case).expect("examples are small");
        assert!(our_verdict.to_string().contains(ours), "{}: Ephor says {our_verdict}", known.name);
        assert!(their_verdict.to_string().contains(theirs), "{}: cel-core says {their_verdict}", known.name);
        match judge(&engines, &case) {
            Judged::Known(found) => assert_eq!(found.name, known.name, "{}", known.reason),
            Judged::Unknown(text) => panic!("{}: not recognized: {text}", known.name),
            Judged::Agreed(_) | Judged::TooMuch => panic!("{}: no disagreement", known.name),
        }
    }
}

fn vectors() -> Option<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/cel/vectors.jsonl");
    std::fs::read_to_string(path).ok()
}

/// Go does what Ephor does where both engines disagree, as vectors show.
#[test]
fn vectors_have_what_known_disagreements_refer_to() {
    let Some(vectors) = vectors() else { return };
    for known in KNOWN.iter().filter(|known| known.go.starts_with("vector")) {
        for text in known.go.split('`').skip(1).step_by(2) {
            assert!(vectors.contains(text), "{}: no vector has `{text}`", known.name);
        }
    }
}

/// Expressions that somebody thought of, as far as they are values in both engines.
#[test]
fn both_engines_agree_on_values_of_vectors() {
    let Some(vectors) = vectors() else { return };
    let (engines, mut counts) = (Engines::new(), Counts::default());
    for line in vectors.lines() {
        let vector = Value::from_json(line).expect("a vector is JSON");
        let text = vector.str_at(&["expr"]).expect("a vector has an expression");
        let Some(judged) = judge_text(&engines, text) else { continue };
        counts.add(&judged);
        if let Judged::Unknown(text) = judged {
            panic!("{text}");
        }
    }
    assert!(counts.values >= 1_000, "{counts:?}");
}
