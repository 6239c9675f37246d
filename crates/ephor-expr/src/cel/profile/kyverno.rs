//! Profiles of the policies of `policies.kyverno.io`.

use std::collections::BTreeMap;

use super::super::environment::{Edition, Environment, Literals, ObjectType, Options};
use super::super::library::{self, Library};
use super::super::types::Type;
use super::{COST_LIMIT, KUBERNETES, declare_objects, without_authorizer};

/// The libraries of the language that Kyverno's policies have beside those of Kubernetes.
const EXTENSIONS: [Library; 4] = [library::BINDINGS, library::MATH, library::ENCODERS, library::PROTOS];

/// Those that came after Kyverno 1.18.
const LATER_EXTENSIONS: [Library; 3] = [library::REGEX, library::JSON_ENCODER, library::EXISTS_ONE];

/// Kyverno's own libraries that all its policies have.
const OWN: [Library; 7] = [
    library::KYVERNO_DATA,
    library::KYVERNO_IMAGES,
    library::KYVERNO_RESOURCES,
    library::KYVERNO_HTTP,
    library::KYVERNO_CHANCE,
    library::KYVERNO_GLOBAL_CONTEXT,
    library::KYVERNO_IMAGE_DATA,
];

/// The version of Kyverno whose expressions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// Kyverno 1.18, on Kubernetes 1.35.
    V1_18,
    /// The version after it, on Kubernetes 1.36: with `regex.replace` and others, with `x.orValue(y)` for an `x` that
    /// is no optional, and with plainer CEL where policies generate or delete.
    #[default]
    Head,
}

/// A kind of policy of `policies.kyverno.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kyverno {
    /// `ValidatingPolicy`.
    Validating,
    /// `NamespacedValidatingPolicy`.
    NamespacedValidating,
    /// `MutatingPolicy`.
    Mutating,
    /// `NamespacedMutatingPolicy`.
    NamespacedMutating,
    /// What chooses the targets of a `MutatingPolicy`.
    MutationTarget,
    /// `GeneratingPolicy`.
    Generating,
    /// `NamespacedGeneratingPolicy`.
    NamespacedGenerating,
    /// `DeletingPolicy`.
    Deleting,
    /// `NamespacedDeletingPolicy`.
    NamespacedDeleting,
    /// `ImageValidatingPolicy`.
    ImageValidating,
}

/// Variables on which functions are called, and their types.
pub const CONTEXTS: [(&str, &str); 6] = [
    ("resource", "resource.Context"),
    ("http", "http.Context"),
    ("globalContext", "globalcontext.Context"),
    ("image", "imagedata.Context"),
    ("json", "json.Json"),
    ("yaml", "yaml.Yaml"),
];

/// The type of `variables` in Kyverno.
pub const KYVERNO_VARIABLES: &str = "kyverno.variables";

impl Kyverno {
    /// The environment of expressions there, in the version that Ephor follows.
    pub fn environment(self) -> Environment {
        self.environment_of(Version::default())
    }

    /// The environment of expressions there in one version.
    pub fn environment_of(self, version: Version) -> Environment {
        let mut libraries = self.language(version);
        libraries.extend(self.own_libraries(version));
        let mut environment = self.with_request(&libraries, version);
        let text_fields = |names: &[&str]| names.iter().map(|name| ((*name).into(), Type::String)).collect();
        environment.declare_object(ObjectType {
            name: "user.ServiceAccount".into(),
            fields: text_fields(&["Name", "Namespace"]),
            constructible: false,
        });
        let lists = ["allowedImages", "allowedValues"].map(|name| (name.into(), Type::list(Type::String)));
        let exceptions = if self.deletes() { "compiler.Exception" } else { "libs.Exception" };
        environment.declare_object(ObjectType {
            name: exceptions.into(),
            fields: if self.deletes() { BTreeMap::new() } else { lists.into() },
            constructible: false,
        });
        if self != Kyverno::ImageValidating {
            environment.declare("exceptions", Type::Object(exceptions.into()));
        }
        for (name, kind) in CONTEXTS {
            environment.declare(name, Type::Opaque(kind.into()));
        }
        if self.mutates() || self.generates() {
            environment.declare("generator", Type::Opaque("generator.Context".into()));
        }
        if self == Kyverno::ImageValidating {
            environment.declare("attestors", Type::map(Type::String, Type::Dyn));
            environment.declare("attestations", Type::map(Type::String, Type::String));
            environment.declare("images", Type::map(Type::String, Type::list(Type::String)));
        }
        environment.declare(super::super::MEMBERS, Type::Object(KYVERNO_VARIABLES.into()));
        environment.declare_object(ObjectType {
            name: KYVERNO_VARIABLES.into(),
            fields: BTreeMap::new(),
            constructible: false,
        });
        environment
    }

