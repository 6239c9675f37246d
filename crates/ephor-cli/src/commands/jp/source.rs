//! Where expressions come from: arguments, files, standard input.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ephor_expr::jmespath::Expression;

use crate::load::{self, ReadError};
use crate::locate::{Located, SourceFile};
use crate::ui::Ui;

/// What messages call an expression given as an argument.
const ARGUMENT: &str = "expression";

/// The expressions of `files`, one each, then those of `arguments`; standard input's if there are none.
pub(in crate::commands) fn expressions(
    files: &[PathBuf],
    arguments: &[String],
    ui: &Ui,
) -> Result<Vec<Arc<SourceFile>>, ReadError> {
    if files.is_empty() && arguments.is_empty() {
        return Ok(vec![stdin("an expression", ui)?]);
    }
    let mut found = Vec::with_capacity(files.len() + arguments.len());
    for file in files {
        found.push(load::read(file)?);
    }
    let argument = |text: &String| Arc::new(SourceFile { name: ARGUMENT.to_owned(), text: text.clone() });
    found.extend(arguments.iter().map(argument));
    Ok(found)
}

/// Reads all of standard input. On a terminal, a message says what is expected.
pub(super) fn stdin(what: &str, ui: &Ui) -> Result<Arc<SourceFile>, ReadError> {
    if io::stdin().is_terminal() {
        ui.say(&format!("Reading {what} from the terminal.\nEnter it and press Ctrl-D."));
    }
    load::read(Path::new(load::STDIN))
}

/// Compiles an expression.
pub(super) fn compile(file: &Arc<SourceFile>) -> Result<Expression, Box<Located>> {
    Expression::compile(&file.text).map_err(|error| Box::new(Located::of_expression(error, file)))
}

/// The line above the result of an expression.
pub(in crate::commands) fn heading(file: &SourceFile) -> String {
    let lines: Vec<&str> = file.text.trim().lines().collect();
    format!("# {}\n", lines.join("\n# "))
}
