//! Reviews through phases.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::budget::{Budget, Interrupt};
use rustc_hash::FxHashMap;

use super::rule::{Bodies, Derived, Ran, RuleRun};
use crate::compile::Program;
use crate::exceptions::ExceptionSet;
use crate::fetch::{Fact, Facts, Fetch};
use crate::gate::AllowedFetch;
use crate::outcome::{Outcome, Phase, Verdict};
use crate::policy::ApplyRules;
use crate::review::Review;
use crate::select::{PolicySet, RuleRef};
use crate::trace::{Note, RuleTrace};

/// How far an evaluation got.
#[derive(Debug)]
pub enum Step {
    /// All rules are judged.
    Done,
    /// These facts are needed; add them and step again.
    Need(Vec<AllowedFetch>),
}

/// What an evaluation came to.
#[derive(Debug)]
pub struct Done {
    /// Outcomes, in order of evaluation.
    pub outcomes: Vec<Outcome>,
    /// The object after mutation; the review's own in other phases.
    pub object: Value,
    /// The steps of every rule of the phase, if the evaluation was [`Evaluation::traced`].
    pub traces: Vec<RuleTrace>,
}

/// One review on its way through one phase.
pub struct Evaluation<'e> {
    set: &'e PolicySet,
    exceptions: &'e ExceptionSet,
    review: Review,
    phase: Phase,
    /// Candidates, grouped by policy as they come.
    queue: Vec<RuleRef>,
    /// The outcome of each candidate, in the order of `queue`.
    outcomes: Vec<Option<Outcome>>,
    /// For each policy in the queue, the rules that are left.
    cursors: Vec<PolicyCursor>,
    /// What rules have derived from the review as it stands.
    derived: Derived,
    rounds: u32,
    /// Whether rules do what they are for, or only tell that they apply.
    bodies: Bodies,
    /// The steps of the rules that ran, by position in `queue`; `None` unless they are wanted.
    notes: Option<Vec<Vec<Note>>>,
    meter: Meter,
}

/// What all rules of an evaluation together report to its host.
#[derive(Default)]
pub(super) struct Meter {
    interrupt: Option<Arc<dyn Interrupt>>,
    /// The steps that the interrupt has not heard of.
    unreported: Cell<u64>,
    interrupted: Cell<bool>,
    /// The bytes that are kept of what rules have built, by who wrote them.
    kept: [Cell<u64>; 2],
}

/// Who writes a policy. Both have room of their own, so that one does not use up what rules of the other may build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// Who may write policies for the whole cluster.
    Cluster,
    /// Who may write policies of the review's namespace.
    Namespace,
}

impl Author {
    pub(super) fn of(program: &Program) -> Self {
        if program.id.namespace.is_some() { Self::Namespace } else { Self::Cluster }
    }

    /// How many bytes of what all his rules have built one evaluation keeps.
    fn most_kept(self) -> u64 {
        match self {
            Self::Cluster => 64 << 20,
            Self::Namespace => 16 << 20,
        }
    }
}

impl Meter {
    /// The budget of the next rule.
    pub(super) fn budget(&self, author: Author) -> Budget {
        let [cluster, namespace] = &self.kept;
        let own = if author == Author::Cluster { cluster } else { namespace };
        let bytes = author.most_kept().saturating_sub(own.get()).min(Budget::DEFAULT_BYTES);
        // What comes after an interrupt gets nothing, whatever the host says now.
        let budget = if self.interrupted.get() { Budget::new(0, 0) } else { Budget::new(Budget::DEFAULT_STEPS, bytes) };
        let light = Budget::LIGHT_BYTES.saturating_sub(cluster.get() + namespace.get());
        match &self.interrupt {
            Some(interrupt) => budget.interrupted_by(Arc::clone(interrupt), self.unreported.get(), light),
            None => budget,
        }
    }

    /// Takes over what a rule has taken, of which `kept` bytes stay.
    pub(super) fn read(&self, budget: &Budget, author: Author, kept: u64) {
        self.unreported.set(budget.unreported());
        self.interrupted.set(self.interrupted.get() || budget.is_interrupted());
        let [cluster, namespace] = &self.kept;
        let own = if author == Author::Cluster { cluster } else { namespace };
        own.set(own.get() + kept);
    }
}

impl std::fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Evaluation({:?} of {} candidates)", self.phase, self.queue.len())
    }
}

/// The position of an evaluation in the rules of one policy. Mutations depend on one another, and `applyRules: One`
/// ends a policy early.
#[derive(Debug)]
struct PolicyCursor {
    /// The rest of the policy's candidates in `queue`.
    rest: std::ops::Range<usize>,
    /// The object before the policy's first patch.
    before: Option<Value>,
    /// The place in the queue of the first rule that failed to mutate, because of which all patches are taken back.
    failed: Option<usize>,
}

