//! Operations that write objects: apply, create, update, patch, delete.

use ephor_expr::Value;

use crate::api::{ApiError, Kind};
use crate::assertion::mismatches;
use crate::expression::{Bindings, render};
use crate::run::{Outcome, Run, TimeoutKind, title, until};
use crate::scenario::{Delete, Expectation, Reference, Write};

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Create, or merge into what is there.
    Apply,
    /// Create; what is there is in the way.
    Create,
    /// Replace what is there.
    Update,
    /// Merge into what is there.
    Patch,
}

impl Run<'_> {
    /// Writes objects. Each is tried again until it comes out as expected or the time is over, as upstream does it.
    pub(crate) fn write(&mut self, verb: Verb, write: &Write) -> Result<Vec<(String, Value)>, String> {
        self.bind(&write.bindings)?;
        let patience = self.timeout(TimeoutKind::Apply, write.timeout.as_deref())?;
        let mut outputs = Vec::new();
        for document in self.documents(write.file.as_deref(), write.resource.as_ref())? {
            let document = if self.templating(write.template) { render(&document, &self.bindings) } else { document };
            self.scheduled |= document.at(&["spec", "schedule"]).is_some();
            let mut written = Value::Null;
            // Reports the first unexpected result, not that of a retry.
            let mut done = None;
            let outcome = until(patience, || {
                let result = self.write_one(verb, &document);
                let outcome = judge(&write.expect, &document, result.as_ref(), &self.bindings);
                let outcome = outcome.map_err(|problem| format!("{}: {problem}", title(&document)));
                if let (Ok(_), Err(problem), None) = (&result, &outcome, &done) {
                    done = Some(problem.clone());
                }
                written = result.unwrap_or_default();
                outcome
            });
            outcome.map_err(|problem| done.unwrap_or(problem))?;
            for output in &write.outputs {
                outputs.push((output.name.clone(), self.output(&output.value, &written)?));
            }
        }
        Ok(outputs)
    }

    fn output(&self, value: &Value, result: &Value) -> Result<Value, String> {
        match value.as_str().and_then(crate::expression::inside) {
            Some(text) => crate::expression::evaluate(text, result, &self.bindings).map_err(|error| error.to_string()),
            None => Ok(value.clone()),
        }
    }

    /// The kind of a document, and the namespace where it belongs.
    pub(crate) fn locate(&self, document: &Value) -> Result<(Kind, Option<String>), ApiError> {
        let text = |name: &str| document.str_at(&[name]).unwrap_or_default();
        let kind = self.place.api.kind(text("apiVersion"), text("kind"))?;
        let namespace = document.str_at(&["metadata", "namespace"]).filter(|name| !name.is_empty());
        let namespace = kind.namespaced.then(|| namespace.unwrap_or(&self.namespace).to_owned());
        Ok((kind, namespace))
    }

    fn write_one(&self, verb: Verb, document: &Value) -> Result<Value, ApiError> {
        let api = self.place.api;
        let (kind, namespace) = self.locate(document)?;
        let namespace = namespace.as_deref();
        let mut object = document.clone();
        if let Some(namespace) = namespace {
            set_metadata(&mut object, "namespace", Value::from(namespace));
        }
        let Some(name) = document.str_at(&["metadata", "name"]) else { return api.create(&kind, namespace, &object) };
        let present = match api.get(&kind, namespace, name) {
            Ok(present) => Some(present),
            Err(error) if error.is_not_found() && matches!(verb, Verb::Apply | Verb::Create) => None,
            Err(error) => return Err(error),
        };
        let Some(present) = present else { return api.create(&kind, namespace, &object) };
        match verb {
            Verb::Create => Err(ApiError::Transport("the resource already exists in the cluster".to_owned())),
            Verb::Update => {
                let version = present.at(&["metadata", "resourceVersion"]).cloned().unwrap_or_default();
                set_metadata(&mut object, "resourceVersion", version);
                api.replace(&kind, namespace, name, &object)
            }
            Verb::Apply | Verb::Patch => api.merge(&kind, namespace, name, &object),
        }
    }

    /// Deletes objects and waits until they are gone.
    pub(crate) fn delete(&mut self, delete: &Delete) -> Outcome {
        self.bind(&delete.bindings)?;
        let patience = self.timeout(TimeoutKind::Delete, delete.timeout.as_deref())?;
        let mut references = Vec::new();
        if let Some(reference) = &delete.reference {
            references.push(self.reference(reference)?);
        }
        for document in self.documents(delete.file.as_deref(), None)? {
            references.push(render(&document, &self.bindings));
        }
        for reference in references {
            until(patience, || {
                let result = self.delete_one(&reference);
                let outcome = judge(&delete.expect, &reference, result.as_ref().map(|()| &reference), &self.bindings);
                outcome.map_err(|problem| format!("{}: {problem}", title(&reference)))
            })?;
        }
        Ok(())
    }

    fn reference(&self, reference: &Reference) -> Result<Value, String> {
        let mut metadata = ephor_expr::Map::new();
        for (key, text) in [("name", &reference.name), ("namespace", &reference.namespace)] {
            if let Some(text) = text {
                metadata.insert(key, self.text(text)?);
            }
        }
        if !reference.labels.is_empty() {
            let mut labels = ephor_expr::Map::new();
            for (name, value) in &reference.labels {
                labels.insert(name.as_str(), value.as_str());
            }
            metadata.insert("labels", labels);
        }
        Ok(Value::from([
            ("apiVersion", Value::from(reference.api_version.as_str())),
            ("kind", Value::from(reference.kind.as_str())),
            ("metadata", Value::from(metadata)),
        ]))
    }

    /// One attempt: an object that is still there is told as an error, to be tried again.
    fn delete_one(&self, reference: &Value) -> Result<(), ApiError> {
        let api = self.place.api;
        for (kind, object) in self.candidates(reference)? {
            let text = |key: &str| object.str_at(&["metadata", key]);
            let (name, namespace) = (text("name").unwrap_or_default(), text("namespace"));
            if object.at(&["metadata", "deletionTimestamp"]).is_none() {
                match api.delete(&kind, namespace, name) {
                    Err(error) if error.is_not_found() => continue,
                    other => other?,
                }
            }
            match api.get(&kind, namespace, name) {
                Err(error) if error.is_not_found() => {}
                // Another of that name is not the one that was to go.
                Ok(now) if now.str_at(&["metadata", "uid"]) != text("uid") => {}
                Ok(_) => return Err(ApiError::Transport("is still there".to_owned())),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The objects that a document means: the one of its name, or all with its labels. Those that are not there are
    /// left out.
    pub(crate) fn candidates(&self, document: &Value) -> Result<Vec<(Kind, Value)>, ApiError> {
        let found = self.locate(document).and_then(|(kind, namespace)| {
            let namespace = namespace.as_deref();
            let objects = match document.str_at(&["metadata", "name"]).filter(|name| !name.is_empty()) {
                Some(name) => vec![self.place.api.get(&kind, namespace, name)?],
                None => self.place.api.list(&kind, namespace, &labels(document))?,
            };
            Ok(objects.into_iter().map(|object| (kind.clone(), object)).collect())
        });
        match found {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            other => other,
        }
    }
}

/// Whether a result is as expected.
fn judge(
    expectations: &[Expectation],
    document: &Value,
    result: Result<&Value, &ApiError>,
    bindings: &Bindings,
) -> Outcome {
    let meant = |expectation: &&Expectation| match &expectation.objects {
        Some(tree) => mismatches(tree, document, bindings).is_empty(),
        None => true,
    };
    let mut expectations = expectations.iter().filter(meant).peekable();
    if expectations.peek().is_none() {
        return result.map(drop).map_err(ToString::to_string);
    }
    let error = result.err().map_or(Value::Null, |error| Value::from(error.to_string()));
    let bindings = bindings.clone().with("error", error.clone());
    for expectation in expectations {
        let found = mismatches(&expectation.check, result.unwrap_or(document), &bindings);
        if !found.is_empty() {
            let told = error.as_str().map_or("no error".to_owned(), |error| format!("the error was: {error}"));
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            return Err(format!("{} ({told})", found.join("\n    ")));
        }
    }
    Ok(())
}

fn set_metadata(object: &mut Value, key: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        let metadata = members.entry("metadata");
        if metadata.is_null() {
            *metadata = Value::object(ephor_expr::Map::new());
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert(key, value);
        }
    }
}

fn labels(document: &Value) -> Vec<(String, String)> {
    let labels = document.at(&["metadata", "labels"]).and_then(Value::as_object);
    let pairs = labels.into_iter().flat_map(ephor_expr::Map::iter);
    pairs.filter_map(|(name, value)| Some((name.to_string(), value.as_str()?.to_owned()))).collect()
}
