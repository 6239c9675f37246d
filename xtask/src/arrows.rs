//! Which crates may depend on which, and that the top-level modules of a crate form no circle.
//!
//! A circle of modules can only be understood, tested and moved as a whole. [`CIRCLES`] lists those that exist, each with
//! the reason; a new one fails the check, and so does an entry that no longer describes a circle exactly. Tests may refer
//! to anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The crates of the project, each with the ones that it may depend on.
const CRATES: &[(&str, &[&str])] = &[
    ("ephor-expr", &[]),
    ("ephor-engine", &["ephor-expr"]),
    ("ephor-cluster", &["ephor-expr"]),
    ("ephor-faults", &["ephor-cluster", "ephor-expr"]),
    ("ephor-kube", &["ephor-cluster", "ephor-expr"]),
    ("ephor-reports", &["ephor-cluster", "ephor-engine", "ephor-expr"]),
    ("ephor-runtime", &["ephor-cluster", "ephor-engine", "ephor-expr", "ephor-reports"]),
    ("ephor-admission", &["ephor-cluster", "ephor-engine", "ephor-expr", "ephor-reports", "ephor-runtime"]),
    ("ephor-background", &["ephor-cluster", "ephor-engine", "ephor-expr", "ephor-reports", "ephor-runtime"]),
    ("ephor-cleanup", &["ephor-cluster", "ephor-engine", "ephor-expr", "ephor-runtime"]),
    ("ephor-scan", &["ephor-cluster", "ephor-engine", "ephor-expr", "ephor-reports", "ephor-runtime"]),
    ("ephor-api", &["ephor-cluster", "ephor-expr", "ephor-reports", "ephor-runtime"]),
    ("ephor-install", &["ephor-admission", "ephor-cluster", "ephor-engine", "ephor-expr", "ephor-runtime"]),
    (
        "ephor-sandbox",
        &[
            "ephor-admission",
            "ephor-api",
            "ephor-background",
            "ephor-cleanup",
            "ephor-cluster",
            "ephor-engine",
            "ephor-expr",
            "ephor-install",
            "ephor-reports",
            "ephor-runtime",
            "ephor-scan",
        ],
    ),
    (
        "ephor-server",
        &[
            "ephor-admission",
            "ephor-api",
            "ephor-background",
            "ephor-cleanup",
            "ephor-cluster",
            "ephor-expr",
            "ephor-reports",
            "ephor-runtime",
            "ephor-scan",
        ],
    ),
    (
        "ephor-cli",
        &[
            "ephor-admission",
            "ephor-api",
            "ephor-background",
            "ephor-cleanup",
            "ephor-cluster",
            "ephor-engine",
            "ephor-expr",
            "ephor-install",
            "ephor-kube",
            "ephor-reports",
            "ephor-runtime",
            "ephor-sandbox",
            "ephor-scan",
            "ephor-server",
        ],
    ),
    ("ephor-testbed", &[]),
    ("ephor-scenarios", &["ephor-expr", "ephor-testbed"]),
    ("ephor-tests", &["ephor-cli", "ephor-cluster", "ephor-engine", "ephor-expr", "ephor-kube", "ephor-testbed"]),
];

/// A circle of top-level modules that exists.
struct Circle {
    package: &'static str,
    modules: &'static [&'static str],
    #[expect(dead_code, reason = "for readers")]
    reason: &'static str,
}

/// The circles that exist. `lib` stands for what `lib.rs` itself defines.
const CIRCLES: &[Circle] = &[
    Circle {
        package: "ephor-engine",
        modules: &[
            "autogen",
            "cel",
            "check",
            "compile",
            "conditions",
            "fetch",
            "gate",
            "matching",
            "outcome",
            "review",
            "rules",
            "scope",
            "trace",
        ],
        reason: "patterns, patches and phases belong in leaf modules that compiling and evaluating both use",
    },
    Circle {
        package: "ephor-background",
        modules: &["conditions", "reconcile", "requests", "rights", "state"],
        reason: "the state keeps what the reconciler says, so the types between them belong in a leaf module",
    },
    Circle {
        package: "ephor-scan",
        modules: &["adopt", "controller", "judge", "settle", "state"],
        reason: "the steps of the controller use its environment, which belongs in a module of its own",
    },
    Circle {
        package: "ephor-sandbox",
        modules: &["admit", "engine", "observe"],
        reason: "observers know the engine that they are started with",
    },
    Circle {
        package: "ephor-cluster",
        modules: &["cluster", "raw"],
        reason: "a raw request is answered by the trait that offers it",
    },
    Circle {
        package: "ephor-cluster",
        modules: &["error", "resource"],
        reason: "an error names its resource, and a resource is refused with an error",
    },
    Circle {
        package: "ephor-cli",
        modules: &["apply", "output", "ui"],
        reason: "results of `apply` belong in a module that printing and running both use",
    },
    Circle {
        package: "ephor-cli",
        modules: &["load", "locate"],
        reason: "places in files belong to what loading gives",
    },
    Circle { package: "ephor-scenarios", modules: &["run", "write"], reason: "writing refers to the state of a run" },
];

