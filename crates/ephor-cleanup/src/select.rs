//! The kinds of objects that a policy means, as a cluster serves them.

use std::collections::BTreeMap;

use ephor_cluster::discovery::priority;
use ephor_cluster::{Discovery, Resource};
use ephor_engine::cleanup::CleanupProgram;
use ephor_engine::matching::{Gvk, KindSelector, RequestResource};
use ephor_expr::Str;

use crate::policy::{Body, DeletingBody};

/// What a policy looks at.
#[derive(Debug, Default)]
pub struct Selected {
    /// The resources, each kind in one version, with what the policy calls it.
    pub resources: Vec<(Resource, Str)>,
    /// What it names and nobody serves, or what names too much.
    pub unknown: Vec<String>,
}

/// The kinds that a policy means. A policy of a namespace means namespaced kinds only.
pub fn select(body: &Body, namespaced: bool, discovery: &Discovery) -> Selected {
    let mut selected = match body {
        Body::Cleanup(program) => of_cleanup(program, discovery),
        Body::Deleting(body) => of_deleting(body, discovery),
    };
    if namespaced {
        selected.resources.retain(|(resource, _)| resource.namespaced);
    }
    selected
}

/// Each kind is looked at once, in its best version among those that the policy means.
#[derive(Default)]
struct Best(BTreeMap<(Str, Str), (Resource, Str)>);

impl Best {
    fn add(&mut self, resource: &Resource, name: &Str) {
        let key = (resource.group.clone(), resource.kind.clone());
        let known = self.0.entry(key).or_insert_with(|| (resource.clone(), name.clone()));
        if priority(&resource.version) > priority(&known.0.version) {
            *known = (resource.clone(), name.clone());
        }
    }

    fn into_resources(self) -> Vec<(Resource, Str)> {
        self.0.into_values().collect()
    }
}

fn of_cleanup(program: &CleanupProgram, discovery: &Discovery) -> Selected {
    let (mut best, mut unknown) = (Best::default(), Vec::new());
    for selector in program.kinds().unwrap_or_default() {
        let name = written(selector);
        let found = best.0.len();
        // As upstream, a policy names its kinds: a pattern that means everything would delete everything.
        if selector.exact_kind().is_some() {
            for resource in discovery.iter().filter(|resource| resource.stored && means(selector, resource)) {
                best.add(resource, &name);
            }
        }
        if best.0.len() == found && !best.0.values().any(|(resource, _)| means(selector, resource)) {
            unknown.push(format!("failed to get GVR for kind {name}"));
        }
    }
    if program.kinds().is_none() {
        unknown.push("the policy names no kinds".to_owned());
    }
    Selected { resources: best.into_resources(), unknown }
}

fn means(selector: &KindSelector, resource: &Resource) -> bool {
    let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
    selector.matches(&gvk, "")
}

/// The kind as the policy writes it.
fn written(selector: &KindSelector) -> Str {
    let part = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty() && text != "*");
    let parts = [
        part(selector.group.as_str()),
        part(selector.version.as_str()),
        Some(selector.kind.as_str().to_owned()),
        part(selector.subresource.as_str()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("/").into()
}

fn of_deleting(body: &DeletingBody, discovery: &Discovery) -> Selected {
    let Some(constraints) = body.deletion().and_then(|deletion| deletion.constraints.as_ref()) else {
        return Selected { unknown: vec!["the policy has no resource rule".to_owned()], ..Selected::default() };
    };
    let mut best = Best::default();
    for resource in discovery.iter().filter(|resource| resource.stored) {
        let named = RequestResource {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: "",
        };
        if constraints.may_match(&named) {
            best.add(resource, &resource.plural);
        }
    }
    let unknown =
        if best.0.is_empty() { vec!["no resource that the policy names is served".to_owned()] } else { Vec::new() };
    Selected { resources: best.into_resources(), unknown }
}
