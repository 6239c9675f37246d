//! Evaluating a body over one request and one parameter object.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use ephor_expr::budget::BudgetError;
use ephor_expr::cel::library::{Attributes, Decision, Host, Question, authorizer, context, request_resource};
use ephor_expr::cel::profile::{CONTEXTS, KYVERNO_VARIABLES, VARIABLES};
use ephor_expr::cel::{EvalError, MEMBERS, Run, Scope, Usage, Val};
use ephor_expr::jmespath::Runtime as _;
use ephor_expr::{Map, Str, Value};

use super::body::{Body, CompiledGeneration, Dialect, Expression, PatchKind, Validation};
use super::inputs::Inputs;
use super::patch;
use super::questions;
use super::template::Node;
use super::watch::{self, Watched};
use crate::fetch::{Fact, Fetch};
use crate::gate::{ApiPath, ObjectsPath};
use crate::outcome::MAX_MESSAGE;
use crate::policy::HttpMethod;
use crate::review::user_value;
use crate::scope::Answer;
use crate::trace::Note;

/// What all validations of a policy may cost together.
const VALIDATIONS_COST: u64 = 10_000_000;
/// What all match conditions of a policy or webhook may cost together.
const CONDITIONS_COST: u64 = 2_500_000;

/// Why an evaluation ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Facts are missing; they are noted in the world of the rule.
    Pending,
    /// The work allowed is used up.
    Spent(BudgetError),
}

/// Whether a request meets all match conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// It does.
    Yes,
    /// It does not meet the condition with this name.
    No(Str),
    /// Conditions fail and none is false. The text names the errors.
    Failed(String),
}

/// What one validation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It is true.
    Admit,
    /// It is false.
    Deny {
        /// The text for the user.
        message: Str,
        /// The reason for programs, as the policy names it.
        reason: Option<Str>,
    },
    /// It fails.
    Fail(Str),
}

/// An annotation of the audit event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Its key in the policy.
    pub key: Str,
    /// Its text, or why it has none.
    pub value: Result<Str, Str>,
}

/// What an expression gives to change an object.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchValue {
    /// How it changes an object.
    pub kind: PatchKind,
    /// The configuration, or the list of operations.
    pub value: Value,
}

/// Objects that a policy wants to exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The namespace that the policy names for all of them; `None` if each names its own.
    pub namespace: Option<Str>,
    /// The objects, or lists of some.
    pub objects: Vec<Value>,
}

/// A body over one request and one parameter object. Variables are evaluated when they are read, once.
pub struct Evaluator<'v> {
    body: &'v Body,
    inputs: &'v Inputs<'v>,
    params: &'v Value,
    /// What exceptions allow: `exceptions` in policies of `policies.kyverno.io`.
    exceptions: &'v Value,
    variables: RefCell<Vec<Option<Result<Val<'v>, EvalError>>>>,
    /// What is left for all expressions together.
    left: Cell<u64>,
    /// Match conditions do not see the namespace.
    sees_namespace: Cell<bool>,
    /// How many levels deep the expressions nest that are being evaluated.
    height: Cell<usize>,
    /// What was given to `generator.Apply`.
    applied: RefCell<Vec<Applied>>,
}

impl std::fmt::Debug for Evaluator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluator").field("body", self.body).finish_non_exhaustive()
    }
}

/// Why an expression has no value that counts.
enum Failure {
    Stop(Stop),
    /// The text is what Kubernetes says.
    Error(String),
    /// All expressions together cost too much.
    CostSpent,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::Error(text)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Failure::Stop(stop)
    }
}

impl<'v> Evaluator<'v> {
    /// The body over a request. `params` is null for a body without parameters.
    pub fn new(body: &'v Body, inputs: &'v Inputs<'v>, params: &'v Value) -> Self {
        Self {
            body,
            inputs,
            params,
            exceptions: &Value::Null,
            variables: RefCell::new(vec![None; body.variables.len()]),
            left: Cell::new(0),
            sees_namespace: Cell::new(true),
            height: Cell::new(0),
            applied: RefCell::default(),
        }
    }

