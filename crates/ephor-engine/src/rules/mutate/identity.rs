//! Which object a patch of an existing object is about.
//!
//! The patch is computed from a policy's text and from data of users, so it can hold anything. What it must not do is
//! make another object of its target: writing the result would overwrite an object that the rule never selected.
//! The engine refuses such a patch, and the writer checks the same again with what it read.

use ephor_expr::Value;
use ephor_expr::value::Path;

/// The members that make an object this very object in this version.
const IDENTITY: [&[&str]; 6] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "namespace"],
    &["metadata", "name"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
];

/// A patch that makes another object of its target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the patch changes `{path}` of its target from {before} to {after}, which would make it another object")]
pub struct IdentityChanged {
    /// The member that differs.
    pub path: Path,
    /// What it is in the object that was read, as JSON.
    pub before: String,
    /// What the patch makes of it, as JSON.
    pub after: String,
}

/// Whether `after` is still the object that was read as `before`.
pub fn kept(before: &Value, after: &Value) -> Result<(), IdentityChanged> {
    let member = |object: &Value, keys: &[&str]| object.at(keys).cloned().unwrap_or_default();
    for keys in IDENTITY {
        let (before, after) = (member(before, keys), member(after, keys));
        if before != after {
            return Err(IdentityChanged {
                path: Path::root().keys(keys),
                before: before.to_json(),
                after: after.to_json(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    const TARGET: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, uid: u, \
                          resourceVersion: '1', labels: {x: one}}, data: {k: v}}";

    #[test]
    fn every_member_of_the_identity_must_stay() {
        for (from, to, path) in [
            ("apiVersion: v1", "apiVersion: v2", "apiVersion"),
            ("kind: ConfigMap", "kind: Secret", "kind"),
            ("name: a,", "name: b,", "metadata.name"),
            ("name: a,", "name: [a],", "metadata.name"),
            ("namespace: ns, ", "namespace: other, ", "metadata.namespace"),
            ("namespace: ns, ", "", "metadata.namespace"),
            ("uid: u, ", "", "metadata.uid"),
            ("resourceVersion: '1', ", "", "metadata.resourceVersion"),
            ("resourceVersion: '1', ", "resourceVersion: '2', ", "metadata.resourceVersion"),
            ("{name: a, namespace: ns, uid: u, resourceVersion: '1', labels: {x: one}}", "a", "metadata.namespace"),
        ] {
            let after = TARGET.replace(from, to);
            assert_ne!(after, TARGET, "{from}");
            let changed = kept(&parse_value(TARGET).unwrap(), &parse_value(&after).unwrap()).unwrap_err();
            assert_eq!(changed.path.to_string(), path, "{changed}");
        }
    }

    #[test]
    fn everything_else_may_change() {
        let after = TARGET.replace("x: one", "x: two").replace("k: v", "k: w");
        assert_eq!(kept(&parse_value(TARGET).unwrap(), &parse_value(&after).unwrap()), Ok(()));
    }

    #[test]
    fn the_message_says_what_becomes_of_which_member() {
        let after = TARGET.replace("name: a,", "name: b,");
        let changed = kept(&parse_value(TARGET).unwrap(), &parse_value(&after).unwrap()).unwrap_err();
        assert_eq!(
            changed.to_string(),
            r#"the patch changes `metadata.name` of its target from "a" to "b", which would make it another object"#
        );
    }
}
