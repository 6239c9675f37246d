//! `ephor jp query`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ephor_expr::Value;
use ephor_expr::jmespath::FixedRuntime;
use ephor_expr::yaml::{Limits, parse_documents};
use jiff::Timestamp;

use super::source;
use crate::commands::CommandResult;
use crate::exit::Exit;
use crate::load;
use crate::locate::{Located, SourceFile};
use crate::output::plain;
use crate::ui::Ui;

/// Arguments of `ephor jp query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor jp query -i pod.yaml 'spec.containers[].image'
  ephor jp query -i pod.yaml -q first.jmespath -q second.jmespath
  kubectl get pod web -o yaml | ephor jp query 'metadata.name | to_upper(@)'
  echo 'metadata.labels' | ephor jp query -i pod.yaml

The time and `random()` are real; host names are not looked up.")]
pub(super) struct Args {
    /// The YAML or JSON document; standard input if left out.
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
    /// A file that holds an expression; can be repeated.
    #[arg(long, short, value_name = "FILE", value_delimiter = ',')]
    query: Vec<PathBuf>,
    /// Print JSON on one line.
    #[arg(long, short)]
    compact: bool,
    /// Print a result that is a string without quotes.
    #[arg(long, short)]
    unquoted: bool,
    /// Expressions; read from standard input if there are none, here or in files.
    #[arg(value_name = "EXPRESSION")]
    expressions: Vec<String>,
}

/// Evaluates all expressions over the document.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    if args.input.is_none() && args.query.is_empty() && args.expressions.is_empty() {
        return Err(anyhow::anyhow!(
            "nothing to evaluate: give an expression, or a document with `--input`; the other is read from standard \
             input"
        )
        .into());
    }
    let expressions = source::expressions(&args.query, &args.expressions, ui).map_err(anyhow::Error::from)?;
    let mut compiled = Vec::with_capacity(expressions.len());
    let mut refused = Vec::new();
    for file in &expressions {
        match source::compile(file) {
            Ok(expression) => compiled.push((file, expression)),
            Err(located) => refused.push(*located),
        }
    }
    if !refused.is_empty() {
        ui.findings(&refused);
        return Ok(Exit::CouldNot);
    }
    let file = match &args.input {
        Some(path) => load::read(path),
        None => source::stdin("a YAML or JSON document", ui),
    }
    .map_err(anyhow::Error::from)?;
    let document = match single_document(&file) {
        Ok(document) => document,
        Err(located) => {
            ui.findings(&[*located]);
            return Ok(Exit::CouldNot);
        }
    };
    for (file, expression) in compiled {
        match expression.evaluate(&document, &FixedRuntime::new(Timestamp::now(), seed())) {
            Ok(value) => {
                // A program that reads the result has no use for the expression.
                let heading = if ui.to_terminal() { source::heading(file) } else { String::new() };
                ui.result(&format!("{heading}{}\n", print(&value, args)))?;
            }
            Err(error) => {
                ui.findings(&[Located::of_evaluation(&error, &expression, file)]);
                return Ok(Exit::CouldNot);
            }
        }
    }
    Ok(Exit::Clean)
}

/// The only document of a file; null if there is none.
pub(in crate::commands) fn single_document(file: &Arc<SourceFile>) -> Result<Value, Box<Located>> {
    let documents =
        parse_documents(&file.text, &Limits::default()).map_err(|error| Box::new(Located::of_yaml(error, file)))?;
    let found = documents.len();
    let mut documents = documents.into_iter();
    match (documents.next(), documents.next()) {
        (None, _) => Ok(Value::Null),
        (Some(document), None) => Ok(document.value),
        (Some(_), Some(second)) => {
            let mut located = Located::plain("several-documents", format!("expected one document, found {found}"));
            let span = second.source.nearest_span(&ephor_expr::value::Path::root());
            located.file = Some(Arc::clone(file));
            located.span = Some((span.start, span.start));
            Err(Box::new(located))
        }
    }
}

/// Different in every run; `random()` needs no more.
fn seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn print(value: &Value, args: &Args) -> String {
    match value {
        Value::String(text) if args.unquoted => text.to_string(),
        _ if args.compact => value.to_json(),
        _ => plain::json(value),
    }
}
