//! The world as the mocks of the vectors have it.

use ephor_expr::Value;
use ephor_expr::cel::library::{Attributes, Decision};
use ephor_expr::cel::{EvalError, Host, Question};
use ephor_expr::value::Map;

/// Answers as the mocks of the vectors do.
pub(crate) struct Mock<'v> {
    pub(crate) bound: &'v Value,
    pub(crate) cluster: &'v Value,
}

impl Mock<'_> {
    /// All that was asked, in a line.
    fn describe(&self, asked: &Attributes) -> String {
        let (user, groups) = if let Some((namespace, name)) = &asked.service_account {
            let groups = format!("system:serviceaccounts system:serviceaccounts:{namespace}");
            (format!("system:serviceaccount:{namespace}:{name}"), groups)
        } else {
            let user = |field: &str| self.bound.at(&["request", "userInfo", field]);
            let groups = user("groups").and_then(Value::as_array).unwrap_or_default();
            let groups: Vec<&str> = groups.iter().filter_map(Value::as_str).collect();
            match user("username").and_then(Value::as_str) {
                Some(name) => (name.to_owned(), groups.join(" ")),
                None => ("alice".to_owned(), "devs system:authenticated".to_owned()),
            }
        };
        let fields = asked.field_selector.as_deref().and_then(|text| text.split_once('='));
        let fields = fields.map(|(field, value)| format!(" fields=[{{= {field} {value}}}]")).unwrap_or_default();
        let labels = asked.label_selector.as_deref().filter(|text| !text.starts_with('='));
        // Requirements are apart at commas outside of parentheses.
        let labels: String =
            labels.map(|text| format!(" label={}", text.replace("),", ") label="))).unwrap_or_default();
        let asked_for = format!(
            "user={user} groups=[{groups}] path={} group={} version={} resource={} sub={} ns={} name={}",
            asked.path, asked.group, asked.version, asked.resource, asked.subresource, asked.namespace, asked.name
        );
        asked_for + &fields + &labels
    }
}

impl Host for Mock<'_> {
    fn authorize(&self, asked: &Attributes) -> Result<Decision, EvalError> {
        let decide = |allowed, reason: &str| Decision { allowed, reason: reason.into(), error: None };
        Ok(match asked.verb.as_str() {
            "get" => decide(true, "allowed by mock"),
            "delete" => decide(false, "denied by mock"),
            "error" => Decision { error: Some("mock authorizer failed".into()), ..decide(false, "") },
            "whoami" => decide(false, &self.describe(asked)),
            _ => decide(false, ""),
        })
    }

    fn ask(&self, question: &Question) -> Result<Value, EvalError> {
        let text = |i: usize| question.arguments.get(i).and_then(Value::as_str).unwrap_or_default();
        match (question.target, question.function.as_str()) {
            ("resource.Context", "get") => self.get(question),
            ("resource.Context", "list") => self.list(question),
            ("resource.Context", "post") => post(question),
            ("resource.Context", "togvr") => {
                let (version, kind) = (text(1), text(2));
                if kind == "Unknown" {
                    return Err(EvalError::Other(format!("no matches for kind \"Unknown\" in version \"{version}\"")));
                }
                let mut gvr = Map::new();
                gvr.insert("apiVersion", version);
                gvr.insert("resource", format!("{}s", kind.to_lowercase()));
                Ok(Value::object(gvr))
            }
            ("globalcontext.Context", "get") => global(text(1), text(2)),
            ("generator.Context", "apply") if text(1) == "forbidden" => Err(EvalError::Other(
                "failed to generate resources: permission denied: configmaps is forbidden: mock: no access".into(),
            )),
            ("generator.Context", "apply") => Ok(Value::Bool(true)),
            ("imagedata.Context", "getmetadata") if !text(1).starts_with("ghcr.io/mock/") => {
                Err(EvalError::Other(format!("failed to get image data: mock: no image {}", text(1))))
            }
            ("imagedata.Context", "getmetadata") => {
                Value::from_json(IMAGE).map_err(|e| EvalError::Other(e.to_string()))
            }
            ("http.Context", "client") if text(1) == "bad" => {
                Err(EvalError::Other("request failed: mock: bad certificate".into()))
            }
            ("http.Context", "client") => Ok(Value::String(text(1).into())),
            ("http.Context", "get" | "post") if text(1).contains("refused") => {
                Err(EvalError::Other("request failed: mock: connection refused".into()))
            }
            ("http.Context", "get" | "post") => Ok(http(question)),
            (_, "time.now") => Ok(Value::String("2024-06-01T00:00:00Z".into())),
            (_, function) => Err(EvalError::Other(format!("{function} is not mocked"))),
        }
    }
}