/// Fails if a crate depends on one that it may not, or if modules form a circle that is not known.
pub(crate) fn check() -> Result<()> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut faults = Vec::new();
    let mut packages: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(&crates).context("cannot read crates/")? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            packages.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    packages.sort();
    for package in &packages {
        let folder = crates.join(package);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml"))?;
        match CRATES.iter().find(|(name, _)| name == package) {
            None => faults.push(format!("{package} is not listed in xtask/src/arrows.rs")),
            Some((_, allowed)) => {
                let foreign = dependencies(&manifest).into_iter().filter(|name| !allowed.contains(&name.as_str()));
                faults.extend(foreign.map(|name| format!("{package} must not depend on {name}")));
            }
        }
        let known = CIRCLES.iter().filter(|circle| circle.package == package);
        let known: BTreeSet<BTreeSet<&str>> = known.map(|circle| circle.modules.iter().copied().collect()).collect();
        let arrows = Arrows::of(&folder.join("src"))?;
        let found = arrows.circles();
        for circle in &found {
            let names: BTreeSet<&str> = circle.iter().map(String::as_str).collect();
            if !known.contains(&names) {
                faults.push(format!("modules of {package} form a circle: {}", arrows.describe(circle)));
            }
        }
        for circle in known {
            let names: BTreeSet<String> = circle.iter().map(|&name| name.to_owned()).collect();
            if !found.contains(&names) {
                let names: Vec<&str> = circle.into_iter().collect();
                faults.push(format!("{package}: no such circle any more: {}", names.join(", ")));
            }
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

/// The crates of the project that a manifest depends on, other than for tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    section.lines().filter(|line| line.starts_with("ephor-")).map(name).collect()
}

/// What the top-level modules of a crate refer to, each with the files that say so.
#[derive(Debug, Default)]
struct Arrows(BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>>);

impl Arrows {
    fn of(source: &Path) -> Result<Self> {
        let mut files = Vec::new();
        collect(source, &mut files)?;
        let module = |file: &PathBuf| -> Vec<String> {
            let relative = file.strip_prefix(source).unwrap_or(file).with_extension("");
            let mut parts: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
                parts.pop();
            }
            parts
        };
        let modules: BTreeSet<String> = files.iter().filter_map(|file| module(file).first().cloned()).collect();
        let root = std::fs::read_to_string(source.join("lib.rs")).unwrap_or_default();
        let (exports, own) = exports(&code(&root), &modules);
        let mut arrows = Self::default();
        for file in &files {
            let path = module(file);
            let from = path.first().cloned().unwrap_or_else(|| "lib".to_owned());
            let text = if path.is_empty() { own.clone() } else { code(&std::fs::read_to_string(file)?) };
            for name in references(&text, &path) {
                let to = match (modules.contains(&name), exports.get(&name)) {
                    (true, _) => name,
                    (false, Some(module)) => module.clone(),
                    (false, None) => "lib".to_owned(),
                };
                if to != from {
                    arrows.0.entry(from.clone()).or_default().entry(to).or_default().insert(file.clone());
                }
            }
        }
        Ok(arrows)
    }

    /// All modules that a module leads to, directly or not.
    fn reachable(&self, from: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut next = vec![from.to_owned()];
        while let Some(module) = next.pop() {
            for to in self.0.get(&module).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        seen
    }

    /// The largest sets of modules that all lead to each other.
    fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let reachable: BTreeMap<&String, BTreeSet<String>> =
            self.0.keys().map(|module| (module, self.reachable(module))).collect();
        let mutual = |a: &String, b: &String| {
            reachable.get(a).is_some_and(|to| to.contains(b)) && reachable.get(b).is_some_and(|to| to.contains(a))
        };
        let circle = |module: &&String| -> BTreeSet<String> {
            self.0.keys().filter(|other| mutual(module, other)).cloned().collect()
        };
        self.0.keys().map(|module| circle(&module)).filter(|circle| circle.len() > 1).collect()
    }

    /// The arrows within a circle, each with a file that makes it.
    fn describe(&self, circle: &BTreeSet<String>) -> String {
        let mut lines = Vec::new();
        for from in circle {
            for (to, files) in self.0.get(from).into_iter().flatten().filter(|(to, _)| circle.contains(*to)) {
                let file = files.first().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy();
                lines.push(format!("{from} → {to} ({file}, {} in all)", files.len()));
            }
        }
        let names: Vec<&str> = circle.iter().map(String::as_str).collect();
        format!("{}\n  {}", names.join(", "), lines.join("\n  "))
    }
}

