//! What Kubernetes' admission policies have in common: which requests they are about, by which binding and with which
//! parameters.

use std::borrow::Cow;

use ephor_expr::jmespath::Runtime as _;
use ephor_expr::{Str, Value};

use crate::cel::{Body, Inputs, Params, ParamsError, Stop, plural};
use crate::fetch::{Fact, Fetch};
use crate::matching::{RequestMatcher, RequestResource, Selector, UserInfo};
use crate::policy::ValidationAction;
use crate::review::Review;
use crate::scope::{Answer, World};

/// The user of reviews that no request has brought, as upstream calls it.
const NO_REQUEST: &str = "system:kyverno:background-scan";

/// The expressions of a policy, and which requests they are about.
#[derive(Debug)]
pub struct AdmissionSelection {
    /// `matchConstraints`.
    pub(crate) constraints: RequestMatcher,
    pub(crate) body: Body,
    /// In the order of their names. A policy without bindings applies to what it matches, so that it can be tested
    /// alone. An API server does not apply it.
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

/// One evaluation of a policy.
pub(crate) struct Occasion<'p> {
    /// The binding; `None` for a policy without bindings.
    pub(crate) binding: Option<&'p Binding>,
    /// The parameter object, null for none, or why it cannot be had.
    pub(crate) params: Result<Value, Str>,
}

/// Why a policy says nothing.
pub(crate) enum Halt {
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

impl AdmissionSelection {
    /// The evaluations that a review asks for; none if the policy does not apply.
    pub(crate) fn occasions(&self, review: &Review, world: &World<'_>) -> Result<Vec<Occasion<'_>>, Halt> {
        let inputs = Inputs::new(review, world);
        let request = inputs.request_resource();
        let resource = RequestResource {
            group: &request.group,
            version: &request.version,
            resource: &request.resource,
            subresource: &request.subresource,
        };
        if !applies(&self.constraints, review, &resource, world)? {
            return Ok(Vec::new());
        }
        if self.bindings.is_empty() {
            return Ok(vec![Occasion { binding: None, params: Ok(Value::Null) }]);
        }
        let mut occasions = Vec::new();
        for binding in &self.bindings {
            let bound = binding.matcher.as_ref().map_or(Ok(true), |block| applies(block, review, &resource, world))?;
            if !bound {
                continue;
            }
            let mut add = |params| occasions.push(Occasion { binding: Some(binding), params });
            match binding.params.as_ref().map(|params| params.find(&review.namespace, world)) {
                None => add(Ok(Value::Null)),
                Some(Ok(found)) => found.into_iter().for_each(|params| add(Ok(params))),
                Some(Err(ParamsError::Pending)) => return Err(Halt::Pending),
                Some(Err(error)) => add(Err(misconfigured(&error))),
            }
        }
        Ok(occasions)
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

/// The review with a user: expressions always see one.
pub(crate) fn with_user(review: &Review) -> Cow<'_, Review> {
    if review.user.as_ref().is_some_and(|user| !user.username.is_empty()) {
        return Cow::Borrowed(review);
    }
    let user = UserInfo { username: Str::new_static(NO_REQUEST), ..review.user.clone().unwrap_or_default() };
    Cow::Owned(Review { user: Some(user), ..review.clone() })
}

/// Whether `constraints` mean the request of a review.
pub(crate) fn selected(constraints: &RequestMatcher, review: &Review, world: &World<'_>) -> Result<bool, Halt> {
    let given = review.attributes.get("resource").filter(|resource| !resource.is_null());
    let text = |key| given.and_then(|resource| resource.str_at(&[key])).unwrap_or_default();
    let (group, version) = match given {
        Some(_) => (text("group"), text("version")),
        None => (review.gvk.group.as_str(), review.gvk.version.as_str()),
    };
    let named = resource_of(review);
    let resource = RequestResource { group, version, resource: &named, subresource: &review.subresource };
    applies(constraints, review, &resource, world)
}

/// The resource that a review is about, by its plural name: a review that no request has brought has the usual one of
/// its kind.
pub(crate) fn resource_of(review: &Review) -> Cow<'_, str> {
    match review.attributes.get("resource").filter(|resource| !resource.is_null()) {
        Some(resource) => Cow::Borrowed(resource.str_at(&["resource"]).unwrap_or_default()),
        None => Cow::Owned(plural(&review.gvk.kind).to_string()),
    }
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
    match (block.selects_namespace(review), block.namespace_selector()) {
        (Some(selected), _) => Ok(selected),
        (None, None) => Ok(true),
        (None, Some(selector)) => in_selected_namespace(selector, review, world),
    }
}

/// Whether the object is in a namespace with the labels, which have to be asked for.
fn in_selected_namespace(selector: &Selector, review: &Review, world: &World<'_>) -> Result<bool, Halt> {
    let name = &review.namespace;
    let unclear =
        |why: &str| Err(Halt::Unclear(format!("cannot tell whether the policy matches: namespace `{name}`: {why}")));
    match world.ask(Fetch::NamespaceLabels { name: name.clone() }) {
        Answer::Pending => Err(Halt::Pending),
        Answer::Known(Fact::Found(labels)) => Ok(selector.matches(labels.as_object())),
        Answer::Known(Fact::Missing) => unclear("it does not exist"),
        Answer::Known(Fact::NotFound(why) | Fact::Failed(why) | Fact::Unavailable(why)) => unclear(why),
        Answer::Refused(why) => unclear(&why),
    }
}
