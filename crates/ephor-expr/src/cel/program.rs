//! Compiled expressions.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::ast::Ast;
use super::check::{Types, check};
use super::environment::{Edition, Environment};
use super::error::{CompileError, EvalError};
use super::estimate::{Sizes, estimate};
use super::evaluate::{Watch, World, evaluate};
use super::library::Host;
use super::lower::{Lowered, lower};
use super::parser::parse;
use super::types::Type;
use super::value::Val;
use crate::Str;
use crate::budget::Budget;

/// The values of an expression's variables.
pub trait Scope<'v> {
    /// The value of the declared variable `name`; none if it is not bound.
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>>;

    /// The member `field` of the variable `name`, for a variable whose members are evaluated when they are read.
    fn member(&self, name: &str, field: &str) -> Option<Result<Val<'v>, EvalError>> {
        let _ = (name, field);
        None
    }
}

/// The variable whose members are expressions of their own.
pub const MEMBERS: &str = "variables";

/// What evaluations have cost, and the limit.
#[derive(Debug)]
pub struct Usage {
    spent: Cell<u64>,
    limit: Option<u64>,
}

impl Usage {
    /// Nothing spent yet, of at most `limit`.
    pub fn new(limit: Option<u64>) -> Self {
        Self { spent: Cell::new(0), limit }
    }

    /// What has been spent.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Spends `cost`; an error once the limit is exceeded.
    pub fn charge(&self, cost: u64) -> Result<(), EvalError> {
        let spent = self.spent.get().saturating_add(cost);
        self.spent.set(spent);
        if self.limit.is_some_and(|limit| spent > limit) { Err(EvalError::CostLimit) } else { Ok(()) }
    }
}

/// What an evaluation gets besides variables.
pub struct Run<'c> {
    /// Answers questions about the world outside.
    pub host: &'c dyn Host,
    /// Bounds work and memory.
    pub budget: &'c Budget,
    /// Counts cost as Kubernetes does.
    pub usage: &'c Usage,
}

/// A compiled expression; clones share it.
///
/// ```
/// use ephor_expr::Value;
/// use ephor_expr::budget::Budget;
/// use ephor_expr::cel::{Environment, EvalError, NoHost, Options, Program, Run, Scope, Type, Usage, Val, library};
///
/// struct Objects<'v>(&'v Value);
///
/// impl<'v> Scope<'v> for Objects<'v> {
///     fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
///         (name == "object").then(|| Ok(Val::from_json(self.0)))
///     }
/// }
///
/// let mut environment = Environment::new(&[library::OPERATORS, library::EQUALITY], Options::default());
/// environment.declare("object", Type::Dyn);
/// let program = Program::compile("object.spec.containers.all(c, c.image != 'x')", &environment).unwrap();
///
/// let pod = Value::from_json(r#"{"spec":{"containers":[{"image":"a"}]}}"#).unwrap();
/// let (budget, usage) = (Budget::default(), Usage::new(None));
/// let run = Run { host: &NoHost, budget: &budget, usage: &usage };
/// assert!(matches!(program.evaluate(&Objects(&pod), &run), Ok(Val::Bool(true))));
/// ```
#[derive(Clone)]
pub struct Program {
    compiled: Arc<Compiled>,
}

struct Compiled {
    text: Box<str>,
    kind: Type,
    lowered: Lowered,
    edition: Edition,
    height: usize,
}

impl Program {
    /// Compiles `text`: syntax, types and constants are judged here.
    pub fn compile(text: &str, environment: &Environment) -> Result<Self, CompileError> {
        Ok(Self::compile_and(text, environment, |_, _| ())?.0)
    }

    /// Compiles `text`, and says what it costs at most if its variables are as large as `sizes` says.
    pub fn compile_with_estimate(
        text: &str,
        environment: &Environment,
        sizes: &Sizes,
    ) -> Result<(Self, u64), CompileError> {
        Self::compile_and(text, environment, |ast, types| estimate(ast, types, sizes))
    }

