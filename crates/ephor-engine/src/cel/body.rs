//! Compiling bodies: every expression with the variables of its place and the type that it must have.

use ephor_expr::Str;
use ephor_expr::cel::profile::{KYVERNO_VARIABLES, Kubernetes, Kyverno, VARIABLES};
use ephor_expr::cel::{CompileError, Environment, MEMBERS, Program, Type};
use ephor_expr::value::Path;

use super::template::Node;
use crate::diagnostic::Diagnostic;
use crate::policy::{AuditAnnotation, CelValidation, CelVariable, Generation, MatchCondition};

/// Where a body stands. It decides which variables and functions the expressions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A `validate.cel` rule or a `ValidatingAdmissionPolicy`; whether it has `params`.
    Validation {
        /// Whether it names a `paramKind`.
        params: bool,
    },
    /// A `MutatingAdmissionPolicy`; whether it has `params`.
    Mutation {
        /// Whether it names a `paramKind`.
        params: bool,
    },
    /// A webhook, which has match conditions only.
    Webhook,
    /// A `ValidatingPolicy` or an exception from one.
    ValidatingPolicy {
        /// Whether it is a `NamespacedValidatingPolicy`.
        namespaced: bool,
    },
    /// A `MutatingPolicy`.
    MutatingPolicy {
        /// Whether it is a `NamespacedMutatingPolicy`.
        namespaced: bool,
    },
    /// A `GeneratingPolicy`.
    GeneratingPolicy {
        /// Whether it is a `NamespacedGeneratingPolicy`.
        namespaced: bool,
    },
    /// A `DeletingPolicy`.
    DeletingPolicy {
        /// Whether it is a `NamespacedDeletingPolicy`.
        namespaced: bool,
    },
}

/// Whose rules hold for messages, errors and limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Those of an API server.
    #[default]
    Kubernetes,
    /// Those of `policies.kyverno.io`.
    Kyverno,
}

impl Place {
    fn dialect(self) -> Dialect {
        match self {
            Place::ValidatingPolicy { .. }
            | Place::MutatingPolicy { .. }
            | Place::GeneratingPolicy { .. }
            | Place::DeletingPolicy { .. } => Dialect::Kyverno,
            Place::Validation { .. } | Place::Mutation { .. } | Place::Webhook => Dialect::Kubernetes,
        }
    }

    /// The environment of messages, which cannot ask the authorizer.
    fn messages(self) -> Environment {
        let profile = match self {
            _ if self.dialect() == Dialect::Kyverno => return self.environment(),
            Place::Validation { params: true } | Place::Mutation { params: true } => Kubernetes::Message,
            _ => Kubernetes::MessageWithoutParams,
        };
        profile.environment()
    }

    /// Whether it is in a policy of a namespace, whose expressions may call no service.
    fn is_namespaced(self) -> bool {
        matches!(
            self,
            Place::ValidatingPolicy { namespaced: true }
                | Place::MutatingPolicy { namespaced: true }
                | Place::GeneratingPolicy { namespaced: true }
                | Place::DeletingPolicy { namespaced: true }
        )
    }

    /// Whether expressions there are evaluated without a request. They may mention one, and then have no value.
    fn lacks_request(self) -> bool {
        matches!(self, Place::DeletingPolicy { .. })
    }

    fn environment(self) -> Environment {
        let profile = match self {
            Place::Validation { params: true } => Kubernetes::Policy,
            Place::Validation { params: false } => Kubernetes::PolicyWithoutParams,
            Place::Mutation { params: true } => Kubernetes::Mutation,
            Place::Mutation { params: false } => Kubernetes::MutationWithoutParams,
            Place::Webhook => Kubernetes::Webhook,
            Place::ValidatingPolicy { namespaced: false } => return Kyverno::Validating.environment(),
            Place::MutatingPolicy { namespaced: false } => return Kyverno::Mutating.environment(),
            Place::MutatingPolicy { namespaced: true } => return Kyverno::NamespacedMutating.environment(),
            Place::ValidatingPolicy { namespaced: true } => return Kyverno::NamespacedValidating.environment(),
            Place::GeneratingPolicy { namespaced: false } => return Kyverno::Generating.environment(),
            Place::GeneratingPolicy { namespaced: true } => return Kyverno::NamespacedGenerating.environment(),
            Place::DeletingPolicy { namespaced: false } => return Kyverno::Deleting.environment(),
            Place::DeletingPolicy { namespaced: true } => return Kyverno::NamespacedDeleting.environment(),
        };
        profile.environment()
    }
}

