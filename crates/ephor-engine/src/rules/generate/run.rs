//! The desired objects of one generate rule for one trigger.

use std::collections::BTreeSet;

use ephor_expr::jmespath::Runtime;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::labels::{Origin, mark};
use crate::compile::{CompiledRule, GenerateTarget, GenerateWhat, GeneratedBody, Program, selector_of};
use crate::fetch::{Fact, Fetch};
use crate::outcome::{Downstream, Form, Incomplete, Unsourced, Verdict};
use crate::policy::ApplyRules;
use crate::rules::conditions;
use crate::rules::cost::charge_element;
use crate::rules::judgement::{Judged, Judgement, Pending, scope_error};
use crate::scope::{Answer, Scope, Shape, Template};

/// One generate rule at work.
pub(crate) struct Run<'e> {
    pub(crate) program: &'e Program,
    pub(crate) rule: &'e CompiledRule,
    pub(crate) body: &'e GeneratedBody,
}

/// Sources that do not exist.
#[derive(Default)]
struct Missing {
    /// Says which was the first.
    message: Option<String>,
    unsourced: Vec<Unsourced>,
}

/// The objects to generate, each once: of several elements or targets that render the same object, the first counts.
#[derive(Default)]
struct Wanted {
    objects: Vec<Downstream>,
    seen: BTreeSet<[Str; 4]>,
}

impl Wanted {
    fn add(&mut self, downstream: Downstream) {
        let part = |keys: &[&str]| Str::new(downstream.object.str_at(keys).unwrap_or_default());
        let identity =
            [part(&["apiVersion"]), part(&["kind"]), part(&["metadata", "namespace"]), part(&["metadata", "name"])];
        if self.seen.insert(identity) {
            self.objects.push(downstream);
        }
    }
}

/// Why a target's objects cannot be computed.
enum Stop {
    Pending,
    Failed(Judgement),
}

impl From<Pending> for Stop {
    fn from(_: Pending) -> Self {
        Stop::Pending
    }
}

impl<'e> Run<'e> {
    /// Computes the downstream objects. A rule that has nothing to generate for this trigger gives no response.
    pub(crate) fn judge(&self, scope: &mut Scope<'e>, trigger: &Value) -> Judged {
        let mut wanted = Wanted::default();
        let mut missing = Missing::default();
        for (i, target) in self.body.targets().iter().enumerate() {
            let base = self.rule.path.key("generate");
            let path = if target.list.is_some() { base.key("foreach").index(i) } else { base };
            match self.target(target, &path, trigger, scope, &mut missing) {
                Ok(objects) => objects.into_iter().for_each(|object| wanted.add(object)),
                Err(Stop::Pending) => return Err(Pending),
                Err(Stop::Failed(judgement)) => return Ok(Some(judgement)),
            }
            if self.program.apply_rules == ApplyRules::One && !wanted.objects.is_empty() && target.list.is_some() {
                break;
            }
        }
        let Some(message) = missing.message else {
            let judgement = Judgement::new(Verdict::Pass, "resource generated");
            return Ok(Some(judgement.with(|detail| detail.generated = wanted.objects)));
        };
        // The other elements still count: the background role synchronizes them.
        let rest = Incomplete { generated: wanted.objects, unsourced: missing.unsourced };
        Ok(Some(Judgement::new(Verdict::Error, message).with(|detail| detail.incomplete = Some(rest))))
    }