/// The policies of a queue.
fn cursors(queue: &[RuleRef]) -> Vec<PolicyCursor> {
    let mut cursors: Vec<PolicyCursor> = Vec::new();
    for (i, reference) in queue.iter().enumerate() {
        match cursors.last_mut() {
            Some(cursor) if queue.get(cursor.rest.start).is_some_and(|r| r.policy == reference.policy) => {
                cursor.rest.end = i + 1;
            }
            _ => cursors.push(PolicyCursor { rest: i..i + 1, before: None, failed: None }),
        }
    }
    cursors
}

/// How often an evaluation may ask for more facts: each question can depend on an earlier answer, but not without end.
const MAX_ROUNDS: u32 = 64;

impl<'e> Evaluation<'e> {
    /// Begins a phase for a review.
    pub fn new(set: &'e PolicySet, exceptions: &'e ExceptionSet, review: Review, phase: Phase) -> Self {
        let mut queue = Vec::new();
        // The kind of a Namespace request's own namespace is its name only for filters, never for Policies.
        set.candidates(phase, &review, &mut queue);
        let outcomes = queue.iter().map(|_| None).collect();
        Self {
            set,
            exceptions,
            review,
            phase,
            cursors: cursors(&queue),
            queue,
            outcomes,
            derived: Derived::default(),
            rounds: 0,
            bodies: Bodies::Run,
            notes: None,
            meter: Meter::default(),
        }
    }

    /// The same, ended by `interrupt`: rules that it finds unfinished are errors.
    #[must_use]
    pub fn interrupted_by(mut self, interrupt: Arc<dyn Interrupt>) -> Self {
        self.meter.interrupt = Some(interrupt);
        self
    }

    /// Whether the interrupt has ended the evaluation, so that some outcomes are errors for that reason alone.
    pub fn is_interrupted(&self) -> bool {
        self.meter.interrupted.get()
    }

    /// The same, for the question which rules apply: a rule that is matched, meets its preconditions and has no
    /// exception passes, and its body is left alone.
    #[must_use]
    pub fn without_bodies(mut self) -> Self {
        self.bodies = Bodies::LeftAlone;
        self
    }

    /// The same, of the rules with this name alone.
    #[must_use]
    pub fn only(mut self, rule: &str) -> Self {
        let programs = self.set.programs();
        let named = |reference: &RuleRef| {
            let program = programs.get(reference.policy as usize);
            program.and_then(|p| p.rules.get(reference.rule as usize)).is_some_and(|found| found.name == rule)
        };
        self.queue.retain(named);
        self.cursors = cursors(&self.queue);
        self.outcomes.truncate(self.queue.len());
        self
    }

    /// The same, with the steps of every rule in [`Done::traces`].
    #[must_use]
    pub fn traced(mut self) -> Self {
        self.notes = Some(self.queue.iter().map(|_| Vec::new()).collect());
        self
    }

    /// Goes on as far as the facts allow.
    pub fn step(&mut self, facts: &Facts) -> Step {
        let mut needs = BTreeSet::new();
        let labels = self.namespace_labels(facts);
        for i in 0..self.cursors.len() {
            let stalled = self.cursor(i, facts, labels.as_ref(), &mut needs);
            // A later policy sees what an earlier one made of the object, so it must wait.
            if stalled && self.phase == Phase::Mutate {
                break;
            }
        }
        if needs.is_empty() {
            return Step::Done;
        }
        self.rounds += 1;
        Step::Need(needs.into_iter().collect())
    }

    /// The labels of the review's namespace: those of the review, else those that were fetched.
    fn namespace_labels(&self, facts: &Facts) -> Option<Value> {
        let fetched = || match facts.get(&Fetch::NamespaceLabels { name: self.review.namespace.clone() }) {
            Some(Fact::Found(labels)) => Some(labels.clone()),
            _ => None,
        };
        self.review.namespace_labels.clone().or_else(fetched)
    }

