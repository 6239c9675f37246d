//! Expectations against responses: one row for each resource and outcome.

use ephor_engine::outcome::{RuleKind, Verdict};
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::{Str, Value};
use rustc_hash::FxHashMap;

use super::case::{Case, label, result_path};
use super::compare::{Compared, compare, same_object};
use super::hits::{Hit, hits};
use super::respond::{Response, last_segment};
use super::row::{Reason, Row};
use super::subjects::{Subject, subjects};
use super::suite::Expectation;

/// Objects of files, by the files' names.
type Files = FxHashMap<Str, Vec<Value>>;

/// The rows of all expectations. Faults are noted in the case.
pub(super) fn rows(case: &mut Case, responses: &[Response]) -> Vec<Row> {
    let results = std::mem::take(&mut case.results);
    let mut files = Files::default();
    for file in results.iter().flat_map(|result| result.patched_resources.iter().chain(generated_files(result))) {
        if !file.is_empty() && !files.contains_key(file) {
            files.insert(file.clone(), case.read(file));
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

fn generated_files(result: &Expectation) -> impl Iterator<Item = &Str> {
    let single = result.generated_resource.iter().filter(|_| result.generated_resources.is_none());
    result.generated_resources.iter().flatten().chain(single).filter(|file| !file.is_empty())
}

struct Judge<'j> {
    case: &'j Case,
    responses: &'j [Response],
    files: &'j Files,
    result: &'j Expectation,
    want: Verdict,
}

impl<'j> Judge<'j> {
    fn row(&self, resource: String, passed: bool, reason: Reason, message: impl Into<String>) -> Row {
        Row {
            policy: self.result.policy.clone(),
            rule: self.result.rule.clone().unwrap_or_default(),
            at: self.case.origin.map.nearest_span(&result_path(self.result)).start,
            resource,
            passed,
            reason,
            message: message.into(),
            diff: None,
        }
    }

    fn rows(&self, rows: &mut Vec<Row>) {
        let policies = self.policies().and_then(|policies| match self.unknown_rule(&policies) {
            None => Ok(policies),
            Some(message) => Err((Reason::NotFound, message)),
        });
        let policies = match policies {
            Ok(policies) => policies,
            Err((reason, message)) => {
                let mut named: Vec<String> = self.result.resources.iter().flatten().map(ToString::to_string).collect();
                if named.is_empty() {
                    named.push(String::new());
                }
                rows.extend(named.into_iter().map(|r| self.row(r, false, reason.clone(), message.clone())));
                return;
            }
        };
        let mut made = Vec::new();
        for wanted in subjects(self.case, self.result) {
            match wanted {
                Ok(subjects) => self.subjects(&policies, &subjects, &mut made, rows),
                Err(unknown) => rows.push(self.row(unknown.name, false, Reason::NotFound, unknown.message)),
            }
        }
        self.missing(&made, rows);
    }

    /// The policies that the result is about: more than one if files repeat a name.
    fn policies(&self) -> Result<Vec<usize>, (Reason, String)> {
        let wanted = self.result.policy.as_str();
        let policies = &self.case.policies.policies;
        let named = policies.iter().enumerate().filter(|(_, p)| p.program.id.name == wanted || p.program.key == wanted);
        let found: Vec<usize> = named.map(|(i, _)| i).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let bare = last_segment(wanted);
        if let Some(refused) = self.case.policies.refused.iter().find(|r| r.name == wanted || r.name == bare) {
            return Err((Reason::InvalidPolicy, format!("the policy is refused: {}", refused.reason)));
        }
        let known = policies.iter().flat_map(|p| [p.program.id.name.as_str(), p.program.key.as_str()]);
        Err((Reason::NotFound, with_nearest(format!("there is no policy `{wanted}`"), wanted, known)))
    }

    /// What is wrong with the rule's name, if anything.
    fn unknown_rule(&self, policies: &[usize]) -> Option<String> {
        let wanted = self.result.rule()?;
        let programs = policies.iter().filter_map(|i| self.case.policies.policies.get(*i)).map(|p| &p.program);
        let rules: Vec<_> = programs.flat_map(|program| &program.rules).collect();
        // Rules of policies in CEL have no names: upstream takes any.
        if rules.iter().any(|rule| rule.declared == wanted || rule.name == wanted || rule.name.is_empty()) {
            return None;
        }
        let text = format!("policy `{}` has no rule `{wanted}`", self.result.policy);
        Some(with_nearest(text, wanted, rules.iter().map(|rule| rule.name.as_str())))
    }

    /// Rows for the subjects that one name stands for. Where the rule applies to some of several namesakes, they are
    /// meant.
    fn subjects(&self, policies: &[usize], subjects: &[Subject], made: &mut Vec<&'j Value>, rows: &mut Vec<Row>) {
        let hit = |subject: &Subject| hits(self.case, self.responses, self.result, policies, *subject);
        let hits: Vec<Hit<'j>> = subjects.iter().flat_map(hit).collect();
        for hit in &hits {
            made.extend(&hit.after);
            rows.push(self.judged(hit));
        }
        if !hits.is_empty() {
            return;
        }
        // A target is not expected to be a trigger.
        let triggers = subjects.iter().filter(|s| !matches!(s, Subject::Target(_)) || subjects.len() == 1);
        for subject in triggers {
            let resource = subject.label(self.case);
            let met = self.want == Verdict::Skip;
            let reason = if met { Reason::Excluded } else { Reason::Want { want: self.want, got: Verdict::Skip } };
            let message = match self.result.rule() {
                Some(rule) => format!("rule `{rule}` does not apply to this resource"),
                None => "no rule of the policy applies to this resource".to_owned(),
            };
            rows.push(self.row(resource, met, reason, message));
        }
    }

    fn judged(&self, hit: &Hit<'_>) -> Row {
        let resource = hit.subject.label(self.case);
        let rule = self.result.rule().map_or_else(|| hit.outcome.rule.clone(), Str::new);
        let row = |passed, reason, message: &str| Row { rule, ..self.row(resource, passed, reason, message) };
        if hit.verdict != self.want {
            return row(false, Reason::Want { want: self.want, got: hit.verdict }, hit.message);
        }
        let files: Vec<&Str> = match hit.outcome.kind {
            RuleKind::Validate | RuleKind::Delete => Vec::new(),
            RuleKind::Mutate => self.result.patched_resources.iter().filter(|file| !file.is_empty()).collect(),
            RuleKind::Generate => generated_files(self.result).collect(),
        };
        if files.is_empty() {
            return row(true, Reason::Ok, hit.message);
        }
        let expected: Vec<&Value> = files.into_iter().filter_map(|file| self.files.get(file)).flatten().collect();
        let mut absent = None;
        let mut same = false;
        for object in &hit.after {
            match compare(object, &expected) {
                Compared::Same => same = true,
                Compared::Different(diff) => {
                    let message = format!("`{}` is not as expected", label(object));
                    return Row { diff: Some(diff), ..row(false, Reason::ResourceDiff, &message) };
                }
                Compared::Absent => absent = Some(*object),
            }
        }
        let all = self.result.fail_on_missing_resources == Some(true);
        match absent {
            Some(object) if self.want == Verdict::Pass && (all || !same) => {
                let message = format!("`{}` is not among the expected objects", label(object));
                row(false, Reason::ResourceError, &message)
            }
            None if !same && self.want == Verdict::Pass => {
                row(false, Reason::ResourceError, "there are expected objects, but the rule made none")
            }
            _ => row(true, Reason::Ok, hit.message),
        }
    }

    /// Rows for objects that should have been generated and were not.
    fn missing(&self, made: &[&Value], rows: &mut Vec<Row>) {
        if self.want != Verdict::Pass {
            return;
        }
        let expected = generated_files(self.result).filter_map(|file| self.files.get(file)).flatten();
        for object in expected.filter(|expected| !made.iter().any(|made| same_object(made, expected))) {
            let message = "the object is expected, but the rule did not generate it";
            rows.push(self.row(label(object), false, Reason::ResourceError, message));
        }
    }
}

/// `text` and the known word that `word` may have meant.
pub(super) fn with_nearest<'k>(text: String, word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    match nearest(word, known) {
        Some(near) => format!("{text}; did you mean `{near}`?"),
        None => text,
    }
}
