//! `ValidatingAdmissionPolicy`: a body of CEL over a request, once for each binding and each parameter object.
//!
//! In goes a review; out comes one [`Decision`] for each validation that decides something. An API server turns
//! decisions into refusals and warnings by the actions of the binding; on the command line they become the verdict of
//! the policy's only rule.

use std::borrow::Cow;

use ephor_expr::jmespath::Runtime as _;
use ephor_expr::{Str, Value};

use crate::cel::{Body, Evaluator, Inputs, Matched, Params, ParamsError, Ruling, Stop};
use crate::fetch::{Fact, Fetch};
use crate::matching::{Gvk, RequestMatcher, RequestResource, Selector, UserInfo, labels};
use crate::outcome::Verdict;
use crate::policy::ValidationAction;
use crate::review::Review;
use crate::rules::judgement::{Judged, Judgement, Pending};
use crate::scope::{Answer, Scope, World};

/// The user of reviews that no request has brought, as upstream calls it.
const NO_REQUEST: &str = "system:kyverno:background-scan";

/// A compiled `ValidatingAdmissionPolicy` with its bindings.
#[derive(Debug)]
pub struct AdmissionCheck {
    /// `matchConstraints`.
    pub(crate) constraints: RequestMatcher,
    pub(crate) body: Body,
    /// In the order of their names. Without any the policy judges what it matches, which an API server does not do:
    /// whoever tests a policy sees what it says.
    pub(crate) bindings: Vec<Binding>,
}

/// A compiled binding.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: Str,
    /// `matchResources`.
    pub(crate) matcher: Option<RequestMatcher>,
    pub(crate) params: Option<Params>,
    pub(crate) actions: Vec<ValidationAction>,
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

/// Why there are no decisions.
enum Halt {
    Pending,
    /// It cannot be told whether the policy applies.
    Unclear(String),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Pending => Self::Pending,
            Stop::Spent(error) => Self::Unclear(error.to_string()),
        }
    }
}

impl AdmissionCheck {
    /// Whether the policy may judge objects of a resource.
    pub fn may_match(&self, resource: &RequestResource<'_>) -> bool {
        self.constraints.may_match(resource)
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
        let request = inputs.request_resource();
        let resource = RequestResource {
            group: &request.group,
            version: &request.version,
            resource: &request.resource,
            subresource: &request.subresource,
        };
        if !applies(&self.constraints, &review, &resource, world)? {
            return Ok(Vec::new());
        }
        let mut decisions = Vec::new();
        if self.bindings.is_empty() {
            self.decide_with(None, &Value::Null, &inputs, &mut decisions)?;
        }
        for binding in &self.bindings {
            let bound = binding.matcher.as_ref().map_or(Ok(true), |block| applies(block, &review, &resource, world))?;
            if !bound {
                continue;
            }
            let params = match binding.params.as_ref().map(|params| params.find(&review.namespace, world)) {
                None => vec![Value::Null],
                Some(Ok(found)) => found,
                Some(Err(ParamsError::Pending)) => return Err(Halt::Pending),
                Some(Err(error)) => {
                    decisions.push(decision(Some(binding), Finding::Misconfigured(misconfigured(&error))));
                    continue;
                }
            };
            for params in &params {
                self.decide_with(Some(binding), params, &inputs, &mut decisions)?;
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
        let evaluator = Evaluator::new(&self.body, inputs, params);
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

fn decision(binding: Option<&Binding>, finding: Finding) -> Decision {
    Decision {
        binding: binding.map(|binding| binding.name.clone()),
        actions: binding.map(|binding| binding.actions.clone()).unwrap_or_default(),
        finding,
    }
}

/// The text of a binding whose parameters cannot be had, as Kubernetes words it.
fn misconfigured(error: &ParamsError) -> Str {
    let text = match error {
        ParamsError::NotFound => "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned(),
        error => error.to_string(),
    };
    format!("failed to configure binding: {text}").into()
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

/// The review with a user: expressions always see one.
fn with_user(review: &Review) -> Cow<'_, Review> {
    if review.user.as_ref().is_some_and(|user| !user.username.is_empty()) {
        return Cow::Borrowed(review);
    }
    let user = UserInfo { username: Str::new_static(NO_REQUEST), ..review.user.clone().unwrap_or_default() };
    Cow::Owned(Review { user: Some(user), ..review.clone() })
}

/// Whether a block means the request. The labels of its namespace are asked for only if they decide.
fn applies(
    block: &RequestMatcher,
    review: &Review,
    resource: &RequestResource<'_>,
    world: &World<'_>,
) -> Result<bool, Halt> {
    world.budget().charge_steps(block.steps()).map_err(|error| Halt::Unclear(error.to_string()))?;
    if !block.matches(review, resource) {
        return Ok(false);
    }
    block.namespace_selector().map_or(Ok(true), |selector| in_selected_namespace(selector, review, world))
}

/// Whether the object is in a namespace with the labels. A Namespace counts as its own; other objects without a
/// namespace always are.
fn in_selected_namespace(selector: &Selector, review: &Review, world: &World<'_>) -> Result<bool, Halt> {
    if Gvk::is_namespace(&review.gvk) {
        return Ok(selector.matches(labels(review.subject())));
    }
    if review.namespace.is_empty() {
        return Ok(true);
    }
    if let Some(known) = &review.namespace_labels {
        return Ok(selector.matches(known.as_object()));
    }
    let name = &review.namespace;
    let unclear =
        |why: &str| Err(Halt::Unclear(format!("cannot tell whether the policy matches: namespace `{name}`: {why}")));
    match world.ask(Fetch::NamespaceLabels { name: name.clone() }) {
        Answer::Pending => Err(Halt::Pending),
        Answer::Known(Fact::Found(labels)) => Ok(selector.matches(labels.as_object())),
        Answer::Known(Fact::Missing) => unclear("it does not exist"),
        Answer::Known(Fact::Failed(why) | Fact::Unavailable(why)) => unclear(why),
        Answer::Refused(why) => unclear(&why),
    }
}
