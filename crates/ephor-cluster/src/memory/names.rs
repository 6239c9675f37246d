//! What names, labels and their like may look like.

use crate::resource::Resource;

/// What is wrong with the name of an object of that kind.
pub(super) fn name_problem(resource: &Resource, name: &str) -> Option<String> {
    if matches!(name, "." | "..") {
        return Some(format!("may not be '{name}'"));
    }
    if let Some(bad) = ["/", "%"].into_iter().find(|bad| name.contains(bad)) {
        return Some(format!("may not contain '{bad}'"));
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        // Roles are named like `system:node`, so any path segment will do.
        ("rbac.authorization.k8s.io", _) => None,
        ("", "Namespace") => label_problem(name),
        ("", "Service") => service_problem(name),
        _ => subdomain_problem(name),
    }
}

/// What is wrong with a namespace's name, and that of other things that become one part of a domain name.
fn label_problem(name: &str) -> Option<String> {
    const RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
        start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    if name.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!is_label(name)).then(|| if is_subdomain(name) { "must not contain dots".to_owned() } else { RULE.to_owned() })
}

fn service_problem(name: &str) -> Option<String> {
    const RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
        alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
        validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    if name.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    let fits = is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    (!fits).then(|| RULE.to_owned())
}

/// What is wrong with the name of most things.
fn subdomain_problem(name: &str) -> Option<String> {
    const RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
        '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if name.len() > 253 {
        return Some("must be no more than 253 bytes".to_owned());
    }
    (!is_subdomain(name)).then(|| RULE.to_owned())
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_label(name: &str) -> bool {
    framed(name, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), |c| c == '-')
}

/// What is wrong with the key of a label, annotation or finalizer.
pub(super) fn key_problem(key: &str) -> Option<String> {
    const SHAPE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((_, name)) if name.contains('/') => {
            return Some(format!(
                "a valid label key {SHAPE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        Some("") => return Some("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if let Some(problem) = subdomain_problem(prefix) {
                return Some(format!("prefix part {problem}"));
            }
        }
        None => {}
    }
    match name {
        "" => Some("name part must be non-empty".to_owned()),
        _ if name.len() > 63 => Some("name part must be no more than 63 bytes".to_owned()),
        _ => (!is_word(name)).then(|| format!("name part {SHAPE}")),
    }
}

/// What is wrong with the value of a label.
pub(super) fn value_problem(value: &str) -> Option<String> {
    const RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
        and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
        used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    if value.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!value.is_empty() && !is_word(value)).then(|| RULE.to_owned())
}

fn is_word(text: &str) -> bool {
    framed(text, |c| c.is_ascii_alphanumeric(), |c| matches!(c, '-' | '_' | '.'))
}

/// Whether `text` begins and ends with an `outer` character and has only `outer` and `inner` ones.
fn framed(text: &str, outer: impl Fn(char) -> bool, inner: impl Fn(char) -> bool) -> bool {
    text.starts_with(&outer) && text.ends_with(&outer) && text.chars().all(|c| outer(c) || inner(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Discovery;

    #[test]
    fn names_must_suit_their_kind() {
        let discovery = Discovery::kubernetes();
        for (api_version, kind, name, fits) in [
            ("v1", "ConfigMap", "a.b-c.9", true),
            ("v1", "ConfigMap", "A", false),
            ("v1", "ConfigMap", "a_b", false),
            ("v1", "ConfigMap", "a..b", false),
            ("v1", "ConfigMap", "-a", false),
            ("v1", "ConfigMap", "..", false),
            ("v1", "Namespace", "9a", true),
            ("v1", "Namespace", "a.b", false),
            ("v1", "Service", "a9", true),
            ("v1", "Service", "9a", false),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "system:Node", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "a/b", false),
            ("kyverno.io/v1", "ClusterPolicy", "a b", false),
        ] {
            let resource = discovery.find(api_version, kind).unwrap();
            assert_eq!(name_problem(resource, name).is_none(), fits, "{kind} {name}");
        }
        let namespace = discovery.find("v1", "Namespace").unwrap();
        assert!(name_problem(namespace, &"a".repeat(63)).is_none());
        assert!(name_problem(namespace, &"a".repeat(64)).is_some());
    }

    #[test]
    fn label_keys_and_values_follow_the_rules() {
        for (key, fits) in [
            ("app", true),
            ("app.kubernetes.io/name", true),
            ("A_b.c-d", true),
            ("", false),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            ("UPPER.com/a", false),
            ("a b", false),
            ("_a", false),
        ] {
            assert_eq!(key_problem(key).is_none(), fits, "{key}");
        }
        let long = "a".repeat(64);
        for (value, fits) in [("", true), ("a_B.9", true), ("-", false), ("a b", false), ("a/b", false), (&long, false)]
        {
            assert_eq!(value_problem(value).is_none(), fits, "{value}");
        }
    }
}
