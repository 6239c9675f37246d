//! `Values` files: what stands in for data that cannot be fetched.

use std::path::Path;
use std::sync::Arc;

use ephor_engine::check::REQUEST_MEMBERS;
use ephor_engine::diagnostic::Severity;
use ephor_engine::matching::Gvk;
use ephor_engine::policy::Operation;
use ephor_engine::review::{Given, Review};
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::{Map, Str, Value};
use serde::Deserialize;

use super::typed::{FREE, Shape, read_one};
use crate::locate::Located;

const RESOURCE_VALUES: Shape = Shape(&[("name", &FREE), ("values", &FREE)]);
const RULE_VALUES: Shape = Shape(&[("name", &FREE), ("values", &FREE), ("foreachValues", &FREE)]);
const POLICY_VALUES: Shape = Shape(&[("name", &FREE), ("resources", &RESOURCE_VALUES), ("rules", &RULE_VALUES)]);
const NAMESPACE_LABELS: Shape = Shape(&[("name", &FREE), ("labels", &FREE)]);
const API_RESOURCE: Shape = Shape(&[
    ("name", &FREE),
    ("singularName", &FREE),
    ("namespaced", &FREE),
    ("group", &FREE),
    ("version", &FREE),
    ("kind", &FREE),
    ("verbs", &FREE),
    ("shortNames", &FREE),
    ("categories", &FREE),
    ("storageVersionHash", &FREE),
]);
const SUBRESOURCE: Shape = Shape(&[("subresource", &API_RESOURCE), ("parentResource", &API_RESOURCE)]);
/// The shape of [`Values`].
pub const VALUES: Shape = Shape(&[
    ("apiVersion", &FREE),
    ("kind", &FREE),
    ("metadata", &FREE),
    ("globalValues", &FREE),
    ("policies", &POLICY_VALUES),
    ("namespaceSelector", &NAMESPACE_LABELS),
    ("namespaces", &FREE),
    ("subresources", &SUBRESOURCE),
]);

/// Values given by the user, as written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Values {
    /// Absent in values inside a test.
    pub api_version: Option<Str>,
    /// Absent in values inside a test.
    pub kind: Option<Str>,
    /// Free.
    pub metadata: Option<Value>,
    /// For every policy and resource: dotted paths to values.
    pub global_values: Option<Map>,
    /// For one policy each.
    pub policies: Option<Vec<PolicyValues>>,
    /// Labels of namespaces.
    pub namespace_selector: Option<Vec<LabelledNamespace>>,
    /// Namespaces, as whole objects; they win over `namespaceSelector`.
    pub namespaces: Option<Vec<Value>>,
    /// Kinds that stand for subresources.
    pub subresources: Option<Vec<Subresource>>,
}

/// Values for one policy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyValues {
    /// The policy.
    pub name: Str,
    /// For resources.
    pub resources: Option<Vec<NamedValues>>,
    /// For rules.
    pub rules: Option<Vec<NamedValues>>,
}

/// Values for one resource or rule.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NamedValues {
    /// The resource or rule.
    pub name: Str,
    /// Dotted paths to values.
    pub values: Option<Map>,
    /// For the loops of a rule: lists, of which the first item counts.
    pub foreach_values: Option<Map>,
}

/// A namespace and its labels.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelledNamespace {
    /// Its name.
    pub name: Str,
    /// Its labels.
    pub labels: Option<Map>,
}

/// A kind that stands for a subresource of another.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Subresource {
    /// What requests for it send; its `name` is like `pods/exec`.
    pub subresource: ApiResource,
    /// What it belongs to.
    pub parent_resource: ApiResource,
}

/// An entry of the API server's list of resources, as far as it matters.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ApiResource {
    /// Plural name, with the subresource after a slash.
    pub name: Str,
    /// The group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The kind.
    pub kind: Str,
    /// Without effect here.
    pub singular_name: Option<Str>,
    /// Without effect here.
    pub namespaced: Option<bool>,
    /// Without effect here.
    pub verbs: Option<Vec<Str>>,
    /// Without effect here.
    pub short_names: Option<Vec<Str>>,
    /// Without effect here.
    pub categories: Option<Vec<Str>>,
    /// Without effect here.
    pub storage_version_hash: Option<Str>,
}

impl ApiResource {
    fn gvk(&self) -> Gvk {
        Gvk { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() }
    }
}

/// A value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// `request.operation` is no operation.
    #[error("`request.operation` is `{0}`; it must be CREATE, UPDATE, DELETE or CONNECT")]
    Operation(String),
}

/// Reads a `Values` file.
pub fn read_values(path: &Path) -> Result<Values, Vec<Located>> {
    read_one(path, &VALUES).map(|typed| typed.value)
}