/// Version and resource, then the other arguments; a resource may be named by one argument.
fn addressed(question: &Question) -> (String, String, Vec<Value>) {
    let mut arguments = question.arguments.iter().skip(1);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = arguments.next();
    let (version, resource) =
        match first.and_then(|gvr| Some((gvr.str_at(&["apiVersion"])?, gvr.str_at(&["resource"])?))) {
            Some((version, resource)) => (version.to_owned(), resource.to_owned()),
            None => (text(first), text(arguments.next())),
        };
    (version, resource, arguments.cloned().collect())
}

fn failed(what: &str, why: &str) -> EvalError {
    EvalError::Other(format!("failed to {what}: {why}"))
}

impl Mock<'_> {
    /// Objects of a kind; those of policies of a namespace are of `team-a`.
    fn objects(&self, version: &str, resource: &str, namespace: &str) -> Vec<Value> {
        let all = self.cluster.get("resources").and_then(Value::as_array).unwrap_or_default();
        let of_kind = |object: &&Value| {
            let kind = object.str_at(&["kind"]).unwrap_or_default().to_lowercase() + "s";
            let within = object.str_at(&["metadata", "namespace"]).unwrap_or_default();
            object.str_at(&["apiVersion"]) == Some(version)
                && kind == resource
                && (namespace.is_empty() || within == namespace)
        };
        all.iter().filter(of_kind).cloned().collect()
    }

    fn get(&self, question: &Question) -> Result<Value, EvalError> {
        let (version, resource, rest) = addressed(question);
        let texts: Vec<&str> = rest.iter().filter_map(Value::as_str).collect();
        let (namespace, name) = match texts.as_slice() {
            [namespace, name] => (*namespace, *name),
            [name] => ("team-a", *name),
            _ => ("", ""),
        };
        match resource.as_str() {
            "secrets" => {
                let why = format!("permission denied: secrets \"{name}\" is forbidden: mock: no access");
                return Err(failed("get resource", &why));
            }
            "widgets" => return Err(failed("get resource", "the server could not find the requested resource")),
            "pods/log" => {
                let mut log = Map::new();
                log.insert("log", "line");
                return Ok(Value::object(log));
            }
            _ => {}
        }
        let objects = self.objects(&version, &resource, namespace);
        Ok(objects.into_iter().find(|o| o.str_at(&["metadata", "name"]) == Some(name)).unwrap_or_default())
    }

    fn list(&self, question: &Question) -> Result<Value, EvalError> {
        let (version, resource, rest) = addressed(question);
        match resource.as_str() {
            "secrets" => {
                return Err(failed("list resource", "permission denied: secrets is forbidden: mock: no access"));
            }
            "widgets" => return Err(failed("list resource", "the server could not find the requested resource")),
            _ => {}
        }
        let namespace = rest.iter().find_map(Value::as_str).unwrap_or("team-a");
        let labels = rest.iter().find_map(Value::as_object).cloned().unwrap_or_default();
        let fits =
            |object: &Value| labels.iter().all(|(key, value)| object.at(&["metadata", "labels", key]) == Some(value));
        let items = self.objects(&version, &resource, namespace).into_iter().filter(fits).collect();
        let mut list = Map::new();
        list.insert("apiVersion", version);
        list.insert("kind", "List");
        list.insert("items", Value::array(items));
        Ok(Value::object(list))
    }
}

