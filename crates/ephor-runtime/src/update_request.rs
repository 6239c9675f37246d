//! `UpdateRequest`: what admission hands over to the background controller.
//!
//! The form on the wire is upstream's `kyverno.io/v2`: fields that upstream requires are always written, everything
//! that upstream may leave out may be absent when read, and what is not known is passed over. A request without a
//! state counts as pending, so that a writer that dies between its two writes strands nothing.

use std::collections::BTreeMap;

use ephor_engine::matching::UserInfo;
use ephor_engine::policy::{Operation, ProgramKind};
use ephor_expr::value::{DecodeError, EncodeError, decode, encode};
use ephor_expr::{Str, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policies::PolicyId;

/// The API version that is written.
pub const API_VERSION: &str = "kyverno.io/v2";
/// The kind.
pub const KIND: &str = "UpdateRequest";

/// The label of generate requests: the policy's name, without its namespace.
pub const LABEL_GENERATE_POLICY: &str = "generate.kyverno.io/policy-name";
/// The label of mutate requests: the policy's name, without its namespace.
pub const LABEL_MUTATE_POLICY: &str = "mutate.updaterequest.kyverno.io/policy-name";
/// The label of mutate requests: the trigger's name, cut to what a label holds.
pub const LABEL_MUTATE_TRIGGER_NAME: &str = "mutate.updaterequest.kyverno.io/trigger-name";
/// The label of mutate requests: the trigger's namespace.
pub const LABEL_MUTATE_TRIGGER_NAMESPACE: &str = "mutate.updaterequest.kyverno.io/trigger-namespace";
/// The label of mutate requests: the trigger's kind.
pub const LABEL_MUTATE_TRIGGER_KIND: &str = "mutate.updaterequest.kyverno.io/trigger-kind";
/// The label of mutate requests: the trigger's API version, `/` written as `-`.
pub const LABEL_MUTATE_TRIGGER_API_VERSION: &str = "mutate.updaterequest.kyverno.io/trigger-apiVersion";

/// The annotation that says which policy a request was made by: its UID and generation, `UID/GENERATION`. The
/// background controller waits until it knows that version of the policy, or a later one.
pub const ANNOTATION_POLICY_VERSION: &str = "ephor.dev/policy-version";

/// The annotation of a request whose work was asked for once more: by which admission request.
pub const ANNOTATION_ASKED_AGAIN: &str = "ephor.dev/asked-again";

/// The annotation of a request for an update that changes nothing: the API server stores nothing, so that there is
/// nothing to wait for.
pub const ANNOTATION_UNCHANGED: &str = "ephor.dev/unchanged";

/// The label of a request that the admission role wrote: the trigger's namespace, if it has one.
pub const LABEL_TRIGGER_NAMESPACE: &str = "ephor.dev/trigger-namespace";

/// The label of a request that is done, and stays because a rule cannot be judged without it.
pub const LABEL_KEPT: &str = "ephor.dev/kept";

/// The label of a request that failed and is not tried again. It stays for people to see.
pub const LABEL_GIVEN_UP: &str = "ephor.dev/given-up";

/// The longest value of a label.
const LABEL_VALUE_LENGTH: usize = 63;

/// An `UpdateRequest`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateRequest {
    /// Name, namespace, labels and what the API server adds.
    pub metadata: RequestMetadata,
    /// What is to be done.
    pub spec: UpdateRequestSpec,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<UpdateRequestStatus>,
}

/// The metadata of an `UpdateRequest`, as far as its writers and readers look.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestMetadata {
    /// The name.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub name: Str,
    /// The beginning of the name, when the API server completes it.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub generate_name: Str,
    /// The namespace, Kyverno's.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub namespace: Str,
    /// The labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Str, Str>,
    /// The annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<Str, Str>,
    /// The identity that the API server gave.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub uid: Str,
    /// The version that a write must carry.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub resource_version: Str,
    /// When it was created, RFC 3339.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub creation_timestamp: Str,
    /// When its deletion began, RFC 3339.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub deletion_timestamp: Str,
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateRequestSpec {
    /// Which kind of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_type: Option<RequestType>,
    /// The policy: `name`, or `namespace/name` of one of a namespace. Its kind follows from the type of the request.
    pub policy: Str,
    /// The rule; mutate only.
    pub rule: Str,
    /// The trigger. Mutate requests go by it; for generate requests it only says in `kubectl get ur` what they are
    /// about.
    pub resource: ResourceSpec,
    /// The rules and their triggers; generate only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rule_context: Vec<RuleContext>,
    /// Deprecated for the field of [`RuleContext`]; always written, as upstream does.
    pub delete_downstream: bool,
    /// Deprecated for the field of [`RuleContext`].
    #[serde(skip_serializing_if = "is_false")]
    pub synchronize: bool,
    /// The admission request that led here; empty for work that a policy started.
    pub context: RequestContext,
}

