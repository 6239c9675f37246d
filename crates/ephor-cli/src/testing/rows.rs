//! Expectations against responses: one row for each resource and outcome.

use ephor_engine::outcome::{Outcome, Verdict};
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::{Str, Value};
use rustc_hash::FxHashMap;

use super::case::{Case, label};
use super::compare::{Compared, compare, same_object};
use super::respond::{Response, last_segment};
use super::suite::{Expectation, ResourceSpec};
use crate::load::parse_operation;

/// Whether one expectation is met for one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The policy, as the test writes it.
    pub policy: Str,
    /// The rule, as the test writes it, or as it is called if the test names none.
    pub rule: Str,
    /// The resource: API version, kind, namespace and name.
    pub resource: String,
    /// Whether it is met.
    pub passed: bool,
    /// Why, in a word.
    pub reason: Reason,
    /// The rule's message, or what is wrong with the expectation.
    pub message: String,
}

/// Why a row passes or fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The verdict is the wanted one, and so are objects that are compared.
    Ok,
    /// The rule does not apply to the resource, and `skip` is wanted.
    Excluded,
    /// Another verdict.
    Want {
        /// What is wanted.
        want: Verdict,
        /// What came.
        got: Verdict,
    },
    /// The policy, rule or resource does not exist.
    NotFound,
    /// The policy was refused.
    InvalidPolicy,
    /// The object after is not the expected one.
    ResourceDiff,
    /// The expected object cannot be had.
    ResourceError,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Ok => f.write_str("Ok"),
            Reason::Excluded => f.write_str("Excluded"),
            Reason::Want { want, got } => write!(f, "Want {}, got {}", want.as_str(), got.as_str()),
            Reason::NotFound => f.write_str("Not found"),
            Reason::InvalidPolicy => f.write_str("Invalid policy"),
            Reason::ResourceDiff => f.write_str("Resource diff"),
            Reason::ResourceError => f.write_str("Resource error"),
        }
    }
}

/// A trigger or a target, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Trigger(usize),
    Target(usize),
}

/// An outcome for a subject.
struct Hit<'r> {
    subject: Subject,
    outcome: &'r Outcome,
    verdict: Verdict,
    message: &'r str,
    /// Objects to compare with the expected ones.
    after: Vec<&'r Value>,
}

/// The rows of all expectations. Faults are noted in the case.
pub(super) fn rows(case: &mut Case, responses: &[Response]) -> Vec<Row> {
    let results = std::mem::take(&mut case.results);
    let mut files = FxHashMap::default();
    for result in &results {
        for file in expected_files(result) {
            if !files.contains_key(file) {
                files.insert(file.clone(), case.read(file));
            }
        }
    }
    let mut rows = Vec::new();
    for result in &results {
        let judge = Judge { case, responses, files: &files, result, want: result.verdict().unwrap_or(Verdict::Pass) };
        judge.rows(&mut rows);
    }
    case.results = results;
    rows
}

fn expected_files(result: &Expectation) -> impl Iterator<Item = &Str> {
    let generated = result.generated_resources.iter().flatten();
    let single = result.generated_resource.iter().filter(|_| result.generated_resources.is_none());
    result.patched_resources.iter().chain(single).chain(generated).filter(|file| !file.is_empty())
}

struct Judge<'j> {
    case: &'j Case,
    responses: &'j [Response],
    files: &'j FxHashMap<Str, Vec<Value>>,
    result: &'j Expectation,
    want: Verdict,
}

impl<'j> Judge<'j> {
    fn row(&self, resource: String, passed: bool, reason: Reason, message: impl Into<String>) -> Row {
        Row {
            policy: self.result.policy.clone(),
            rule: self.result.rule.clone().unwrap_or_default(),
            resource,
            passed,
            reason,
            message: message.into(),
        }
    }

    fn rows(&self, rows: &mut Vec<Row>) {
        let policy = match self.policy() {
            Ok(policy) => policy,
            Err((reason, message)) => {
                let named = self.result.resources.iter().flatten().map(ToString::to_string);
                let named: Vec<String> = named.collect();
                let none = named.is_empty().then(String::new);
                rows.extend(named.into_iter().chain(none).map(|r| self.row(r, false, reason.clone(), message.clone())));
                return;
            }
        };
        if let Err(message) = self.rule(policy) {
            rows.push(self.row(String::new(), false, Reason::NotFound, message));
            return;
        }
        for wanted in self.selections() {
            match wanted {
                Ok(subjects) => self.subjects(policy, &subjects, rows),
                Err((name, message)) => rows.push(self.row(name, false, Reason::NotFound, message)),
            }
        }
    }

