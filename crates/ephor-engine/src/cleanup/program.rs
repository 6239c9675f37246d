//! A compiled cleanup policy, and what it says of one object.

use ephor_expr::budget::Budget;
use ephor_expr::value::{Path, decode};
use ephor_expr::{Str, Value};

use crate::check::check_cleanup;
use crate::compile::decode_finding;
use crate::conditions::CompiledConditions;
use crate::diagnostic::Diagnostic;
use crate::fetch::{Fact, Facts, Fetch};
use crate::gate::{AllowedFetch, Asker};
use crate::matching::{KindSelector, MatchError, MatchInput, MatchMode, Matcher, NamespaceLabels, applies};
use crate::outcome::Fault;
use crate::policy::{CleanupPolicy, Conditions, DeletionPropagation};
use crate::review::Review;
use crate::rules::conditions::{self, ConditionError};
use crate::schedule::{Grammar, Schedule};
use crate::scope::{Answer, AtBase, Compiler, Entry, Scope, Seed, Template, World};

/// A cleanup policy, compiled: immutable, shared by all evaluations.
#[derive(Debug)]
pub struct CleanupProgram {
    /// The policy's name.
    pub name: Str,
    /// The namespace of a `CleanupPolicy`; it bounds what is selected and read.
    pub namespace: Option<Str>,
    /// `namespace/name` of a `CleanupPolicy`, else the name.
    pub key: Str,
    /// When it runs.
    pub schedule: Schedule,
    /// How dependents are treated; `None` leaves it to the API server.
    pub propagation: Option<DeletionPropagation>,
    matches: Matcher,
    exclude: Option<Matcher>,
    context: Vec<Entry>,
    conditions: Option<CompiledConditions<Template>>,
}

/// What a cleanup policy says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanupVerdict {
    /// It is to be deleted.
    Delete,
    /// It is not selected.
    Unselected,
    /// It is selected, but the conditions do not hold; their messages, if any.
    Keep(Option<Str>),
    /// It cannot be told.
    Error(Str, Option<Fault>),
}

/// How far an evaluation got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaned {
    /// The verdict.
    Done(CleanupVerdict),
    /// These facts are needed; add them and evaluate again.
    Need(Vec<AllowedFetch>),
}

impl CleanupProgram {
    /// Compiles a document that may be a `CleanupPolicy` or `ClusterCleanupPolicy`; all its faults if it cannot be
    /// used.
    pub fn compile(document: &Value) -> Result<Self, Vec<Diagnostic>> {
        let mut found = check_cleanup(document);
        if found.iter().any(Diagnostic::is_error) {
            return Err(found);
        }
        let policy: CleanupPolicy =
            decode(document).map_err(|faults| faults.into_iter().map(decode_finding).collect::<Vec<_>>())?;
        let spec = &policy.spec;
        let base = Path::root().key("spec");
        let schedule = Schedule::parse(&spec.schedule, Grammar::Minutes)
            .map_err(|fault| vec![Diagnostic::error("schedule", base.key("schedule"), fault)])?;
        let matcher = |block, key: &str| {
            Matcher::compile(block, MatchMode::Cleanup)
                .map_err(|error| vec![Diagnostic::error("invalid-selector", base.key(key), error.to_string())])
        };
        let matches = matcher(&spec.matches, "match")?;
        let exclude = spec.exclude.as_ref().map(|block| matcher(block, "exclude")).transpose()?;
        let mut compiler = Compiler::new(AtBase::Target, &mut found);
        let context = Entry::compile_all(spec.context.as_ref(), &base.key("context"), &mut compiler);
        let conditions = spec.conditions.clone().map(|block| {
            let at = base.key("conditions");
            CompiledConditions::compile(&Conditions::AnyAll(block), &at, |value, path| compiler.template(value, path))
        });
        let conditions = conditions
            .transpose()
            .map_err(|error| vec![Diagnostic::error("condition", error.path().clone(), error.to_string())])?;
        let name = policy.metadata.name;
        let namespace = (policy.kind == "CleanupPolicy")
            .then(|| policy.metadata.namespace.filter(|ns| !ns.is_empty()).unwrap_or_else(|| "default".into()));
        Ok(Self {
            key: namespace.as_ref().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}").into()),
            name,
            namespace,
            schedule,
            propagation: spec.deletion_propagation_policy,
            matches,
            exclude,
            context,
            conditions,
        })
    }

    /// The kinds that can be selected; `None` if any can.
    pub fn kinds(&self) -> Option<Vec<&KindSelector>> {
        self.matches.kinds()
    }

    /// What the policy says of the review's object, which conditions see as `target`.
    pub fn evaluate(&self, review: &Review, facts: &Facts) -> Cleaned {
        let asker = Asker { namespace: self.namespace.as_deref(), effects: review.effects };
        let seed = Seed { policy: &self.key, rule: "", review: review.seed };
        let world = World::new(facts, asker, review.now, seed, Budget::default());
        match self.judge(review, facts, &world) {
            Some(verdict) => Cleaned::Done(verdict),
            None => Cleaned::Need(world.into_needs()),
        }
    }

    /// `None` when facts are missing.
    fn judge<'e>(&'e self, review: &'e Review, facts: &'e Facts, world: &'e World<'e>) -> Option<CleanupVerdict> {
        if self.namespace.as_ref().is_some_and(|own| *own != review.namespace) {
            return Some(CleanupVerdict::Unselected);
        }
        match applies(&self.matches, self.exclude.as_ref(), &input(review, facts)) {
            Ok(true) => {}
            Ok(false) => return Some(CleanupVerdict::Unselected),
            Err(MatchError::NamespaceLabelsUnavailable { namespace }) => {
                let reason = match world.ask(Fetch::NamespaceLabels { name: namespace.clone() }) {
                    Answer::Pending => return None,
                    Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
                        reason.clone()
                    }
                    Answer::Known(_) | Answer::Refused(_) => "there is no such namespace".to_owned(),
                };
                let text = format!("cannot tell whether the object is selected: namespace `{namespace}`: {reason}");
                return Some(CleanupVerdict::Error(text.into(), None));
            }
        }
        let Some(block) = &self.conditions else { return Some(CleanupVerdict::Delete) };
        let request = Value::object(review.request_value());
        let mut scope = Scope::new(world, review, request, "", &self.context);
        scope.bind_object("target", review.object.clone());
        match conditions::evaluate(block, &mut scope) {
            Ok(outcome) if outcome.holds => Some(CleanupVerdict::Delete),
            Ok(outcome) => Some(CleanupVerdict::Keep(outcome.message())),
            Err(ConditionError::Pending) => None,
            Err(ConditionError::Unresolved(text, fault) | ConditionError::Failed(text, fault)) => {
                Some(CleanupVerdict::Error(text.into(), Some(fault)))
            }
            Err(ConditionError::Budget(error)) => Some(CleanupVerdict::Error(error.to_string().into(), None)),
        }
    }
}

