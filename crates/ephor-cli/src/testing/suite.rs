//! `kyverno-test.yaml` as written.

use std::path::Path;

use ephor_engine::outcome::Verdict;
use ephor_expr::{Str, Value};
use serde::Deserialize;

use crate::load::{FREE, Shape, Typed, VALUES, Values, read_typed};
use crate::locate::Located;

const RESPONSE: Shape = Shape(&[("statusCode", &FREE), ("body", &FREE)]);
const CALL: Shape = Shape(&[("url", &FREE), ("urlPath", &FREE), ("method", &FREE), ("response", &RESPONSE)]);
const PROJECTION: Shape = Shape(&[("name", &FREE), ("path", &FREE)]);
const ENTRY: Shape = Shape(&[
    ("name", &FREE),
    ("data", &FREE),
    ("resources", &FREE),
    ("resourceFiles", &FREE),
    ("fieldPath", &FREE),
    ("projections", &PROJECTION),
]);
const RESOURCE_SPEC: Shape = Shape(&[
    ("group", &FREE),
    ("version", &FREE),
    ("kind", &FREE),
    ("namespace", &FREE),
    ("subresource", &FREE),
    ("name", &FREE),
]);
const RESULT: Shape = Shape(&[
    ("policy", &FREE),
    ("rule", &FREE),
    ("resources", &FREE),
    ("resourceSpecs", &RESOURCE_SPEC),
    ("kind", &FREE),
    ("result", &FREE),
    ("operation", &FREE),
    ("patchedResources", &FREE),
    ("generatedResource", &FREE),
    ("generatedResources", &FREE),
    ("cloneSourceResource", &FREE),
    ("failOnMissingResources", &FREE),
    ("isValidatingAdmissionPolicy", &FREE),
    ("isMutatingAdmissionPolicy", &FREE),
    ("isValidatingPolicy", &FREE),
    ("isMutatingPolicy", &FREE),
    ("isGeneratingPolicy", &FREE),
    ("isDeletingPolicy", &FREE),
    ("isImageValidatingPolicy", &FREE),
]);
const SUITE: Shape = Shape(&[
    ("apiVersion", &FREE),
    ("kind", &FREE),
    ("metadata", &FREE),
    ("policies", &FREE),
    ("resources", &FREE),
    ("targetResources", &FREE),
    ("paramResources", &FREE),
    ("jsonPayload", &FREE),
    ("jsonPayloads", &FREE),
    ("httpPayloads", &FREE),
    ("envoyPayloads", &FREE),
    ("variables", &FREE),
    ("values", &VALUES),
    ("userinfo", &FREE),
    ("exceptions", &FREE),
    ("context", &FREE),
    ("clusterResources", &FREE),
    ("apiCallResponses", &CALL),
    ("globalContextEntries", &ENTRY),
    ("results", &RESULT),
]);

/// One test: policies, resources and expected results. Paths are relative to the file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Suite {
    /// Not empty; any text will do.
    pub api_version: Str,
    /// Not empty; any text will do.
    pub kind: Str,
    /// Free.
    pub metadata: Option<Value>,
    /// Files and directories of policies.
    pub policies: Option<Vec<Str>>,
    /// Files of triggers.
    pub resources: Option<Vec<Str>>,
    /// Files of objects that mutate-existing rules change.
    pub target_resources: Option<Vec<Str>>,
    /// Files of parameters of admission policies.
    pub param_resources: Option<Vec<Str>>,
    /// Deprecated for `jsonPayloads`.
    pub json_payload: Option<Str>,
    /// Files that are no Kubernetes objects.
    pub json_payloads: Option<Vec<Str>>,
    /// HTTP requests.
    pub http_payloads: Option<Vec<Str>>,
    /// Envoy requests.
    pub envoy_payloads: Option<Vec<Str>>,
    /// A file of values.
    pub variables: Option<Str>,
    /// Values in place; they win over `variables`.
    pub values: Option<Values>,
    /// A file that says who asks.
    pub userinfo: Option<Str>,
    /// Files of exceptions.
    pub exceptions: Option<Vec<Str>>,
    /// A file of data for CEL policies.
    pub context: Option<Str>,
    /// Files of objects of an imagined cluster.
    pub cluster_resources: Option<Vec<Str>>,
    /// Answers of APIs and services.
    pub api_call_responses: Option<Vec<CallResponse>>,
    /// Data of global context entries.
    pub global_context_entries: Option<Vec<GlobalEntry>>,
    /// The expected results.
    pub results: Option<Vec<Expectation>>,
}

