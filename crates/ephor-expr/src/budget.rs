//! Bounds on the work and memory of evaluation.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// What one evaluation may spend. Every evaluator step and every byte that a function reads or builds is charged, so
/// that no expression loops long or grows a string without end, whatever the expression and the data are.
pub struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
    interrupt: Option<Arc<dyn Interrupt>>,
    /// With fewer steps left than this the interrupt is asked.
    ask_below: Cell<u64>,
    /// The steps that were left when the interrupt was asked last, and those of before this budget.
    asked_at: Cell<u64>,
    interrupted: Cell<bool>,
    /// With fewer bytes left than this the interrupt is asked whether much may be built.
    light_above: Cell<u64>,
}

/// Ends an evaluation before its budget is spent: when its time is over, or when it has to go on elsewhere.
///
/// Evaluation has no clock. Its host has one, and implements this.
pub trait Interrupt: Send + Sync {
    /// Whether the evaluation has to end. `steps` counts the steps since the last question.
    fn is_due(&self, steps: u64) -> bool;

    /// Whether a rule may build more than [`Budget::LIGHT_BYTES`]. May wait: many rules that build much at once would
    /// take more memory than the process has.
    fn may_build_much(&self) -> bool {
        true
    }
}

/// The budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// Too many evaluation steps.
    #[error("evaluation takes too many steps")]
    Steps,
    /// Too much data built.
    #[error("evaluation builds too much data")]
    Bytes,
    /// A value nested too deeply was built.
    #[error("evaluation nests data too deeply")]
    Depth,
    /// The host ended the evaluation.
    #[error("evaluation takes too long")]
    Interrupted,
}

impl Budget {
    /// Steps a single rule evaluation may take.
    pub const DEFAULT_STEPS: u64 = 10_000_000;
    /// Bytes a single rule evaluation may build.
    pub const DEFAULT_BYTES: u64 = 32 << 20;
    /// Bytes that a rule may build without asking.
    pub const LIGHT_BYTES: u64 = 1 << 20;

    /// After so many steps the interrupt is asked again.
    const STEPS_BETWEEN_QUESTIONS: u64 = 1024;

    /// How many bytes that are built count as one step.
    const BYTES_A_STEP: u64 = 64;

    /// How deep a value may nest: what an API server accepts, and what expressions can add.
    const MAX_DEPTH: usize = 10_000 + 512;

    /// From this depth on a walk keeps its place on the heap instead of the stack.
    const MAX_RECURSION: usize = 64;

