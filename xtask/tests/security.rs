//! `docs/security.md` names the tests that hold each line. Every one of them exists.
//!
//! In: the tables of the page, and the sources of the workspace. A name is `module::test`, the end of the test's full
//! path; or a file of the project. A test that is renamed or removed fails here, so that the page stays true.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/security.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The Rust files under a directory.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The path of the module that a file is: the package and the files above it, without `src`, `tests`, `lib` and `mod`.
fn module(file: &Path) -> String {
    let relative = file.strip_prefix(root()).unwrap().with_extension("");
    let mut names: Vec<_> =
        relative.iter().map(|name| name.to_str().unwrap()).filter(|name| *name != "crates").collect();
    if names.get(1).is_some_and(|name| matches!(*name, "src" | "tests")) {
        names.remove(1);
    }
    if names.last().is_some_and(|name| matches!(*name, "mod" | "lib" | "main")) {
        names.pop();
    }
    names.join("::")
}

/// The paths of the tests in a file.
fn tests(module: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inline = None;
    let mut is_test = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            inline = Some(name);
        }
        let code = line.trim_start();
        if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ")
            && let Some((name, _)) = rest.split_once('(')
        {
            if is_test {
                let inline = inline.filter(|_| line.starts_with(' ')).map(|name| format!("{name}::"));
                found.push(format!("{module}::{}{name}", inline.unwrap_or_default()));
            }
            is_test = false;
        }
    }
    found
}

/// The texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What is wrong with a name.
fn fault(name: &str, tests: &[String]) -> Option<String> {
    if name.contains('/') {
        return (!root().join(name).is_file()).then(|| format!("there is no file `{name}`"));
    }
    let end = format!("::{name}");
    match tests.iter().filter(|test| test.ends_with(&end)).count() {
        1 => None,
        0 => Some(format!("there is no test `{name}`")),
        several => Some(format!("{several} tests are called `{name}`: name more of the path")),
    }
}

/// The rows of all tables whose last column is `Test`, as the number of their line and their last cell.
fn rows(page: &str) -> BTreeMap<usize, &str> {
    let mut rows = BTreeMap::new();
    let mut in_table = false;
    for (i, line) in page.lines().enumerate() {
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            in_table = false;
            continue;
        };
        let last = cells.rsplit('|').next().unwrap_or_default().trim();
        match last {
            "Test" => in_table = true,
            _ if !in_table || last == "---" => {}
            _ => drop(rows.insert(i + 1, last)),
        }
    }
    rows
}

fn all_tests() -> Vec<String> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    sources(&root().join("xtask"), &mut files);
    files.iter().flat_map(|file| tests(&module(file), &fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn every_line_of_the_security_page_is_held_by_a_test_that_exists() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (rows, tests) = (rows(&page), all_tests());
    assert!(rows.len() > 30, "the tables are not found: {rows:?}");
    let faults = rows.iter().flat_map(|(line, cell)| {
        let none = quoted(cell).next().is_none().then(|| "no test is named".to_owned());
        let unknown = quoted(cell).filter_map(|name| fault(name, &tests));
        none.into_iter().chain(unknown).map(move |fault| format!("{PAGE}:{line}: {fault}"))
    });
    let faults: Vec<_> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_name_that_no_test_or_more_than_one_has_is_a_fault() {
    let text = "#[test]\nfn a() {}\nfn helper() {}\nmod tests {\n    #[tokio::test(x)]\n    async fn b() {}\n}\n";
    let tests = [tests("p::m", text), tests("p::n", text)].concat();
    assert_eq!(tests, ["p::m::a", "p::m::tests::b", "p::n::a", "p::n::tests::b"]);
    for (name, want) in [
        ("m::a", None),
        ("n::tests::b", None),
        ("m::helper", Some("there is no test `m::helper`")),
        ("m::c", Some("there is no test `m::c`")),
        ("a", Some("2 tests are called `a`: name more of the path")),
        (PAGE, None),
        ("docs/none.md", Some("there is no file `docs/none.md`")),
    ] {
        assert_eq!(fault(name, &tests).as_deref(), want, "{name}");
    }
}

#[test]
fn rows_of_tables_about_tests_are_found() {
    let page = "| A | Test |\n|---|---|\n| x | `a` |\n| y | |\n\n| A | B |\n|---|---|\n| z | `b` |\n";
    assert_eq!(rows(page), BTreeMap::from([(3, "`a`"), (4, "")]));
}