/// The answer of an API or a service.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CallResponse {
    /// The service's address.
    pub url: Option<Str>,
    /// Or the API path.
    pub url_path: Option<Str>,
    /// GET, POST, or empty for both.
    pub method: Option<Str>,
    /// The answer.
    pub response: Response,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Response {
    /// The HTTP status.
    pub status_code: i64,
    /// The JSON body.
    pub body: Value,
}

impl Default for Response {
    fn default() -> Self {
        Self { status_code: 200, body: Value::Null }
    }
}

/// The data of a global context entry: one of `data`, `resources` and `resourceFiles`, then `fieldPath` of it, then
/// projections.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GlobalEntry {
    /// The entry's name.
    pub name: Str,
    /// Data as such.
    pub data: Option<Value>,
    /// Objects.
    pub resources: Option<Vec<Value>>,
    /// Files of objects.
    pub resource_files: Option<Vec<Str>>,
    /// An expression over the data.
    pub field_path: Option<Str>,
    /// Named expressions over that.
    pub projections: Option<Vec<Projection>>,
}

/// A named expression.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Projection {
    /// Its name.
    pub name: Str,
    /// The expression.
    pub path: Str,
}

/// The expected results of a policy for some resources.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Expectation {
    /// Which one it is in its test.
    #[serde(skip)]
    pub index: usize,
    /// The policy, `name` or `namespace/name`.
    pub policy: Str,
    /// The rule; all of the policy if empty.
    pub rule: Option<Str>,
    /// Names (`name` or `namespace/name`) of resources; all if there are none.
    pub resources: Option<Vec<Str>>,
    /// Resources by more than their names.
    pub resource_specs: Option<Vec<ResourceSpec>>,
    /// The resources' kind; it tells resources of one name apart.
    pub kind: Option<Str>,
    /// `pass`, `fail`, `skip`, `warn` or `error`.
    pub result: Str,
    /// The operation to run with.
    pub operation: Option<Str>,
    /// A file of objects after mutation.
    pub patched_resources: Option<Str>,
    /// A file of generated objects.
    pub generated_resource: Option<Str>,
    /// Files of generated objects; they win over `generatedResource`.
    pub generated_resources: Option<Vec<Str>>,
    /// A file of objects that the rule clones.
    pub clone_source_resource: Option<Str>,
    /// Whether each object that the rule changes must be among the expected ones; otherwise one of them must.
    pub fail_on_missing_resources: Option<bool>,
    /// The policy's kind: without effect.
    pub is_validating_admission_policy: Option<bool>,
    /// The policy's kind: without effect.
    pub is_mutating_admission_policy: Option<bool>,
    /// The policy's kind: without effect.
    pub is_validating_policy: Option<bool>,
    /// The policy's kind: without effect.
    pub is_mutating_policy: Option<bool>,
    /// The policy's kind: without effect.
    pub is_generating_policy: Option<bool>,
    /// The policy's kind: without effect.
    pub is_deleting_policy: Option<bool>,
    /// The policy's kind: without effect.
    pub is_image_validating_policy: Option<bool>,
}

/// A resource by more than its name; parts left out fit everything.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResourceSpec {
    /// Its group.
    pub group: Option<Str>,
    /// Its version.
    pub version: Option<Str>,
    /// Its kind.
    pub kind: Option<Str>,
    /// Its namespace.
    pub namespace: Option<Str>,
    /// Without effect.
    pub subresource: Option<Str>,
    /// Its name.
    pub name: Option<Str>,
}

impl Expectation {
    /// The rule asked for; `None` for all.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref().filter(|rule| !rule.is_empty())
    }

    /// The verdict that is wanted.
    pub fn verdict(&self) -> Option<Verdict> {
        Verdict::parse(&self.result)
    }
}

impl Suite {
    /// The name in its metadata, if it has one.
    pub fn name(&self) -> &str {
        self.metadata.as_ref().and_then(|m| m.str_at(&["name"])).unwrap_or_default()
    }
}

/// Reads the tests of a file, one a document.
pub fn read_suites(path: &Path) -> Result<Vec<Typed<Suite>>, Vec<Located>> {
    read_typed(path, &SUITE)
}