    /// The policy that the result is about.
    fn policy(&self) -> Result<usize, (Reason, String)> {
        let wanted = self.result.policy.as_str();
        let policies = &self.case.policies.policies;
        let is = |program: &ephor_engine::compile::Program| program.name == wanted || program.key == wanted;
        if let Some(found) = policies.iter().position(|p| is(&p.program)) {
            return Ok(found);
        }
        let bare = last_segment(wanted);
        if let Some(refused) = self.case.policies.refused.iter().find(|r| r.name == wanted || r.name == bare) {
            return Err((Reason::InvalidPolicy, format!("the policy is refused: {}", refused.reason)));
        }
        let known = policies.iter().flat_map(|p| [p.program.name.as_str(), p.program.key.as_str()]);
        Err((Reason::NotFound, with_nearest(format!("there is no policy `{wanted}`"), wanted, known)))
    }

    /// Whether the policy has the rule.
    fn rule(&self, policy: usize) -> Result<(), String> {
        let Some(wanted) = self.result.rule() else { return Ok(()) };
        let Some(loaded) = self.case.policies.policies.get(policy) else { return Ok(()) };
        let rules = &loaded.program.rules;
        if rules.iter().any(|rule| rule.declared == wanted || rule.name == wanted) {
            return Ok(());
        }
        let known = rules.iter().map(|rule| rule.name.as_str());
        let text = format!("policy `{}` has no rule `{wanted}`", loaded.program.key);
        Err(with_nearest(text, wanted, known))
    }

    /// What each name of the result stands for.
    fn selections(&self) -> Vec<Result<Vec<Subject>, (String, String)>> {
        let names = self.result.resources.iter().flatten();
        let specs = self.result.resource_specs.iter().flatten();
        let mut selections: Vec<_> = names
            .map(|name| {
                let (namespace, bare) = name.split_once('/').map_or((None, name.as_str()), |(ns, n)| (Some(ns), n));
                let named = |o: &Value| {
                    o.str_at(&["metadata", "name"]) == Some(bare)
                        && namespace.is_none_or(|ns| o.str_at(&["metadata", "namespace"]) == Some(ns))
                };
                self.found(name, &named)
            })
            .collect();
        selections.extend(specs.map(|spec| {
            let name = spec.name.clone().unwrap_or_default();
            self.found(&name, &|o| fits(spec, o))
        }));
        if selections.is_empty() {
            selections.push(Ok(self.all().map(|(subject, _)| subject).collect()));
        }
        selections
    }

    fn all(&self) -> impl Iterator<Item = (Subject, &'j Value)> {
        let triggers = self.case.triggers.iter().enumerate().map(|(i, o)| (Subject::Trigger(i), o));
        triggers.chain(self.case.targets.iter().enumerate().map(|(i, o)| (Subject::Target(i), o)))
    }

    fn found(&self, name: &str, fits: &dyn Fn(&Value) -> bool) -> Result<Vec<Subject>, (String, String)> {
        let found: Vec<(Subject, &Value)> = self.all().filter(|(_, o)| fits(o)).collect();
        if found.is_empty() {
            let known = self.all().filter_map(|(_, o)| o.str_at(&["metadata", "name"]));
            let bare = last_segment(name);
            let message = with_nearest(format!("there is no resource `{name}`"), bare, known);
            return Err((name.to_owned(), message));
        }
        // `kind` tells namesakes apart; where it fits none of them it is a slip that changes nothing.
        let kind = self.result.kind.as_deref().unwrap_or_default();
        let of_kind = |o: &Value| o.str_at(&["kind"]) == Some(kind);
        let narrow = found.iter().any(|(_, o)| of_kind(o));
        Ok(found.into_iter().filter(|(_, o)| !narrow || of_kind(o)).map(|(subject, _)| subject).collect())
    }

    /// Rows for the subjects that one name stands for.
    fn subjects(&self, policy: usize, subjects: &[Subject], rows: &mut Vec<Row>) {
        let hits: Vec<Hit<'_>> = subjects.iter().flat_map(|subject| self.hits(policy, *subject)).collect();
        for hit in &hits {
            rows.push(self.judged(hit));
        }
        if !hits.is_empty() {
            return;
        }
        for subject in subjects.iter().filter(|s| matches!(s, Subject::Trigger(_)) || subjects.len() == 1) {
            let resource = self.object(*subject).map(label).unwrap_or_default();
            let met = self.want == Verdict::Skip;
            let reason = if met { Reason::Excluded } else { Reason::Want { want: self.want, got: Verdict::Skip } };
            let rule = self.result.rule().map_or_else(|| "no rule of the policy".to_owned(), |r| format!("rule `{r}`"));
            let negation = if self.result.rule().is_some() { "does not apply" } else { "applies" };
            rows.push(self.row(resource, met, reason, format!("{rule} {negation} to this resource")));
        }
    }

