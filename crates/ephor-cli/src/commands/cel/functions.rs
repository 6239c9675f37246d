//! `ephor cel functions`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ephor_expr::cel::library;
use ephor_expr::scalar::nearest::nearest;

use super::profile::Place;
use crate::commands::CommandResult;
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor cel functions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor cel functions
  ephor cel functions -p vpol
  ephor cel functions quantity isGreaterThan")]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// Functions to print; all if left out.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Prints every form of the functions, one library after the other.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let environment = args.place.environment();
    let known: BTreeSet<(&str, &str)> = environment.overloads().map(|o| (o.function, o.id)).collect();
    let mut exit = Exit::Clean;
    for name in args.names.iter().filter(|name| !known.iter().any(|(function, _)| function == name)) {
        let near = nearest(name, known.iter().map(|(function, _)| *function).filter(|f| is_written(f)));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        ui.say(&format!("error: there is no function `{name}` here{hint}"));
        exit = Exit::CouldNot;
    }
    let mut text = String::new();
    for library in library::all() {
        let mut forms: Vec<String> = library
            .overloads
            .iter()
            .filter(|o| known.contains(&(o.function, o.id)) && is_written(o.function))
            .filter(|o| args.names.is_empty() || args.names.iter().any(|name| name == o.function))
            .map(library::Overload::signature)
            .collect();
        forms.sort();
        forms.dedup();
        if !forms.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# {}\n{}\n", library.name, forms.join("\n"));
        }
    }
    ui.result(text.strip_suffix('\n').unwrap_or(&text))?;
    Ok(exit)
}

/// Whether texts call it by its name: operators have names of their own.
fn is_written(function: &str) -> bool {
    function.starts_with(|c: char| c.is_ascii_alphabetic()) && !function.contains('@')
}