fn input<'r>(review: &'r Review, facts: &'r Facts) -> MatchInput<'r> {
    let fetched = || match facts.get(&Fetch::NamespaceLabels { name: review.namespace.clone() }) {
        Some(Fact::Found(labels)) => labels.as_object(),
        _ => None,
    };
    let labels = review.namespace_labels.as_ref().and_then(Value::as_object).or_else(fetched);
    MatchInput {
        gvk: &review.gvk,
        subresource: "",
        name: &review.name,
        generate_name: "",
        namespace: &review.namespace,
        object: &review.object,
        operation: review.operation,
        user: None,
        namespace_labels: labels.map_or(NamespaceLabels::Unknown, NamespaceLabels::Known),
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    fn policy(head: &str, spec: &str) -> CleanupProgram {
        let text = format!("apiVersion: kyverno.io/v2\n{head}\nspec: {{schedule: '* * * * *', {spec}}}");
        CleanupProgram::compile(&parse_value(&text).unwrap()).unwrap()
    }

    fn clustered(spec: &str) -> CleanupProgram {
        policy("kind: ClusterCleanupPolicy\nmetadata: {name: c}", spec)
    }

    fn verdict(program: &CleanupProgram, object: &str, facts: &Facts) -> Cleaned {
        let review = Review::of_object(parse_value(object).unwrap(), jiff::Timestamp::UNIX_EPOCH);
        program.evaluate(&review, facts)
    }

    const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, labels: {x: y}}}";
    const PODS: &str = "match: {any: [{resources: {kinds: [Pod]}}]}";

    #[test]
    fn selected_objects_are_deleted_when_the_conditions_hold() {
        let by_label = |value| {
            let condition = format!(
                "{{key: '{{{{ target.metadata.labels.x }}}}', operator: Equals, value: {value}, message: too late}}"
            );
            clustered(&format!("{PODS}, conditions: {{all: [{condition}]}}"))
        };
        let none = Facts::new();
        assert_eq!(verdict(&clustered(PODS), POD, &none), Cleaned::Done(CleanupVerdict::Delete));
        assert_eq!(verdict(&by_label("y"), POD, &none), Cleaned::Done(CleanupVerdict::Delete));
        assert_eq!(verdict(&by_label("z"), POD, &none), Cleaned::Done(CleanupVerdict::Keep(Some("too late".into()))));
        let other = "{apiVersion: v1, kind: Secret, metadata: {name: p, namespace: a}}";
        assert_eq!(verdict(&by_label("y"), other, &none), Cleaned::Done(CleanupVerdict::Unselected));
    }

    #[test]
    fn a_namespaced_policy_deletes_at_home_only() {
        let at =
            |namespace| policy(&format!("kind: CleanupPolicy\nmetadata: {{name: c, namespace: {namespace}}}"), PODS);
        let none = Facts::new();
        assert_eq!(verdict(&at("a"), POD, &none), Cleaned::Done(CleanupVerdict::Delete));
        assert_eq!(verdict(&at("b"), POD, &none), Cleaned::Done(CleanupVerdict::Unselected));
        assert_eq!(at("a").key, "a/c");
    }

    #[test]
    fn what_cannot_be_told_is_an_error_with_its_place() {
        let program = clustered(&format!(
            "{PODS}, conditions: {{any: [{{key: '{{{{ target.zz }}}}', operator: Equals, value: x}}]}}"
        ));
        let Cleaned::Done(CleanupVerdict::Error(text, Some(fault))) = verdict(&program, POD, &Facts::new()) else {
            panic!("no error");
        };
        assert!(text.contains("zz"), "{text}");
        assert_eq!(fault.path.to_string(), "spec.conditions.any[0].key");
    }

    #[test]
    fn labels_of_namespaces_are_asked_for() {
        let program =
            clustered("match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {t: '1'}}}}]}");
        let mut facts = Facts::new();
        let Cleaned::Need(needs) = verdict(&program, POD, &facts) else { panic!("nothing is asked") };
        for need in needs {
            facts.insert(need.into_fetch(), Fact::Found(parse_value("{t: '1'}").unwrap()));
        }
        assert_eq!(verdict(&program, POD, &facts), Cleaned::Done(CleanupVerdict::Delete));
    }
}