    /// A budget of `steps` evaluation steps and `bytes` built bytes.
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self {
            steps: Cell::new(steps),
            bytes: Cell::new(bytes),
            interrupt: None,
            ask_below: Cell::new(0),
            asked_at: Cell::new(steps),
            interrupted: Cell::new(false),
            light_above: Cell::new(0),
        }
    }

    /// The same, ended by `interrupt`, which has not heard of `unreported` steps that were taken before. It is asked
    /// before more than `light` bytes are built.
    #[must_use]
    pub fn interrupted_by(self, interrupt: Arc<dyn Interrupt>, unreported: u64, light: u64) -> Self {
        let left = self.steps.get();
        self.asked_at.set(left.saturating_add(unreported));
        self.ask_below.set(self.asked_at.get().saturating_sub(Self::STEPS_BETWEEN_QUESTIONS).max(1));
        self.light_above.set(self.bytes.get().saturating_sub(light));
        Self { interrupt: Some(interrupt), ..self }
    }

    /// The steps that the interrupt has not heard of.
    pub fn unreported(&self) -> u64 {
        self.asked_at.get().saturating_sub(self.steps.get())
    }

    /// Whether the interrupt has ended the evaluation.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.get()
    }

    /// The steps that are left.
    pub fn steps_left(&self) -> u64 {
        self.steps.get()
    }

    /// The bytes that are left.
    pub fn bytes_left(&self) -> u64 {
        self.bytes.get()
    }

    /// Takes `n` steps. Once they do not suffice none are left, so that what comes after fails as well.
    pub fn charge_steps(&self, n: u64) -> Result<(), BudgetError> {
        let rest = take(&self.steps, n);
        if self.steps.get() < self.ask_below.get() {
            self.ask()?;
        }
        rest.ok_or(BudgetError::Steps)
    }

    /// Takes the steps of reading `bytes` once.
    pub fn charge_reading(&self, bytes: usize) -> Result<(), BudgetError> {
        self.charge_steps(1 + bytes as u64 / 16)
    }

    /// Takes `n` bytes. Once they do not suffice none are left.
    pub fn charge_bytes(&self, n: usize) -> Result<(), BudgetError> {
        take(&self.bytes, n as u64).ok_or(BudgetError::Bytes)?;
        if self.bytes.get() < self.light_above.get() {
            self.ask_for_memory()?;
        }
        self.charge_steps(n as u64 / Self::BYTES_A_STEP)
    }

    #[cold]
    fn ask_for_memory(&self) -> Result<(), BudgetError> {
        self.light_above.set(0);
        if self.interrupt.as_ref().is_none_or(|interrupt| interrupt.may_build_much()) {
            return Ok(());
        }
        self.interrupted.set(true);
        self.steps.set(0);
        self.asked_at.set(0);
        Err(BudgetError::Interrupted)
    }

    #[cold]
    fn ask(&self) -> Result<(), BudgetError> {
        let Some(interrupt) = &self.interrupt else { return Ok(()) };
        if self.interrupted.get() || interrupt.is_due(self.unreported()) {
            self.interrupted.set(true);
            self.steps.set(0);
            self.asked_at.set(0);
            return Err(BudgetError::Interrupted);
        }
        self.asked_at.set(self.steps.get());
        self.ask_below.set(self.steps.get().saturating_sub(Self::STEPS_BETWEEN_QUESTIONS).max(1));
        Ok(())
    }

    /// Walks all of `value`, a step for every node and every 16 bytes of text, and gives about the length of its
    /// JSON. To be called before a value is copied out, for example as text, and when a value is built that may
    /// hold another several times: shared parts take no memory but count in full here, so that doubling again
    /// and again ends at the budget.
    pub fn charge_tree(&self, value: &Value) -> Result<usize, BudgetError> {
        self.walk(value, 0)
    }

    fn walk(&self, value: &Value, depth: usize) -> Result<usize, BudgetError> {
        if depth >= Self::MAX_RECURSION {
            return self.walk_deep(value, depth);
        }
        match value {
            Value::Array(items) => {
                self.charge_steps(1)?;
                items.iter().try_fold(2_usize, |sum, item| Ok(sum.saturating_add(self.walk(item, depth + 1)? + 1)))
            }
            Value::Object(map) => {
                self.charge_steps(1)?;
                map.iter().try_fold(2_usize, |sum, (key, item)| {
                    Ok(sum.saturating_add(key.len() + 4 + self.walk(item, depth + 1)?))
                })
            }
            scalar => self.charge_scalar(scalar),
        }
    }

    /// [`Budget::walk`] without recursion.
    fn walk_deep(&self, value: &Value, depth: usize) -> Result<usize, BudgetError> {
        let (mut pending, mut size) = (vec![(value, depth)], 0_usize);
        while let Some((value, depth)) = pending.pop() {
            if depth >= Self::MAX_DEPTH {
                return Err(BudgetError::Depth);
            }
            let added = match value {
                Value::Array(items) => {
                    self.charge_steps(1)?;
                    pending.extend(items.iter().map(|item| (item, depth + 1)));
                    2 + items.len()
                }
                Value::Object(map) => {
                    self.charge_steps(1)?;
                    pending.extend(map.values().map(|item| (item, depth + 1)));
                    map.keys().fold(2, |sum, key| sum + key.len() + 4)
                }
                scalar => self.charge_scalar(scalar)?,
            };
            size = size.saturating_add(added);
        }
        Ok(size)
    }

    fn charge_scalar(&self, scalar: &Value) -> Result<usize, BudgetError> {
        let size = match scalar {
            Value::String(text) => text.len() + 2,
            Value::Int(_) | Value::Float(_) => 20,
            _ => 5,
        };
        self.charge_steps(1 + size as u64 / 16)?;
        Ok(size)
    }
}