/// Kinds of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestType {
    /// Mutate existing objects.
    Mutate,
    /// Generate objects.
    Generate,
    /// Generate objects by a CEL policy.
    CelGenerate,
    /// Mutate existing objects by a CEL policy.
    CelMutate,
}

/// An object by identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSpec {
    /// Its API version.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub api_version: Str,
    /// Its kind.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub kind: Str,
    /// Its namespace; empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub namespace: Str,
    /// Its name.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub name: Str,
    /// Its identity.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub uid: Str,
}

/// One rule and one trigger of a generate request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleContext {
    /// The rule.
    pub rule: Str,
    /// Whether downstreams are to be deleted instead of made.
    pub delete_downstream: bool,
    /// Whether the rule keeps its downstreams in step.
    #[serde(skip_serializing_if = "is_false")]
    pub synchronize: bool,
    /// Upstream's note to itself for CEL policies.
    #[serde(skip_serializing_if = "is_false")]
    pub cache_restore: bool,
    /// The trigger.
    pub trigger: ResourceSpec,
}

/// The admission request that led to an `UpdateRequest`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestContext {
    /// Who asked.
    pub user_info: RequestUser,
    /// What was asked.
    pub admission_request_info: AdmissionRequestInfo,
}

/// Who asked, with the roles that were found for the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestUser {
    /// Roles, `namespace:name`.
    #[serde(deserialize_with = "null_as_empty")]
    pub roles: Vec<Str>,
    /// Cluster roles.
    #[serde(deserialize_with = "null_as_empty")]
    pub cluster_roles: Vec<Str>,
    /// The user.
    pub user_info: AuthenticatedUser,
    /// Whether the request was a dry run; upstream calls it so on the wire.
    #[serde(rename = "synchronize", skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// A user as the API server's authenticator names it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthenticatedUser {
    /// The user's name.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub username: Str,
    /// The user's id.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub uid: Str,
    /// The user's groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Str>,
    /// Further attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<Str, Vec<Str>>,
}

/// What was asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionRequestInfo {
    /// The `request` of the `AdmissionReview`, or what of it was kept; null for none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub admission_request: Value,
    /// The operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
}

/// How far a request is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateRequestStatus {
    /// The state.
    pub state: State,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Str::is_empty")]
    pub message: Str,
    /// What was made.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_empty")]
    pub generated_resources: Vec<ResourceSpec>,
    /// How often it was tried again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_count: i64,
}

/// States of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// To be done.
    #[default]
    #[serde(alias = "")]
    Pending,
    /// Tried in vain.
    Failed,
    /// Done.
    Completed,
    /// There was nothing to do.
    Skip,
}

impl State {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Pending => "Pending",
            State::Failed => "Failed",
            State::Completed => "Completed",
            State::Skip => "Skip",
        }
    }
}

impl UpdateRequest {
    /// Reads a request from an object.
    pub fn from_value(object: &Value) -> Result<Self, Vec<DecodeError>> {
        decode(object)
    }

    /// The object to write.
    pub fn to_value(&self) -> Result<Value, EncodeError> {
        let mut object = encode(self)?;
        if let Some(members) = object.as_object_mut() {
            members.insert("apiVersion", API_VERSION);
            members.insert("kind", KIND);
        }
        Ok(object)
    }

    /// The state; pending if there is none.
    pub fn state(&self) -> State {
        self.status.as_ref().map_or(State::Pending, |status| status.state)
    }

    /// The policy.
    pub fn policy_id(&self) -> PolicyId {
        named(&self.spec.policy, self.spec.request_type)
    }
}