    fn object(&self, subject: Subject) -> Option<&'j Value> {
        match subject {
            Subject::Trigger(i) => self.case.triggers.get(i),
            Subject::Target(i) => self.case.targets.get(i),
        }
    }

    fn hits(&self, policy: usize, subject: Subject) -> Vec<Hit<'j>> {
        let operation = self.result.operation.as_deref().and_then(parse_operation);
        let responses = self.responses.iter().filter(|r| r.policy == policy && r.operation == operation);
        let mut hits = Vec::new();
        for response in responses {
            for outcome in response.outcomes.iter().filter(|o| self.is_wanted(policy, o)) {
                self.hit(subject, response, outcome, &mut hits);
            }
        }
        hits
    }

    fn is_wanted(&self, policy: usize, outcome: &Outcome) -> bool {
        let Some(wanted) = self.result.rule() else { return true };
        let program = self.case.policies.policies.get(policy).map(|loaded| &loaded.program);
        let declared = program.and_then(|p| p.rules.get(outcome.index)).map(|rule| rule.declared.as_str());
        outcome.rule == wanted || declared == Some(wanted)
    }

    fn hit(&self, subject: Subject, response: &'j Response, outcome: &'j Outcome, hits: &mut Vec<Hit<'j>>) {
        let targets = outcome.detail.as_ref().map_or(&[][..], |detail| &detail.targets);
        let generated = outcome.detail.as_ref().map_or(&[][..], |detail| &detail.generated);
        match subject {
            Subject::Trigger(i) if i == response.trigger => {
                let after = if !targets.is_empty() {
                    targets.iter().map(|t| &t.after).collect()
                } else if !generated.is_empty() {
                    generated.iter().map(|g| &g.object).collect()
                } else if outcome.kind == ephor_engine::outcome::RuleKind::Mutate {
                    vec![&response.after]
                } else {
                    Vec::new()
                };
                hits.push(Hit { subject, outcome, verdict: outcome.verdict, message: &outcome.message, after });
            }
            Subject::Trigger(_) => {}
            Subject::Target(i) => {
                let Some(object) = self.case.targets.get(i) else { return };
                for target in targets.iter().filter(|t| same_object(&t.before, object)) {
                    hits.push(Hit {
                        subject,
                        outcome,
                        verdict: target.verdict,
                        message: &target.message,
                        after: vec![&target.after],
                    });
                }
            }
        }
    }

    fn judged(&self, hit: &Hit<'_>) -> Row {
        let resource = self.object(hit.subject).map(label).unwrap_or_default();
        let rule = self.result.rule.clone().filter(|r| !r.is_empty()).unwrap_or_else(|| hit.outcome.rule.clone());
        let row = |passed, reason, message: &str| Row { rule, ..self.row(resource, passed, reason, message) };
        if hit.verdict != self.want {
            return row(false, Reason::Want { want: self.want, got: hit.verdict }, hit.message);
        }
        let expected: Vec<&Value> =
            expected_files(self.result).filter_map(|file| self.files.get(file)).flatten().collect();
        if expected_files(self.result).next().is_none() {
            return row(true, Reason::Ok, hit.message);
        }
        let expected: Vec<Value> = expected.into_iter().cloned().collect();
        let mut absent = None;
        let mut same = 0;
        for object in &hit.after {
            match compare(object, &expected) {
                Compared::Same => same += 1,
                Compared::Different(diff) => return row(false, Reason::ResourceDiff, &diff),
                Compared::Absent => absent = Some(label(object)),
            }
        }
        match absent {
            Some(object) if self.want == Verdict::Pass && same == 0 => {
                row(false, Reason::ResourceError, &format!("`{object}` is not among the expected objects"))
            }
            _ if hit.after.is_empty() && self.want == Verdict::Pass => {
                row(false, Reason::ResourceError, "there are expected objects, but the rule made none")
            }
            _ => row(true, Reason::Ok, hit.message),
        }
    }
}

fn fits(spec: &ResourceSpec, object: &Value) -> bool {
    let (group, version) = object
        .str_at(&["apiVersion"])
        .unwrap_or_default()
        .rsplit_once('/')
        .unwrap_or(("", object.str_at(&["apiVersion"]).unwrap_or_default()));
    let has = |wanted: &Option<Str>, text: &str| wanted.as_ref().is_none_or(|w| w.is_empty() || w == text);
    has(&spec.group, group)
        && has(&spec.version, version)
        && has(&spec.kind, object.str_at(&["kind"]).unwrap_or_default())
        && has(&spec.namespace, object.str_at(&["metadata", "namespace"]).unwrap_or_default())
        && has(&spec.name, object.str_at(&["metadata", "name"]).unwrap_or_default())
}

fn with_nearest<'k>(text: String, word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    match nearest(word, known) {
        Some(near) => format!("{text}; did you mean `{near}`?"),
        None => text,
    }
}
