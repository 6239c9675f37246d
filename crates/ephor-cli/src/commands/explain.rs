//! `ephor explain`: why each rule came to its verdict for a resource.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use ephor_cluster::Discovery;
use ephor_engine::check::looks_at_user;
use ephor_engine::compile::Program;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::matching::Gvk;
use ephor_engine::policy::Operation;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};
use ephor_runtime::explain::{ExplainedRule, Explanation};

use super::CommandResult;
use crate::apply::PolicyBatch;
use crate::exit::Exit;
use crate::host::{Host, ObjectsAtHand};
use crate::load::{
    LoadedPolicies, Values, ValuesError, load_exceptions, load_policies, misspelt, read_objects, read_user,
    read_values, strays, unknown_names,
};
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
  ephor explain policy.yaml pod.yaml --operation CONNECT --subresource exec --userinfo alice.yaml

For each rule it prints how match and exclude select the resource, the values of context entries, conditions and CEL
expressions with their parts, and the verdict, each with its line in the policy.")]
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
    /// What is done with the resource; what the values say if they say it, else CREATE.
    #[arg(long, ignore_case = true)]
    operation: Option<Op>,
    /// The subresource that the request is for, such as `exec` or `status`. The resource file holds the parent, or what
    /// is sent.
    #[arg(long, value_name = "NAME")]
    subresource: Option<Str>,
    /// The resource before, for updates.
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// Files of policy exceptions.
    #[arg(long, short = 'e', value_name = "PATH")]
    exception: Vec<String>,
    /// The user who makes the request: user, groups, roles and cluster roles.
    #[arg(long, short, value_name = "FILE")]
    userinfo: Option<PathBuf>,
    /// Values for variables and context data (kind `Values`). Values for a policy make each policy be explained by
    /// itself.
    #[arg(long, short = 'f', visible_alias = "values-file", value_name = "FILE")]
    values: Option<PathBuf>,
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
    let mut all = exceptions.exceptions;
    all.append(&mut loaded.exceptions);
    ui.findings(&strays(&all, &loaded.policies));
    let mut read = |paths: &[PathBuf]| {
        read_all(paths).unwrap_or_else(|findings| {
            errors.extend(findings);
            Vec::new()
        })
    };
    let objects = read(&args.resources);
    let old = read(args.old.as_slice());
    let user = args.userinfo.as_deref().and_then(|path| read_user(path).map_err(|found| errors.extend(found)).ok());
    let values = args.values.as_deref().and_then(|path| read_values(path).map_err(|found| errors.extend(found)).ok());
    ui.findings(&errors);
    let misspelt: Vec<Located> = values.iter().flat_map(Values::names).filter_map(|name| misspelt(name)).collect();
    ui.findings(&misspelt);
    ui.findings(&values.iter().flat_map(|values| unknown_names(values, &loaded.policies)).collect::<Vec<_>>());
    if !errors.is_empty() {
        return Ok(Exit::CouldNot);
    }
    let programs: Vec<_> = loaded.policies.iter().map(|policy| policy.program.clone()).collect();
    if let Some(wanted) = &args.rule {
        let rules = programs.iter().flat_map(|program| &program.rules);
        let names: Vec<&str> = rules.map(|rule| rule.name.as_str()).collect();
        if !names.contains(&wanted.as_str()) {
            let near = nearest(wanted, names);
            let hint = near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
            return Err(anyhow::anyhow!("no rule of `{}` is called `{wanted}`{hint}", args.policy).into());
        }
    }
    let namespaces = values.iter().flat_map(|values| values.namespaces.iter().flatten());
    let at_hand = objects.iter().chain(namespaces).cloned().collect();
    let explaining = Explaining {
        batches: batches(programs, values.as_ref()),
        exceptions: ExceptionSet::new(all.into_iter().map(|loaded| loaded.exception).collect()),
        host: Host::new().with(ObjectsAtHand::new(at_hand).with_api()),
        rule: args.rule.as_deref(),
        colour: ui.colour(),
        loaded: &loaded,
        values: values.unwrap_or_default(),
        operation: args.operation.map(Operation::from),
    };
    let mut text = String::new();
    let mut exit = Exit::Clean;
    for object in objects {
        let mut review = Review::of_object(object, jiff::Timestamp::now());
        review.user.clone_from(&user);
        if !old.is_empty() {
            review.old_object = before(&review, &old);
        }
        if let Some(subresource) = &args.subresource {
            of_subresource(&mut review, subresource)?;
        }
        if explaining.explain(&review, &mut text).map_err(anyhow::Error::from)? {
            exit = Exit::Findings;
        }
    }
    ui.result(&text)?;
    Ok(exit)
}

