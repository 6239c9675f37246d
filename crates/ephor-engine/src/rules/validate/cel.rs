//! `validate.cel`: a body of CEL over the review, once for each parameter object.

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use crate::cel::{Body, Evaluator, Fault, Inputs, Listed, Matched, Params, ParamsError, Place, Ruling, Source, Stop};
use crate::diagnostic::Diagnostic;
use crate::matching::SelectorError;
use crate::outcome::Verdict;
use crate::policy::{Cel, CelValidation, MatchCondition};
use crate::rules::judgement::{Judged, Judgement, Pending};
use crate::scope::Scope;

/// A compiled `validate.cel` block with the rule's `celPreconditions`.
#[derive(Debug)]
pub struct CelCheck {
    body: Body,
    params: Option<Params>,
}

/// What a check is compiled from.
#[derive(Debug)]
pub(crate) struct CelRule<'p> {
    pub(crate) cel: &'p Cel,
    pub(crate) preconditions: &'p [MatchCondition],
    /// `validate.message`, for expressions without one.
    pub(crate) message: Option<&'p Str>,
    /// Where the rule stands.
    pub(crate) path: &'p Path,
}

impl CelCheck {
    /// Compiles a block. Every expression that does not compile is a finding.
    pub(crate) fn compile(rule: &CelRule<'_>) -> Result<Self, Vec<Diagnostic>> {
        let path = rule.path.keys(&["validate", "cel"]);
        let params = match (&rule.cel.param_kind, &rule.cel.param_ref) {
            (Some(kind), Some(reference)) => {
                let at = path.key("paramRef");
                Some(Params::compile(kind, reference, &at).map_err(|error| vec![selector_finding(&error)])?)
            }
            _ => None,
        };
        let inherit = |validation: &CelValidation| CelValidation {
            message: validation.message.clone().filter(|text| !text.is_empty()).or_else(|| rule.message.cloned()),
            ..validation.clone()
        };
        let validations: Vec<CelValidation> = rule.cel.expressions.iter().flatten().map(inherit).collect();
        let source = Source {
            variables: listed(rule.cel.variables.as_ref(), path.key("variables")),
            conditions: Listed { items: rule.preconditions, path: rule.path.key("celPreconditions") },
            validations: Listed { items: &validations, path: path.key("expressions") },
            annotations: listed(rule.cel.audit_annotations.as_ref(), path.key("auditAnnotations")),
            ..Source::at(Place::Validation { params: rule.cel.param_kind.is_some() })
        };
        let body =
            Body::compile(&source).map_err(|faults| faults.into_iter().map(Fault::diagnostic).collect::<Vec<_>>())?;
        Ok(Self { body, params })
    }

    /// Judges the scope's review. The first expression that is false or fails decides; both fail the rule.
    pub(crate) fn judge(&self, scope: &Scope<'_>, pass_message: &Str) -> Judged {
        let (world, review) = (scope.world(), scope.review());
        let params = match &self.params {
            None => vec![Value::Null],
            Some(params) => match params.find(&review.namespace, world) {
                Ok(found) => found,
                Err(ParamsError::Pending) => return Err(Pending),
                Err(error) => {
                    let text = format!("error in parameterized resource: {error}");
                    return Ok(Some(Judgement::new(Verdict::Error, text)));
                }
            },
        };
        let inputs = Inputs::new(review, world);
        for params in &params {
            match Self::decided_by(&Evaluator::new(&self.body, &inputs, params)) {
                Ok(None) => {}
                Ok(Some(judgement)) => return Ok(Some(judgement)),
                Err(Stop::Pending) => return Err(Pending),
                Err(Stop::Spent(error)) => return Ok(Some(Judgement::new(Verdict::Error, error.to_string()))),
            }
        }
        Ok(Some(Judgement::new(Verdict::Pass, pass_message.clone())))
    }

    /// What decides the rule for one parameter object, if anything does.
    fn decided_by(evaluator: &Evaluator<'_>) -> Result<Option<Judgement>, Stop> {
        match evaluator.matches()? {
            Matched::Yes => {}
            Matched::No(_) => return Ok(Some(Judgement::new(Verdict::Skip, "cel preconditions not met"))),
            Matched::Failed(text) => return Ok(Some(Judgement::new(Verdict::Fail, text))),
        }
        let decides = |ruling| match ruling {
            Ruling::Admit => None,
            Ruling::Deny { message, .. } | Ruling::Fail(message) => Some(Judgement::new(Verdict::Fail, message)),
        };
        Ok(evaluator.validate()?.into_iter().find_map(decides))
    }
}

fn listed<T>(items: Option<&Vec<T>>, path: Path) -> Listed<'_, T> {
    Listed { items: items.map_or(&[], Vec::as_slice), path }
}

fn selector_finding(error: &SelectorError) -> Diagnostic {
    Diagnostic::error("invalid-selector", error.path().clone(), error.to_string())
}