    /// The same without Kyverno's own functions and variables: the language alone, over a request.
    pub fn language_of(self, version: Version) -> Environment {
        self.with_request(&self.language(version), version)
    }

    /// An environment with these libraries and what is known of a request.
    fn with_request(self, libraries: &[Library], version: Version) -> Environment {
        let mut environment = Environment::new(libraries, self.options(version));
        declare_objects(&mut environment, self.mutates());
        environment.extend_object("kubernetes.AdmissionRequest", [("object", Type::Dyn), ("oldObject", Type::Dyn)]);
        environment.declare("object", Type::Dyn);
        if self != Kyverno::MutationTarget {
            environment.declare("oldObject", Type::Dyn);
            environment.declare("request", Type::Object("kubernetes.AdmissionRequest".into()));
            environment.declare("namespaceObject", Type::Object("kubernetes.Namespace".into()));
        }
        environment
    }

    /// The libraries of the language, and those of Kubernetes.
    fn language(self, version: Version) -> Vec<Library> {
        let on_kubernetes = self.is_on_kubernetes(version);
        let mut libraries = if on_kubernetes { KUBERNETES.to_vec() } else { without_authorizer() };
        libraries.extend(EXTENSIONS);
        if on_kubernetes {
            libraries.push(library::TWO_VARIABLES);
        }
        if version == Version::V1_18 {
            libraries.push(library::DURATION_OF_INT);
            return libraries;
        }
        libraries.extend(LATER_EXTENSIONS);
        if self != Kyverno::ImageValidating {
            libraries.push(library::OR_VALUE);
        }
        libraries
    }

    /// Kyverno's own libraries.
    fn own_libraries(self, version: Version) -> Vec<Library> {
        let head = version == Version::Head;
        let mut libraries = OWN.to_vec();
        let images = self == Kyverno::ImageValidating;
        if !(head && images) {
            libraries.push(library::KYVERNO_CERTIFICATES);
        }
        if self != Kyverno::MutationTarget {
            libraries.push(library::KYVERNO_ARCHIVES);
        }
        libraries.push(if self.is_namespaced() {
            library::KYVERNO_NAMESPACE_RESOURCES
        } else {
            library::KYVERNO_CLUSTER_RESOURCES
        });
        if self.mutates() || self.generates() {
            libraries.push(match self {
                Kyverno::NamespacedGenerating if head => library::KYVERNO_NAMESPACE_GENERATOR,
                _ => library::KYVERNO_GENERATOR,
            });
        }
        if !self.deletes() && !self.generates() {
            libraries.push(library::KYVERNO_SERVICE_ACCOUNTS);
        }
        if images {
            libraries.push(library::KYVERNO_SIGNATURES);
        }
        if self.mutates() {
            libraries.push(library::KUBERNETES_JSON_PATCH);
        }
        libraries
    }

