//! `ephor check`: faults and old spellings in policies.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use ephor_cluster::Discovery;
use similar::TextDiff;

use super::CommandResult;
use super::cluster::ClusterArgs;
use crate::exit::Exit;
use crate::fix;
use crate::fresh;
use crate::load::{self, LoadedPolicies, load_policies, load_stored, strays};
use crate::locate::Located;
use crate::output::{findings, plain};
use crate::ui::Ui;

/// Arguments of `ephor check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor check policies/
  ephor check policies/ --strict --output-format github
  ephor check policies/ --diff
  ephor check policies/ --fix
  ephor check --cluster

Checks ClusterPolicy, Policy, CleanupPolicy, ClusterCleanupPolicy, PolicyException and GlobalContextEntry
documents; it skips other documents in directories. With `--cluster` it looks at the policies stored in a cluster and
lists those that Ephor would not enforce.

Exit codes: 0 no errors, 1 errors (with `--strict` also warnings, with `--diff` also anything to fix), 2 some input
cannot be read.")]
pub(super) struct Args {
    /// Policy files, directories, globs, or `-` for standard input.
    #[arg(required_unless_present = "cluster", conflicts_with = "cluster", value_name = "PATH")]
    paths: Vec<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Output format.
    #[arg(long, short, default_value = "text", value_name = "FORMAT")]
    output_format: Format,
    /// Count warnings as findings.
    #[arg(long)]
    strict: bool,
    /// Rewrite deprecated syntax in the files before linting. A rewrite never changes the meaning.
    #[arg(long, conflicts_with = "cluster")]
    fix: bool,
    /// Print what `--fix` would change, and change nothing.
    #[arg(long, visible_alias = "dry-run", conflicts_with = "cluster")]
    diff: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// With the source line and a caret.
    Text,
    /// A line for each finding.
    Concise,
    /// An array of objects.
    Json,
    /// For code scanning.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
    /// A test report.
    Junit,
}

/// Looks for faults, and fixes old spellings if asked to.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    if args.diff {
        return show_fixes(args, ui);
    }
    let fixed = if args.fix { write_fixes(args, ui)? } else { Exit::Clean };
    let loaded = if args.cluster.cluster {
        let cluster = args.cluster.connect()?;
        load_stored(&*cluster, args.cluster.namespace.as_deref()).context("cannot read the policies of the cluster")?
    } else {
        load_policies(&args.paths, Discovery::kubernetes())
    };
    let Checked { text, summary, exit } = check(loaded, args, ui);
    ui.result(&text)?;
    if !ui.quiet() {
        ui.say(&summary);
    }
    Ok(exit.max(fixed))
}

/// What a check came to.
struct Checked {
    text: String,
    summary: String,
    exit: Exit,
}

fn check(mut loaded: LoadedPolicies, args: &Args, ui: &Ui) -> Checked {
    let mut found = std::mem::take(&mut loaded.findings);
    found.extend(strays(&loaded.exceptions, &loaded.policies));
    // What a cluster has stored is no text to rewrite.
    if !args.cluster.cluster {
        for file in &loaded.files {
            fix::point_out(file, &mut found);
        }
    }
    let files: Vec<String> = loaded.files.iter().map(|file| file.name.clone()).collect();
    sort(&mut found, &files);
    if ui.quiet() {
        found.retain(|finding| args.strict || finding.is_error());
    }
    let text = match args.output_format {
        Format::Text => findings::text(&found, ui.colour()),
        Format::Concise => findings::concise(&found),
        Format::Json => findings::json(&found),
        Format::Sarif => findings::sarif(&found),
        Format::Github => findings::github(&found),
        Format::Junit => findings::junit(&found, &files, args.strict),
    };
    let where_from = if args.cluster.cluster { ("stored object", "stored objects") } else { ("file", "files") };
    Checked { text, summary: summary(&loaded, &found, where_from), exit: exit(&found, args.strict) }
}

fn exit(found: &[Located], strict: bool) -> Exit {
    let unread = |f: &Located| matches!(f.code, "unreadable" | "no-policies" | "invalid-yaml");
    if found.iter().any(unread) {
        Exit::CouldNot
    } else if found.iter().any(|finding| strict || finding.is_error()) {
        Exit::Findings
    } else {
        Exit::Clean
    }
}

/// By file, in the order given, and by place; what has none comes first.
fn sort(found: &mut [Located], files: &[String]) {
    let file = |finding: &Located| {
        finding.file.as_ref().map(|file| files.iter().position(|name| *name == file.name).unwrap_or(files.len()))
    };
    found.sort_by_cached_key(|finding| (file(finding), finding.span.map(|(start, _)| start.offset)));
}

fn summary(loaded: &LoadedPolicies, found: &[Located], (one, many): (&str, &str)) -> String {
    let plural = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let errors = found.iter().filter(|finding| finding.is_error()).count();
    let mut text = format!(
        "{}, {} in {}",
        plural(errors, "error", "errors"),
        plural(found.len() - errors, "warning", "warnings"),
        plural(loaded.files.len(), one, many),
    );
    if loaded.passed_over > 0 {
        let documents = plural(loaded.passed_over, "document that is no policy", "documents that are no policies");
        text.push_str("; passed over ");
        text.push_str(&documents);
    }
    text
}

/// The files that can be rewritten, each once.
fn fixable(args: &Args) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut paths = BTreeSet::new();
    for argument in &args.paths {
        paths.extend(load::expand(argument)?);
    }
    if paths.contains(Path::new(load::STDIN)) && !args.diff {
        anyhow::bail!("standard input cannot be fixed in place: use `--diff`, or give a file");
    }
    Ok(paths)
}

