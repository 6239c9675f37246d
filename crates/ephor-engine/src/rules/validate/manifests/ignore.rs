//! Fields in which an object may differ from its signed manifest.

use ephor_expr::Value;
use ephor_expr::scalar::wildcard::Wildcard;

use crate::policy::{IgnoredFields, ObjectReference};

/// Whose annotations hold the signature unless the policy says otherwise.
pub(super) const DEFAULT_DOMAIN: &str = "cosign.sigstore.dev";

/// Names of the annotations of a signature; the second and later ones have `_1`, `_2` behind.
const ANNOTATIONS: [&str; 5] = ["resourceBundleRef", "signature", "message", "certificate", "bundle"];

/// Fields that the API server, controllers and tools set, by kind or group and kind. `*` stands for any text. These are
/// the fields that upstream and the library it uses ignore, but for two of Deployments: any `resources` and any
/// `securityContext` of the Pod template. The server only adds them empty, which `compare` allows for.
const BUILT_IN: [(&[&str], &[&str]); 8] = [
    (
        &["*"],
        &[
            "metadata.annotations.control-plane.alpha.kubernetes.io/leader",
            "metadata.annotations.deployment.kubernetes.io/revision",
            "metadata.annotations.deprecated.daemonset.template.generation",
            "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
            "metadata.annotations.namespace",
            "metadata.creationTimestamp",
            "metadata.finalizers",
            "metadata.generation",
            "metadata.labels.app.kubernetes.io/instance",
            "metadata.managedFields",
            "metadata.namespace",
            "metadata.resourceVersion",
            "metadata.selfLink",
            "metadata.uid",
            "spec.containers.*.imagePullPolicy",
            "spec.containers.*.terminationMessagePath",
            "spec.containers.*.terminationMessagePolicy",
            "spec.dnsPolicy",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.terminationGracePeriodSeconds",
            "status",
        ],
    ),
    (
        &["Pod"],
        &[
            "spec.containers.*.volumeMounts.*",
            "spec.enableServiceLinks",
            "spec.preemptionPolicy",
            "spec.priority",
            "spec.serviceAccount",
            "spec.tolerations.*",
            "spec.volumes.*.configMap.defaultMode",
            "spec.volumes.*.name",
            "spec.volumes.*.projected.*",
        ],
    ),
    (
        &["Deployment"],
        &[
            "spec.containers.*.ports.*.protocol",
            "spec.progressDeadlineSeconds",
            "spec.revisionHistoryLimit",
            "spec.strategy.*",
        ],
    ),
    (&["CustomResourceDefinition"], &["spec.conversion.strategy", "spec.names.listKind"]),
    (
        &["Service"],
        &[
            "spec.clusterIP",
            "spec.clusterIPs.0",
            "spec.internalTrafficPolicy",
            "spec.ipFamilies.*",
            "spec.ipFamilyPolicy",
            "spec.ports.*.nodePort",
            "spec.sessionAffinity",
            "spec.type",
        ],
    ),
    (&["ServiceAccount"], &["imagePullSecrets.*.name", "secrets.*.name"]),
    (
        &["ClusterPolicy", "Policy"],
        &[
            "metadata.annotations.pod-policies.kyverno.io/autogen-controllers",
            "spec.background",
            "spec.failurePolicy",
            "spec.validationFailureAction",
        ],
    ),
    (&["route.openshift.io/Route"], &["spec.host"]),
];

/// The prefixes of Pod templates: fields are ignored in the object and in its Pod template alike.
const TEMPLATES: [&str; 2] = ["spec.template.", "spec.jobTemplate.spec.template."];

/// All ignored fields, by the objects they belong to.
#[derive(Debug)]
pub(super) struct IgnoreFields(Vec<Binding>);

#[derive(Debug)]
struct Binding {
    /// Any of them; none at all means every object.
    objects: Vec<Selector>,
    fields: Vec<Field>,
}

/// A field and all below it.
#[derive(Debug)]
struct Field {
    itself: Wildcard,
    below: Wildcard,
}