/// A list of a document, and where it stands.
#[derive(Debug, Clone)]
pub struct Listed<'p, T> {
    /// The items.
    pub items: &'p [T],
    /// The path of the list.
    pub path: Path,
}

impl<T> Default for Listed<'_, T> {
    fn default() -> Self {
        Self { items: &[], path: Path::root() }
    }
}

impl<'p, T> Listed<'p, T> {
    fn iter(&self, field: &'static str) -> impl Iterator<Item = (&'p T, Path)> {
        self.items.iter().enumerate().map(move |(i, item)| (item, self.path.index(i).key(field)))
    }
}

/// How a patch changes an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// It is merged.
    ApplyConfiguration,
    /// It is a list of operations.
    JsonPatch,
}

/// An expression that gives a patch.
#[derive(Debug, Clone)]
pub struct PatchSource<'p> {
    /// How it changes an object.
    pub kind: PatchKind,
    /// The expression.
    pub text: &'p str,
    /// Where it stands.
    pub path: Path,
}

/// What a body is compiled from.
#[derive(Debug, Clone)]
pub struct Source<'p> {
    /// Where it stands.
    pub place: Place,
    /// Named expressions, each of which may read those before it.
    pub variables: Listed<'p, CelVariable>,
    /// Which requests it applies to.
    pub conditions: Listed<'p, MatchCondition>,
    /// What must be true.
    pub validations: Listed<'p, CelValidation>,
    /// Texts for the audit log.
    pub annotations: Listed<'p, AuditAnnotation>,
    /// Changes of the object.
    pub patches: Vec<PatchSource<'p>>,
    /// Objects to make.
    pub generations: Listed<'p, Generation>,
}

impl Source<'_> {
    /// An empty body there.
    pub fn at(place: Place) -> Self {
        Self {
            place,
            variables: Listed::default(),
            conditions: Listed::default(),
            validations: Listed::default(),
            annotations: Listed::default(),
            patches: Vec::new(),
            generations: Listed::default(),
        }
    }
}

/// Why an expression does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Where the expression stands.
    pub path: Path,
    /// Where in its text, as a byte offset.
    pub offset: Option<usize>,
    /// What is wrong, in the words of Kubernetes.
    pub message: String,
}

impl Fault {
    /// The fault as a finding.
    pub fn diagnostic(self) -> Diagnostic {
        Diagnostic { offset: self.offset, ..Diagnostic::error("cel", self.path, self.message) }
    }
}

/// A compiled expression and where it stands.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) program: Program,
    pub(super) path: Path,
}

/// A compiled variable.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: Str,
    pub(super) expression: Expression,
}

/// A compiled condition.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) name: Str,
    pub(super) expression: Expression,
}

/// A compiled validation.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: Option<Str>,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: Option<Str>,
}

/// A compiled audit annotation.
#[derive(Debug)]
pub(super) struct CompiledAnnotation {
    pub(super) key: Str,
    pub(super) expression: Expression,
}

/// A compiled patch.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) kind: PatchKind,
    pub(super) expression: Expression,
}

/// A compiled body: immutable, shared by all evaluations.
#[derive(Debug, Default)]
pub struct Body {
    pub(super) dialect: Dialect,
    /// Whether there is no request that expressions could read.
    pub(super) lacks_request: bool,
    /// What one expression may cost; none = no limit but that of the evaluation.
    pub(super) cost_limit: Option<u64>,
    pub(super) variables: Vec<Variable>,
    pub(super) conditions: Vec<Condition>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<CompiledAnnotation>,
    pub(super) patches: Vec<Patch>,
    pub(super) generations: Vec<CompiledGeneration>,
}

