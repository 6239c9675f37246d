//! `ValidatingPolicy` of `policies.kyverno.io`: a body of CEL over the requests that its constraints mean.
//!
//! In go a review and the exceptions; out comes one judgement. An exception comes first, then the match conditions,
//! then the validations, of which the first that is not true decides.

use ephor_expr::{Str, Value};

use crate::cel::{Body, Evaluator, Inputs, Matched, Ruling};
use crate::matching::RequestMatcher;
use crate::outcome::{Detail, Verdict};
use crate::policy::{FailurePolicy, PolicyId};
use crate::rules::admission::{Halt, selected, with_user};
use crate::rules::judgement::{Judged, Judgement, Pending};
use crate::scope::Scope;

/// What exceptions say of a policy and a request.
pub(crate) enum Exempted {
    /// The request is let off.
    Whole {
        /// The verdict in its place.
        verdict: Verdict,
        /// The text.
        message: String,
        /// The exceptions.
        keys: Vec<Str>,
    },
    /// The policy judges the request; it may read what is allowed.
    Allowing(Value),
    /// An exception that may apply cannot be evaluated, and no other lets the request off.
    Unclear(String),
}

/// The exceptions that hold.
pub(crate) trait Exemptions {
    /// What they say of a policy and a request.
    fn exempted(&self, policy: &PolicyId, inputs: &Inputs<'_>) -> Result<Exempted, Halt>;

    /// The keys of those that hold for a policy and a request, whatever they allow; or why that cannot be told, if none
    /// is known to hold.
    fn applying(&self, policy: &PolicyId, inputs: &Inputs<'_>) -> Result<Result<Vec<Str>, String>, Halt>;
}

/// A compiled policy, or what auto-gen made of it.
#[derive(Debug)]
pub struct PolicyCheck {
    /// Which policy it is: exceptions name it.
    pub(crate) id: PolicyId,
    /// `matchConstraints`; `None`: the policy judges any JSON value.
    pub(crate) constraints: Option<RequestMatcher>,
    pub(crate) body: Body,
    /// What a match condition that fails means.
    pub(crate) failure_policy: FailurePolicy,
}

impl PolicyCheck {
    /// Judges the scope's review: no response if the constraints do not mean it.
    pub(crate) fn judge(&self, scope: &Scope<'_>, exceptions: &dyn Exemptions) -> Judged {
        match self.decide(scope, exceptions) {
            Ok(judgement) => Ok(judgement),
            Err(Halt::Pending) => Err(Pending),
            Err(Halt::Unclear(text)) => Ok(Some(Judgement::new(Verdict::Error, text))),
        }
    }

    fn decide(&self, scope: &Scope<'_>, exceptions: &dyn Exemptions) -> Result<Option<Judgement>, Halt> {
        let world = scope.world();
        if let Some(constraints) = &self.constraints
            && !selected(constraints, scope.review(), world)?
        {
            return Ok(None);
        }
        let review = with_user(scope.review());
        let inputs = Inputs::new(&review, world);
        let allowed = match exceptions.exempted(&self.id, &inputs)? {
            Exempted::Whole { verdict, message, keys } => {
                let judgement = Judgement::new(verdict, message);
                return Ok(Some(judgement.with(|detail: &mut Detail| detail.exceptions = keys)));
            }
            Exempted::Allowing(allowed) => allowed,
            Exempted::Unclear(text) => return Ok(Some(Judgement::new(Verdict::Error, text))),
        };
        let nothing = Value::Null;
        let evaluator = Evaluator::new(&self.body, &inputs, &nothing).with_exceptions(&allowed);
        match evaluator.matches()? {
            Matched::Yes => {}
            Matched::Failed(text) if self.failure_policy == FailurePolicy::Fail => {
                let text = format!("failed to execute matching: {text}");
                return Ok(Some(Judgement::new(Verdict::Error, text)));
            }
            Matched::No(_) | Matched::Failed(_) => return Ok(Some(Judgement::new(Verdict::Skip, "skip"))),
        }
        let judgement = match evaluator.first_violation()? {
            Some((index, Ruling::Deny { message, .. })) => at(index, Judgement::new(Verdict::Fail, message)),
            Some((index, Ruling::Fail(text))) => at(index, Judgement::new(Verdict::Error, format!("error: {text}"))),
            None | Some((_, Ruling::Admit)) => Judgement::new(Verdict::Pass, "success"),
        };
        if judgement.verdict == Verdict::Error {
            return Ok(Some(judgement));
        }
        annotated(judgement, &evaluator).map(Some)
    }
}

/// The judgement with the place of the validation that decided it.
fn at(index: usize, judgement: Judgement) -> Judgement {
    judgement.with(|detail| drop(detail.properties.insert("cel.validationIndex", index.to_string())))
}

/// The judgement with the audit annotations; an error if one of them fails.
pub(crate) fn annotated(judgement: Judgement, evaluator: &Evaluator<'_>) -> Result<Judgement, Halt> {
    let annotations = evaluator.annotations()?;
    let failed = annotations.iter().find_map(|annotation| annotation.value.as_ref().err());
    if let Some(text) = failed {
        let text: Str = format!("error: {text}").into();
        return Ok(Judgement::new(Verdict::Error, text));
    }
    if annotations.is_empty() {
        return Ok(judgement);
    }
    Ok(judgement.with(|detail| {
        for annotation in annotations {
            if let Ok(text) = annotation.value {
                detail.properties.insert(annotation.key, text);
            }
        }
    }))
}