impl Values {
    /// Labels of a namespace, if they are given.
    pub fn namespace_labels(&self, namespace: &str) -> Option<Value> {
        let mut whole = self.namespaces.iter().flatten();
        let whole = whole.find(|n| n.str_at(&["metadata", "name"]) == Some(namespace));
        let labels = if let Some(object) = whole {
            object.at(&["metadata", "labels"]).and_then(Value::as_object).cloned()
        } else {
            let mut listed = self.namespace_selector.iter().flatten();
            listed.find(|n| n.name == namespace)?.labels.clone()
        };
        let mut labels = labels.unwrap_or_default();
        if !labels.contains_key("kubernetes.io/metadata.name") {
            labels.insert("kubernetes.io/metadata.name", namespace);
        }
        Some(Value::object(labels))
    }

    /// The names that stand for variables, of whatever they are for.
    pub fn names(&self) -> impl Iterator<Item = &Str> {
        let policies = || self.policies.iter().flatten();
        let of_resources = policies().flat_map(|p| p.resources.iter().flatten()).filter_map(|r| r.values.as_ref());
        let of_rules = policies().flat_map(|p| p.rules.iter().flatten()).filter_map(|r| r.values.as_ref());
        self.global_values.iter().chain(of_resources).chain(of_rules).flat_map(Map::iter).map(|(name, _)| name)
    }

    /// The kind and subresource that an object of `gvk` is a request for.
    pub fn subresource(&self, gvk: &Gvk) -> Option<(Gvk, Str)> {
        let entry = self.subresources.iter().flatten().find(|s| s.subresource.gvk() == *gvk)?;
        let (_, subresource) = entry.subresource.name.split_once('/')?;
        Some((entry.parent_resource.gvk(), Str::new(subresource)))
    }

    /// Makes `review` one of `policy` with these values: global ones, those of the resource, then `set`; rule
    /// values beside them. `operation` wins over a given `request.operation`.
    ///
    /// Values below `request.object` and `request.oldObject` change the object itself; the operation decides which of
    /// the two the object is.
    pub fn apply(
        &self,
        review: &mut Review,
        policy: &str,
        set: Option<&Map>,
        operation: Option<Operation>,
    ) -> Result<(), ValuesError> {
        let of_policy = || self.policies.iter().flatten().filter(|p| p.name == policy);
        let mut flat = self.global_values.clone().unwrap_or_default();
        let of_resource = of_policy().flat_map(|p| p.resources.iter().flatten()).filter(|r| r.name == review.name);
        for (key, value) in
            of_resource.flat_map(|r| r.values.iter().flat_map(Map::iter)).chain(set.iter().flat_map(|s| s.iter()))
        {
            flat.insert(key.clone(), value.clone());
        }
        let mut values = expand(&flat);
        let asked = values.str_at(&["request", "operation"]);
        review.operation = match (operation, asked) {
            (Some(operation), _) => operation,
            (None, Some(word)) => parse_operation(word).ok_or_else(|| ValuesError::Operation(word.to_owned()))?,
            (None, None) => review.operation,
        };
        if let Some(request) = values.as_object_mut().and_then(|v| v.get_mut("request")).and_then(Value::as_object_mut)
        {
            // The engine has its own members for these three.
            request.remove("operation");
            if let Some(overlay) = request.remove("object") {
                review.object = review.object.overlaid(&overlay);
            }
            if let Some(overlay) = request.remove("oldObject") {
                review.old_object = review.old_object.overlaid(&overlay);
            }
        }
        match review.operation {
            Operation::Update if review.old_object.is_null() => review.old_object = review.object.clone(),
            Operation::Delete => {
                let object = std::mem::take(&mut review.object);
                if review.old_object.is_null() {
                    review.old_object = object;
                }
            }
            _ => {}
        }
        let mut given = Given { values: map_of(&values), ..Given::default() };
        for rule in of_policy().flat_map(|p| p.rules.iter().flatten()) {
            if let Some(of_rule) = &rule.values {
                given.rules.insert(rule.name.clone(), map_of(&values.overlaid(&expand(of_rule))));
            }
            if let Some(in_loops) = &rule.foreach_values {
                given.foreach.insert(rule.name.clone(), map_of(&expand(in_loops)));
            }
        }
        review.given = Some(Arc::new(given));
        Ok(())
    }
}

/// The operation of a word in upper case.
pub fn parse_operation(word: &str) -> Option<Operation> {
    [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect]
        .into_iter()
        .find(|operation| operation.as_str() == word)
}

/// Dotted paths into a tree; a segment in double quotes may hold dots. Where one path goes on below the value of
/// another, the later in the order of the alphabet counts.
fn expand(flat: &Map) -> Value {
    let mut tree = Value::object(Map::new());
    for (path, value) in flat.iter() {
        let mut leaf = value.clone();
        for segment in segments(path).into_iter().rev() {
            leaf = Value::from([(segment, leaf)]);
        }
        tree = tree.overlaid(&leaf);
    }
    tree
}

/// What is wrong with the name of a value: a member of `request` that no request has. No rule reads it unless it is
/// misspelt there, too.
pub fn misspelt(name: &str) -> Option<Located> {
    let segments = segments(name);
    let [root, member, ..] = segments.as_slice() else { return None };
    if root != "request" || REQUEST_MEMBERS.contains(&member.as_str()) {
        return None;
    }
    let message = format!("a value is given for `{name}`, but `request` has no member `{member}`");
    let mut finding = Located::plain("undefined-variable", message);
    finding.severity = Severity::Warning;
    finding.help = nearest(member, REQUEST_MEMBERS).map(|near| format!("did you mean `request.{near}`?"));
    Some(finding)
}

