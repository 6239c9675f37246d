//! Container image references, as `images` and `image_normalize()` see them (engine.md 4.4).

use std::fmt::Write as _;

use crate::Str;

/// The longest repository, registry included.
const LONGEST_REPOSITORY: usize = 255;

/// The longest tag.
const LONGEST_TAG: usize = 128;

/// A reference taken apart, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRef {
    /// The registry with its port, for example `docker.io`; empty only when the first part looks like a host but
    /// cannot be one.
    pub registry: Str,
    /// The repository without registry, for example `org/app`.
    pub path: Str,
    /// The last part of the path.
    pub name: Str,
    /// The tag: `latest` when there is neither tag nor digest.
    pub tag: Option<Str>,
    /// The digest, for example `sha256:…`.
    pub digest: Option<Str>,
}

/// Why a text is no image reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseImageError {
    /// Not of the form `[registry/]path[:tag][@digest]`.
    #[error("invalid reference format")]
    Format,
    /// It would be one in lower case.
    #[error("repository name must be lowercase")]
    Uppercase,
    /// The repository has more than 255 characters.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// The digest's algorithm is none of sha256, sha384 and sha512.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    /// The digest's length is not that of its algorithm.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// The digest has upper-case digits.
    #[error("invalid checksum digest format")]
    DigestFormat,
}

impl ImageRef {
    /// Reads a reference. The default registry is put in front when the text has no `/`, or its first part has no
    /// `.` or `:`, is not `localhost` and is lower case.
    pub fn parse(text: &str, default_registry: &str) -> Result<Self, ParseImageError> {
        let full = with_registry(text, default_registry);
        let (name, digest) = match full.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (full.as_str(), None),
        };
        // A colon before the last slash belongs to the registry's port.
        let last_part = name.rfind('/').map_or(0, |slash| slash + 1);
        let tag_at = name.get(last_part..).and_then(|part| part.find(':')).map(|at| at + last_part);
        let (repository, tag) = match tag_at {
            Some(at) => (name.get(..at).unwrap_or_default(), name.get(at + 1..)),
            None => (name, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) || digest.is_some_and(|digest| !is_digest(digest)) {
            return Err(ParseImageError::Format);
        }
        let Some((registry, path)) = split_repository(repository) else {
            let lower = repository.to_lowercase();
            let only_case = lower != repository && split_repository(&lower).is_some();
            return Err(if only_case { ParseImageError::Uppercase } else { ParseImageError::Format });
        };
        if repository.len() > LONGEST_REPOSITORY {
            return Err(ParseImageError::TooLong);
        }
        digest.map_or(Ok(()), check_digest)?;
        let tag = if digest.is_none() { Some(tag.unwrap_or("latest")) } else { tag };
        Ok(ImageRef {
            registry: registry.into(),
            path: path.into(),
            name: path.rsplit('/').next().unwrap_or(path).into(),
            tag: tag.map(Str::from),
            digest: digest.map(Str::from),
        })
    }

    /// The reference to fetch: with the digest if there is one, else with the tag.
    pub fn reference(&self) -> String {
        let mut out = self.repository();
        match &self.digest {
            Some(digest) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "@{digest}");
            }
            None => self.push_tag(&mut out),
        }
        out
    }

    /// The reference with the tag; ends in `:` when there is only a digest.
    pub fn reference_with_tag(&self) -> String {
        let mut out = self.repository();
        self.push_tag(&mut out);
        out
    }

    /// Registry and path.
    pub fn repository(&self) -> String {
        if self.registry.is_empty() { self.path.to_string() } else { format!("{}/{}", self.registry, self.path) }
    }

    fn push_tag(&self, out: &mut String) {
        out.push(':');
        out.push_str(self.tag.as_deref().unwrap_or_default());
    }
}

/// The text that [`ImageRef::parse`] reads: with the default registry in front, if it has to be.
pub fn with_registry(text: &str, default_registry: &str) -> String {
    let has_registry = text.split_once('/').is_some_and(|(first, _)| {
        first.contains(['.', ':']) || first == "localhost" || first.chars().any(|c| !c.to_lowercase().eq([c]))
    });
    if has_registry { text.to_owned() } else { format!("{default_registry}/{text}") }
}

/// Splits a repository into registry and path; `None` when it is not of the form.
fn split_repository(repository: &str) -> Option<(&str, &str)> {
    let is_path = |path: &str| path.split('/').all(is_path_part);
    if let Some((registry, path)) = repository.split_once('/')
        && is_registry(registry)
        && is_path(path)
    {
        return Some((registry, path));
    }
    is_path(repository).then_some(("", repository))
}

/// `host[:port]`; the host is a name or an IPv6 address in brackets.
fn is_registry(text: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|&b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let is_host = |host: &str| match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':'),
        None => host.split('.').all(is_label),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    is_host(text) || text.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && is_port(port))
}

/// Lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`.
fn is_path_part(part: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut rest = part.as_bytes();
    loop {
        let word = rest.iter().take_while(|&&b| is_word(b)).count();
        if word == 0 {
            return false;
        }
        rest = rest.get(word..).unwrap_or_default();
        let joint = match rest {
            [] => return true,
            [b'_', b'_', ..] => 2,
            [b'.' | b'_', ..] => 1,
            [b'-', ..] => rest.iter().take_while(|&&b| b == b'-').count(),
            _ => return false,
        };
        rest = rest.get(joint..).unwrap_or_default();
    }
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= LONGEST_TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|b| is_word(b) || matches!(b, b'.' | b'-'))
}

/// `algorithm:hex`, the algorithm words starting with a letter and joined by one of `-_+.`.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let is_word = |word: &str| {
        word.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()) && word.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_word) && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

fn check_digest(digest: &str) -> Result<(), ParseImageError> {
    let (algorithm, hex) = digest.split_once(':').ok_or(ParseImageError::Format)?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(ParseImageError::DigestAlgorithm),
    };
    if hex.len() != length {
        return Err(ParseImageError::DigestLength);
    }
    if hex.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(ParseImageError::DigestFormat);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest() -> String {
        format!("sha256:{}", "0".repeat(64))
    }

    #[test]
    fn references_are_completed() {
        let d = digest();
        for (text, reference, with_tag) in [
            ("nginx", "docker.io/nginx:latest", "docker.io/nginx:latest"),
            ("app", "docker.io/app:latest", "docker.io/app:latest"),
            ("org/app:1", "docker.io/org/app:1", "docker.io/org/app:1"),
            ("Reg/b", "Reg/b:latest", "Reg/b:latest"),
            ("LOCAL/x", "LOCAL/x:latest", "LOCAL/x:latest"),
            ("localhost/a", "localhost/a:latest", "localhost/a:latest"),
            ("localhost:5000/a:2", "localhost:5000/a:2", "localhost:5000/a:2"),
            ("[::1]:5000/a", "[::1]:5000/a:latest", "[::1]:5000/a:latest"),
            ("ghcr.io/o/p", "ghcr.io/o/p:latest", "ghcr.io/o/p:latest"),
            // Not a host name, so part of the path, and no registry is put in front.
            ("a_b.c/d", "a_b.c/d:latest", "a_b.c/d:latest"),
            (&format!("a:1@{d}"), &format!("docker.io/a@{d}"), "docker.io/a:1"),
            (&format!("o/p@{d}"), &format!("docker.io/o/p@{d}"), "docker.io/o/p:"),
        ] {
            let image = ImageRef::parse(text, "docker.io").unwrap();
            assert_eq!(image.reference(), reference, "{text}");
            assert_eq!(image.reference_with_tag(), with_tag, "{text}");
        }
    }

    #[test]
    fn parts_are_told_apart() {
        let image = ImageRef::parse(&format!("ghcr.io/o/p:1@{}", digest()), "docker.io").unwrap();
        assert_eq!(image.registry, "ghcr.io");
        assert_eq!(image.path, "o/p");
        assert_eq!(image.name, "p");
        assert_eq!(image.tag.as_deref(), Some("1"));
        assert_eq!(image.digest, Some(digest().into()));
        let image = ImageRef::parse("nginx", "reg.example:80").unwrap();
        assert_eq!((image.registry.as_str(), image.name.as_str()), ("reg.example:80", "nginx"));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for (text, error) in [
            ("", ParseImageError::Format),
            ("N@#", ParseImageError::Format),
            ("B", ParseImageError::Uppercase),
            ("docker.io/A/b", ParseImageError::Uppercase),
            ("a b", ParseImageError::Format),
            ("a/", ParseImageError::Format),
            ("a:", ParseImageError::Format),
            ("a:-x", ParseImageError::Format),
            ("a:1:2", ParseImageError::Format),
            ("a___b", ParseImageError::Format),
            ("a..b/c", ParseImageError::Format),
            ("-a.b/c", ParseImageError::Format),
            ("a@sha256:00", ParseImageError::Format),
            (&format!("a@md5:{}", "0".repeat(32)), ParseImageError::DigestAlgorithm),
            (&format!("a@sha256:{}", "0".repeat(63)), ParseImageError::DigestLength),
            (&format!("a@sha256:{}", "A".repeat(64)), ParseImageError::DigestFormat),
            (&format!("a:{}", "1".repeat(129)), ParseImageError::Format),
            (&"a".repeat(300), ParseImageError::TooLong),
        ] {
            assert_eq!(ImageRef::parse(text, "docker.io"), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn complete_references_read_back(text in "([a-z]{1,3}[.:/_-]){0,4}[a-z]{1,3}(:[a-z0-9]{1,4})?") {
            if let Ok(image) = ImageRef::parse(&text, "docker.io") {
                prop_assert_eq!(ImageRef::parse(&image.reference(), "docker.io"), Ok(image));
            }
        }

        #[test]
        fn any_text_is_safe(text in r"[a-cAé.:/@_\[\] 0-]{0,20}") {
            let _ = ImageRef::parse(&text, "docker.io");
        }
    }
}
