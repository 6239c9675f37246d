//! `ValidatingAdmissionPolicy`: a body of CEL over a request, once for each binding and each parameter object.
//!
//! In goes a review; out comes one [`Decision`] for each validation that decides something. An API server turns
//! decisions into refusals and warnings by the actions of the binding; on the command line they become the verdict of
//! the policy's only rule.

use ephor_expr::{Str, Value};

use crate::cel::{Evaluator, Inputs, Matched, Ruling};
use crate::outcome::Verdict;
use crate::policy::ValidationAction;
use crate::review::Review;
use crate::rules::admission::{AdmissionSelection, Binding, Halt, Occasion, with_user};
use crate::rules::judgement::{Judged, Judgement, Pending};
use crate::scope::{Scope, World};

/// A compiled `ValidatingAdmissionPolicy` with its bindings.
#[derive(Debug)]
pub struct AdmissionCheck {
    pub(crate) selection: AdmissionSelection,
}

/// What a policy says under one binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The binding; `None` for a policy without bindings.
    pub binding: Option<Str>,
    /// What a violation does.
    pub actions: Vec<ValidationAction>,
    /// What it says.
    pub finding: Finding,
}

/// What a policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// All validations are true.
    Met,
    /// A match condition is false.
    Unmet,
    /// A validation is false.
    Violated {
        /// The text for the user.
        message: Str,
        /// The reason for programs.
        reason: Option<Str>,
    },
    /// An expression fails. The failure policy decides.
    Failed(Str),
    /// Parameters or audit annotations cannot be had. The failure policy decides, whatever the actions are.
    Misconfigured(Str),
}

impl AdmissionCheck {
    /// Which requests it is about.
    pub fn selection(&self) -> &AdmissionSelection {
        &self.selection
    }

    /// Judges the scope's review: no response if the policy does not apply.
    pub(crate) fn judge(&self, scope: &Scope<'_>) -> Judged {
        let decisions = match self.decide(scope.review(), scope.world()) {
            Ok(decisions) => decisions,
            Err(Halt::Pending) => return Err(Pending),
            Err(Halt::Unclear(text)) => return Ok(Some(Judgement::new(Verdict::Error, text))),
        };
        Ok(judgement(decisions))
    }

    fn decide(&self, review: &Review, world: &World<'_>) -> Result<Vec<Decision>, Halt> {
        let review = with_user(review);
        let inputs = Inputs::new(&review, world);
        let mut decisions = Vec::new();
        for Occasion { binding, params } in self.selection.occasions(&review, world)? {
            match params {
                Ok(params) => self.decide_with(binding, &params, &inputs, &mut decisions)?,
                Err(text) => decisions.push(decision(binding, Finding::Misconfigured(text))),
            }
        }
        Ok(decisions)
    }

    fn decide_with(
        &self,
        binding: Option<&Binding>,
        params: &Value,
        inputs: &Inputs<'_>,
        decisions: &mut Vec<Decision>,
    ) -> Result<(), Halt> {
        let evaluator = Evaluator::new(&self.selection.body, inputs, params);
        match evaluator.matches()? {
            Matched::Yes => {}
            Matched::No(_) => {
                decisions.push(decision(binding, Finding::Unmet));
                return Ok(());
            }
            Matched::Failed(text) => {
                decisions.push(decision(binding, Finding::Failed(text.into())));
                return Ok(());
            }
        }
        let before = decisions.len();
        for ruling in evaluator.validate()? {
            let finding = match ruling {
                Ruling::Admit => continue,
                Ruling::Deny { message, reason } => Finding::Violated { message, reason },
                Ruling::Fail(text) => Finding::Failed(text),
            };
            decisions.push(decision(binding, finding));
        }
        for annotation in evaluator.annotations()? {
            if let Err(text) = annotation.value {
                decisions.push(decision(binding, Finding::Misconfigured(text)));
            }
        }
        if decisions.len() == before {
            decisions.push(decision(binding, Finding::Met));
        }
        Ok(())
    }
}

/// What a policy says under `binding`.
pub(crate) fn decision(binding: Option<&Binding>, finding: Finding) -> Decision {
    Decision {
        binding: binding.map(|binding| binding.name.clone()),
        actions: binding.map(|binding| binding.actions.clone()).unwrap_or_default(),
        finding,
    }
}

/// The verdict of all decisions: a violation counts before a failure, a failure before what is met.
fn judgement(decisions: Vec<Decision>) -> Option<Judgement> {
    let rank = |decision: &Decision| match decision.finding {
        Finding::Violated { .. } => 0,
        Finding::Failed(_) | Finding::Misconfigured(_) => 1,
        Finding::Met => 2,
        Finding::Unmet => 3,
    };
    let decisive = decisions.iter().min_by_key(|decision| rank(decision))?;
    let judgement = match &decisive.finding {
        Finding::Violated { message, .. } => Judgement::new(Verdict::Fail, message.clone()),
        Finding::Failed(message) | Finding::Misconfigured(message) => Judgement::new(Verdict::Error, message.clone()),
        Finding::Met => Judgement::new(Verdict::Pass, ""),
        Finding::Unmet => Judgement::new(Verdict::Skip, "match conditions aren't met"),
    };
    let binding = decisive.binding.clone();
    Some(judgement.with(|detail| {
        if let Some(binding) = binding {
            detail.properties.insert("binding", binding);
        }
        detail.decisions = decisions;
    }))
}