/// Objects to make, compiled.
#[derive(Debug)]
pub(super) enum CompiledGeneration {
    /// Calls `generator.Apply`.
    Expression(Expression),
    /// Gives the objects themselves.
    Template(Vec<Node>),
}

impl Body {
    /// Compiles a body; every expression that does not compile is a fault.
    pub fn compile(source: &Source<'_>) -> Result<Self, Vec<Fault>> {
        let mut compiler = Compiler { environment: source.place.environment(), faults: Vec::new() };
        let mut messages = None;
        let (dialect, lacks_request) = (source.place.dialect(), source.place.lacks_request());
        let cost_limit = compiler.environment.options().cost_limit;
        let mut body = Self { dialect, lacks_request, cost_limit, ..Self::default() };
        let variables = match body.dialect {
            Dialect::Kubernetes => VARIABLES,
            Dialect::Kyverno => KYVERNO_VARIABLES,
        };
        // Those of a `ValidatingPolicy` come before variables, and do not know them.
        let conditions_first = matches!(source.place, Place::ValidatingPolicy { .. });
        if conditions_first {
            body.conditions = compiler.conditions(source);
        }
        let mut fields: Vec<(Str, Type)> = Vec::new();
        for (variable, path) in source.variables.iter("expression") {
            let Some(expression) = compiler.compile(&variable.expression, path, &[]) else { continue };
            let field = (variable.name.clone(), visible_type(expression.program.kind()));
            compiler.environment.extend_object(variables, [field.clone()]);
            fields.push(field);
            body.variables.push(Variable { name: variable.name.clone(), expression });
        }
        if !conditions_first {
            body.conditions = compiler.conditions(source);
        }
        for (i, (validation, path)) in source.validations.iter("expression").enumerate() {
            let expression = compiler.compile(&validation.expression, path, &[Type::Bool]);
            let text = validation.message_expression.as_ref().filter(|text| !text.is_empty());
            let message_expression = text.and_then(|text| {
                let environment = messages.get_or_insert_with(|| {
                    let mut environment = source.place.messages();
                    environment.extend_object(variables, fields.iter().cloned());
                    environment
                });
                let path = source.validations.path.index(i).key("messageExpression");
                compile(text, path, &[Type::String], environment, &mut compiler.faults)
            });
            body.validations.extend(expression.map(|expression| Validation {
                expression,
                message: validation.message.clone(),
                message_expression,
                reason: validation.reason.clone(),
            }));
        }
        let mut wanted = vec![Type::String, Type::Null];
        if matches!(source.place, Place::GeneratingPolicy { .. }) {
            // Theirs may be of any type until they are evaluated.
            wanted.push(Type::Dyn);
        }
        for (annotation, path) in source.annotations.iter("valueExpression") {
            if let Some(expression) = compiler.compile(&annotation.value_expression, path, &wanted) {
                body.annotations.push(CompiledAnnotation { key: annotation.key.clone(), expression });
            }
        }
        for patch in &source.patches {
            let wanted = match patch.kind {
                PatchKind::ApplyConfiguration => Type::Object("Object".into()),
                PatchKind::JsonPatch => Type::list(Type::Object("JSONPatch".into())),
            };
            if let Some(expression) = compiler.compile(patch.text, patch.path.clone(), &[wanted]) {
                body.patches.push(Patch { kind: patch.kind, expression });
            }
        }
        for (i, generation) in source.generations.items.iter().enumerate() {
            let path = source.generations.path.index(i);
            let compiled = match (&generation.expression, &generation.template) {
                (Some(text), None) => {
                    let path = path.key("expression");
                    compiler.compile(text, path, &[Type::Bool]).map(CompiledGeneration::Expression)
                }
                (None, Some(template)) => {
                    let path = path.keys(&["template", "value"]);
                    Node::compile_all(template, &path, &mut |text, offset| {
                        let known = compiler.faults.len();
                        let compiled = compiler.compile(text, path.clone(), &[]);
                        for fault in compiler.faults.iter_mut().skip(known) {
                            fault.offset = Some(offset + fault.offset.unwrap_or(0));
                        }
                        compiled
                    })
                    .map_err(|fault| compiler.faults.push(fault))
                    .ok()
                    .map(CompiledGeneration::Template)
                }
                _ => {
                    let message = "exactly one of expression or template must be set".to_owned();
                    compiler.faults.push(Fault { path, offset: None, message });
                    None
                }
            };
            body.generations.extend(compiled);
        }
        if source.place.is_namespaced() {
            compiler.faults.extend(body.calls_of_services());
        }
        if compiler.faults.is_empty() { Ok(body) } else { Err(compiler.faults) }
    }