impl Field {
    fn new(field: &str) -> Self {
        Self { itself: Wildcard::new(field), below: Wildcard::new(&format!("{field}.*")) }
    }

    fn covers(&self, place: &str) -> bool {
        self.itself.matches(place) || self.below.matches(place)
    }
}

impl IgnoreFields {
    /// The built-in fields, the annotations of `domain`, and the policy's own fields.
    pub(super) fn new(domain: &str, own: &[IgnoredFields]) -> Self {
        let built_in = BUILT_IN.iter().map(|(kinds, fields)| Binding {
            objects: kinds.iter().map(|kind| Selector::of_kind(kind)).collect(),
            fields: fields.iter().map(|field| Field::new(field)).collect(),
        });
        let domains = if domain == DEFAULT_DOMAIN { vec![domain] } else { vec![domain, DEFAULT_DOMAIN] };
        let annotations = domains.iter().flat_map(|domain| {
            ANNOTATIONS.iter().flat_map(move |name| {
                let first = format!("metadata.annotations.{domain}/{name}");
                let later = format!("{first}_*");
                [Field::new(&first), Field::new(&later)]
            })
        });
        let annotations = Binding { objects: Vec::new(), fields: annotations.collect() };
        let own = own.iter().map(|entry| Binding {
            objects: entry.objects.iter().flatten().map(Selector::new).collect(),
            fields: entry.fields.iter().flatten().map(|field| Field::new(field)).collect(),
        });
        Self(built_in.chain([annotations]).chain(own).collect())
    }

    /// Those that count for `object`.
    pub(super) fn for_object(&self, object: &Value) -> Ignored<'_> {
        let (group, version) = group_and_version(object);
        let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
        let identity = [group, version, text(&["kind"]), text(&["metadata", "name"]), text(&["metadata", "namespace"])];
        let bindings = self.0.iter().filter(|binding| {
            binding.objects.is_empty() || binding.objects.iter().any(|selector| selector.selects(&identity))
        });
        Ignored(bindings.flat_map(|binding| &binding.fields).collect())
    }
}

/// The group and the version of an object.
pub(super) fn group_and_version(object: &Value) -> (&str, &str) {
    let api_version = object.str_at(&["apiVersion"]).unwrap_or_default();
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The ignored fields of one object.
pub(super) struct Ignored<'f>(Vec<&'f Field>);

impl Ignored<'_> {
    /// Whether `place` may differ.
    pub(super) fn covers(&self, place: &str) -> bool {
        let in_template = TEMPLATES.iter().find_map(|prefix| place.strip_prefix(prefix));
        self.0.iter().any(|field| field.covers(place) || in_template.is_some_and(|place| field.covers(place)))
    }
}

/// Patterns for group, version, kind, name and namespace: alternatives between commas, empty for anything, `-` for
/// the empty text.
#[derive(Debug)]
struct Selector([Vec<Wildcard>; 5]);

impl Selector {
    fn new(reference: &ObjectReference) -> Self {
        let alternatives = |text: &Option<ephor_expr::Str>| -> Vec<Wildcard> {
            let words = text.iter().flat_map(|text| text.split(',')).map(str::trim);
            words
                .map(|word| {
                    Wildcard::new(if word == "-" {
                        ""
                    } else if word.is_empty() {
                        "*"
                    } else {
                        word
                    })
                })
                .collect()
        };
        Self(
            [&reference.group, &reference.version, &reference.kind, &reference.name, &reference.namespace]
                .map(alternatives),
        )
    }

    /// Of `Kind` or `group/Kind`.
    fn of_kind(text: &str) -> Self {
        let (group, kind) = text.split_once('/').map_or((None, text), |(group, kind)| (Some(group.into()), kind));
        Self::new(&ObjectReference { group, kind: Some(kind.into()), ..ObjectReference::default() })
    }

    fn selects(&self, identity: &[&str; 5]) -> bool {
        let mut parts = self.0.iter().zip(identity);
        parts.all(|(patterns, text)| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text)))
    }
}
