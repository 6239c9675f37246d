//! Parameter objects: which ones a policy means, and what it means that there are none.

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use crate::fetch::{Fact, Fetch};
use crate::matching::{Selector, SelectorError};
use crate::policy::{ParamKind, ParamRef, ParameterNotFound};
use crate::scope::{Answer, World};

/// The parameter objects of a policy, compiled from its `paramKind` and `paramRef`.
#[derive(Debug)]
pub struct Params {
    api_version: Str,
    kind: Str,
    namespace: Option<Str>,
    name: Option<Str>,
    selector: Option<Selector>,
    not_found: ParameterNotFound,
}

/// Why there are no parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// The question has no answer yet.
    #[error("data is being fetched")]
    Pending,
    /// There are none, and the policy says that this fails it.
    #[error("no params found")]
    NotFound,
    /// They cannot be read.
    #[error("{0}")]
    Failed(String),
}

impl Params {
    /// Compiles a reference that stands at `path`.
    pub fn compile(kind: &ParamKind, reference: &ParamRef, path: &Path) -> Result<Self, SelectorError> {
        let filled = |text: &Option<Str>| text.clone().filter(|text| !text.is_empty());
        let selector = reference.selector.as_ref();
        Ok(Self {
            api_version: kind.api_version.clone().unwrap_or_default(),
            kind: kind.kind.clone().unwrap_or_default(),
            namespace: filled(&reference.namespace),
            name: filled(&reference.name),
            selector: selector.map(|selector| Selector::compile(selector, &path.key("selector"))).transpose()?,
            not_found: reference.parameter_not_found_action.unwrap_or(ParameterNotFound::Deny),
        })
    }

    /// The objects for an object of namespace `home` (empty: it has none). Without any the policy has nothing to say.
    pub fn find(&self, home: &str, world: &World<'_>) -> Result<Vec<Value>, ParamsError> {
        let question = Fetch::Parameters {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            // A namespaced policy reads its own namespace. Named, it also keeps cluster-scoped kinds from being read.
            namespace: self.namespace.clone().or_else(|| world.namespace().map(Str::new)),
            home: Str::new(home),
            name: self.name.clone(),
        };
        let found = match world.ask(question) {
            Answer::Pending => return Err(ParamsError::Pending),
            Answer::Known(Fact::Found(found)) => found.as_array().unwrap_or_default(),
            Answer::Known(Fact::Missing) => &[],
            Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
                return Err(ParamsError::Failed(reason.clone()));
            }
            Answer::Refused(reason) => return Err(ParamsError::Failed(reason)),
        };
        let selected = |object: &&Value| {
            let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
            self.selector.as_ref().is_none_or(|selector| selector.matches(labels))
        };
        let objects: Vec<Value> = found.iter().filter(selected).cloned().collect();
        if objects.is_empty() && self.not_found == ParameterNotFound::Deny {
            return Err(ParamsError::NotFound);
        }
        Ok(objects)
    }
}