impl RequestType {
    /// The type of requests for the objects that policies of a kind make.
    pub fn generate(kind: ProgramKind) -> Self {
        if kind.is_of_cel() { Self::CelGenerate } else { Self::Generate }
    }
}

/// The policy of a request that is not decoded.
pub fn policy_of(request: &Value) -> PolicyId {
    let sort = match request.str_at(&["spec", "requestType"]) {
        Some("cel-generate") => Some(RequestType::CelGenerate),
        Some("cel-mutate") => Some(RequestType::CelMutate),
        _ => None,
    };
    named(request.str_at(&["spec", "policy"]).unwrap_or_default(), sort)
}

/// The policy that a request of that type names.
fn named(text: &str, sort: Option<RequestType>) -> PolicyId {
    let (of_cluster, of_namespace) = match sort {
        Some(RequestType::CelGenerate) => (ProgramKind::GeneratingPolicy, ProgramKind::NamespacedGeneratingPolicy),
        Some(RequestType::CelMutate) => (ProgramKind::MutatingPolicy, ProgramKind::NamespacedMutatingPolicy),
        Some(RequestType::Generate | RequestType::Mutate) | None => return PolicyId::parse(text),
    };
    match text.split_once('/') {
        Some((namespace, name)) => PolicyId::new(of_namespace, Some(namespace), name.into()),
        None => PolicyId::new(of_cluster, None, text.into()),
    }
}

impl ResourceSpec {
    /// The identity that `object` carries.
    pub fn of_object(object: &Value) -> Self {
        let text = |keys: &[&str]| Str::new(object.str_at(keys).unwrap_or_default());
        Self {
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
            uid: text(&["metadata", "uid"]),
        }
    }
}

/// The labels of a generate request for the policy called `name`.
pub fn generate_labels(name: &str) -> BTreeMap<Str, Str> {
    BTreeMap::from([(LABEL_GENERATE_POLICY.into(), label_value(name))])
}

/// The labels of a mutate request for the policy called `name` and a trigger.
pub fn mutate_labels(name: &str, trigger: &ResourceSpec) -> BTreeMap<Str, Str> {
    [
        (LABEL_MUTATE_POLICY, label_value(name)),
        (LABEL_MUTATE_TRIGGER_NAME, label_value(&trigger.name)),
        (LABEL_MUTATE_TRIGGER_NAMESPACE, trigger.namespace.clone()),
        (LABEL_MUTATE_TRIGGER_KIND, trigger.kind.clone()),
        (LABEL_MUTATE_TRIGGER_API_VERSION, trigger.api_version.replace('/', "-").into()),
    ]
    .into_iter()
    .map(|(key, value)| (Str::new_static(key), value))
    .collect()
}

/// `text` as the value of a label: characters that labels do not know become `-`, it is cut to 63, and does not end
/// (or begin) with a separator.
fn label_value(text: &str) -> Str {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let clean: String = text.chars().map(|c| if legal(c) { c } else { '-' }).take(LABEL_VALUE_LENGTH).collect();
    clean.trim_matches(|c: char| !c.is_ascii_alphanumeric()).into()
}

impl From<&UserInfo> for RequestUser {
    fn from(user: &UserInfo) -> Self {
        Self {
            roles: user.roles.clone(),
            cluster_roles: user.cluster_roles.clone(),
            user_info: AuthenticatedUser {
                username: user.username.clone(),
                uid: user.uid.clone(),
                groups: user.groups.clone(),
                extra: user.extra.clone(),
            },
            dry_run: false,
        }
    }
}

impl From<&RequestUser> for UserInfo {
    fn from(user: &RequestUser) -> Self {
        Self {
            username: user.user_info.username.clone(),
            uid: user.user_info.uid.clone(),
            groups: user.user_info.groups.clone(),
            extra: user.user_info.extra.clone(),
            roles: user.roles.clone(),
            cluster_roles: user.cluster_roles.clone(),
        }
    }
}

