//! References of images.

use std::any::Any;

use super::super::super::error::EvalError;
use super::super::super::value::{Opaque, Val};
use super::super::{Call, Overload, global, member};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const TYPE: &str = "kyverno.image";

pub(in super::super) const OVERLOADS: &[Overload] = &[
    global("image", "string_to_image_deprecated", "string", TYPE, parse),
    global("parseImageReference", "string_to_image", "string", TYPE, parse),
    global("isImage", "is_image_string", "string", "bool", |c| Ok(Val::Bool(read(c.str(0)).is_some()))),
    member("containsDigest", "image_contains_digest", TYPE, "bool", |c| with(c, |i| Val::Bool(i.digest.is_some()))),
    member("digest", "image_digest", TYPE, "string", |c| with(c, |i| Val::text(i.digest.clone().unwrap_or_default()))),
    member("identifier", "image_identifier", TYPE, "string", |c| {
        with(c, |i| Val::text(i.digest.clone().unwrap_or_else(|| i.tag.clone())))
    }),
    member("registry", "image_registry", TYPE, "string", |c| with(c, |i| Val::text(i.registry.clone()))),
    member("repository", "image_repository", TYPE, "string", |c| with(c, |i| Val::text(i.repository.clone()))),
    member("tag", "image_tag", TYPE, "string", |c| with(c, |i| Val::text(i.tag.clone()))),
];

/// A reference with everything that it leaves out.
#[derive(Debug)]
struct Image {
    text: String,
    registry: String,
    repository: String,
    /// Empty beside a digest.
    tag: String,
    digest: Option<String>,
}

impl Opaque for Image {
    fn type_name(&self) -> &str {
        TYPE
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Image>().is_some_and(|other| other.text == self.text)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

/// Reads a reference as registry clients do: `[registry/]repository[:tag][@sha256:…]`. The first part is a registry
/// if it has a dot or a colon; what is left must have at least two characters.
fn read(text: &str) -> Option<Image> {
    if text.ends_with(':') || text.contains(":@") {
        return None;
    }
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    let is_digest = |digest: &str| {
        digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let is_tag = |tag: &str| tag.len() <= 128 && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    let (registry, path) = match name.split_once('/') {
        Some((registry, path)) if registry.contains(['.', ':']) => (registry, path),
        _ => ("", name),
    };
    let in_path = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-./".contains(&b);
    let in_registry = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
    if !(2..=255).contains(&path.len()) || !path.bytes().all(in_path) || !registry.bytes().all(in_registry) {
        return None;
    }
    let docker = matches!(registry, "" | "docker.io" | "index.docker.io");
    let registry = if docker { "index.docker.io" } else { registry };
    let repository = if docker && !path.contains('/') { format!("library/{path}") } else { path.to_owned() };
    let tag = if digest.is_some() { "" } else { tag.unwrap_or("latest") };
    Some(Image {
        text: text.to_owned(),
        registry: registry.to_owned(),
        repository,
        tag: tag.to_owned(),
        digest: digest.map(str::to_owned),
    })
}

fn parse<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let text = call.str(0);
    call.charge(text.len() * 4)?;
    read(text).map(Val::opaque).ok_or_else(|| EvalError::Other(format!("could not parse reference: {text}")))
}

fn with<'v>(call: &Call<'_, 'v>, part: fn(&Image) -> Val<'v>) -> Result<'v> {
    let value = call.arg(0);
    value.downcast::<Image>().map(part).ok_or_else(|| call.no_such_overload())
}
