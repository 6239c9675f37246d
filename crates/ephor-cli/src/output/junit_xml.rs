//! `JUnit` XML documents: the one writer behind `apply`, `check` and `test`.
//!
//! Callers build [`Suite`]s; [`document`] counts and escapes. Text may hold any character: control characters are shown
//! as escapes, because XML 1.0 cannot hold them.

use std::fmt::Write as _;

use super::plain;

/// A test suite.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) name: String,
    /// The file that the whole suite is about.
    pub(super) file: Option<String>,
    pub(super) cases: Vec<Case>,
}

/// A test case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) class: String,
    pub(super) name: String,
    /// File and line.
    pub(super) place: Option<(String, u32)>,
    pub(super) result: CaseResult,
}

/// The result of a test case.
#[derive(Debug)]
pub(super) enum CaseResult {
    Passed,
    /// It passed, with this output.
    Output(String),
    Failure(Problem),
    Error(Problem),
    Skipped(Problem),
}

/// Why a test case did not pass.
#[derive(Debug, Default)]
pub(super) struct Problem {
    /// A machine-readable kind; empty for none.
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) details: String,
}

/// How many cases had which result.
#[derive(Default, Clone, Copy)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Counts {
    fn of(cases: &[Case]) -> Self {
        let mut counts = Self { tests: cases.len(), ..Self::default() };
        for case in cases {
            match case.result {
                CaseResult::Passed | CaseResult::Output(_) => {}
                CaseResult::Failure(_) => counts.failures += 1,
                CaseResult::Error(_) => counts.errors += 1,
                CaseResult::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn and(self, other: Self) -> Self {
        Self {
            tests: self.tests + other.tests,
            failures: self.failures + other.failures,
            errors: self.errors + other.errors,
            skipped: self.skipped + other.skipped,
        }
    }

    fn attributes(self) -> String {
        let Self { tests, failures, errors, skipped } = self;
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
    }
}

/// The whole document. Writing to a string does not fail.
pub(super) fn document(suites: &[Suite]) -> String {
    let total = suites.iter().map(|suite| Counts::of(&suite.cases)).fold(Counts::default(), Counts::and);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"ephor\" {}>", total.attributes());
    for suite in suites {
        let file = suite.file.as_deref().map(|file| format!(" file=\"{}\"", escape(file))).unwrap_or_default();
        let counts = Counts::of(&suite.cases).attributes();
        let _ = writeln!(out, "  <testsuite name=\"{}\"{file} {counts}>", escape(&suite.name));
        for case in &suite.cases {
            write_case(&mut out, case);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn write_case(out: &mut String, case: &Case) {
    let (class, name) = (escape(&case.class), escape(&case.name));
    let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{name}\"");
    if let Some((file, line)) = &case.place {
        let _ = write!(out, " file=\"{}\" line=\"{line}\"", escape(file));
    }
    let (element, problem) = match &case.result {
        CaseResult::Passed => return out.push_str("/>\n"),
        CaseResult::Output(text) => {
            let _ = writeln!(out, ">\n      <system-out>{}</system-out>\n    </testcase>", escape(text));
            return;
        }
        CaseResult::Failure(problem) => ("failure", problem),
        CaseResult::Error(problem) => ("error", problem),
        CaseResult::Skipped(problem) => ("skipped", problem),
    };
    let _ = write!(out, ">\n      <{element}");
    if !problem.kind.is_empty() {
        let _ = write!(out, " type=\"{}\"", problem.kind);
    }
    let _ = write!(out, " message=\"{}\"", escape(&problem.message));
    let _ = if problem.details.is_empty() {
        writeln!(out, "/>\n    </testcase>")
    } else {
        writeln!(out, ">{}</{element}>\n    </testcase>", escape(&problem.details))
    };
}

/// Text for content and attributes of XML 1.0.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain::text(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_counts_its_cases_and_escapes_their_texts() {
        let problem =
            |details: &str| Problem { kind: "", message: "a < \"b\"".to_owned(), details: details.to_owned() };
        let case = |name: &str, result| Case { class: "c".to_owned(), name: name.to_owned(), place: None, result };
        let suite = Suite {
            name: "s&t".to_owned(),
            file: None,
            cases: vec![
                case("passes", CaseResult::Passed),
                case("says", CaseResult::Output("1\n2".to_owned())),
                case("fails", CaseResult::Failure(problem("\u{1b}[0m"))),
                case("breaks", CaseResult::Error(Problem { kind: "error", ..problem("") })),
                case("skips", CaseResult::Skipped(problem(""))),
            ],
        };
        insta::assert_snapshot!(document(&[suite]), @r#"
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ephor" tests="5" failures="1" errors="1" skipped="1">
  <testsuite name="s&amp;t" tests="5" failures="1" errors="1" skipped="1">
    <testcase classname="c" name="passes"/>
    <testcase classname="c" name="says">
      <system-out>1&#10;2</system-out>
    </testcase>
    <testcase classname="c" name="fails">
      <failure message="a &lt; &quot;b&quot;">\u{1b}[0m</failure>
    </testcase>
    <testcase classname="c" name="breaks">
      <error type="error" message="a &lt; &quot;b&quot;"/>
    </testcase>
    <testcase classname="c" name="skips">
      <skipped message="a &lt; &quot;b&quot;"/>
    </testcase>
  </testsuite>
</testsuites>
"#);
    }
}