/// Lists that upstream writes as null when they are empty.
fn null_as_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: &str) -> UpdateRequest {
        UpdateRequest::from_value(&Value::from_json(json).unwrap()).unwrap()
    }

    #[test]
    fn a_request_of_upstream_reads_and_writes_back() {
        let json = concat!(
            r#"{"apiVersion":"kyverno.io/v2","kind":"UpdateRequest","metadata":{"generateName":"ur-","#,
            r#""labels":{"generate.kyverno.io/policy-name":"p"},"namespace":"kyverno"},"spec":{"context":{"#,
            r#""admissionRequestInfo":{"admissionRequest":{"uid":"1"},"operation":"DELETE"},"userInfo":{"#,
            r#""clusterRoles":["view"],"roles":[],"synchronize":true,"userInfo":{"groups":["g"],"username":"u"}}},"#,
            r#""deleteDownstream":false,"policy":"ns/p","requestType":"generate","resource":{},"rule":"","#,
            r#""ruleContext":[{"deleteDownstream":true,"rule":"r","synchronize":true,"trigger":{"apiVersion":"v1","#,
            r#""kind":"Secret","name":"s","namespace":"n","uid":"2"}}]},"status":{"generatedResources":[{"kind":"Pod"}"#,
            r#"],"message":"m","retryCount":2,"state":"Failed"}}"#,
        );
        let request = request(json);
        assert_eq!(request.policy_id(), PolicyId::kyverno("ns", "p"));
        assert_eq!(request.state(), State::Failed);
        assert!(request.spec.context.user_info.dry_run);
        assert_eq!(request.to_value().unwrap().to_json(), json);
    }

    #[test]
    fn the_type_of_a_request_tells_the_kind_of_its_policy() {
        for (sort, policy, kind) in [
            ("generate", "p", ProgramKind::ClusterPolicy),
            ("mutate", "n/p", ProgramKind::Policy),
            ("cel-generate", "p", ProgramKind::GeneratingPolicy),
            ("cel-generate", "n/p", ProgramKind::NamespacedGeneratingPolicy),
            ("cel-mutate", "n/p", ProgramKind::NamespacedMutatingPolicy),
        ] {
            let request = request(&format!(r#"{{"spec":{{"policy":"{policy}","requestType":"{sort}"}}}}"#));
            let id = request.policy_id();
            assert_eq!((id.kind, id.to_string().as_str()), (kind, policy));
            assert_eq!(policy_of(&request.to_value().unwrap()), id);
        }
    }

    #[test]
    fn a_request_without_a_state_is_pending() {
        for status in ["", r#","status":{}"#, r#","status":{"state":""}"#, r#","status":null"#] {
            let text = format!(r#"{{"spec":{{"policy":"p","requestType":"mutate"}}{status}}}"#);
            assert_eq!(request(&text).state(), State::Pending, "{text}");
        }
    }

    #[test]
    fn lists_may_be_null_and_new_fields_are_passed_over() {
        let json =
            r#"{"spec":{"context":{"userInfo":{"roles":null,"clusterRoles":null}},"new":1},"status":{"handler":"x"}}"#;
        assert_eq!(request(json).spec, UpdateRequestSpec::default());
    }

    #[test]
    fn an_unknown_kind_of_work_is_an_error_with_its_place() {
        let value = Value::from_json(r#"{"spec":{"requestType":"dance"}}"#).unwrap();
        let errors = UpdateRequest::from_value(&value).unwrap_err();
        assert_eq!(errors[0].path.to_string(), "spec.requestType");
    }

    #[test]
    fn labels_are_values_that_the_api_server_takes() {
        let trigger = ResourceSpec {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "n".into(),
            name: format!("{}.tail", "a".repeat(62)).into(),
            uid: "1".into(),
        };
        let labels = mutate_labels("p", &trigger);
        assert_eq!(labels[LABEL_MUTATE_TRIGGER_NAME], "a".repeat(62));
        assert_eq!(labels[LABEL_MUTATE_TRIGGER_API_VERSION], "apps-v1");
        assert_eq!(
            mutate_labels("p", &ResourceSpec { name: "system:x".into(), ..trigger })[LABEL_MUTATE_TRIGGER_NAME],
            "system-x"
        );
        assert_eq!(generate_labels("p")[LABEL_GENERATE_POLICY], "p");
    }

    #[test]
    fn a_user_survives_the_way() {
        let user = UserInfo {
            username: "u".into(),
            uid: "1".into(),
            groups: vec!["g".into()],
            extra: BTreeMap::from([("k".into(), vec!["v".into()])]),
            roles: vec!["n:r".into()],
            cluster_roles: vec!["c".into()],
        };
        assert_eq!(UserInfo::from(&RequestUser::from(&user)), user);
    }
}
