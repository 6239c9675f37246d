//! Environments and variables of vectors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::library::{Attributes, authorizer, context, request_resource};
use ephor_expr::cel::profile::{
    CONTEXTS, KYVERNO_VARIABLES, Kubernetes, Kyverno, VARIABLES, Version, definition_rule, kyverno_image_reference,
};
use ephor_expr::cel::schema::typed;
use ephor_expr::cel::{
    Environment, EvalError, Key, MEMBERS, Object, ObjectType, Program, Run, Scope, Sizes, Type, Usage, Val,
};

use super::compare::untag;
use super::mock::Mock;

/// Runs expressions in the environments of vectors.
pub(crate) struct Runner<'v> {
    bindings: &'v Value,
    environments: BTreeMap<String, Option<Environment>>,
}

/// What became of an expression.
pub(crate) struct Outcome<'v> {
    pub(crate) program: Result<Program, String>,
    /// What it costs at most, by the schema of its variables.
    pub(crate) estimate: u64,
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
        let environment =
            self.environments.entry(key).or_insert_with(|| environment(self.bindings, env, profile)).as_mut()?;
        let mut environment = environment.clone();
        let source = vector.str_at(&["bindings", "use"]).unwrap_or("none");
        let bound_env = if profile == "k8s-1.36" { "k8s" } else { env.strip_suffix("-head").unwrap_or(env) };
        let bound = self.bindings.at(&["bound", bound_env, source])?;
        let cluster = self.bindings.at(&["shared", "mock-cluster"])?;
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
        let mut fields: BTreeMap<ephor_expr::Str, Type> = BTreeMap::new();
        let mut members = BTreeMap::new();
        for variable in vector.at(&["bindings", "variables"]).and_then(Value::as_array).unwrap_or_default() {
            let (name, expression) = (variable.str_at(&["name"])?, variable.str_at(&["expression"])?);
            let compiled = Program::compile(expression, &environment);
            // Members of types that have no counterpart in declarations are dyn, as are those that do not compile.
            let kind = match compiled.as_ref().map(Program::kind) {
                Ok(kind)
                    if env != "k8s"
                        || !matches!(kind, Type::Optional(_) | Type::TypeOf(_) | Type::Opaque(_) | Type::Object(_)) =>
                {
                    kind.clone()
                }
                _ => Type::Dyn,
            };
            if compiled.is_ok() || env == "k8s" {
                let program = compiled.map_err(|error| error.to_string());
                fields.insert(name.into(), kind);
                environment.declare_object(ObjectType {
                    name: if env == "k8s" { VARIABLES } else { KYVERNO_VARIABLES }.into(),
                    fields: fields.clone(),
                    constructible: false,
                });
                members.insert(name.to_owned(), program);
            }
        }
        let schema = profile.strip_prefix("crd:").and_then(|name| self.bindings.at(&["schemas", name]));
        if let Some(schema) = schema {
            for name in ["self", "oldSelf"] {
                if let Some(value) = bound.get(name) {
                    declared.insert(name.to_owned(), typed(value, schema));
                }
            }
        }
        let expression = vector.str_at(&["expr"])?;
        let sizes = schema.and_then(|schema| Sizes::of_schema(schema, true)).unwrap_or_default();
        let compiled = Program::compile_with_estimate(expression, &environment, &sizes);
        let compiled = compiled.map_err(|error| match &error {
            ephor_expr::cel::CompileError::Constant(text) if env == "k8s" || profile == "k8s-1.36" => {
                format!("program instantiation failed: {text}")
            }
            ephor_expr::cel::CompileError::Constant(text) => format!("PROGRAM: {text}"),
            ephor_expr::cel::CompileError::Issues { rendered, .. } => rendered.clone(),
        });
        let (program, estimate) = match compiled {
            Ok((program, estimate)) => (Ok(program), estimate),
            Err(error) => (Err(error), 0),
        };
        let usage = Usage::new(environment.options().cost_limit);
        let budget = Budget::default();
        let value = program.as_ref().ok().map(|program| {
            let bindings = Bindings {
                limit: environment.options().cost_limit,
                composited: env == "k8s",
                bound,
                cluster,
                declared,
                members,
                budget: &budget,
                usage: &usage,
                known: RefCell::default(),
            };
            program.evaluate(&bindings, &Run { host: &Mock { bound, cluster }, budget: &budget, usage: &usage })
        });
        Some(Outcome { program, estimate, value, cost: usage.spent() })
    }
}