/// Makes a review one of a subresource. What is sent there, such as `PodExecOptions`, stands for its parent.
fn of_subresource(review: &mut Review, subresource: &Str) -> anyhow::Result<()> {
    let served = Discovery::kubernetes();
    let sent = format_api_version(&review.gvk);
    let parent = served.iter().find(|resource| {
        resource.subresource(subresource).is_some_and(|s| s.kind == review.gvk.kind && s.api_version == sent)
    });
    if let Some(parent) = parent {
        review.gvk = Gvk::new(&parent.api_version(), &parent.kind);
    } else if let Some(resource) = served.find(&sent, &review.gvk.kind)
        && resource.subresource(subresource).is_none()
    {
        let known: Vec<&str> = resource.subresources.iter().map(|s| s.name.as_str()).collect();
        anyhow::bail!("{} have no subresource `{subresource}`; known: {}", resource.plural, known.join(", "));
    }
    review.subresource = subresource.clone();
    // A request for a part of an object says both.
    review.attributes.insert("subResource", subresource.clone());
    review.attributes.insert("name", review.name.clone());
    Ok(())
}

fn format_api_version(gvk: &Gvk) -> String {
    if gvk.group.is_empty() { gvk.version.to_string() } else { format!("{}/{}", gvk.group, gvk.version) }
}

/// The policies that are explained together: all, or each by itself if values are given for single ones.
fn batches(programs: Vec<Arc<Program>>, values: Option<&Values>) -> Vec<PolicyBatch> {
    if values.is_some_and(|values| values.policies.is_some()) {
        let alone = |(first, program): (usize, Arc<Program>)| PolicyBatch {
            first,
            name: program.id.name.clone(),
            set: PolicySet::new(vec![program]),
        };
        return programs.into_iter().enumerate().map(alone).collect();
    }
    vec![PolicyBatch { first: 0, name: Str::default(), set: PolicySet::new(programs) }]
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

/// Said of a rule that looks at the user when none is given.
const NO_USER: &str = "           the rule looks at the user, and none is given: name one with `--userinfo FILE`\n";

struct Explaining<'a> {
    loaded: &'a LoadedPolicies,
    batches: Vec<PolicyBatch>,
    values: Values,
    /// The operation, if the user names one.
    operation: Option<Operation>,
    exceptions: ExceptionSet,
    host: Host,
    rule: Option<&'a str>,
    colour: bool,
}