/// The data, and where it was posted to.
fn post(question: &Question) -> Result<Value, EvalError> {
    let (version, resource, rest) = addressed(question);
    match resource.as_str() {
        "secrets" => {
            return Err(failed("create resource", "permission denied: secrets is forbidden: mock: no access"));
        }
        "widgets" => return Err(failed("create resource", "mock: cannot create widgets")),
        _ => {}
    }
    let namespace = rest.iter().find_map(Value::as_str).unwrap_or_default().to_owned();
    let mut posted = rest.iter().find_map(Value::as_object).cloned().unwrap_or_default();
    posted = doubles(&Value::object(posted)).as_object().cloned().unwrap_or_default();
    posted.insert("postedTo", format!("{version}|{resource}|{namespace}"));
    let mut status = Map::new();
    status.insert("allowed", true);
    posted.insert("status", Value::object(status));
    Ok(Value::object(posted))
}

/// What the registry of the mock says of its only image.
const IMAGE: &str = r#"{"config":{"architecture":"amd64","config":{"Labels":{"a":"b"},"User":"65532"}},
    "digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","identifier":"v1",
    "image":"ghcr.io/mock/app:v1","manifest":{"layers":[{"size":1234.0}],"schemaVersion":2.0},"registry":"ghcr.io",
    "repository":"mock/app","tag":"v1","resolvedImage":
    "ghcr.io/mock/app:v1@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#;

/// Echoes; `notfound` in the URL is a status without a body.
fn http(question: &Question) -> Value {
    let url = question.arguments.get(1).and_then(Value::as_str).unwrap_or_default();
    let json = |text: &str| Value::from_json(text).unwrap_or_default();
    if url.contains("notfound") {
        return json(r#"{"body":null,"statusCode":404}"#);
    }
    let get = question.function == "get";
    let headers = question.arguments.get(if get { 2 } else { 3 }).cloned().unwrap_or_else(|| json("{}"));
    let base = if get { r#"{"ca":"","i":7.0,"n":1.5,"statusCode":200}"# } else { r#"{"statusCode":201}"# };
    let mut answer = json(base).as_object().cloned().unwrap_or_default();
    if let (true, Some(pem)) = (get, question.arguments.first().and_then(Value::as_str)) {
        answer.insert("ca", pem);
    }
    answer.insert("url", url);
    if get {
        answer.insert("i", Value::Float(7.0));
        answer.insert("headers", headers);
    } else {
        answer.insert("echo", question.arguments.get(2).map(doubles).unwrap_or_default());
        answer.insert("headers", i64::try_from(headers.as_object().map_or(0, Map::len)).unwrap_or_default());
    }
    Value::object(answer)
}

/// Numbers that went through JSON are doubles.
fn doubles(value: &Value) -> Value {
    match value {
        Value::Int(n) => Value::Float(*n as f64),
        Value::Array(items) => Value::array(items.iter().map(doubles).collect()),
        Value::Object(map) => Value::object(map.iter().map(|(key, item)| (key.clone(), doubles(item))).collect()),
        other => other.clone(),
    }
}

fn global(name: &str, projection: &str) -> Result<Value, EvalError> {
    let json = |text| Ok(Value::from_json(text).unwrap_or_default());
    match (name, projection) {
        ("broken", _) => Err(failed("get global reference", "mock: entry is broken")),
        ("config", "limit") => json("3"),
        ("names", "") => json(r#"["alpha","beta","gamma"]"#),
        ("number", "") => json("42"),
        ("float", "") => json("2.5"),
        ("config", "") => json(r#"{"allowed":["a","b"],"limit":3,"nested":{"x":"y"},"ratio":0.5}"#),
        ("config" | "names" | "number" | "float", other) => {
            Err(failed("get global reference", &format!("mock: no projection \"{other}\"")))
        }
        _ => Ok(Value::Null),
    }
}