    fn target(
        &self,
        target: &'e GenerateTarget,
        path: &Path,
        trigger: &Value,
        scope: &mut Scope<'e>,
        missing: &mut Missing,
    ) -> Result<Vec<Downstream>, Stop> {
        let Some(list) = &target.list else { return self.objects(target, path, trigger, scope, missing) };
        let items = scope.evaluate_bare(list).map_err(|error| {
            match scope_error("failed to evaluate list: ", &path.key("list"), &error) {
                Ok(judgement) => Stop::Failed(judgement),
                Err(Pending) => Stop::Pending,
            }
        })?;
        let single = [items.clone()];
        let elements = match &items {
            Value::Null => return Ok(Vec::new()),
            Value::Array(items) => items.as_slice(),
            _ => &single,
        };
        let mut wanted = Vec::new();
        for (index, element) in elements.iter().enumerate().filter(|(_, element)| !element.is_null()) {
            if let Err(error) = charge_element(scope.world().budget()) {
                return Err(Stop::Failed(Judgement::new(Verdict::Error, error.to_string())));
            }
            let before = scope.checkpoint();
            scope.bind_element(list, element, index, 0, &self.rule.declared);
            scope.declare(&target.context);
            let objects = self.element(target, path, trigger, scope, missing);
            scope.restore(before);
            wanted.extend(objects?);
        }
        Ok(wanted)
    }

    fn element(
        &self,
        target: &'e GenerateTarget,
        path: &Path,
        trigger: &Value,
        scope: &mut Scope<'e>,
        missing: &mut Missing,
    ) -> Result<Vec<Downstream>, Stop> {
        if let Some(block) = &target.preconditions {
            match conditions::evaluate(block, scope) {
                Ok(outcome) if outcome.holds => {}
                Ok(_) => return Ok(Vec::new()),
                Err(error) => {
                    let (text, fault) = error.into_failure()?;
                    let message = format!("failed to evaluate preconditions: {text}");
                    return Err(Stop::Failed(Judgement::error_at(message, fault)));
                }
            }
        }
        self.objects(target, path, trigger, scope, missing)
    }

    fn objects(
        &self,
        target: &'e GenerateTarget,
        path: &Path,
        trigger: &Value,
        scope: &mut Scope<'e>,
        missing: &mut Missing,
    ) -> Result<Vec<Downstream>, Stop> {
        let namespace = text(&target.namespace, path, "namespace", scope)?;
        let origin = Origin {
            policy: &self.program.id.name,
            policy_namespace: self.program.id.namespace.as_deref().unwrap_or_default(),
            rule: &self.rule.name,
            trigger,
        };
        if let GenerateWhat::CloneList { namespace: from, kinds, selector } = &target.what {
            let from = text(from, &path.key("cloneList"), "namespace", scope)?;
            if from == namespace {
                return Ok(Vec::new());
            }
            has_namespace(&namespace, &from)?;
            let selector = match selector {
                None => None,
                Some(template) => {
                    let value = resolve_as(Shape::Selection, template, &path.keys(&["cloneList", "selector"]), scope)?;
                    Some(selector_of(&value).map_err(|reason| {
                        Stop::Failed(Judgement::new(Verdict::Error, format!("cloneList selector: {reason}")))
                    })?)
                }
            };
            let mut wanted = Vec::new();
            for kind in kinds {
                let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
                let fetch =
                    Fetch::Objects { api_version: api_version.into(), kind: kind.into(), namespace: from.clone() };
                let sources = ask(scope, fetch)?.unwrap_or_default();
                for source in sources.as_array().unwrap_or_default() {
                    let labels = source.at(&["metadata", "labels"]).and_then(Value::as_object);
                    if selector.as_ref().is_none_or(|s| s.matches(labels)) {
                        let name = Str::new(source.str_at(&["metadata", "name"]).unwrap_or_default());
                        wanted.push(copy(source, &namespace, &name, Form::CloneList, &origin));
                    }
                }
            }
            return Ok(wanted);
        }
        let api_version = text(&target.api_version, path, "apiVersion", scope)?;
        let kind = text(&target.kind, path, "kind", scope)?;
        let name = text(&target.name, path, "name", scope)?;
        match &target.what {
            GenerateWhat::CloneList { .. } => Ok(Vec::new()),
            GenerateWhat::Data(template) => {
                let data = resolve(template, &path.key("data"), scope)?;
                let Value::Object(object) = data else {
                    let message = format!("generate data is not a map but {}", data.type_name());
                    return Err(Stop::Failed(Judgement::new(Verdict::Error, message)));
                };
                let mut object = (*object).clone();
                object.insert("apiVersion", api_version);
                object.insert("kind", kind);
                let mut metadata = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
                metadata.insert("name", name);
                if !namespace.is_empty() {
                    metadata.insert("namespace", namespace);
                }
                object.insert("metadata", metadata);
                let mut object = Value::object(object);
                mark(&mut object, &origin, None);
                Ok(vec![Downstream { object, source: None, form: Form::Data }])
            }
            GenerateWhat::Clone { namespace: from, name: source_name } => {
                let at = path.key("clone");
                let from = text(from, &at, "namespace", scope)?;
                let source_name = text(source_name, &at, "name", scope)?;
                if from == namespace && source_name == name {
                    return Ok(Vec::new());
                }
                has_namespace(&namespace, &from)?;
                let what = format!("source {kind} {from}/{source_name}");
                let fetch = Fetch::Object {
                    api_version: api_version.clone(),
                    kind: kind.clone(),
                    namespace: from,
                    name: source_name,
                };
                if let Some(source) = ask(scope, fetch)? {
                    return Ok(vec![copy(&source, &namespace, &name, Form::Clone, &origin)]);
                }
                missing.message.get_or_insert_with(|| format!("{what} not found"));
                missing.unsourced.push(Unsourced { api_version, kind, namespace, name });
                Ok(Vec::new())
            }
        }
    }
}

