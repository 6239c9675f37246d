//! One test with everything it names loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::matching::UserInfo;
use ephor_engine::outcome::Phase;
use ephor_expr::value::Path as FieldPath;
use ephor_expr::yaml::{Limits, parse_documents};
use ephor_expr::{Str, Value};
use serde::Deserialize;

use super::bounds::Bounds;
use super::find::TestFile;
use super::mocks::Mocks;
use super::suite::{Expectation, Suite};
use crate::load::{
    ContextFile, FREE, LoadedPolicies, Shape, Typed, Values, load_exceptions, load_policies, misspelt, read,
    read_context, read_objects, read_one, read_user, read_values, strays,
};
use crate::locate::{Located, Origin};

/// One test with everything it names loaded. What could not be loaded is among the findings.
#[derive(Debug)]
pub struct Case {
    /// The directory that paths in the test are relative to.
    directory: PathBuf,
    /// What the test may read.
    bounds: Arc<Bounds>,
    /// Where the test stands.
    pub(super) origin: Origin,
    pub(super) results: Vec<Expectation>,
    pub(super) policies: LoadedPolicies,
    /// The objects that policies are run for.
    pub(super) triggers: Vec<Value>,
    /// JSON values that policies are run for.
    pub(super) payloads: Vec<Payload>,
    /// The objects that mutate-existing rules may change.
    pub(super) targets: Vec<Value>,
    /// Parameters of admission policies; mutate-existing rules may change them too.
    pub(super) params: Vec<Value>,
    /// An imagined cluster, if the test has one.
    pub(super) cluster: Option<Vec<Value>>,
    /// What functions in CEL find, if the test says so.
    pub(super) context: Option<ContextFile>,
    /// Kinds without namespaces, by group and kind.
    cluster_kinds: Vec<(Str, Str)>,
    pub(super) exceptions: ExceptionSet,
    pub(super) exception_count: usize,
    pub(super) values: Values,
    pub(super) user: Option<UserInfo>,
    pub(super) mocks: Mocks,
    /// What could not be loaded, and warnings.
    pub(super) findings: Vec<Located>,
}

const SPEC: Shape = Shape(&[("crds", &FREE), ("resources", &FREE)]);
const CLUSTER_RESOURCE: Shape = Shape(&[("apiVersion", &FREE), ("kind", &FREE), ("metadata", &FREE), ("spec", &SPEC)]);