fn show_fixes(args: &Args, ui: &Ui) -> CommandResult {
    let mut exit = Exit::Clean;
    for path in fixable(args)? {
        let file = load::read(&path).map_err(anyhow::Error::from)?;
        let Some(fixed) = fix::fix(&file.text) else { continue };
        exit = Exit::Findings;
        let diff = TextDiff::from_lines(file.text.as_str(), fixed.text.as_str());
        let mut unified = diff.unified_diff();
        let name = clean(&file.name, std::env::current_dir);
        let name = plain::line(&name);
        let (old, new) = (format!("a/{name}"), format!("b/{name}"));
        ui.result(&unified.context_radius(3).header(&old, &new).to_string())?;
    }
    Ok(exit)
}

/// A path as `git apply` and `patch -p1` know it: below the directory where they run, and below `/` for a file outside
/// of that directory.
fn clean(path: &str, current_dir: fn() -> io::Result<PathBuf>) -> String {
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => names.push(name.to_string_lossy()),
            Component::ParentDir if names.pop().is_none() && !path.starts_with('/') => {
                return match current_dir() {
                    Ok(dir) => clean(&dir.join(path).to_string_lossy(), || Ok(PathBuf::new())),
                    Err(_) => path.to_owned(),
                };
            }
            _ => {}
        }
    }
    names.join("/")
}

/// Rewrites the files that hold old spellings. One that cannot be written is said, and the others are written.
fn write_fixes(args: &Args, ui: &Ui) -> anyhow::Result<Exit> {
    let mut exit = Exit::Clean;
    let mut files = 0;
    let mut spellings = 0;
    for path in fixable(args)? {
        // What cannot be read is reported by the check that follows.
        let Ok(file) = load::read(&path) else { continue };
        let Some(fixed) = fix::fix(&file.text) else { continue };
        let written = refuse_links(&path, &args.paths).and_then(|()| fresh::replace(&path, &fixed.text));
        if let Err(error) = written {
            ui.say(&format!("error: cannot write `{}`: {error}", path.display()));
            exit = Exit::CouldNot;
            continue;
        }
        files += 1;
        spellings += fixed.done.len();
    }
    if !ui.quiet() {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        ui.say(&format!("fixed {spellings} old spelling{} in {files} file{}", plural(spellings), plural(files)));
    }
    Ok(exit)
}

/// Refuses a file that is reached through a link: a directory that somebody else wrote must not lead out of itself. Of
/// an absolute path, what comes before the end of its argument is the user's own.
fn refuse_links(path: &Path, arguments: &[String]) -> io::Result<()> {
    let prefix = |argument: &String| {
        let plain = Path::new(argument).components().take_while(|part| {
            let text = part.as_os_str().to_string_lossy();
            !text.contains(['*', '?', '[', '{'])
        });
        let plain: PathBuf = plain.collect();
        path.starts_with(&plain).then(|| plain.components().count())
    };
    let own = if path.is_absolute() { arguments.iter().filter_map(prefix).max().unwrap_or(1) } else { 1 };
    path.ancestors().filter(|part| part.components().count() >= own).try_for_each(fresh::refuse_link)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::cluster_tests::cluster;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn stored_policies_that_would_not_be_enforced_are_listed() {
        let cluster = cluster(
            "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  webhookConfiguration: {matchConditions: [{name: a, expression: 'true'}]}
  rules:
  - name: signature
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [{imageReferences: ['*'], attestors: [{entries: [{keys: {publicKeys: k}}]}]}]
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: fine, namespace: shop}
spec:
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, pattern: {metadata: {labels: {team: '?*'}}}}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: cel}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: 'true'}]
",
        );
        let line = Line::try_parse_from(["check", "--cluster", "--output-format", "concise"]).unwrap();
        let loaded = load_stored(&cluster, None).unwrap();
        let Checked { text, summary, exit } = check(loaded, &line.args, &Ui::new(true, false));
        insta::assert_snapshot!(format!("{text}{summary}"), @r"
        ClusterPolicy/signed:13:5: error[not-supported]: `verifyImages` is not supported yet (spec.rules[0].verifyImages)
        1 error, 0 warnings in 3 stored objects
        ");
        assert_eq!(exit, Exit::Findings);
        let loaded = load_stored(&cluster, Some("elsewhere")).unwrap();
        assert!(loaded.files.iter().all(|file| !file.name.starts_with("Policy/")));
    }

    #[test]
    fn names_in_diffs_are_clean() {
        for (path, want) in [
            ("a.yaml", "a.yaml"),
            ("././p/a.yaml", "p/a.yaml"),
            ("p//q/../a.yaml", "p/a.yaml"),
            ("/tmp/../a.yaml", "a.yaml"),
            ("/../a.yaml", "a.yaml"),
            // Outside of the directory.
            ("../a.yaml", "home/a.yaml"),
            ("p/../../a.yaml", "home/a.yaml"),
            ("../../../a.yaml", "a.yaml"),
        ] {
            assert_eq!(clean(path, || Ok("/home/me".into())), want, "{path}");
        }
    }

    #[test]
    fn files_and_a_cluster_exclude_each_other() {
        for words in [&["check"][..], &["check", "--cluster", "a.yaml"], &["check", "--cluster", "--fix"]] {
            assert!(Line::try_parse_from(words).is_err(), "{words:?}");
        }
    }
}
