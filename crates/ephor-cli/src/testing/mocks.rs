//! Answers that a test gives in place of APIs, services and global context entries.

use std::sync::Arc;

use ephor_engine::fetch::{Fact, Fetch, ServiceAnswer};
use ephor_engine::gate::ApiPath;
use ephor_engine::policy::HttpMethod;
use ephor_expr::jmespath::{Expression, FixedRuntime};
use ephor_expr::value::Path as FieldPath;
use ephor_expr::{Map, Str, Value};
use rustc_hash::FxHashMap;

use super::case::Case;
use super::suite::{CallResponse, GlobalEntry, Response};
use crate::host::Source;

/// The answers of one test.
#[derive(Debug, Clone, Default)]
pub(super) struct Mocks {
    calls: Arc<FxHashMap<(Option<Str>, Str), Response>>,
    globals: Arc<FxHashMap<Str, Value>>,
}

impl Mocks {
    /// Reads the answers; faults are noted in `case`.
    pub(super) fn load(responses: Vec<CallResponse>, entries: Vec<GlobalEntry>, case: &mut Case) -> Self {
        let mut calls = FxHashMap::default();
        for (i, call) in responses.into_iter().enumerate() {
            let at = FieldPath::root().key("apiCallResponses").index(i);
            let method = call.method.filter(|m| !m.is_empty()).map(|m| Str::from(m.to_ascii_uppercase()));
            if method.as_deref().is_some_and(|m| !matches!(m, "GET" | "POST")) {
                case.fault("mock", at.key("method"), "the method must be GET or POST");
                continue;
            }
            let present = |text: Option<Str>| text.filter(|t| !t.is_empty());
            let address = match (present(call.url), present(call.url_path)) {
                (Some(url), None) => url,
                // Written as rules ask for it.
                (None, Some(path)) => match ApiPath::parse(&path) {
                    Ok(path) => path.to_string().into(),
                    Err(invalid) => {
                        case.fault("mock", at.key("urlPath"), invalid.to_string());
                        continue;
                    }
                },
                _ => {
                    case.fault("mock", at, "an answer needs exactly one of `url` and `urlPath`");
                    continue;
                }
            };
            if calls.contains_key(&(method.clone(), address.clone())) {
                case.fault("mock", at, format!("`{address}` is answered twice"));
                continue;
            }
            calls.insert((method, address), call.response);
        }
        let mut globals = FxHashMap::default();
        for (i, entry) in entries.into_iter().enumerate() {
            let at = FieldPath::root().key("globalContextEntries").index(i);
            match global(&entry, case) {
                Ok(data) => {
                    globals.insert(entry.name, data);
                }
                Err(message) => case.fault("mock", at, message),
            }
        }
        Self { calls: Arc::new(calls), globals: Arc::new(globals) }
    }

    fn call(&self, method: HttpMethod, address: &Str, answer: ServiceAnswer) -> Option<Fact> {
        let name = match method {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
        };
        let exact = self.calls.get(&(Some(Str::new_static(name)), address.clone()));
        let response = exact.or_else(|| self.calls.get(&(None, address.clone())))?;
        if answer == ServiceAnswer::Response {
            let status = Value::Int(response.status_code);
            return Some(Fact::Found(Value::from([("body", response.body.clone()), ("statusCode", status)])));
        }
        Some(if (200..300).contains(&response.status_code) {
            Fact::Found(response.body.clone())
        } else {
            Fact::Unavailable(format!("{name} {address}: status {}", response.status_code))
        })
    }
}

impl Source for Mocks {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        match fetch {
            Fetch::Api { method, path, .. } => self.call(*method, &path.to_string().into(), ServiceAnswer::Document),
            Fetch::Service { method, url, answer, .. } => self.call(*method, url, *answer),
            Fetch::Global { name } => self.globals.get(name).cloned().map(Fact::Found),
            _ => None,
        }
    }
}

/// The data of a global context entry.
fn global(entry: &GlobalEntry, case: &mut Case) -> Result<Value, String> {
    let mut data = match (&entry.data, &entry.resources, &entry.resource_files) {
        (Some(data), None, None) => data.clone(),
        (None, Some(resources), None) => Value::array(resources.clone()),
        (None, None, Some(files)) => Value::array(files.iter().flat_map(|file| case.read(file)).collect()),
        _ => return Err(format!("`{}` needs exactly one of `data`, `resources`, `resourceFiles`", entry.name)),
    };
    if let Some(path) = entry.field_path.as_ref().filter(|p| !p.is_empty()) {
        data = query(path, &data)?;
    }
    match entry.projections.as_deref() {
        None | Some([]) => Ok(data),
        Some(projections) => {
            let mut object = Map::new();
            for projection in projections {
                object.insert(projection.name.clone(), query(&projection.path, &data)?);
            }
            Ok(Value::object(object))
        }
    }
}

fn query(text: &str, data: &Value) -> Result<Value, String> {
    let expression = Expression::compile(text).map_err(|e| format!("`{text}`: {e}"))?;
    let runtime = FixedRuntime::new(jiff::Timestamp::now(), 0);
    expression.evaluate(data, &runtime).map_err(|e| format!("`{text}`: {e}"))
}
