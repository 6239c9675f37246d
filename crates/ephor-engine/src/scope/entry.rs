//! Context entries, compiled.

use ephor_expr::jmespath::{Expression, HOLE, RootKind};
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::compile::{Compiler, expression_diagnostic};
use super::template::{Template, Variable};
use crate::diagnostic::Diagnostic;
use crate::policy::{ApiCall, ContextEntry, HttpMethod};

/// A context entry, ready to be loaded.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The variable's name.
    pub name: Str,
    /// Where its value comes from.
    pub source: Source,
    /// Where it stands in the policy.
    pub path: Path,
}

/// Where an entry's value comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// Computed.
    Variable {
        /// Literal data.
        value: Option<Template>,
        /// An expression over it, or over everything.
        query: Option<Query>,
        /// For when the expression gives nothing.
        default: Option<Template>,
    },
    /// A `ConfigMap`.
    ConfigMap {
        /// Its name.
        name: Template,
        /// Its namespace; absent means the policy's, or `default`.
        namespace: Option<Template>,
    },
    /// A call of the Kubernetes API or of a service.
    Call(Box<Call>),
    /// A `GlobalContextEntry`.
    Global {
        /// Its name.
        name: Template,
        /// An expression over its data.
        query: Option<Query>,
    },
    /// An image in its registry.
    Image {
        /// The reference.
        reference: Template,
        /// How to log in, as written.
        credentials: Option<Value>,
        /// An expression over the data.
        query: Option<Query>,
    },
}

/// A call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The API path or the service's address.
    pub(super) address: Template,
    /// Whether the address is a service's.
    pub(super) service: Option<Service>,
    /// GET or POST.
    pub(super) method: HttpMethod,
    /// Members of the POST body.
    pub(super) data: Vec<(Str, Template)>,
    /// An expression over the answer.
    pub(super) query: Option<Query>,
    /// For when the call fails.
    pub(super) default: Option<Template>,
}

/// What only services have.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) headers: Vec<(Str, Template)>,
    pub(super) ca_bundle: Option<Str>,
}

/// The `jmesPath` of an entry.
#[derive(Debug, Clone)]
pub enum Query {
    /// An expression, and the variables in its text.
    Expression {
        /// Compiled; each `{{ }}` in it is a hole.
        expression: Expression,
        /// What fills the holes, in order.
        holes: Vec<Variable>,
    },
    /// One variable and no text around it: there is no expression in the policy.
    Data(Variable),
}

impl Entry {
    /// Compiles the entries of a `context` list at `path`. Entries without exactly one source are reported.
    pub fn compile_all(entries: Option<&Vec<ContextEntry>>, path: &Path, compiler: &mut Compiler<'_>) -> Vec<Entry> {
        let mut given = Vec::new();
        let mut compiled = Vec::new();
        for (i, entry) in entries.into_iter().flatten().enumerate() {
            let Some(entry) = Self::compile(entry, &path.index(i), &given, compiler) else { continue };
            given.push((entry.name.clone(), entry.policy_text().cloned()));
            compiled.push(entry);
        }
        compiled
    }

    /// The text of the policy that is all of the entry's definition.
    pub(super) fn policy_text(&self) -> Option<&Str> {
        match &self.source {
            Source::Variable { value: Some(Template::Fixed(Value::String(text))), query: None, .. } => Some(text),
            _ => None,
        }
    }

    fn compile(
        entry: &ContextEntry,
        path: &Path,
        given: &[(Str, Option<Str>)],
        compiler: &mut Compiler<'_>,
    ) -> Option<Entry> {
        let mut sources = Vec::with_capacity(1);
        if let Some(variable) = &entry.variable {
            let at = path.key("variable");
            let root = if variable.value.is_some() { RootKind::Data } else { RootKind::Names };
            sources.push(Source::Variable {
                value: variable.value.as_ref().map(|v| compiler.template(v, &at.key("value"))),
                query: Query::compile(variable.jmes_path.as_ref(), &at, root, given, compiler),
                default: variable.default.as_ref().map(|v| compiler.template(v, &at.key("default"))),
            });
        }
        if let Some(map) = &entry.config_map {
            let at = path.key("configMap");
            sources.push(Source::ConfigMap {
                name: compiler.text(&map.name, &at.key("name")),
                namespace: map.namespace.as_ref().map(|ns| compiler.text(ns, &at.key("namespace"))),
            });
        }
        if let Some(call) = &entry.api_call {
            // One that is at fault has been reported.
            let call = Call::compile(call, &path.key("apiCall"), given, compiler)?;
            sources.push(Source::Call(Box::new(call)));
        }
        if let Some(global) = &entry.global_reference {
            let at = path.key("globalReference");
            sources.push(Source::Global {
                name: compiler.text(&global.name, &at.key("name")),
                query: Query::compile(global.jmes_path.as_ref(), &at, RootKind::Data, given, compiler),
            });
        }
        if let Some(image) = &entry.image_registry {
            let at = path.key("imageRegistry");
            sources.push(Source::Image {
                reference: compiler.text(&image.reference, &at.key("reference")),
                credentials: image.image_registry_credentials.clone(),
                query: Query::compile(image.jmes_path.as_ref(), &at, RootKind::Data, given, compiler),
            });
        }
        let count = sources.len();
        match (sources.pop(), count) {
            (Some(source), 1) if !entry.name.is_empty() => {
                Some(Entry { name: entry.name.clone(), source, path: path.clone() })
            }
            _ => {
                let known = "`variable`, `configMap`, `apiCall`, `globalReference`, `imageRegistry`";
                let message = if entry.name.is_empty() {
                    "a context entry needs a name".to_owned()
                } else {
                    format!("context entry `{}` needs exactly one of {known}", entry.name)
                };
                compiler.report(Diagnostic::error("context-entry", path.clone(), message));
                None
            }
        }
    }

