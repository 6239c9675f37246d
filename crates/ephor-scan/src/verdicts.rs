//! Which verdicts about existing objects a change of policies would change.
//!
//! In go the policies and exceptions before and after the change, and a cluster to read objects from. Out come the
//! rules whose verdict about an object would be another: what people ask before they turn Audit into Enforce. Objects
//! are judged as the reports role judges them, and only by the policies that change.

use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::{Cluster, object};
use ephor_engine::matching::{Gvk, ResourceFilters};
use ephor_engine::outcome::Verdict;
use ephor_expr::{Str, Value};
use ephor_reports::entry::ResultRule;
use ephor_runtime::facts::Answers;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::PolicyId;

use crate::existing::{Documents, Unjudged, each, namespaces, reportable};
use crate::judge::judge;
use crate::reportable::{Reportable, kind_of};

/// What to compare.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'a> {
    /// The documents that are stored.
    pub before: &'a Documents,
    /// Those that would be stored.
    pub after: &'a Documents,
    /// The namespace that matters, if only one does.
    pub namespace: Option<&'a str>,
    /// The labels of namespaces that do not exist, where objects are taken out of their context.
    pub assumed_labels: Option<&'a Value>,
    /// The objects that no policy sees.
    pub filters: &'a ResourceFilters,
}

/// A rule whose verdict about an object would change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Changed {
    /// The policy: `NAME` or `NAMESPACE/NAME`.
    pub policy: Str,
    /// The rule.
    pub rule: Str,
    /// The namespace of the object; empty for one outside of namespaces.
    pub namespace: Str,
    /// Kind and name of the object: `Deployment/web`.
    pub object: Str,
    /// What would change.
    pub turn: Turn,
    /// What the rule says, after the change if it is judged then.
    pub message: Str,
}

/// How a verdict would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// The object would begin to fail.
    BeginsToFail,
    /// The rule could not be evaluated any more.
    BeginsToErr,
    /// The object would not fail any more.
    CeasesToFail,
}

/// The changes of verdicts.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    /// The changes, in order of policy, rule, namespace and object.
    pub changed: Vec<Changed>,
    /// How many objects were judged.
    pub judged: usize,
    /// How many rules fail for an object before and after.
    pub still_failing: usize,
    /// What was not judged.
    pub unjudged: Unjudged,
}

impl Comparison<'_> {
    /// Judges the objects of `cluster` that the policies match.
    ///
    /// # Errors
    ///
    /// If the cluster does not say which kinds it serves. What cannot be listed is told of in the result.
    pub fn run(
        &self,
        cluster: &dyn Cluster,
        answers: &dyn Answers,
        now: jiff::Timestamp,
    ) -> Result<Verdicts, ephor_cluster::ClusterError> {
        let discovery = cluster.discovery()?;
        let mut verdicts = Verdicts::default();
        let unjudged = &mut verdicts.unjudged;
        let before = reportable(self.before, &discovery, &mut Unjudged::default());
        let after = reportable(self.after, &discovery, unjudged);
        let kinds: BTreeMap<&GroupKind, &Str> = before.kinds.iter().chain(&after.kinds).collect();
        let mut judge = Judge {
            before: &before,
            after: &after,
            answers,
            now,
            metrics: Metrics::default(),
            labels: namespaces(cluster, &mut unjudged.unseen),
            assumed_labels: self.assumed_labels,
            filters: self.filters,
            skipped: rules_on_operations(&self.after.policies, &after),
        };
        for (kind, api_version) in kinds {
            let listed = each(cluster, api_version, &kind.kind, self.namespace, &mut |object| {
                judge.object(object, self.namespace, &mut verdicts);
            });
            verdicts.unjudged.unseen.extend(listed.err().map(|why| format!("{}: {why}", kind.kind)));
        }
        verdicts.changed.sort();
        let skipped = judge.skipped.into_values().filter(|skipped| skipped.objects > 0);
        verdicts.unjudged.of_operations.extend(skipped.map(|skipped| (skipped.policy, skipped.declared)));
        Ok(verdicts)
    }
}

/// A rule that has judged no object yet.
#[derive(Debug)]
struct Skipped {
    policy: PolicyId,
    declared: Str,
    /// How many objects it matched and skipped.
    objects: usize,
}

/// The rules of policies that mention the operation, by policy and name.
fn rules_on_operations(documents: &[Value], policies: &Reportable) -> BTreeMap<ResultRule, Skipped> {
    let mut found = BTreeMap::new();
    for document in documents {
        let policy = PolicyId::of(document);
        let rules = document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default();
        let mention = rules.iter().filter(|rule| rule.to_json().contains("request.operation"));
        let mention: BTreeSet<&str> = mention.filter_map(|rule| rule.str_at(&["name"])).collect();
        let programs = policies.set.programs().iter();
        for program in programs.filter(|program| program.id == policy) {
            for rule in program.rules.iter().filter(|rule| mention.contains(rule.declared.as_str())) {
                let skipped = Skipped { policy: policy.clone(), declared: rule.declared.clone(), objects: 0 };
                found.insert(ResultRule::new(&program.id, rule.name.clone()), skipped);
            }
        }
    }
    found
}