    fn compile_and<T>(
        text: &str,
        environment: &Environment,
        look: impl FnOnce(&Ast, &Types) -> T,
    ) -> Result<(Self, T), CompileError> {
        let ast = parse(text, environment.syntax(), environment.macros())?;
        let types = check(text, &ast, environment)?;
        let kind = ast.root.map_or(Type::Dyn, |root| types.kind(root).clone());
        let lowered =
            lower(&ast, &types, environment, MEMBERS).map_err(|error| CompileError::Constant(error.to_string()))?;
        let (edition, height) = (environment.options().edition, ast.height);
        let program = Self { compiled: Arc::new(Compiled { text: text.into(), kind, lowered, edition, height }) };
        Ok((program, look(&ast, &types)))
    }

    /// The text it was compiled from.
    pub fn text(&self) -> &str {
        &self.compiled.text
    }

    /// The type of its result.
    pub fn kind(&self) -> &Type {
        &self.compiled.kind
    }

    /// How many levels deep it nests. Evaluating it takes stack for each.
    pub fn height(&self) -> usize {
        self.compiled.height
    }

    /// The variables it reads, each with the field that it takes of it, or `None` where it takes all.
    pub fn variables(&self) -> &BTreeSet<(Str, Option<Str>)> {
        &self.compiled.lowered.variables
    }

    /// Whether it calls a function of that name.
    pub fn calls(&self, function: &str) -> bool {
        self.compiled.lowered.functions.contains(function)
    }

    /// Its value. What it costs is added to the run's usage.
    pub fn evaluate<'v>(&self, scope: &dyn Scope<'v>, run: &Run<'_>) -> Result<Val<'v>, EvalError> {
        self.run(scope, run, None)
    }

    /// The same, and `watch` hears the values of its parts, inner ones first.
    ///
    /// ```
    /// # use std::cell::RefCell;
    /// # use ephor_expr::budget::Budget;
    /// # use ephor_expr::cel::{Environment, EvalError, NoHost, Options, Program, Run, Scope, Usage, Val, library};
    /// # struct Nothing;
    /// # impl<'v> Scope<'v> for Nothing {
    /// #     fn variable(&self, _: &str) -> Option<Result<Val<'v>, EvalError>> {
    /// #         None
    /// #     }
    /// # }
    /// # let environment = Environment::new(&[library::OPERATORS, library::EQUALITY], Options::default());
    /// # let (budget, usage) = (Budget::default(), Usage::new(None));
    /// # let run = Run { host: &NoHost, budget: &budget, usage: &usage };
    /// let program = Program::compile("1 + 2 == 4 || 'a' + 'b' == 'ab'", &environment).unwrap();
    /// let parts = RefCell::new(Vec::new());
    /// let watch = |place, value: &Result<Val<'_>, EvalError>| {
    ///     let value = value.as_ref().ok().and_then(Val::to_json).map(|value| value.to_json());
    ///     parts.borrow_mut().push(format!("{} = {}", &program.text()[place], value.unwrap_or_default()));
    /// };
    /// program.evaluate_watched(&Nothing, &run, &watch).unwrap();
    /// assert_eq!(parts.take()[..2], ["1 + 2 = 3", "1 + 2 == 4 = false"]);
    /// ```
    pub fn evaluate_watched<'v>(
        &self,
        scope: &dyn Scope<'v>,
        run: &Run<'_>,
        watch: &Watch<'_>,
    ) -> Result<Val<'v>, EvalError> {
        self.run(scope, run, Some(watch))
    }

    fn run<'v>(&self, scope: &dyn Scope<'v>, run: &Run<'_>, watch: Option<&Watch<'_>>) -> Result<Val<'v>, EvalError> {
        let edition = self.compiled.edition;
        let world = World { scope, host: run.host, budget: run.budget, usage: run.usage, edition, watch };
        evaluate(&self.compiled.lowered.node, self.compiled.lowered.slots, &world)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.text()).finish()
    }
}
