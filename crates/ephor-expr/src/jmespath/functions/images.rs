//! Image references.

use super::{Call, Function, Param};
use crate::jmespath::EvalError;
use crate::scalar::image_ref::{ImageRef, with_registry};
use crate::value::Value;

/// The registry of images that name none, as the reference has it unless configured otherwise.
const DEFAULT_REGISTRY: &str = "docker.io";

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "image_normalize",
    params: &[Param::STRING],
    returns: "string",
    doc: "The full reference of an image, with registry and tag or digest.",
    examples: &[
        ("image_normalize('app')", "\"docker.io/app:latest\""),
        ("image_normalize('ghcr.io/o/p:1')", "\"ghcr.io/o/p:1\""),
        (
            "image_normalize('B')",
            "error: JMESPath function 'image_normalize': bad image: docker.io/B, defaultRegistry: docker.io, \
             enableDefaultRegistryMutation: true: repository name must be lowercase",
        ),
    ],
    call: image_normalize,
}];

fn image_normalize(call: &Call<'_>) -> Result<Value, EvalError> {
    let text = call.str(0);
    let image = ImageRef::parse(text, DEFAULT_REGISTRY).map_err(|reason| {
        let full = with_registry(text, DEFAULT_REGISTRY);
        call.error(format!(
            "bad image: {full}, defaultRegistry: {DEFAULT_REGISTRY}, enableDefaultRegistryMutation: true: {reason}"
        ))
    })?;
    Ok(image.reference().into())
}