    /// The same with what exceptions allow.
    #[must_use]
    pub fn with_exceptions(self, exceptions: &'v Value) -> Self {
        Self { exceptions, ..self }
    }

    /// Whether the request meets the match conditions. One that is false decides, whatever fails beside it.
    pub fn matches(&self) -> Result<Matched, Stop> {
        self.begin(CONDITIONS_COST);
        self.sees_namespace.set(self.body.dialect == Dialect::Kyverno);
        let mut errors = BTreeSet::new();
        let mut unmet = None;
        for condition in &self.body.conditions {
            match self.value(&condition.expression) {
                Ok(Val::Bool(false)) => unmet = unmet.or(Some(&condition.name)),
                Ok(_) => {}
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::CostSpent) => return Ok(Matched::Failed(COST_SPENT.to_owned())),
                Err(Failure::Error(text)) => drop(errors.insert(text)),
            }
        }
        Ok(match (unmet, errors.len()) {
            (Some(name), _) => Matched::No(name.clone()),
            (None, 0) => Matched::Yes,
            (None, 1) => Matched::Failed(errors.into_iter().collect()),
            (None, _) => Matched::Failed(format!("[{}]", errors.into_iter().collect::<Vec<_>>().join(", "))),
        })
    }

    /// What each validation says. If all together cost too much that is the only ruling.
    pub fn validate(&self) -> Result<Vec<Ruling>, Stop> {
        self.begin(VALIDATIONS_COST);
        let validations = &self.body.validations;
        let mut values = Vec::with_capacity(validations.len());
        for validation in validations {
            values.push(match self.value(&validation.expression) {
                Ok(value) => Ok(matches!(value, Val::Bool(true))),
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::CostSpent) => return Ok(vec![Ruling::Fail(Str::new_static(COST_SPENT))]),
                Err(Failure::Error(text)) => Err(text),
            });
        }
        let mut rulings = Vec::with_capacity(values.len());
        for (validation, value) in validations.iter().zip(values) {
            rulings.push(match value {
                Ok(true) => Ruling::Admit,
                Ok(false) => match self.message(validation) {
                    Ok(message) => Ruling::Deny { message, reason: validation.reason.clone() },
                    Err(Failure::Stop(stop)) => return Err(stop),
                    Err(_) => return Ok(vec![Ruling::Fail(Str::new_static(COST_SPENT))]),
                },
                Err(text) => Ruling::Fail(text.into()),
            });
        }
        Ok(rulings)
    }

    /// The first validation that is not true, and its place among them: that decides in `policies.kyverno.io`.
    pub fn first_violation(&self) -> Result<Option<(usize, Ruling)>, Stop> {
        self.begin(VALIDATIONS_COST);
        for (index, validation) in self.body.validations.iter().enumerate() {
            let ruling = match self.value(&validation.expression) {
                Ok(Val::Bool(true)) => continue,
                Ok(_) => match self.violation(index, validation) {
                    Ok(message) => Ruling::Deny { message, reason: validation.reason.clone() },
                    Err(stop) => return Err(stop),
                },
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::CostSpent) => Ruling::Fail(Str::new_static(COST_SPENT)),
                Err(Failure::Error(text)) => Ruling::Fail(text.into()),
            };
            return Ok(Some((index, ruling)));
        }
        Ok(None)
    }

    /// The text of a violation in `policies.kyverno.io`. A message expression that gives nothing leaves the text that
    /// names the validation, whatever the message says.
    fn violation(&self, index: usize, validation: &Validation) -> Result<Str, Stop> {
        let unnamed = || Str::from(format!("CEL expression validation failed at index {index}"));
        if let Some(expression) = &validation.message_expression {
            return match self.value(expression) {
                Ok(value) => Ok(value.as_str().filter(|text| !text.is_empty()).map_or_else(unnamed, Str::new)),
                Err(Failure::Stop(stop)) => Err(stop),
                Err(Failure::CostSpent) => Ok(Str::new_static(COST_SPENT)),
                Err(Failure::Error(text)) => Ok(format!("failed to evaluate message expression: {text}").into()),
            };
        }
        Ok(validation.message.clone().filter(|message| !message.is_empty()).unwrap_or_else(unnamed))
    }

    /// The audit annotations. One whose expression gives null or an empty text does not exist.
    pub fn annotations(&self) -> Result<Vec<Annotation>, Stop> {
        self.begin(VALIDATIONS_COST);
        let mut annotations = Vec::new();
        for annotation in &self.body.annotations {
            let value = match self.value(&annotation.expression) {
                Ok(value) => match (&value, value.as_str().map(str::trim)) {
                    (Val::Null, _) | (_, Some("")) => continue,
                    (_, Some(text)) => Ok(Str::new(text)),
                    (_, None) => Err(format!("a {} is no text", value.type_name()).into()),
                },
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::CostSpent) => Err(Str::new_static(COST_SPENT)),
                Err(Failure::Error(text)) => Err(text.into()),
            };
            annotations.push(Annotation { key: annotation.key.clone(), value });
        }
        Ok(annotations)
    }

    /// The patch with that index, or why it has no value; `None` if there is no such patch.
    pub fn patch(&self, index: usize) -> Result<Option<Result<PatchValue, String>>, Stop> {
        self.begin(VALIDATIONS_COST);
        let Some(patch) = self.body.patches.get(index) else { return Ok(None) };
        let value = match self.value(&patch.expression) {
            Ok(value) => match self.charged(&value).map(|()| patch::misnamed_types(patch.kind, &value))? {
                Some(faults) => Err(format!("type mismatch: {faults}")),
                None => patch::written(patch.kind, &value),
            },
            Err(Failure::Stop(stop)) => return Err(stop),
            Err(Failure::CostSpent) => Err(COST_SPENT.to_owned()),
            Err(Failure::Error(text)) => Err(text),
        };
        Ok(Some(value.map(|value| PatchValue { kind: patch.kind, value })))
    }

    /// The objects to make, in order; or why one of them cannot be told.
    pub fn generate(&self) -> Result<Result<Vec<Applied>, String>, Stop> {
        self.begin(VALIDATIONS_COST);
        for generation in &self.body.generations {
            let done = match generation {
                CompiledGeneration::Expression(expression) => self.value(expression).map(drop),
                CompiledGeneration::Template(documents) => self.fill(documents),
            };
            match done {
                Ok(()) => {}
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::CostSpent) => return Ok(Err(COST_SPENT.to_owned())),
                Err(Failure::Error(text)) => return Ok(Err(text)),
            }
        }
        Ok(Ok(self.applied.take()))
    }

    fn fill(&self, documents: &[Node]) -> Result<(), Failure> {
        let budget = self.inputs.world.budget();
        let mut objects = Vec::with_capacity(documents.len());
        for document in documents {
            let object = document.value(&mut |expression| {
                let value = self.value(expression)?;
                // A template may name a long text many times.
                self.charged(&value)?;
                Ok::<_, Failure>(value)
            })?;
            budget.charge_tree(&object).map_err(Stop::Spent)?;
            objects.push(object);
        }
        self.applied.borrow_mut().push(Applied { namespace: None, objects });
        Ok(())
    }

    /// Takes what a call of `generator.Apply` gives: a namespace, which policies of namespaces do not name, and
    /// objects.
    fn apply(&self, arguments: &[Value]) -> Value {
        let (namespace, objects) = match arguments {
            [_, Value::String(namespace), objects] => (Some(namespace.clone()), objects),
            [.., objects] => (None, objects),
            [] => (None, &Value::Null),
        };
        let objects = objects.as_array().unwrap_or_default().to_vec();
        self.applied.borrow_mut().push(Applied { namespace, objects });
        Value::Bool(true)
    }

    /// Charges reading and copying all of a value.
    fn charged(&self, value: &Val<'_>) -> Result<(), Stop> {
        let budget = self.inputs.world.budget();
        value.charge(budget).and_then(|size| budget.charge_bytes(size)).map_err(Stop::Spent)
    }

    fn begin(&self, limit: u64) {
        // Kyverno bounds each expression, not all together; the budget of the evaluation bounds these.
        self.left.set(if self.body.dialect == Dialect::Kyverno { u64::MAX } else { limit });
        self.sees_namespace.set(true);
        // As in Kubernetes each list of expressions evaluates variables anew: conditions see another namespace.
        self.variables.borrow_mut().fill(None);
    }

    /// The text of a violation: what the message expression gives if it is one line, else the message, else the
    /// expression itself.
    fn message(&self, validation: &Validation) -> Result<Str, Failure> {
        if let Some(expression) = &validation.message_expression {
            match self.value(expression) {
                Ok(value) => {
                    let text = value.as_str().unwrap_or_default().trim();
                    if !text.is_empty() && !text.contains(['\n', '\r']) && text.len() <= MAX_MESSAGE {
                        return Ok(Str::new(text));
                    }
                }
                Err(Failure::Error(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        let message = validation.message.as_deref().unwrap_or_default().trim();
        if message.is_empty() {
            return Ok(format!("failed expression: {}", validation.expression.program.text().trim()).into());
        }
        Ok(Str::new(message))
    }

    /// The value of an expression, within the cost of one and what is left for all.
    fn value(&self, expression: &Expression) -> Result<Val<'v>, Failure> {
        let usage = Usage::new(self.body.cost_limit);
        let result = self.run(expression, &usage);
        match result {
            Err(EvalError::Pending) => Err(Stop::Pending.into()),
            Err(EvalError::Budget(error)) => Err(Stop::Spent(error).into()),
            // Only a variable can have gone on when all together cost too much.
            _ if !self.spend(usage.spent()) => Err(Failure::CostSpent),
            Ok(value) => Ok(value),
            Err(error) if self.body.dialect == Dialect::Kyverno => Err(Failure::Error(error.to_string())),
            Err(error) => {
                let text = expression.program.text();
                Err(Failure::Error(format!("expression '{text}' resulted in error: {error}")))
            }
        }
    }

    fn run(&self, expression: &Expression, usage: &Usage) -> Result<Val<'v>, EvalError> {
        let run = Run { host: self, budget: self.inputs.world.budget(), usage };
        // A variable is evaluated where it is read, so that each level of all of them takes stack.
        let above = self.height.get();
        let height = above + expression.program.height() + 1;
        if above > 0 && height > MAX_HEIGHT {
            return Err(EvalError::Budget(BudgetError::Depth));
        }
        self.height.set(height);
        let value = if self.inputs.world.is_traced() {
            self.noted(expression, &run)
        } else {
            expression.program.evaluate(self, &run)
        };
        self.height.set(above);
        value
    }

    /// The value of an expression, which is noted with those of its parts.
    fn noted(&self, expression: &Expression, run: &Run<'_>) -> Result<Val<'v>, EvalError> {
        let (program, watched) = (&expression.program, Watched::new());
        let result = program.evaluate_watched(self, run, &|place, value| watched.see(place, value));
        self.inputs.world.note(|| Note::Evaluated {
            path: expression.path.clone(),
            text: Str::new(program.text()),
            value: watch::whole(&result),
            parts: watched.into_parts(program.text()),
        });
        result
    }

    /// Whether `cost` is left for all expressions together.
    fn spend(&self, cost: u64) -> bool {
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// How many levels expressions may nest together with the variables that they read. One expression alone has at most
/// half as many.
const MAX_HEIGHT: usize = 500;

/// What Kubernetes says when all expressions together cost too much.
const COST_SPENT: &str = "validation failed due to running out of cost budget, no further validation rules will be run";

impl<'v> Scope<'v> for Evaluator<'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        let inputs = self.inputs;
        Some(match name {
            "object" => Ok(Val::from_json(&inputs.review.object)),
            "oldObject" | "request" if self.body.lacks_request => return None,
            "oldObject" => Ok(Val::from_json(&inputs.review.old_object)),
            "request" if self.body.dialect == Dialect::Kyverno => Ok(Val::from_json(inputs.request_with_objects())),
            "request" => Ok(Val::from_json(inputs.request())),
            "exceptions" if self.body.dialect == Dialect::Kyverno => Ok(Val::from_json(self.exceptions)),
            "params" => Ok(Val::from_json(self.params)),
            "namespaceObject" if self.sees_namespace.get() => inputs.namespace(),
            "namespaceObject" => Ok(Val::Null),
            "authorizer" => Ok(authorizer()),
            "authorizer.requestResource" => Ok(request_resource(inputs.request_resource())),
            "generator" => Ok(context("generator.Context")),
            MEMBERS if self.body.dialect == Dialect::Kyverno => Ok(context(KYVERNO_VARIABLES)),
            MEMBERS => Ok(context(VARIABLES)),
            _ => {
                let (_, kind) = CONTEXTS.iter().find(|(context, _)| *context == name)?;
                Ok(context(kind))
            }
        })
    }

    fn member(&self, _: &str, field: &str) -> Option<Result<Val<'v>, EvalError>> {
        // Of two with one name the later counts.
        let index = self.body.variables.iter().rposition(|variable| variable.name == field)?;
        if let Some(Some(known)) = self.variables.borrow().get(index) {
            return Some(known.clone());
        }
        let expression = &self.body.variables.get(index)?.expression;
        let usage = Usage::new(self.body.cost_limit);
        let result = self.run(expression, &usage);
        self.spend(usage.spent());
        let result = match result {
            Err(error @ (EvalError::Pending | EvalError::Budget(_))) => return Some(Err(error)),
            Err(error) if self.body.dialect == Dialect::Kyverno => Err(error),
            Err(error) => Err(EvalError::Other(format!("composited variable \"{field}\" fails to evaluate: {error}"))),
            // What reads it walks no deeper, and one variable may hold another many times.
            Ok(value) => match value.charge_built(self.inputs.world.budget()) {
                Ok(()) => Ok(value),
                Err(error) => return Some(Err(EvalError::Budget(error))),
            },
        };
        if let Some(place) = self.variables.borrow_mut().get_mut(index) {
            *place = Some(result.clone());
        }
        Some(result)
    }
}

impl Host for Evaluator<'_> {
    /// Asks the API server for a review of access: of the whole cluster, or for a namespaced policy of its namespace.
    fn authorize(&self, attributes: &Attributes) -> Result<Decision, EvalError> {
        let world = self.inputs.world;
        let path = ObjectsPath {
            group: Str::new_static("authorization.k8s.io"),
            version: Str::new_static("v1"),
            namespace: world.namespace().map(Str::new),
            resource: Str::new_static(if world.namespace().is_some() {
                "localsubjectaccessreviews"
            } else {
                "subjectaccessreviews"
            }),
            name: None,
            below: Vec::new(),
        };
        let Some(path) = ApiPath::of_object(path) else {
            return Err(EvalError::Other("the policy has no namespace that can be asked about".to_owned()));
        };
        let body = self.access_review(attributes)?.to_json().into();
        let fetch = Fetch::Api { method: HttpMethod::Post, path, body: Some(body) };
        let decided = match world.ask(fetch) {
            Answer::Pending => return Err(EvalError::Pending),
            Answer::Known(Fact::Found(decided)) => decided,
            // As in Kubernetes a check that fails is a decision: not allowed, with an error.
            Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason)) => {
                return Ok(Decision { error: Some(reason.clone()), ..Decision::default() });
            }
            Answer::Known(Fact::Missing) => {
                return Err(EvalError::Other("the API server has no access reviews".to_owned()));
            }
            Answer::Known(Fact::Unavailable(reason)) => return Err(EvalError::Other(reason.clone())),
            Answer::Refused(reason) => return Err(EvalError::Other(reason)),
        };
        let text = |key| decided.str_at(&["status", key]).unwrap_or_default().to_owned();
        Ok(Decision {
            allowed: decided.at(&["status", "allowed"]).and_then(Value::as_bool) == Some(true),
            reason: text("reason"),
            error: Some(text("evaluationError")).filter(|error| !error.is_empty()),
        })
    }

    fn ask(&self, question: &Question) -> Result<Value, EvalError> {
        if question.target == "generator.Context" && !self.body.generations.is_empty() {
            return Ok(self.apply(&question.arguments));
        }
        questions::answer(self.inputs.world, question)
    }
}

