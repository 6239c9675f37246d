//! Environments and variables of vectors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::library::{Attributes, Decision, authorizer, request_resource};
use ephor_expr::cel::profile::{Kubernetes, VARIABLES};
use ephor_expr::cel::{Environment, EvalError, Host, Key, MEMBERS, ObjectType, Program, Run, Scope, Type, Usage, Val};

use super::compare::untag;

/// Runs expressions in the environments of vectors.
pub(crate) struct Runner<'v> {
    bindings: &'v Value,
    environments: BTreeMap<String, Option<Environment>>,
}

/// What became of an expression.
pub(crate) struct Outcome<'v> {
    pub(crate) program: Result<Program, String>,
    pub(crate) value: Option<Result<Val<'v>, EvalError>>,
    pub(crate) cost: u64,
}

impl<'v> Runner<'v> {
    pub(crate) fn new(bindings: &'v Value) -> Self {
        Self { bindings, environments: BTreeMap::new() }
    }

    /// None if the place where the expression stands is not supported.
    pub(crate) fn run(&mut self, vector: &Value) -> Option<Outcome<'v>> {
        let env = vector.str_at(&["env"])?;
        let profile = vector.str_at(&["profile"])?;
        let key = format!("{env}/{profile}");
        let environment = self.environments.entry(key).or_insert_with(|| environment(env, profile)).as_mut()?;
        let mut environment = environment.clone();
        let source = vector.str_at(&["bindings", "use"]).unwrap_or("none");
        let bound_env = env.strip_suffix("-head").unwrap_or(env);
        let bound = self.bindings.at(&["bound", bound_env, source])?;
        let mut declared = BTreeMap::new();
        if let Some(decls) = vector.at(&["bindings", "decls"]).and_then(Value::as_object) {
            for (name, kind) in decls.iter() {
                environment.declare(name.clone(), Type::parse(kind.as_str()?)?);
            }
        }
        if let Some(values) = vector.at(&["bindings", "values"]).and_then(Value::as_object) {
            for (name, value) in values.iter() {
                declared.insert(name.to_string(), untag(value));
            }
        }
        let mut fields = Vec::new();
        let mut members = BTreeMap::new();
        for variable in vector.at(&["bindings", "variables"]).and_then(Value::as_array).unwrap_or_default() {
            let (name, expression) = (variable.str_at(&["name"])?, variable.str_at(&["expression"])?);
            if let Ok(program) = Program::compile(expression, &environment) {
                fields.push((name.into(), program.kind().clone()));
                environment.declare_object(ObjectType {
                    name: VARIABLES.into(),
                    fields: fields.clone(),
                    constructible: false,
                });
                members.insert(name.to_owned(), program);
            }
        }
        let expression = vector.str_at(&["expr"])?;
        let program = Program::compile(expression, &environment).map_err(|error| match &error {
            ephor_expr::cel::CompileError::Constant(text) if env == "k8s" => {
                format!("program instantiation failed: {text}")
            }
            ephor_expr::cel::CompileError::Constant(text) => format!("PROGRAM: {text}"),
            ephor_expr::cel::CompileError::Issues { rendered, .. } => rendered.clone(),
        });
        let usage = Usage::new(environment.options().cost_limit);
        let budget = Budget::default();
        let value = program.as_ref().ok().map(|program| {
            let bindings =
                Bindings { bound, declared, members, budget: &budget, usage: &usage, known: RefCell::default() };
            program.evaluate(&bindings, &Run { host: &Mock { bound }, budget: &budget, usage: &usage })
        });
        Some(Outcome { program, value, cost: usage.spent() })
    }
}

fn environment(env: &str, profile: &str) -> Option<Environment> {
    Some(match (env, profile) {
        ("k8s", "vap") => Kubernetes::Policy.environment(),
        ("k8s", "vap-noparams") => Kubernetes::PolicyWithoutParams.environment(),
        ("k8s", "vap-msg") => Kubernetes::Message.environment(),
        ("k8s", "webhook") => Kubernetes::Webhook.environment(),
        ("k8s", "map") => Kubernetes::Mutation.environment(),
        _ => return None,
    })
}

