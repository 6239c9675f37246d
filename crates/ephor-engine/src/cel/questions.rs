//! What Kyverno's functions in CEL ask the world outside.
//!
//! Takes the [`Question`] of a function and the [`World`] of its policy; gives the answer as the function shows it.
//! Each question becomes a [`Fetch`] that passes the gate, so an expression may ask what the same policy may ask in a
//! context of JMESPath, and nothing else.

use ephor_expr::cel::EvalError;
use ephor_expr::cel::library::{Attributes, Decision, Host, Question};
use ephor_expr::jmespath::functions::random_text;
use ephor_expr::jmespath::{self, Runtime as _};
use ephor_expr::{Map, Str, Value};

use crate::fetch::{Fact, Fetch, ServiceAnswer};
use crate::gate::{ApiPath, ObjectsPath};
use crate::policy::HttpMethod;
use crate::scope::{Answer, World};

/// What `random()` matches without an argument.
const RANDOM: &str = "[0-9a-z]{8}";

/// Answers functions from the world of a policy, for expressions that judge no request: authorization has no user.
#[derive(Debug, Clone, Copy)]
pub struct Functions<'w, 'e>(pub &'w World<'e>);

impl Host for Functions<'_, '_> {
    fn authorize(&self, _: &Attributes) -> Result<Decision, EvalError> {
        Err(EvalError::Other("there is no request whose user could be authorized".to_owned()))
    }

    fn ask(&self, question: &Question) -> Result<Value, EvalError> {
        answer(self.0, question)
    }
}

/// The answer to `question`; [`EvalError::Pending`] if it is not known yet.
pub(super) fn answer(world: &World<'_>, question: &Question) -> Result<Value, EvalError> {
    let arguments = question.arguments.get(1..).unwrap_or_default();
    match (question.target, question.function.as_str()) {
        ("resource.Context", "get") => object(world, arguments),
        ("resource.Context", "list") => objects(world, arguments),
        ("resource.Context", "post") => post(world, arguments),
        ("resource.Context", "togvr") => resource_of_kind(world, arguments),
        ("globalcontext.Context", "get") => global(world, arguments),
        ("imagedata.Context", "getmetadata") => image(world, arguments),
        ("http.Context", "client") => Ok(arguments.first().cloned().unwrap_or_default()),
        ("http.Context", "get") => call(world, HttpMethod::Get, &question.arguments),
        ("http.Context", "post") => call(world, HttpMethod::Post, &question.arguments),
        ("", "time.now") => Ok(Value::from(world.now().to_string())),
        ("", "random" | "random.random") => {
            let pattern = question.arguments.first().and_then(Value::as_str).unwrap_or(RANDOM);
            let text = random_text(pattern, world).map_err(|error| match error {
                jmespath::EvalError::Budget(error) => EvalError::Budget(error),
                error => EvalError::Other(error.to_string()),
            })?;
            Ok(Value::from(text))
        }
        (_, function) => Err(EvalError::Other(format!("{function} is not available here"))),
    }
}

/// The answer to a fetch, none if there is no such thing; `what` is what fails if it cannot be had.
fn fetch(world: &World<'_>, fetch: Fetch, what: &str) -> Result<Option<Value>, EvalError> {
    let reason = match world.ask(fetch) {
        Answer::Pending => return Err(EvalError::Pending),
        Answer::Known(Fact::Found(found)) => return Ok(Some(found.clone())),
        Answer::Known(Fact::Missing | Fact::NotFound(_)) => return Ok(None),
        Answer::Known(Fact::Failed(reason) | Fact::Unavailable(reason)) => reason.clone(),
        Answer::Refused(reason) => reason,
    };
    Err(failed(what, &reason))
}

fn failed(what: &str, why: &str) -> EvalError {
    EvalError::Other(format!("{what}: {why}"))
}

fn text(arguments: &[Value], index: usize) -> &str {
    arguments.get(index).and_then(Value::as_str).unwrap_or_default()
}

