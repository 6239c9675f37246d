//! The only access to the terminal: results go to stdout, messages to stderr.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::load::STRAY_EXCEPTION;
use crate::locate::Located;
use crate::output::{diagnostics, plain};

/// Where output goes and how it looks. Colour follows the terminal, `NO_COLOR` and `CLICOLOR_FORCE`.
#[derive(Debug)]
pub struct Ui {
    colour: bool,
    quiet: bool,
}

impl Ui {
    /// The terminal of this process. `no_colour` is the user's flag; `quiet` leaves out progress and warnings.
    pub fn new(no_colour: bool, quiet: bool) -> Self {
        let choice = anstream::AutoStream::choice(&io::stdout());
        Self { colour: !no_colour && choice != anstream::ColorChoice::Never, quiet }
    }

    /// Whether results may carry colour.
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// Whether progress and warnings are left out.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether people read the result as it comes.
    pub fn to_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Prints a part of the result. A closed pipe ends the run quietly: the caller gets the error and stops. A terminal
    /// gets no control characters but colours; a program gets the text as it is.
    pub fn result(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let text = if out.is_terminal() { plain::terminal(text) } else { text.into() };
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Says something beside the result, without colour.
    pub fn say(&self, text: &str) {
        say_coloured(&plain::text(text));
    }

    /// Shows findings, on stderr.
    pub fn findings(&self, findings: &[Located]) {
        let colour = !matches!(anstream::AutoStream::choice(&io::stderr()), anstream::ColorChoice::Never);
        for finding in findings.iter().filter(|f| f.is_error() || !self.quiet) {
            say_coloured(&diagnostics::full(finding, colour && self.colour));
        }
    }

    /// Shows errors, and of warnings about policies only how many there are: a run over a library of policies is not
    /// the place to read them. A misspelt name in an exception is shown: the run goes on without the exception.
    pub fn errors(&self, findings: &[Located]) {
        let (errors, warnings): (Vec<Located>, Vec<Located>) = findings.iter().cloned().partition(Located::is_error);
        self.findings(&errors);
        let (about_policies, others): (Vec<Located>, Vec<Located>) =
            warnings.into_iter().partition(|warning| warning.span.is_some() && warning.code != STRAY_EXCEPTION);
        self.findings(&others);
        if !about_policies.is_empty() && !self.quiet {
            let count = about_policies.len();
            let what = if count == 1 { "warning" } else { "warnings" };
            self.say(&format!("{count} {what} about policies: `ephor check` shows them"));
        }
    }

    /// A progress bar for `total` things, on a terminal only.
    pub fn progress(&self, total: Option<u64>, what: &'static str) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        }
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        let style = match total {
            Some(_) => ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}"),
            None => ProgressStyle::with_template("{spinner} {msg} {pos}"),
        };
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar
    }
}

fn say_coloured(text: &str) {
    // A closed stderr has no reader; there is nothing better to do about it.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