    /// Runs the rest of a policy; whether it stopped for want of facts.
    fn cursor(
        &mut self,
        index: usize,
        facts: &Facts,
        labels: Option<&Value>,
        needs: &mut BTreeSet<AllowedFetch>,
    ) -> bool {
        let Some(mut rest) = self.cursors.get(index).map(|cursor| cursor.rest.clone()) else { return false };
        while let Some(reference) = self.queue.get(rest.start).copied().filter(|_| !rest.is_empty()) {
            let Some(program) = self.set.programs().get(reference.policy as usize) else { break };
            let Some(rule) = program.rules.get(reference.rule as usize) else { break };
            let position = rest.start;
            let run = RuleRun {
                program,
                rule,
                reference,
                review: &self.review,
                derived: &self.derived,
                namespace_labels: labels.and_then(Value::as_object),
                exceptions: self.exceptions,
                facts,
                give_up: self.rounds >= MAX_ROUNDS,
                bodies: self.bodies,
                traced: self.notes.is_some(),
                meter: &self.meter,
            };
            let mut notes = Vec::new();
            let ran = run.run(&mut notes);
            if let Some(place) = self.notes.as_mut().and_then(|all| all.get_mut(position)) {
                *place = notes;
            }
            match ran {
                Ran::Needs(fetches) => {
                    needs.extend(fetches);
                    if let Some(cursor) = self.cursors.get_mut(index) {
                        cursor.rest = rest;
                    }
                    return true;
                }
                Ran::NoResponse => {}
                Ran::Judged(outcome, after) => {
                    let decided = matches!(outcome.verdict, Verdict::Pass | Verdict::Fail);
                    let failed = outcome.verdict == Verdict::Error && self.phase == Phase::Mutate;
                    if let Some(cursor) = self.cursors.get_mut(index) {
                        if let Some(after) = after {
                            cursor.before.get_or_insert_with(|| self.review.object.clone());
                            self.review.object = after;
                            self.derived = Derived::default();
                        }
                        cursor.failed = cursor.failed.or(failed.then_some(position));
                    }
                    if let Some(place) = self.outcomes.get_mut(position) {
                        *place = Some(outcome);
                    }
                    if decided && program.apply_rules == ApplyRules::One {
                        rest.start = rest.end;
                    }
                }
            }
            if !rest.is_empty() {
                rest.start = position + 1;
            }
        }
        if let Some(cursor) = self.cursors.get_mut(index) {
            cursor.rest = rest.end..rest.end;
            // A policy's patches come together or not at all; its other rules say that theirs are not applied.
            if let Some(failed) = cursor.failed.take() {
                if let Some(before) = cursor.before.take() {
                    self.review.object = before;
                    self.derived = Derived::default();
                }
                let policy = self.queue.get(failed).map(|reference| reference.policy);
                let rule = self.outcomes.get(failed).and_then(Option::as_ref).map(|outcome| outcome.rule.clone());
                let own = self.queue.iter().zip(&mut self.outcomes).filter(|(r, _)| Some(r.policy) == policy);
                for outcome in own.filter_map(|(_, outcome)| outcome.as_mut()).filter(|o| o.verdict == Verdict::Pass) {
                    let message = format!(
                        "{}; not applied: rule `{}` failed",
                        outcome.message,
                        rule.as_deref().unwrap_or_default()
                    );
                    outcome.message = message.into();
                }
            }
        }
        false
    }

    /// What the phase came to. Call it after [`Step::Done`].
    pub fn finish(mut self) -> Done {
        let traces = self.notes.take().map(|notes| self.traces(notes)).unwrap_or_default();
        Done { outcomes: self.outcomes.into_iter().flatten().collect(), object: self.review.object, traces }
    }

    /// The steps of all rules of the phase: those that ran, and why the others could not even match.
    fn traces(&self, ran: Vec<Vec<Note>>) -> Vec<RuleTrace> {
        let mut ran: FxHashMap<RuleRef, Vec<Note>> = self.queue.iter().copied().zip(ran).collect();
        let facts = Facts::new();
        let mut traces = Vec::new();
        for (policy, program) in self.set.programs().iter().enumerate() {
            for (index, rule) in program.rules.iter().enumerate().filter(|(_, rule)| rule.phase() == self.phase) {
                let reference = RuleRef { policy: policy as u32, rule: index as u32 };
                let notes = ran.remove(&reference).unwrap_or_else(|| {
                    if let Some(own) = program.id.namespace.as_ref().filter(|own| **own != self.review.namespace) {
                        return vec![Note::OtherNamespace(own.clone())];
                    }
                    if let Some(made) = rule.autogen.as_ref().filter(|made| !made.kinds.contains(&self.review.gvk.kind))
                    {
                        return vec![Note::OtherController(made.kinds.clone())];
                    }
                    let run = RuleRun {
                        program,
                        rule,
                        reference,
                        review: &self.review,
                        derived: &self.derived,
                        namespace_labels: self.review.namespace_labels.as_ref().and_then(Value::as_object),
                        exceptions: self.exceptions,
                        facts: &facts,
                        give_up: false,
                        bodies: Bodies::LeftAlone,
                        traced: true,
                        meter: &self.meter,
                    };
                    run.explain_selection()
                });
                traces.push(RuleTrace { policy, index, notes });
            }
        }
        traces
    }
}