/// A JSON value of a file.
#[derive(Debug)]
pub(super) struct Payload {
    /// The file, as the test names it.
    pub(super) file: Str,
    pub(super) value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterResource {
    #[serde(rename = "apiVersion")]
    _api_version: Str,
    #[serde(rename = "kind")]
    _kind: Str,
    #[serde(rename = "metadata", default)]
    _metadata: Option<Value>,
    #[serde(default)]
    spec: ClusterResourceSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ClusterResourceSpec {
    crds: Option<Vec<Str>>,
    resources: Option<Vec<Value>>,
}

impl Case {
    /// Loads what the test of a file names.
    pub fn load(file: &TestFile, suite: Typed<Suite>) -> Self {
        let Typed { value: mut suite, origin } = suite;
        let directory = file.path.parent().map(Path::to_path_buf).unwrap_or_default();
        let mut case = Self {
            directory,
            bounds: Arc::clone(&file.bounds),
            origin,
            results: suite.results.take().unwrap_or_default(),
            policies: LoadedPolicies::default(),
            triggers: Vec::new(),
            payloads: Vec::new(),
            targets: Vec::new(),
            params: Vec::new(),
            cluster: None,
            context: None,
            cluster_kinds: Vec::new(),
            exceptions: ExceptionSet::default(),
            exception_count: 0,
            values: Values::default(),
            user: None,
            mocks: Mocks::default(),
            findings: Vec::new(),
        };
        case.refuse_payloads(&suite);
        case.load_cluster(&suite);
        case.load_context(&suite);
        case.load_policies(&suite);
        case.triggers = case.objects("resources", suite.resources.as_deref());
        case.load_payloads(&suite);
        case.targets = case.objects("targetResources", suite.target_resources.as_deref());
        case.params = case.objects("paramResources", suite.param_resources.as_deref());
        case.load_exceptions(&suite);
        case.load_values(suite.variables.as_ref(), suite.values.take());
        if let Some(file) = &suite.userinfo {
            match case.path(file).map(|path| read_user(&path)).transpose() {
                Ok(user) => case.user = user,
                Err(findings) => case.findings.extend(findings),
            }
        }
        let responses = suite.api_call_responses.take().unwrap_or_default();
        let entries = suite.global_context_entries.take().unwrap_or_default();
        case.mocks = Mocks::load(responses, entries, &mut case);
        case.check_results();
        case
    }

    /// Notes an error in the test itself.
    pub(super) fn fault(&mut self, code: &'static str, at: FieldPath, message: impl Into<String>) {
        self.findings.push(Located::of_diagnostic(Diagnostic::error(code, at, message), &self.origin));
    }

    /// The path that the test names, unless it leads to what the test may not read: then that is noted.
    fn path(&mut self, named: &str) -> Option<PathBuf> {
        let path = self.directory.join(named);
        match self.bounds.refusal(&path.display().to_string()) {
            None => Some(path),
            Some(refusal) => {
                self.fault("outside", FieldPath::root(), refusal);
                None
            }
        }
    }

    fn refuse_payloads(&mut self, suite: &Suite) {
        let given = |list: &Option<Vec<Str>>| list.as_ref().is_some_and(|l| !l.is_empty());
        for (key, used) in
            [("httpPayloads", given(&suite.http_payloads)), ("envoyPayloads", given(&suite.envoy_payloads))]
        {
            if used {
                let message = format!("`{key}` are for CEL policies, which are not supported yet");
                self.fault("not-supported", FieldPath::root().key(key), message);
            }
        }
    }

    fn load_payloads(&mut self, suite: &Suite) {
        for name in suite.json_payloads.iter().flatten().chain(&suite.json_payload).filter(|name| !name.is_empty()) {
            let Some(path) = self.path(name) else { continue };
            let file = match read(&path) {
                Ok(file) => file,
                Err(error) => {
                    self.findings.push(Located::of_read(error));
                    continue;
                }
            };
            match parse_documents(&file.text, &Limits::default()) {
                Ok(documents) => {
                    let values = documents.into_iter().map(|document| document.value);
                    self.payloads.extend(values.map(|value| Payload { file: name.clone(), value }));
                }
                Err(error) => self.findings.push(Located::of_yaml(error, &file)),
            }
        }
    }

    fn load_cluster(&mut self, suite: &Suite) {
        let files = suite.cluster_resources.as_deref().unwrap_or_default();
        let mut objects = Vec::new();
        for file in files {
            let Some(path) = self.path(file) else { continue };
            let spec = match read_one::<ClusterResource>(&path, &CLUSTER_RESOURCE) {
                Ok(typed) => typed.value.spec,
                Err(findings) => {
                    self.findings.extend(findings);
                    continue;
                }
            };
            for crd in spec.crds.iter().flatten() {
                let Some(path) = self.path(crd) else { continue };
                match read_objects(&path, &|_, _| false) {
                    Ok(crds) => {
                        self.cluster_kinds.extend(crds.iter().filter_map(|c| cluster_kind(&c.object)));
                        // API calls need the definition itself: it says which paths the kind has.
                        objects.extend(crds.into_iter().map(|c| c.object));
                    }
                    Err(findings) => self.findings.extend(findings),
                }
            }
            objects.extend(spec.resources.into_iter().flatten());
        }
        if !files.is_empty() {
            let objects = objects.into_iter().map(|o| crate::load::normalise(o, |g, k| self.is_cluster_kind(g, k)));
            self.cluster = Some(objects.collect());
        }
    }

    fn load_context(&mut self, suite: &Suite) {
        let Some(path) = suite.context.as_ref().filter(|file| !file.is_empty()).and_then(|file| self.path(file)) else {
            return;
        };
        match read_context(&path) {
            Ok(mut context) => {
                let known = |group: &str, kind: &str| self.is_cluster_kind(group, kind);
                let objects = context.resources.into_iter().map(|object| crate::load::normalise(object, known));
                context.resources = objects.collect();
                self.context = Some(context);
            }
            Err(findings) => self.findings.extend(findings),
        }
    }

    fn is_cluster_kind(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.cluster_kinds.iter().any(|(g, k)| g == group && k == kind)
    }

    fn load_policies(&mut self, suite: &Suite) {
        let mut paths: Vec<String> = Vec::new();
        for policy in suite.policies.iter().flatten() {
            let path = if policy.contains("://") {
                Some(policy.to_string())
            } else {
                self.path(policy).map(|path| path.display().to_string())
            };
            paths.extend(path.filter(|path| !paths.contains(path)));
        }
        let mut loaded = load_policies(&paths, Discovery::kubernetes());
        self.findings.append(&mut loaded.findings);
        self.policies = loaded;
    }

    /// The objects of files, each once. `key` is the field that names the files.
    fn objects(&mut self, key: &'static str, files: Option<&[Str]>) -> Vec<Value> {
        let mut objects: Vec<Value> = Vec::new();
        let mut seen: Vec<&Str> = Vec::new();
        for (i, file) in files.unwrap_or_default().iter().enumerate() {
            if seen.contains(&file) {
                continue;
            }
            seen.push(file);
            for object in self.read(file) {
                let same = |other: &&Value| identity(other) == identity(&object);
                if let Some(first) = objects.iter().find(same) {
                    if *first != object {
                        let (_, kind, namespace, name) = identity(&object);
                        let message = format!("{kind} `{namespace}/{name}` is there twice: the first counts");
                        let at = FieldPath::root().key(key).index(i);
                        let finding = Diagnostic::warning("repeated-resource", at, message);
                        self.findings.push(Located::of_diagnostic(finding, &self.origin));
                    }
                    continue;
                }
                objects.push(object);
            }
        }
        objects
    }

    /// The objects of a file that the test names; faults are noted.
    pub(super) fn read(&mut self, file: &str) -> Vec<Value> {
        let Some(path) = self.path(file) else { return Vec::new() };
        match read_objects(&path, &|api_version, kind| self.is_cluster_kind(api_version, kind)) {
            Ok(objects) => objects.into_iter().map(|loaded| loaded.object).collect(),
            Err(findings) => {
                self.findings.extend(findings);
                Vec::new()
            }
        }
    }

    fn load_exceptions(&mut self, suite: &Suite) {
        let files = suite.exceptions.iter().flatten();
        let paths = files.filter_map(|file| Some(self.path(file)?.display().to_string()));
        let paths: Vec<String> = paths.collect();
        let mut loaded = load_exceptions(&paths);
        self.findings.append(&mut loaded.findings);
        self.findings.extend(strays(&loaded.exceptions, &self.policies.policies));
        let exceptions: Vec<_> = loaded.exceptions.into_iter().map(|loaded| loaded.exception).collect();
        self.exception_count = exceptions.len();
        self.exceptions = ExceptionSet::new(exceptions);
    }

    fn load_values(&mut self, file: Option<&Str>, in_place: Option<Values>) {
        if let Some(values) = in_place {
            self.values = values;
        } else if let Some(file) = file.filter(|f| !f.is_empty()) {
            match self.path(file).map(|path| read_values(&path)).transpose() {
                Ok(values) => self.values = values.unwrap_or_default(),
                Err(findings) => self.findings.extend(findings),
            }
        }
        self.findings.extend(self.values.names().filter_map(|name| misspelt(name)));
    }

    /// Whether a policy of this name deletes objects.
    fn deletes(&self, policy: &str) -> bool {
        let named = self.policies.policies.iter().filter(|p| p.program.id.name == policy || p.program.key == policy);
        named.flat_map(|p| &p.program.rules).any(|rule| rule.phase() == Phase::Delete)
    }

    fn check_results(&mut self) {
        for i in 0..self.results.len() {
            let Some(result) = self.results.get(i) else { break };
            let at = result_path(result);
            let word = result.result.clone();
            let deletes = result.is_deleting_policy == Some(true) || self.deletes(&result.policy);
            let operation = result.operation.clone().filter(|o| !o.is_empty());
            if result.verdict().is_none() {
                let message = format!("result `{word}` is not one of `pass`, `fail`, `skip`, `warn`, `error`");
                self.fault("invalid-result", at.key("result"), message);
            }
            if deletes && operation.is_some() {
                let message = "a policy that deletes judges what is stored, whatever the operation: leave it out";
                self.fault("invalid-result", at.key("operation"), message);
            } else if let Some(word) = operation
                && crate::load::parse_operation(&word).is_none()
            {
                let message = format!("operation `{word}` is not one of `CREATE`, `UPDATE`, `DELETE`, `CONNECT`");
                self.fault("invalid-result", at.key("operation"), message);
            }
        }
    }
}

/// Where a result stands in its test.
pub(super) fn result_path(result: &Expectation) -> FieldPath {
    FieldPath::root().key("results").index(result.index)
}

/// Group and kind of a CRD without namespaces.
fn cluster_kind(crd: &Value) -> Option<(Str, Str)> {
    if crd.str_at(&["spec", "scope"]) != Some("Cluster") {
        return None;
    }
    Some((Str::new(crd.str_at(&["spec", "group"])?), Str::new(crd.str_at(&["spec", "names", "kind"])?)))
}

/// Group, kind, namespace and name: what makes two objects the same one.
pub(super) fn identity(object: &Value) -> (&str, &str, &str, &str) {
    let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
    let group = object.str_at(&["apiVersion"]).and_then(|v| v.split_once('/')).map_or("", |(group, _)| group);
    (group, text(&["kind"]), text(&["metadata", "namespace"]), text(&["metadata", "name"]))
}

/// An object as rows show it: API version, kind, namespace and name.
pub(super) fn label(object: &Value) -> String {
    let parts = [&["apiVersion"][..], &["kind"], &["metadata", "namespace"], &["metadata", "name"]];
    let parts = parts.iter().filter_map(|keys| object.str_at(keys)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("/")
}
