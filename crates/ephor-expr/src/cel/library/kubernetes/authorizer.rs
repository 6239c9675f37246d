//! Authorization checks. A check asks the host; what builds one only collects attributes.

use std::any::Any;

use super::super::super::error::EvalError;
use super::super::super::value::{Opaque, Val};
use super::super::{Call, Overload, cost, member};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const PATH: &str = "kubernetes.authorization.PathCheck";
const GROUP: &str = "kubernetes.authorization.GroupCheck";
const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";
const DECISION: &str = "kubernetes.authorization.Decision";

pub(in super::super) const OVERLOADS: &[Overload] = &[
    member("path", "authorizer_path", "kubernetes.authorization.Authorizer, string", PATH, path),
    member("group", "authorizer_group", "kubernetes.authorization.Authorizer, string", GROUP, |c| {
        next(c, Kind::Group, |a, text| {
            a.group = text;
            a.version = "*".into();
        })
    }),
    member(
        "serviceAccount",
        "authorizer_serviceaccount",
        "kubernetes.authorization.Authorizer, string, string",
        AUTHORIZER,
        service_account,
    ),
    member("resource", "groupcheck_resource", "kubernetes.authorization.GroupCheck, string", RESOURCE, |c| {
        if c.str(1).is_empty() {
            return Err(EvalError::other("resource must not be empty"));
        }
        next(c, Kind::Resource, |a, text| a.resource = text)
    }),
    resource("subresource", "resourcecheck_subresource", |c| next(c, Kind::Resource, |a, text| a.subresource = text)),
    resource("namespace", "resourcecheck_namespace", |c| next(c, Kind::Resource, |a, text| a.namespace = text)),
    resource("name", "resourcecheck_name", |c| next(c, Kind::Resource, |a, text| a.name = text)),
    resource("fieldSelector", "authorizer_fieldselector", |c| {
        next(c, Kind::Resource, |a, text| a.field_selector = Some(text))
    })
    .cost(selector_cost),
    resource("labelSelector", "authorizer_labelselector", |c| {
        next(c, Kind::Resource, |a, text| a.label_selector = Some(text))
    })
    .cost(selector_cost),
    member("check", "pathcheck_check", "kubernetes.authorization.PathCheck, string", DECISION, check)
        .cost_by_name(cost::authorization_check),
    member("check", "resourcecheck_check", "kubernetes.authorization.ResourceCheck, string", DECISION, check)
        .cost_by_name(cost::authorization_check),
    member("allowed", "decision_allowed", DECISION, "bool", |c| decision(c, |d| Val::Bool(d.allowed))),
    member("reason", "decision_reason", DECISION, "string", |c| decision(c, |d| Val::text(d.reason.as_str()))),
    member("errored", "decision_errored", DECISION, "bool", |c| decision(c, |d| Val::Bool(d.error.is_some()))),
    member("error", "decision_error", DECISION, "string", |c| {
        decision(c, |d| Val::text(d.error.as_deref().unwrap_or_default()))
    }),
];

const fn resource(name: &'static str, id: &'static str, code: super::super::Code) -> Overload {
    member(name, id, "kubernetes.authorization.ResourceCheck, string", RESOURCE, code)
}

/// Reading a selector into requirements.
fn selector_cost(args: &[Val<'_>], _: Option<&Val<'_>>) -> u64 {
    let size = args.get(1).map_or(1, Val::size);
    size.div_ceil(2) * 50 + 10 + size.div_ceil(10)
}

/// Who may do what, as an expression asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Namespace and name of the service account asked about; none = the user of the request.
    pub service_account: Option<(String, String)>,
    /// The verb.
    pub verb: String,
    /// The path, for what is no resource.
    pub path: String,
    /// The group of the resource.
    pub group: String,
    /// The version of the resource; `*` = any.
    pub version: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// A selector of fields, as written.
    pub field_selector: Option<String>,
    /// A selector of labels, as written.
    pub label_selector: Option<String>,
}

/// The answer of an authorizer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong while deciding.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Authorizer,
    Path,
    Group,
    Resource,
}

#[derive(Debug)]
struct Builder {
    kind: Kind,
    attributes: Attributes,
}

impl Opaque for Builder {
    fn type_name(&self) -> &str {
        match self.kind {
            Kind::Authorizer => AUTHORIZER,
            Kind::Path => PATH,
            Kind::Group => GROUP,
            Kind::Resource => RESOURCE,
        }
    }

    fn is_comparable(&self) -> bool {
        false
    }

    fn equals(&self, _: &dyn Opaque) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        "no such overload".into()
    }
}

impl Opaque for Decision {
    fn type_name(&self) -> &str {
        DECISION
    }

    fn equals(&self, _: &dyn Opaque) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        "no such overload".into()
    }
}

/// The value of the variable `authorizer`.
pub fn authorizer() -> Val<'static> {
    Val::opaque(Builder { kind: Kind::Authorizer, attributes: Attributes::default() })
}

/// The value of `authorizer.requestResource`: a check of what the request is about.
pub fn request_resource(attributes: Attributes) -> Val<'static> {
    Val::opaque(Builder { kind: Kind::Resource, attributes })
}

fn next<'v>(call: &Call<'_, 'v>, kind: Kind, set: fn(&mut Attributes, String)) -> Result<'v> {
    let value = call.arg(0);
    let Some(builder) = value.downcast::<Builder>() else { return Err(call.no_such_overload()) };
    let mut attributes = builder.attributes.clone();
    call.charge(call.str(1).len())?;
    set(&mut attributes, call.str(1).to_owned());
    Ok(Val::opaque(Builder { kind, attributes }))
}

fn path<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    if call.str(1).is_empty() {
        return Err(EvalError::other("path must not be empty"));
    }
    next(call, Kind::Path, |attributes, text| attributes.path = text)
}

fn service_account<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    if !is_name(call.str(1), 63, false) {
        return Err(EvalError::other("Invalid service account namespace"));
    }
    if !is_name(call.str(2), 253, true) {
        return Err(EvalError::other("Invalid service account name"));
    }
    let value = call.arg(0);
    let Some(builder) = value.downcast::<Builder>() else { return Err(call.no_such_overload()) };
    let mut attributes = builder.attributes.clone();
    attributes.service_account = Some((call.str(1).to_owned(), call.str(2).to_owned()));
    Ok(Val::opaque(Builder { kind: Kind::Authorizer, attributes }))
}

/// Whether `text` is a name of Kubernetes.
fn is_name(text: &str, longest: usize, dots: bool) -> bool {
    let label = |part: &str| {
        let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        part.bytes().all(|b| inside(b) || b == b'-')
            && part.bytes().next().is_some_and(inside)
            && part.bytes().last().is_some_and(inside)
    };
    text.len() <= longest && if dots { text.split('.').all(label) } else { label(text) }
}

fn check<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let value = call.arg(0);
    let Some(builder) = value.downcast::<Builder>() else { return Err(call.no_such_overload()) };
    let attributes = Attributes { verb: call.str(1).to_owned(), ..builder.attributes.clone() };
    Ok(Val::opaque(call.host.authorize(&attributes)?))
}

fn decision<'v>(call: &Call<'_, 'v>, part: fn(&Decision) -> Val<'v>) -> Result<'v> {
    let value = call.arg(0);
    value.downcast::<Decision>().map(part).ok_or_else(|| call.no_such_overload())
}
