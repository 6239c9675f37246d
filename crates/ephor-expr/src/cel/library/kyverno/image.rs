//! References of images.

use std::any::Any;

use super::super::super::error::EvalError;
use super::super::super::value::{Opaque, Val};
use super::super::{Call, Overload, global, member};
use crate::scalar::image_ref::ImageRef;

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

fn read(text: &str) -> Option<Image> {
    if text.ends_with(':') || text.contains(":@") {
        return None;
    }
    let reference = ImageRef::parse(text, "docker.io").ok()?;
    let digest = reference.digest.map(|digest| digest.to_string());
    let good = |digest: &String| {
        digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    if digest.as_ref().is_some_and(|digest| !good(digest)) {
        return None;
    }
    let docker = matches!(reference.registry.as_str(), "docker.io" | "index.docker.io");
    let registry = if docker { "index.docker.io".to_owned() } else { reference.registry.to_string() };
    let path = reference.path.as_str();
    let repository = if docker && !path.contains('/') { format!("library/{path}") } else { path.to_owned() };
    let tag = match (&reference.tag, &digest) {
        (_, Some(_)) => String::new(),
        (Some(tag), None) => tag.to_string(),
        (None, None) => "latest".to_owned(),
    };
    Some(Image { text: text.to_owned(), registry, repository, tag, digest })
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