    fn options(self, version: Version) -> Options {
        let on_kubernetes = self.is_on_kubernetes(version);
        Options {
            literals: match self {
                _ if on_kubernetes => Literals::Strict,
                _ if self.deletes() => Literals::Homogeneous,
                _ => Literals::Lenient,
            },
            cost_limit: on_kubernetes.then_some(COST_LIMIT),
            edition: if version == Version::Head { Edition::Head } else { Edition::Kubernetes135 },
            quoted_fields: version == Version::Head,
            open_object: self.mutates().then_some("Object"),
        }
    }

    /// Whether expressions have what Kubernetes gives to those of its own policies: its limit on cost, its checks of
    /// constants, macros over two variables.
    fn is_on_kubernetes(self, version: Version) -> bool {
        version == Version::V1_18 || !(self.generates() || self.deletes())
    }

    fn is_namespaced(self) -> bool {
        matches!(
            self,
            Kyverno::NamespacedValidating
                | Kyverno::NamespacedMutating
                | Kyverno::NamespacedGenerating
                | Kyverno::NamespacedDeleting
        )
    }

    fn mutates(self) -> bool {
        matches!(self, Kyverno::Mutating | Kyverno::NamespacedMutating)
    }

    fn generates(self) -> bool {
        matches!(self, Kyverno::Generating | Kyverno::NamespacedGenerating)
    }

    fn deletes(self) -> bool {
        matches!(self, Kyverno::Deleting | Kyverno::NamespacedDeleting)
    }
}

/// The environment of `matchImageReferences` in Kyverno 1.18, where the only variable is the reference, `ref`.
pub fn kyverno_image_reference() -> Environment {
    let mut libraries = without_authorizer();
    libraries.extend(EXTENSIONS);
    libraries.extend([library::KYVERNO_IMAGES, library::STRING_REVERSE, library::DURATION_OF_INT]);
    let options = Options { literals: Literals::Strict, ..Options::default() };
    let mut environment = Environment::new(&libraries, options);
    environment.declare("ref", Type::String);
    environment
}

#[cfg(test)]
mod tests {
    use super::super::super::Program;
    use super::*;

    #[test]
    fn kinds_and_versions_differ_as_the_reference_does() {
        use Kyverno::{Deleting, Generating, ImageValidating, Mutating, NamespacedGenerating, Validating};
        let all = [Validating, Mutating, Generating, Deleting, ImageValidating];
        // Where each compiles, in Kyverno 1.18 and after it.
        let table: [(&str, &[Kyverno], &[Kyverno]); 9] = [
            ("regex.replace('a', 'a', 'b') == 'b'", &[], &all),
            ("json.encode([1]) == '[1]'", &[], &all),
            ("[1, 'a'].size() == 2", &[], &[Generating]),
            ("['x'].all(i, v, v == 'x')", &all, &[Validating, Mutating, ImageValidating]),
            ("'a'.matches('(')", &[], &[Generating, Deleting]),
            // The macro gives `dyn`, which a condition may not be.
            ("optional.of(true).orValue(false)", &all, &[ImageValidating]),
            ("optional.of(true).orValue(false) == true", &all, &all),
            ("x509.decode('a') != null", &all, &[Validating, Mutating, Generating, Deleting]),
            ("object.`a-b` == 1", &[], &all),
        ];
        let compiles = |text: &str, kind: Kyverno, version| {
            Program::compile(text, &kind.environment_of(version)).is_ok_and(|program| *program.kind() == Type::Bool)
        };
        for (text, before, after) in table {
            for kind in all {
                assert_eq!(compiles(text, kind, Version::V1_18), before.contains(&kind), "{text} in 1.18, {kind:?}");
                assert_eq!(compiles(text, kind, Version::Head), after.contains(&kind), "{text}, {kind:?}");
            }
        }
        for (text, version) in
            [("generator.Apply('a', [object])", Version::V1_18), ("generator.Apply([object])", Version::Head)]
        {
            assert!(compiles(text, NamespacedGenerating, version), "{text}");
        }
        assert!(compiles("regex.replace('a', 'a', 'b') == 'b'", Validating, Version::default()));
    }
}
