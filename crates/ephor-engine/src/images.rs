//! The data of the `images` variable: every image a workload runs, taken apart (engine.md 4.4).

use ephor_expr::scalar::image_ref::{ImageRef, ParseImageError};
use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};

/// Why the images of a resource cannot be told. Any mention of `images` is then an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImagesError {
    /// An image is no reference.
    #[error("invalid image at {at}: {cause}")]
    Reference {
        /// Where the image is.
        at: Path,
        /// What is wrong with it.
        cause: ParseImageError,
    },
    /// The resource does not have the shape of its kind.
    #[error("{at} must be of type {expected}, not {found}")]
    Shape {
        /// Where it does not.
        at: Path,
        /// The type the API has there.
        expected: &'static str,
        /// The type it is.
        found: &'static str,
    },
}

/// The lists of containers, which are also the groups of the variable.
const GROUPS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The way to the Pod spec in resources of `kind`; `None` for kinds without one.
fn pod_spec(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "Pod" => Some(&["spec"]),
        "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
            Some(&["spec", "template", "spec"])
        }
        "CronJob" => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => None,
    }
}

/// The value of the variable `images` for a resource: `{containers: {<name>: {registry, path, name, tag, digest,
/// reference, referenceWithTag, jsonPointer}}, initContainers: …, ephemeralContainers: …}`, groups only if they have
/// an image, and registry, tag and digest only if they are not empty.
///
/// `default_registry` goes before images that name none. `None`, an undefined variable, for resources without images
/// and for kinds that are no workloads. A container without an image does not count, but keeps its place in the
/// pointers of the others.
pub fn extract(resource: &Value, default_registry: &str) -> Result<Option<Value>, ImagesError> {
    let Some(way) = resource.str_at(&["kind"]).and_then(pod_spec) else { return Ok(None) };
    let Some(spec) = resource.at(way) else { return Ok(None) };
    let mut images = Map::new();
    for group in GROUPS {
        let containers = match spec.get(group) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(containers)) => containers.iter().enumerate(),
            Some(other) => return Err(misfit(Path::root().keys(way).key(group), "array", other)),
        };
        let mut of_group = Map::new();
        for (index, container) in containers {
            let at = || Path::root().keys(way).key(group).index(index).key("image");
            let image = match container.get("image") {
                None | Some(Value::Null) => continue,
                Some(Value::String(image)) => image,
                Some(other) => return Err(misfit(at(), "string", other)),
            };
            let image =
                ImageRef::parse(image, default_registry).map_err(|cause| ImagesError::Reference { at: at(), cause })?;
            of_group.insert(container.str_at(&["name"]).unwrap_or_default(), describe(&image, &at()));
        }
        if !of_group.is_empty() {
            images.insert(group, of_group);
        }
    }
    Ok((!images.is_empty()).then(|| images.into()))
}

fn misfit(at: Path, expected: &'static str, found: &Value) -> ImagesError {
    ImagesError::Shape { at, expected, found: found.type_name() }
}