/// The source files below a folder that are not tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default();
        if name == "tests" || name == "main" {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

/// The text without comments and without what comes after the tests begin.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names that `lib.rs` exports from its modules, and its text without these statements. A module of `lib.rs` is a
/// name of its own there, so that its statements are read as if they said `crate::`.
fn exports(root: &str, modules: &BTreeSet<String>) -> (BTreeMap<String, String>, String) {
    let mut exports = BTreeMap::new();
    let mut own = String::new();
    for statement in root.split_inclusive(';') {
        let text = statement.trim();
        let tree = text.strip_prefix("pub use ").or_else(|| text.strip_prefix("pub(crate) use "));
        let tree = tree.map(|tree| tree.trim_start_matches("self::").trim_start_matches("crate::"));
        let module = tree.and_then(|tree| tree.split("::").next()).filter(|name| modules.contains(*name));
        match (tree, module) {
            (Some(tree), Some(module)) => {
                let names = tree.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty());
                exports.extend(names.skip(1).map(|name| (name.to_owned(), module.to_owned())));
            }
            _ => own.push_str(statement),
        }
    }
    (exports, own.replace("self::", "crate::"))
}

/// The first names of the paths from the root of the crate that a text in a module mentions.
fn references(text: &str, module: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        if !preceded_by_name(text, at) {
            found.extend(heads(&text[at + "crate::".len()..]));
        }
    }
    for (at, _) in text.match_indices("super::") {
        if preceded_by_name(text, at) || text[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &text[at..];
        let mut depth = 0;
        while let Some(after) = rest.strip_prefix("super::") {
            (rest, depth) = (after, depth + 1);
        }
        // Below the root, a name is one of the module's own; the root itself is left by one step per level.
        if depth == module.len() {
            found.extend(heads(rest));
        }
    }
    found
}

fn preceded_by_name(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$')
}

/// The first names of a path, or of each path in braces.
fn heads(path: &str) -> Vec<String> {
    let name = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = path.strip_prefix('{') else {
        return Some(name(path)).filter(|name| !name.is_empty() && name != "self").into_iter().collect();
    };
    let mut depth = 0;
    let mut heads = Vec::new();
    let mut begins = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && depth == 0 && (c.is_alphabetic() || c == '_') => {
                heads.push(name(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    heads.retain(|name| name != "self");
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Arrows {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Arrows::of(folder.path()).unwrap()
    }

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        crate_of(files).circles().into_iter().map(|circle| circle.into_iter().collect()).collect()
    }

    #[test]
    fn a_circle_is_found_however_its_paths_are_written() {
        let ways = [
            "use crate::b::B;",
            "use crate::{c::C, b::{B, D}};",
            "fn f() -> super::b::B {}",
            "use super::{b, c};",
            "use crate::B;",
        ];
        for way in ways {
            let files = [("lib.rs", "mod a; mod b; mod c; pub use b::{B, D};"), ("a.rs", way), ("c.rs", "")];
            let back = ("b/inner.rs", "use super::super::a::A;");
            assert_eq!(circles(&[&files[..], &[back]].concat()), [["a", "b"]], "{way}");
        }
    }

    #[test]
    fn tests_comments_and_arrows_one_way_are_no_circle() {
        let one_way = ("a.rs", "use crate::b::B;");
        let test = ("b.rs", "// crate::a\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}");
        assert!(circles(&[one_way, test, ("b/tests/x.rs", "use crate::a;")]).is_empty());
        assert!(circles(&[one_way, ("b.rs", "pub(super) fn f() {}"), ("a/inner.rs", "use super::A;")]).is_empty());
    }

    #[test]
    fn what_lib_defines_is_a_module_too() {
        assert_eq!(
            circles(&[("lib.rs", "mod a; use self::a::A; pub struct S;"), ("a.rs", "use crate::S;")]),
            [["a", "lib"]]
        );
    }

    #[test]
    fn dependencies_of_tests_do_not_count() {
        let manifest = "[package]\n\n[dependencies]\nephor-a.workspace = true\nephor-b = { path = \"x\" }\n\n\
                        [dev-dependencies]\nephor-c.workspace = true\n";
        assert_eq!(dependencies(manifest), ["ephor-a", "ephor-b"]);
    }
}
