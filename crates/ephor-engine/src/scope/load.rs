//! The loading of context entries: where their values come from.

use ephor_expr::jmespath::{EvalError, Expression};
use ephor_expr::{Map, Str, Value};

use super::context::{Failure, Scope};
use super::entry::{Call, Entry, Query, Source};
use super::error::{Cause, Lack, ScopeError};
use super::pieces::Resolved;
use super::resolve::filled;
use super::template::Template;
use super::world::Answer;
use crate::fetch::{Fact, Fetch, ServiceAnswer};
use crate::gate::{self, InvalidPath};
use crate::policy::HttpMethod;

impl<'e> Scope<'e> {
    pub(super) fn load(&mut self, entry: &'e Entry) -> Result<Option<Value>, LoadError> {
        if entry.is_fetched() && self.given(&entry.name).is_some() {
            return Ok(None);
        }
        match &entry.source {
            Source::Variable { value, query, default } => {
                self.load_variable(value.as_ref(), query.as_ref(), default.as_ref()).map(Some)
            }
            Source::ConfigMap { name, namespace } => self.load_config_map(name, namespace.as_ref()).map(Some),
            Source::Call(call) => self.load_call(call).map(Some),
            Source::Global { name, query } => {
                let name = name.text(self)?;
                let data = match self.fetch(Fetch::Global { name: name.clone() }) {
                    Ok(Some(data)) => data,
                    Ok(None) => return Err(LoadError::Global { name, reason: None }),
                    Err(LoadError::Failed(reason)) => return Err(LoadError::Global { name, reason: Some(reason) }),
                    Err(error) => return Err(error),
                };
                self.query_over(query.as_ref(), data).map(Some)
            }
            Source::Image { reference, credentials, query } => {
                let reference = reference.text(self)?;
                let credentials = credentials.as_ref().map(|c| c.to_json().into());
                let fetched = self.fetch(Fetch::Image { reference: reference.clone(), credentials })?;
                let data = fetched.ok_or_else(|| LoadError::Missing(format!("image `{reference}`")))?;
                self.query_over(query.as_ref(), data).map(Some)
            }
        }
    }

    fn load_variable(
        &mut self,
        value: Option<&Template>,
        query: Option<&Query>,
        default: Option<&Template>,
    ) -> Result<Value, LoadError> {
        // The default is resolved even when it is not needed.
        let default = default.map(|template| template.resolve(self)).transpose()?;
        let value = value.map(|template| template.resolve(self)).transpose()?;
        let over_context = value.is_none();
        let outcome = match (value, query) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(query)) => self.query_over(Some(query), value),
            (None, Some(query)) => self.query_context(query),
            (None, None) => return Err(LoadError::NoValue),
        };
        match (outcome, default) {
            (Err(error), Some(default)) if error.is_of_expression() => Ok(default),
            (Err(error), _) => Err(error),
            (Ok(Value::Null), Some(default)) if over_context => Ok(default),
            (Ok(Value::Null), _) => Err(LoadError::NoValue),
            (Ok(value), _) => Ok(value),
        }
        .and_then(|value| if value.is_null() { Err(LoadError::NoValue) } else { Ok(value) })
    }

    /// The value of an expression over all names.
    fn query_context(&mut self, query: &Query) -> Result<Value, LoadError> {
        let (expression, holes) = self.query(query)?;
        let cause = match self.evaluate_expression(expression, &holes) {
            Ok(value) => return Ok(value),
            Err(Failure::Scope(error)) => return Err(error.into()),
            // Data that is not available is not replaced by a default: the verdict would be about nothing.
            Err(Failure::Cause(cause)) if cause.lack() == Lack::Host => {
                return Err(LoadError::Unavailable(cause.to_string()));
            }
            Err(Failure::Cause(Cause::Query(error @ (EvalError::Pending | EvalError::Budget(_))))) => {
                return Err(LoadError::of_query(error));
            }
            // An entry that this one mentions failed: so did the expression.
            Err(Failure::Cause(cause)) => cause,
        };
        Err(LoadError::Applied { query: query.written(), cause: cause.to_string(), lack: cause.lack() })
    }

    fn load_config_map(&mut self, name: &Template, namespace: Option<&Template>) -> Result<Value, LoadError> {
        let name = name.text(self)?;
        let namespace = match namespace {
            Some(template) => template.text(self)?,
            None => Str::new(self.world().namespace().unwrap_or("default")),
        };
        let what = format!("ConfigMap `{namespace}/{name}`");
        let object = self.fetch(Fetch::ConfigMap { namespace, name })?.ok_or(LoadError::Missing(what))?;
        let part = |key: &str| (Str::new(key), object.get(key).cloned().unwrap_or_default());
        Ok(Value::object([part("data"), part("metadata")].into_iter().collect()))
    }

    fn load_call(&mut self, call: &'e Call) -> Result<Value, LoadError> {
        let mut body = Map::new();
        for (key, template) in &call.data {
            body.insert(key.clone(), template.resolve(self)?);
        }
        let body = (call.method == HttpMethod::Post).then(|| Str::from(Value::object(body).to_json()));
        let (fetch, address) = match &call.service {
            None => {
                let pieces = call.address.pieces(self)?;
                let pieces: Vec<_> = pieces.iter().map(Resolved::as_piece).collect();
                let path = gate::assemble(&pieces)?;
                let address = path.to_string();
                (Fetch::Api { method: call.method, path, body }, address)
            }
            Some(service) => {
                let url = call.address.text(self)?;
                let mut headers = Vec::with_capacity(service.headers.len());
                for (key, template) in &service.headers {
                    headers.push((key.clone(), template.text(self)?));
                }
                headers.sort();
                let (address, ca_bundle) = (url.to_string(), service.ca_bundle.clone());
                let answer = ServiceAnswer::Document;
                (Fetch::Service { method: call.method, url, headers, body, ca_bundle, answer }, address)
            }
        };
        match (self.fetch(fetch), &call.default) {
            (Ok(Some(answer)), _) => self.query_over(call.query.as_ref(), answer),
            (Ok(None) | Err(LoadError::Failed(_)), Some(default)) => Ok(default.resolve(self)?),
            (Ok(None), None) => Err(LoadError::Missing(format!("`{address}`"))),
            (Err(error), _) => Err(error),
        }
    }

    /// The answer to a question; `None` if the thing does not exist.
    fn fetch(&self, fetch: Fetch) -> Result<Option<Value>, LoadError> {
        match self.world().ask(fetch) {
            Answer::Pending => Err(ScopeError::Pending.into()),
            Answer::Refused(reason) => Err(LoadError::Refused(reason)),
            Answer::Known(Fact::Found(value)) => Ok(Some(value.clone())),
            Answer::Known(Fact::Missing) => Ok(None),
            Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason)) => Err(LoadError::Failed(reason.clone())),
            Answer::Known(Fact::Unavailable(reason)) => Err(LoadError::Unavailable(reason.clone())),
        }
    }

    fn query_over(&mut self, query: Option<&Query>, data: Value) -> Result<Value, LoadError> {
        let Some(query) = query else { return Ok(data) };
        let (expression, holes) = self.query(query)?;
        expression.fill(&holes, &data, self.world()).map_err(LoadError::of_query)
    }

    fn query<'q>(&mut self, query: &'q Query) -> Result<(&'q Expression, Vec<Value>), LoadError> {
        match query {
            Query::Expression { expression, holes } => Ok((expression, filled(holes, self)?)),
            Query::Data(variable) => Err(match variable.value(self)? {
                Value::String(_) => LoadError::QueryFromData,
                other => LoadError::QueryNotAString(other.type_name()),
            }),
        }
    }
}

