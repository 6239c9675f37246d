//! The query of a URL.

use ephor_expr::{Str, Value};

use super::path::decode;
use crate::error::ClusterError;
use crate::query::{FieldSelector, Filter, LabelSelector, ListQuery};
use crate::resource::Resource;
use crate::write::{DeleteOptions, FieldValidation, Part, Propagation, WriteOptions};

/// The parameters that mean something here. Others (`pretty`, `timeoutSeconds`,
/// ...) change nothing about the answer, and API servers ignore unknown ones too.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of that name")]
pub(crate) struct Parameters {
    labels: LabelSelector,
    fields: FieldSelector,
    limit: usize,
    continue_token: Option<Str>,
    dry_run: bool,
    field_manager: Str,
    field_validation: FieldValidation,
    force: bool,
    propagation: Option<Propagation>,
    pub(crate) watch: bool,
    /// The state that a watch goes on from.
    pub(crate) resource_version: Str,
    pub(crate) bookmarks: bool,
}

impl Parameters {
    /// Reads what stands after the `?`.
    pub(crate) fn parse(query: &str, dry_run: bool) -> Result<Self, ClusterError> {
        let mut parameters = Self { dry_run, ..Self::default() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (decode(key, true), decode(value, true)) else {
                return Err(ClusterError::bad_request(format!("invalid URL escape in {pair:?}")));
            };
            match key.as_str() {
                "labelSelector" => parameters.labels = LabelSelector::parse(&value)?,
                "fieldSelector" => parameters.fields = FieldSelector::parse(&value)?,
                "limit" => {
                    parameters.limit =
                        value.parse().map_err(|_| ClusterError::bad_request(format!("invalid limit {value:?}")))?;
                }
                "continue" => parameters.continue_token = Some(value.into()).filter(|t: &Str| !t.is_empty()),
                "dryRun" if value == "All" => parameters.dry_run = true,
                "dryRun" => return Err(ClusterError::bad_request(format!("invalid dryRun {value:?}"))),
                "fieldManager" => parameters.field_manager = value.into(),
                "fieldValidation" => {
                    parameters.field_validation = match value.as_str() {
                        "" | "Warn" => FieldValidation::Warn,
                        "Ignore" => FieldValidation::Ignore,
                        "Strict" => FieldValidation::Strict,
                        _ => return Err(ClusterError::bad_request(format!("invalid fieldValidation {value:?}"))),
                    };
                }
                "force" => parameters.force = value == "true",
                "propagationPolicy" => parameters.propagation = Some(propagation(&value)?),
                "resourceVersion" => parameters.resource_version = value.into(),
                "allowWatchBookmarks" => parameters.bookmarks = !matches!(value.as_str(), "false" | "0"),
                "watch" => parameters.watch = !matches!(value.as_str(), "false" | "0"),
                _ => {}
            }
        }
        Ok(parameters)
    }

    /// What to list of that kind.
    pub(crate) fn list(&self, resource: &Resource, namespace: Option<&str>) -> Result<ListQuery, ClusterError> {
        self.fields.check(resource)?;
        Ok(ListQuery {
            filter: Filter {
                namespace: namespace.map(Str::new),
                labels: self.labels.clone(),
                fields: self.fields.clone(),
            },
            limit: self.limit,
            continue_token: self.continue_token.clone(),
            ..ListQuery::default()
        })
    }

    pub(crate) fn write(&self, part: Part) -> WriteOptions {
        WriteOptions {
            dry_run: self.dry_run,
            field_manager: self.field_manager.clone(),
            part,
            force: self.force,
            field_validation: self.field_validation,
        }
    }

    /// Options of a deletion: those of the query and those of a `DeleteOptions` body.
    pub(crate) fn delete(&self, body: Option<&Value>) -> Result<DeleteOptions, ClusterError> {
        let text = |keys: &[&str]| body.and_then(|b| b.str_at(keys)).map(Str::new).unwrap_or_default();
        let dry_run = body.and_then(|b| b.get("dryRun")).and_then(Value::as_array).unwrap_or_default();
        let propagation = match text(&["propagationPolicy"]).as_str() {
            "" => self.propagation,
            policy => Some(propagation(policy)?),
        };
        Ok(DeleteOptions {
            dry_run: self.dry_run || dry_run.iter().any(|v| v.as_str() == Some("All")),
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
            propagation,
        })
    }
}

fn propagation(text: &str) -> Result<Propagation, ClusterError> {
    match text {
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        _ => Err(ClusterError::bad_request(format!("invalid propagationPolicy {text:?}"))),
    }
}
