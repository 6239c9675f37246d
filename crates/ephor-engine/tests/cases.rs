//! The cases of `tests/cases`: policies, reviews and facts as data, with the outcomes they must have.
//!
//! A file is a stream of cases. What a case may say is [`Case`]; unknown fields are refused. Policies, rules and
//! objects are completed by the defaults of `support`: a `ClusterPolicy` `p` outside background, rules `r` on Pods, a
//! Pod `p`. The facts of a case must all be asked for, and nothing else.

#![expect(clippy::disallowed_methods, reason = "the engine does no I/O, its runner of cases reads them")]

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ephor_engine::fetch::{Fact, Fetch, ServiceAnswer};
use ephor_engine::gate::ApiPath;
use ephor_engine::matching::UserInfo;
use ephor_engine::policy::{HttpMethod, Operation};
use ephor_engine::review::{Mode, Review};
use ephor_expr::value::decode;
use ephor_expr::yaml::{self, Limits};
use ephor_expr::{Str, Value};
use serde::Deserialize;

use support::Trial;

/// Policies, and what they say about reviews.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Case {
    /// What the case shows.
    note: String,
    /// One policy, or
    policy: Option<Value>,
    /// several, or
    policies: Option<Vec<Value>>,
    /// one rule.
    rule: Option<Value>,
    /// Exceptions, in the order in which they apply.
    exceptions: Option<Vec<Value>>,
    /// One review, or
    review: Option<GivenReview>,
    /// what is known of the outside for it,
    facts: Option<Vec<GivenFact>>,
    /// its outcomes as `rule verdict message`, in order,
    want: Option<Vec<String>>,
    /// and members of the object after mutation; or
    after: Option<Value>,
    /// several of them.
    tries: Option<Vec<Try>>,
}

/// One review and what must come of it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Try {
    note: String,
    review: GivenReview,
    facts: Option<Vec<GivenFact>>,
    want: Vec<String>,
    after: Option<Value>,
}

/// A review, offline and CREATE unless it says otherwise.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct GivenReview {
    object: Option<Value>,
    old_object: Option<Value>,
    operation: Option<Operation>,
    subresource: Option<Str>,
    mode: Option<GivenMode>,
    user: Option<GivenUser>,
    namespace_labels: Option<Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GivenMode {
    Admission,
    Scan,
    Offline,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct GivenUser {
    name: Str,
    groups: Vec<Str>,
    roles: Vec<Str>,
    cluster_roles: Vec<Str>,
}

/// A question (one of the first block) and its answer (one of the second).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct GivenFact {
    config_map: Option<Str>,
    get: Option<Str>,
    post: Option<Str>,
    body: Option<Str>,
    service: Option<Str>,
    headers: Option<BTreeMap<Str, Str>>,
    global: Option<Str>,
    image: Option<Str>,
    namespace_labels: Option<Str>,
    /// The Namespace of the object.
    namespace: Option<Str>,
    /// Parameter objects.
    parameters: Option<GivenParameters>,
    /// `apiVersion kind namespace/name`.
    object: Option<Str>,
    /// `apiVersion kind`, in all namespaces.
    objects: Option<Str>,

    found: Option<Value>,
    missing: Option<bool>,
    failed: Option<String>,
    unavailable: Option<String>,
}

/// A question for parameter objects.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct GivenParameters {
    api_version: Str,
    kind: Str,
    namespace: Option<Str>,
    home: Str,
    name: Option<Str>,
}

impl GivenFact {
    fn question(&self) -> Fetch {
        let pair = |text: &str| {
            let (namespace, name) = text.split_once('/').expect("namespace/name");
            (Str::new(namespace), Str::new(name))
        };
        let api = |method, path: &Str| Fetch::Api {
            method,
            path: ApiPath::parse(path).expect("a path"),
            body: self.body.clone(),
        };
        if let Some(text) = &self.config_map {
            let (namespace, name) = pair(text);
            Fetch::ConfigMap { namespace, name }
        } else if let Some(path) = &self.get {
            api(HttpMethod::Get, path)
        } else if let Some(path) = &self.post {
            api(HttpMethod::Post, path)
        } else if let Some(url) = &self.service {
            let method = if self.body.is_some() { HttpMethod::Post } else { HttpMethod::Get };
            let headers = self.headers.iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
            Fetch::Service {
                method,
                url: url.clone(),
                headers,
                body: self.body.clone(),
                ca_bundle: None,
                answer: ServiceAnswer::Document,
            }
        } else if let Some(name) = &self.global {
            Fetch::Global { name: name.clone() }
        } else if let Some(reference) = &self.image {
            Fetch::Image { reference: reference.clone(), credentials: None }
        } else if let Some(name) = &self.namespace_labels {
            Fetch::NamespaceLabels { name: name.clone() }
        } else if let Some(name) = &self.namespace {
            Fetch::Namespace { name: name.clone() }
        } else if let Some(params) = &self.parameters {
            let GivenParameters { api_version, kind, namespace, home, name } = params.clone();
            Fetch::Parameters { api_version, kind, namespace, home, name }
        } else if let Some(text) = &self.objects {
            let (api_version, kind) = text.split_once(' ').expect("two words");
            Fetch::Objects { api_version: api_version.into(), kind: kind.into(), namespace: Str::default() }
        } else {
            let text = self.object.as_ref().expect("a fact answers a question");
            let [api_version, kind, key] = text.split(' ').collect::<Vec<_>>().try_into().expect("three words");
            let (namespace, name) = pair(key);
            Fetch::Object { api_version: api_version.into(), kind: kind.into(), namespace, name }
        }
    }

