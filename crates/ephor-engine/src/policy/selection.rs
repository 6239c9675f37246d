//! `match` and `exclude`: which resources and requests a rule applies to.

use std::collections::BTreeMap;

use ephor_expr::Str;
use serde::{Deserialize, Serialize};

/// A `match` or `exclude` block: `any`, `all`, or one filter written directly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Match {
    /// At least one filter must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<ResourceFilter>>,
    /// All filters must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<ResourceFilter>>,
    /// Direct form: objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceSelection>,
    /// Direct form: roles of the user, `namespace:name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Str>>,
    /// Direct form: cluster roles of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_roles: Option<Vec<Str>>,
    /// Direct form: users, groups, service accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<Vec<Subject>>,
}

/// One filter: all its attributes must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResourceFilter {
    /// Objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceSelection>,
    /// Roles of the user, `namespace:name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Str>>,
    /// Cluster roles of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_roles: Option<Vec<Str>>,
    /// Users, groups, service accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<Vec<Subject>>,
}

/// Attributes of objects and requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResourceSelection {
    /// Kind selectors such as `Pod`, `apps/v1/Deployment`, `Pod/exec`, with wildcards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<Str>>,
    /// A name, with wildcards; deprecated for `names`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// Names, with wildcards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<Str>>,
    /// Namespaces, with wildcards; of a Namespace object its own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<Str>>,
    /// Annotations, with wildcards in keys and values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<Str, Str>>,
    /// Labels of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Labels of the object's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Operations; absent means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<Operation>>,
}

/// What an admission request does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object; also how scans evaluate what exists.
    #[default]
    Create,
    /// A changed object.
    Update,
    /// A removed object.
    Delete,
    /// A connection such as `pods/exec`.
    Connect,
}

impl Operation {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// The operation of a word on the wire.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect].into_iter().find(|op| op.as_str() == word)
    }
}

/// A user, group or service account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: Str,
    /// The name, with wildcards.
    pub name: Str,
    /// The namespace of a service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Str>,
    /// `rbac.authorization.k8s.io` or empty; not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<Str>,
}

/// A Kubernetes label selector whose `matchLabels` may carry wildcards.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LabelSelector {
    /// Pairs that must be present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<Str, Str>>,
    /// Requirements that must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Vec<Requirement>>,
}

/// One requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// The label's key.
    pub key: Str,
    /// How it is compared.
    pub operator: SelectorOperator,
    /// With what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Str>>,
}

/// Operators of label selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SelectorOperator {
    /// The value is one of the given.
    In,
    /// The label is absent or its value is none of the given.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}