/// The resource that the first arguments name, by version and name or as one value, and the arguments after it.
fn addressed(arguments: &[Value]) -> (ObjectsPath, &[Value]) {
    let (version, resource, rest) = match arguments.split_first() {
        Some((gvr @ Value::Object(_), rest)) => {
            let part = |key| gvr.str_at(&[key]).unwrap_or_default();
            (part("apiVersion"), part("resource"), rest)
        }
        _ => (text(arguments, 0), text(arguments, 1), arguments.get(2..).unwrap_or_default()),
    };
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let mut parts = resource.split('/').map(Str::new);
    let path = ObjectsPath {
        group: Str::new(group),
        version: Str::new(version),
        namespace: None,
        resource: parts.next().unwrap_or_default(),
        name: None,
        below: parts.collect(),
    };
    (path, rest)
}

/// The namespace that a function reads, and the arguments after it: a namespaced policy reads its own and names none.
fn namespaced<'q>(world: &World<'_>, rest: &'q [Value]) -> (Option<Str>, &'q [Value]) {
    match (world.namespace(), rest.split_first()) {
        (Some(own), _) => (Some(Str::new(own)), rest),
        (None, Some((Value::String(namespace), rest))) => (Some(namespace.clone()).filter(|ns| !ns.is_empty()), rest),
        (None, _) => (None, rest),
    }
}

fn api(path: ObjectsPath, what: &str) -> Result<ApiPath, EvalError> {
    let resource = path.resource.to_string();
    ApiPath::of_object(path).ok_or_else(|| {
        failed(
            what,
            &format!("a part of the address of {resource:?} is no name, or leads to what an object stands for"),
        )
    })
}

fn object(world: &World<'_>, arguments: &[Value]) -> Result<Value, EvalError> {
    const WHAT: &str = "failed to get resource";
    let (path, rest) = addressed(arguments);
    let (namespace, rest) = namespaced(world, rest);
    let name = text(rest, 0);
    if name.is_empty() {
        return Err(failed(WHAT, "resource name may not be empty"));
    }
    let path = api(ObjectsPath { namespace, name: Some(Str::new(name)), ..path }, WHAT)?;
    // What is not there is null.
    Ok(fetch(world, Fetch::Api { method: HttpMethod::Get, path, body: None }, WHAT)?.unwrap_or_default())
}

fn objects(world: &World<'_>, arguments: &[Value]) -> Result<Value, EvalError> {
    const WHAT: &str = "failed to list resource";
    let (path, rest) = addressed(arguments);
    let (namespace, rest) = namespaced(world, rest);
    let mut path = api(ObjectsPath { namespace, ..path }, WHAT)?;
    if let Some(labels) = rest.first().and_then(Value::as_object).filter(|labels| !labels.is_empty()) {
        path = path.with_label_selector(&selector(labels)?);
    }
    fetch(world, Fetch::Api { method: HttpMethod::Get, path, body: None }, WHAT)?
        .ok_or_else(|| failed(WHAT, "the server could not find the requested resource"))
}

/// Labels as a selector. A value is one label and never an expression of selectors.
fn selector(labels: &Map) -> Result<String, EvalError> {
    let is_plain = |text: &str, more: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(b as char));
    let mut terms = Vec::with_capacity(labels.len());
    for (key, value) in labels.iter() {
        let value = value.as_str().unwrap_or_default();
        if key.is_empty() || !is_plain(key, "-_./") || !is_plain(value, "-_.") {
            return Err(failed("failed to list resource", &format!("{key}={value:?} is no label")));
        }
        terms.push(format!("{key}={value}"));
    }
    Ok(terms.join(","))
}

fn post(world: &World<'_>, arguments: &[Value]) -> Result<Value, EvalError> {
    const WHAT: &str = "failed to create resource";
    let (path, rest) = addressed(arguments);
    let (namespace, rest) = namespaced(world, rest);
    let path = api(ObjectsPath { namespace, ..path }, WHAT)?;
    let body = Some(Str::from(rest.first().cloned().unwrap_or_default().to_json()));
    fetch(world, Fetch::Api { method: HttpMethod::Post, path, body }, WHAT)?
        .ok_or_else(|| failed(WHAT, "the server could not find the requested resource"))
}