/// Why a context entry has no value.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error("JMESPath query failed: {0}")]
    Query(EvalError),
    /// An expression over all names fails. Upstream prints the data that it is applied to, which is none.
    #[error("failed to apply jmespath {query} to variable <nil>: {cause}")]
    Applied { query: String, cause: String, lack: Lack },
    /// A `GlobalContextEntry` has no data.
    #[error("failed to fetch entry key={name}{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Global { name: Str, reason: Option<String> },
    #[error("the jmesPath is the value of a variable; only text of the policy is an expression")]
    QueryFromData,
    #[error("the value is null")]
    NoValue,
    #[error("expected a string, found {0}")]
    NotAString(&'static str),
    /// Upstream's words (validate/clusterpolicy/cornercases/invalid-jmespath-variable-substitution).
    #[error("jmespath value must be a string, found {0}")]
    QueryNotAString(&'static str),
    #[error("{0} not found")]
    Missing(String),
    #[error("{0}")]
    Failed(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Path(#[from] InvalidPath),
}

impl LoadError {
    /// What to say of the entry named `entry`: upstream's words for expressions and for global context entries.
    pub(super) fn about(&self, entry: &str) -> String {
        match self {
            LoadError::Applied { .. } => self.to_string(),
            LoadError::Global { .. } => format!("failed to marshal APICall data for context entry {entry}: {self}"),
            _ => format!("failed to load context entry {entry}: {self}"),
        }
    }

    /// Whether the entry's expression has no value, so that a default stands in.
    fn is_of_expression(&self) -> bool {
        matches!(self, LoadError::Query(_) | LoadError::Applied { .. })
    }

    pub(super) fn lack(&self) -> Lack {
        match self {
            LoadError::Unavailable(_) => Lack::Host,
            LoadError::Missing(_)
            | LoadError::Failed(_)
            | LoadError::Refused(_)
            | LoadError::Path(_)
            | LoadError::Global { .. } => Lack::Data,
            LoadError::Scope(error) => error.lack(),
            LoadError::Applied { lack, .. } => *lack,
            LoadError::Query(_)
            | LoadError::QueryFromData
            | LoadError::NoValue
            | LoadError::NotAString(_)
            | LoadError::QueryNotAString(_) => Lack::Value,
        }
    }

    /// The error of an expression; missing facts and a spent budget are no matter of the entry.
    fn of_query(error: EvalError) -> Self {
        match error {
            EvalError::Pending => ScopeError::Pending.into(),
            EvalError::Budget(error) => ScopeError::Budget(error).into(),
            other => LoadError::Query(other),
        }
    }
}