/// What is copied from a namespace goes into one. A client would fill in `default` where there is none.
fn has_namespace(target: &Str, source: &Str) -> Result<(), Stop> {
    if !target.is_empty() || source.is_empty() {
        return Ok(());
    }
    let message = "cannot clone: the target has no namespace, and the source has one";
    Err(Stop::Failed(Judgement::new(Verdict::Error, message)))
}

/// A copy of `source` as it should be created: without what the server writes, owners only within their namespace.
fn copy(source: &Value, namespace: &Str, name: &Str, form: Form, origin: &Origin<'_>) -> Downstream {
    let mut object = source.as_object().cloned().unwrap_or_default();
    object.remove("status");
    let mut metadata = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for written in ["uid", "selfLink", "creationTimestamp", "managedFields", "resourceVersion", "generation"] {
        metadata.remove(written);
    }
    if metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() != namespace.as_str() {
        metadata.remove("ownerReferences");
    }
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace", namespace.clone());
    }
    metadata.insert("name", name.clone());
    object.insert("metadata", metadata);
    let mut object = Value::object(object);
    mark(&mut object, origin, Some(source));
    Downstream { object, source: Some(source.clone()), form }
}

fn ask(scope: &Scope<'_>, fetch: Fetch) -> Result<Option<Value>, Stop> {
    let failed = |reason: String| Err(Stop::Failed(Judgement::new(Verdict::Error, reason)));
    match scope.world().ask(fetch) {
        Answer::Pending => Err(Stop::Pending),
        Answer::Refused(reason) => failed(reason),
        Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
            failed(reason.clone())
        }
        Answer::Known(Fact::Missing) => Ok(None),
        Answer::Known(Fact::Found(value)) => Ok(Some(value.clone())),
    }
}

fn resolve(template: &Template, path: &Path, scope: &mut Scope<'_>) -> Result<Value, Stop> {
    resolve_as(Shape::Data, template, path, scope)
}

fn resolve_as(shape: Shape, template: &Template, path: &Path, scope: &mut Scope<'_>) -> Result<Value, Stop> {
    template.resolve_as(shape, scope).map_err(|error| {
        match scope_error("variable substitution failed: ", path, &error) {
            Ok(judgement) => Stop::Failed(judgement),
            Err(Pending) => Stop::Pending,
        }
    })
}

fn text(template: &Template, path: &Path, key: &str, scope: &mut Scope<'_>) -> Result<Str, Stop> {
    match resolve(template, &path.key(key), scope)? {
        Value::String(text) => Ok(text),
        Value::Null => Ok(Str::default()),
        other => {
            let message = format!("generate {key} is not a string but {}", other.type_name());
            Err(Stop::Failed(Judgement::new(Verdict::Error, message)))
        }
    }
}