fn name_of(object: &Value) -> (&str, &str) {
    (object::namespace(object), object::name(object))
}

struct Judge<'a> {
    before: &'a Reportable,
    after: &'a Reportable,
    answers: &'a dyn Answers,
    now: jiff::Timestamp,
    metrics: Metrics,
    labels: BTreeMap<Str, Value>,
    assumed_labels: Option<&'a Value>,
    filters: &'a ResourceFilters,
    /// Rules that ask for the operation, until they judge an object.
    skipped: BTreeMap<ResultRule, Skipped>,
}

impl Judge<'_> {
    fn object(&mut self, object: &Value, only: Option<&str>, verdicts: &mut Verdicts) {
        let (namespace, name) = name_of(object);
        if only.is_some_and(|only| only != namespace) {
            return;
        }
        let text = |key| object.str_at(&[key]).unwrap_or_default();
        if self.filters.drops(&Gvk::new(text("apiVersion"), text("kind")), "", namespace, name) {
            verdicts.unjudged.hidden += 1;
            return;
        }
        verdicts.judged += 1;
        let before = self.results(self.before, object, namespace);
        let after = self.results(self.after, object, namespace);
        for (rule, (verdict, _)) in &after {
            match self.skipped.get_mut(rule) {
                Some(skipped) if *verdict == Verdict::Skip => skipped.objects += 1,
                Some(_) => drop(self.skipped.remove(rule)),
                None => {}
            }
        }
        let rules: BTreeSet<&ResultRule> = before.keys().chain(after.keys()).collect();
        for rule in rules {
            let (old, new) = (before.get(rule), after.get(rule));
            let verdict = |result: Option<&(Verdict, Str)>| result.map(|(verdict, _)| *verdict);
            let Some(turn) = turn(verdict(old), verdict(new)) else {
                verdicts.still_failing += usize::from(fails(verdict(new)));
                continue;
            };
            let kind = object.str_at(&["kind"]).unwrap_or_default();
            verdicts.changed.push(Changed {
                policy: rule.policy.clone(),
                rule: rule.rule.clone(),
                namespace: namespace.into(),
                object: format!("{kind}/{name}").into(),
                turn,
                message: new.or(old).map(|(_, message)| message.clone()).unwrap_or_default(),
            });
        }
    }

    /// The verdicts about an object with their messages, by policy and rule.
    fn results(&self, policies: &Reportable, object: &Value, namespace: &str) -> BTreeMap<ResultRule, (Verdict, Str)> {
        if !policies.kinds.contains_key(&kind_of(object)) {
            return BTreeMap::new();
        }
        let labels = self.labels.get(namespace).or(self.assumed_labels).cloned();
        let judged = judge(policies, object, labels, self.answers, &self.metrics, self.now);
        let results = judged.results.iter().filter_map(|result| {
            let verdict = Verdict::parse(result.str_at(&["result"])?)?;
            Some((ResultRule::of(result), (verdict, Str::new(result.str_at(&["message"]).unwrap_or_default()))))
        });
        results.collect()
    }
}

fn fails(verdict: Option<Verdict>) -> bool {
    matches!(verdict, Some(Verdict::Fail | Verdict::Warn))
}