impl Explaining<'_> {
    /// Writes what the rules make of one resource; whether there was a violation or an error.
    fn explain(&self, review: &Review, out: &mut String) -> Result<bool, ValuesError> {
        let mut bad = false;
        for (i, batch) in self.batches.iter().enumerate() {
            let mut own = review.clone();
            own.namespace_labels = self.values.namespace_labels(&own.namespace);
            if let Some((parent, subresource)) = self.values.subresource(&own.gvk) {
                (own.gvk, own.subresource) = (parent, subresource);
            }
            self.values.apply(&mut own, &batch.name, None, self.operation)?;
            if i == 0 {
                let Review { gvk, namespace, name, operation, .. } = &own;
                let slash = if namespace.is_empty() { "" } else { "/" };
                let below = if own.subresource.is_empty() { String::new() } else { format!("/{}", own.subresource) };
                let subject = format!("{}{below} {namespace}{slash}{name}", gvk.kind);
                let _ = writeln!(out, "{} {}\n", plain::line(&subject), operation.as_str());
            }
            bad |= self.batch(batch, own, out);
        }
        Ok(bad)
    }

    /// Writes what the rules of some policies make of a resource; whether there was a violation or an error.
    fn batch(&self, batch: &PolicyBatch, review: Review, out: &mut String) -> bool {
        let no_user = review.user.is_none();
        let explanation = Explanation::of(&batch.set, &self.exceptions, review, &self.host);
        let mut policy = None;
        for rule in &explanation.rules {
            let wanted = match self.rule {
                Some(name) => rule.name == name,
                // A Pod's user need not read of rules for Deployments.
                None => !rule.for_others,
            };
            if let (true, Some(loaded)) = (wanted, self.loaded.policies.get(batch.first + rule.policy)) {
                if policy.replace(rule.policy) != Some(rule.policy) {
                    let kind = loaded.document.str_at(&["kind"]).unwrap_or_default();
                    let policy = format!("{kind} {} ({})", rule.key, loaded.origin.file.name);
                    let _ = writeln!(out, "{}", plain::line(&policy));
                }
                self.rule(rule, &loaded.origin, out);
                if no_user && rule.path.lookup(&loaded.document).is_some_and(looks_at_user) {
                    out.push_str(NO_USER);
                }
                out.push('\n');
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
        // Rules of policies in CEL have no names.
        let name = if rule.name.is_empty() { String::new() } else { format!(" {}", plain::line(&rule.name)) };
        let _ = writeln!(out, "  {place:>5}  rule{name}: {}", paint(word, colour, self.colour));
        for step in &rule.steps {
            let place = step.path.as_ref().map(|path| line(origin, path)).unwrap_or_default();
            let _ = writeln!(out, "  {place:>5}    {}", plain::block(&step.text, "           "));
        }
    }
}

fn line(origin: &Origin, path: &Path) -> String {
    origin.map.nearest_span(path).start.line.to_string()
}

#[cfg(test)]
mod tests {
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
        explained_by(POLICY, objects)
    }

    fn explained_by(policy: &str, objects: &str) -> String {
        let mut loaded = LoadedPolicies::default();
        load_file(&Arc::new(SourceFile { name: "quota.yaml".to_owned(), text: policy.to_owned() }), &mut loaded);
        let explaining = Explaining {
            batches: batches(loaded.policies.iter().map(|policy| policy.program.clone()).collect(), None),
            values: Values::default(),
            operation: None,
            exceptions: ExceptionSet::default(),
            host: Host::new(),
            rule: None,
            colour: false,
            loaded: &loaded,
        };
        let mut text = String::new();
        for object in parse_values(objects, &Limits::default()).unwrap() {
            explaining.explain(&Review::of_object(object, jiff::Timestamp::UNIX_EPOCH), &mut text).unwrap();
        }
        text
    }

    #[test]
    fn each_step_has_its_line() {
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {x: 1, y: 2}}";
        insta::assert_snapshot!(explained(map));
    }

    #[test]
    fn expressions_of_admission_policies_have_their_lines_and_values() {
        let policy = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations:
  - expression: object.metadata.name == 'b'
";
        let text = explained_by(policy, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
        assert!(text.contains("8    validations[0].expression: `object.metadata.name == 'b'` = false"), "{text}");
        assert!(text.contains("failed expression: object.metadata.name == 'b'"), "{text}");
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let secret =
            "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b}, data: {x: aHVudGVyMg==, y: c2VjcmV0}}";
        let text = explained(secret);
        assert!(text.contains("<redacted>") && !text.contains("aHVudGVyMg=="), "{text}");
        // Nor the beginning of one that is too long to be shown.
        let long = "S2V5".repeat(200);
        let secret =
            format!("{{apiVersion: v1, kind: Secret, metadata: {{name: a, namespace: b}}, data: {{x: {long}}}}}");
        let policy = "\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: keys}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  validations: [{expression: object.data.x.size() < 4 || object.data.y == 'x'}]
";
        let text = explained_by(policy, &secret);
        assert!(text.contains("`object.data.x` = \"<redacted>\"") && !text.contains("S2V5S2V5"), "{text}");
    }
}
