//! `random()`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::super::{Call, Function, Param};
use super::pattern::{Node, Parser};
use crate::budget::Budget;
use crate::jmespath::{EvalError, Runtime};
use crate::value::Value;

pub(in crate::jmespath::functions) const FUNCTIONS: &[Function] = &[Function {
    name: "random",
    params: &[Param::STRING],
    returns: "string",
    doc: "A random text that matches a regular expression. `\\d`, `\\w` and `(?…)` are not understood; unbounded \
          repetitions stop at 4096.",
    examples: &[
        ("length(random('[a-z]{4}'))", "4"),
        ("random('a{2}b')", "\"aab\""),
        ("contains(['xz', 'yz'], random('(x|y)z'))", "true"),
        ("random('[0-9')", "error: error parsing regexp: missing closing ]: `[0-9`"),
    ],
    call: random,
}];

fn random(call: &Call<'_>) -> Result<Value, EvalError> {
    Ok(random_text(call.str(0), call.runtime)?.into())
}

/// A random text that matches the regular expression `pattern`, in the dialect of `random()`.
pub fn random_text(pattern: &str, runtime: &dyn Runtime) -> Result<String, EvalError> {
    if pattern.is_empty() {
        return Err(EvalError::Other("no pattern provided".to_owned()));
    }
    let node = Parser::parse(pattern).map_err(|e| EvalError::Other(format!("error parsing regexp: {e}")))?;
    let rng = ChaCha8Rng::seed_from_u64(runtime.next_seed());
    let mut generator = Generator { rng, budget: runtime.budget(), text: String::new() };
    generator.write(&node)?;
    Ok(generator.text)
}

/// What `*`, `+` and `{n,}` may repeat at most.
const UNBOUNDED: u32 = 4096;
struct Generator<'a> {
    rng: ChaCha8Rng,
    budget: &'a Budget,
    text: String,
}

impl Generator<'_> {
    /// Appends a text for `node`. The depth of the recursion is that of the expression, which is bounded.
    fn write(&mut self, node: &Node) -> Result<(), EvalError> {
        self.budget.charge_steps(1)?;
        match node {
            Node::Empty => {}
            Node::Class { ranges, count } => {
                let mut index = self.below(*count);
                let hit = ranges.iter().find_map(|&(a, b)| {
                    let size = (a..=b).count() as u32;
                    let hit = (a..=b).nth(index as usize);
                    index = index.saturating_sub(size);
                    hit
                });
                if let Some(c) = hit {
                    self.budget.charge_bytes(c.len_utf8())?;
                    self.text.push(c);
                }
            }
            Node::Sequence(nodes) => nodes.iter().try_for_each(|n| self.write(n))?,
            Node::Choice(nodes) => {
                let index = self.below(nodes.len() as u32) as usize;
                if let Some(n) = nodes.get(index) {
                    self.write(n)?;
                }
            }
            Node::Repeat { node, min, max } => {
                let max = max.unwrap_or(UNBOUNDED);
                let times = min + self.below(max.saturating_sub(*min) + 1);
                for _ in 0..times {
                    self.write(node)?;
                }
            }
        }
        Ok(())
    }

    /// A number from 0 to `n - 1`, or 0.
    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.rng.next_u32()) * u64::from(n)) >> 32) as u32
    }
}
