//! CEL: expressions are the same in Ephor and in a second engine, but for known disagreements. If the first byte is an
//! exclamation mark, the rest is the text of an expression, of which only values are compared; otherwise bytes are the
//! choices of the generator that the tests use.

#![no_main]
#![allow(dead_code, reason = "the tests use more of the shared files")]

#[path = "../../crates/ephor-expr/tests/cel_second_opinion/data.rs"]
mod data;
#[path = "../../crates/ephor-expr/tests/cel_second_opinion/engines.rs"]
mod engines;
#[path = "../../crates/ephor-expr/tests/cel_second_opinion/generate.rs"]
mod generate;
#[path = "../../crates/ephor-expr/tests/cel_second_opinion/judge.rs"]
mod judge;
#[path = "../../crates/ephor-expr/tests/cel_second_opinion/known.rs"]
mod known;
#[path = "../../crates/ephor-expr/tests/cel_second_opinion/terms.rs"]
mod terms;

use libfuzzer_sys::fuzz_target;

use self::engines::Engines;
use self::judge::{Judged, judge, judge_text};

thread_local! {
    static ENGINES: Engines = Engines::new();
}

fuzz_target!(|bytes: &[u8]| {
    let judged = ENGINES.with(|engines| match bytes {
        [b'!', text @ ..] => judge_text(engines, std::str::from_utf8(text).ok()?),
        bytes => Some(judge(engines, &generate::case(bytes))),
    });
    if let Some(Judged::Unknown(difference)) = judged {
        panic!("{difference}");
    }
});