struct Bindings<'c, 'v> {
    bound: &'v Value,
    declared: BTreeMap<String, Val<'static>>,
    members: BTreeMap<String, Program>,
    budget: &'c Budget,
    usage: &'c Usage,
    known: RefCell<BTreeMap<String, Result<Val<'v>, EvalError>>>,
}

impl<'v> Scope<'v> for Bindings<'_, 'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        if let Some(value) = self.declared.get(name) {
            return Some(Ok(value.clone()));
        }
        if name == MEMBERS {
            return Some(Ok(Val::opaque(Variables)));
        }
        match name {
            "authorizer" => return Some(Ok(authorizer())),
            "authorizer.requestResource" => {
                let text = |text: &str| text.to_owned();
                return Some(Ok(request_resource(Attributes {
                    group: text("apps"),
                    version: text("*"),
                    resource: text("deployments"),
                    subresource: text("scale"),
                    namespace: text("team-a"),
                    name: text("web"),
                    ..Attributes::default()
                })));
            }
            _ => {}
        }
        self.bound.get(name).map(|value| Ok(Val::from_json(value)))
    }

    fn member(&self, _: &str, field: &str) -> Option<Result<Val<'v>, EvalError>> {
        if let Some(known) = self.known.borrow().get(field) {
            return Some(known.clone());
        }
        let program = self.members.get(field)?;
        let run = Run { host: &Mock { bound: self.bound }, budget: self.budget, usage: self.usage };
        let value = program.evaluate(self, &run).map_err(|error| match error {
            EvalError::CostLimit | EvalError::Pending | EvalError::Budget(_) => error,
            error => EvalError::Other(format!("composited variable \"{field}\" fails to evaluate: {error}")),
        });
        self.known.borrow_mut().insert(field.to_owned(), value.clone());
        Some(value)
    }
}

/// All variables as one value, of which nothing can be read.
#[derive(Debug)]
struct Variables;

impl ephor_expr::cel::Opaque for Variables {
    fn type_name(&self) -> &str {
        VARIABLES
    }

    fn equals(&self, _: &dyn ephor_expr::cel::Opaque) -> bool {
        false
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn text(&self) -> String {
        String::new()
    }
}

/// Answers as the mocks of the vectors do.
struct Mock<'v> {
    bound: &'v Value,
}

impl Mock<'_> {
    /// All that was asked, in a line.
    fn describe(&self, asked: &Attributes) -> String {
        let (user, groups) = if let Some((namespace, name)) = &asked.service_account {
            let groups = format!("system:serviceaccounts system:serviceaccounts:{namespace}");
            (format!("system:serviceaccount:{namespace}:{name}"), groups)
        } else {
            let user = |field: &str| self.bound.at(&["request", "userInfo", field]);
            let groups = user("groups").and_then(Value::as_array).unwrap_or_default();
            let groups: Vec<&str> = groups.iter().filter_map(Value::as_str).collect();
            (user("username").and_then(Value::as_str).unwrap_or_default().to_owned(), groups.join(" "))
        };
        format!(
            "user={user} groups=[{groups}] path={} group={} version={} resource={} sub={} ns={} name={}",
            asked.path, asked.group, asked.version, asked.resource, asked.subresource, asked.namespace, asked.name
        )
    }
}

impl Host for Mock<'_> {
    fn authorize(&self, asked: &Attributes) -> Result<Decision, EvalError> {
        let decide = |allowed, reason: &str| Decision { allowed, reason: reason.into(), error: None };
        Ok(match asked.verb.as_str() {
            "get" => decide(true, "allowed by mock"),
            "delete" => decide(false, "denied by mock"),
            "error" => Decision { error: Some("mock authorizer failed".into()), ..decide(false, "") },
            "whoami" => decide(false, &self.describe(asked)),
            _ => decide(false, ""),
        })
    }
}

/// A map with text keys.
pub(crate) fn map(entries: BTreeMap<Key, Val<'static>>) -> Val<'static> {
    Val::Map(ephor_expr::cel::Dict::Built(Arc::new(entries)))
}