fn map_of(value: &Value) -> Map {
    value.as_object().cloned().unwrap_or_default()
}

fn segments(path: &str) -> Vec<Str> {
    let mut segments = Vec::new();
    let mut current = String::new();
    let mut quoted = false;
    for c in path.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => segments.push(Str::from(std::mem::take(&mut current))),
            c => current.push(c),
        }
    }
    segments.push(current.into());
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    fn values(json: &str) -> Values {
        ephor_expr::value::decode(&value(json)).unwrap()
    }

    fn review(json: &str) -> Review {
        Review::of_object(value(json), jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn dotted_paths_become_a_tree_and_quotes_keep_dots() {
        let flat = value(r#"{"a.b":1,"a.c":{"d":2},"a.c.e":3,"x.\"y.z/w\"":4}"#);
        let want = value(r#"{"a":{"b":1,"c":{"d":2,"e":3}},"x":{"y.z/w":4}}"#);
        assert_eq!(expand(flat.as_object().unwrap()), want);
    }

    #[test]
    fn members_that_no_request_has_are_told_with_the_nearest() {
        let help = |name: &str| misspelt(name).map(|finding| finding.help.unwrap_or_default());
        assert_eq!(help("request.operaton").as_deref(), Some("did you mean `request.operation`?"));
        assert_eq!(help("request.\"objct\".metadata.name").as_deref(), Some("did you mean `request.object`?"));
        assert_eq!(help("request.zzz").as_deref(), Some(""));
        for known in ["request.operation", "request.object.metadata.operaton", "request", "requests.a", "cm.data"] {
            assert!(misspelt(known).is_none(), "{known}");
        }
    }

    #[test]
    fn request_values_change_the_review_and_the_rest_is_given() {
        let given = values(
            r#"{"globalValues":{"request.operation":"UPDATE","cm.data":{"a":"1"}},
                "policies":[{"name":"p","resources":[{"name":"r","values":{"request.object.metadata.labels.x":"y"}}],
                             "rules":[{"name":"rule","values":{"cm.data.b":"2"}}]}]}"#,
        );
        let mut changed = review(r#"{"kind":"Pod","metadata":{"name":"r"}}"#);
        given.apply(&mut changed, "p", None, None).unwrap();
        assert_eq!(changed.operation, Operation::Update);
        assert_eq!(changed.object.str_at(&["metadata", "labels", "x"]), Some("y"));
        assert_eq!(changed.old_object, changed.object);
        let all = changed.given.unwrap();
        assert_eq!(all.rules["rule"].get("cm"), Some(&value(r#"{"data":{"a":"1","b":"2"}}"#)));
        assert_eq!(all.values.get("cm"), Some(&value(r#"{"data":{"a":"1"}}"#)));
    }

    #[test]
    fn an_operation_of_the_row_wins_and_delete_moves_the_object() {
        let given = values(r#"{"globalValues":{"request.operation":"UPDATE"}}"#);
        let mut changed = review(r#"{"kind":"Pod","metadata":{"name":"r"}}"#);
        given.apply(&mut changed, "p", None, Some(Operation::Delete)).unwrap();
        assert_eq!(changed.operation, Operation::Delete);
        assert!(changed.object.is_null());
        assert_eq!(changed.old_object.str_at(&["kind"]), Some("Pod"));
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        let given = values(r#"{"globalValues":{"request.operation":"Update"}}"#);
        let error = given.apply(&mut review("{}"), "p", None, None).unwrap_err();
        assert_eq!(error, ValuesError::Operation("Update".into()));
    }

    #[test]
    fn whole_namespaces_win_over_listed_labels() {
        let given = values(
            r#"{"namespaces":[{"metadata":{"name":"a","labels":{"x":"1"}}}],
                "namespaceSelector":[{"name":"a","labels":{"x":"2"}},{"name":"b","labels":{"x":"3"}}]}"#,
        );
        let label = |namespace| given.namespace_labels(namespace).and_then(|l| l.str_at(&["x"]).map(str::to_owned));
        assert_eq!(label("a").as_deref(), Some("1"));
        assert_eq!(label("b").as_deref(), Some("3"));
        assert_eq!(given.namespace_labels("c"), None);
    }

    #[test]
    fn a_kind_that_stands_for_a_subresource_is_its_parent() {
        let given = values(
            r#"{"subresources":[{"subresource":{"name":"pods/exec","version":"v1","kind":"PodExecOptions"},
                                 "parentResource":{"name":"pods","version":"v1","kind":"Pod"}}]}"#,
        );
        let found = given.subresource(&Gvk::new("v1", "PodExecOptions"));
        assert_eq!(found, Some((Gvk::new("v1", "Pod"), Str::new("exec"))));
        assert_eq!(given.subresource(&Gvk::new("v1", "Pod")), None);
    }
}