/// The resource of a kind, by the document that lists the kinds of its version.
fn resource_of_kind(world: &World<'_>, arguments: &[Value]) -> Result<Value, EvalError> {
    const WHAT: &str = "failed to map kind to resource";
    let (version, kind) = (text(arguments, 0), text(arguments, 1));
    let (group, bare) = version.split_once('/').unwrap_or(("", version));
    let path = ApiPath::of_version(group, bare)
        .ok_or_else(|| failed(WHAT, &format!("unexpected GroupVersion string: {version}")))?;
    let kinds = fetch(world, Fetch::Api { method: HttpMethod::Get, path, body: None }, WHAT)?.unwrap_or_default();
    let kinds = kinds.get("resources").and_then(Value::as_array).unwrap_or_default();
    let name = kinds.iter().filter(|entry| entry.str_at(&["kind"]) == Some(kind)).find_map(|entry| {
        // Subresources show kinds too.
        entry.str_at(&["name"]).filter(|name| !name.contains('/'))
    });
    let name = name.ok_or_else(|| failed(WHAT, &format!("no matches for kind {kind:?} in version {version:?}")))?;
    Ok(Value::from([("apiVersion", Value::from(version)), ("resource", Value::from(name))]))
}

fn global(world: &World<'_>, arguments: &[Value]) -> Result<Value, EvalError> {
    let name = match arguments {
        [name, Value::String(projection), ..] if !projection.is_empty() => {
            format!("{}.{projection}", name.as_str().unwrap_or_default()).into()
        }
        _ => Str::new(text(arguments, 0)),
    };
    Ok(fetch(world, Fetch::Global { name }, "failed to get global reference")?.unwrap_or_default())
}

fn image(world: &World<'_>, arguments: &[Value]) -> Result<Value, EvalError> {
    const WHAT: &str = "failed to get image data";
    let reference = Str::new(text(arguments, 0));
    let data = fetch(world, Fetch::Image { reference, credentials: None }, WHAT)?;
    let mut data = data.ok_or_else(|| failed(WHAT, "there is no such image"))?;
    if let Some(members) = data.as_object_mut()
        && let Some(config) = members.get("configData").cloned()
    {
        members.retain(|key, _| key != "configData");
        members.insert("config", config);
    }
    Ok(with_doubles(&data))
}

/// A call of an HTTP service. The first argument is the certificates to trust, if the client has its own.
fn call(world: &World<'_>, method: HttpMethod, arguments: &[Value]) -> Result<Value, EvalError> {
    let ca_bundle = arguments.first().and_then(Value::as_str).map(Str::new);
    let mut rest = arguments.get(1..).unwrap_or_default();
    let url = Str::new(text(rest, 0));
    rest = rest.get(1..).unwrap_or_default();
    let mut body = None;
    if method == HttpMethod::Post {
        body = rest.first().map(|body| Str::from(body.to_json()));
        rest = rest.get(1..).unwrap_or_default();
    }
    let headers = rest.first().and_then(Value::as_object);
    let header = |(name, value): (&Str, &Value)| (name.clone(), Str::new(value.as_str().unwrap_or_default()));
    let mut headers: Vec<(Str, Str)> = headers.into_iter().flat_map(Map::iter).map(header).collect();
    headers.sort();
    let asked = Fetch::Service { method, url, headers, body, ca_bundle, answer: ServiceAnswer::Response };
    let response = with_doubles(&fetch(world, asked, "request failed")?.unwrap_or_default());
    // An object is shown with the status as one of its members, and as the body too: that is where policies find it
    // that were written for the answers of upstream's command line.
    let status = response.get("statusCode").cloned().unwrap_or_default();
    let status = status.as_f64().map_or(status, |code| Value::Int(code as i64));
    let body = response.get("body").cloned().unwrap_or_default();
    let mut shown = match &body {
        Value::Object(members) if members.get("body").is_none() => {
            let mut shown = (**members).clone();
            shown.insert("body", body.clone());
            shown
        }
        Value::Object(members) => (**members).clone(),
        other => Map::from_iter([(Str::new_static("body"), other.clone())]),
    };
    shown.insert("statusCode", status);
    Ok(Value::object(shown))
}

