//! `ephor explain`: why each rule came to its verdict for a resource.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use ephor_cluster::Discovery;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::policy::Operation;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::Value;
use ephor_expr::value::Path;
use ephor_server::explain::{ExplainedRule, Explanation};

use super::CommandResult;
use crate::exit::Exit;
use crate::host::{Host, ObjectsAtHand};
use crate::load::{LoadedPolicies, load_exceptions, load_policies, read_objects, read_user};
use crate::locate::{Located, Origin};
use crate::output::paint::{Colour, paint};
use crate::output::plain;
use crate::ui::Ui;

/// Arguments of `ephor explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor explain policy.yaml pod.yaml
  ephor explain policies/ pod.yaml --rule check-team
  ephor explain policy.yaml pod.yaml --operation UPDATE --old pod-before.yaml

For each rule: what its match and exclude make of the resource, context entries and conditions with their values,
and the verdict, each with its line in the policy.")]
pub(super) struct Args {
    /// Policy file or directory.
    #[arg(value_name = "POLICY")]
    policy: String,
    /// Resource files, or `-` for standard input.
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<PathBuf>,
    /// Explain this rule only.
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// What is done with the resource.
    #[arg(long, default_value = "create", ignore_case = true)]
    operation: Op,
    /// The resource before, for updates.
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// Files of policy exceptions.
    #[arg(long, short = 'e', value_name = "PATH")]
    exception: Vec<String>,
    /// File of who asks: roles, cluster roles, user and groups.
    #[arg(long, short, value_name = "FILE")]
    userinfo: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Op {
    Create,
    Update,
    Delete,
    Connect,
}

impl From<Op> for Operation {
    fn from(op: Op) -> Self {
        match op {
            Op::Create => Self::Create,
            Op::Update => Self::Update,
            Op::Delete => Self::Delete,
            Op::Connect => Self::Connect,
        }
    }
}

/// Prints the decisions. Violations and errors are findings.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let mut loaded = load_policies(std::slice::from_ref(&args.policy), Discovery::kubernetes());
    let exceptions = load_exceptions(&args.exception);
    let mut errors: Vec<Located> = std::mem::take(&mut loaded.findings);
    errors.extend(exceptions.findings);
    errors.retain(Located::is_error);
    let mut read = |paths: &[PathBuf]| {
        read_all(paths).unwrap_or_else(|findings| {
            errors.extend(findings);
            Vec::new()
        })
    };
    let objects = read(&args.resources);
    let old = read(args.old.as_slice());
    let user = args.userinfo.as_deref().and_then(|path| read_user(path).map_err(|found| errors.extend(found)).ok());
    ui.findings(&errors);
    if !errors.is_empty() {
        return Ok(Exit::CouldNot);
    }
    let mut all: Vec<_> = exceptions.exceptions.into_iter().map(|(exception, _)| exception).collect();
    all.extend(std::mem::take(&mut loaded.exceptions).into_iter().map(|loaded| loaded.exception));
    let set = PolicySet::new(loaded.policies.iter().map(|policy| policy.program.clone()).collect());
    if let Some(wanted) = &args.rule {
        let mut names = set.programs().iter().flat_map(|program| program.rules.iter().map(|rule| &rule.name));
        if !names.any(|name| name == wanted) {
            return Err(anyhow::anyhow!("no rule of `{}` is called `{wanted}`", args.policy).into());
        }
    }
    let explaining = Explaining {
        set,
        exceptions: ExceptionSet::new(all),
        host: Host::new().with(ObjectsAtHand::new(objects.clone()).with_api()),
        rule: args.rule.as_deref(),
        colour: ui.colour(),
        loaded: &loaded,
    };
    let mut text = String::new();
    let mut exit = Exit::Clean;
    for object in objects {
        let mut review = Review::of_object(object, jiff::Timestamp::now());
        review.operation = args.operation.into();
        review.user.clone_from(&user);
        match review.operation {
            Operation::Delete => review.old_object = std::mem::take(&mut review.object),
            Operation::Update => review.old_object = before(&review, &old),
            Operation::Create | Operation::Connect => {}
        }
        if explaining.explain(review, &mut text) {
            exit = Exit::Findings;
        }
    }
    ui.result(&text)?;
    Ok(exit)
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Value>, Vec<Located>> {
    let mut objects = Vec::new();
    for path in paths {
        objects.extend(read_objects(path, &|_, _| false)?.into_iter().map(|loaded| loaded.object));
    }
    Ok(objects)
}

/// The object of the same name as it was; unchanged if it is not given.
fn before(review: &Review, old: &[Value]) -> Value {
    let same = |object: &&Value| {
        ["name", "namespace"].iter().all(|key| {
            object.str_at(&["metadata", key]).unwrap_or_default()
                == review.object.str_at(&["metadata", key]).unwrap_or_default()
        })
    };
    old.iter().find(same).unwrap_or(&review.object).clone()
}

struct Explaining<'a> {
    loaded: &'a LoadedPolicies,
    set: PolicySet,
    exceptions: ExceptionSet,
    host: Host,
    rule: Option<&'a str>,
    colour: bool,
}