    /// The expressions that call services.
    fn calls_of_services(&self) -> Vec<Fault> {
        let calls = |expression: &&Expression| expression.program.variables().iter().any(|(root, _)| root == "http");
        let fault = |expression: &Expression| Fault {
            path: expression.path.clone(),
            offset: expression.program.text().find("http"),
            message: NO_SERVICES.to_owned(),
        };
        self.expressions().into_iter().filter(calls).map(fault).collect()
    }

    /// The match conditions that read variables. A policy of the API server has none; a rule of Kyverno may.
    pub(crate) fn conditions_with_variables(&self) -> impl Iterator<Item = Fault> {
        let reads =
            |condition: &&Condition| condition.expression.program.variables().iter().any(|(root, _)| root == MEMBERS);
        self.conditions.iter().filter(reads).map(|Condition { expression, .. }| Fault {
            path: expression.path.clone(),
            offset: expression.program.text().find(MEMBERS),
            message: format!("undeclared reference to '{MEMBERS}' (in container '')"),
        })
    }

    /// How many patches it has.
    pub fn patch_count(&self) -> usize {
        self.patches.len()
    }

    /// Whether it applies to all requests.
    pub fn is_unconditional(&self) -> bool {
        self.conditions.is_empty()
    }
}

/// What upstream says of such a policy. Ephor has no such flag: a policy of a namespace would call with Ephor's
/// address.
const NO_SERVICES: &str = "http.* is not allowed in namespaced policies";

struct Compiler {
    environment: Environment,
    faults: Vec<Fault>,
}

impl Compiler {
    fn conditions(&mut self, source: &Source<'_>) -> Vec<Condition> {
        let mut conditions = Vec::with_capacity(source.conditions.items.len());
        for (condition, path) in source.conditions.iter("expression") {
            if let Some(expression) = self.compile(&condition.expression, path, &[Type::Bool]) {
                conditions.push(Condition { name: condition.name.clone(), expression });
            }
        }
        conditions
    }

    fn compile(&mut self, text: &str, path: Path, wanted: &[Type]) -> Option<Expression> {
        compile(text, path, wanted, &self.environment, &mut self.faults)
    }
}

/// Compiles `text`, whose type must be one of `wanted`; none wanted = any.
fn compile(
    text: &str,
    path: Path,
    wanted: &[Type],
    environment: &Environment,
    faults: &mut Vec<Fault>,
) -> Option<Expression> {
    let mut report = |offset, message| faults.push(Fault { path: path.clone(), offset, message });
    match Program::compile(text, environment) {
        Ok(program) if wanted.is_empty() || wanted.contains(program.kind()) || *program.kind() == Type::Any => {
            return Some(Expression { program, path });
        }
        Ok(program) => match wanted {
            [only] => report(None, format!("must evaluate to {only} but got {}", program.kind())),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                report(None, format!("must evaluate to one of [{}]", names.join(" ")));
            }
        },
        Err(CompileError::Issues { issues, .. }) => {
            for issue in issues {
                let byte = |offset| text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at);
                report(issue.offset.map(byte), issue.message);
            }
        }
        Err(CompileError::Constant(message)) => report(None, format!("program instantiation failed: {message}")),
    }
    None
}

/// The type as which others see a variable: types that declarations cannot name are `dyn`.
fn visible_type(kind: &Type) -> Type {
    match kind {
        Type::Optional(_) | Type::TypeOf(_) | Type::Opaque(_) | Type::Object(_) => Type::Dyn,
        other => other.clone(),
    }
}