    /// Whether the value comes from outside.
    pub fn is_fetched(&self) -> bool {
        !matches!(self.source, Source::Variable { .. })
    }
}

impl Call {
    fn compile(call: &ApiCall, path: &Path, given: &[(Str, Option<Str>)], compiler: &mut Compiler<'_>) -> Option<Self> {
        let (address, service) = match (&call.url_path, &call.service) {
            (Some(url_path), None) => (compiler.text(url_path, &path.key("urlPath")), None),
            (None, Some(service)) => {
                let at = path.key("service");
                let headers = service.headers.iter().flatten().enumerate().flat_map(|(i, pair)| {
                    let at = at.key("headers").index(i);
                    // The documented form is a list of {key, value} pairs.
                    match (pair.get("key"), pair.get("value")) {
                        (Some(key), Some(value)) => vec![(key.clone(), value.clone(), at.key("value"))],
                        _ => pair.iter().map(|(k, v)| (k.clone(), v.clone(), at.key(k.clone()))).collect(),
                    }
                });
                let headers: Vec<_> = headers.collect();
                let headers = headers.into_iter().map(|(k, v, at)| (k, compiler.text(&v, &at))).collect();
                let url = compiler.text(&service.url, &at.key("url"));
                (url, Some(Service { headers, ca_bundle: service.ca_bundle.clone() }))
            }
            _ => {
                let message = "an apiCall needs exactly one of `urlPath` and `service`";
                compiler.report(Diagnostic::error("context-entry", path.clone(), message));
                return None;
            }
        };
        let data = call.data.iter().flatten().enumerate();
        let data = data
            .map(|(i, d)| (d.key.clone(), compiler.template(&d.value, &path.key("data").index(i).key("value"))))
            .collect();
        Some(Self {
            address,
            service,
            method: call.method.unwrap_or_default(),
            data,
            query: Query::compile(call.jmes_path.as_ref(), path, RootKind::Data, given, compiler),
            default: call.default.as_ref().map(|v| compiler.template(v, &path.key("default"))),
        })
    }
}

impl Query {
    /// Compiles the `jmesPath` of the object at `path`, which starts from `root`. `given` are the texts of the policy
    /// by which entries before this one are defined: one that is all of the `jmesPath` is the expression.
    fn compile(
        text: Option<&Str>,
        path: &Path,
        root: RootKind,
        given: &[(Str, Option<Str>)],
        compiler: &mut Compiler<'_>,
    ) -> Option<Self> {
        let text = text.filter(|text| !text.is_empty())?;
        let path = path.key("jmesPath");
        let (text, holes) = compiler.holed(text, &path, &[])?.split();
        let lone = text.strip_prefix(HOLE).is_some_and(str::is_empty);
        let (text, holes) = match holes.first().filter(|_| lone) {
            None => (text, holes),
            Some(variable) => match policy_text(&variable.written, given) {
                Some(text) => (text.to_string(), Vec::new()),
                None => return holes.into_iter().next().map(Query::Data),
            },
        };
        let compiled =
            if holes.is_empty() { Expression::compile(&text) } else { Expression::compile_with_holes(&text, root) };
        match compiled {
            Ok(expression) => Some(Query::Expression { expression, holes }),
            Err(error) => {
                compiler.report(expression_diagnostic(&error, path, 0));
                None
            }
        }
    }

    /// The expression as the policy has it, for messages.
    pub(super) fn written(&self) -> String {
        match self {
            Query::Expression { expression, holes } => {
                let mut holes = holes.iter();
                let part = |part: &str| match holes.next() {
                    Some(variable) => format!("{part}{{{{ {} }}}}", variable.written),
                    None => part.to_owned(),
                };
                expression.text().split(HOLE).map(part).collect()
            }
            Query::Data(variable) => format!("{{{{ {} }}}}", variable.written),
        }
    }
}

/// The text of the policy that the variable `name` is defined by.
fn policy_text<'g>(name: &str, given: &'g [(Str, Option<Str>)]) -> Option<&'g Str> {
    given.iter().rev().find(|(entry, _)| entry == name).and_then(|(_, text)| text.as_ref())
}