impl Evaluator<'_> {
    /// The review of access that answers a check. The one of a namespaced policy is about its own namespace alone.
    fn access_review(&self, attributes: &Attributes) -> Result<Value, EvalError> {
        let own = self.inputs.world.namespace();
        if let Some(own) = own.filter(|own| !attributes.path.is_empty() || attributes.namespace != **own) {
            let text = format!("a Policy of namespace `{own}` may only check access to resources of that namespace");
            return Err(EvalError::Other(text));
        }
        let mut spec = match &attributes.service_account {
            Some(account) => service_account(account),
            None => self.inputs.review.user.as_ref().map(user_value).unwrap_or_default(),
        };
        // The one field that the review of access calls otherwise than the request.
        if let Some(name) = spec.get("username").cloned() {
            spec.retain(|key, _| key != "username");
            spec.insert("user", name);
        }
        let texts = |pairs: &[(&str, &str)]| {
            let filled = pairs.iter().filter(|(_, text)| !text.is_empty());
            Value::object(filled.map(|(key, text)| (Str::new(key), Value::from(*text))).collect())
        };
        let (key, what) = if attributes.path.is_empty() {
            let mut resource = texts(&[
                ("verb", &attributes.verb),
                ("group", &attributes.group),
                ("version", &attributes.version),
                ("resource", &attributes.resource),
                ("subresource", &attributes.subresource),
                ("namespace", &attributes.namespace),
                ("name", &attributes.name),
            ]);
            // The API server parses them, and leaves out one that it cannot parse, as for checks of its own.
            let selectors =
                [("fieldSelector", &attributes.field_selector), ("labelSelector", &attributes.label_selector)];
            for (key, selector) in selectors {
                if let (Some(raw), Some(map)) =
                    (selector.as_deref().filter(|raw| !raw.is_empty()), resource.as_object_mut())
                {
                    map.insert(key, Value::from([("rawSelector", Value::from(raw))]));
                }
            }
            ("resourceAttributes", resource)
        } else {
            ("nonResourceAttributes", texts(&[("verb", &attributes.verb), ("path", &attributes.path)]))
        };
        spec.insert(key, what);
        let kind = if own.is_some() { "LocalSubjectAccessReview" } else { "SubjectAccessReview" };
        let mut review = Value::from([
            ("apiVersion", Value::from("authorization.k8s.io/v1")),
            ("kind", Value::from(kind)),
            ("spec", Value::object(spec)),
        ]);
        if let (Some(own), Some(map)) = (own, review.as_object_mut()) {
            map.insert("metadata", Value::from([("namespace", Value::from(own))]));
        }
        Ok(review)
    }
}

/// A service account as a user.
fn service_account((namespace, name): &(String, String)) -> Map {
    let all = Str::new_static("system:serviceaccounts");
    let own = format!("{all}:{namespace}").into();
    let mut user = Map::new();
    user.insert("username", format!("system:serviceaccount:{namespace}:{name}"));
    user.insert("groups", vec![all, own, Str::new_static("system:authenticated")]);
    user
}
