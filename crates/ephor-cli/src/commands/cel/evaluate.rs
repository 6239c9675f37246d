//! `ephor cel eval` and `ephor cel cost`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::library::{authorizer, context};
use ephor_expr::cel::profile::CONTEXTS;
use ephor_expr::cel::{EvalError, NoHost, Run, Scope, Type, Usage, Val};
use ephor_expr::scalar::duration::Duration;
use ephor_expr::scalar::go_time::format_rfc3339;
use ephor_expr::yaml::{Limits, parse_documents};

use super::profile::{Profile, compile};
use crate::commands::CommandResult;
use crate::commands::jp::{single_document, source};
use crate::exit::Exit;
use crate::load;
use crate::locate::Located;
use crate::output::plain;
use crate::ui::Ui;

/// Arguments of `ephor cel eval` and `ephor cel cost`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor cel eval -i pod.yaml 'object.spec.containers.all(c, has(c.resources))'
  ephor cel eval -i pod.yaml --var 'params={limit: 3}' 'object.spec.containers.size() <= params.limit'
  ephor cel eval -p vpol 'image(\"nginx\").registry()'
  ephor cel cost -i pod.yaml 'object.metadata.name.matches(\"^web-\")'

Without an object, `object` is null. Functions that ask a cluster, a registry or the network fail.")]
pub(super) struct Args {
    /// Where the expressions stand.
    #[arg(long, short, value_enum, default_value_t = Profile::Vap)]
    profile: Profile,
    /// The YAML or JSON document that is `object`; `-` is standard input.
    #[arg(long, short, alias = "file", short_alias = 'f', value_name = "FILE")]
    input: Option<PathBuf>,
    /// Another variable and its value in YAML; can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    var: Vec<String>,
    /// A file that holds an expression; can be repeated.
    #[arg(long, short, value_name = "FILE", value_delimiter = ',')]
    query: Vec<PathBuf>,
    /// Expressions; read from standard input if there are none, here or in files.
    #[arg(value_name = "EXPRESSION")]
    expressions: Vec<String>,
}

/// What is asked of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Value,
    Cost,
}

/// Evaluates all expressions.
pub(super) fn run(args: &Args, wanted: Wanted, ui: &Ui) -> CommandResult {
    let mut environment = args.profile.environment();
    let mut variables = variables(&args.var)?;
    for name in variables.keys().filter(|name| !environment.declares(name)).cloned().collect::<Vec<_>>() {
        environment.declare(name, Type::Dyn);
    }
    if let Some(path) = &args.input {
        let file = load::read(path).map_err(anyhow::Error::from)?;
        match single_document(&file) {
            Ok(object) => variables.insert("object".to_owned(), object),
            Err(located) => {
                ui.findings(&[*located]);
                return Ok(Exit::CouldNot);
            }
        };
    }
    let scope = &Variables(variables);
    for file in source::expressions(&args.query, &args.expressions, ui).map_err(anyhow::Error::from)? {
        let program = match compile(&file, &environment) {
            Ok(program) => program,
            Err(located) => {
                ui.findings(&located);
                return Ok(Exit::CouldNot);
            }
        };
        let (budget, usage) = (Budget::default(), Usage::new(environment.options().cost_limit));
        let run = Run { host: &NoHost, budget: &budget, usage: &usage };
        let text = match (program.evaluate(&scope, &run), wanted) {
            (Ok(value), Wanted::Value) => shown(&value),
            // What fails has cost something too.
            (Ok(_) | Err(_), Wanted::Cost) => usage.spent().to_string(),
            (Err(error), Wanted::Value) => {
                let mut located = Located::plain("evaluation", error.to_string());
                located.file = Some(file);
                ui.findings(&[located]);
                return Ok(Exit::CouldNot);
            }
        };
        // A program that reads the result has no use for the expression.
        let heading = if ui.to_terminal() { source::heading(&file) } else { String::new() };
        ui.result(&format!("{heading}{text}\n"))?;
    }
    Ok(Exit::Clean)
}

fn variables(arguments: &[String]) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut variables = BTreeMap::new();
    for argument in arguments {
        let Some((name, text)) = argument.split_once('=') else {
            anyhow::bail!("`--var {argument}`: expected NAME=VALUE");
        };
        let documents =
            parse_documents(text, &Limits::default()).map_err(|error| anyhow::anyhow!("`--var {name}`: {error}"))?;
        let value = documents.into_iter().next().map_or(Value::Null, |document| document.value);
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

struct Variables(BTreeMap<String, Value>);

impl<'v> Scope<'v> for &'v Variables {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        if let Some(value) = self.0.get(name) {
            return Some(Ok(Val::from_json(value)));
        }
        if let Some((_, kind)) = CONTEXTS.iter().find(|(variable, _)| *variable == name) {
            return Some(Ok(context(kind)));
        }
        match name {
            "authorizer" => Some(Ok(authorizer())),
            "object" | "oldObject" | "namespaceObject" => Some(Ok(Val::Null)),
            _ => None,
        }
    }
}

/// A value for the terminal: JSON if it has any.
fn shown(value: &Val<'_>) -> String {
    match value {
        Val::Timestamp(time) => format_rfc3339(time),
        Val::Duration(nanos) => Duration(*nanos).to_string(),
        Val::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        Val::Type(kind) => kind.to_string(),
        Val::Optional(None) => "optional.none()".to_owned(),
        Val::Optional(Some(inner)) => format!("optional.of({})", shown(inner)),
        Val::Opaque(opaque) => format!("{}({})", opaque.type_name(), opaque.text()),
        other => other.to_json().map_or_else(|| other.type_name().into_owned(), |json| plain::json(&json)),
    }
}