impl Explaining<'_> {
    /// Writes what the rules make of one resource; whether there was a violation or an error.
    fn explain(&self, review: Review, out: &mut String) -> bool {
        let Review { gvk, namespace, name, operation, .. } = &review;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let subject = format!("{} {namespace}{slash}{name}", gvk.kind);
        let _ = writeln!(out, "{} {}\n", plain::line(&subject), operation.as_str());
        let explanation = Explanation::of(&self.set, &self.exceptions, review, &self.host);
        let mut policy = None;
        for rule in &explanation.rules {
            let wanted = match self.rule {
                Some(name) => rule.name == name,
                // A Pod's user need not read of rules for Deployments.
                None => !rule.for_others,
            };
            if let (true, Some(loaded)) = (wanted, self.loaded.policies.get(rule.policy)) {
                if policy.replace(rule.policy) != Some(rule.policy) {
                    let kind = loaded.document.str_at(&["kind"]).unwrap_or_default();
                    let policy = format!("{kind} {} ({})", rule.key, loaded.origin.file.name);
                    let _ = writeln!(out, "{}", plain::line(&policy));
                }
                self.rule(rule, &loaded.origin, out);
            }
        }
        if !explanation.changed.is_empty() {
            let _ = writeln!(out, "changed:\n{}", plain::text(&explanation.changed));
        }
        explanation.is_bad()
    }

    fn rule(&self, rule: &ExplainedRule, origin: &Origin, out: &mut String) {
        let (word, colour) = match rule.verdict {
            Some(verdict) => (verdict.as_str(), Colour::of(verdict)),
            None => ("does not apply", Colour::Dim),
        };
        let place = line(origin, &rule.path);
        let _ = writeln!(out, "  {place:>5}  rule {}: {}", plain::line(&rule.name), paint(word, colour, self.colour));
        for step in &rule.steps {
            let place = step.path.as_ref().map(|path| line(origin, path)).unwrap_or_default();
            let _ = writeln!(out, "  {place:>5}    {}", plain::block(&step.text, "           "));
        }
        out.push('\n');
    }
}

fn line(origin: &Origin, path: &Path) -> String {
    origin.map.nearest_span(path).start.line.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ephor_expr::yaml::{Limits, parse_values};

    use super::*;
    use crate::load::load_file;
    use crate::locate::SourceFile;

    const POLICY: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quota}
spec:
  rules:
  - name: limit
    match: {any: [{resources: {kinds: [ConfigMap, Secret]}}]}
    exclude: {any: [{resources: {namespaces: [kube-*]}}]}
    context:
    - name: size
      variable: {jmesPath: length(values(request.object.data))}
    preconditions:
      all:
      - {key: '{{ request.operation }}', operator: Equals, value: CREATE}
    validate:
      message: 'at most one key, not {{ size }}: {{ request.object.data }}'
      deny:
        conditions:
          any:
          - {key: '{{ size }}', operator: GreaterThan, value: 1}
  - name: pods
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: m, deny: {}}
";

    fn explained(objects: &str) -> String {
        let mut loaded = LoadedPolicies::default();
        load_file(&Arc::new(SourceFile { name: "quota.yaml".to_owned(), text: POLICY.to_owned() }), &mut loaded);
        let explaining = Explaining {
            set: PolicySet::new(loaded.policies.iter().map(|policy| policy.program.clone()).collect()),
            exceptions: ExceptionSet::default(),
            host: Host::new(),
            rule: None,
            colour: false,
            loaded: &loaded,
        };
        let mut text = String::new();
        for object in parse_values(objects, &Limits::default()).unwrap() {
            explaining.explain(Review::of_object(object, jiff::Timestamp::UNIX_EPOCH), &mut text);
        }
        text
    }

    #[test]
    fn each_step_has_its_line() {
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {x: 1, y: 2}}";
        insta::assert_snapshot!(explained(map));
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let secret =
            "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, data: {x: aHVudGVyMg==, y: c2VjcmV0}}";
        let text = explained(secret);
        assert!(text.contains("<redacted>") && !text.contains("aHVudGVyMg=="), "{text}");
    }
}
