//! `DeletingPolicy` of `policies.kyverno.io`: whether an object is to go.
//!
//! In go a review of a stored object and the exceptions; out comes a pass if the object is to be deleted. An exception
//! comes first and keeps it, then the conditions decide. Whatever cannot be told keeps it too: it is an error.

use ephor_expr::Value;

use crate::cel::{Body, Evaluator, Inputs, Matched};
use crate::matching::RequestMatcher;
use crate::outcome::Verdict;
use crate::policy::{DeletionPropagation, PolicyId};
use crate::rules::admission::{Halt, selected};
use crate::rules::judgement::{Judged, Judgement, Pending};
use crate::rules::validate::policy::Exemptions;
use crate::schedule::Schedule;
use crate::scope::Scope;

/// A compiled policy.
#[derive(Debug)]
pub struct PolicyDeletion {
    /// Which policy it is: exceptions name it.
    pub(crate) id: PolicyId,
    /// When it runs.
    pub schedule: Schedule,
    /// How dependents are treated; `None` leaves it to the API server.
    pub propagation: Option<DeletionPropagation>,
    /// `matchConstraints`, for any operation; `None`: the policy judges any JSON value.
    pub constraints: Option<RequestMatcher>,
    pub(crate) body: Body,
}

impl PolicyDeletion {
    /// Judges the scope's review: no response if the constraints do not mean the object.
    pub(crate) fn judge(&self, scope: &Scope<'_>, exceptions: &dyn Exemptions) -> Judged {
        match self.decide(scope, exceptions) {
            Ok(judgement) => Ok(judgement),
            Err(Halt::Pending) => Err(Pending),
            Err(Halt::Unclear(text)) => Ok(Some(Judgement::new(Verdict::Error, text))),
        }
    }

    fn decide(&self, scope: &Scope<'_>, exceptions: &dyn Exemptions) -> Result<Option<Judgement>, Halt> {
        let (review, world) = (scope.review(), scope.world());
        if let Some(constraints) = &self.constraints
            && !selected(constraints, review, world)?
        {
            return Ok(None);
        }
        let inputs = Inputs::new(review, world);
        let keys = match exceptions.applying(&self.id, &inputs)? {
            Ok(keys) => keys,
            Err(text) => return Ok(Some(Judgement::new(Verdict::Error, text))),
        };
        if !keys.is_empty() {
            let text = format!("{KEPT}: policy exception {}", keys.join(", "));
            return Ok(Some(Judgement::new(Verdict::Fail, text).with(|detail| detail.exceptions = keys)));
        }
        let nothing = Value::Null;
        Ok(Some(match Evaluator::new(&self.body, &inputs, &nothing).matches()? {
            Matched::Yes => Judgement::new(Verdict::Pass, "resource matched"),
            Matched::No(_) => Judgement::new(Verdict::Fail, KEPT),
            Matched::Failed(text) => Judgement::new(Verdict::Error, format!("failed to evaluate conditions: {text}")),
        }))
    }
}

/// What is said of an object that stays.
const KEPT: &str = "resource did not match";