/// Numbers of documents that come over HTTP are doubles.
fn with_doubles(value: &Value) -> Value {
    match value {
        Value::Int(n) => Value::Float(*n as f64),
        Value::Array(items) => Value::array(items.iter().map(with_doubles).collect()),
        Value::Object(map) => Value::object(map.iter().map(|(key, item)| (key.clone(), with_doubles(item))).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::budget::Budget;
    use ephor_expr::cel::library::context;
    use ephor_expr::cel::profile::{CONTEXTS, Kyverno};
    use ephor_expr::cel::{Program, Run, Scope, Usage, Val};

    use super::*;
    use crate::fetch::Facts;
    use crate::gate::Asker;
    use crate::review::Effects;
    use crate::scope::Seed;

    struct Names;

    impl<'v> Scope<'v> for Names {
        fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
            let (_, kind) = CONTEXTS.iter().find(|(variable, _)| *variable == name)?;
            Some(Ok(context(kind)))
        }
    }

    /// What is asked, and the value or error in the end. `known` are the answers by what is asked, as JSON; what has
    /// none does not exist.
    fn run(expression: &str, namespace: Option<&str>, known: &[(&str, &str)]) -> (Vec<String>, String) {
        let profile = if namespace.is_some() { Kyverno::NamespacedValidating } else { Kyverno::Validating };
        let program = Program::compile(expression, &profile.environment()).unwrap();
        let (mut facts, mut asked) = (Facts::new(), Vec::new());
        for _ in 0..10 {
            let asker = Asker { namespace, effects: Effects::Real };
            let seed = Seed { policy: "p", rule: "", review: 1 };
            let world = World::new(&facts, asker, jiff::Timestamp::UNIX_EPOCH, seed, Budget::default());
            let usage = Usage::new(None);
            let value =
                program.evaluate(&Names, &Run { host: &Functions(&world), budget: world.budget(), usage: &usage });
            let shown = match value {
                Err(EvalError::Pending) => None,
                Err(error) => Some(format!("error: {error}")),
                Ok(value) => {
                    Some(value.to_json().map_or_else(|| value.type_name().into_owned(), |json| json.to_json()))
                }
            };
            let needs = world.into_needs();
            if let Some(shown) = shown {
                return (asked, shown);
            }
            for need in needs {
                let text = match need.fetch() {
                    Fetch::Api { method, path, body } => {
                        format!("{method:?} {path}{}", body.as_ref().map(|body| format!(" {body}")).unwrap_or_default())
                    }
                    Fetch::Service { method, url, headers, body, ca_bundle, .. } => {
                        format!("{method:?} {url} {headers:?} {body:?} {ca_bundle:?}")
                    }
                    other => format!("{other:?}"),
                };
                let answer = known.iter().find(|(question, _)| text == *question);
                let fact = answer.map_or(Fact::Missing, |(_, json)| Fact::Found(Value::from_json(json).unwrap()));
                facts.insert(need.into_fetch(), fact);
                asked.push(text);
            }
        }
        panic!("{expression} asks for ever: {asked:?}");
    }

    #[test]
    fn functions_ask_through_the_gate() {
        let api = r#"{"resources":[{"name":"deployments/scale","kind":"Deployment"},{"name":"deployments","kind":"Deployment"}]}"#;
        for (expression, namespace, known, question, want) in [
            (
                "resource.Get('v1', 'configmaps', 'a', 'c').data.k",
                None,
                r#"{"data":{"k":"v"}}"#,
                "Get /api/v1/namespaces/a/configmaps/c",
                "\"v\"",
            ),
            ("resource.Get('v1', 'configmaps', 'a', 'c')", None, "", "Get /api/v1/namespaces/a/configmaps/c", "null"),
            (
                "resource.get('v1', 'configmaps', 'c').data.k",
                Some("own"),
                r#"{"data":{"k":"v"}}"#,
                "Get /api/v1/namespaces/own/configmaps/c",
                "\"v\"",
            ),
            ("resource.Get('v1', 'nodes', '', 'n')", None, "", "Get /api/v1/nodes/n", "null"),
            ("resource.Get('v1', 'pods/log', 'a', 'p')", None, "", "Get /api/v1/namespaces/a/pods/p/log", "null"),
            (
                "resource.List('apps/v1', 'deployments', '').items.size()",
                None,
                r#"{"items":[1,2]}"#,
                "Get /apis/apps/v1/deployments",
                "2",
            ),
            (
                "resource.List('v1', 'pods', {'app': 'x'}).items.size()",
                Some("own"),
                r#"{"items":[]}"#,
                "Get /api/v1/namespaces/own/pods?labelSelector=app=x",
                "0",
            ),
            (
                "resource.List('v1', 'pods', 'a')",
                None,
                "",
                "Get /api/v1/namespaces/a/pods",
                "error: failed to list resource: the server could not find the requested resource",
            ),
            (
                "resource.Post('authorization.k8s.io/v1', 'subjectaccessreviews', {'spec': {}}).status.allowed",
                None,
                r#"{"status":{"allowed":true}}"#,
                "Post /apis/authorization.k8s.io/v1/subjectaccessreviews {\"spec\":{}}",
                "true",
            ),
            ("resource.Get(resource.ToGVR('apps/v1', 'Deployment'), 'a', 'd')", None, api, "Get /apis/apps/v1", "null"),
            (
                "resource.Get(resource.toGVR('apps/v1', 'Deployment'), 'd')",
                Some("own"),
                api,
                "Get /apis/apps/v1",
                "null",
            ),
            (
                "resource.ToGVR('apps/v1', 'Nope')",
                None,
                api,
                "Get /apis/apps/v1",
                "error: failed to map kind to resource: no matches for kind \"Nope\" in version \"apps/v1\"",
            ),
            (
                "globalContext.Get('deployments', 'names')",
                None,
                "[\"a\"]",
                "Global { name: \"deployments.names\" }",
                "[\"a\"]",
            ),
            (
                "type(http.Get('http://x/y').a) == double",
                None,
                r#"{"body":{"a":1},"statusCode":200}"#,
                "Get http://x/y [] None None",
                "true",
            ),
            (
                "http.Get('http://x/y', {'B': '2', 'A': '1'}).statusCode",
                None,
                r#"{"body":null,"statusCode":404}"#,
                "Get http://x/y [(\"A\", \"1\"), (\"B\", \"2\")] None None",
                "404",
            ),
            (
                "http.Client('PEM').Post('https://x', {'a': 1}).body",
                None,
                r#"{"body":[1],"statusCode":200}"#,
                "Post https://x [] Some(\"{\\\"a\\\":1}\") Some(\"PEM\")",
                "[1]",
            ),
            (
                "image.GetMetadata('nginx').config.n",
                None,
                r#"{"configData":{"n":1}}"#,
                "Image { reference: \"nginx\", credentials: None }",
                "1",
            ),
            ("time.now() == timestamp('1970-01-01T00:00:00Z')", None, "", "", "true"),
            ("random('[ab]{3}').matches('^[ab]{3}$') && random().size() == 8", None, "", "", "true"),
        ] {
            let (asked, shown) = run(
                expression,
                namespace,
                &[(question, known)].into_iter().filter(|(_, known)| !known.is_empty()).collect::<Vec<_>>(),
            );
            assert_eq!(asked.first().map_or("", String::as_str), question, "{expression}");
            assert_eq!(shown, want, "{expression}");
        }
    }

    #[test]
    fn what_a_policy_may_not_ask_is_an_error() {
        for (expression, namespace, want) in [
            ("resource.Post('v1', 'configmaps', {'a': 1})", Some("own"), "a namespaced Policy may not POST"),
            ("resource.Get('v1', 'nodes/proxy', '', 'n')", None, "leads to what an object stands for"),
            ("resource.List('v1', 'status')", Some("team-a"), "is no name"),
            ("resource.List('v1', 'finalize')", Some("team-a"), "is no name"),
            ("resource.Get('v1', 'pods', 'a', 'p/exec')", None, "is no name"),
            ("resource.Get('v1', 'pods', 'a/../b', 'p')", None, "is no name"),
            ("resource.Get('v1', 'secrets/../configmaps', 'p')", Some("own"), "is no name"),
            ("resource.Get('v1', 'pods', 'a', '')", None, "name may not be empty"),
            ("resource.List('v1', 'pods', 'a', {'app': 'x,b in (c)'})", None, "is no label"),
            ("http.Get('http://x')", Some("own"), "a namespaced Policy may not call services"),
            ("random('[')", None, "error parsing regexp"),
        ] {
            let (asked, shown) = run(expression, namespace, &[]);
            assert!(asked.is_empty(), "{expression}: {asked:?}");
            assert!(shown.starts_with("error: ") && shown.contains(want), "{expression}: {shown}");
        }
    }
}
