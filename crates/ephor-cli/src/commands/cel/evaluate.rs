//! `ephor cel eval` and `ephor cel cost`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ephor_engine::cel::Functions;
use ephor_engine::gate::Asker;
use ephor_engine::review::Effects;
use ephor_engine::scope::{Seed, World};
use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::library::{authorizer, context};
use ephor_expr::cel::profile::CONTEXTS;
use ephor_expr::cel::{EvalError, Program, Run, Scope, Type, Usage, Val};
use ephor_expr::jmespath::Runtime as _;
use ephor_expr::scalar::duration::Duration;
use ephor_expr::scalar::go_time::format_rfc3339;
use ephor_expr::yaml::{Limits, parse_documents};
use ephor_runtime::facts::until_done;

use super::profile::{Place, Profile, compile};
use crate::commands::CommandResult;
use crate::commands::cluster::ClusterArgs;
use crate::commands::jp::{single_document, source};
use crate::exit::Exit;
use crate::host::{AllowedHost, Host, Live, Network, ObjectsAtHand};
use crate::load::{self, read_objects};
use crate::locate::Located;
use crate::output::plain;
use crate::ui::Ui;

/// Arguments of `ephor cel eval` and `ephor cel cost`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor cel eval -i pod.yaml 'object.spec.containers.all(c, has(c.resources))'
  ephor cel eval -i pod.yaml --var 'params={limit: 3}' 'object.spec.containers.size() <= params.limit'
  ephor cel eval -p vpol 'image(\"nginx\").registry()'
  ephor cel eval -p vpol -r cm.yaml 'resource.Get(\"v1\", \"configmaps\", \"default\", \"allowed\").data'
  ephor cel cost -i pod.yaml 'object.metadata.name.matches(\"^web-\")'

Without an object, `object` is null. Functions that ask for resources see those of `--resource`, or the cluster with
`--cluster`; nothing is written. Services are called with `--allow-net`. Registries are not read.")]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// The YAML or JSON document that is `object`; `-` is standard input.
    #[arg(long, short, alias = "file", short_alias = 'f', value_name = "FILE")]
    input: Option<PathBuf>,
    /// Another variable and its value in YAML; can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    var: Vec<String>,
    /// Resources that functions see: a file, directory or glob; can be repeated.
    #[arg(long, short, value_name = "PATH", conflicts_with = "cluster")]
    resource: Vec<PathBuf>,
    /// Let functions read the cluster that kubectl would use. Nothing is written.
    #[arg(long, short)]
    cluster: bool,
    /// The kubeconfig of the cluster.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    context: Option<String>,
    /// Let functions call services of this host: `HOST` or `HOST:PORT`; can be repeated.
    #[arg(long, value_name = "HOST")]
    allow_net: Vec<AllowedHost>,
    /// The namespace of the policy, where the profile is that of a namespaced one.
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// A file that holds an expression; can be repeated.
    #[arg(long, short, value_name = "FILE", value_delimiter = ',')]
    query: Vec<PathBuf>,
    /// Expressions; read from standard input if there are none, here or in files.
    #[arg(value_name = "EXPRESSION")]
    expressions: Vec<String>,
}

/// How often an expression may ask for more facts.
const MAX_ROUNDS: u32 = 64;

/// What is asked of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Value,
    Cost,
}

/// Evaluates all expressions.
pub(super) fn run(args: &Args, wanted: Wanted, ui: &Ui) -> CommandResult {
    let mut environment = args.place.environment();
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
    let host = match host(args)? {
        Ok(host) => host,
        Err(findings) => {
            ui.findings(&findings);
            return Ok(Exit::CouldNot);
        }
    };
    let scope = &Variables(variables);
    let asker = Asker {
        namespace: (args.place.profile == Profile::Nvpol).then_some(args.namespace.as_str()),
        effects: Effects::DryRun,
    };
    for file in source::expressions(&args.query, &args.expressions, ui).map_err(anyhow::Error::from)? {
        let program = match compile(&file, &environment) {
            Ok(program) => program,
            Err(located) => {
                ui.findings(&located);
                return Ok(Exit::CouldNot);
            }
        };
        let (value, spent) = evaluate(&program, scope, environment.options().cost_limit, &host, asker);
        let text = match (value, wanted) {
            (Ok(text), Wanted::Value) => text,
            // What fails has cost something too.
            (Ok(_) | Err(_), Wanted::Cost) => spent.to_string(),
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

/// What functions can ask, or what is wrong with the files.
fn host(args: &Args) -> anyhow::Result<Result<Host, Vec<Located>>> {
    let host = if args.cluster {
        let (kubeconfig, context) = (args.kubeconfig.clone(), args.context.clone());
        let cluster = ClusterArgs { cluster: true, kubeconfig, context, namespace: None }.connect()?;
        Host::new().with(Live::new(cluster, Vec::new()))
    } else {
        match objects(&args.resource) {
            Ok(objects) => Host::new().with(ObjectsAtHand::new(objects).with_api()),
            Err(findings) => return Ok(Err(findings)),
        }
    };
    Ok(Ok(if args.allow_net.is_empty() { host } else { host.with(Network::of(args.allow_net.clone())) }))
}

fn objects(paths: &[PathBuf]) -> Result<Vec<Value>, Vec<Located>> {
    let read = |path: &PathBuf| read_objects(Path::new(path), &|_, _| false);
    Ok(paths.iter().map(read).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(|read| read.object).collect())
}

/// The value of an expression in words, or its error, and what it cost.
fn evaluate(
    program: &Program,
    scope: &Variables,
    limit: Option<u64>,
    host: &Host,
    asker: Asker<'_>,
) -> (Result<String, EvalError>, u64) {
    let now = jiff::Timestamp::now();
    let seed = Seed { policy: "", rule: "", review: now.as_nanosecond().unsigned_abs() as u64 };
    let mut rounds = 0;
    until_done(host, |facts| {
        let world = World::new(facts, asker, now, seed, Budget::default());
        let usage = Usage::new(limit);
        let run = Run { host: &Functions(&world), budget: world.budget(), usage: &usage };
        let value = program.evaluate(&scope, &run).map(|value| shown(&value));
        rounds += 1;
        match value {
            Err(EvalError::Pending) if rounds == MAX_ROUNDS => {
                let error = EvalError::Other("the expression asks for data without end".to_owned());
                ControlFlow::Break((Err(error), usage.spent()))
            }
            Err(EvalError::Pending) => ControlFlow::Continue(world.into_needs()),
            value => ControlFlow::Break((value, usage.spent())),
        }
    })
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
        other if other.charge(&Budget::default()).is_err() => format!("{} of too many parts", other.type_name()),
        other => other.to_json().map_or_else(|| other.type_name().into_owned(), |json| plain::json(&json)),
    }
}
