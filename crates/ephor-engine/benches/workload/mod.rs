//! What the benchmarks evaluate: the judged Pod and policies of `../shared/bench`, and unrelated policies made here.

#![allow(dead_code, clippy::disallowed_methods, reason = "each benchmark uses its part; the data are files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ephor_engine::compile::{Program, compile};
use ephor_engine::evaluation::{Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::matching::UserInfo;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::review::{Mode, Review};
use ephor_engine::select::PolicySet;
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_values};

/// How many policies that do not concern the Pod are loaded beside those that do.
pub(crate) const UNRELATED: usize = 10_000;

/// Where the data is: `$EPHOR_BENCH_DATA`, or `../shared/bench` beside the workspace.
fn data() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/bench");
    let path = std::env::var_os("EPHOR_BENCH_DATA").map_or_else(beside, PathBuf::from);
    assert!(
        path.join("review-pod.json").is_file(),
        "no benchmark data at {}: it needs review-pod.json and policies/; set EPHOR_BENCH_DATA to its directory",
        path.display()
    );
    path
}

/// The texts of the 18 policies, in order of their file names.
pub(crate) fn policy_texts() -> Vec<String> {
    let directory = data().join("policies");
    let entries = std::fs::read_dir(&directory).expect("the policies directory is readable");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry is readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).expect("a policy is readable")).collect()
}

/// The programs of a policy file.
pub(crate) fn programs(text: &str) -> Vec<Arc<Program>> {
    let documents = parse_values(text, &Limits::default()).expect("the file is YAML");
    documents
        .iter()
        .map(|document| {
            let compiled = compile(document);
            compiled.program.map_or_else(|| panic!("refused: {:?}", compiled.findings), Arc::new)
        })
        .collect()
}

/// The 18 policies, alone or among [`UNRELATED`] others, half of them before and half after in order of evaluation.
pub(crate) fn policy_set(with_unrelated: bool) -> PolicySet {
    let judged = policy_texts().iter().flat_map(|text| programs(text)).collect::<Vec<_>>();
    if !with_unrelated {
        return PolicySet::new(judged);
    }
    let unrelated: Vec<_> = (0..UNRELATED).flat_map(|i| programs(&unrelated_policy(i))).collect();
    let (before, after) = unrelated.split_at(UNRELATED / 2);
    PolicySet::new([before, &judged, after].concat())
}

/// Policy `i` of those that do not concern the Pod: by turns a `ClusterPolicy` for another kind and a `Policy` for
/// Pods of another namespace.
fn unrelated_policy(i: usize) -> String {
    let (head, kind) = if i.is_multiple_of(2) {
        (format!("kind: ClusterPolicy\nmetadata: {{name: other-kind-{i}}}"), ["Service", "ConfigMap", "Ingress"][i % 3])
    } else {
        (format!("kind: Policy\nmetadata: {{name: other-namespace-{i}, namespace: tenant-{}}}", i % 500), "Pod")
    };
    format!(
        "apiVersion: kyverno.io/v1\n{head}\nspec:\n  rules:\n  - name: labelled\n    match:\n      any:\n      \
         - resources: {{kinds: [{kind}]}}\n    validate:\n      message: an owner is required\n      pattern:\n        \
         metadata: {{labels: {{owner: '?*'}}}}\n"
    )
}

/// The request of `review-pod.json`.
pub(crate) fn review() -> Review {
    let text = std::fs::read_to_string(data().join("review-pod.json")).expect("the review is readable");
    let envelope = Value::from_json(&text).expect("the review is JSON");
    let request = envelope.get("request").expect("the review has a request");
    let object = request.get("object").expect("the request has an object").clone();
    let groups = request.at(&["userInfo", "groups"]).and_then(Value::as_array).unwrap_or_default();
    let user = UserInfo {
        username: request.str_at(&["userInfo", "username"]).unwrap_or_default().into(),
        groups: groups.iter().filter_map(|group| group.as_str().map(Into::into)).collect(),
        ..UserInfo::default()
    };
    Review { mode: Mode::Admission, user: Some(user), ..Review::of_object(object, jiff::Timestamp::UNIX_EPOCH) }
}

/// Evaluates a review against a set: what is timed and counted.
pub(crate) fn evaluate(set: &PolicySet, exceptions: &ExceptionSet, facts: &Facts, review: &Review) -> Vec<Outcome> {
    let mut evaluation = Evaluation::new(set, exceptions, review.clone(), Phase::Validate);
    match evaluation.step(facts) {
        Step::Done => evaluation.finish().outcomes,
        Step::Need(needs) => panic!("the policies need nothing from outside, yet they ask {needs:?}"),
    }
}