/// What the variable says of one image.
fn describe(image: &ImageRef, at: &Path) -> Value {
    let text = |text: &Str| (!text.is_empty()).then(|| text.clone());
    let members = [
        ("digest", image.digest.clone()),
        ("jsonPointer", Some(at.slashed().into())),
        ("name", Some(image.name.clone())),
        ("path", Some(image.path.clone())),
        ("reference", Some(image.reference().into())),
        ("referenceWithTag", Some(image.reference_with_tag().into())),
        ("registry", text(&image.registry)),
        ("tag", image.tag.as_ref().and_then(text)),
    ];
    let present = members.into_iter().filter_map(|(key, text)| Some((key.into(), Value::from(text?))));
    present.collect::<Map>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(resource: &str) -> Result<Option<Value>, ImagesError> {
        extract(&Value::from_json(resource).unwrap(), "docker.io")
    }

    fn image(text: &str) -> Value {
        let pod = format!(r#"{{"kind":"Pod","spec":{{"containers":[{{"name":"c","image":"{text}"}}]}}}}"#);
        let images = images(&pod).unwrap().unwrap();
        images.at(&["containers", "c"]).cloned().unwrap()
    }

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn images_are_taken_apart() {
        for (text, want) in [
            (
                "nginx".to_owned(),
                r#"{"jsonPointer":"/spec/containers/0/image","name":"nginx","path":"nginx",
                    "reference":"docker.io/nginx:latest","referenceWithTag":"docker.io/nginx:latest",
                    "registry":"docker.io","tag":"latest"}"#,
            ),
            (
                format!("ghcr.io/o/p:1@{DIGEST}"),
                r#"{"digest":"D","jsonPointer":"/spec/containers/0/image","name":"p","path":"o/p",
                    "reference":"ghcr.io/o/p@D","referenceWithTag":"ghcr.io/o/p:1","registry":"ghcr.io","tag":"1"}"#,
            ),
            (
                format!("o/p@{DIGEST}"),
                r#"{"digest":"D","jsonPointer":"/spec/containers/0/image","name":"p","path":"o/p",
                    "reference":"docker.io/o/p@D","referenceWithTag":"docker.io/o/p:","registry":"docker.io"}"#,
            ),
        ] {
            let want = Value::from_json(&want.replace('D', DIGEST)).unwrap();
            assert_eq!(image(&text), want, "{text}");
        }
        assert_eq!(image("LOCAL/x").str_at(&["registry"]), Some("LOCAL"));
    }

    #[test]
    fn every_list_of_containers_is_a_group() {
        let found = images(
            r#"{"kind":"CronJob","spec":{"jobTemplate":{"spec":{"template":{"spec":{
                "initContainers":[{"name":"i","image":"a/i:2"}],"ephemeralContainers":[],
                "containers":[{"name":"none"},{"name":"c","image":"c"}]}}}}}}"#,
        );
        let found = found.unwrap().unwrap();
        let groups: Vec<_> = found.as_object().unwrap().keys().map(Str::as_str).collect();
        assert_eq!(groups, ["containers", "initContainers"]);
        assert_eq!(found.str_at(&["initContainers", "i", "path"]), Some("a/i"));
        let containers = found.get("containers").and_then(Value::as_object).unwrap();
        assert_eq!(containers.len(), 1);
        // The container without an image keeps its place.
        assert_eq!(
            found.str_at(&["containers", "c", "jsonPointer"]),
            Some("/spec/jobTemplate/spec/template/spec/containers/1/image")
        );
    }

    #[test]
    fn the_variable_is_undefined_without_images() {
        for resource in [
            r#"{"kind":"Pod","spec":{"containers":[{"name":"c"}]}}"#,
            r#"{"kind":"Pod"}"#,
            r#"{"kind":"Deployment","spec":{"containers":[{"name":"c","image":"nginx"}]}}"#,
            r#"{"kind":"Service","spec":{"containers":[{"name":"c","image":"nginx"}]}}"#,
            r#"{"kind":"PodTemplate","template":{"spec":{"containers":[{"name":"c","image":"nginx"}]}}}"#,
            "[]",
        ] {
            assert_eq!(images(resource), Ok(None), "{resource}");
        }
    }

    #[test]
    fn one_bad_reference_spoils_all() {
        let pod = |image: &str| {
            images(&format!(
                r#"{{"kind":"Pod","spec":{{"containers":[{{"name":"a","image":"nginx"}},{{"name":"b","image":{image}}}]}}}}"#
            ))
        };
        for (image, want) in [
            (r#""N@#""#, "invalid image at spec.containers[1].image: invalid reference format"),
            (r#""Nginx""#, "invalid image at spec.containers[1].image: repository name must be lowercase"),
            (r#""""#, "invalid image at spec.containers[1].image: invalid reference format"),
            ("7", "spec.containers[1].image must be of type string, not number"),
        ] {
            assert_eq!(pod(image).unwrap_err().to_string(), want);
        }
        let error = images(r#"{"kind":"Job","spec":{"template":{"spec":{"initContainers":{}}}}}"#).unwrap_err();
        assert_eq!(error.to_string(), "spec.template.spec.initContainers must be of type array, not object");
    }
}
