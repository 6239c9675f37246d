//! `MutatingPolicy` of `policies.kyverno.io`: patches in CEL over the requests that its constraints mean.
//!
//! In go a review and the exceptions; out come one judgement and the object after all patches. An exception comes
//! first, then the match conditions, then the patches in order, each over the object that the one before gave. A scan
//! changes nothing: an object that the policy would change fails.

use ephor_expr::Value;

use super::admission::apply;
use crate::cel::{Body, Evaluator, Inputs, Matched};
use crate::matching::RequestMatcher;
use crate::outcome::Verdict;
use crate::policy::PolicyId;
use crate::review::{Mode, Review};
use crate::rules::admission::{Halt, selected, with_user};
use crate::rules::judgement::{Judgement, Pending};
use crate::rules::validate::policy::{Exempted, Exemptions, annotated};
use crate::scope::{Scope, World};

/// A compiled policy, or what auto-gen made of it.
#[derive(Debug)]
pub struct PolicyMutation {
    /// Which policy it is: exceptions name it.
    pub(crate) id: PolicyId,
    /// `matchConstraints`.
    pub(crate) constraints: RequestMatcher,
    pub(crate) body: Body,
}

impl PolicyMutation {
    /// Changes the scope's object: no response if the constraints do not mean it.
    pub(crate) fn judge(
        &self,
        scope: &Scope<'_>,
        exceptions: &dyn Exemptions,
    ) -> Result<Option<(Judgement, Option<Value>)>, Pending> {
        match selected(&self.constraints, scope.review(), scope.world()) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(Halt::Pending) => return Err(Pending),
            Err(Halt::Unclear(text)) => return Ok(Some((Judgement::new(Verdict::Error, text), None))),
        }
        let review = with_user(scope.review());
        match self.patched(&review, scope.world(), exceptions) {
            Ok((_, Some(after))) if review.mode == Mode::Scan && after != review.object => {
                Ok(Some((Judgement::new(Verdict::Fail, "mutation is not applied"), None)))
            }
            Ok((judgement, after)) => Ok(Some((judgement, after.filter(|after| *after != review.object)))),
            Err(Halt::Pending) => Err(Pending),
            Err(Halt::Unclear(text)) => Ok(Some((Judgement::new(Verdict::Error, text), None))),
        }
    }

    fn patched(
        &self,
        review: &Review,
        world: &World<'_>,
        exceptions: &dyn Exemptions,
    ) -> Result<(Judgement, Option<Value>), Halt> {
        let said = |verdict, text: String| Ok((Judgement::new(verdict, text), None));
        let allowed = {
            let inputs = Inputs::new(review, world);
            let allowed = match exceptions.exempted(&self.id, &inputs)? {
                Exempted::Whole { verdict, message, keys } => {
                    let judgement = Judgement::new(verdict, message).with(|detail| detail.exceptions = keys);
                    return Ok((judgement, None));
                }
                Exempted::Allowing(allowed) => allowed,
                Exempted::Unclear(text) => return said(Verdict::Error, text),
            };
            match Evaluator::new(&self.body, &inputs, &Value::Null).with_exceptions(&allowed).matches()? {
                Matched::Yes => {}
                Matched::No(_) => return said(Verdict::Skip, "skip".to_owned()),
                Matched::Failed(text) => return said(Verdict::Error, format!("failed to execute matching: {text}")),
            }
            allowed
        };
        let mut review = review.clone();
        for index in 0..self.body.patch_count() {
            let patch = {
                let inputs = Inputs::new(&review, world);
                Evaluator::new(&self.body, &inputs, &Value::Null).with_exceptions(&allowed).patch(index)?
            };
            let after = match patch {
                Some(Ok(patch)) => apply(&patch, &review.object, world, world.merger()),
                Some(Err(text)) => Err(text),
                None => continue,
            };
            match after {
                Ok(after) => review.object = after,
                Err(text) => return said(Verdict::Error, format!("failed to evaluate policy: {text}")),
            }
        }
        // Annotations see the object after all patches.
        let judgement = {
            let inputs = Inputs::new(&review, world);
            let evaluator = Evaluator::new(&self.body, &inputs, &Value::Null).with_exceptions(&allowed);
            annotated(Judgement::new(Verdict::Pass, "success"), &evaluator)?
        };
        let after = (judgement.verdict == Verdict::Pass).then_some(review.object);
        Ok((judgement, after))
    }
}