    fn answer(&self) -> Fact {
        if let Some(value) = &self.found {
            Fact::Found(value.clone())
        } else if let Some(reason) = &self.failed {
            Fact::Failed(reason.clone())
        } else if let Some(reason) = &self.unavailable {
            Fact::Unavailable(reason.clone())
        } else {
            assert_eq!(self.missing, Some(true), "a fact has an answer");
            Fact::Missing
        }
    }
}

impl GivenReview {
    fn review(&self) -> Review {
        let object = support::object(self.object.as_ref().unwrap_or(&Value::Null));
        let old_object = support::object(self.old_object.as_ref().unwrap_or(&Value::Null));
        let nothing = support::object(&support::value("{}"));
        let operation = self.operation.unwrap_or_default();
        let (object, old_object) = match (operation, object.is_null(), old_object.is_null()) {
            (Operation::Delete, _, true) => (Value::Null, if object.is_null() { nothing } else { object }),
            (Operation::Delete, _, false) => (Value::Null, old_object),
            (_, true, _) => (nothing, old_object),
            _ => (object, old_object),
        };
        let subject = if operation == Operation::Delete { &old_object } else { &object };
        let user = self.user.as_ref().map(|user| UserInfo {
            username: user.name.clone(),
            groups: user.groups.clone(),
            roles: user.roles.clone(),
            cluster_roles: user.cluster_roles.clone(),
            ..UserInfo::default()
        });
        Review {
            operation,
            subresource: self.subresource.clone().unwrap_or_default(),
            user,
            namespace_labels: self.namespace_labels.clone(),
            mode: match self.mode {
                Some(GivenMode::Admission) => Mode::Admission,
                Some(GivenMode::Scan) => Mode::Scan,
                Some(GivenMode::Offline) | None => Mode::Offline,
            },
            old_object: old_object.clone(),
            ..Review { object: object.clone(), ..Review::of_object(subject.clone(), support::now()) }
        }
    }
}

impl Case {
    fn policies(&self) -> Vec<Value> {
        let given = self.policy.iter().chain(self.policies.iter().flatten()).map(support::policy);
        given.chain(self.rule.as_ref().map(support::policy_of_rule)).collect()
    }

    fn into_tries(mut self) -> Vec<Try> {
        let own = self.want.take().map(|want| Try {
            note: String::new(),
            review: self.review.take().unwrap_or_default(),
            facts: self.facts.take(),
            want,
            after: self.after.take(),
        });
        own.into_iter().chain(self.tries.into_iter().flatten()).collect()
    }
}

/// What is wrong with a try, if anything is.
fn fault(policies: &[Value], exceptions: &[Value], given: &Try) -> Option<String> {
    let answers: Vec<(Fetch, Fact)> = given.facts.iter().flatten().map(|f| (f.question(), f.answer())).collect();
    let mut unasked: Vec<Fetch> = answers.iter().map(|(fetch, _)| fetch.clone()).collect();
    let ran = Trial { answers, ..Trial::new(policies, given.review.review()).except(exceptions) }.run();
    if ran.lines() != given.want {
        return Some(format!("want {:#?}\n got {:#?}", given.want, ran.lines()));
    }
    for (key, want) in given.after.iter().filter_map(Value::as_object).flat_map(ephor_expr::Map::iter) {
        let got = ran.object.get(key).cloned().unwrap_or_default();
        if got != *want {
            return Some(format!("want {key} {want}\n got {key} {got}"));
        }
    }
    unasked.retain(|fetch| !ran.asked.contains(fetch));
    (!unasked.is_empty()).then(|| format!("never asked for {unasked:?}"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn cases_have_their_outcomes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    let (mut tries, mut faults) = (0, Vec::new());
    for path in &paths {
        let name = path.strip_prefix(&folder).unwrap().display();
        let text = std::fs::read_to_string(path).unwrap();
        let documents = yaml::parse_values(&text, &Limits::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        for document in documents {
            let case: Case = decode(&document).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
            let (note, policies) = (case.note.clone(), case.policies());
            let exceptions = case.exceptions.clone().unwrap_or_default();
            for given in case.into_tries() {
                tries += 1;
                let judged = std::panic::catch_unwind(|| fault(&policies, &exceptions, &given));
                let judged = judged.unwrap_or_else(|panic| {
                    Some(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panic".to_owned()))
                });
                if let Some(fault) = judged {
                    faults.push(format!("{name}: {note} {}\n{fault}", given.note));
                }
            }
        }
    }
    assert!(tries > 0, "no cases in {}", folder.display());
    assert!(faults.is_empty(), "{} of {tries} tries:\n\n{}", faults.len(), faults.join("\n\n"));
}