fn turn(before: Option<Verdict>, after: Option<Verdict>) -> Option<Turn> {
    let errs = |verdict: Option<Verdict>| verdict == Some(Verdict::Error);
    if fails(after) && !fails(before) {
        Some(Turn::BeginsToFail)
    } else if errs(after) && !errs(before) {
        Some(Turn::BeginsToErr)
    } else if (fails(before) || errs(before)) && !fails(after) && !errs(after) {
        Some(Turn::CeasesToFail)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ephor_cluster::memory::Options;
    use ephor_cluster::{MemoryCluster, WriteOptions};
    use ephor_expr::yaml::parse_value;
    use ephor_runtime::facts::ClusterFacts;

    use super::*;

    fn policy(label: &str, more: &str) -> Value {
        let text = format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{{more} rules: [{{name: r, \
             match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, validate: {{message: m, pattern: {{metadata: \
             {{labels: {{{label}: '?*'}}}}}}}}}}]}}}}"
        );
        parse_value(&text).unwrap()
    }

    fn exception(name: &str) -> Value {
        let text = format!(
            "{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: e, namespace: default}}, spec: \
             {{exceptions: [{{policyName: p, ruleNames: [r]}}], match: {{any: [{{resources: {{kinds: [ConfigMap], names: \
             [{name}]}}}}]}}}}}}"
        );
        parse_value(&text).unwrap()
    }

    fn compared(before: &Documents, after: &Documents, namespace: Option<&str>) -> Verdicts {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::new(Options::default()));
        let kind = cluster.resolve("v1", "ConfigMap").unwrap();
        for (name, labels) in [("both", "a: x, b: x"), ("first", "a: x"), ("second", "b: x"), ("none", "")] {
            let text = format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default, labels: {{{labels}}}}}}}"
            );
            cluster.create(&kind, parse_value(&text).unwrap(), &WriteOptions::default()).unwrap();
        }
        let answers = ClusterFacts::new(Arc::clone(&cluster));
        let filters = ResourceFilters::default();
        let comparison = Comparison { before, after, namespace, assumed_labels: None, filters: &filters };
        comparison.run(&*cluster, &answers, jiff::Timestamp::UNIX_EPOCH).unwrap()
    }

    fn lines(found: &Verdicts) -> Vec<String> {
        found.changed.iter().map(|changed| format!("{} {:?}", changed.object, changed.turn)).collect()
    }

    fn of(policies: &[Value]) -> Documents {
        Documents { policies: policies.to_vec(), exceptions: Vec::new() }
    }

    #[test]
    fn objects_begin_and_cease_to_fail_with_a_policy_that_changes() {
        let found = compared(&of(&[policy("a", "")]), &of(&[policy("b", "")]), None);
        assert_eq!(lines(&found), ["ConfigMap/first BeginsToFail", "ConfigMap/second CeasesToFail"]);
        assert_eq!((found.judged, found.still_failing), (4, 1));
        assert!(found.changed[0].message.contains("/metadata/labels/b/"), "{found:?}");
        let new = compared(&of(&[]), &of(&[policy("b", "")]), None);
        assert_eq!(lines(&new), ["ConfigMap/first BeginsToFail", "ConfigMap/none BeginsToFail"]);
        let gone = compared(&of(&[policy("b", "")]), &of(&[]), None);
        assert_eq!(lines(&gone), ["ConfigMap/first CeasesToFail", "ConfigMap/none CeasesToFail"]);
        let elsewhere = compared(&of(&[]), &of(&[policy("b", "")]), Some("other"));
        assert_eq!((elsewhere.judged, lines(&elsewhere).len()), (0, 0));
    }

    #[test]
    fn an_exception_lets_objects_cease_to_fail() {
        let after = Documents { exceptions: vec![exception("none")], ..of(&[policy("a", "")]) };
        assert_eq!(lines(&compared(&of(&[policy("a", "")]), &after, None)), ["ConfigMap/none CeasesToFail"]);
    }

    #[test]
    fn a_policy_for_requests_only_is_named_and_judges_nothing() {
        let found = compared(&of(&[]), &of(&[policy("a", "background: false,")]), None);
        assert_eq!((found.judged, found.unjudged.of_requests.len()), (0, 1));
    }

    #[test]
    fn rules_about_other_operations_than_creating_are_named() {
        let rule = |more: &str| {
            let text = format!(
                "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [{{name: r, \
                 match: {{any: [{{resources: {{kinds: [ConfigMap]{more}, validate: {{message: m, deny: {{}}}}}}]}}}}"
            );
            parse_value(&text).unwrap()
        };
        let asks = |key: &str, value: &str| {
            rule(&format!(
                "}}}}]}}, preconditions: {{all: [{{key: '{{{{ {key} }}}}', operator: Equals, value: {value}}}]}}"
            ))
        };
        for (policy, named, failing) in [
            (rule(", operations: [DELETE]}}]}"), 1, 0),
            (rule(", operations: [CREATE, DELETE]}}]}"), 0, 4),
            (asks("request.operation", "UPDATE"), 1, 0),
            (asks("request.operation", "CREATE"), 0, 4),
            // The object decides, not the operation.
            (asks("request.object.metadata.name", "x"), 0, 0),
        ] {
            let found = compared(&of(&[]), &of(std::slice::from_ref(&policy)), None);
            assert_eq!((found.unjudged.of_operations.len(), found.changed.len()), (named, failing), "{policy:?}");
        }
    }

    #[test]
    fn objects_that_no_policy_sees_are_counted_and_not_judged() {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::new(Options::default()));
        let kind = cluster.resolve("v1", "ConfigMap").unwrap();
        let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: seen, namespace: kube-system}}";
        cluster.create(&kind, parse_value(object).unwrap(), &WriteOptions::default()).unwrap();
        let filters = ResourceFilters::parse("[*/*,kube-system,*]").unwrap();
        let (before, after) = (of(&[]), of(&[policy("a", "")]));
        let comparison =
            Comparison { before: &before, after: &after, namespace: None, assumed_labels: None, filters: &filters };
        let answers = ClusterFacts::new(Arc::clone(&cluster));
        let found = comparison.run(&*cluster, &answers, jiff::Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((found.judged, found.unjudged.hidden, found.changed.len()), (0, 1, 0));
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_is_no_pass() {
        let error = parse_value(
            "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: \
             [{resources: {kinds: [ConfigMap]}}]}, validate: {message: m, deny: {conditions: {any: [{key: \"{{ \
             request.object.none.at }}\", operator: Equals, value: a}]}}}}]}}",
        );
        let found = compared(&of(&[]), &of(&[error.unwrap()]), None);
        assert_eq!(found.changed.len(), 4);
        assert!(found.changed.iter().all(|changed| changed.turn == Turn::BeginsToErr), "{found:?}");
    }
}
