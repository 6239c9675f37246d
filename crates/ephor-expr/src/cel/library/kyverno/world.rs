//! Kyverno's functions that ask the world outside: the cluster, HTTP services, global context entries, registries,
//! the clock and chance. They become questions for the host.

use std::any::Any;

use super::super::super::error::EvalError;
use super::super::super::value::{MAX_WALK, Opaque, Val};
use super::super::conversions::{duration_text, timestamp_text};
use super::super::{Call, Overload, Question, global, member};
use crate::value::{Str, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

/// Resources, of cluster policies and of policies of a namespace.
pub(in super::super) const RESOURCES: &[Overload] = &[
    member(
        "post",
        "resource_post_string_string_map_camel",
        "resource.Context, string, string, map(string, any)",
        "map(string, any)",
        ask,
    ),
    member(
        "Post",
        "resource_post_string_string_map_pascal",
        "resource.Context, string, string, map(string, any)",
        "map(string, any)",
        ask,
    ),
    member(
        "toGVR",
        "convert_to_gvr_string_string_camel",
        "resource.Context, string, string",
        "schema.GroupVersionResource",
        to_gvr,
    ),
    member(
        "ToGVR",
        "convert_to_gvr_string_string_pascal",
        "resource.Context, string, string",
        "schema.GroupVersionResource",
        to_gvr,
    ),
];

/// Resources of all namespaces.
pub(in super::super) const CLUSTER_RESOURCES: &[Overload] = &[
    member(
        "get",
        "resource_get_gvr_string_string_camel",
        "resource.Context, schema.GroupVersionResource, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "Get",
        "resource_get_gvr_string_string_pascal",
        "resource.Context, schema.GroupVersionResource, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "get",
        "resource_get_string_string_string_string_camel",
        "resource.Context, string, string, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "Get",
        "resource_get_string_string_string_string_pascal",
        "resource.Context, string, string, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "list",
        "list_resources_gvr_string_camel",
        "resource.Context, schema.GroupVersionResource, string",
        "map(string, any)",
        ask,
    ),
    member(
        "list",
        "list_resources_gvr_string_map_camel",
        "resource.Context, schema.GroupVersionResource, string, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member(
        "List",
        "list_resources_gvr_string_map_pascal",
        "resource.Context, schema.GroupVersionResource, string, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member(
        "List",
        "list_resources_gvr_string_pascal",
        "resource.Context, schema.GroupVersionResource, string",
        "map(string, any)",
        ask,
    ),
    member(
        "list",
        "resource_list_string_string_string_camel",
        "resource.Context, string, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "list",
        "resource_list_string_string_string_map_camel",
        "resource.Context, string, string, string, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member(
        "List",
        "resource_list_string_string_string_map_pascal",
        "resource.Context, string, string, string, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member(
        "List",
        "resource_list_string_string_string_pascal",
        "resource.Context, string, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "post",
        "resource_post_string_string_string_map_camel",
        "resource.Context, string, string, string, map(string, any)",
        "map(string, any)",
        ask,
    ),
    member(
        "Post",
        "resource_post_string_string_string_map_pascal",
        "resource.Context, string, string, string, map(string, any)",
        "map(string, any)",
        ask,
    ),
];

/// Resources of the policy's own namespace.
pub(in super::super) const NAMESPACE_RESOURCES: &[Overload] = &[
    member(
        "get",
        "resource_get_gvr_string_camel",
        "resource.Context, schema.GroupVersionResource, string",
        "map(string, any)",
        ask,
    ),
    member(
        "Get",
        "resource_get_gvr_string_pascal",
        "resource.Context, schema.GroupVersionResource, string",
        "map(string, any)",
        ask,
    ),
    member(
        "get",
        "resource_get_string_string_string_camel",
        "resource.Context, string, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "Get",
        "resource_get_string_string_string_pascal",
        "resource.Context, string, string, string",
        "map(string, any)",
        ask,
    ),
    member(
        "list",
        "list_resources_gvr_camel",
        "resource.Context, schema.GroupVersionResource",
        "map(string, any)",
        ask,
    ),
    member(
        "list",
        "list_resources_gvr_map_camel",
        "resource.Context, schema.GroupVersionResource, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member(
        "List",
        "list_resources_gvr_map_pascal",
        "resource.Context, schema.GroupVersionResource, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member(
        "List",
        "list_resources_gvr_pascal",
        "resource.Context, schema.GroupVersionResource",
        "map(string, any)",
        ask,
    ),
    member("list", "resource_list_string_string_camel", "resource.Context, string, string", "map(string, any)", ask),
    member(
        "list",
        "resource_list_string_string_map_camel",
        "resource.Context, string, string, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member(
        "List",
        "resource_list_string_string_map_pascal",
        "resource.Context, string, string, map(string, string)",
        "map(string, any)",
        ask,
    ),
    member("List", "resource_list_string_string_pascal", "resource.Context, string, string", "map(string, any)", ask),
];

/// HTTP services.
pub(in super::super) const HTTP: &[Overload] = &[
    member("client", "http_client_string_camel", "http.Context, string", "http.Context", client),
    member("Client", "http_client_string_pascal", "http.Context, string", "http.Context", client),
    member("get", "http_get_string_camel", "http.Context, string", "any", ask),
    member("get", "http_get_string_headers_camel", "http.Context, string, map(string, string)", "any", ask),
    member("Get", "http_get_string_headers_pascal", "http.Context, string, map(string, string)", "any", ask),
    member("Get", "http_get_string_pascal", "http.Context, string", "any", ask),
    member("post", "http_post_string_any_camel", "http.Context, string, any", "any", ask),
    member("post", "http_post_string_any_headers_camel", "http.Context, string, any, map(string, string)", "any", ask),
    member("Post", "http_post_string_any_headers_pascal", "http.Context, string, any, map(string, string)", "any", ask),
    member("Post", "http_post_string_any_pascal", "http.Context, string, any", "any", ask),
];

/// Global context entries.
pub(in super::super) const GLOBAL_CONTEXT: &[Overload] = &[
    member("get", "globalcontext_get_string_camel", "globalcontext.Context, string", "dyn", ask),
    member("Get", "globalcontext_get_string_pascal", "globalcontext.Context, string", "dyn", ask),
    member("get", "globalcontext_get_string_string_camel", "globalcontext.Context, string, string", "dyn", ask),
    member("Get", "globalcontext_get_string_string_pascal", "globalcontext.Context, string, string", "dyn", ask),
];

/// Data of images in registries.
pub(in super::super) const IMAGE_DATA: &[Overload] = &[
    member("getMetadata", "imagedata_get_string_camel", "imagedata.Context, string", "dyn", ask),
    member("GetMetadata", "imagedata_get_string_pascal", "imagedata.Context, string", "dyn", ask),
];

/// Generation of resources.
pub(in super::super) const GENERATOR: &[Overload] = &[
    member(
        "apply",
        "generator_apply_string_list_camel",
        "generator.Context, string, list(map(string, any))",
        "bool",
        hand_over,
    )
    .generic(),
    member(
        "Apply",
        "generator_apply_string_list_pascal",
        "generator.Context, string, list(map(string, any))",
        "bool",
        hand_over,
    )
    .generic(),
];

/// Generation of resources in the policy's own namespace.
pub(in super::super) const NAMESPACE_GENERATOR: &[Overload] = &[
    member("apply", "generator_apply_list_camel", "generator.Context, list(map(string, any))", "bool", hand_over)
        .generic(),
    member("Apply", "generator_apply_list_pascal", "generator.Context, list(map(string, any))", "bool", hand_over)
        .generic(),
];

/// Verification of images.
pub(in super::super) const SIGNATURES: &[Overload] = &[
    global("extractPayload", "payload_string_string", "string, string", "dyn", ask),
    global("getImageData", "get_image_data_string", "string", "dyn", ask),
    global(
        "verifyAttestationSignatures",
        "verify_image_attestations_string_string_stringarray",
        "string, string, list(dyn)",
        "int",
        ask,
    ),
    global("verifyImageSignatures", "verify_image_signature_string_stringarray", "string, list(dyn)", "int", ask),
];

/// The clock and chance.
pub(in super::super) const CHANCE: &[Overload] = &[
    global("random", "random_string_default_expr_non_prefixed", "", "string", ask),
    global("random", "random_string_non_prefixed", "string", "string", ask),
    global("random.random", "random_string_default_expr_prefixed", "", "string", ask),
    global("random.random", "random_string_prefixed", "string", "string", ask),
    global("time.now", "time_now", "", "timestamp", ask),
];

/// A variable that only its functions give a meaning, for example `resource`.
#[derive(Debug)]
struct Context {
    kind: &'static str,
    /// What it was made from.
    detail: Value,
}

impl Opaque for Context {
    fn type_name(&self) -> &str {
        self.kind
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let other = other.as_any().downcast_ref::<Context>();
        other.is_some_and(|other| other.kind == self.kind && other.detail == self.detail)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        let part = |name| self.detail.str_at(&[name]).unwrap_or_default();
        match (part("apiVersion"), part("resource")) {
            ("", "") => String::new(),
            (version, resource) => {
                let group = if version.contains('/') { "" } else { "/" };
                format!("{group}{version}, Resource={resource}")
            }
        }
    }
}

/// The value of a variable of type `kind`.
pub fn context(kind: &'static str) -> Val<'static> {
    Val::opaque(Context { kind, detail: Value::Null })
}

/// An argument as JSON.
fn argument(value: &Val<'_>, depth: usize) -> std::result::Result<Value, EvalError> {
    let depth = depth.checked_sub(1).ok_or_else(|| EvalError::other("an argument nests too deep"))?;
    if let Some(context) = value.downcast::<Context>() {
        return Ok(context.detail.clone());
    }
    let nested = |value: Val<'_>| argument(&value, depth);
    Ok(match value {
        Val::Bytes(bytes) => Value::String(STANDARD.encode(bytes).into()),
        Val::Duration(nanos) => Value::String(duration_text(*nanos).into()),
        Val::Timestamp(time) => Value::String(timestamp_text(time).into()),
        Val::List(list) => Value::array(list.iter().map(nested).collect::<std::result::Result<_, _>>()?),
        Val::Map(map) => {
            let entry =
                |(key, item): (Val<'_>, Val<'_>)| Ok((Str::from(key.as_str().unwrap_or_default()), nested(item)?));
            Value::object(map.entries().map(entry).collect::<std::result::Result<_, EvalError>>()?)
        }
        other => other.to_json().ok_or_else(|| EvalError::Other(format!("{} is no JSON", other.type_name())))?,
    })
}

fn question(call: &Call<'_, '_>) -> std::result::Result<Value, EvalError> {
    let target = call.args.first().and_then(|value| value.downcast::<Context>()).map_or("", |context| context.kind);
    for value in call.args {
        call.charge(value.charge(call.budget)?)?;
    }
    let arguments = call.args.iter().map(|value| argument(value, MAX_WALK)).collect::<std::result::Result<_, _>>()?;
    let function = call.function.to_ascii_lowercase();
    call.host.ask(&Question { target, function, arguments })
}

fn ask<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let answer = question(call)?;
    call.budget.charge_tree(&answer)?;
    if answer.is_deeper_than(MAX_WALK - 1) {
        return Err(EvalError::Other(format!("the answer of {} nests too deep", call.function)));
    }
    Ok(match (call.function, &answer) {
        ("time.now", Value::String(text)) => match crate::scalar::go_time::parse_rfc3339(text) {
            Ok(time) => Val::Timestamp(time),
            Err(error) => return Err(EvalError::other(error.to_string())),
        },
        _ => Val::owned_json(&answer),
    })
}

/// Hands objects over. What does not exist is null among them, as `resource.Get` gives it: the host says what that
/// means.
fn hand_over<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let ([_, Val::String(_), Val::List(objects)] | [_, Val::List(objects)]) = call.args else {
        return Err(call.no_such_overload());
    };
    let is_object = |object: Val<'_>| matches!(object, Val::Map(_) | Val::Null);
    if objects.iter().all(is_object) { ask(call) } else { Err(call.no_such_overload()) }
}

fn to_gvr<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let version = call.str(1);
    if version.matches('/').count() > 1 {
        let message = format!("failed to map kind to resource: unexpected GroupVersion string: {version}");
        return Err(EvalError::Other(message));
    }
    Ok(Val::opaque(Context { kind: "schema.GroupVersionResource", detail: question(call)? }))
}

fn client<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::opaque(Context { kind: "http.Context", detail: question(call)? }))
}
