//! The objects that the names of a result stand for.

use ephor_expr::{Str, Value};

use super::case::{Case, label};
use super::respond::last_segment;
use super::rows::with_nearest;
use super::suite::{Expectation, ResourceSpec};

/// What a result is about, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// Policies are run for it.
    Trigger(usize),
    /// Mutate-existing rules may change it.
    Target(usize),
    /// A JSON value that is no object of Kubernetes.
    Payload(usize),
}

/// A name that stands for nothing, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) name: String,
    pub(super) message: String,
}

impl Subject {
    /// The object itself.
    pub(super) fn object(self, case: &Case) -> Option<&Value> {
        match self {
            Subject::Trigger(i) => case.triggers.get(i),
            Subject::Target(i) => case.targets.get(i),
            Subject::Payload(i) => case.payloads.get(i).map(|payload| &payload.value),
        }
    }

    /// How rows call it: a payload by its file.
    pub(super) fn label(self, case: &Case) -> String {
        match self {
            Subject::Payload(i) => case.payloads.get(i).map(|payload| payload.file.to_string()).unwrap_or_default(),
            _ => self.object(case).map(label).unwrap_or_default(),
        }
    }
}

/// The objects that each name of `result` stands for: several if they share the name. A result without names is about
/// all objects, of its kind if it has one.
pub(super) fn subjects(case: &Case, result: &Expectation) -> Vec<Result<Vec<Subject>, Unknown>> {
    let names = result.resources.iter().flatten();
    let mut found: Vec<_> = names
        .map(|name| {
            let payload = case.payloads.iter().position(|payload| payload.file == *name);
            if let Some(payload) = payload {
                return Ok(vec![Subject::Payload(payload)]);
            }
            let (namespace, bare) = name.split_once('/').map_or((None, name.as_str()), |(ns, n)| (Some(ns), n));
            find(case, result, name, &|o| {
                text(o, &["metadata", "name"]) == bare
                    && namespace.is_none_or(|ns| text(o, &["metadata", "namespace"]) == ns)
            })
        })
        .collect();
    let specs = result.resource_specs.iter().flatten();
    found.extend(specs.map(|spec| find(case, result, spec.name.as_deref().unwrap_or_default(), &|o| fits(spec, o))));
    if found.is_empty() {
        found.push(all_of_kind(case, result));
    }
    found
}

fn all_of_kind(case: &Case, result: &Expectation) -> Result<Vec<Subject>, Unknown> {
    let Some(kind) = wanted_kind(result) else { return Ok(all(case).map(|(subject, _)| subject).collect()) };
    let of_kind: Vec<Subject> =
        all(case).filter(|(_, o)| text(o, &["kind"]) == kind).map(|(subject, _)| subject).collect();
    if of_kind.is_empty() {
        let known = all(case).map(|(_, o)| text(o, &["kind"]));
        let message = with_nearest(format!("there is no resource of kind `{kind}`"), kind, known);
        return Err(Unknown { name: kind.to_owned(), message });
    }
    Ok(of_kind)
}

/// The kind that a result names.
fn wanted_kind(result: &Expectation) -> Option<&str> {
    result.kind.as_deref().filter(|kind| !kind.is_empty())
}

fn all(case: &Case) -> impl Iterator<Item = (Subject, &Value)> {
    let triggers = case.triggers.iter().enumerate().map(|(i, o)| (Subject::Trigger(i), o));
    let targets = case.targets.iter().enumerate().map(|(i, o)| (Subject::Target(i), o));
    let payloads = case.payloads.iter().enumerate().map(|(i, payload)| (Subject::Payload(i), &payload.value));
    triggers.chain(targets).chain(payloads)
}

fn find(case: &Case, result: &Expectation, name: &str, fits: &dyn Fn(&Value) -> bool) -> Result<Vec<Subject>, Unknown> {
    let found: Vec<(Subject, &Value)> = all(case).filter(|(_, o)| fits(o)).collect();
    if found.is_empty() {
        let known = all(case).map(|(_, o)| text(o, &["metadata", "name"]));
        let message = with_nearest(format!("there is no resource `{name}`"), last_segment(name), known);
        return Err(Unknown { name: name.to_owned(), message });
    }
    let Some(kind) = wanted_kind(result) else {
        return Ok(found.into_iter().map(|(subject, _)| subject).collect());
    };
    let of_kind: Vec<Subject> =
        found.iter().filter(|(_, o)| text(o, &["kind"]) == kind).map(|(subject, _)| *subject).collect();
    if of_kind.is_empty() {
        let kinds: Vec<&str> = found.iter().map(|(_, o)| text(o, &["kind"])).collect();
        let message = format!("`{name}` is no {kind}: it is a {}", kinds.join(", a "));
        return Err(Unknown { name: name.to_owned(), message });
    }
    Ok(of_kind)
}

fn text<'o>(object: &'o Value, keys: &[&str]) -> &'o str {
    object.str_at(keys).unwrap_or_default()
}

fn fits(spec: &ResourceSpec, object: &Value) -> bool {
    let api_version = text(object, &["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let has = |wanted: &Option<Str>, text: &str| wanted.as_ref().is_none_or(|w| w.is_empty() || w == text);
    has(&spec.group, group)
        && has(&spec.version, version)
        && has(&spec.kind, text(object, &["kind"]))
        && has(&spec.namespace, text(object, &["metadata", "namespace"]))
        && has(&spec.name, text(object, &["metadata", "name"]))
}