fn environment(bindings: &Value, env: &str, profile: &str) -> Option<Environment> {
    if let Some(name) = profile.strip_prefix("crd:") {
        return Some(definition_rule(bindings.at(&["schemas", name])?));
    }
    Some(match (env, profile) {
        ("k8s", "vap") => Kubernetes::Policy.environment(),
        ("k8s", "vap-noparams") => Kubernetes::PolicyWithoutParams.environment(),
        ("k8s", "vap-msg") => Kubernetes::Message.environment(),
        ("k8s", "webhook") => Kubernetes::Webhook.environment(),
        ("k8s", "map") => Kubernetes::Mutation.environment(),
        ("kyverno-head", "k8s-1.36") => Kubernetes::Policy136.environment(),
        ("kyverno-head", "vpol") => Kyverno::Validating.language_of(Version::Head),
        ("kyverno-head", "gpol") => Kyverno::Generating.language_of(Version::Head),
        ("kyverno", "matchimage") => kyverno_image_reference(),
        ("kyverno", "vpol") => Kyverno::Validating.environment_of(Version::V1_18),
        ("kyverno", "nvpol") => Kyverno::NamespacedValidating.environment_of(Version::V1_18),
        ("kyverno", "mpol") => Kyverno::Mutating.environment_of(Version::V1_18),
        ("kyverno", "mpol-target") => Kyverno::MutationTarget.environment_of(Version::V1_18),
        ("kyverno", "gpol") => Kyverno::Generating.environment_of(Version::V1_18),
        ("kyverno", "dpol") => Kyverno::Deleting.environment_of(Version::V1_18),
        ("kyverno", "ivpol") => Kyverno::ImageValidating.environment_of(Version::V1_18),
        _ => return None,
    })
}

struct Bindings<'c, 'v> {
    limit: Option<u64>,
    /// Whether errors of variables say so.
    composited: bool,
    bound: &'v Value,
    cluster: &'v Value,
    declared: BTreeMap<String, Val<'static>>,
    members: BTreeMap<String, Result<Program, String>>,
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
            return Some(Ok(Val::opaque(Variables(if self.composited { VARIABLES } else { KYVERNO_VARIABLES }))));
        }
        if let Some((_, kind)) = CONTEXTS.iter().find(|(variable, _)| *variable == name) {
            return Some(Ok(context(kind)));
        }
        match name {
            "ref" => return Some(Ok(Val::text("ghcr.io/mock/app:v1"))),
            "images" | "attestors" | "attestations" => {
                let json = match name {
                    "images" => r#"{"containers":["nginx:1.25","ghcr.io/mock/app:v1"],"initContainers":[]}"#,
                    "attestors" => r#"{"cosign":{"name":"cosign"}}"#,
                    _ => r#"{"sbom":"sbom"}"#,
                };
                return Value::from_json(json).ok().map(|value| Ok(Val::owned_json(&value)));
            }
            "generator" => return Some(Ok(context("generator.Context"))),
            "exceptions" => {
                let list = |name: &str, item: &str| (name.into(), Val::list(vec![Val::text(item)]));
                let fields =
                    [list("allowedImages", "ghcr.io/allowed/*"), list("allowedValues", "allowed-value")].into();
                return Some(Ok(Val::Object(Arc::new(Object { name: "libs.Exception".into(), fields }))));
            }
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
        let program = match self.members.get(field)? {
            Ok(program) => program,
            Err(error) => {
                let text = format!("composited variable \"{field}\" fails to compile: compilation failed: {error}");
                return Some(Err(EvalError::Other(text)));
            }
        };
        // Kyverno does not count what variables cost.
        let own = Usage::new(self.limit);
        let usage = if self.composited { self.usage } else { &own };
        let run = Run { host: &Mock { bound: self.bound, cluster: self.cluster }, budget: self.budget, usage };
        let value = program.evaluate(self, &run).map_err(|error| match error {
            EvalError::CostLimit | EvalError::Pending | EvalError::Budget(_) => error,
            error if !self.composited => error,
            error => EvalError::Other(format!("composited variable \"{field}\" fails to evaluate: {error}")),
        });
        self.known.borrow_mut().insert(field.to_owned(), value.clone());
        Some(value)
    }
}

/// All variables as one value, of which nothing can be read.
#[derive(Debug)]
struct Variables(&'static str);

impl ephor_expr::cel::Opaque for Variables {
    fn type_name(&self) -> &str {
        self.0
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

/// A map with text keys.
pub(crate) fn map(entries: BTreeMap<Key, Val<'static>>) -> Val<'static> {
    Val::Map(ephor_expr::cel::Dict::Built(Arc::new(entries)))
}