fn take(left: &Cell<u64>, n: u64) -> Option<()> {
    let rest = left.get().checked_sub(n);
    left.set(rest.unwrap_or(0));
    rest.map(drop)
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_STEPS, Self::DEFAULT_BYTES)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budget({} steps, {} bytes)", self.steps.get(), self.bytes.get())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Is due once it has heard of so many steps.
    struct After(AtomicU64);

    impl Interrupt for After {
        fn is_due(&self, steps: u64) -> bool {
            let left = self.0.load(Ordering::Relaxed).saturating_sub(steps);
            self.0.store(left, Ordering::Relaxed);
            left == 0
        }
    }

    /// Lets nothing build much.
    struct Small(AtomicU64);

    impl Interrupt for Small {
        fn is_due(&self, _: u64) -> bool {
            false
        }

        fn may_build_much(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            false
        }
    }

    #[test]
    fn the_host_is_asked_once_before_much_is_built() {
        let small = Arc::new(Small(AtomicU64::new(0)));
        let budget = Budget::default().interrupted_by(Arc::clone(&small) as Arc<dyn Interrupt>, 0, Budget::LIGHT_BYTES);
        let light = usize::try_from(Budget::LIGHT_BYTES).unwrap();
        assert_eq!(budget.charge_bytes(light), Ok(()));
        assert_eq!(small.0.load(Ordering::Relaxed), 0);
        assert_eq!(budget.charge_bytes(1), Err(BudgetError::Interrupted));
        assert!(budget.is_interrupted() && budget.charge_steps(1).is_err());
        assert_eq!(small.0.load(Ordering::Relaxed), 1);
        assert_eq!(Budget::default().charge_bytes(4 * light), Ok(()), "without a host only the budget counts");
    }

    #[test]
    fn an_interrupt_ends_the_evaluation_and_keeps_it_ended() {
        let budget = Budget::default().interrupted_by(Arc::new(After(AtomicU64::new(5_000))), 0, Budget::LIGHT_BYTES);
        let taken = (0..100_000).take_while(|_| budget.charge_steps(1).is_ok()).count();
        assert!((5_000..7_000).contains(&taken), "{taken}");
        assert!(budget.is_interrupted());
        assert_eq!(budget.charge_steps(1), Err(BudgetError::Interrupted));
        assert_eq!(budget.charge_bytes(100), Err(BudgetError::Interrupted));
    }

    #[test]
    fn an_interrupt_hears_of_the_steps_of_all_budgets_in_a_row() {
        let interrupt = Arc::new(After(AtomicU64::new(5_000)));
        let (mut unreported, mut budgets) = (0, 0);
        loop {
            let budget = Budget::default().interrupted_by(interrupt.clone(), unreported, Budget::LIGHT_BYTES);
            if budget.charge_steps(10).is_err() {
                break;
            }
            unreported = budget.unreported();
            budgets += 1;
        }
        assert!((500..700).contains(&budgets), "{budgets}");
    }

    #[test]
    fn one_large_charge_is_reported_before_the_work() {
        let budget = Budget::default().interrupted_by(Arc::new(After(AtomicU64::new(5_000))), 0, Budget::LIGHT_BYTES);
        assert_eq!(budget.charge_steps(6_000), Err(BudgetError::Interrupted));
    }

    #[test]
    fn a_tree_is_walked_without_recursion_as_deep_as_an_api_server_reads() {
        let nested = |depth: usize| (0..depth).fold(Value::Null, |inner, _| Value::array(vec![inner]));
        let (deep, too_deep) = (nested(10_000), nested(11_000));
        assert!(Budget::default().charge_tree(&deep).is_ok());
        assert_eq!(Budget::default().charge_tree(&too_deep), Err(BudgetError::Depth));
    }
}
